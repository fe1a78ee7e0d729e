//! A field element in each lane, in Montgomery form with R = 2^(52 K).
//!
//! - *carried*: limbs below the top one are from 0 to 2^52 - 1, and the value is not negative.
//! - *stored*: carried, and the value below 2.2 p. The form of points in memory.
//! - *factor*: carried, and the value below 8 p. Products of factors are below 2 p, for 64 p < R.

#![expect(clippy::needless_range_loop, reason = "limbs of several elements go by one index")]

use core::marker::PhantomData;

use super::{LANES, Lanes, Words};
use crate::field::{Fe, Modulus};
use crate::limbs;

pub(super) const MASK: u64 = (1 << 52) - 1;

/// Unrolled work for each limb: compilers do not unroll nested loops of this size.
macro_rules! for_limbs {
    ($i:ident in $count:ident => $work:block) => {
        for_limbs!($i in $count => $work, 0 1 2 3 4 5 6 7)
    };
    ($i:ident in $count:ident => $work:block, $($limb:literal)*) => {
        $(if $limb < $count {
            let $i = $limb;
            $work
        })*
    };
}

pub(super) use for_limbs;

task! {
    fn product<M: Modulus>(a: &'t LaneFe<L, M, N, K>, b: &'t LaneFe<L, M, N, K>) -> LaneFe<L, M, N, K> {
        a.product(b)
    }
}

task! {
    fn square<M: Modulus>(a: &'t LaneFe<L, M, N, K>) -> LaneFe<L, M, N, K> {
        a.square()
    }
}

/// A field element in each lane; needs only the number of limbs in addition to [`Modulus`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaneFe<L, M, const N: usize, const K: usize>([L; K], PhantomData<M>);

/// The 52-bit limbs of a number, with the whole rest in the top one.
pub(super) const fn split<const N: usize, const K: usize>(number: &[u64; N]) -> [u64; K] {
    let (mut parts, mut i) = ([0; K], 0);
    while i < K {
        let (word, shift) = (52 * i / 64, 52 * i % 64);
        let mut part = if word < N { number[word] >> shift } else { 0 };
        if shift > 12 && word + 1 < N {
            part |= number[word + 1] << (64 - shift);
        }
        parts[i] = part & MASK;
        i += 1;
    }
    parts
}

/// Inverse of [`split`], for limbs of 52 bits.
fn join<const N: usize, const K: usize>(parts: &[u64; K]) -> [u64; N] {
    let mut number = [0; N];
    for (i, part) in parts.iter().enumerate() {
        let (word, shift) = (52 * i / 64, 52 * i % 64);
        if word < N {
            number[word] |= part << shift;
        }
        if shift > 12 && word + 1 < N {
            number[word + 1] |= part >> (64 - shift);
        }
    }
    number
}

impl<L: Lanes, M: Modulus<N>, const N: usize, const K: usize> LaneFe<L, M, N, K> {
    pub(super) const PRIME: [u64; K] = split(&M::MODULUS);
    /// `-1 / p mod 2^52`.
    const NEGATED_INVERSE: u64 = limbs::negated_inverse_64(M::MODULUS[0]) & MASK;
    /// R modulo p: one.
    const ONE: [u64; K] = split(&limbs::power_of_two(52 * K, &M::MODULUS));
    /// Conversion factor from scalar Montgomery forms: `x 2^(64 N)` times this, divided by R, is `x R`.
    const FROM_SCALAR: [u64; K] = split(&limbs::power_of_two(2 * 52 * K - 64 * N, &M::MODULUS));
    /// Conversion factor back: `x R` times this, divided by R.
    const TO_SCALAR: [u64; K] = split(&limbs::power_of_two(64 * N, &M::MODULUS));

    /// Small multiples of p, limb by limb.
    pub(super) const fn multiple(factor: u64) -> [u64; K] {
        let (mut multiple, mut i) = (Self::PRIME, 0);
        while i < K {
            multiple[i] *= factor;
            i += 1;
        }
        multiple
    }

    const fn of(limbs: [L; K]) -> Self {
        // A factor of up to 8 p squared must stay below p R, and 8 p below 2^(52 K).
        const { assert!(Self::PRIME[K - 1] < 1 << 46) };
        Self(limbs, PhantomData)
    }

    #[inline(always)]
    pub(crate) fn constant(limbs: [u64; K]) -> Self {
        let mut all = [L::splat(0); K];
        for i in 0..K {
            all[i] = L::splat(limbs[i]);
        }
        Self::of(all)
    }

    #[inline(always)]
    pub(crate) fn one() -> Self {
        Self::constant(Self::ONE)
    }

    #[inline(always)]
    pub(crate) fn from_limbs(limbs: [L; K]) -> Self {
        Self::of(limbs)
    }

    #[inline(always)]
    pub(crate) fn limbs(&self) -> &[L; K] {
        &self.0
    }

