//! Vectors of lanes, and the entries of what is computed on each.

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

/// Asks for what is read soon; here nobody does.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn prefetch<T>(_: &T) {}
