//! Multi-scalar multiplication: Pippenger's buckets, filled by affine additions that share inversions.
//!
//! Scalars have signed digits of c bits, so a window has 2^(c-1) buckets. A bucket is a list of points; lists are
//! added up in pairs, and pairs of pairs (`lists`), so that no two concurrent additions touch the same sum, and
//! nothing has to wait or be queued. The buckets of a window are then arranged as a rectangle: bucket `i 2^h + j` is
//! in row i and column j, so the window's sum is `2^h sum(i row_i) + sum(j column_j)`. Rows and columns are lists
//! again, and so are the rows and columns whose number has a given bit. The result is one point per bit of the
//! scalars; these are added while doubling.
//!
//! Additions of equal and opposite points are detected and corrected in the lanes, so any points of
//! the curve are allowed, also repeatedly.

mod digits;
mod fixed;
mod lists;
mod ternary;
#[cfg(test)]
mod tests;
mod vector;

pub use crate::backend::Backend;
use crate::backend::on_backend;
use crate::curve::{Affine, Curve, Jacobian, bls12, bn, parts, prime_order, sum_of_few};
use crate::limbs;
use digits::{Digits, Shape};
pub(crate) use fixed::FixedLists;
use lists::{Lists, NEGATIVE};
#[doc(hidden)]
pub use ternary::Ternary;
use vector::{Coordinates, Single, Vector, VectorOf};

/// Groups with multi-scalar multiplication.
pub trait MultiScalar: Curve {
    /// See [`share_of_products`].
    #[doc(hidden)]
    fn sum(
        backend: Backend,
        points: &[Affine<Self>],
        scalars: &[[u64; 4]],
        share: Share,
    ) -> Jacobian<Self>;

    /// For each block and place of ternary digits, the sum of all points times their digit.
    #[doc(hidden)]
    fn ternary_sums(
        backend: Backend,
        points: &[Affine<Self>],
        shape: Ternary,
        numbers: &[Vec<u16>],
    ) -> Vec<Jacobian<Self>>;
}

/// The base field has lanes, Fp2 has none yet.
macro_rules! multi_scalar {
    ($family:ident: $first:ident in lanes) => {
        impl<F: $family::Parameters> MultiScalar for $family::$first<F> {
            fn sum(
                backend: Backend,
                points: &[Affine<Self>],
                scalars: &[[u64; 4]],
                share: Share,
            ) -> Jacobian<Self> {
                sum_in_lanes(backend, points, scalars, share)
            }

            fn ternary_sums(
                backend: Backend,
                points: &[Affine<Self>],
                shape: Ternary,
                numbers: &[Vec<u16>],
            ) -> Vec<Jacobian<Self>> {
                ternary_sums_in_lanes(backend, points, shape, numbers)
            }
        }
    };
    ($family:ident: $second:ident in words) => {
        impl<F: $family::Parameters> MultiScalar for $family::$second<F> {
            fn sum(
                _: Backend,
                points: &[Affine<Self>],
                scalars: &[[u64; 4]],
                share: Share,
            ) -> Jacobian<Self> {
                sum::<Self, Single<<Self as Curve>::Base>>(points, scalars, share)
            }

            fn ternary_sums(
                _: Backend,
                points: &[Affine<Self>],
                shape: Ternary,
                numbers: &[Vec<u16>],
            ) -> Vec<Jacobian<Self>> {
                ternary::sums::<Self, Single<<Self as Curve>::Base>>(points, shape, numbers)
            }
        }
    };
}

multi_scalar!(prime_order: PrimeOrder in lanes);
multi_scalar!(bls12: G1 in lanes);
multi_scalar!(bls12: G2 in words);
multi_scalar!(bn: G2 in words);

/// Sum of all points times their scalars (below 2^256, least significant limb first).
///
/// Points must be in the group (scalars are reduced modulo its order).
///
/// # Panics
/// If the numbers of points and scalars differ, or are 2^31 or more, or if this CPU does not support the backend.
pub fn sum_of_products<C: MultiScalar>(
    backend: Backend,
    points: &[Affine<C>],
    scalars: &[[u64; 4]],
) -> Jacobian<C> {
    share_of_products(backend, points, scalars, Share::WHOLE)
}

/// One of several shares of a sum, for one thread each: some of the windows of the scalars, over all points. The shares
/// together cost hardly more than the whole sum, unlike parts of the points, which have more windows per point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    index: usize,
    count: usize,
}

