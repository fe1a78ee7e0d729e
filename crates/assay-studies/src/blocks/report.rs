//! Results of the block benchmarks.

use assay_bench::experiment::{self, CPU_TIMES, TIMES};
use assay_bench::harness::{Figures, Row};
use assay_bench::options::BlocksOptions;
use assay_report::record::{Outcome, Record, Unit, bytes, count};
use assay_report::stats::median;
use assay_report::stats::ratio::Ratio;

use super::large::{Large, alternative};
use super::stages::{Measured, Subject};
use super::{ASSAY, ASSAY_LIBSECP, KERNEL};

const NOTES: [&str; 4] = [
    "Ratios are the time of the first over that of the second: above 1 the second is faster.",
    "Stages run on one thread, connecting on all threads of the setup on both sides (the kernel's workers and its submitting thread).",
    "The kernel hashes each transaction as it deserialises, so its parsing is compared with ours including txids and wtxids; its merkle root is the difference of CheckBlock with and without.",
    "Connecting is a block given to a chain: parse, check, store, verify, move coins, undo data; Bitcoin Core's own ConnectBlock benchmark leaves out parsing and storing, so its figures are not these.",
];

const RATIOS: [(&str, &str); 3] =
    [(KERNEL, ASSAY), (ASSAY_LIBSECP, ASSAY), (KERNEL, ASSAY_LIBSECP)];

/// Stages that the kernel has too, besides scripts.
const STAGES: [&str; 3] = ["parse, txids, wtxids", "merkle root", "CheckBlock"];

/// Sums over all real blocks, round by round.
const REAL: &str = "real blocks: scripts";

pub(super) struct Report {
    record: Record,
    /// Names of the rows of scripts of real blocks.
    real: Vec<String>,
    rows: Vec<Row>,
    /// Inputs whose scripts were verified by all sides.
    inputs: u64,
}

impl Report {
    pub(super) fn new(options: &BlocksOptions, kernel: Option<&str>) -> Self {
        let mut record = experiment::record("blocks");
        record.set("signatures by", script_backend());
        record.set("hashes by", assay_hash::backend());
        record.set("kernel", kernel.unwrap_or("not measured (--against kernel)"));
        record.set("rounds", options.rounds);
        record.set("transactions of a forged block", options.txs);
        record.set("connected blocks of each kind", options.connect_blocks);
        record.set("threads that connect", options.threads);
        record.set("seed", options.seed);
        record.notes.extend(NOTES.map(str::to_owned));
        Self { record, real: Vec::new(), rows: Vec::new(), inputs: 0 }
    }

    pub(super) fn add_block(&mut self, subject: &Subject, measured: Measured, is_real: bool) {
        let Measured { txs, inputs, sig_checks, bytes: size, rows } = measured;
        let figures = [
            bytes("size", size as u64),
            count("transactions", txs as u64),
            count("inputs", inputs as u64),
            count("signature checks", sig_checks),
        ];
        self.record.add((&subject.name, "", None), &figures);
        self.inputs += inputs as u64;
        if is_real && inputs > 0 {
            self.real.push(format!("{}: scripts", subject.name));
        }
        self.rows.extend(rows);
    }

    pub(super) fn add_large(&mut self, large: &Large) {
        let Large { row, threads, block_bytes } = large;
        experiment::add_row(&mut self.record, row);
        for side in [ASSAY, ASSAY_LIBSECP] {
            let [one, all] = [1, *threads].map(|threads| alternative(side, threads));
            experiment::add_ratio(&mut self.record, row, &one, &all);
        }
        self.record.set("size of the block with a large transaction", block_bytes);
    }

    /// The record with the rows of connecting and all ratios; `tips` were compared.
    pub(super) fn finish(mut self, connect: Vec<Row>, tip: &str, tips: u64) -> Record {
        let connected = connect.first().and_then(|row| Some(row.of(ASSAY)?.ns_per_op / 1e6));
        self.rows.extend(connect);
        for row in &self.rows {
            experiment::add_row(&mut self.record, row);
            for (above, below) in RATIOS {
                experiment::add_ratio(&mut self.record, row, above, below);
            }
        }
        for (above, below) in RATIOS {
            self.add_sums(above, below);
        }
        for stage in STAGES {
            self.add_medians(stage);
        }
        let Self { mut record, inputs, .. } = self;
        record.check("inputs verified by all sides", Outcome::of(inputs, None));
        record.check("tips after connecting", Outcome::of(tips, None));
        record.set("tip of all sides", tip);
        record.headline = format!(
            "A block of ECDSA inputs is connected in {:.1} ms; all sides end with the same tip.",
            connected.unwrap_or(f64::NAN)
        );
        record
    }

    /// Adds the ratio of the sums over all real blocks.
    fn add_sums(&mut self, above: &str, below: &str) {
        let sums = |side: &str, samples: fn(&Figures) -> &[f64]| {
            let mut sums = Vec::new();
            for row in self.rows.iter().filter(|row| self.real.contains(&row.name)) {
                let Some(figures) = row.of(side) else { continue };
                sums.resize(samples(figures).len(), 0.0);
                for (sum, value) in sums.iter_mut().zip(samples(figures)) {
                    *sum += value;
                }
            }
            sums
        };
        let ratio = |samples| Ratio::of_pairs(&sums(above, samples), &sums(below, samples));
        let case = format!("{above} / {below}");
        for (metric, ratio) in [
            (TIMES, ratio(|figures| &figures.samples_ns)),
            (CPU_TIMES, ratio(|figures| &figures.samples_cpu_ns)),
        ] {
            if let Some(ratio) = ratio {
                self.record.add_interval((REAL, &case), (metric, Unit::Ratio), &ratio);
            }
        }
    }

    /// Adds the median over all blocks of the kernel's ratio in a stage.
    fn add_medians(&mut self, stage: &str) {
        let rows = || self.rows.iter().filter(|row| row.name.ends_with(&format!(": {stage}")));
        let of = |ratio: fn(&Row, &str, &str) -> Option<Ratio>| {
            let medians: Vec<f64> =
                rows().filter_map(|row| Some(ratio(row, KERNEL, ASSAY)?.median)).collect();
            (!medians.is_empty()).then(|| median(&medians))
        };
        let figures =
            [(TIMES, Unit::Ratio, of(Row::ratio)), (CPU_TIMES, Unit::Ratio, of(Row::cpu_ratio))];
        let case = format!("{KERNEL} / {ASSAY}");
        self.record.add((&format!("median of all blocks: {stage}"), &case, None), &figures);
    }
}

/// Signature backend of block scripts on this machine.
fn script_backend() -> &'static str {
    if assay_engine::default_script_batch().is_none() {
        return assay_secp::Backend::Libsecp.name();
    }
    let named = std::env::var("ASSAY_BACKEND").ok();
    let named = named.and_then(|name| assay_secp::Backend::by_name(&name));
    named.unwrap_or_else(assay_secp::Backend::detect).name()
}
