//! Batch verification of recorded checks.

use std::sync::LazyLock;

pub use assay_secp::Check;
use assay_secp::{Backend, BatchVerifier, SampledVerifier};

use super::backend::BACKEND;
use super::mismatch_report::{Evidence, stop_with_evidence};
use super::settings::{self, Schnorr};
use super::spot_check;

/// Checks per batch. Thousands of checks amortise the costs of a batch; more would only wait longer and take more memory.
const CHECKS_PER_BATCH: usize = 2048;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Proven,
    Refuted,
    /// Only libsecp256k1 can decide.
    Unknown,
}

impl Answer {
    /// Converts a result of libsecp256k1.
    pub const fn of_library(holds: bool) -> Self {
        if holds { Self::Proven } else { Self::Refuted }
    }
}

pub trait Prove: Default {
    /// Replaces the contents of `answers` with one result per check.
    fn prove(&mut self, checks: &[Check<'_>], answers: &mut Vec<Answer>);
}

/// Proves checks in batches, with the fastest backend or the requested one.
///
/// libsecp256k1 verifies a sample of the proven checks again, and the self-test of the vector code is repeated. If either finds
/// an error, the process ends and writes evidence (`docs/deferred-signatures.md`).
#[derive(Debug)]
pub struct Batches {
    verifier: SampledVerifier,
    schnorr: Schnorr,
    proven: Vec<bool>,
}

impl Default for Batches {
    fn default() -> Self {
        let verifier = BatchVerifier::with_backend(*BACKEND);
        #[cfg(any(test, feature = "planted"))]
        let verifier = super::fault_injection::spoil(verifier);
        let settings = settings::current();
        let sample = spot_check::sample(settings.sample_signatures);
        let verifier = SampledVerifier::new(verifier, sample);
        Self { verifier, schnorr: settings.schnorr, proven: Vec::new() }
    }
}

impl Prove for Batches {
    fn prove(&mut self, checks: &[Check<'_>], answers: &mut Vec<Answer>) {
        let Self { verifier, schnorr, proven } = self;
        answers.clear();
        if verifier.backend() == Backend::Libsecp {
            verifier.verifier().verify(checks, proven);
            answers.extend(proven.iter().map(|holds| Answer::of_library(*holds)));
            return;
        }
        spot_check::test_this_core(verifier.verifier());
        // Checks that vector code does not prove are almost always pairs of a CHECKMULTISIG that are irrelevant once others
        // match, so libsecp256k1 does not verify them here.
        let outcome = match schnorr {
            Schnorr::Each => verifier.prove(checks, proven),
            Schnorr::Weighted => verifier.prove_weighted(checks, proven),
        };
        if let Err(found) = outcome {
            stop_with_evidence(&Evidence::disagreement(&found, spot_check::current_core()));
        }
        let answer = |(index, is_proven): (usize, &bool)| match is_proven {
            true => Answer::Proven,
            false if verifier.is_refuted(index) => Answer::Refuted,
            false => Answer::Unknown,
        };
        answers.extend(proven.iter().enumerate().map(answer));
    }
}

/// Checks per batch if batches are faster than single checks; otherwise `None`.
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
