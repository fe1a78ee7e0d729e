//! Text of a sync comparison.

use std::fmt::Write as _;

use assay_report::stats::ratio::Ratio;

use super::{Side, SyncResults};

const MIB: f64 = 1_048_576.0;

impl SyncResults {
    /// Table for the terminal.
    pub fn text(&self) -> String {
        let Self { settings, .. } = self;
        let mut text = format!(
            "{} inputs, {} signatures in {} transactions, {} blocks, {:.1} MiB ({}, seed {}, scale {}{})\n\
             cores {cores:?}, {} threads, {} MiB for coins, {} pairs; {}\n\n",
            self.inputs,
            self.signatures,
            self.txs,
            self.height,
            self.block_bytes as f64 / MIB,
            settings.recipe,
            settings.seed,
            settings.scale,
            if settings.distinct_keys { ", distinct keys" } else { "" },
            settings.threads,
            settings.db_cache_mib,
            settings.pairs,
            settings.page_cache,
            cores = settings.cores,
        );
        let _ = writeln!(
            text,
            "{:<20}{:>10}{:>8}{:>10}{:>8}{:>12}{:>14}",
            "", "wall s", "err%", "CPU s", "err%", "memory MiB", "inputs/s"
        );
        let mut line = |name: &str, side: &Side| {
            let _ = writeln!(
                text,
                "{name:<20}{:>10.2}{:>8.1}{:>10.2}{:>8.1}{:>12.0}{:>14.0}",
                side.wall_s.median,
                side.wall_s.err_percent,
                side.cpu_s.median,
                side.cpu_s.err_percent,
                side.rss_bytes.median / MIB,
                self.inputs as f64 / side.wall_s.median.max(1e-9),
            );
        };
        line("assay", &self.assay);
        line("kernel", &self.kernel);
        for (name, side) in [
            ("assay on one core", &self.one_core),
            ("assay on two", &self.two_cores),
            ("assay, sampled", &self.sampled),
            ("assay, not sampled", &self.unsampled),
        ] {
            if let Some(side) = side {
                line(name, side);
            }
        }
        text.push('\n');
        for (name, ratio) in [
            ("wall ratio", &self.wall_interval),
            ("CPU ratio", &self.cpu_interval),
            ("memory ratio", &self.rss_interval),
            ("two cores ratio", &self.two_cores_interval),
            ("  connecting alone", &self.two_cores_connect_interval),
        ] {
            if let Some(ratio) = ratio {
                let _ = writeln!(text, "{name:<20}{}", describe(ratio));
            }
        }
        for (name, ratio) in
            [("sample, wall", &self.sample_interval), ("sample, CPU", &self.sample_cpu_interval)]
        {
            if let Some(Ratio { median, low, high, coverage, pairs }) = ratio {
                let percent = coverage * 100.0;
                let _ = writeln!(
                    text,
                    "{name:<20}{median:.3} ({low:.3} to {high:.3}, {percent:.0} % interval of {pairs} pairs)"
                );
            }
        }
        let _ = writeln!(
            text,
            "\ntip {} at height {}, {} coins, MuHash {}: the same on both sides",
            self.tip, self.height, self.coins, self.muhash
        );
        let _ = writeln!(text, "kernel: {}", self.kernel_version);
        for note in &self.notes {
            let _ = writeln!(text, "- {note}");
        }
        text
    }
}

/// A ratio with its interval.
pub(crate) fn describe(ratio: &Ratio) -> String {
    format!(
        "{:.2} ({:.2} to {:.2}, {:.0} % interval of {} pairs)",
        ratio.median,
        ratio.low,
        ratio.high,
        ratio.coverage * 100.0,
        ratio.pairs
    )
}
