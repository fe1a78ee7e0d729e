//! Lazy reduction: sums of products as integers of 2 N limbs, reduced once, as in "Faster explicit formulas for
//! computing pairings over ordinary curves" (Aranha, Karabina, Longa, Gebotys, López, 2011) for towers.
//!
//! In contrast to that paper there are no intermediate corrections. A sum is an integer modulo 2^(128 N), and its
//! true value is within bounds that follow from the formula: [`Wide::reduced`] names them in multiples of p^2, and
//! the compiler checks that everything fits. Factors need not be reduced either; sums of a few elements are below R.

use core::marker::PhantomData;

use super::backend::{self, Prime};
use super::{Fe, Modulus};
use crate::limbs;

/// A sum of products, modulo 2^(128 N): the lower limbs, then the higher ones.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wide<M, const N: usize>(pub(super) [[u64; N]; 2], PhantomData<M>);

/// A sum of elements below R, not reduced.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sum<const N: usize>(pub(crate) [u64; N]);

impl<const N: usize> Sum<N> {
    /// `a + b`, which must be below R.
    #[inline(always)]
    pub(crate) fn of(a: &[u64; N], b: &[u64; N]) -> Self {
        let mut sum = Self(*a);
        backend::add_short(&mut sum.0, b);
        debug_assert!(!limbs::less(&sum.0, a), "a sum below R");
        sum
    }
}

/// `p / R` in units of 2^-32, rounded up.
const fn prime_per_r<M: Modulus<N>, const N: usize>() -> u128 {
    (M::MODULUS[N - 1] >> 32) as u128 + 1
}

/// True if `count` times the prime is below R.
pub(crate) const fn leaves_room<M: Modulus<N>, const N: usize>(count: usize) -> bool {
    count as u128 * prime_per_r::<M, N>() < 1 << 32
}

/// `count` times the prime, which must be below R.
const fn multiple<M: Modulus<N>, const N: usize>(count: usize) -> [u64; N] {
    assert!(leaves_room::<M, N>(count));
    let (mut sum, mut i) = ([0; N], 0);
    while i < count {
        sum = limbs::add(&sum, &M::MODULUS).0;
        i += 1;
    }
    sum
}

/// Bounds of a sum: above `-BELOW p^2` and below `ABOVE p^2`.
pub(crate) trait Range {
    const BELOW: usize;
    const ABOVE: usize;
}

/// A range of fixed bounds.
pub(crate) struct Within<const BELOW: usize, const ABOVE: usize>;

impl<const BELOW: usize, const ABOVE: usize> Range for Within<BELOW, ABOVE> {
    const BELOW: usize = BELOW;
    const ABOVE: usize = ABOVE;
}

/// Constants for the reduction of a number in this range.
struct Bounds<M, const N: usize, R>(PhantomData<(M, R)>);

impl<M: Modulus<N>, const N: usize, R: Range> Bounds<M, N, R> {
    /// Multiple of `p R` that makes the number positive.
    const OFFSET: usize = (R::BELOW as u128 * prime_per_r::<M, N>()).div_ceil(1 << 32) as usize;
    /// Bound of the result in multiples of p, rounded up: the number divided by R, plus p.
    const RESULT: usize = {
        let ratio = prime_per_r::<M, N>();
        // In units of p: OFFSET + ABOVE p / R + 1.
        let bound = ((Self::OFFSET as u128 + 1) << 32) + R::ABOVE as u128 * ratio;
        assert!(bound * ratio < 1 << 64, "a result below R");
        // Signed numbers of 2 N limbs: both bounds must be below R^2 / 2.
        assert!(
            R::BELOW as u128 * ratio * ratio < 1 << 63
                && R::ABOVE as u128 * ratio * ratio < 1 << 63
        );
        bound.div_ceil(1 << 32) as usize
    };
    /// Table for one multiple of the prime to subtract; then for two and three.
    const TABLE_1: &'static [Prime; 3] = &[*Fe::<M, N>::PRIME, Self::offset(), Self::times(1)];
    const TABLE_2: &'static [Prime; 4] =
        &[*Fe::<M, N>::PRIME, Self::offset(), Self::times(2), Self::times(1)];
    const TABLE_3: &'static [Prime; 5] =
        &[*Fe::<M, N>::PRIME, Self::offset(), Self::times(4), Self::times(2), Self::times(1)];