impl Share {
    /// The whole sum as a single share.
    pub const WHOLE: Self = Self { index: 0, count: 1 };

    /// All of `count` shares. There are 16 to 128 windows, so a few shares are about equal, and many are not.
    ///
    /// # Panics
    /// If `count` is zero.
    pub fn all(count: usize) -> impl Iterator<Item = Self> {
        assert!(count > 0, "a share at least");
        (0..count).map(move |index| Self { index, count })
    }
}

/// A share of [`sum_of_products`], which is the sum of all its shares. Sums of few points are not
/// split: the first share has all of it.
///
/// # Panics
/// As [`sum_of_products`].
pub fn share_of_products<C: MultiScalar>(
    backend: Backend,
    points: &[Affine<C>],
    scalars: &[[u64; 4]],
    share: Share,
) -> Jacobian<C> {
    assert_eq!(points.len(), scalars.len(), "as many scalars as points");
    assert!(points.len() >> 31 == 0, "fewer than 2^31 points");
    assert!(backend.is_available(), "a backend that this CPU runs");
    C::sum(backend, points, scalars, share)
}

fn share_of_few<C: Curve>(points: &[Affine<C>], scalars: &[[u64; 4]], share: Share) -> Jacobian<C> {
    if share.index == 0 { sum_of_few(points, scalars) } else { Jacobian::INFINITY }
}

/// Maximum number of parts of numbers that are faster to double in step, with a table each, than to sort into buckets.
const FEW_PARTS: usize = 40;
/// The same limit against buckets in lanes.
const FEW_PARTS_IN_LANES: usize = 20;
/// Maximum number of points whose parts are added in lanes.
const POINTS_IN_PARTS_IN_LANES: usize = 64;

/// Sum on any backend, for groups over the base field.
fn sum_in_lanes<C: Curve<Base: Coordinates>>(
    backend: Backend,
    points: &[Affine<C>],
    scalars: &[[u64; 4]],
    share: Share,
) -> Jacobian<C> {
    on_backend!(
        backend;
        sum::<C, Single<C::Base>>(points, scalars, share),
        L => sum::<C, VectorOf<L, C::Base>>(points, scalars, share)
    )
}

/// [`MultiScalar::ternary_sums`] on any backend, for groups over the base field.
fn ternary_sums_in_lanes<C: Curve<Base: Coordinates>>(
    backend: Backend,
    points: &[Affine<C>],
    shape: Ternary,
    numbers: &[Vec<u16>],
) -> Vec<Jacobian<C>> {
    on_backend!(
        backend;
        ternary::sums::<C, Single<C::Base>>(points, shape, numbers),
        L => ternary::sums::<C, VectorOf<L, C::Base>>(points, shape, numbers)
    )
}

/// Sum in words or in lanes.
fn sum<C: Curve, V: Vector<Scalar = C::Base>>(
    points: &[Affine<C>],
    scalars: &[[u64; 4]],
    share: Share,
) -> Jacobian<C> {
    let few_parts = if V::WIDTH == 1 { FEW_PARTS } else { FEW_PARTS_IN_LANES };
    if points.len() * C::PARTS <= few_parts {
        return share_of_few(points, scalars, share);
    }
    let (width, shares) = (V::WIDTH, share.count);
    let cost =
        |points, bits| Shape::for_points(points, bits, width, shares).cost(points, width, shares);
    let bits = limbs::bits(&C::ORDER);
    // Splitting gives more points in fewer windows. By measurement, additional memory costs a tenth
    // of the additions, and in lanes more than that from some hundred points on.
    let of_parts = cost(C::PARTS * points.len(), C::PART_BITS);
    let may_pay = width == 1 || points.len() <= POINTS_IN_PARTS_IN_LANES;
    if may_pay && 10 * of_parts < 9 * cost(points.len(), bits) {
        let (points, scalars) = parts(points, scalars);
        return sum_of_bits::<C, V>(&points, &scalars, C::PART_BITS, share);
    }
    sum_of_bits::<C, V>(points, scalars, bits, share)
}

