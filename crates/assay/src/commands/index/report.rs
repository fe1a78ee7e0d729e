//! Result of an index build.

use std::fmt::Write as _;
use std::time::Duration;

use assay_electrum::chain::Tip;
use assay_electrum::index::{Counts, Usage};
use assay_forge::Ledger;
use serde::Serialize;

use super::progress::Step;

/// The figures of a build, as `--json` prints them.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    format: u32,
    tip: TipFigures,
    threads: usize,
    /// Rates of this build alone.
    total: Rates,
    /// Rates by phase of the forged chain.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    phases: Vec<Phase>,
    usage: Usage,
    /// Bytes on disk per indexed input or output, including headers, txids and positions.
    bytes_per_entry: f64,
    /// Bytes written by this build over the growth of the index on disk.
    write_amplification: f64,
}

#[derive(Debug, Serialize)]
struct TipFigures {
    height: u32,
    hash: String,
}

#[derive(Debug, Serialize)]
struct Phase {
    name: String,
    #[serde(flatten)]
    rates: Rates,
}

#[derive(Debug, Default, Serialize)]
struct Rates {
    #[serde(flatten)]
    counts: Counts,
    elapsed_s: f64,
    inputs_per_s: f64,
    outputs_per_s: f64,
    txs_per_s: f64,
    mib_per_s: f64,
}

impl Rates {
    fn new(counts: Counts, elapsed: Duration) -> Self {
        let elapsed_s = elapsed.as_secs_f64();
        let rate = |count: u64| if elapsed_s > 0.0 { count as f64 / elapsed_s } else { 0.0 };
        Self {
            counts,
            elapsed_s,
            inputs_per_s: rate(counts.inputs),
            outputs_per_s: rate(counts.outputs),
            txs_per_s: rate(counts.txs),
            mib_per_s: rate(counts.bytes) / f64::from(1 << 20),
        }
    }

    fn line(&self, name: &str) -> String {
        format!(
            "{name:<10} {:>9} {:>10} {:>10} {:>9.3} {:>11.0} {:>11.0} {:>9.1}",
            self.counts.blocks,
            self.counts.inputs,
            self.counts.outputs,
            self.elapsed_s,
            self.inputs_per_s,
            self.outputs_per_s,
            self.mib_per_s,
        )
    }
}

impl Report {
    pub(super) fn new(
        tip: Tip,
        threads: usize,
        elapsed: Duration,
        steps: &[Step],
        (before, after): (&Usage, &Usage),
        ledger: Option<&Ledger>,
    ) -> Self {
        let mut total = Counts::default();
        for step in steps {
            total += step.counts;
        }
        let bytes = |usage: &Usage| usage.run_bytes + usage.record_bytes;
        // Each row of scripts is an input or a spendable output.
        let entries = after.rows[0] as f64;
        let added = bytes(after).saturating_sub(bytes(before));
        let ratio = |a: f64, b: f64| if b > 0.0 { a / b } else { 0.0 };
        Self {
            format: 1,
            tip: TipFigures { height: tip.height, hash: tip.hash.to_string() },
            threads,
            total: Rates::new(total, elapsed),
            phases: ledger.map_or_else(Vec::new, |ledger| phases(ledger, steps)),
            usage: *after,
            bytes_per_entry: ratio(bytes(after) as f64, entries),
            write_amplification: ratio(
                (after.bytes_written - before.bytes_written) as f64,
                added as f64,
            ),
        }
    }

    pub(super) fn text(&self) -> String {
        let mut text = format!(
            "tip        {} ({})\n\n{:<10} {:>9} {:>10} {:>10} {:>9} {:>11} {:>11} {:>9}\n",
            self.tip.height,
            self.tip.hash,
            "phase",
            "blocks",
            "inputs",
            "outputs",
            "seconds",
            "inputs/s",
            "outputs/s",
            "MiB/s",
        );
        for phase in &self.phases {
            text.push_str(&phase.rates.line(&phase.name));
            text.push('\n');
        }
        let usage = &self.usage;
        writeln!(
            text,
            "{}\n\n\
             on disk    {} bytes in {} runs, {} bytes of headers, txids and positions\n\
             entries    {} of scripts, {} of spent outputs, {} of transactions\n\
             per entry  {:.1} bytes for each input and output\n\
             written    {:.2} bytes for each byte kept\n\
             threads    {}",
            self.total.line("all"),
            usage.run_bytes,
            usage.runs,
            usage.record_bytes,
            usage.rows[0],
            usage.rows[1],
            usage.rows[2],
            self.bytes_per_entry,
            self.write_amplification,
            self.threads,
        )
        .expect("writing to a string does not fail");
        text
    }
}

/// Number of blocks and their time, by phase.
fn phases(ledger: &Ledger, steps: &[Step]) -> Vec<Phase> {
    let mut sums: Vec<(String, Counts, Duration)> = Vec::new();
    for step in steps {
        let block = ledger.blocks.iter().find(|block| block.height == step.height);
        let Some(name) = block.map(|block| block.phase.to_string()) else { continue };
        if sums.last().is_none_or(|last| last.0 != name) {
            sums.push((name, Counts::default(), Duration::ZERO));
        }
        let last = sums.len() - 1;
        sums[last].1 += step.counts;
        sums[last].2 += step.elapsed;
    }
    sums.into_iter()
        .map(|(name, counts, elapsed)| Phase { name, rates: Rates::new(counts, elapsed) })
        .collect()
}
