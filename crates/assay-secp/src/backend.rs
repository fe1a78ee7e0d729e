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

/// Arithmetic of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Backend {
    /// libsecp256k1, one check after the other.
    Libsecp,
    /// Eight lanes of AVX-512 with its 52-bit multiplier.
    Ifma,
    /// Four lanes of AVX-512 with its 52-bit multiplier.
    Ifma256,
    /// Four lanes with the 52-bit multiplier of AVX-IFMA.
    AvxIfma,
    /// Eight lanes of AVX-512 that multiply doubles.
    Avx512,
    /// Four lanes of AVX2 that multiply doubles.
    Avx2,
    /// Eight lanes in portable Rust: much slower than libsecp256k1, and the oracle of the other backends that truncate products.
    /// Available on x86-64 with the feature `portable` only.
    Portable,
    /// Four lanes in portable Rust: the oracle of [`Backend::Avx2`], which rounds products. Available like [`Backend::Portable`].
    PortableRounded,
}

impl Backend {
    pub(crate) const ALL: [(Self, &'static str); 8] = [
        (Self::Libsecp, "libsecp256k1"),
        (Self::Ifma, "ifma"),
        (Self::Ifma256, "ifma-256"),
        (Self::AvxIfma, "avx-ifma"),
        (Self::Avx512, "avx512"),
        (Self::Avx2, "avx2"),
        (Self::Portable, "portable"),
        (Self::PortableRounded, "portable-rounded"),
    ];

    /// Every backend, whatever the CPU.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().map(|(backend, _)| backend)
    }

    /// The presumably fastest backend of this CPU. [`Backend::measure`] measures it.
    pub fn detect() -> Self {
        let order = [Self::Ifma, Self::AvxIfma, Self::Avx512, Self::Avx2];
        order.into_iter().find(|backend| backend.available()).unwrap_or(Self::Libsecp)
    }

    /// True if this CPU can run it.
    pub fn available(self) -> bool {
        self == Self::Libsecp || self.kernels().is_some()
    }

    /// The name for [`Backend::by_name`].
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// The backend of this name, or `None`.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::all().find(|backend| backend.name() == name)
    }

    /// Its arithmetic; `None` without lanes or CPU support.
    pub(crate) fn kernels(self) -> Option<Kernels> {
        match self {
            Self::Libsecp => None,
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
