//! Field elements eight at a time, written once over a vector of 64-bit lanes with a multiplier of 52
//! bits. `docs/kernels/pairing-ifma.md` has the bounds of every limb.

pub(crate) mod field;
pub(crate) mod fp12;
pub(crate) mod groups;
pub(crate) mod layout;
pub(crate) mod points;
mod ring;
#[cfg(test)]
pub(crate) mod tests;

/// Lanes of a vector.
pub(crate) const LANES: usize = 8;

/// A word of each lane in memory.
pub(crate) type Words = [u64; LANES];

/// Eight unsigned 64-bit lanes. A mask has the bit of lane 0 lowest.
pub(crate) trait Lanes: Copy {
    /// The same word in every lane.
    fn splat(word: u64) -> Self;
    fn load(words: &Words) -> Self;
    fn store(self, words: &mut Words);
    /// Sum modulo 2^64.
    fn add(self, other: Self) -> Self;
    /// The sum in the lanes of the mask, `self` in the others.
    fn add_where(self, mask: u8, other: Self) -> Self;
    /// Difference modulo 2^64.
    fn sub(self, other: Self) -> Self;
    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    /// Logical shift to the right.
    fn shr<const BITS: u32>(self) -> Self;
    /// Arithmetic shift to the right.
    fn sar<const BITS: u32>(self) -> Self;
    /// Shift to the left.
    fn shl<const BITS: u32>(self) -> Self;
    /// `self` plus the low 52 bits of the product of the low 52 bits of both factors.
    fn add_mul_low(self, a: Self, b: Self) -> Self;
    /// `self` plus the high 52 bits of the product of the low 52 bits of both factors.
    fn add_mul_high(self, a: Self, b: Self) -> Self;
    /// `yes` in the lanes of the mask, `no` in the others.
    fn select(mask: u8, yes: Self, no: Self) -> Self;
    /// Lane k is that of `self` with the number `places[k]`, or for 8 and above that of `other` with 8 less.
    fn pick(self, other: Self, places: &Words) -> Self;
    /// The lanes that are equal.
    fn equals(self, other: Self) -> u8;
    /// The lanes that are less, as signed numbers.
    fn less_signed(self, other: Self) -> u8;
    /// Vector k of the result holds word k of eight lines, one for each lane.
    fn load_transposed<'l>(line: &impl Fn(usize) -> &'l Words) -> [Self; 8];
    /// The reverse: line k of the result holds lane k of all vectors.
    fn store_transposed(vectors: [Self; 8], lines: &mut [Words; LANES]);
    /// Asks for a line that is read soon.
    fn prefetch(line: &Words);
    /// Checks in debug builds of the portable lanes that every lane is below 2^bits.
    fn expect_below(self, bits: u32);

    /// Runs what handles vectors in a function with the target features.
    ///
    /// # Panics
    /// Where the CPU lacks them.
    fn run<T: Task>(task: T) -> T::Result;
}

/// What [`Lanes::run`] runs; [`Task::run`] must be inlined.
pub(crate) trait Task {
    type Result;
    fn run(self) -> Self::Result;
}
