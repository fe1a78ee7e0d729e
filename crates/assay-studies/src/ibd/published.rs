//! What the report (pull request 32043 of Bitcoin Core) says about the same operations.

use assay_bench::published::{PublishedFile, Syncs};
use assay_bench::suite::Published;

use super::subjects::REAL;

const FIGURES: &str = include_str!("../../../../plans/published/ibd-tracking.toml");

/// What the description of the report says of whole synchronisations.
pub(super) fn syncs() -> Syncs {
    PublishedFile::built_in(FIGURES).syncs.expect("a test asks for them")
}

/// All figures; those of the real block only where it is measured.
pub(super) fn all(has_real: bool) -> Vec<Published> {
    let mut all = PublishedFile::built_in(FIGURES).figures();
    all.retain(|published| has_real || !published.benchmark.ends_with(&format!("/{REAL}")));
    all
}

/// The published ratios of a benchmark, in a few words; those of whole synchronisations say so.
pub(super) fn ratios_of(benchmark: &str) -> String {
    let said: Vec<String> = all(true)
        .iter()
        .filter(|published| published.benchmark == benchmark)
        .filter_map(|published| {
            let who = published.subject.trim_start_matches("bitcoin core, ");
            let who = if who.starts_with("whole") { "whole sync" } else { who };
            let who = if who.starts_with("AssumeUTXO") { "load and flush" } else { who };
            Some(format!("{:.3} ({who})", published.ratio?))
        })
        .collect();
    if said.is_empty() { "-".to_owned() } else { said.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_of_the_report() {
        let all = all(true);
        assert_eq!(all.len(), 22 + 1 + 3);
        let check = all.iter().find(|one| one.benchmark == "check-block/413567").expect("clang");
        assert_eq!(check.ns_per_op, Some(179_971.0));
        assert!(check.ratio.is_some_and(|ratio| (ratio - 2.071).abs() < 0.001), "{check:?}");
        let steps = syncs().steps;
        assert_eq!(steps.len(), 6);
        assert!((steps[0].before_s / steps[5].after_s - 1.186).abs() < 0.001);
    }
}
