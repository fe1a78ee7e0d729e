//! Verification of many cells, of one blob or of several, by a single equation.

use super::super::domain::{Domain, powers, reverse_order};
use super::super::{BLOB_ELEMENTS, KzgError};
use super::{CELL_ELEMENTS, CELLS, numbers, shifts};
use crate::bls12_381::Fr;
use crate::curve::{Affine, BlsG1, BlsG2, Curve as _};
use crate::encoding::DecodeError;
use crate::field::Field as _;
use crate::membership::all_in_group;
use crate::msm::{Backend, sum_of_products};
use crate::pairing::{Bls12381, Pairing as _};
use crate::tower::Fp12;
use assay_hash::Sha256;

/// The powers 0 to 63 of the secret of Ethereum's ceremony of 2023 times the generator of the first group, and power 64
/// times that of the second: of `g1_monomial` and `g2_monomial` of its `trusted_setup.json`.
const ETHEREUM: &str = include_str!("ethereum.txt");

/// A cell with the values to verify it against.
#[derive(Clone, Copy, Debug)]
pub struct CellOf<'c> {
    pub commitment: &'c [u8; 48],
    /// Index of the cell in the extended blob, from 0 to 127.
    pub index: u64,
    /// [`super::CELL_BYTES`] bytes.
    pub cell: &'c [u8],
    pub proof: &'c [u8; 48],
}

/// Part of a trusted setup needed for the verification of cells.
#[derive(Clone, Debug)]
pub struct CellVerifier {
    /// Powers of the secret from 0 on, times the generator of the first group.
    powers: Vec<Affine<BlsG1>>,
    /// The secret to the power of 64 times the generator of the second group.
    power: Affine<BlsG2>,
    numbers: Domain,
    shifts: Vec<Fr>,
}

impl CellVerifier {
    /// Setup of Ethereum's main network.
    pub fn ethereum() -> Self {
        let mut lines = ETHEREUM.lines();
        let powers: Vec<[u8; 48]> = lines.by_ref().take(CELL_ELEMENTS).map(hexadecimal).collect();
        let power = lines.next().map(hexadecimal).expect("65 lines");
        Self::new(&powers, &power).expect("the published setup")
    }

    /// Another setup: the first 64 of its powers in the first group (`g1_monomial`) and number 64
    /// in the second (`g2_monomial[64]`), compressed.
    ///
    /// # Errors
    /// If there are not 64 powers, or one is not a point of its group.
    pub fn new(powers: &[[u8; 48]], power: &[u8; 96]) -> Result<Self, KzgError> {
        if powers.len() != CELL_ELEMENTS {
            return Err(KzgError::PowersLength(powers.len()));
        }
        let decode = |bytes| Affine::<BlsG1>::from_compressed(bytes);
        Ok(Self {
            powers: powers.iter().map(decode).collect::<Result<_, _>>()?,
            power: Affine::<BlsG2>::from_compressed(power)?,
            numbers: Domain::new(CELL_ELEMENTS),
            shifts: shifts(),
        })
    }

