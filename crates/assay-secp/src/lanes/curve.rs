//! Points of y^2 = x^3 + 7, one in each lane, and sums of two multiples.
//!
//! The formulas are incomplete: an addition of a point to itself or to its negation gives Z = 0, and
//! Z = 0 stays through every later step. No formula uses the 7, so they hold on the isomorphic curves
//! y^2 = x^3 + 7 z^6 as well.

use super::field::{Columns, Factor, Fe, Sum};
use super::group::{Digit, G_HALVES, G_WINDOWS, Part, Q_HALVES, Q_WINDOWS};
use super::{LANES, Lanes, Line};

/// A cube root of one: multiplies x where the point is multiplied by [`crate::scalar`]'s lambda.
pub(super) const BETA: [u64; 5] = [
    0x9_6c28_7195_01ee,
    0x7_512f_5899_5c13,
    0xc_3434_e99c_f049,
    0x0_7106_e644_79ea,
    0x0_7ae9_6a2b_657c,
];

/// Odd multiples of the key that a table holds, 1 to 31.
const Q_MULTIPLES: usize = 16;

/// (X / Z^2, Y / Z^3), all weak. Z is zero for infinity and after an exceptional addition.
#[derive(Clone, Copy)]
pub(crate) struct Jacobian<L> {
    pub(crate) x: Fe<L>,
    pub(crate) y: Factor<L>,
    pub(crate) z: Factor<L>,
}

/// Coordinates that are carried; x and y of tables are weak.
#[derive(Clone, Copy)]
pub(crate) struct Affine<L> {
    pub(crate) x: Fe<L>,
    pub(crate) y: Fe<L>,
}

impl<L: Lanes> Affine<L> {
    /// The negation in the lanes of the mask.
    #[inline(always)]
    fn negate_where(self, mask: u8) -> Self {
        Self { x: self.x, y: self.y.negate_where(mask) }
    }
}

impl<L: Lanes> Jacobian<L> {
    /// The point whose Z is one.
    #[inline(always)]
    pub(crate) fn from_affine(point: &Affine<L>) -> Self {
        Self { x: point.x, y: point.y.factor(), z: Fe::one().factor() }
    }

    #[inline(always)]
    pub(crate) fn select(mask: u8, yes: &Self, no: &Self) -> Self {
        Self {
            x: Fe::select(mask, &yes.x, &no.x),
            y: Factor::select(mask, &yes.y, &no.y),
            z: Factor::select(mask, &yes.z, &no.z),
        }
    }

    /// Twice the point: M = 3X^2, V = XY^2, X' = M^2 - 8V, Y' = M(4V - X') - 8Y^4, Z' = 2YZ.
    #[inline(always)]
    pub(crate) fn double(&self) -> Self {
        L::double(self)
    }

    /// The body of [`Jacobian::double`].
    #[inline(always)]
    pub(crate) fn double_here(&self) -> Self {
        let m = Columns::square(None, &self.x).reduce_thrice();
        let yy = Columns::square(None, self.y).reduce_to_factor();
        let v = Columns::zero().plus_product(&self.x, yy).reduce_to_sum();
        let x = Columns::square(Some(Sum::far_primes().minus_sum::<3>(&v)), m).reduce();
        let t = Sum::primes(2).plus_sum::<2>(&v).minus(&x).carry_to_factor();
        let y = Columns::minus_eight_squares(yy).plus_product(m, t).reduce_to_factor();
        let z = Columns::zero().plus_product(self.y, self.z).reduce_twice();
        Self { x, y, z }
    }

    /// Adds a point whose coordinates are relative to `scale`: it is (x, y) where this point is
    /// (X / scale^2, Y / scale^3). Returns H with the sum, for Z' = ZH.
    ///
    /// H = x scale^2 - X, R = y scale^3 - Y, V = XH^2, X' = R^2 - H^3 - 2V, Y' = R(V - X') - YH^3.
    #[inline(always)]
    pub(crate) fn add_scaled(&self, point: &Affine<L>, scale: &Factor<L>) -> (Self, Factor<L>) {
        L::add_scaled(self, point, scale)
    }

