//! Lanes in portable Rust. They run anywhere, check every bound in debug builds, and are the oracle of the vector instructions:
//! eight lanes with a multiplier like AVX-512's, four with one that rounds like doubles on AVX2. Their operations stay functions:
//! unrolled eight times each, they took as long to compile as all vector instructions together.

use std::array::from_fn;

use super::Kernels;
use crate::lanes::answer;
use crate::lanes::msm;
#[cfg(test)]
use crate::lanes::small_groups;
use crate::lanes::steps::Operation;
use crate::lanes::{LANES, Lanes, Line};

const MASK_52: u64 = (1 << 52) - 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plain<const WIDTH: usize, const ROUNDS: bool>([u64; WIDTH]);

pub(crate) type Portable = Plain<8, false>;

pub(crate) type PortableRounded = Plain<4, true>;

impl<const WIDTH: usize, const ROUNDS: bool> Plain<WIDTH, ROUNDS> {
    #[inline(always)]
    fn zip(self, other: Self, of: impl Fn(u64, u64) -> u64) -> Self {
        Self(from_fn(|lane| of(self.0[lane], other.0[lane])))
    }
}

#[inline(always)]
fn product(a: u64, b: u64) -> u128 {
    u128::from(a & MASK_52) * u128::from(b & MASK_52)
}

/// The high part of a product: truncated, or rounded to the nearest multiple, with ties to even.
#[inline(always)]
fn high(product: u128, rounds: bool) -> u64 {
    let (floor, rest) = ((product >> 52) as u64, product as u64 & MASK_52);
    let is_up = rest > 1 << 51 || rest == 1 << 51 && floor & 1 == 1;
    floor + u64::from(rounds && is_up)
}

impl<const WIDTH: usize, const ROUNDS: bool> Lanes for Plain<WIDTH, ROUNDS> {
    const WIDTH: usize = WIDTH;
    const ZERO: Self = Self([0; WIDTH]);
    // The offsets of doubles, so that their removal is tested here too.
    const LOW_OFFSET: u64 = (1.5 * (1u64 << 52) as f64).to_bits();
    const HIGH_OFFSET: u64 = ((1u128 << 104) as f64).to_bits();
    const ROUNDS: bool = ROUNDS;
    const REDUCES_AT_ONCE: bool = ROUNDS;
    // Both settings are tested: one with each rounding.
    const CARRIES: bool = ROUNDS;

    #[inline(always)]
    fn splat(word: u64) -> Self {
        Self([word; WIDTH])
    }

    #[inline(never)]
    fn load(words: &[u64; LANES], first: usize) -> Self {
        Self(from_fn(|lane| words[first + lane]))
    }

    #[inline(never)]
    fn store(self, words: &mut [u64; LANES], first: usize) {
        words[first..first + WIDTH].copy_from_slice(&self.0);
    }

    #[inline(never)]
    fn add(self, other: Self) -> Self {
        self.zip(other, u64::wrapping_add)
    }

    #[inline(never)]
    fn sub(self, other: Self) -> Self {
        self.zip(other, u64::wrapping_sub)
    }

    #[inline(never)]
    fn and(self, other: Self) -> Self {
        self.zip(other, |a, b| a & b)
    }

    #[inline(never)]
    fn or(self, other: Self) -> Self {
        self.zip(other, |a, b| a | b)
    }

    #[inline(never)]
    fn shr<const BITS: u32>(self) -> Self {
        Self(self.0.map(|word| word >> BITS))
    }

    #[inline(never)]
    fn shl<const BITS: u32>(self) -> Self {
        Self(self.0.map(|word| word << BITS))
    }

    #[inline(always)]
    fn factor(self) -> Self {
        self
    }

    #[inline(always)]
    fn value(self) -> Self {
        self
    }

    #[inline(always)]
    fn twice_factor(self) -> Self {
        self.add(self)
    }

    #[inline(never)]
    fn add_mul_low(self, a: Self, b: Self) -> Self {
        let low = a.zip(b, |a, b| {
            let product = product(a, b);
            (product as u64).wrapping_sub(high(product, ROUNDS) << 52)
        });
        self.add(low).add(Self::splat(Self::LOW_OFFSET))
    }

    #[inline(never)]
    fn add_mul_high(self, a: Self, b: Self) -> Self {
        let high = a.zip(b, |a, b| high(product(a, b), ROUNDS));
        self.add(high).add(Self::splat(Self::HIGH_OFFSET))
    }

    #[inline(never)]
    fn add_small_product(self, a: Self, b: Self) -> Self {
        let small = a.zip(b, |a, b| {
            debug_assert!(product(a, b) >> 51 == 0, "{a:x} * {b:x}");
            product(a, b) as u64
        });
        self.add(small).add(Self::splat(Self::LOW_OFFSET))
    }

    #[inline(never)]
    fn select(mask: u8, yes: Self, no: Self) -> Self {
        Self(from_fn(|lane| if mask >> lane & 1 == 1 { yes.0[lane] } else { no.0[lane] }))
    }

    #[inline(never)]
    fn zeros(self) -> u8 {
        (0..WIDTH).fold(0, |mask, lane| mask | u8::from(self.0[lane] == 0) << lane)
    }

    #[inline(always)]
    fn load_columns<'l, const FIRST: usize>(line: &impl Fn(usize) -> &'l Line) -> [Self; 4] {
        from_fn(|word| Self(from_fn(|lane| line(lane).0[FIRST + word])))
    }

    #[inline(never)]
    fn transpose(columns: [Self; 8]) -> [Self; 8] {
        let word = |lane: usize, word: usize| columns[word].0[lane];
        from_fn(|vector| {
            Self(from_fn(|k| {
                let place = vector * WIDTH + k;
                word(place / LANES, place % LANES)
            }))
        })
    }

    #[inline(never)]
    fn run<O: Operation>(operation: O, result: &mut O::Result) {
        *result = operation.result();
    }

    #[inline(never)]
    fn expect_below(self, bits: u32) {
        debug_assert!(self.0.iter().all(|word| word >> bits == 0), "{self:x?} against 2^{bits}");
    }
}

macro_rules! kernels {
    ($lanes:ty) => {
        Kernels {
            answer: answer::answer::<$lanes>,
            weighted_sum: msm::sum::<$lanes>,
            #[cfg(test)]
            formulas: small_groups::Formulas {
                double: small_groups::double::<$lanes>,
                add: small_groups::add::<$lanes>,
                add_jacobian: small_groups::add_jacobian::<$lanes>,
                products: small_groups::products::<$lanes>,
                ladders: small_groups::ladders::<$lanes>,
            },
        }
    };
}

pub(super) const EIGHT: Kernels = kernels!(Portable);

pub(super) const FOUR: Kernels = kernels!(PortableRounded);
