//! Proofs of all cells at once (Feist and Khovratovich, "Fast amortized KZG proofs", 2023).
//!
//! Let f be the polynomial. The proof of the cell whose roots are the 64 with `x^64 = y` is `sum(h_j y^j)` for 64
//! points `h_j`, which are products of a Toeplitz matrix of f's coefficients and points of the setup. This takes 64
//! circulant matrices of size 128, one per offset of coefficients, and so sums of 64 products after transforms have
//! made them diagonal; the points of those sums are precomputed.

use super::super::domain::{Domain, Transformed, powers, reverse_order, root_of_order};
use super::super::{BLOB_ELEMENTS, KzgError, Prover, numbers};
use super::{CELL_ELEMENTS, CELLS, Cells, EXTENDED, cells};
use crate::bls12_381::Fr;
use crate::curve::{Affine, BlsG1, Jacobian};
use crate::field::Field as _;
use crate::msm::{Backend, FixedLists};
use crate::multiples::{self, Multiplier};

/// Number of cells of the blob without its extension.
const HALF: usize = CELLS / 2;

impl Transformed for Jacobian<BlsG1> {
    type Factor = Multiplier;

    fn sum(&self, other: &Self) -> Self {
        *self + *other
    }

    fn difference(&self, other: &Self) -> Self {
        *self - *other
    }

    fn scale(values: &mut [Self], factors: &[&Multiplier]) {
        let products = multiples::products(Backend::detect(), values, factors);
        values.copy_from_slice(&products);
    }

    fn factor(factor: Fr) -> Multiplier {
        Multiplier::new(factor.to_limbs())
    }
}

/// Computes cells and their proofs. Uses 27 MB, and takes about a second to create.
#[derive(Clone, Debug)]
pub struct CellProver {
    /// Transformed points of all offsets, for each of 128 places.
    columns: FixedLists,
    pub(super) numbers: Domain,
    points: Domain<Jacobian<BlsG1>>,
    backend: Backend,
    /// Powers of the root of order 8,192.
    shift: Vec<Fr>,
}

impl CellProver {
    /// Uses the setup of a prover of blobs.
    pub fn new(prover: &Prover) -> Self {
        let powers_of_secret = powers_of_secret(prover);
        let points = Domain::new(CELLS);
        let mut columns = vec![Vec::new(); CELLS];
        for offset in 0..CELL_ELEMENTS {
            let mut circulant = vec![Jacobian::INFINITY; CELLS];
            for (place, point) in circulant[..HALF - 1].iter_mut().enumerate() {
                *point = powers_of_secret
                    [BLOB_ELEMENTS - CELL_ELEMENTS - 1 - offset - place * CELL_ELEMENTS];
            }
            points.values(&mut circulant);
            columns.iter_mut().zip(circulant).for_each(|(column, point)| column.push(point));
        }
        Self {
            columns: FixedLists::new(&columns),
            numbers: Domain::new(EXTENDED),
            points,
            backend: Backend::detect(),
            shift: powers(root_of_order(EXTENDED), BLOB_ELEMENTS),
        }
    }

    /// The same on a given backend; `None` if this CPU does not support it.
    #[must_use]
    pub fn on(self, backend: Backend) -> Option<Self> {
        backend.is_available().then_some(Self { backend, ..self })
    }

    /// Computes the cells of a blob (`compute_cells`).
    ///
    /// # Errors
    /// If this is not a blob.
    pub fn cells(&self, blob: &[u8]) -> Result<Vec<[u8; super::CELL_BYTES]>, KzgError> {
        let values = numbers(blob)?;
        Ok(self.extended(&values, &self.coefficients(&values)))
    }

    /// Computes the cells of a blob and their proofs (`compute_cells_and_kzg_proofs`).
    ///
    /// # Errors
    /// If this is not a blob.
    pub fn prove(&self, blob: &[u8]) -> Result<Cells, KzgError> {
        let values = numbers(blob)?;
        let coefficients = self.coefficients(&values);
        let cells = self.extended(&values, &coefficients);
        Ok(Cells { cells, proofs: self.proofs(&coefficients) })
    }

    fn coefficients(&self, values: &[Fr]) -> Vec<Fr> {
        let mut list = values.to_vec();
        reverse_order(&mut list);
        self.numbers.coefficients(&mut list);
        list
    }

    /// The first half of the cells is the blob, since its roots are every second one.
    fn extended(&self, values: &[Fr], coefficients: &[Fr]) -> Vec<[u8; super::CELL_BYTES]> {
        let mut between: Vec<Fr> =
            coefficients.iter().zip(&self.shift).map(|(c, power)| *c * *power).collect();
        self.numbers.values(&mut between);
        reverse_order(&mut between);
        let mut all = cells(values);
        all.extend(cells(&between));
        all
    }

    /// Proofs of all cells of the polynomial with these 4,096 coefficients.
    pub(super) fn proofs(&self, coefficients: &[Fr]) -> Vec<[u8; 48]> {
        // The reverse transform of points yields multiples by 128.
        let scale = Fr::from_u64(CELLS as u64).inverse().expect("not zero");
        let mut scalars = vec![vec![[0; 4]; CELL_ELEMENTS]; CELLS];
        for offset in 0..CELL_ELEMENTS {
            let mut circulant = [Fr::ZERO; CELLS];
            circulant[0] = coefficients[BLOB_ELEMENTS - 1 - offset];
            for (place, number) in circulant[HALF + 2..].iter_mut().enumerate() {
                *number = coefficients[(place + 2) * CELL_ELEMENTS - 1 - offset];
            }
            self.numbers.values(&mut circulant);
            for (scalars, number) in scalars.iter_mut().zip(&circulant) {
                scalars[offset] = (*number * scale).to_limbs();
            }
        }
        let mut points = self.columns.sums(self.backend, &scalars);
        self.points.coefficients_times_size(&mut points);
        points[HALF..].fill(Jacobian::INFINITY);
        self.points.values(&mut points);
        reverse_order(&mut points);
        Jacobian::all_to_affine(&points).iter().map(Affine::<BlsG1>::to_compressed).collect()
    }
}

/// The powers of a setup's secret times the generator, from its Lagrange polynomials: `x^i = sum(w^(i j) L_j(x))`.
fn powers_of_secret(prover: &Prover) -> Vec<Jacobian<BlsG1>> {
    let mut points: Vec<_> = prover.points.iter().map(|point| Jacobian::from(*point)).collect();
    reverse_order(&mut points);
    Domain::new(BLOB_ELEMENTS).values(&mut points);
    points
}
