//! Results of the block benchmarks.

use std::fmt::Write as _;

use assay_report::stats::ratio::{Ratio, Summary};
use serde::Serialize;

use super::large::{Large, alternative};
use super::stages::{Measured, Subject};
use super::{ASSAY, ASSAY_LIBSECP, KERNEL};
use assay_bench::conditions::Conditions;
use assay_bench::harness::{Figures, Row};
use assay_bench::options::BlocksOptions;
use assay_bench::table;

#[derive(Clone, Debug, PartialEq, Serialize)]
struct BlockRecord {
    name: String,
    is_real: bool,
    chain: &'static str,
    height: u32,
    bytes: usize,
    txs: usize,
    /// Inputs with verified scripts.
    inputs: usize,
    sig_checks: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct RowRatio {
    row: String,
    /// Alternative in the numerator.
    above: &'static str,
    below: &'static str,
    ratio: Ratio,
    cpu_ratio: Option<Ratio>,
}

/// The report. Every ratio is the other's time over Assay's: above 1 Assay is faster. Unmeasured values are absent.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Report {
    schema: u32,
    kind: &'static str,
    /// Scripts of all real blocks, the kernel's time over Assay's.
    pub(crate) real_scripts_ratio: Option<f64>,
    /// The same with libsecp256k1 and Assay's interpreter instead of the kernel.
    pub(crate) real_scripts_libsecp_ratio: Option<f64>,
    /// Scripts of all real blocks, the kernel's time over Assay's with libsecp256k1: the case without vector instructions.
    pub(crate) libsecp_backend_scripts_ratio: Option<f64>,
    /// Inputs of the real blocks, verified in each round.
    pub(crate) real_inputs: usize,
    /// Connecting blocks, the kernel's time over Assay's.
    pub(crate) connect_ecdsa_ratio: Option<f64>,
    /// The same for Schnorr signatures.
    pub(crate) connect_schnorr_ratio: Option<f64>,
    /// The same for blocks with both.
    pub(crate) connect_mixed_ratio: Option<f64>,
    /// Parsing, the kernel's time over Assay's: the median over all blocks.
    pub(crate) parse_ratio: Option<f64>,
    /// `CheckBlock`.
    pub(crate) check_ratio: Option<f64>,
    /// The merkle root; by CPU time, since the kernel's figure is a small difference of two times.
    pub(crate) merkle_ratio: Option<f64>,
    /// Connecting a block with one large legacy transaction: time on one thread over time on `connect_threads`.
    pub(crate) large_tx_threads_ratio: Option<f64>,
    /// The same with libsecp256k1 instead of vectors.
    pub(crate) large_tx_libsecp_threads_ratio: Option<f64>,
    large_tx_threads_interval: Option<Ratio>,
    large_tx_libsecp_threads_interval: Option<Ratio>,
    large_tx_block_bytes: Option<usize>,
    real_scripts_interval: Option<Ratio>,
    real_scripts_cpu_interval: Option<Ratio>,
    real_scripts_libsecp_interval: Option<Ratio>,
    libsecp_backend_scripts_interval: Option<Ratio>,
    libsecp_backend_scripts_cpu_interval: Option<Ratio>,
    script_backend: &'static str,
    hash_backend: &'static str,
    kernel: Option<String>,
    rounds: usize,
    connect_blocks: usize,
    connect_threads: usize,
    seed: u64,
    /// Common final tip.
    tip: String,
    blocks: Vec<BlockRecord>,
    ratios: Vec<RowRatio>,
    rows: Vec<Row>,
    notes: Vec<&'static str>,
    conditions: Conditions,
}

const NOTES: [&str; 4] = [
    "Stages run on one thread, connecting on connect_threads on both sides (the kernel's workers and its submitting thread).",
    "The kernel hashes each transaction as it deserialises, so its parsing is compared with ours including txids and wtxids; its merkle root is the difference of CheckBlock with and without.",
    "Connecting is a block given to a chain: parse, check, store, verify, move coins, undo data; Bitcoin Core's own ConnectBlock benchmark leaves out parsing and storing, so its figures are not these.",
    "The real blocks' ratio is that of the sums over all real blocks, round by round.",
];

