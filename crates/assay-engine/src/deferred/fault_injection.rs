//! Planted defects of signature verification (`src/fault_injection.rs`): with `ASSAY_PLANT=wrong-proof:N` vector code accepts one of
//! every N invalid signatures, with `ASSAY_PLANT=self-test` every repeated self-test fails.

use assay_secp::BatchVerifier;

use crate::fault_injection::{PLANT, is_planted};

/// Plants the requested wrong proofs in a verifier.
pub(super) fn spoil(mut verifier: BatchVerifier) -> BatchVerifier {
    if let Some(one_of) = PLANT.strip_prefix("wrong-proof:").and_then(|text| text.parse().ok()) {
        verifier.plant_wrong_proofs(one_of);
    }
    verifier
}

/// True if a repeated self-test must fail.
pub(super) fn fails_self_test() -> bool {
    is_planted("self-test")
}
