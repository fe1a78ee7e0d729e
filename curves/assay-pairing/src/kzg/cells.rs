//! Cells of extended blobs and their proofs (EIP-7594): [`CellProver`] creates, [`CellVerifier`] verifies them.
//!
//! A blob is a polynomial of degree below 4,096, given by its values at as many roots of one. Its values at twice as
//! many are split into 128 cells, any 64 of which determine it. A cell's proof is the commitment to the quotient of
//! the polynomial by the polynomial that vanishes at the cell's roots.
//!
//! ```
//! use assay_pairing::kzg::{CELL_BYTES, CellOf, CellVerifier};
//!
//! // For the zero blob every cell is zero, its commitment and every proof are infinity.
//! let (cell, mut infinity) = ([0; CELL_BYTES], [0; 48]);
//! infinity[0] = 0xc0;
//! let of = |index| CellOf { commitment: &infinity, index, cell: &cell, proof: &infinity };
//! assert!(CellVerifier::ethereum().verify(&[of(0), of(127)])?);
//! # Ok::<_, assay_pairing::kzg::KzgError>(())
//! ```

mod prover;
mod recovery;
#[cfg(test)]
mod tests;
mod verifier;

pub use prover::CellProver;
pub use verifier::{CellOf, CellVerifier};

use super::domain::{powers, reversed_in, root_of_order};
use super::{BLOB_ELEMENTS, KzgError};
use crate::bls12_381::Fr;
use crate::limbs;

/// Number of field elements of a cell.
pub const CELL_ELEMENTS: usize = 64;
pub const CELL_BYTES: usize = 32 * CELL_ELEMENTS;
/// Number of cells of an extended blob.
pub const CELLS: usize = EXTENDED / CELL_ELEMENTS;
/// Number of field elements of an extended blob.
const EXTENDED: usize = 2 * BLOB_ELEMENTS;

/// All cells of an extended blob, and a proof for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cells {
    pub cells: Vec<[u8; CELL_BYTES]>,
    /// One proof per cell; compressed points.
    pub proofs: Vec<[u8; 48]>,
}

/// The numbers of a cell, in its own order.
fn numbers(cell: &[u8]) -> Result<[Fr; CELL_ELEMENTS], KzgError> {
    if cell.len() != CELL_BYTES {
        return Err(KzgError::CellLength(cell.len()));
    }
    let mut numbers = [Fr::ZERO; CELL_ELEMENTS];
    for (number, bytes) in numbers.iter_mut().zip(cell.chunks_exact(32)) {
        *number = Fr::from_limbs(limbs::from_be_bytes(bytes)).ok_or(KzgError::Number)?;
    }
    Ok(numbers)
}

fn cells(numbers: &[Fr]) -> Vec<[u8; CELL_BYTES]> {
    let cell = |numbers: &[Fr]| {
        let mut cell = [0; CELL_BYTES];
        for (bytes, number) in cell.chunks_exact_mut(32).zip(numbers) {
            bytes.copy_from_slice(&number.to_be_bytes());
        }
        cell
    };
    numbers.chunks_exact(CELL_ELEMENTS).map(cell).collect()
}

/// Factor of each cell from the roots of order 64 to the roots of the cell.
fn shifts() -> Vec<Fr> {
    let powers = powers(root_of_order(EXTENDED), CELLS);
    (0..CELLS).map(|index| powers[reversed_in(CELLS, index)]).collect()
}
