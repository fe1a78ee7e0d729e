//! The arithmetic of eight checks at once, written once over a vector of eight 64-bit lanes.
//!
//! `docs/kernels/secp-ifma.md` has the mathematics, the bounds of every limb, and why a lane cannot
//! be accepted wrongly.

pub(crate) mod curve;
pub(crate) mod field;
pub(crate) mod group;
pub(crate) mod msm;
#[cfg(test)]
pub(crate) mod small_groups;
#[cfg(test)]
mod tests;

/// Lanes of a vector.
pub(crate) const LANES: usize = 8;

/// Eight words that belong to one lane in memory and to eight vectors in registers: an affine point,
/// x then y, each as four words, least significant first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
pub(crate) struct Line(pub(crate) [u64; 8]);

/// A vector of eight unsigned 64-bit lanes. A mask has the bit of lane 0 lowest.
pub(crate) trait Lanes: Copy {
    /// The same word in every lane.
    fn splat(word: u64) -> Self;
    /// The words in order of lanes.
    fn load(words: &[u64; 8]) -> Self;
    /// The reverse of [`Lanes::load`].
    fn store(self, words: &mut [u64; 8]);
    /// Sum modulo 2^64.
    fn add(self, other: Self) -> Self;
    /// Difference modulo 2^64.
    fn sub(self, other: Self) -> Self;
    /// Bitwise and.
    fn and(self, other: Self) -> Self;
    /// Bitwise or.
    fn or(self, other: Self) -> Self;
    /// Logical shift to the right.
    fn shr<const BITS: u32>(self) -> Self;
    /// Shift to the left.
    fn shl<const BITS: u32>(self) -> Self;
    /// `self` plus the low 52 bits of the product of the low 52 bits of the factors.
    fn add_mul_low(self, a: Self, b: Self) -> Self;
    /// `self` plus the high 52 bits of the product of the low 52 bits of the factors.
    fn add_mul_high(self, a: Self, b: Self) -> Self;
    /// `yes` in the lanes of the mask, `no` in the others.
    fn select(mask: u8, yes: Self, no: Self) -> Self;
    /// The lanes that are zero.
    fn zeros(self) -> u8;
    /// Vector k of the result holds word `FIRST + k` of each of the eight lines; `FIRST` is 0 or 4.
    fn load_columns<const FIRST: usize>(lines: [&Line; 8]) -> [Self; 4];
    /// Vector k of the result holds word k of each of the eight lines.
    fn transpose(rows: [Self; 8]) -> [Self; 8];
    /// Checks in debug builds of the portable lanes that every lane is below 2^bits.
    fn expect_below(self, bits: u32);
}
