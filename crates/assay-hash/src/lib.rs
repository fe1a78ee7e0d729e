//! Hash functions of the Bitcoin family, one message and many at a time.
//!
//! SHA-256 and its double, RIPEMD-160, SHA-1, BIP-340 tagged hashes, merkle roots, SipHash and
//! `MuHash3072`. Every function is pure: bytes in, bytes out, no allocation except in
//! [`merkle_root`] and the functions over many messages.
//!
//! ```
//! use assay_hash::{MuHash3072, Sha256, merkle_root, sha256d};
//!
//! // A txid is the double hash of the serialised transaction, in pieces or in one go.
//! let mut hasher = Sha256::new();
//! hasher.update(b"first half, ");
//! hasher.update(b"second half");
//! let txid = hasher.finalize_double();
//! assert_eq!(txid, sha256d(b"first half, second half"));
//!
//! let (root, mutated) = merkle_root(vec![txid, sha256d(b"another")]);
//! assert_eq!(root, sha256d(&[txid, sha256d(b"another")].concat()));
//! assert!(!mutated);
//!
//! // A set hash does not depend on order.
//! let (mut left, mut right) = (MuHash3072::new(), MuHash3072::new());
//! left.insert(b"coin");
//! right.remove(b"spent");
//! right.insert(b"coin");
//! right.insert(b"spent");
//! assert_eq!(left.finalize(), right.finalize());
//! ```
//!
//! The kernels behind the functions are chosen once per process; [`backend`] names the choice,
//! [`Backend::select`] changes it, and the `*_with` variants take one for a single call, which is
//! how tests compare them. The portable kernels are the oracle of the others.
//!
//! Deliberately absent: secrets and constant time (all inputs here are public), HMAC and other
//! hashes that no consensus rule needs, the environment but for [`cpu`] (a caller who wants to force
//! a backend passes or selects a [`Backend`]), threads (callers split the work and [`MuHash3072::combine`]
//! it), and kernels for CPUs other than x86-64 and aarch64.

mod backend;
pub mod cpu;
mod many;
mod merkle;
mod muhash;
mod num3072;
mod ripemd160;
mod sha1;
mod sha256;
mod siphash;
mod tagged;

pub use backend::Backend;
pub use many::{
    hash160_many, hash160_many_with, ripemd160_32_many, ripemd160_32_many_with, sha256d_many,
    sha256d_many_with,
};
pub use merkle::{merkle_root, merkle_root_with};
pub use muhash::MuHash3072;
pub use ripemd160::{hash160, ripemd160};
pub use sha1::sha1;
pub use sha256::{Sha256, sha256, sha256d, sha256d_64_many, sha256d_64_many_with};
pub use siphash::{SipHash, SipHash13, SipHash24, hash_outpoint};
pub use tagged::{TaggedHasher, tagged_hash};

/// The name of the backend in use on this machine, e.g. `"sha-ni"`.
pub fn backend() -> &'static str {
    Backend::detect().name()
}
