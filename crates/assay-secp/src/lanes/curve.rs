//! Points of y^2 = x^3 + 7, one per lane, and sums of two multiples.
//!
//! The formulas are incomplete: adding a point to itself or to its negation gives Z = 0, and Z = 0 persists through every later
//! step. No formula uses the 7, so they hold on the isomorphic curves y^2 = x^3 + 7 z^6 too.

#![expect(clippy::needless_range_loop, reason = "vectors in step go by one index")]

use super::field::{Columns, Factor, Fe, Sum};
use super::group::{Digit, G_HALVES, G_WINDOWS, Part, Q_HALVES, Q_WINDOWS};
use super::steps::{
    Operation, Product, ProductReduced, Reduced, Reduction, Square, ToFactor, ToFe, ToNegated,
    ToSum, ToThrice, ToTwice, in_steps, product,
};
use super::{LANES, Lanes, Line};

/// A cube root of one: multiplying x by it multiplies the point by [`crate::scalar`]'s lambda.
pub(super) const BETA: [u64; 5] = [
    0x9_6c28_7195_01ee,
    0x7_512f_5899_5c13,
    0xc_3434_e99c_f049,
    0x0_7106_e644_79ea,
    0x0_7ae9_6a2b_657c,
];

/// Odd multiples of the key in a table, 1 to 31.
const Q_MULTIPLES: usize = 16;

/// (X / Z^2, Y / Z^3), all weak. Z is zero for infinity and after an exceptional addition.
#[derive(Clone, Copy)]
pub(crate) struct Jacobian<L> {
    pub(crate) x: Fe<L>,
    pub(crate) y: Factor<L>,
    pub(crate) z: Factor<L>,
}

/// Carried coordinates; x and y of tables are weak.
#[derive(Clone, Copy)]
pub(crate) struct Affine<L> {
    pub(crate) x: Fe<L>,
    pub(crate) y: Fe<L>,
}

/// An array of the value for each of `N` vectors.
macro_rules! in_step {
    ($k:ident => $value:expr) => {{
        let first = {
            let $k = 0;
            $value
        };
        let mut values = [first; N];
        for $k in 1..N {
            values[$k] = $value;
        }
        values
    }};
}
pub(super) use in_step;

impl<L: Lanes> Affine<L> {
    #[inline(always)]
    fn negate_where(self, mask: u8) -> Self {
        Self { x: self.x, y: self.y.negate_where(mask) }
    }
}

impl<L: Lanes> Jacobian<L> {
    /// With Z = 1.
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

    /// Twice the point.
    #[inline(always)]
    pub(crate) fn double(&self) -> Self {
        let mut points = [*self];
        double(&mut points);
        points[0]
    }

    /// Adds a point in Jacobian coordinates: scaling X and Y by its Z makes it affine relative to this point's Z.
    #[inline(always)]
    pub(crate) fn add_jacobian(&self, other: &Self) -> Self {
        let zz = other.z.sqr();
        let mut scaled =
            [Self { x: self.x.mul(zz), y: self.y.mul(zz.mul(other.z)), z: self.z.mul(other.z) }];
        add(&mut scaled, &[Affine { x: other.x, y: other.y.fe() }], &[self.z]);
        scaled[0]
    }

    #[inline(always)]
    pub(crate) fn add(&self, point: &Affine<L>) -> Self {
        let mut points = [*self];
        add(&mut points, &[*point], &[self.z]);
        points[0]
    }
}

product!(SquareFe(a: Fe) {
    Columns::square(None, a)
});
product!(ProductFe(a: Fe, b: Factor) {
    Columns::zero().plus_product(a, b)
});
product!(ProductMinus(a: Fe, b: Factor, minus: Fe) {
    Sum::primes(2).minus(minus).columns().plus_product(a, b)
});
product!(DoubleX(m: Factor, v: Sum) {
    Columns::square(Some(Sum::far_primes().minus_sum::<3>(v)), m)
});
product!(DoubleY(m: Factor, v: Sum, x: Fe, yy: Factor) {
    let t = Sum::primes(2).plus_sum::<2>(v).minus(x).carry_to_factor();
    Columns::minus_eight_squares(yy).plus_product(m, t)
});
product!(AddX(r: Factor, minus_hhh: Fe, v: Sum) {
    Columns::square(Some(Sum::far_primes().plus(minus_hhh).minus_sum::<1>(v)), r)
});
product!(AddY(r: Factor, v: Sum, x: Fe, y: Factor, minus_hhh: Fe) {
    let w = Sum::primes(2).plus_sum::<0>(v).minus(x).carry_to_factor();
    Columns::zero().plus_product(r, w).plus_product(y, minus_hhh)
});

