//! Verifies SLH-DSA-SHA2 signatures (FIPS 205), many at a time in vector lanes, ML-DSA-44 ([`ml_dsa`]),
//! and the part without state of SHRINCS ([`shrincs`]).
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
//! A signature of 128s is some 2,200 compressions of SHA-256, nearly all in short chains that do not
//! wait for each other. [`verify_many`] takes each stage of all signatures together, so sixteen or
//! eight chains, trees or paths share the lanes of a vector whatever a single signature looks like
//! (`docs/kernels/slh-dsa.md`). [`serial`] is the standard's text, one hash after the other: the
//! oracle.
//!
//! A key, signature or context of a wrong length makes a check false, never a panic. Everything is
//! pure: no files, threads, clocks or environment (but for `assay_hash::cpu`, which says what kernels
//! may use). Nothing is secret, nothing is constant time.
//!
//! Deliberately absent: signing with keys that protect something, the SHAKE parameter sets, and
//! hashing a message beforehand ("HashSLH-DSA"), which a caller does and passes as
//! [`Message::Internal`]. [`TestKey`] makes valid signatures for tests and measurements.
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
