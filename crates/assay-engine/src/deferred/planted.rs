//! Defects on purpose, to see whether they are found: only in builds with the feature `planted`, and in tests.
//!
//! `ASSAY_PLANT=wrong-proof:N` has lanes prove one of every N checks that do not hold, `ASSAY_PLANT=self-test` has every
//! repeated self-test fail.

use std::sync::LazyLock;

use assay_secp::BatchVerifier;

static PLANT: LazyLock<String> = LazyLock::new(|| std::env::var("ASSAY_PLANT").unwrap_or_default());

/// Gives a verifier the wrong proofs that are asked for.
pub(super) fn spoil(mut verifier: BatchVerifier) -> BatchVerifier {
    if let Some(one_of) = PLANT.strip_prefix("wrong-proof:").and_then(|text| text.parse().ok()) {
        verifier.plant_wrong_proofs(one_of);
    }
    verifier
}

/// Whether a repeated self-test fails.
pub(super) fn fails_self_test() -> bool {
    *PLANT == "self-test"
}
