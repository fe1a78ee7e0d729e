//! Field elements in eight lanes, generic over a vector of 64-bit lanes with a 52-bit multiplier.
//! `docs/kernels/pairing-ifma.md` has the bounds of every limb.

/// Defines a function over `LaneFe<L, M, N, K>` whose code runs with the target features of the lanes, apart from its caller's
/// ([`Lanes::run`]). Operands are of the lifetime `'t`.
macro_rules! task {
    (
        $(#[$documentation:meta])*
        $visibility:vis fn $name:ident<M: $bound:ident>($($operand:ident: $type:ty),+ $(,)?) -> $result:ty $code:block
    ) => {
        $(#[$documentation])*
        #[inline(always)]
        $visibility fn $name<'t, L: $crate::lanes::Lanes, M: $bound<N>, const N: usize, const K: usize>(
            $($operand: $type),+
        ) -> $result {
            struct Operands<'t, L, M, const N: usize, const K: usize>(
                $($type,)+
                core::marker::PhantomData<(&'t (), L, M)>,
            );

            impl<'t, L: $crate::lanes::Lanes, M: $bound<N>, const N: usize, const K: usize>
                $crate::lanes::Task for Operands<'t, L, M, N, K>
            {
                type Result = $result;

                #[inline(always)]
                fn run(self) -> $result {
                    let Self($($operand,)+ _) = self;
                    $code
                }
            }

            L::run(Operands($($operand,)+ core::marker::PhantomData))
        }
    };
}

pub(crate) mod field;
pub(crate) mod fp12;
pub(crate) mod groups;
pub(crate) mod layout;
pub(crate) mod points;
mod ring;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use task;

/// Number of lanes of a vector.
pub(crate) const LANES: usize = 8;

/// A word of each lane, in memory.
pub(crate) type Words = [u64; LANES];

/// Eight unsigned 64-bit lanes. The lowest bit of a mask is that of lane 0.
pub(crate) trait Lanes: Copy {
    fn splat(word: u64) -> Self;
    fn load(words: &Words) -> Self;
    fn store(self, words: &mut Words);
    fn add(self, other: Self) -> Self;
    /// The sum in the lanes of the mask, `self` in the others.
    fn add_where(self, mask: u8, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn shr<const BITS: u32>(self) -> Self;
    fn sar<const BITS: u32>(self) -> Self;
    fn shl<const BITS: u32>(self) -> Self;
    /// `self` plus the low 52 bits of the product of the low 52 bits of both factors.
    fn add_mul_low(self, a: Self, b: Self) -> Self;
    /// `self` plus the high 52 bits of the product of the low 52 bits of both factors.
    fn add_mul_high(self, a: Self, b: Self) -> Self;
    /// `yes` in the lanes of the mask, `no` in the others.
    fn select(mask: u8, yes: Self, no: Self) -> Self;
    /// Lane k of the result is lane `places[k]` of `self`, or from 8 on lane `places[k] - 8` of `other`.
    fn pick(self, other: Self, places: &Words) -> Self;
    /// Mask of equal lanes.
    fn equals(self, other: Self) -> u8;
    /// Mask of lanes that are less, as signed numbers.
    fn less_signed(self, other: Self) -> u8;
    /// Transposing load: vector k of the result has word k of eight lines, one per lane.
    fn load_transposed<'l>(line: &impl Fn(usize) -> &'l Words) -> [Self; 8];
    /// Transposing store: line k of the result has lane k of all vectors.
    fn store_transposed(vectors: [Self; 8], lines: &mut [Words; LANES]);
    fn prefetch(line: &Words);
    /// In debug builds of the portable lanes, checks that every lane is below 2^bits.
    fn expect_below(self, bits: u32);

    /// Runs code on vectors in a function with the target features.
    ///
    /// # Panics
    /// If the CPU lacks them.
    fn run<T: Task>(task: T) -> T::Result;
}

/// Argument of [`Lanes::run`]; [`Task::run`] must be inlined.
pub(crate) trait Task {
    type Result;
    fn run(self) -> Self::Result;
}