/// A share of the sum of all points times numbers of `bits` bits.
fn sum_of_bits<C: Curve, V: Vector<Scalar = C::Base>>(
    points: &[Affine<C>],
    scalars: &[[u64; 4]],
    bits: usize,
    share: Share,
) -> Jacobian<C> {
    let shape = Shape::for_points(points.len(), bits, V::WIDTH, share.count);
    let windows = shape.windows_of(share);
    if windows.is_empty() {
        return Jacobian::INFINITY;
    }
    let below = windows.start * shape.width;
    let mut lists = Lists::<V>::new(points.iter().map(|point| (point.x, point.y)));
    let digits = Digits::new(shape, windows, &C::ORDER, scalars, |index| points[index].is_infinity);
    let buckets = fill_buckets(&mut lists, &digits);
    let lines = sum_lines(&mut lists, shape, &buckets);
    let bits = sum_bits(&mut lists, shape, &lines);
    let mut sum = Jacobian::INFINITY;
    for &reference in bits.iter().rev() {
        sum = sum.double();
        if let Some((x, y)) = lists.point(reference) {
            sum = sum.add_affine(&Affine::new(x, y));
        }
    }
    (0..below).fold(sum, |sum, _| sum.double())
}

/// Sums of all buckets of all windows: references, [`lists::EMPTY`] for empty buckets.
fn fill_buckets<V: Vector>(lists: &mut Lists<V>, digits: &Digits) -> Vec<u32> {
    let (all, per_window) = (digits.windows.len(), digits.points.max(1));
    let at_once = (V::REFS_AT_ONCE / per_window).clamp(1, all);
    let mut buckets = Vec::with_capacity(all * digits.shape.buckets());
    let (mut refs, mut ends) = (Vec::new(), Vec::new());
    let mut window = 0;
    while window < all {
        let windows = window..(window + at_once).min(all);
        digits.sort(windows.clone(), &mut refs, &mut ends);
        window = windows.end;
        lists.sum_in_parts(&refs, &ends, V::REFS_AT_ONCE, &mut buckets);
    }
    buckets
}

/// Sums of the rows from 1 on, then of the columns from 1 on, of every window.
fn sum_lines<V: Vector>(lists: &mut Lists<V>, shape: Shape, buckets: &[u32]) -> Vec<u32> {
    let (mut refs, mut ends) = (Vec::new(), Vec::new());
    for buckets in buckets.chunks_exact(shape.buckets()) {
        for row in 1..shape.rows() {
            for column in 0..shape.columns() {
                push_bucket(&mut refs, buckets, row * shape.columns() + column);
            }
            ends.push(refs.len() as u32);
        }
        for column in 1..shape.columns() {
            for row in 0..shape.rows() {
                push_bucket(&mut refs, buckets, row * shape.columns() + column);
            }
            ends.push(refs.len() as u32);
        }
    }
    let mut lines = Vec::with_capacity(ends.len());
    lists.sum_in_parts(&refs, &ends, V::REFS_AT_ONCE, &mut lines);
    lines
}

/// Bucket 0 is not stored, and buckets above the last one are empty.
fn push_bucket(refs: &mut Vec<u32>, buckets: &[u32], number: usize) {
    if number >= 1 && number <= buckets.len() && buckets[number - 1] != lists::EMPTY {
        refs.push(buckets[number - 1]);
    }
}

/// For each bit of the scalars, from the lowest on, the sum of the lines with that bit.
fn sum_bits<V: Vector>(lists: &mut Lists<V>, shape: Shape, lines: &[u32]) -> Vec<u32> {
    let (rows, columns) = (shape.rows() - 1, shape.columns() - 1);
    let (mut refs, mut ends) = (Vec::new(), Vec::new());
    for lines in lines.chunks_exact(rows + columns) {
        let (rows, columns) = lines.split_at(rows);
        for bit in 0..shape.width {
            let (of, bit) = match bit.checked_sub(shape.column_bits) {
                Some(bit) => (rows, bit),
                None => (columns, bit),
            };
            for (line, number) in of.iter().zip(1usize..) {
                if number >> bit & 1 == 1 && *line != lists::EMPTY {
                    refs.push(*line);
                }
            }
            ends.push(refs.len() as u32);
        }
    }
    let mut bits = Vec::with_capacity(ends.len());
    lists.sum_in_parts(&refs, &ends, V::REFS_AT_ONCE, &mut bits);
    bits
}

/// Sign bit of a digit's reference.
fn sign(is_negative: bool) -> u32 {
    if is_negative { NEGATIVE } else { 0 }
}
