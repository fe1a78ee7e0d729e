//! Transforms of polynomials between coefficients and values at roots of one.

use super::Fr;
use crate::bls12_381::FrModulus;
use crate::field::{Field as _, Modulus as _};
use crate::limbs;

/// A root of one of this order, a power of two up to 2^32.
pub(super) fn root_of_order(size: usize) -> Fr {
    assert!(size.is_power_of_two());
    // 7 generates the multiplicative group.
    let below = const { limbs::minus_small(&FrModulus::MODULUS, 1) };
    Fr::from_u64(7).power(&limbs::divide_small(&below, size as u64).0)
}

/// The first powers of an element, from 1 on.
pub(super) fn powers(of: Fr, count: usize) -> Vec<Fr> {
    let mut power = Fr::ONE;
    let next = |_| {
        let this = power;
        power *= of;
        this
    };
    (0..count).map(next).collect()
}

/// The bit-reversed index, for a list of this length.
pub(super) fn reversed_in(size: usize, index: usize) -> usize {
    index.reverse_bits() >> (usize::BITS - size.trailing_zeros())
}

/// Converts a list to bit-reversed order, or back.
pub(super) fn reverse_order<T>(values: &mut [T]) {
    for index in 0..values.len() {
        let other = reversed_in(values.len(), index);
        if index < other {
            values.swap(index, other);
        }
    }
}

/// Elements that can be transformed: with sums, and multiples by roots of one.
pub(super) trait Transformed: Copy {
    fn sum(&self, other: &Self) -> Self;
    fn difference(&self, other: &Self) -> Self;
    /// Multiplies each value by its factor.
    fn scale(values: &mut [Self], factors: &[&Scale<Self>])
    where
        Self: Sized;
    /// Precomputed form of a factor.
    type Factor;
    fn factor(factor: Fr) -> Self::Factor;
}

/// Precomputed form of a factor for [`Transformed`].
pub(super) type Scale<T> = <T as Transformed>::Factor;

impl Transformed for Fr {
    type Factor = Self;

    #[inline(always)]
    fn sum(&self, other: &Self) -> Self {
        *self + *other
    }

    #[inline(always)]
    fn difference(&self, other: &Self) -> Self {
        *self - *other
    }

    fn scale(values: &mut [Self], factors: &[&Self]) {
        values.iter_mut().zip(factors).for_each(|(value, factor)| *value *= **factor);
    }

    fn factor(factor: Fr) -> Self {
        factor
    }
}

/// Roots of one of a size, in natural order, and their inverses.
#[derive(Clone, Debug)]
pub(super) struct Domain<T: Transformed = Fr> {
    /// The first half; the others are their negations.
    roots: Vec<T::Factor>,
    inverses: Vec<T::Factor>,
}

impl<T: Transformed> Domain<T> {
    pub(super) fn new(size: usize) -> Self {
        let root = root_of_order(size);
        let inverse = root.inverse().expect("a root of one");
        let half = |root| powers(root, size / 2).into_iter().map(T::factor).collect();
        Self { roots: half(root), inverses: half(inverse) }
    }

    /// Coefficients to values at the roots, both in natural order; also for shorter lists of a power of two.
    pub(super) fn values(&self, list: &mut [T]) {
        transform(list, &self.roots);
    }

    /// Values at as many roots to coefficients times their number, both in natural order.
    pub(super) fn coefficients_times_size(&self, list: &mut [T]) {
        transform(list, &self.inverses);
    }
}

impl Domain {
    /// Values at as many roots to coefficients, both in natural order.
    pub(super) fn coefficients(&self, list: &mut [Fr]) {
        self.coefficients_times_size(list);
        let scale = Fr::from_u64(list.len() as u64).inverse().expect("not zero");
        for coefficient in list {
            *coefficient *= scale;
        }
    }
}

/// Cooley and Tukey's transform, decimation in time. All products of a round are computed at once, to fill lanes.
fn transform<T: Transformed>(list: &mut [T], roots: &[T::Factor]) {
    reverse_order(list);
    let mut half = 1;
    while half < list.len() {
        // The first element of each group has the factor one.
        let step = 2 * roots.len() / (2 * half);
        let (mut products, mut factors) = (Vec::new(), Vec::new());
        for group in list.chunks_exact(2 * half) {
            products.extend_from_slice(&group[half + 1..]);
            factors.extend((1..half).map(|k| &roots[k * step]));
        }
        T::scale(&mut products, &factors);
        let mut products = products.into_iter();
        for group in list.chunks_exact_mut(2 * half) {
            let (low, high) = group.split_at_mut(half);
            for (k, (a, b)) in low.iter_mut().zip(high).enumerate() {
                let product =
                    if k == 0 { *b } else { products.next().expect("one for each but the first") };
                (*a, *b) = (a.sum(&product), a.difference(&product));
            }
        }
        half *= 2;
    }
}