    /// The body of [`Jacobian::add_scaled`].
    #[inline(always)]
    pub(crate) fn add_scaled_here(
        &self,
        point: &Affine<L>,
        scale: &Factor<L>,
    ) -> (Self, Factor<L>) {
        let zz = Columns::square(None, scale).reduce_to_factor();
        let zzz = Columns::zero().plus_product(scale, zz).reduce_to_factor();
        let (minus_x, minus_y) =
            (Sum::primes(2).minus(&self.x), Sum::primes(2).minus(&self.y.fe()));
        let h = minus_x.columns().plus_product(&point.x, zz).reduce_to_factor();
        let r = minus_y.columns().plus_product(&point.y, zzz).reduce_to_factor();
        let hh = Columns::square(None, h).reduce_to_factor();
        let minus_hhh = Columns::zero().plus_product(h, hh).reduce_negated();
        let v = Columns::zero().plus_product(&self.x, hh).reduce_to_sum();
        let sum = Sum::far_primes().plus(&minus_hhh).minus_sum::<1>(&v);
        let x = Columns::square(Some(sum), r).reduce();
        let w = Sum::primes(2).plus_sum::<0>(&v).minus(&x).carry_to_factor();
        let y = Columns::zero().plus_product(r, w).plus_product(self.y, &minus_hhh);
        let y = y.reduce_to_factor();
        let z = Columns::zero().plus_product(self.z, h).reduce_to_factor();
        (Self { x, y, z }, h)
    }

    /// Adds a point in Jacobian coordinates: X and Y scaled by its Z make it one that is affine
    /// relative to the own Z.
    #[inline(always)]
    pub(crate) fn add_jacobian(&self, other: &Self) -> Self {
        let zz = other.z.sqr();
        let scaled =
            Self { x: self.x.mul(zz), y: self.y.mul(zz.mul(other.z)), z: self.z.mul(other.z) };
        scaled.add_scaled(&Affine { x: other.x, y: other.y.fe() }, &self.z).0
    }

    /// Adds an affine point.
    #[inline(always)]
    pub(crate) fn add(&self, point: &Affine<L>) -> Self {
        self.add_scaled(point, &self.z).0
    }
}

/// Reads one point per lane.
#[inline(always)]
pub(super) fn load_points<'l, L: Lanes>(line: impl Fn(usize) -> &'l Line) -> Affine<L> {
    Affine {
        x: Fe::from_words(L::load_columns::<0>(&line)),
        y: Fe::from_words(L::load_columns::<4>(&line)),
    }
}

/// As [`load_points`], without y.
#[inline(always)]
pub(super) fn load_xs<'l, L: Lanes>(line: impl Fn(usize) -> &'l Line) -> Fe<L> {
    Fe::from_words(L::load_columns::<0>(&line))
}

/// The odd multiples 1 to 31 of a key of each lane, all relative to one scale.
struct KeyTable {
    lines: [[Line; Q_MULTIPLES]; LANES],
}

impl KeyTable {
    /// Fills the table and returns its scale: entries are affine on the isomorphic curve with
    /// that scale as z (Meloni's co-Z trick as libsecp256k1's `ecmult_odd_multiples_table` has it).
    #[inline(always)]
    fn fill<L: Lanes>(&mut self, key: &Affine<L>) -> Factor<L> {
        let twice = Jacobian::from_affine(key).double();
        // On the curve scaled by Z of 2Q, 2Q is affine, and so is Q after scaling.
        let zz = twice.z.sqr();
        let first = Affine { x: key.x.mul(zz), y: key.y.mul(zz).mul(twice.z) };
        let step = Affine { x: twice.x, y: twice.y.fe() };
        let mut point = Jacobian::from_affine(&first);
        let mut factor = point.z;
        let mut points = [(point.x, point.y, factor); Q_MULTIPLES];
        for entry in &mut points[1..] {
            let (sum, ratio) = point.add_scaled(&step, &point.z);
            point = sum;
            *entry = (point.x, point.y, ratio);
        }
        for index in (0..Q_MULTIPLES).rev() {
            let (x, y, ratio) = &points[index];
            let square = factor.sqr();
            let x = x.mul(square).to_words();
            let y = y.mul(square.mul(factor)).fe().to_words();
            let lines = L::transpose([x[0], x[1], x[2], x[3], y[0], y[1], y[2], y[3]]);
            for lane in 0..L::WIDTH {
                L::store_line(&lines, lane, &mut self.lines[lane][index]);
            }
            factor = factor.mul(ratio);
        }
        point.z.mul(twice.z)
    }