    #[inline(always)]
    pub(crate) fn load(words: &[Words; K]) -> Self {
        let mut limbs = [L::splat(0); K];
        for i in 0..K {
            limbs[i] = L::load(&words[i]);
        }
        Self::of(limbs)
    }

    #[inline(always)]
    pub(crate) fn store(&self, words: &mut [Words; K]) {
        for i in 0..K {
            self.0[i].store(&mut words[i]);
        }
    }

    /// Carries limbs that may be negative or above 52 bits, for a value that is not negative.
    #[inline(always)]
    pub(super) fn carried(mut limbs: [L; K]) -> Self {
        for i in 0..K - 1 {
            limbs[i + 1] = limbs[i + 1].add(limbs[i].sar::<52>());
            limbs[i] = limbs[i].and(L::splat(MASK));
        }
        limbs[K - 1].expect_below(52);
        Self::of(limbs)
    }

    /// The difference of elements below 4 p, as a factor.
    #[inline(always)]
    pub(crate) fn minus(&self, other: &Self) -> Self {
        let four = Self::constant(const { Self::multiple(4) });
        let mut limbs = self.0;
        for i in 0..K {
            limbs[i] = limbs[i].add(four.0[i]).sub(other.0[i]);
        }
        Self::carried(limbs)
    }

    /// Sum of factors; their bounds add up.
    #[inline(always)]
    pub(crate) fn plus(&self, other: &Self) -> Self {
        let mut limbs = self.0;
        for i in 0..K {
            limbs[i] = limbs[i].add(other.0[i]);
        }
        Self::carried(limbs)
    }

    /// `3 p` minus a stored element in the lanes of the mask.
    #[inline(always)]
    pub(crate) fn negate_where(&self, mask: u8) -> Self {
        let three = Self::constant(const { Self::multiple(3) });
        let mut limbs = self.0;
        for i in 0..K {
            limbs[i] = L::select(mask, three.0[i].sub(limbs[i]), limbs[i]);
        }
        Self::carried(limbs)
    }

    /// `self - a - b` as a stored element, for `self` below 2 p and the sum of the others below 6 p.
    ///
    /// The top limb, with the carry of the one below, is the value up to 2^-10 of p: three thresholds select the
    /// multiple of p to add, with a result in (0.05 p, 2.1 p), which allows for that error.
    #[inline(always)]
    pub(crate) fn minus_both_stored(&self, a: &Self, b: &Self) -> Self {
        let mut limbs = self.0;
        for i in 0..K {
            limbs[i] = limbs[i].sub(a.0[i]).sub(b.0[i]);
        }
        Self::settled(limbs)
    }

    /// `self - a` as a stored element, for both below 4 p.
    #[inline(always)]
    pub(crate) fn minus_stored(&self, a: &Self) -> Self {
        let mut limbs = self.0;
        for i in 0..K {
            limbs[i] = limbs[i].sub(a.0[i]);
        }
        Self::settled(limbs)
    }

    /// A value from -6 p to 2 p as a stored element.
    #[inline(always)]
    fn settled(mut limbs: [L; K]) -> Self {
        // Size of p in units of the top limb; at least 2^12.
        let unit = Self::PRIME[K - 1] as i64;
        const { assert!(Self::PRIME[K - 1] >> 12 != 0) };
        limbs[K - 2] = limbs[K - 2].add(limbs[K - 3].sar::<52>());
        limbs[K - 3] = limbs[K - 3].and(L::splat(MASK));
        limbs[K - 1] = limbs[K - 1].add(limbs[K - 2].sar::<52>());
        limbs[K - 2] = limbs[K - 2].and(L::splat(MASK));
        // Below -1.9 p: (-6, -1.9) to (-2, 2.1). Then below 0.05 p: (-2, 0.05) to (0, 2.05).
        for (threshold, factor) in [(-unit * 19 / 10, 4), (unit / 20, 2)] {
            let below = limbs[K - 1].less_signed(L::splat(threshold as u64));
            let multiple = Self::multiple(factor);
            for i in 0..K {
                limbs[i] = limbs[i].add_where(below, L::splat(multiple[i]));
            }
        }
        Self::carried(limbs)
    }

    /// Product of factors, below 2 p. Not inlined: otherwise kernels would take minutes to compile.
    #[inline(always)]
    pub(crate) fn times(&self, other: &Self) -> Self {
        product(self, other)
    }

    /// The square of a factor, below 2 p.
    #[inline(always)]
    pub(crate) fn squared(&self) -> Self {
        square(self)
    }

    #[inline(always)]
    fn product(&self, other: &Self) -> Self {
        let mut columns = [L::splat(0); 16];
        for_limbs!(i in K => {
            for j in 0..K {
                columns[i + j] = columns[i + j].add_mul_low(self.0[j], other.0[i]);
                columns[i + j + 1] = columns[i + j + 1].add_mul_high(self.0[j], other.0[i]);
            }
        });
        Self::reduced(columns)
    }

