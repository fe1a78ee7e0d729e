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

/// Proves checks in batches, with the fastest backend there is.
#[derive(Debug)]
pub struct Batches(BatchVerifier);

impl Default for Batches {
    fn default() -> Self {
        Self(BatchVerifier::new())
    }
}

impl Prove for Batches {
    fn prove(&mut self, checks: &[Check<'_>], proven: &mut Vec<bool>) {
        self.0.verify(checks, proven);
    }
}

/// Checks to verify together where batches are faster than one check after the other; elsewhere `None`.
pub fn default_script_batch() -> Option<usize> {
    static BATCH: LazyLock<Option<usize>> = LazyLock::new(|| {
        (BatchVerifier::new().backend() != Backend::Libsecp).then_some(CHECKS_PER_BATCH)
    });
    *BATCH
}