    /// Reads the multiples that the digits of the lanes from `first` on name.
    #[inline(always)]
    fn load<L: Lanes>(&self, digit: &Digit<u8>, first: usize) -> Affine<L> {
        load_points(|lane| &self.lines[lane][usize::from(digit.index[first + lane] & 15)])
            .negate_where(digit.negative >> first)
    }
}

/// Reads the multiples of the generator that the digits of the lanes from `first` on name.
#[inline(always)]
fn load_generator<L: Lanes>(table: &[Line], digit: &Digit<u16>, first: usize) -> Affine<L> {
    load_points(|lane| &table[usize::from(digit.index[first + lane])])
        .negate_where(digit.negative >> first)
}

/// Adds the digits of both halves of the generator's scalar at `window`.
#[inline(always)]
fn add_generator<L: Lanes>(
    sum: &mut Jacobian<L>,
    scale: &Factor<L>,
    part: &Part<'_>,
    window: usize,
    table: &[Line],
) {
    for half in 0..2 {
        let digit = &part.group.g_digits[G_HALVES * window + half];
        let mut point = load_generator::<L>(table, digit, part.first);
        if half == 1 {
            point.x = point.x.mul(&Fe::constant(BETA));
        }
        let scale = sum.z.mul(scale);
        *sum = sum.add_scaled(&point, &scale).0;
    }
}

/// `u1 G + u2 Q` with the digits of some lanes.
#[inline(always)]
pub(crate) fn multiply<L: Lanes>(key: &Affine<L>, part: &Part<'_>, table: &[Line]) -> Jacobian<L> {
    let mut keys = KeyTable { lines: [[Line([0; 8]); Q_MULTIPLES]; LANES] };
    let scale = keys.fill(key);
    let mut sum = Jacobian::from_affine(&Affine { x: Fe::one(), y: Fe::one() });
    for bit in (0..=5 * (Q_WINDOWS - 1)).rev() {
        let is_first = bit == 5 * (Q_WINDOWS - 1);
        if !is_first {
            sum = sum.double();
        }
        if bit % 5 == 0 {
            for half in 0..2 {
                let digit = &part.group.q_digits[Q_HALVES * (bit / 5) + half];
                let mut point = keys.load::<L>(digit, part.first);
                if half == 1 {
                    point.x = point.x.mul(&Fe::constant(BETA));
                } else if is_first {
                    // A product, so that y is weak.
                    sum.x = point.x;
                    sum.y = point.y.factor().mul(&Fe::one());
                    continue;
                }
                sum = sum.add(&point);
            }
        }
        if bit % 13 == 0 {
            add_generator(&mut sum, &scale, part, bit / 13, table);
        }
    }
    sum.z = sum.z.mul(scale);
    sum
}

/// `u1 G + Q` with the digits of some lanes.
#[inline(always)]
pub(crate) fn tweak<L: Lanes>(key: &Affine<L>, part: &Part<'_>, table: &[Line]) -> Jacobian<L> {
    let mut sum = Jacobian::from_affine(&Affine { x: Fe::one(), y: Fe::one() });
    for window in (0..G_WINDOWS).rev() {
        let is_first = window == G_WINDOWS - 1;
        if !is_first {
            for _ in 0..13 {
                sum = sum.double();
            }
        }
        for half in 0..2 {
            let digit = &part.group.g_digits[G_HALVES * window + half];
            let mut point = load_generator::<L>(table, digit, part.first);
            if half == 1 {
                point.x = point.x.mul(&Fe::constant(BETA));
            } else if is_first {
                sum.x = point.x;
                sum.y = point.y.factor().mul(&Fe::one());
                continue;
            }
            sum = sum.add(&point);
        }
    }
    sum.add(key)
}
