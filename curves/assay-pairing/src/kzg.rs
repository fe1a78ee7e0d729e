//! KZG commitments and proofs (EIP-4844): created by a [`Prover`], verified by [`Settings`]. Cells
//! of extended blobs and their proofs (EIP-7594): [`CellProver`], [`CellVerifier`].
//!
//! ```
//! use assay_pairing::kzg::{Settings, BLOB_BYTES};
//!
//! let settings = Settings::ethereum();
//! // The blob of zeros: its commitment and every proof for it are infinity.
//! let (blob, mut infinity) = (vec![0; BLOB_BYTES], [0; 48]);
//! infinity[0] = 0xc0;
//! assert!(settings.verify_blob_proof(&blob, &infinity, &infinity)?);
//! # Ok::<_, assay_pairing::kzg::KzgError>(())
//! ```

mod cells;
mod domain;
mod prover;
#[cfg(test)]
mod tests;

pub use cells::{CELL_BYTES, CELL_ELEMENTS, CELLS, CellOf, CellProver, CellVerifier, Cells};
pub use prover::Prover;

use core::fmt;

use assay_hash::Sha256;

use crate::bls12_381::Fr;
use crate::curve::{Affine, BlsG1, BlsG2, Curve as _};
use crate::encoding::DecodeError;
use crate::field::Field as _;
use crate::limbs;
use crate::pairing::{Bls12381, Pairing as _};
use crate::tower::Fp12;

/// Number of field elements of a blob.
pub const BLOB_ELEMENTS: usize = 4096;
pub const BLOB_BYTES: usize = 32 * BLOB_ELEMENTS;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KzgError {
    BlobLength(usize),
    /// A setup with the wrong number of points.
    SetupLength(usize),
    /// A setup with the wrong number of powers for the verification of cells.
    PowersLength(usize),
    CellLength(usize),
    /// An index above that of the last cell.
    CellIndex(u64),
    /// Fewer cells than recovery needs, or more than exist.
    CellCount(usize),
    /// Indices of cells that are not ascending.
    CellOrder,
    /// Cells of different blobs.
    Inconsistent,
    /// A number not below the order of the groups.
    Number,
    /// A commitment, proof or setup that is not a point of the group.
    Point(DecodeError),
}

impl fmt::Display for KzgError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BlobLength(bytes) => write!(f, "a blob of {bytes} bytes instead of {BLOB_BYTES}"),
            Self::SetupLength(points) => {
                write!(f, "a setup of {points} points instead of {BLOB_ELEMENTS}")
            }
            Self::PowersLength(powers) => {
                write!(f, "a setup of {powers} powers instead of {CELL_ELEMENTS}")
            }
            Self::CellLength(bytes) => write!(f, "a cell of {bytes} bytes instead of {CELL_BYTES}"),
            Self::CellIndex(index) => write!(f, "cell {index} of {CELLS}, which begin at 0"),
            Self::CellCount(cells) => {
                write!(f, "{cells} cells, but a blob is recovered from {} to {CELLS}", CELLS / 2)
            }
            Self::CellOrder => f.write_str("indices of cells do not ascend"),
            Self::Inconsistent => f.write_str("the cells are not all of one blob"),
            Self::Number => f.write_str("a number is not below the order of the group"),
            Self::Point(error) => write!(f, "commitment or proof: {error}"),
        }
    }
}

impl std::error::Error for KzgError {}

impl From<DecodeError> for KzgError {
    fn from(error: DecodeError) -> Self {
        Self::Point(error)
    }
}

/// Part of a trusted setup needed for verification.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The secret of the setup times the generator of the second group.
    secret: Affine<BlsG2>,
}

/// The secret of Ethereum's ceremony of 2023 times the generator: the second of the monomial points
/// of G2 in its `trusted_setup.json`.
const ETHEREUM: &str = "b5bfd7dd8cdeb128843bc287230af38926187075cbfbefa81009a2ce615ac53d\
    2914e5870cb452d2afaaab24f3499f72185cbfee53492714734429b7b38608e23926c911cceceac9a36851477ba4c60b\
    087041de621000edc98edada20c1def2";

impl Settings {
    /// Settings of Ethereum's main network.
    pub fn ethereum() -> Self {
        let digits = ETHEREUM.as_bytes();
        let digit = |byte: u8| (byte as char).to_digit(16).expect("hexadecimal") as u8;
        let bytes = core::array::from_fn(|i| digit(digits[2 * i]) << 4 | digit(digits[2 * i + 1]));
        Self::new(&bytes).expect("the published setup")
    }