impl Report {
    pub(super) fn new(
        options: &BlocksOptions,
        conditions: Conditions,
        kernel: Option<String>,
    ) -> Self {
        Self {
            schema: 2,
            kind: "blocks",
            real_scripts_ratio: None,
            real_scripts_libsecp_ratio: None,
            libsecp_backend_scripts_ratio: None,
            real_inputs: 0,
            connect_ecdsa_ratio: None,
            connect_schnorr_ratio: None,
            connect_mixed_ratio: None,
            parse_ratio: None,
            check_ratio: None,
            merkle_ratio: None,
            large_tx_threads_ratio: None,
            large_tx_libsecp_threads_ratio: None,
            large_tx_threads_interval: None,
            large_tx_libsecp_threads_interval: None,
            large_tx_block_bytes: None,
            real_scripts_interval: None,
            real_scripts_cpu_interval: None,
            real_scripts_libsecp_interval: None,
            libsecp_backend_scripts_interval: None,
            libsecp_backend_scripts_cpu_interval: None,
            script_backend: script_backend(),
            hash_backend: assay_hash::backend(),
            kernel,
            rounds: options.rounds,
            connect_blocks: options.connect_blocks,
            connect_threads: options.threads,
            seed: options.seed,
            tip: String::new(),
            blocks: Vec::new(),
            ratios: Vec::new(),
            rows: Vec::new(),
            notes: NOTES.to_vec(),
            conditions,
        }
    }

    pub(super) fn add_block(&mut self, subject: &Subject, measured: Measured, is_real: bool) {
        let Measured { txs, inputs, sig_checks, bytes, rows } = measured;
        let Subject { name, chain, height, .. } = subject;
        let (name, chain, height) = (name.clone(), *chain, *height);
        self.blocks.push(BlockRecord {
            name,
            is_real,
            chain,
            height,
            bytes,
            txs,
            inputs,
            sig_checks,
        });
        self.rows.extend(rows);
    }

    pub(super) fn add_large(&mut self, large: Large) {
        let Large { row, threads, block_bytes } = large;
        let ratio = |who| row.ratio(&alternative(who, 1), &alternative(who, threads));
        self.large_tx_threads_interval = ratio(ASSAY);
        self.large_tx_libsecp_threads_interval = ratio(ASSAY_LIBSECP);
        self.large_tx_threads_ratio = self.large_tx_threads_interval.map(|ratio| ratio.median);
        self.large_tx_libsecp_threads_ratio =
            self.large_tx_libsecp_threads_interval.map(|ratio| ratio.median);
        self.large_tx_block_bytes = Some(block_bytes);
        self.rows.push(row);
    }

