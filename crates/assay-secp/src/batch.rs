//! Batches of independent checks.

#[cfg(test)]
mod differential;
mod prepare;
mod prover;
mod recover;
mod sample;
mod self_test;
mod table;
#[cfg(test)]
mod tests;
mod weighted;

use std::sync::OnceLock;

use prover::Prover;
pub use recover::{Recoverer, Signed};
pub use sample::{Disagreement, Proof, Sample, SampledVerifier};

use crate::backend::Backend;
use crate::{taproot_tweak_ok, verify_ecdsa, verify_schnorr, verify_schnorr_bch};

/// One check with a boolean result. Each variant corresponds to the function of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check<'a> {
    /// [`verify_ecdsa`].
    Ecdsa {
        /// Compressed, uncompressed or hybrid.
        pubkey: &'a [u8],
        /// Lax DER without hash type.
        der_sig: &'a [u8],
        /// The signature hash.
        msg: &'a [u8; 32],
    },
    /// [`verify_schnorr`].
    Schnorr {
        /// The x coordinate of the key.
        xonly: &'a [u8; 32],
        /// r and s.
        sig: &'a [u8; 64],
        /// The message, of any length.
        msg: &'a [u8],
    },
    /// [`verify_schnorr_bch`].
    SchnorrBch {
        /// Compressed, uncompressed or hybrid.
        pubkey: &'a [u8],
        /// r and s.
        sig: &'a [u8; 64],
        /// The signature hash.
        msg: &'a [u8; 32],
    },
    /// [`taproot_tweak_ok`].
    TaprootTweak {
        /// The x coordinate of the internal key.
        internal: &'a [u8; 32],
        /// The tagged hash that the internal key is tweaked by.
        tweak: &'a [u8; 32],
        /// The x coordinate of the output key.
        output: &'a [u8; 32],
        /// True if the y coordinate of the output key is odd.
        parity: bool,
    },
}

impl Check<'_> {
    /// A short stable name for reports: `"ecdsa"`, `"schnorr"`, `"schnorr-bch"` or `"taproot-tweak"`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Ecdsa { .. } => "ecdsa",
            Self::Schnorr { .. } => "schnorr",
            Self::SchnorrBch { .. } => "schnorr-bch",
            Self::TaprootTweak { .. } => "taproot-tweak",
        }
    }

    /// Result of libsecp256k1.
    pub fn verify(&self) -> bool {
        match *self {
            Self::Ecdsa { pubkey, der_sig, msg } => verify_ecdsa(pubkey, der_sig, msg),
            Self::Schnorr { xonly, sig, msg } => verify_schnorr(xonly, sig, msg),
            Self::SchnorrBch { pubkey, sig, msg } => verify_schnorr_bch(pubkey, sig, msg),
            Self::TaprootTweak { internal, tweak, output, parity } => {
                taproot_tweak_ok(internal, tweak, output, parity)
            }
        }
    }
}

impl Backend {
    /// True if the self-test passes. Runs once per backend and process.
    pub(crate) fn passes_self_test(self) -> bool {
        static PASSES: [OnceLock<bool>; Backend::ALL.len()] =
            [const { OnceLock::new() }; Backend::ALL.len()];
        *PASSES[self as usize].get_or_init(|| self.passes_self_test_now())
    }

    fn passes_self_test_now(self) -> bool {
        self.kernels().is_none_or(|kernels| self_test::passes(&kernels))
    }
}

/// Verifies checks in batches; reuses its memory between batches.
///
/// libsecp256k1 decides every check that vectors do not prove true, so the results are the library's, and a false check costs
/// more than a true one. Callers that do not need certainty can call [`BatchVerifier::is_refuted`] after
/// [`BatchVerifier::prove`].
#[derive(Debug)]
pub struct BatchVerifier {
    backend: Backend,
    has_failed_self_test: bool,
    prover: Option<Prover>,
    /// One of this many unproven checks is reported as proven; 0 is none.
    #[cfg(any(test, feature = "planted"))]
    planted: u32,
}

impl BatchVerifier {
    /// A verifier with the fastest backend ([`Backend::fastest`]).
    pub fn new() -> Self {
        Self::with_backend(Backend::fastest())
    }

