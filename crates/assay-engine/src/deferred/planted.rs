//! Planted defects of signature verification (`src/planted.rs`): `ASSAY_PLANT=wrong-proof:N` has lanes prove one of every N
//! checks that do not hold, `ASSAY_PLANT=self-test` has every repeated self-test fail.

use assay_secp::BatchVerifier;

use crate::planted::{PLANT, is_planted};

/// Gives a verifier the wrong proofs that are asked for.
pub(super) fn spoil(mut verifier: BatchVerifier) -> BatchVerifier {
    if let Some(one_of) = PLANT.strip_prefix("wrong-proof:").and_then(|text| text.parse().ok()) {
        verifier.plant_wrong_proofs(one_of);
    }
    verifier
}

/// Whether a repeated self-test fails.
pub(super) fn fails_self_test() -> bool {
    is_planted("self-test")
}
