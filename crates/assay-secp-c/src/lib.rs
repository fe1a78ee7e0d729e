//! C interface of `assay-secp`: batch verification for C and any language with a C interface.
//!
//! The functions and types are those of `include/assay_secp.h`, which cbindgen generates from this source; a test compares the
//! two. Rust programs use `assay-secp` itself:
//!
//! ```
//! use assay_secp_c::{Check, Kind, Status, assay_secp_check_status};
//!
//! // A key of 31 bytes is none of BIP340's.
//! let bytes = [0; 64];
//! let data = bytes.as_ptr();
//! let check = Check {
//!     kind: Kind::Bip340 as u32,
//!     parity: 0,
//!     key: data,
//!     key_len: 31,
//!     sig: data,
//!     sig_len: 64,
//!     msg: data,
//!     msg_len: 32,
//! };
//! // SAFETY: every pointer has as many bytes behind it as its length says.
//! let status = unsafe { assay_secp_check_status(&check) };
//! assert_eq!(status, Status::BadLength);
//! ```
//!
//! Guarantees that C cannot express are checked if possible: null and misaligned pointers, lengths, counts, kinds, concurrent use
//! of a verifier. A panic never crosses the boundary; it makes the verifier unusable. Deliberately absent: signing, single checks
//! without a batch, and the sample of `assay_secp::SampledVerifier`.

mod calls;
#[cfg(test)]
mod tests;
mod types;

pub use calls::{
    Verifier, assay_secp_check_status, assay_secp_status_text, assay_secp_verifier_backend,
    assay_secp_verifier_free, assay_secp_verifier_has_failed_self_test, assay_secp_verifier_new,
    assay_secp_verify, assay_secp_verify_weighted, assay_secp_version,
};
pub use types::{Check, Kind, Status};
