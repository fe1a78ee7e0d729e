//! Results of the mempool benchmark.

use assay_bench::options::MempoolOptions;
use assay_report::record::{Figure, Outcome, Record, Unit, count};
use assay_report::stats::median;
use assay_report::stats::ratio::Ratio;

use super::Tally;

const QUIET: &str = "block, quiet";
const ATTACKED: &str = "block, under attack";

/// 99th percentile by the nearest rank: the maximum of fewer than a hundred values.
fn p99(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let rank = (sorted.len() * 99).div_ceil(100);
    rank.checked_sub(1).map(|at| sorted[at])
}

/// Adds the figures to a record. Seconds are those of each pair's two blocks; `coins` were compared at the end.
pub(super) fn fill(
    mut record: Record,
    options: &MempoolOptions,
    [quiet_s, attacked_s]: &[Vec<f64>; 2],
    tally: &Tally,
    coins: u64,
) -> Record {
    let p99_of = |values: &[f64]| -> Figure<'_> { ("99th percentile", Unit::Seconds, p99(values)) };
    for (case, seconds) in [(QUIET, quiet_s), (ATTACKED, attacked_s)] {
        record.add_rounds(("assay", case), ("time", Unit::Seconds), seconds);
        record.add(("assay", case, None), &[p99_of(seconds)]);
    }
    for (case, seconds) in [
        ("hostile replacement, until its verdict", &tally.replacements_s),
        ("hostile transaction of a cluster, until its verdict", &tally.clusters_s),
    ] {
        let of = |value: fn(&[f64]) -> f64| (!seconds.is_empty()).then(|| value(seconds));
        let longest = of(|seconds| seconds.iter().copied().fold(0.0, f64::max));
        let figures = [
            count("transactions", seconds.len() as u64),
            ("median", Unit::Seconds, of(median)),
            p99_of(seconds),
            ("longest", Unit::Seconds, longest),
        ];
        record.add(("assay", case, None), &figures);
    }
    let ratio = |of: fn(&[f64]) -> Option<f64>| Some(of(attacked_s)? / of(quiet_s)?);
    let case = format!("{ATTACKED} / {QUIET}");
    let medians = ratio(|seconds| Some(median(seconds)));
    let figures = [
        ("ratio of medians", Unit::Ratio, medians),
        ("ratio of 99th percentiles", Unit::Ratio, ratio(p99)),
    ];
    record.add(("assay", &case, None), &figures);
    if let Some(ratio) = Ratio::of_pairs(attacked_s, quiet_s) {
        record.add_interval(("assay", &case), ("ratio of pairs", Unit::Ratio), &ratio);
    }
    for (verdict, times) in &tally.verdicts {
        record.add(("verdicts", verdict, None), &[count("hostile transactions", *times)]);
    }
    record.check(
        "verdicts on hostile transactions",
        Outcome::of(tally.verdicts.values().sum(), None),
    );
    record.check("coins that the blocks move, at the end", Outcome::of(coins, None));
    record.headline = format!(
        "A block of {} transactions takes {:.2} times as long to connect under attack, in the median of {} pairs.",
        options.txs,
        medians.unwrap_or(f64::NAN),
        options.blocks
    );
    record.set("hostile clusters", options.clusters);
    record.set("hostile threads", options.hostile_threads);
    record.set("threads", options.threads);
    record.set("lead of the hostile threads", format!("{} ms", options.lead.as_millis()));
    record.set("seed", options.seed);
    record
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks() {
        let seconds: Vec<f64> = (1..=200).rev().map(f64::from).collect();
        assert_eq!((p99(&seconds), p99(&[2.0, 1.0]), p99(&[])), (Some(198.0), Some(2.0), None));
    }
}
