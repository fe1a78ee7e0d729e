//! Settings of signature verification. They are process-wide, because they concern the machine and not a chain. The last opened
//! engine, or the last started validation, decides.
//!
//! `ASSAY_BACKEND` and `ASSAY_SCHNORR` are read once, only here.

use std::path::PathBuf;
use std::sync::{LazyLock, Mutex, PoisonError};

use assay_secp::Backend;

/// Default: libsecp256k1 verifies one of N proven checks again.
pub const SAMPLE_SIGNATURES_DEFAULT: u32 = 256;

/// Verification of BIP340 signatures in a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schnorr {
    /// Individually and exactly.
    Each,
    /// As a sum with random weights, if there are enough: a wrong "true" has a probability below 2^-127.
    Weighted,
}

impl Schnorr {
    fn by_name(name: &str) -> Option<Self> {
        match name {
            "each" => Some(Self::Each),
            "weighted" => Some(Self::Weighted),
            _ => None,
        }
    }
}

impl Default for Schnorr {
    /// The value of `ASSAY_SCHNORR`, or [`Schnorr::Weighted`].
    fn default() -> Self {
        ENVIRONMENT.schnorr
    }
}

struct Environment {
    backend: Option<Backend>,
    schnorr: Schnorr,
}

static ENVIRONMENT: LazyLock<Environment> = LazyLock::new(|| {
    let backend = std::env::var("ASSAY_BACKEND").ok().and_then(|name| {
        let backend = Backend::by_name(&name);
        if backend.is_none() {
            tracing::warn!(%name, "ASSAY_BACKEND names no backend for signatures");
        }
        backend
    });
    let schnorr = std::env::var("ASSAY_SCHNORR").map_or(Schnorr::Weighted, |name| {
        Schnorr::by_name(&name).unwrap_or_else(|| {
            // Exact verification is the safer default for a wrong value.
            tracing::warn!(%name, "ASSAY_SCHNORR is neither each nor weighted; taken as each");
            Schnorr::Each
        })
    });
    Environment { backend, schnorr }
});

/// Settings of provers created from now on.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// libsecp256k1 verifies one of N proven checks again; 0 for none.
    pub(crate) sample_signatures: u32,
    pub(crate) schnorr: Schnorr,
    /// Directory for evidence of a defect.
    pub(crate) evidence_dir: Option<PathBuf>,
}

static SETTINGS: Mutex<Option<Settings>> = Mutex::new(None);

/// Sets the settings of the process.
pub(crate) fn configure(settings: Settings) {
    *SETTINGS.lock().unwrap_or_else(PoisonError::into_inner) = Some(settings);
}

/// The settings of the process, or the defaults.
pub(super) fn current() -> Settings {
    let settings = SETTINGS.lock().unwrap_or_else(PoisonError::into_inner);
    settings.clone().unwrap_or_else(|| Settings {
        sample_signatures: SAMPLE_SIGNATURES_DEFAULT,
        schnorr: Schnorr::default(),
        evidence_dir: None,
    })
}

/// The backend requested by the environment.
pub(super) fn backend() -> Option<Backend> {
    ENVIRONMENT.backend
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schnorr_names() {
        assert_eq!(Schnorr::by_name("each"), Some(Schnorr::Each));
        assert_eq!(Schnorr::by_name("weighted"), Some(Schnorr::Weighted));
        assert_eq!(Schnorr::by_name("exact"), None);
    }
}
