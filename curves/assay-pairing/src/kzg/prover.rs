//! Commitments and proofs of EIP-4844.

use super::{BLOB_ELEMENTS, KzgError, Settings, challenge, evaluate, numbers, reversed, roots};
use crate::bls12_381::Fr;
use crate::curve::{Affine, BlsG1};
use crate::field::Field as _;
use crate::msm::{Backend, sum_of_products};

/// Part of a trusted setup needed for commitments: the Lagrange polynomials at its secret, times the generator.
#[derive(Clone, Debug)]
pub struct Prover {
    /// In bit-reversed order, as in blobs.
    pub(super) points: Vec<Affine<BlsG1>>,
    settings: Settings,
}

impl Prover {
    /// From the points `g1_lagrange` of a setup (`trusted_setup.json`), in their order, and its settings.
    ///
    /// # Errors
    /// If there are not 4,096 points, or one is not in the group.
    pub fn new(lagrange: &[[u8; 48]], settings: Settings) -> Result<Self, KzgError> {
        if lagrange.len() != BLOB_ELEMENTS {
            return Err(KzgError::SetupLength(lagrange.len()));
        }
        let point = |index| Affine::<BlsG1>::from_compressed(&lagrange[reversed(index)]);
        let points = (0..BLOB_ELEMENTS).map(point).collect::<Result<_, _>>()?;
        Ok(Self { points, settings })
    }

    /// Settings for verification.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The commitment to a blob (`blob_to_kzg_commitment`).
    ///
    /// # Errors
    /// If this is not a blob.
    pub fn commit(&self, blob: &[u8]) -> Result<[u8; 48], KzgError> {
        Ok(self.sum(&numbers(blob)?))
    }

    /// Proof of the value at z, and the value (`compute_kzg_proof`).
    ///
    /// # Errors
    /// If this is not a blob, or z is not below the order.
    pub fn prove(&self, blob: &[u8], z: &[u8; 32]) -> Result<([u8; 48], [u8; 32]), KzgError> {
        let numbers = numbers(blob)?;
        let z = Fr::from_be_bytes(z).ok_or(KzgError::Number)?;
        let (proof, y) = self.prove_at(&numbers, z);
        Ok((proof, y.to_be_bytes()))
    }

    /// Proof that a blob matches a commitment (`compute_blob_kzg_proof`), which is not checked.
    ///
    /// # Errors
    /// If this is not a blob, or the commitment is not a point of the group.
    pub fn prove_blob(&self, blob: &[u8], commitment: &[u8; 48]) -> Result<[u8; 48], KzgError> {
        let numbers = numbers(blob)?;
        Affine::<BlsG1>::from_compressed(commitment)?;
        Ok(self.prove_at(&numbers, challenge(blob, commitment)).0)
    }

    /// Commitment to `(f - y) / (x - z)`. If z is a root of one, the value there follows from the
    /// others (`compute_quotient_eval_within_domain` of the specification).
    fn prove_at(&self, values: &[Fr], z: Fr) -> ([u8; 48], Fr) {
        let (y, roots) = (evaluate(values, z), roots());
        let mut quotient: Vec<Fr> = roots.iter().map(|root| *root - z).collect();
        Fr::invert_all(&mut quotient);
        for (quotient, value) in quotient.iter_mut().zip(values) {
            *quotient *= *value - y;
        }
        if let Some(place) = roots.iter().position(|root| *root == z) {
            // sum((f_i - y) w_i / (z (z - w_i))); the term of z itself is zero.
            let sum = quotient.iter().zip(&roots).fold(Fr::ZERO, |sum, (q, root)| sum - *q * *root);
            quotient[place] = sum * z.inverse().expect("a root of one");
        }
        (self.sum(&quotient), y)
    }

    fn sum(&self, numbers: &[Fr]) -> [u8; 48] {
        let scalars: Vec<_> = numbers.iter().map(Fr::to_limbs).collect();
        sum_of_products(Backend::detect(), &self.points, &scalars).to_affine().to_compressed()
    }
}