    const fn times(count: usize) -> Prime {
        backend::in_memory(&multiple::<M, N>(count))
    }

    const fn offset() -> Prime {
        Self::times(Self::OFFSET)
    }
}

impl<M: Modulus<N>, const N: usize> Wide<M, N> {
    pub(crate) const ZERO: Self = Self([[0; N]; 2], PhantomData);

    /// Sets the sum to the product of two numbers below R.
    #[inline(always)]
    pub(crate) fn set_product(&mut self, a: &[u64; N], b: &[u64; N]) {
        if !backend::wide_product(&mut self.0, a, b) {
            self.set_product_slowly(a, b);
        }
    }

    #[inline(always)]
    pub(crate) fn add(&mut self, other: &Self) {
        if !backend::wide_add(&mut self.0, &other.0) {
            self.add_slowly(other);
        }
    }

    #[inline(always)]
    pub(crate) fn sub(&mut self, other: &Self) {
        if !backend::wide_sub(&mut self.0, &other.0) {
            self.sub_slowly(other);
        }
    }

    /// Divides the sum, which must be in the range, by R modulo the prime.
    #[inline(always)]
    pub(crate) fn reduced<R: Range>(&self) -> Fe<M, N> {
        let mut result = Fe::ZERO;
        let has_offset = const { Bounds::<M, N, R>::OFFSET != 0 };
        let (out, number) = (&mut result.0, &self.0);
        let is_done = match const { Bounds::<M, N, R>::RESULT } {
            0..=2 => backend::reduce(out, number, Bounds::<M, N, R>::TABLE_1, has_offset),
            3..=4 => backend::reduce(out, number, Bounds::<M, N, R>::TABLE_2, has_offset),
            5..=8 => backend::reduce(out, number, Bounds::<M, N, R>::TABLE_3, has_offset),
            _ => unreachable!("results are below eight times the prime for all ranges in use"),
        };
        if is_done { result } else { self.reduced_slowly::<R>() }
    }

    /// [`Wide::set_product`] in plain Rust.
    pub(super) fn set_product_slowly(&mut self, a: &[u64; N], b: &[u64; N]) {
        let product = self.0.as_flattened_mut();
        product.fill(0);
        for (i, a) in a.iter().enumerate() {
            let mut carry = 0;
            for (j, b) in b.iter().enumerate() {
                (product[i + j], carry) = limbs::multiply_add(product[i + j], *a, *b, carry);
            }
            product[i + N] = carry;
        }
    }

    /// [`Wide::add`] in plain Rust.
    pub(super) fn add_slowly(&mut self, other: &Self) {
        let mut carry = 0;
        for (a, b) in self.0.as_flattened_mut().iter_mut().zip(other.0.as_flattened()) {
            (*a, carry) = limbs::add_carry(*a, *b, carry);
        }
    }

    /// [`Wide::sub`] in plain Rust.
    pub(super) fn sub_slowly(&mut self, other: &Self) {
        let mut borrow = 0;
        for (a, b) in self.0.as_flattened_mut().iter_mut().zip(other.0.as_flattened()) {
            (*a, borrow) = limbs::sub_borrow(*a, *b, borrow);
        }
    }

