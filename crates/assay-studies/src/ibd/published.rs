//! Figures of the report (pull request 32043 of Bitcoin Core) for the same operations after its last step.

use assay_bench::published::PublishedFile;
use assay_bench::suite::Published;

use super::subjects::REAL;

const FIGURES: &str = include_str!("../../../../plans/published/ibd-tracking.toml");

/// All figures; those of the real block only if it is measured.
pub(super) fn all(has_real: bool) -> Vec<Published> {
    let mut all = PublishedFile::built_in(FIGURES).figures();
    all.retain(|published| has_real || !published.benchmark.ends_with(&format!("/{REAL}")));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_of_the_report() {
        let all = all(true);
        assert_eq!(all.len(), 9 + 7);
        let check = all.iter().find(|one| one.benchmark == "check-block/413567").expect("clang");
        assert_eq!(check.ns_per_op, Some(179_971.0));
    }
}