/// Doubles points: M = 3X^2, V = XY^2, X' = M^2 - 8V, Y' = M(4V - X') - 8Y^4, Z' = 2YZ.
#[inline(always)]
pub(crate) fn double<L: Lanes, const N: usize>(points: &mut [Jacobian<L>; N]) {
    let mut columns = [Columns::zero(); N];
    in_steps!(columns, let m, k => SquareFe(&points[k].x) => ToThrice);
    in_steps!(columns, let yy, k => Square(&points[k].y) => ToFactor);
    in_steps!(columns, let v, k => ProductFe(&points[k].x, &yy[k]) => ToSum);
    in_steps!(columns, points[k].x, k => DoubleX(&m[k], &v[k]) => ToFe);
    in_steps!(columns, points[k].z, k => Product(&points[k].y, &points[k].z) => ToTwice);
    in_steps!(columns, points[k].y, k => DoubleY(&m[k], &v[k], &points[k].x, &yy[k]) => ToFactor);
}

/// Adds points whose coordinates are relative to `scales`: the points (x, y) correspond to (X / scale^2, Y / scale^3). Returns H,
/// for Z' = ZH.
///
/// H = x scale^2 - X, R = y scale^3 - Y, V = XH^2, X' = R^2 - H^3 - 2V, Y' = R(V - X') - YH^3.
#[inline(always)]
pub(crate) fn add<L: Lanes, const N: usize>(
    points: &mut [Jacobian<L>; N],
    others: &[Affine<L>; N],
    scales: &[Factor<L>; N],
) -> [Factor<L>; N] {
    let mut columns = [Columns::zero(); N];
    in_steps!(columns, let zz, k => Square(&scales[k]) => ToFactor);
    in_steps!(columns, let zzz, k => Product(&scales[k], &zz[k]) => ToFactor);
    in_steps!(columns, let h, k => ProductMinus(&others[k].x, &zz[k], &points[k].x) => ToFactor);
    let y = in_step!(k => points[k].y.fe());
    in_steps!(columns, let r, k => ProductMinus(&others[k].y, &zzz[k], &y[k]) => ToFactor);
    in_steps!(columns, let hh, k => Square(&h[k]) => ToFactor);
    in_steps!(columns, let minus_hhh, k => Product(&h[k], &hh[k]) => ToNegated);
    in_steps!(columns, let v, k => ProductFe(&points[k].x, &hh[k]) => ToSum);
    in_steps!(columns, points[k].x, k => AddX(&r[k], &minus_hhh[k], &v[k]) => ToFe);
    in_steps!(columns, points[k].y, k => {
        AddY(&r[k], &v[k], &points[k].x, &points[k].y, &minus_hhh[k])
    } => ToFactor);
    in_steps!(columns, points[k].z, k => Product(&points[k].z, &h[k]) => ToFactor);
    h
}

