//! Fault injection: deliberate defects that tests must detect. Only in builds with the feature `planted`, and in tests of this
//! crate.
//!
//! `ASSAY_PLANT` selects one: `wrong-proof:N` and `self-test` (`deferred/fault_injection.rs`); `shared-failures` makes all blocks share
//! one lowest failure and counts skipped inputs as verified; `uncounted-drain` lets a second thread that waits for scripts
//! continue while the first is concluding them.

/// Value of `ASSAY_PLANT`; empty if unset.
#[cfg(any(test, feature = "planted"))]
pub(crate) static PLANT: std::sync::LazyLock<String> =
    std::sync::LazyLock::new(|| std::env::var("ASSAY_PLANT").unwrap_or_default());

/// True if `defect` is selected.
#[cfg(any(test, feature = "planted"))]
pub(crate) fn is_planted(defect: &str) -> bool {
    *PLANT == defect
}

/// False: this build has no fault injection.
#[cfg(not(any(test, feature = "planted")))]
pub(crate) const fn is_planted(_: &str) -> bool {
    false
}
