//! Vector backends, and their entry points.

#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
pub(crate) mod blake2;
mod portable;
#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(target_arch = "x86_64")]
pub(crate) use avx512::Ifma;
pub(crate) use portable::Portable;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86::{ifma_is_available, prefetch};

/// Prefetches a value; a no-op here.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn prefetch<T>(_: &T) {}
