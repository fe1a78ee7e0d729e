//! Defects on purpose, to see whether they are found: only in builds with the feature `planted`, and in tests of this crate.
//!
//! `ASSAY_PLANT` names one: `wrong-proof:N` and `self-test` (`deferred/planted.rs`), `shared-failures` has all blocks share one
//! lowest failure and counts inputs that were skipped as verified, `uncounted-drain` lets a second thread that waits for scripts
//! go on while the first is concluding them.

/// What `ASSAY_PLANT` asks for; empty without it.
#[cfg(any(test, feature = "planted"))]
pub(crate) static PLANT: std::sync::LazyLock<String> =
    std::sync::LazyLock::new(|| std::env::var("ASSAY_PLANT").unwrap_or_default());

/// Whether `defect` is planted.
#[cfg(any(test, feature = "planted"))]
pub(crate) fn is_planted(defect: &str) -> bool {
    *PLANT == defect
}

/// Whether `defect` is planted: none is, in this build.
#[cfg(not(any(test, feature = "planted")))]
pub(crate) const fn is_planted(_: &str) -> bool {
    false
}
