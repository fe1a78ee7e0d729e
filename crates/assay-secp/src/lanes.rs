//! The batch arithmetic, generic over a vector of 64-bit lanes.
//!
//! `docs/kernels/secp-lanes.md` has the mathematics, the bounds of every limb, and the proof that no lane is accepted wrongly.

pub(crate) mod answer;
pub(crate) mod curve;
pub(crate) mod field;
pub(crate) mod group;
pub(crate) mod msm;
#[cfg(test)]
pub(crate) mod small_groups;
pub(crate) mod steps;
#[cfg(test)]
mod tests;

use steps::Operation;

/// Lanes of a group in memory. Vectors have all of them, or half.
pub(crate) const LANES: usize = 8;

/// Eight words, of one lane in memory or one per vector in registers: an affine point, x then y, each as four words, least
/// significant first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
pub(crate) struct Line(pub(crate) [u64; 8]);

/// A vector of unsigned 64-bit lanes, and a multiplier of 52 bits. In a mask, lane 0 is the lowest bit.
///
/// Factors of the multiplier have a separate form, made by [`Lanes::factor`]: on AVX-512 IFMA the integer itself, elsewhere a
/// double of that value. Products may add a constant to a lane: [`Lanes::LOW_OFFSET`] and [`Lanes::HIGH_OFFSET`].
pub(crate) trait Lanes: Copy {
    /// Lanes per vector, 4 or 8.
    const WIDTH: usize;
    /// The mask of all lanes.
    const ALL: u8 = u8::MAX >> (LANES - Self::WIDTH);
    /// Constant that each [`Lanes::add_mul_low`] and [`Lanes::add_small_product`] adds to a lane.
    const LOW_OFFSET: u64;
    /// Constant that each [`Lanes::add_mul_high`] adds to a lane.
    const HIGH_OFFSET: u64;
    /// True if the high part of a product is rounded to the nearest multiple of 2^52, so that its low part is between -2^51 and
    /// 2^51; false if it is truncated.
    const ROUNDS: bool;
    /// True if the bits above 52 of a column are carried to the next one when columns are folded, since a product costs more than
    /// a carry.
    const CARRIES: bool;

    /// True if a product is reduced in the same function, since storing columns in memory costs more than grouped reductions
    /// save.
    const REDUCES_AT_ONCE: bool;
    /// Zero in every lane.
    const ZERO: Self;

    fn splat(word: u64) -> Self;
    /// The words of [`Lanes::WIDTH`] lanes from `first` on.
    fn load(words: &[u64; LANES], first: usize) -> Self;
    /// The inverse of [`Lanes::load`].
    fn store(self, words: &mut [u64; LANES], first: usize);
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    /// Bitwise and.
    fn and(self, other: Self) -> Self;
    /// Bitwise or.
    fn or(self, other: Self) -> Self;
    fn shr<const BITS: u32>(self) -> Self;
    fn shl<const BITS: u32>(self) -> Self;
    /// The low 52 bits of each lane as a factor.
    fn factor(self) -> Self;
    /// The value of a factor; bits above 52 are unspecified.
    fn value(self) -> Self;
    /// Twice a factor that is below 2^51.
    fn twice_factor(self) -> Self;
    /// `self` plus the low part of the product of two factors: `a b - 2^52 h` with the high part h.
    fn add_mul_low(self, a: Self, b: Self) -> Self;
    /// `self` plus the high part of the product of two factors: `a b / 2^52`, an integer.
    fn add_mul_high(self, a: Self, b: Self) -> Self;
    /// `self` plus the product of two factors, which is below 2^51.
    fn add_small_product(self, a: Self, b: Self) -> Self;
    /// `yes` in the lanes of the mask, `no` in the others.
    fn select(mask: u8, yes: Self, no: Self) -> Self;
    fn zeros(self) -> u8;
    /// Vector k of the result holds word `FIRST + k` of the line of each lane; `FIRST` is 0 or 4.
    fn load_columns<'l, const FIRST: usize>(line: &impl Fn(usize) -> &'l Line) -> [Self; 4];
    /// The inverse for whole lines: vector k of the operand has word k of the line of each lane. The lines of all lanes are
    /// consecutive in the result.
    fn transpose(columns: [Self; 8]) -> [Self; 8];
    /// Checks in debug builds of the portable lanes that every lane is below 2^bits.
    fn expect_below(self, bits: u32);

    /// Sets the result of an operation. If products are long, this is a separate function: kernels with every product inlined
    /// would exceed the instruction caches and take minutes to compile.
    fn run<O: Operation>(operation: O, result: &mut O::Result);

    /// Stores the line of a lane from the result of [`Lanes::transpose`].
    #[inline(always)]
    fn store_line(lines: &[Self; 8], lane: usize, line: &mut Line) {
        let parts = LANES / Self::WIDTH;
        for part in 0..parts {
            lines[parts * lane + part].store(&mut line.0, part * Self::WIDTH);
        }
    }
}

/// The first lane of each vector of a group.
#[inline(always)]
pub(crate) fn firsts<L: Lanes>() -> impl Iterator<Item = usize> {
    (0..LANES).step_by(L::WIDTH)
}
