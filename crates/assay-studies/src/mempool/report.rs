//! Results of the mempool benchmark.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use assay_report::stats::ratio::Ratio;
use serde::Serialize;

use super::Tally;
use assay_bench::conditions::Conditions;
use assay_bench::options::MempoolOptions;

/// Distribution of times, milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Times {
    pub(crate) count: usize,
    pub(crate) median_ms: f64,
    /// 99th percentile; the maximum of fewer than a hundred values.
    pub(crate) p99_ms: f64,
    pub(crate) max_ms: f64,
}

impl Times {
    fn of(seconds: &[f64]) -> Self {
        let mut sorted: Vec<f64> = seconds.iter().map(|value| value * 1000.0).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        // The nearest rank.
        let at = |percent: usize| {
            let rank = (sorted.len() * percent).div_ceil(100).max(1);
            sorted.get(rank - 1).copied().unwrap_or_default()
        };
        let (median_ms, p99_ms, max_ms) = (at(50), at(99), at(100));
        Self { count: sorted.len(), median_ms, p99_ms, max_ms }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Report {
    schema: u32,
    kind: &'static str,
    /// Blocks connected without other load.
    pub(crate) quiet: Times,
    pub(crate) attacked: Times,
    /// Median under attack over median without.
    pub(crate) median_ratio: f64,
    /// The same for the 99th percentiles.
    pub(crate) p99_ratio: f64,
    /// Ratios of the two blocks of each pair.
    pub(crate) pair_ratio: Option<Ratio>,
    /// Hostile replacements, from submission to verdict.
    pub(crate) replacements: Times,
    /// Transactions of hostile clusters, from submission to verdict.
    pub(crate) cluster_txs: Times,
    pub(crate) verdicts: BTreeMap<String, u64>,
    pub(crate) tip: String,
    blocks: usize,
    txs: usize,
    clusters: usize,
    hostile_threads: usize,
    threads: usize,
    lead_ms: u64,
    seed: u64,
    quiet_s: Vec<f64>,
    attacked_s: Vec<f64>,
    conditions: Conditions,
}

impl Report {
    pub(super) fn new(
        options: &MempoolOptions,
        conditions: Conditions,
        [quiet_s, attacked_s]: &[Vec<f64>; 2],
        tally: &Tally,
        tip: String,
    ) -> Self {
        let (quiet, attacked) = (Times::of(quiet_s), Times::of(attacked_s));
        Self {
            schema: 1,
            kind: "mempool",
            quiet,
            attacked,
            median_ratio: attacked.median_ms / quiet.median_ms,
            p99_ratio: attacked.p99_ms / quiet.p99_ms,
            pair_ratio: Ratio::of_pairs(attacked_s, quiet_s),
            replacements: Times::of(&tally.replacements_s),
            cluster_txs: Times::of(&tally.clusters_s),
            verdicts: tally.verdicts.clone(),
            tip,
            blocks: options.blocks,
            txs: options.txs,
            clusters: options.clusters,
            hostile_threads: options.hostile_threads,
            threads: options.threads,
            lead_ms: options.lead.as_millis() as u64,
            seed: options.seed,
            quiet_s: quiet_s.clone(),
            attacked_s: attacked_s.clone(),
            conditions,
        }
    }

    pub(crate) fn text(&self) -> String {
        let mut text = format!(
            "{} pairs of blocks of {} transactions, {} hostile clusters, {} hostile threads, {} threads, seed {}; {}\n\n",
            self.blocks,
            self.txs,
            self.clusters,
            self.hostile_threads,
            self.threads,
            self.seed,
            self.conditions.machine.cpu.as_deref().unwrap_or("processor unavailable"),
        );
        let header = ["", "count", "median ms", "p99 ms", "max ms"];
        let [name, count, median, p99, max] = header;
        writeln!(text, "{name:<36}{count:>10}{median:>12}{p99:>12}{max:>12}").ok();
        for (name, times) in [
            ("block, quiet", self.quiet),
            ("block, under attack", self.attacked),
            ("hostile replacement", self.replacements),
            ("hostile transaction of a cluster", self.cluster_txs),
        ] {
            let Times { count, median_ms, p99_ms, max_ms } = times;
            writeln!(text, "{name:<36}{count:>10}{median_ms:>12.2}{p99_ms:>12.2}{max_ms:>12.2}")
                .ok();
        }
        writeln!(
            text,
            "\nunder attack / quiet: median {:.2}, p99 {:.2}",
            self.median_ratio, self.p99_ratio
        )
        .ok();
        if let Some(ratio) = self.pair_ratio {
            let Ratio { median, low, high, .. } = ratio;
            writeln!(text, "of each pair: {median:.2} [{low:.2}, {high:.2}]").ok();
        }
        for (verdict, count) in &self.verdicts {
            writeln!(text, "{count:>10} {verdict}").ok();
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks() {
        let seconds: Vec<f64> = (1..=200).rev().map(|ms| f64::from(ms) / 1000.0).collect();
        let times = Times::of(&seconds);
        assert_eq!((times.count, times.median_ms, times.p99_ms), (200, 100.0, 198.0));
        assert_eq!(Times::of(&[]), Times::default());
    }
}