    /// True if all cells match their commitments (`verify_cell_kzg_proof_batch`); also for no cells.
    ///
    /// With `I_k` for the polynomial of degree below 64 of a cell, and `s_k` for its shift, the
    /// equation is that `sum(r^k (C_k - I_k(x) G + s_k^64 proof_k))` pairs with the generator as
    /// `sum(r^k proof_k)` does with `x^64`; r is a hash of all inputs.
    ///
    /// # Errors
    /// If an input is not canonically encoded, or an index is above 127.
    pub fn verify(&self, cells: &[CellOf<'_>]) -> Result<bool, KzgError> {
        if cells.is_empty() {
            return Ok(true);
        }
        let batch = Batch::new(cells)?;
        let powers_of_r = powers(batch.r, cells.len());
        let interpolated = self.interpolated(cells, &batch.numbers, &powers_of_r);

        let mut weights = vec![Fr::ZERO; batch.commitments.len()];
        let mut of_proofs = Vec::with_capacity(cells.len());
        for ((cell, row), power) in cells.iter().zip(&batch.rows).zip(&powers_of_r) {
            weights[*row] += *power;
            let shift = self.shifts[cell.index as usize];
            of_proofs.push(*power * shift.power(&[CELL_ELEMENTS as u64]));
        }
        let points = [&batch.proofs[..], &batch.commitments, &self.powers].concat();
        let scalars = of_proofs.iter().chain(&weights).chain(&interpolated);
        let backend = Backend::detect();
        let left =
            sum_of_products(backend, &points, &scalars.map(Fr::to_limbs).collect::<Vec<_>>());
        let scalars: Vec<_> = powers_of_r.iter().map(Fr::to_limbs).collect();
        let right = sum_of_products(backend, &batch.proofs, &scalars);
        let pairs = [(left.to_affine(), BlsG2::GENERATOR), (-right.to_affine(), self.power)];
        Ok(Bls12381::product(&pairs) == Fp12::ONE)
    }

    /// Coefficients of `-sum(r^k I_k)`. Cells with the same index are added up before their interpolation.
    fn interpolated(
        &self,
        cells: &[CellOf<'_>],
        numbers: &[[Fr; CELL_ELEMENTS]],
        powers_of_r: &[Fr],
    ) -> [Fr; CELL_ELEMENTS] {
        let mut places: Vec<Option<[Fr; CELL_ELEMENTS]>> = vec![None; CELLS];
        for ((cell, numbers), power) in cells.iter().zip(numbers).zip(powers_of_r) {
            let sums = places[cell.index as usize].get_or_insert([Fr::ZERO; CELL_ELEMENTS]);
            sums.iter_mut().zip(numbers).for_each(|(sum, number)| *sum -= *number * *power);
        }
        let mut coefficients = [Fr::ZERO; CELL_ELEMENTS];
        for (place, sums) in places.iter_mut().enumerate() {
            let Some(sums) = sums else { continue };
            reverse_order(sums);
            self.numbers.coefficients(sums);
            // Values at s w are those of f(s x) at w.
            let inverse = self.shifts[place].inverse().expect("a root of one");
            let mut power = Fr::ONE;
            for (coefficient, sum) in coefficients.iter_mut().zip(sums) {
                *coefficient += *sum * power;
                power *= inverse;
            }
        }
        coefficients
    }
}

struct Batch {
    /// Without repetitions.
    commitments: Vec<Affine<BlsG1>>,
    /// For each cell the index of its commitment.
    rows: Vec<usize>,
    proofs: Vec<Affine<BlsG1>>,
    numbers: Vec<[Fr; CELL_ELEMENTS]>,
    r: Fr,
}

impl Batch {
    fn new(cells: &[CellOf<'_>]) -> Result<Self, KzgError> {
        if let Some(cell) = cells.iter().find(|cell| cell.index >= CELLS as u64) {
            return Err(KzgError::CellIndex(cell.index));
        }
        let mut encoded: Vec<&[u8; 48]> = Vec::new();
        let mut rows = Vec::with_capacity(cells.len());
        let mut known = std::collections::HashMap::new();
        for cell in cells {
            rows.push(*known.entry(cell.commitment).or_insert_with(|| {
                encoded.push(cell.commitment);
                encoded.len() - 1
            }));
        }
        let numbers = cells.iter().map(|cell| numbers(cell.cell)).collect::<Result<_, _>>()?;
        let digest = challenge(&encoded, &rows, cells);
        let decode = |bytes: &[u8; 48]| Affine::<BlsG1>::from_compressed_on_curve(bytes);
        let mut points = encoded.iter().copied().map(decode).collect::<Result<Vec<_>, _>>()?;
        for cell in cells {
            points.push(decode(cell.proof)?);
        }
        // The digest covers all independent inputs, so it was unknown when they were chosen.
        if !all_in_group(Backend::detect(), &points, &digest) {
            return Err(DecodeError::NotInGroup.into());
        }
        let proofs = points.split_off(encoded.len());
        let r = Fr::from_be_bytes_reduced(&digest);
        Ok(Self { commitments: points, rows, proofs, numbers, r })
    }
}

/// `compute_verify_cell_kzg_proof_batch_challenge` of the specification, before it is reduced.
fn challenge(commitments: &[&[u8; 48]], rows: &[usize], cells: &[CellOf<'_>]) -> [u8; 32] {
    let mut hash = Sha256::new();
    let count = |count: usize| (count as u64).to_be_bytes();
    hash.update(b"RCKZGCBATCH__V1_");
    for number in [BLOB_ELEMENTS, CELL_ELEMENTS, commitments.len(), cells.len()] {
        hash.update(&count(number));
    }
    for commitment in commitments {
        hash.update(&commitment[..]);
    }
    for (cell, row) in cells.iter().zip(rows) {
        hash.update(&count(*row));
        hash.update(&cell.index.to_be_bytes());
        hash.update(cell.cell);
        hash.update(cell.proof);
    }
    hash.finalize()
}

fn hexadecimal<const N: usize>(text: &str) -> [u8; N] {
    let digit =
        |place: usize| (text.as_bytes()[place] as char).to_digit(16).expect("a digit") as u8;
    core::array::from_fn(|i| digit(2 * i) << 4 | digit(2 * i + 1))
}