    /// Settings of another setup, from its secret times the generator of the second group, compressed.
    ///
    /// # Errors
    /// If this is not a point of the group.
    pub fn new(secret: &[u8; 96]) -> Result<Self, KzgError> {
        Ok(Self { secret: Affine::<BlsG2>::from_compressed(secret)? })
    }

    /// True if the polynomial of a commitment has the value y at z. All inputs are encoded as in EIP-4844.
    ///
    /// # Errors
    /// If an input is not canonically encoded.
    pub fn verify_proof(
        &self,
        commitment: &[u8; 48],
        z: &[u8; 32],
        y: &[u8; 32],
        proof: &[u8; 48],
    ) -> Result<bool, KzgError> {
        let [z, y] = [z, y].map(|bytes| Fr::from_be_bytes(bytes).ok_or(KzgError::Number));
        let commitment = Affine::<BlsG1>::from_compressed(commitment)?;
        let proof = Affine::<BlsG1>::from_compressed(proof)?;
        Ok(self.is_proven(&commitment, z?, y?, &proof))
    }

    /// True if a blob matches a commitment, by its proof.
    ///
    /// # Errors
    /// If an input is not canonically encoded.
    pub fn verify_blob_proof(
        &self,
        blob: &[u8],
        commitment: &[u8; 48],
        proof: &[u8; 48],
    ) -> Result<bool, KzgError> {
        let numbers = numbers(blob)?;
        let point = Affine::<BlsG1>::from_compressed(commitment)?;
        let proof = Affine::<BlsG1>::from_compressed(proof)?;
        let z = challenge(blob, commitment);
        Ok(self.is_proven(&point, z, evaluate(&numbers, z), &proof))
    }

    /// `e(C - y G, H) = e(proof, (s - z) H)`, with z moved to the cheaper group:
    /// `e(C - y G + z proof, H) = e(proof, s H)`.
    fn is_proven(&self, c: &Affine<BlsG1>, z: Fr, y: Fr, proof: &Affine<BlsG1>) -> bool {
        let value = BlsG1::GENERATOR.multiply(&(-y).to_limbs());
        let left = (value + proof.multiply(&z.to_limbs())).add_affine(c).to_affine();
        let pairs = [(left, BlsG2::GENERATOR), (-*proof, self.secret)];
        Bls12381::product(&pairs) == Fp12::ONE
    }
}

/// The values of a blob's polynomial at the roots of one, in bit-reversed order.
fn numbers(blob: &[u8]) -> Result<Vec<Fr>, KzgError> {
    if blob.len() != BLOB_BYTES {
        return Err(KzgError::BlobLength(blob.len()));
    }
    let number = |bytes: &[u8]| Fr::from_limbs(limbs::from_be_bytes(bytes)).ok_or(KzgError::Number);
    blob.chunks_exact(32).map(number).collect()
}

/// `compute_challenge` of the specification.
fn challenge(blob: &[u8], commitment: &[u8; 48]) -> Fr {
    let mut hash = Sha256::new();
    hash.update(b"FSBLOBVERIFY_V1_");
    hash.update(&(BLOB_ELEMENTS as u128).to_be_bytes());
    hash.update(blob);
    hash.update(commitment);
    Fr::from_be_bytes_reduced(&hash.finalize())
}

/// Evaluates the polynomial at z by the barycentric formula: `(z^n - 1) / n * sum(f_i w_i / (z - w_i))`.
fn evaluate(values: &[Fr], z: Fr) -> Fr {
    let roots = roots();
    if let Some(index) = roots.iter().position(|root| *root == z) {
        return values[index];
    }
    let mut inverses: Vec<Fr> = roots.iter().map(|root| z - *root).collect();
    Fr::invert_all(&mut inverses);
    let terms = values.iter().zip(&roots).zip(&inverses);
    let sum = terms.fold(Fr::ZERO, |sum, ((f, root), inverse)| sum + *f * *root * *inverse);
    let size = Fr::from_u64(BLOB_ELEMENTS as u64);
    (z.power(&[BLOB_ELEMENTS as u64]) - Fr::ONE) * size.inverse().expect("not zero") * sum
}

/// The bit-reversed index.
fn reversed(index: usize) -> usize {
    domain::reversed_in(BLOB_ELEMENTS, index)
}

/// The roots of one, in the order of blobs.
fn roots() -> Vec<Fr> {
    let mut roots = domain::powers(domain::root_of_order(BLOB_ELEMENTS), BLOB_ELEMENTS);
    domain::reverse_order(&mut roots);
    roots
}
