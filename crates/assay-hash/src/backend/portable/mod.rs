//! Portable Rust kernels: the oracles of the other backends.

pub(crate) mod chacha20;
pub(crate) mod mul3072;
pub(crate) mod sha1;
pub(crate) mod sha256;
