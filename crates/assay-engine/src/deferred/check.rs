//! Who verifies what has been recorded.

use std::sync::LazyLock;

pub use assay_secp::Check;
use assay_secp::{Backend, BatchVerifier};

/// Checks that are verified together. A batch has costs of its own that thousands of checks share; more would only wait
/// longer and take more memory.
const CHECKS_PER_BATCH: usize = 2048;

/// Proves checks.
pub trait Prove: Default {
    /// Replaces the contents of `proven` by one answer per check: `true` only for those that hold.
    fn prove(&mut self, checks: &[Check<'_>], proven: &mut Vec<bool>);
}

/// Proves checks in batches, with the fastest backend there is or the one that `ASSAY_BACKEND` names. `ASSAY_SCHNORR=each`
/// keeps BIP340 signatures apart.
#[derive(Debug)]
pub struct Batches(BatchVerifier);

impl Default for Batches {
    fn default() -> Self {
        Self(BatchVerifier::with_backend(*BACKEND))
    }
}

impl Prove for Batches {
    fn prove(&mut self, checks: &[Check<'_>], proven: &mut Vec<bool>) {
        if self.0.backend() == Backend::Libsecp {
            self.0.verify(checks, proven);
        } else {
            // What vectors do not prove is almost always a pair of a CHECKMULTISIG that needs no verdict once others match,
            // so libsecp256k1 is not asked here.
            match *SCHNORR {
                Schnorr::Each => self.0.prove(checks, proven),
                Schnorr::Weighted => self.0.prove_weighted(checks, proven),
            }
        }
    }
}

/// How BIP340 signatures of a batch are verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Schnorr {
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

static SCHNORR: LazyLock<Schnorr> = LazyLock::new(|| {
    let Ok(name) = std::env::var("ASSAY_SCHNORR") else { return Schnorr::Weighted };
    Schnorr::by_name(&name).unwrap_or_else(|| {
        // Whoever sets it wants it exact.
        tracing::warn!(%name, "ASSAY_SCHNORR is neither each nor weighted; taken as each");
        Schnorr::Each
    })
});

static BACKEND: LazyLock<Backend> = LazyLock::new(|| {
    let Ok(name) = std::env::var("ASSAY_BACKEND") else { return Backend::detect() };
    Backend::by_name(&name).unwrap_or_else(|| {
        tracing::warn!(%name, "ASSAY_BACKEND names no backend for signatures");
        Backend::detect()
    })
});

/// Checks to verify together where batches are faster than one check after the other; elsewhere `None`.
pub fn default_script_batch() -> Option<usize> {
    static BATCH: LazyLock<Option<usize>> = LazyLock::new(|| {
        let Batches(verifier) = Batches::default();
        if verifier.has_failed_self_test() {
            tracing::warn!("vectors verify signatures wrongly on this machine and are not used");
        }
        (verifier.backend() != Backend::Libsecp).then_some(CHECKS_PER_BATCH)
    });
    *BATCH
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
