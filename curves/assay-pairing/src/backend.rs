//! Vectors of lanes, and the entries of what is computed on each: eight lanes in plain Rust, the oracle of the others.

#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
pub(crate) mod blake2;
#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(not(target_arch = "x86_64"))]
pub(crate) use self::Portable as Ifma;
#[cfg(target_arch = "x86_64")]
pub(crate) use avx512::Ifma;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86::{ifma_is_available, prefetch};

use core::array::from_fn;

use crate::lanes::{LANES, Lanes, Task, Words};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// One addition after the other, in 64-bit words.
    Scalar,
    /// Eight lanes in plain Rust: the oracle of the vector code, and slow.
    Portable,
    /// Eight lanes of AVX-512 IFMA.
    Ifma,
}

impl Backend {
    pub const ALL: [Self; 3] = [Self::Scalar, Self::Portable, Self::Ifma];

    pub fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Portable => "portable",
            Self::Ifma => "ifma",
        }
    }

    /// True if this CPU supports the backend.
    pub fn is_available(self) -> bool {
        match self {
            Self::Scalar | Self::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Self::Ifma => ifma_is_available(),
            #[cfg(not(target_arch = "x86_64"))]
            Self::Ifma => false,
        }
    }

    /// The fastest backend that this CPU supports.
    pub fn detect() -> Self {
        if Self::Ifma.is_available() { Self::Ifma } else { Self::Scalar }
    }
}

/// Runs code on a [`Backend`]: in words, or in lanes of the vectors `$vector`.
macro_rules! on_backend {
    ($backend:expr; $in_words:expr, $vector:ident => $in_lanes:expr) => {
        match $backend {
            $crate::backend::Backend::Scalar => $in_words,
            $crate::backend::Backend::Portable => {
                type $vector = $crate::backend::Portable;
                $in_lanes
            }
            $crate::backend::Backend::Ifma => {
                type $vector = $crate::backend::Ifma;
                $in_lanes
            }
        }
    };
}
pub(crate) use on_backend;

/// Prefetches nothing on this architecture.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn prefetch<T>(_: &T) {}

const MASK: u64 = (1 << 52) - 1;

/// Eight lanes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Portable(Words);

impl Portable {
    fn zip(self, other: Self, of: impl Fn(u64, u64) -> u64) -> Self {
        Self(from_fn(|lane| of(self.0[lane], other.0[lane])))
    }

    fn mask(self, other: Self, of: impl Fn(u64, u64) -> bool) -> u8 {
        (0..LANES).fold(0, |mask, lane| mask | u8::from(of(self.0[lane], other.0[lane])) << lane)
    }
}

fn product(a: u64, b: u64) -> u128 {
    u128::from(a & MASK) * u128::from(b & MASK)
}

impl Lanes for Portable {
    fn splat(word: u64) -> Self {
        Self([word; LANES])
    }

    fn load(words: &Words) -> Self {
        Self(*words)
    }

    fn store(self, words: &mut Words) {
        *words = self.0;
    }

    #[inline(never)]
    fn add(self, other: Self) -> Self {
        self.zip(other, u64::wrapping_add)
    }

    #[inline(never)]
    fn add_where(self, mask: u8, other: Self) -> Self {
        Self::select(mask, self.add(other), self)
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
    fn sar<const BITS: u32>(self) -> Self {
        Self(self.0.map(|word| (word as i64 >> BITS) as u64))
    }

    #[inline(never)]
    fn shl<const BITS: u32>(self) -> Self {
        Self(self.0.map(|word| word << BITS))
    }

    #[inline(never)]
    fn add_mul_low(self, a: Self, b: Self) -> Self {
        self.add(a.zip(b, |a, b| product(a, b) as u64 & MASK))
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
    fn pick(self, other: Self, places: &Words) -> Self {
        Self(places.map(|place| {
            let from = if place < 8 { self } else { other };
            from.0[place as usize % 8]
        }))
    }

    #[inline(never)]
    fn equals(self, other: Self) -> u8 {
        self.mask(other, |a, b| a == b)
    }

    #[inline(never)]
    fn less_signed(self, other: Self) -> u8 {
        self.mask(other, |a, b| (a as i64) < b as i64)
    }

    #[inline(never)]
    fn load_transposed<'l>(line: &impl Fn(usize) -> &'l Words) -> [Self; 8] {
        from_fn(|word| Self(from_fn(|lane| line(lane)[word])))
    }

    #[inline(never)]
    fn store_transposed(vectors: [Self; 8], lines: &mut [Words; LANES]) {
        *lines = from_fn(|lane| from_fn(|word| vectors[word].0[lane]));
    }

    fn prefetch(_: &Words) {}

    fn expect_below(self, bits: u32) {
        debug_assert!(self.0.iter().all(|word| word >> bits == 0), "{self:x?} against 2^{bits}");
    }

    #[inline(never)]
    fn run<T: Task>(task: T) -> T::Result {
        task.run()
    }
}
