//! Verifies SLH-DSA-SHA2 signatures (FIPS 205) in batches with vector lanes, ML-DSA-44 ([`ml_dsa`]), and stateless SHRINCS
//! ([`shrincs`]).
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

mod address;
mod check;
mod digest;
mod lanes;
pub mod ml_dsa;
mod params;
pub mod serial;
pub mod shrincs;
mod test_key;
mod tweak;

pub use check::{Check, Message};
pub use lanes::{verify, verify_many, verify_many_with};
pub use params::ParameterSet;
pub use test_key::TestKey;
