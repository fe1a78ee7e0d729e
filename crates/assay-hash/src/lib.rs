//! Hash functions of the Bitcoin family, for single messages and batches.
//!
//! Every function is pure: bytes in, bytes out. The README follows; its examples are compiled and run as tests.
//!
//! The kernels are selected once per process; [`backend`] returns the selection, [`Backend::select`] changes it, and the `*_with`
//! functions use a given backend. The portable kernels are the oracle of the others.
//!
//! Deliberately absent: secrets and constant time (all inputs are public), HMAC and other hashes that neither consensus rules nor
//! peer addresses need, the environment except for [`cpu`] (to force a backend, pass or select a [`Backend`]), threads (callers
//! split the work and [`MuHash3072::combine`] it), and kernels for CPUs other than x86-64 and aarch64.
//!
#![warn(missing_docs)]
#![doc = include_str!("../README.md")]

mod backend;
mod chains;
pub mod cpu;
#[doc(hidden)]
pub mod division_steps;
mod keyed_sum;
mod many;
mod merkle;
mod muhash;
mod murmur3;
mod num3072;
mod ripemd160;
mod sha1;
mod sha256;
mod sha3;
mod sha512;
mod siphash;
mod tagged;

pub use backend::{Backend, Chain, TreePath};
pub use chains::{climb_paths_with, run_chains_with, sha256_compress_many_with};
pub use keyed_sum::{KeyedHash, Sum256};
pub use many::{hash160_many_with, ripemd160_32_many_with, sha256_many_with, sha256d_many_with};
pub use merkle::{merkle_root, merkle_root_with};
pub use muhash::MuHash3072;
pub use murmur3::murmur3;
pub use ripemd160::{hash160, ripemd160};
pub use sha1::sha1;
pub use sha3::{keccak_256, sha3_256};
pub use sha256::{Sha256, sha256, sha256d, sha256d_64_many_with};
pub use sha512::{Sha512, sha512};
pub use siphash::{SipHash, SipHash13, SipHash24, hash_outpoint};
pub use tagged::{TaggedHasher, tagged_hash};

/// The name of the backend in use on this machine, e.g. `"sha-ni"`.
pub fn backend() -> &'static str {
    Backend::detect().name()
}
