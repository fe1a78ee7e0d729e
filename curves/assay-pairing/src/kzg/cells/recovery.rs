//! An extended blob from half of its cells.
//!
//! Let Z vanish at the roots of the missing cells. Z times the polynomial is known at all roots of
//! order 8,192, since it is zero at those, and its degree is below their number. The polynomial is
//! the quotient by Z, computed at points where Z is not zero.

use super::super::domain::{Domain, powers, reversed_in, root_of_order};
use super::super::{BLOB_ELEMENTS, KzgError};
use super::{CELL_ELEMENTS, CELLS, CellProver, Cells, EXTENDED, cells, numbers};
use crate::bls12_381::Fr;
use crate::field::Field as _;

/// Minimum number of cells.
const NEEDED: usize = CELLS / 2;

impl CellProver {
    /// Recovers all cells and proofs of a blob from 64 or more of its cells
    /// (`recover_cells_and_kzg_proofs`), each with its index, in ascending order.
    ///
    /// # Errors
    /// If there are fewer cells, or too many, indices are not ascending or above 127, a cell has
    /// the wrong length or a non-canonical number, or more than 64 cells are not all of one blob.
    pub fn recover(&self, found: &[(u64, &[u8])]) -> Result<Cells, KzgError> {
        if found.len() < NEEDED || found.len() > CELLS {
            return Err(KzgError::CellCount(found.len()));
        }
        if let Some((index, _)) = found.iter().find(|(index, _)| *index >= CELLS as u64) {
            return Err(KzgError::CellIndex(*index));
        }
        if !found.is_sorted_by(|(a, _), (b, _)| a < b) {
            return Err(KzgError::CellOrder);
        }
        // In natural order.
        let mut values = vec![Fr::ZERO; EXTENDED];
        let mut is_missing = [true; CELLS];
        for (index, cell) in found {
            let place = *index as usize;
            is_missing[place] = false;
            for (k, number) in numbers(cell)?.into_iter().enumerate() {
                values[reversed_in(EXTENDED, place * CELL_ELEMENTS + k)] = number;
            }
        }
        let mut coefficients = self.divided(values, &is_missing);
        let above = coefficients.split_off(BLOB_ELEMENTS);
        if above.iter().any(|coefficient| *coefficient != Fr::ZERO) {
            return Err(KzgError::Inconsistent);
        }
        let proofs = self.proofs(&coefficients);
        coefficients.resize(EXTENDED, Fr::ZERO);
        self.numbers.values(&mut coefficients);
        super::super::domain::reverse_order(&mut coefficients);
        Ok(Cells { cells: cells(&coefficients), proofs })
    }

    /// Coefficients of the polynomial with these values at the cells that are not missing.
    fn divided(&self, mut values: Vec<Fr>, is_missing: &[bool; CELLS]) -> Vec<Fr> {
        let vanishing = Vanishing::new(is_missing);
        let at_roots = vanishing.values(&self.numbers, Fr::ONE);
        for (place, value) in values.iter_mut().enumerate() {
            *value *= at_roots[place % CELLS];
        }
        self.numbers.coefficients(&mut values);
        // 7 is not a root of one of an order that is a power of two.
        let shift = Fr::from_u64(7);
        let scale = |values: &mut [Fr], by: Fr| {
            let powers = powers(by, values.len());
            values.iter_mut().zip(&powers).for_each(|(value, power)| *value *= *power);
        };
        scale(&mut values, shift);
        self.numbers.values(&mut values);
        let mut inverses = vanishing.values(&self.numbers, shift.power(&[CELL_ELEMENTS as u64]));
        Fr::invert_all(&mut inverses);
        for (place, value) in values.iter_mut().enumerate() {
            *value *= inverses[place % CELLS];
        }
        self.numbers.coefficients(&mut values);
        scale(&mut values, shift.inverse().expect("not zero"));
        values
    }
}

/// A polynomial in `y = x^64` of degree at most 64 that vanishes at the roots of missing cells.
struct Vanishing([Fr; CELLS]);

impl Vanishing {
    fn new(is_missing: &[bool; CELLS]) -> Self {
        let roots = powers(root_of_order(CELLS), CELLS);
        let mut product = [Fr::ZERO; CELLS];
        product[0] = Fr::ONE;
        for (place, _) in is_missing.iter().enumerate().filter(|(_, missing)| **missing) {
            let root = roots[reversed_in(CELLS, place)];
            for k in (0..=NEEDED).rev() {
                let below = if k > 0 { product[k - 1] } else { Fr::ZERO };
                product[k] = below - product[k] * root;
            }
        }
        Self(product)
    }

    /// Its values at all `y`, which are a factor times the roots of order 128.
    fn values(&self, domain: &Domain, factor: Fr) -> Vec<Fr> {
        let powers = powers(factor, CELLS);
        let mut values: Vec<Fr> =
            self.0.iter().zip(&powers).map(|(number, power)| *number * *power).collect();
        domain.values(&mut values);
        values
    }
}