    /// A verifier with this backend, or libsecp256k1 if the CPU cannot run it or its self-test fails.
    pub fn with_backend(backend: Backend) -> Self {
        let has_failed_self_test = !backend.passes_self_test();
        let is_usable = backend.available() && !has_failed_self_test;
        let backend = if is_usable { backend } else { Backend::Libsecp };
        Self { has_failed_self_test, ..Self::without_self_test(backend) }
    }

    /// A verifier whose results are not trusted yet.
    pub(crate) fn without_self_test(backend: Backend) -> Self {
        let prover = backend.kernels().map(Prover::new);
        Self {
            backend,
            has_failed_self_test: false,
            prover,
            #[cfg(any(test, feature = "planted"))]
            planted: 0,
        }
    }

    /// The current backend.
    pub fn backend(&self) -> Backend {
        self.backend
    }

    /// True if the requested backend failed its self-test and was replaced.
    pub fn has_failed_self_test(&self) -> bool {
        self.has_failed_self_test
    }

    /// Repeats the self-test of the backend on the current core: another core may compute differently than that of the first run.
    /// True for a backend without lanes.
    pub fn repeat_self_test(&self) -> bool {
        self.backend.passes_self_test_now()
    }

    /// Replaces the contents of `out` by one result per check, in order.
    pub fn verify(&mut self, checks: &[Check<'_>], out: &mut Vec<bool>) {
        self.prove(checks, out);
        decide_unproven(checks, out);
    }

    /// As [`BatchVerifier::verify`], but from a few hundred BIP-0340 signatures on, these are verified as one sum with weights
    /// from a hash of all of them (BIP-0340, "Batch Verification").
    ///
    /// An invalid signature is accepted with a probability below 2^-127, which an attacker can only raise by as many attempts. A
    /// batch with an invalid signature costs several times one without. Repeated keys are processed once.
    pub fn verify_weighted(&mut self, checks: &[Check<'_>], out: &mut Vec<bool>) {
        self.prove_weighted(checks, out);
        decide_unproven(checks, out);
    }

    /// Replaces the contents of `out` by flags for the checks proven true by vectors. Unproven checks may hold too; libsecp256k1
    /// alone proves none.
    pub fn prove(&mut self, checks: &[Check<'_>], out: &mut Vec<bool>) {
        self.prove_by(checks, false, out);
    }

    /// As [`BatchVerifier::prove`], with sums as in [`BatchVerifier::verify_weighted`].
    pub fn prove_weighted(&mut self, checks: &[Check<'_>], out: &mut Vec<bool>) {
        self.prove_by(checks, true, out);
    }

    fn prove_by(&mut self, checks: &[Check<'_>], is_weighted: bool, out: &mut Vec<bool>) {
        out.clear();
        out.resize(checks.len(), false);
        if let Some(prover) = &mut self.prover {
            prover.prove(checks, is_weighted, out);
            #[cfg(any(test, feature = "planted"))]
            prover.plant_wrong_proofs(self.planted, out);
        }
    }

    /// True if the vectors found the check of this index false in the last batch: an ECDSA signature by a key on the curve. Not
    /// every false check is refuted; with a planted error a check may be both proven and refuted.
    pub fn is_refuted(&self, index: usize) -> bool {
        self.prover.as_ref().is_some_and(|prover| prover.is_refuted(index))
    }

    /// The method by which the check of this index was proven in the last batch.
    fn proof(&self, index: usize, check: &Check<'_>) -> Proof {
        let is_summed = self.prover.as_ref().is_some_and(|prover| prover.is_summed(index));
        if is_summed && matches!(check, Check::Schnorr { .. }) { Proof::Sum } else { Proof::Lane }
    }

    /// Reports one of this many unproven checks as proven; 0 is none. A deliberate fault for testing the spot checks.
    #[cfg(any(test, feature = "planted"))]
    pub fn plant_wrong_proofs(&mut self, one_of: u32) {
        self.planted = one_of;
    }
}

/// Decides unproven checks with libsecp256k1.
fn decide_unproven(checks: &[Check<'_>], out: &mut [bool]) {
    for (check, answer) in checks.iter().zip(out) {
        *answer = *answer || check.verify();
    }
}

impl Default for BatchVerifier {
    fn default() -> Self {
        Self::new()
    }
}
