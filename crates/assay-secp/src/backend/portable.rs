//! Eight lanes in plain Rust. Runs anywhere, checks every bound in debug builds, and is the oracle
//! of the vector instructions.

use std::array::from_fn;

use crate::lanes::group::{self, Group, Question};
use crate::lanes::msm::{self, Work};
use crate::lanes::{LANES, Lanes, Line};

const MASK_52: u64 = (1 << 52) - 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Portable([u64; LANES]);

impl Portable {
    #[inline(never)]
    fn zip(self, other: Self, of: impl Fn(u64, u64) -> u64) -> Self {
        Self(from_fn(|lane| of(self.0[lane], other.0[lane])))
    }
}

#[inline(always)]
fn product(a: u64, b: u64) -> u128 {
    u128::from(a & MASK_52) * u128::from(b & MASK_52)
}

impl Lanes for Portable {
    #[inline(never)]
    fn splat(word: u64) -> Self {
        Self([word; LANES])
    }

    #[inline(always)]
    fn load(words: &[u64; 8]) -> Self {
        Self(*words)
    }

    #[inline(always)]
    fn store(self, words: &mut [u64; 8]) {
        *words = self.0;
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

    #[inline(never)]
    fn add_mul_low(self, a: Self, b: Self) -> Self {
        self.add(a.zip(b, |a, b| product(a, b) as u64 & MASK_52))
    }

    #[inline(never)]
    fn add_mul_high(self, a: Self, b: Self) -> Self {
        self.add(a.zip(b, |a, b| (product(a, b) >> 52) as u64))
    }

    #[inline(never)]
    fn select(mask: u8, yes: Self, no: Self) -> Self {
        Self(from_fn(|lane| if mask >> lane & 1 == 1 { yes.0[lane] } else { no.0[lane] }))
    }

    #[inline(never)]
    fn zeros(self) -> u8 {
        (0..LANES).fold(0, |mask, lane| mask | u8::from(self.0[lane] == 0) << lane)
    }

    #[inline(never)]
    fn load_columns<const FIRST: usize>(lines: [&Line; 8]) -> [Self; 4] {
        from_fn(|word| Self(lines.map(|line| line.0[FIRST + word])))
    }

    #[inline(never)]
    fn transpose(rows: [Self; 8]) -> [Self; 8] {
        from_fn(|column| Self(from_fn(|row| rows[row].0[column])))
    }

    #[inline(never)]
    fn expect_below(self, bits: u32) {
        debug_assert!(self.0.iter().all(|word| word >> bits == 0), "{self:x?} against 2^{bits}");
    }
}

/// Answers all groups.
pub(crate) fn answer(question: Question, groups: &mut [Group], table: &[Line]) {
    group::answer::<Portable>(question, groups, table);
}

/// Sums up a batch.
pub(crate) fn weighted_sum(work: &mut Work, table: &[Line]) -> bool {
    msm::sum::<Portable>(work, table)
}