    /// [`Wide::reduced`] in plain Rust.
    pub(super) fn reduced_slowly<R: Range>(&self) -> Fe<M, N> {
        let [mut low, high] = self.0;
        // Limb by limb: adds a multiple of the prime, and divides by 2^64.
        for _ in 0..N {
            let quotient = low[0].wrapping_mul(Fe::<M, N>::NEGATED_INVERSE);
            let (_, mut carry) = limbs::multiply_add(low[0], quotient, M::MODULUS[0], 0);
            for j in 1..N {
                (low[j - 1], carry) = limbs::multiply_add(low[j], quotient, M::MODULUS[j], carry);
            }
            low[N - 1] = carry;
        }
        let offset = const { multiple::<M, N>(Bounds::<M, N, R>::OFFSET) };
        let mut sum = limbs::add(&limbs::add(&low, &high).0, &offset).0;
        for _ in 1..Bounds::<M, N, R>::RESULT {
            // Without a branch: secrets may be multiplied.
            let (difference, is_below) = limbs::sub(&sum, &M::MODULUS);
            let mask = core::hint::black_box(u64::from(is_below)).wrapping_neg();
            sum = core::array::from_fn(|i| difference[i] ^ (mask & (difference[i] ^ sum[i])));
        }
        Fe::from_montgomery(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Rng;
    use crate::{bls12_377, bls12_381, bn254, bn254_nogami};

    fn check<M: Modulus<N>, const N: usize>() {
        let mut rng = Rng::new(21);
        for _ in 0..100_000 {
            let [a, b, c, d]: [Fe<M, N>; 4] = core::array::from_fn(|_| rng.fe());
            // Any limbs, as in factors.
            let any: [[u64; N]; 2] =
                core::array::from_fn(|_| core::array::from_fn(|_| rng.edge_word()));
            let (mut fast, mut slow) = (Wide::<M, N>::ZERO, Wide::<M, N>::ZERO);
            fast.set_product(&any[0], &any[1]);
            slow.set_product_slowly(&any[0], &any[1]);
            assert_eq!(fast.0, slow.0, "{any:x?}");
            let (mut ab, mut cd) = (Wide::<M, N>::ZERO, Wide::<M, N>::ZERO);
            ab.set_product(&a.0, &b.0);
            cd.set_product(&c.0, &d.0);
            fast.add(&ab);
            slow.add_slowly(&ab);
            assert_eq!(fast.0, slow.0, "{any:x?} {a:?} {b:?}");
            fast.sub(&cd);
            slow.sub_slowly(&cd);
            assert_eq!(fast.0, slow.0, "{any:x?} {c:?} {d:?}");
            assert_eq!(ab.reduced::<Within<0, 1>>(), a.multiply(&b), "{a:?} {b:?}");
            assert_eq!(ab.reduced_slowly::<Within<0, 1>>(), a.multiply(&b), "{a:?} {b:?}");
            let mut difference = ab;
            difference.sub(&cd);
            let right = a.multiply(&b).minus(&c.multiply(&d));
            assert_eq!(difference.reduced::<Within<1, 1>>(), right, "{a:?} {b:?} {c:?} {d:?}");
            assert_eq!(
                difference.reduced_slowly::<Within<1, 1>>(),
                right,
                "{a:?} {b:?} {c:?} {d:?}"
            );
            // Six equal terms, positive and negative: bounds of the towers.
            let six = (0..5).fold(right, |sum, _| sum.plus(&right));
            let mut sum = difference;
            (0..5).for_each(|_| sum.add(&difference));
            assert_eq!(sum.reduced::<Within<6, 6>>(), six, "{a:?} {b:?} {c:?} {d:?}");
            assert_eq!(sum.reduced_slowly::<Within<6, 6>>(), six, "{a:?} {b:?} {c:?} {d:?}");
            assert_eq!(sum.reduced::<Within<12, 6>>(), six, "{a:?} {b:?} {c:?} {d:?}");
        }
    }

    #[test]
    fn sums_of_products_are_those_of_plain_rust() {
        check::<bls12_381::FpModulus, 6>();
        check::<bn254::FpModulus, 4>();
        check::<bls12_377::FpModulus, 6>();
        check::<bn254_nogami::FpModulus, 4>();
    }
}
