//! Verifies SLH-DSA-SHA2 signatures (FIPS 205) in batches with vector lanes, and ML-DSA-44 ([`ml_dsa`]).
//!
//! ```
//! use assay_pq::{Check, Message, ParameterSet, verify, verify_many};
//!
//! let set = &ParameterSet::SHA2_128S;
//! let (key, signature) = (vec![0; set.key_bytes()], vec![0; set.signature_bytes()]);
//! let message = Message::Pure { context: b"", message: b"a transaction" };
//! let check = Check { key: &key, message, signature: &signature };
//! assert!(!verify(set, &check));
//! assert_eq!(verify_many(set, &[check, check]), [false, false]);
//! ```
//!
//! A 128s signature needs some 2,200 SHA-256 compressions, nearly all in short, independent chains. [`verify_many`] processes
//! each stage of all signatures together, so eight or sixteen chains, trees or paths share the lanes of a vector, whatever the
//! form of a single signature (`docs/kernels/slh-dsa.md`). [`serial`] follows the standard's text hash by hash: the oracle.
//!
//! A key, signature or context of a wrong length makes a check false, never a panic. Everything is pure: no files, threads,
//! clocks or environment (except `assay_hash::cpu`, which selects the kernels). Nothing is secret, nothing is constant time.
//!
//! Deliberately absent: secure signing, the SHAKE parameter sets, and prehashing ("HashSLH-DSA"), for which a caller passes
//! [`Message::Internal`]. [`TestKey`] makes valid signatures for tests and benchmarks.
#![deny(unsafe_code)]

mod digest;
mod lanes;
pub mod ml_dsa;
mod params;
pub mod serial;
mod test_key;
mod tweak;

pub use lanes::{verify, verify_many, verify_many_with};
pub use params::ParameterSet;
pub use test_key::TestKey;

/// A signature with its key and message.
#[derive(Clone, Copy, Debug)]
pub struct Check<'a> {
    /// `PK.seed` and `PK.root`.
    pub key: &'a [u8],
    pub message: Message<'a>,
    /// The randomizer, the FORS signature and the hypertree signature.
    pub signature: &'a [u8],
}

/// A message and its encoding for the hash.
#[derive(Clone, Copy, Debug)]
pub enum Message<'a> {
    /// `slh_verify`, FIPS 205 algorithm 24; the context has at most 255 bytes.
    Pure {
        /// Context, usually empty.
        context: &'a [u8],
        message: &'a [u8],
    },
    /// `slh_verify_internal`, FIPS 205 algorithm 20: the raw bytes, without a prefix.
    Internal(&'a [u8]),
}

impl Check<'_> {
    /// True if every part has the length of the parameter set.
    pub(crate) fn is_well_formed(&self, set: &ParameterSet) -> bool {
        self.key.len() == set.key_bytes()
            && self.signature.len() == set.signature_bytes()
            && self.message.is_well_formed()
    }
}

impl Message<'_> {
    pub(crate) fn is_well_formed(&self) -> bool {
        match self {
            Self::Pure { context, .. } => context.len() <= 255,
            Self::Internal(_) => true,
        }
    }

    /// The parts whose concatenation is hashed; `prefix` is the buffer of the first. The message must be well formed.
    pub(crate) fn parts<'a>(&'a self, prefix: &'a mut [u8; 2]) -> [&'a [u8]; 3] {
        match *self {
            Self::Pure { context, message } => {
                // Zero marks messages that are not prehashed.
                *prefix = [0, context.len() as u8];
                [prefix, context, message]
            }
            Self::Internal(message) => [&[], &[], message],
        }
    }
}
