//! Vectors of lanes, and the entry points of their arithmetic.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod multiplier;
#[cfg(target_arch = "x86_64")]
pub(crate) mod mulx;
#[cfg(any(test, feature = "portable", not(target_arch = "x86_64")))]
mod portable;
#[cfg(target_arch = "x86_64")]
mod x86;

use crate::lanes::Line;
use crate::lanes::group::{Group, Question};
use crate::lanes::msm::Work;
#[cfg(test)]
use crate::lanes::small_groups::Formulas;

#[cfg(test)]
pub(crate) use portable::{Portable, PortableRounded};

/// The arithmetic compiled for one type of vector.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kernels {
    /// Processes groups: sets `proven`.
    pub(crate) answer: fn(Question, &mut [Group], &[Line]),
    /// Sums up a batch. `false` if the sum is inconclusive.
    pub(crate) weighted_sum: fn(&mut Work, &[Line]) -> bool,
    /// The formulas, for separate tests.
    #[cfg(test)]
    pub(crate) formulas: Formulas,
}

/// Vector types with arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Vectors {
    /// Eight lanes in portable Rust.
    Portable,
    /// Four lanes in portable Rust, with a multiplier that rounds.
    PortableRounded,
    /// Eight lanes of AVX-512 with IFMA.
    Ifma,
    /// Four lanes of AVX-512 with IFMA.
    Ifma256,
    /// Four lanes of AVX-IFMA.
    AvxIfma,
    /// Eight lanes of AVX-512, products of doubles.
    Avx512,
    /// Four lanes of AVX2, products of doubles.
    Avx2,
}

impl Vectors {
    /// The arithmetic, if this CPU can run it.
    pub(crate) fn kernels(self) -> Option<Kernels> {
        match self {
            #[cfg(any(test, feature = "portable", not(target_arch = "x86_64")))]
            Self::Portable => Some(portable::EIGHT),
            #[cfg(any(test, feature = "portable", not(target_arch = "x86_64")))]
            Self::PortableRounded => Some(portable::FOUR),
            #[cfg(target_arch = "x86_64")]
            _ => x86::kernels(self),
            #[cfg(not(target_arch = "x86_64"))]
            _ => None,
        }
    }
}
