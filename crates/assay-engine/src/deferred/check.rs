//! Who verifies what has been recorded.

use std::sync::LazyLock;

pub use assay_secp::Check;
use assay_secp::{Backend, BatchVerifier, SampledVerifier};

use super::backend::BACKEND;
use super::evidence::{Evidence, stop_with_evidence};
use super::second_look;

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
///
/// A sample of what vectors prove is asked again of libsecp256k1, and their self-test is repeated; where either finds them
/// wrong, the process ends and leaves evidence behind (`docs/deferred-signatures.md`).
#[derive(Debug)]
pub struct Batches(SampledVerifier);

impl Default for Batches {
    fn default() -> Self {
        let verifier = BatchVerifier::with_backend(*BACKEND);
        #[cfg(any(test, feature = "planted"))]
        let verifier = super::planted::spoil(verifier);
        Self(SampledVerifier::new(verifier, second_look::sample()))
    }
}

impl Prove for Batches {
    fn prove(&mut self, checks: &[Check<'_>], proven: &mut Vec<bool>) {
        let Self(verifier) = self;
        if verifier.backend() == Backend::Libsecp {
            verifier.verifier().verify(checks, proven);
            return;
        }
        second_look::test_this_core(verifier.verifier());
        // What vectors do not prove is almost always a pair of a CHECKMULTISIG that needs no verdict once others match, so
        // libsecp256k1 is not asked here.
        let outcome = match *SCHNORR {
            Schnorr::Each => verifier.prove(checks, proven),
            Schnorr::Weighted => verifier.prove_weighted(checks, proven),
        };
        if let Err(found) = outcome {
            stop_with_evidence(&Evidence::disagreement(&found));
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

/// Checks to verify together where batches are faster than one check after the other; elsewhere `None`.
pub fn default_script_batch() -> Option<usize> {
    static BATCH: LazyLock<Option<usize>> = LazyLock::new(|| {
        let verifier = BatchVerifier::with_backend(*BACKEND);
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
