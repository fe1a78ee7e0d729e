//! Compares Bitcoin Core's own validation, `libbitcoinkernel`, with Assay's engine.
//!
//! Both validate the same bytes and their verdicts are compared: of blocks ([`compare`]), of bit
//! flips in real blocks ([`flips`]), of random scripts ([`scripts`]). [`validate`] runs the kernel
//! alone over a folder of block files, to compare speeds.
//!
//! This workspace is separate from Assay because it needs a C++ compiler.

pub mod bench;
pub mod blockfile;
pub mod build;
pub mod classes;
pub mod coins;
pub mod compare;
pub mod flips;
pub mod fuzzing;
pub mod judge;
pub mod kernel;
pub mod scripts;
pub mod signet;
pub mod validate;
pub mod verdict;
pub mod world;