    #[inline(always)]
    fn square(&self) -> Self {
        let mut columns = [L::splat(0); 16];
        for_limbs!(i in K => {
            for j in i + 1..K {
                columns[i + j] = columns[i + j].add_mul_low(self.0[j], self.0[i]);
                columns[i + j + 1] = columns[i + j + 1].add_mul_high(self.0[j], self.0[i]);
            }
        });
        for column in &mut columns[1..2 * K - 1] {
            *column = column.add(*column);
        }
        for i in 0..K {
            columns[2 * i] = columns[2 * i].add_mul_low(self.0[i], self.0[i]);
            columns[2 * i + 1] = columns[2 * i + 1].add_mul_high(self.0[i], self.0[i]);
        }
        Self::reduced(columns)
    }

    /// Montgomery reduction, a limb at a time. The lowest column plus the low half of `q p` is zero in its 52 bits,
    /// so it carries one exactly if it is not zero itself: that product is not needed.
    #[inline(always)]
    pub(super) fn reduced(mut columns: [L; 16]) -> Self {
        const { assert!(K >= 4 && K <= 8) };
        for_limbs!(i in K => {
            Self::clear_column(&mut columns, i);
        });
        Self::upper(&columns)
    }

    /// Two interleaved reductions: the steps of one wait for each other.
    #[inline(always)]
    pub(super) fn both_reduced(mut a: [L; 16], mut b: [L; 16]) -> [Self; 2] {
        for_limbs!(i in K => {
            Self::clear_column(&mut a, i);
            Self::clear_column(&mut b, i);
        });
        [Self::upper(&a), Self::upper(&b)]
    }

    #[inline(always)]
    fn clear_column(columns: &mut [L; 16], i: usize) {
        let quotient = L::splat(0).add_mul_low(columns[i], L::splat(Self::NEGATED_INVERSE));
        let carry = columns[i].add(L::splat(MASK)).sar::<52>();
        columns[i + 1] = columns[i + 1].add(carry);
        for j in 0..K {
            let prime = L::splat(Self::PRIME[j]);
            if j > 0 {
                columns[i + j] = columns[i + j].add_mul_low(quotient, prime);
            }
            columns[i + j + 1] = columns[i + j + 1].add_mul_high(quotient, prime);
        }
    }

    /// Columns left after a reduction.
    #[inline(always)]
    fn upper(columns: &[L; 16]) -> Self {
        let mut limbs = [L::splat(0); K];
        limbs.copy_from_slice(&columns[K..2 * K]);
        Self::carried(limbs)
    }

    /// True if some lane's low limb is that of a multiple of p below 8 p: always if an element is
    /// zero modulo p, and almost never otherwise.
    #[inline(always)]
    pub(crate) fn may_have_zero(&self) -> bool {
        let mut lanes = 0;
        for factor in 0..8 {
            lanes |= self.0[0].equals(L::splat(Self::PRIME[0].wrapping_mul(factor) & MASK));
        }
        lanes != 0
    }

    /// Mask of lanes that are zero modulo p. Exact, and slow.
    #[inline(always)]
    pub(crate) fn zeros(&self) -> u8 {
        let scalars = self.to_scalars();
        let mut zeros = 0;
        for lane in 0..LANES {
            zeros |= u8::from(scalars[lane] == Fe::ZERO) << lane;
        }
        zeros
    }

    #[inline(always)]
    pub(crate) fn select(mask: u8, yes: &Self, no: &Self) -> Self {
        let mut limbs = no.0;
        for i in 0..K {
            limbs[i] = L::select(mask, yes.0[i], no.0[i]);
        }
        Self::of(limbs)
    }

    /// Converts each lane to a reduced scalar.
    #[inline(always)]
    pub(crate) fn to_scalars(self) -> [Fe<M, N>; LANES] {
        let forms = self.times(&Self::constant(Self::TO_SCALAR));
        let mut words = [[0; LANES]; K];
        forms.store(&mut words);
        let mut scalars = [Fe::ZERO; LANES];
        for lane in 0..LANES {
            let mut parts = [0; K];
            for i in 0..K {
                parts[i] = words[i][lane];
            }
            let number: [u64; N] = join(&parts);
            let (difference, is_below) = limbs::sub(&number, &M::MODULUS);
            scalars[lane] = Fe::from_montgomery(if is_below { number } else { difference });
        }
        scalars
    }

    /// Converts a scalar per lane.
    #[inline(always)]
    pub(crate) fn from_scalars(scalars: &[Fe<M, N>; LANES]) -> Self {
        let mut words = [[0; LANES]; K];
        for lane in 0..LANES {
            let parts: [u64; K] = split(&scalars[lane].0);
            for i in 0..K {
                words[i][lane] = parts[i];
            }
        }
        Self::load(&words).times(&Self::constant(Self::FROM_SCALAR))
    }
}
