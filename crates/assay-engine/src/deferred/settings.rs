//! How signatures are verified: settings of the process, because they judge the machine and not a chain. The engine opened
//! last, or the validation begun last, decides.
//!
//! `ASSAY_BACKEND` and `ASSAY_SCHNORR` are read here, once, and nowhere else.

use std::path::PathBuf;
use std::sync::{LazyLock, Mutex, PoisonError};

use assay_secp::Backend;

/// One of so many proven checks is asked again of libsecp256k1, unless somebody says otherwise.
pub const SAMPLE_SIGNATURES_DEFAULT: u32 = 256;

/// How BIP340 signatures of a batch are verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schnorr {
    /// One by one: the answers are exact.
    Each,
    /// As a sum with random weights, where there are enough: a wrong "true" has a probability below 2^-127.
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
    /// What `ASSAY_SCHNORR` names, or [`Schnorr::Weighted`].
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
            // Who sets it wants it exact.
            tracing::warn!(%name, "ASSAY_SCHNORR is neither each nor weighted; taken as each");
            Schnorr::Each
        })
    });
    Environment { backend, schnorr }
});

/// What provers made from now on do.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// One of so many proven checks is asked again of libsecp256k1; 0 for none.
    pub(crate) sample_signatures: u32,
    pub(crate) schnorr: Schnorr,
    /// Where evidence of a defect is written.
    pub(crate) evidence_dir: Option<PathBuf>,
}

static SETTINGS: Mutex<Option<Settings>> = Mutex::new(None);

/// Sets the process up.
pub(crate) fn configure(settings: Settings) {
    *SETTINGS.lock().unwrap_or_else(PoisonError::into_inner) = Some(settings);
}

/// As the process was set up, or the defaults.
pub(super) fn current() -> Settings {
    let settings = SETTINGS.lock().unwrap_or_else(PoisonError::into_inner);
    settings.clone().unwrap_or_else(|| Settings {
        sample_signatures: SAMPLE_SIGNATURES_DEFAULT,
        schnorr: Schnorr::default(),
        evidence_dir: None,
    })
}

/// The backend that the environment asks for.
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