    /// Adds the rows of connecting, and computes all ratios.
    pub(super) fn finish(&mut self, connect: Vec<Row>, tip: String) {
        self.tip = tip;
        self.rows.extend(connect);
        for row in &self.rows {
            for other in [KERNEL, ASSAY_LIBSECP] {
                if let Some(ratio) = row.ratio(other, ASSAY) {
                    let cpu_ratio = row.cpu_ratio(other, ASSAY);
                    let (row, above, below) = (row.name.clone(), other, ASSAY);
                    self.ratios.push(RowRatio { row, above, below, ratio, cpu_ratio });
                }
            }
        }
        let real: Vec<String> = self
            .blocks
            .iter()
            .filter(|block| block.is_real && block.inputs > 0)
            .map(|block| format!("{}: scripts", block.name))
            .collect();
        self.real_inputs =
            self.blocks.iter().filter(|block| block.is_real).map(|block| block.inputs).sum();
        let sums = |who: &str, value: fn(&Figures) -> &[f64]| {
            let mut sums = Vec::new();
            for row in self.rows.iter().filter(|row| real.contains(&row.name)) {
                let Some(figures) = row.of(who) else { continue };
                sums.resize(value(figures).len(), 0.0);
                for (sum, value) in sums.iter_mut().zip(value(figures)) {
                    *sum += value;
                }
            }
            sums
        };
        let wall = |above, below| {
            let value: fn(&Figures) -> &[f64] = |figures| &figures.samples_ns;
            Ratio::of_pairs(&sums(above, value), &sums(below, value))
        };
        let cpu = |above, below| {
            let value: fn(&Figures) -> &[f64] = |figures| &figures.samples_cpu_ns;
            Ratio::of_pairs(&sums(above, value), &sums(below, value))
        };
        self.real_scripts_interval = wall(KERNEL, ASSAY);
        self.real_scripts_cpu_interval = cpu(KERNEL, ASSAY);
        self.real_scripts_libsecp_interval = wall(ASSAY_LIBSECP, ASSAY);
        self.libsecp_backend_scripts_interval = wall(KERNEL, ASSAY_LIBSECP);
        self.libsecp_backend_scripts_cpu_interval = cpu(KERNEL, ASSAY_LIBSECP);
        let median = |ratio: Option<Ratio>| ratio.map(|ratio| ratio.median);
        self.real_scripts_ratio = median(self.real_scripts_interval);
        self.real_scripts_libsecp_ratio = median(self.real_scripts_libsecp_interval);
        self.libsecp_backend_scripts_ratio = median(self.libsecp_backend_scripts_interval);
        let of = |ending: &str, value: fn(&RowRatio) -> Option<Ratio>| {
            let found = self.ratios.iter().filter(|ratio| ratio.above == KERNEL);
            let medians: Vec<f64> = found
                .filter(|ratio| ratio.row.ends_with(ending))
                .filter_map(|ratio| Some(value(ratio)?.median))
                .collect();
            (!medians.is_empty()).then(|| Summary::of(&medians).median)
        };
        let wall: fn(&RowRatio) -> Option<Ratio> = |ratio| Some(ratio.ratio);
        self.connect_ecdsa_ratio = of("connect, ecdsa", wall);
        self.connect_schnorr_ratio = of("connect, schnorr", wall);
        self.connect_mixed_ratio = of("connect, mixed", wall);
        self.parse_ratio = of(": parse, txids, wtxids", wall);
        self.check_ratio = of(": CheckBlock", wall);
        self.merkle_ratio = of(": merkle root", |ratio| ratio.cpu_ratio);
    }

    pub(crate) fn text(&self) -> String {
        let mut text = format!(
            "signatures by {}, hashes by {}; {} rounds, seed {}; kernel: {}\n\n",
            self.script_backend,
            self.hash_backend,
            self.rounds,
            self.seed,
            self.kernel.as_deref().unwrap_or("not asked (--against kernel)"),
        );
        for block in &self.blocks {
            let _ = writeln!(
                text,
                "{:<24}{:>9} bytes{:>6} transactions{:>6} inputs{:>6} signature checks",
                block.name, block.bytes, block.txs, block.inputs, block.sig_checks
            );
        }
        text.push('\n');
        text.push_str(&table::rows(&self.rows));
        text.push('\n');
        let lines = self.ratios.iter().map(|ratio| {
            let name = if ratio.above == KERNEL {
                ratio.row.clone()
            } else {
                format!("{} (libsecp256k1)", ratio.row)
            };
            (name, (Some(ratio.ratio), ratio.cpu_ratio))
        });
        for (name, pair) in lines {
            text.push_str(&table::ratios([(name.as_str(), pair)]));
        }
        text.push_str(&table::ratios([
            ("real blocks: scripts", (self.real_scripts_interval, self.real_scripts_cpu_interval)),
            ("real blocks: scripts (libsecp256k1)", (self.real_scripts_libsecp_interval, None)),
            (
                "real blocks: kernel over libsecp256k1",
                (self.libsecp_backend_scripts_interval, self.libsecp_backend_scripts_cpu_interval),
            ),
            ("large transaction: one thread over all", (self.large_tx_threads_interval, None)),
            (
                "large transaction: one thread over all (libsecp256k1)",
                (self.large_tx_libsecp_threads_interval, None),
            ),
        ]));
        let _ = writeln!(text, "\nall sides ended with tip {}", self.tip);
        for note in &self.notes {
            let _ = writeln!(text, "- {note}");
        }
        text
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