#[inline(always)]
fn add_affine<L: Lanes, const N: usize>(sums: &mut [Jacobian<L>; N], points: &[Affine<L>; N]) {
    let scales = in_step!(k => sums[k].z);
    add(sums, points, &scales);
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

/// The odd multiples 1 to 31 of one key per lane, all relative to one scale.
#[derive(Clone, Copy)]
struct KeyTable {
    lines: [[Line; Q_MULTIPLES]; LANES],
}

impl KeyTable {
    /// Fills tables and returns their scales: entries are affine on the isomorphic curve with that scale as z (Meloni's co-Z
    /// trick, as in libsecp256k1's `ecmult_odd_multiples_table`).
    #[inline(always)]
    fn fill<L: Lanes, const N: usize>(
        tables: &mut [Self; N],
        keys: &[Affine<L>; N],
    ) -> [Factor<L>; N] {
        let mut twice = in_step!(k => Jacobian::from_affine(&keys[k]));
        double(&mut twice);
        // On the curve scaled by Z of 2Q, 2Q is affine, and so is Q after scaling.
        let zz = in_step!(k => twice[k].z.sqr());
        let first = in_step!(k => Affine {
            x: keys[k].x.mul(zz[k]),
            y: keys[k].y.mul(zz[k]).mul(twice[k].z),
        });
        let step = in_step!(k => Affine { x: twice[k].x, y: twice[k].y.fe() });
        let mut point = in_step!(k => Jacobian::from_affine(&first[k]));
        let mut factor = in_step!(k => point[k].z);
        let mut points = in_step!(k => [(point[k].x, point[k].y, factor[k]); Q_MULTIPLES]);
        for index in 1..Q_MULTIPLES {
            let scale = in_step!(k => point[k].z);
            let ratio = add(&mut point, &step, &scale);
            for k in 0..N {
                points[k][index] = (point[k].x, point[k].y, ratio[k]);
            }
        }
        for index in (0..Q_MULTIPLES).rev() {
            let square = in_step!(k => factor[k].sqr());
            let cube = in_step!(k => square[k].mul(factor[k]));
            let x = in_step!(k => points[k][index].0.mul(square[k]).to_words());
            let y = in_step!(k => points[k][index].1.mul(cube[k]).fe().to_words());
            for k in 0..N {
                let ([a, b, c, d], [e, f, g, h]) = (x[k], y[k]);
                let lines = L::transpose([a, b, c, d, e, f, g, h]);
                for lane in 0..L::WIDTH {
                    L::store_line(&lines, lane, &mut tables[k].lines[lane][index]);
                }
                factor[k] = factor[k].mul(points[k][index].2);
            }
        }
        in_step!(k => point[k].z.mul(twice[k].z))
    }

    /// Reads the multiples selected by the digits of the lanes from `first` on.
    #[inline(always)]
    fn load<L: Lanes>(&self, digit: &Digit<u8>, first: usize) -> Affine<L> {
        load_points(|lane| &self.lines[lane][usize::from(digit.index[first + lane] & 15)])
            .negate_where(digit.negative >> first)
    }
}

/// Reads the generator multiples selected by the digits at `place`, of the first or second halves.
#[inline(always)]
fn load_generators<L: Lanes, const N: usize>(
    table: &[Line],
    parts: &[Part<'_>; N],
    window: usize,
    half: usize,
) -> [Affine<L>; N] {
    let place = G_HALVES * window + half;
    let mut points = in_step!(k => {
        let (digit, first) = (&parts[k].group.g_digits[place], parts[k].first);
        load_points::<L>(|lane| &table[usize::from(digit.index[first + lane])])
            .negate_where(digit.negative >> first)
    });
    to_half(&mut points, half);
    points
}

/// Multiplies points of second halves by lambda.
#[inline(always)]
fn to_half<L: Lanes, const N: usize>(points: &mut [Affine<L>; N], half: usize) {
    if half == 1 {
        for point in points {
            point.x = point.x.mul(&Fe::constant(BETA));
        }
    }
}

/// Sums that start with these points.
#[inline(always)]
fn begin<L: Lanes, const N: usize>(points: &[Affine<L>; N]) -> [Jacobian<L>; N] {
    // Multiplied by one, so that y is weak.
    in_step!(k => Jacobian {
        x: points[k].x,
        y: points[k].y.factor().mul(&Fe::one()),
        z: Fe::one().factor(),
    })
}

/// `u1 G + u2 Q` with the digits of some lanes.
#[inline(always)]
pub(crate) fn multiply<L: Lanes, const N: usize>(
    keys: &[Affine<L>; N],
    parts: &[Part<'_>; N],
    table: &[Line],
) -> [Jacobian<L>; N] {
    let mut tables = [KeyTable { lines: [[Line([0; 8]); Q_MULTIPLES]; LANES] }; N];
    let scales = KeyTable::fill(&mut tables, keys);
    let mut sums = in_step!(k => Jacobian::from_affine(&keys[k]));
    for bit in (0..=5 * (Q_WINDOWS - 1)).rev() {
        let is_first = bit == 5 * (Q_WINDOWS - 1);
        if !is_first {
            double(&mut sums);
        }
        if bit % 5 == 0 {
            for half in 0..Q_HALVES {
                let place = Q_HALVES * (bit / 5) + half;
                let mut points = in_step!(k => {
                    tables[k].load::<L>(&parts[k].group.q_digits[place], parts[k].first)
                });
                to_half(&mut points, half);
                if is_first && half == 0 {
                    sums = begin(&points);
                } else {
                    add_affine(&mut sums, &points);
                }
            }
        }
        if bit % 13 == 0 {
            for half in 0..G_HALVES {
                let points = load_generators(table, parts, bit / 13, half);
                let scales = in_step!(k => sums[k].z.mul(scales[k]));
                add(&mut sums, &points, &scales);
            }
        }
    }
    for k in 0..N {
        sums[k].z = sums[k].z.mul(scales[k]);
    }
    sums
}

/// `u1 G + Q` with the digits of some lanes.
#[inline(always)]
pub(crate) fn tweak<L: Lanes, const N: usize>(
    keys: &[Affine<L>; N],
    parts: &[Part<'_>; N],
    table: &[Line],
) -> [Jacobian<L>; N] {
    let mut sums = in_step!(k => Jacobian::from_affine(&keys[k]));
    for window in (0..G_WINDOWS).rev() {
        let is_first = window == G_WINDOWS - 1;
        if !is_first {
            for _ in 0..13 {
                double(&mut sums);
            }
        }
        for half in 0..G_HALVES {
            let points = load_generators(table, parts, window, half);
            if is_first && half == 0 {
                sums = begin(&points);
            } else {
                add_affine(&mut sums, &points);
            }
        }
    }
    add_affine(&mut sums, keys);
    sums
}
