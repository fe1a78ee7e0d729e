//! Vectors of eight lanes.

#[cfg(target_arch = "x86_64")]
pub(crate) mod ifma;
pub(crate) mod portable;
