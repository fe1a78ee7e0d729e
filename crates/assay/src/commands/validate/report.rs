//! Result of a validation, as text and as JSON.

use std::fmt::Write as _;

use assay_engine::{
    BlockHash, End, FilePlace, InvalidBlock, MissingBlock, ScanReport, Totals, UtxoStats,
    Validation, format_money,
};
use serde::Serialize;

/// Output of `assay validate --json`.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    schema: u32,
    chain: String,
    /// `complete`, `stop-height`, `interrupted`, `invalid` (the block above the tip is), `fallback` (the tip is that
    /// of the best branch without invalid blocks), `incomplete` (a block is missing below others).
    end: &'static str,
    tip_height: u32,
    tip_hash: String,
    chain_work: String,
    minimum_chain_work: String,
    below_minimum_chain_work: bool,
    start_height: u32,
    blocks: u64,
    txs: u64,
    inputs: u64,
    outputs: u64,
    block_bytes: u64,
    /// Blocks whose scripts were assumed valid.
    assumed_blocks: u64,
    utxo: Option<Utxo>,
    /// The first of `invalid_blocks`.
    invalid: Option<Invalid>,
    /// Invalid blocks of branches with more work than the tip, in the order in which they were tried.
    invalid_blocks: Vec<Invalid>,
    missing: Vec<Missing>,
    scan: Scan,
    scan_s: f64,
    connect_s: f64,
    hash_s: f64,
    /// Rates of this run.
    blocks_per_s: f64,
    txs_per_s: f64,
    inputs_per_s: f64,
    /// Peak of the resident memory in bytes; `None` if the system does not report it.
    rss_bytes_max: Option<u64>,
    #[serde(skip)]
    is_lasting: bool,
}

#[derive(Debug, Serialize)]
pub(crate) struct Utxo {
    pub(crate) txouts: u64,
    /// 0 if only the `MuHash` of the coins is known, from `assay shard`.
    transactions: u64,
    pub(crate) amount_sat: u64,
    /// 0 if only the `MuHash` of the coins is known.
    bogosize: u64,
    /// As `gettxoutsetinfo muhash` prints it.
    pub(crate) muhash: String,
}

#[derive(Clone, Debug, Serialize)]
struct Place {
    file: String,
    offset: u64,
    bytes: u64,
}

#[derive(Clone, Debug, Serialize)]
struct Invalid {
    hash: String,
    height: u32,
    reason: String,
    debug: String,
    /// True if every copy of the block is damaged; the block itself may be valid.
    damaged: bool,
    place: Place,
    text: String,
}

#[derive(Debug, Serialize)]
struct Missing {
    hash: String,
    child: String,
    child_place: Place,
    text: String,
}

#[derive(Debug, Serialize)]
struct Scan {
    files: usize,
    bytes: u64,
    obfuscated: bool,
    blocks: usize,
    duplicates: usize,
    best_height: u32,
    best_hash: String,
    stale_blocks: usize,
    stale_branches: usize,
    unconnected_blocks: usize,
    padding_bytes: u64,
    stray_places: usize,
    strays: Vec<Stray>,
}

#[derive(Debug, Serialize)]
struct Stray {
    place: Place,
    kind: &'static str,
    text: String,
}

impl Report {
    pub(super) fn new(chain: &str, validation: &Validation, is_lasting: bool) -> Self {
        let Validation { scan, totals, run_totals, .. } = validation;
        let rate = |count: u64| count as f64 / validation.connect_s.max(1e-9);
        let Totals { blocks, txs, inputs, outputs, bytes, assumed_blocks, .. } = *totals;
        let is_short = validation.end == End::StopHeight || validation.end == End::Interrupted;
        // Below the requested height a bad header above it is no error.
        let bad_header = scan.bad_header.as_ref().filter(|_| !is_short);
        let invalid_blocks: Vec<Invalid> =
            bad_header.into_iter().chain(&validation.invalid).map(Invalid::new).collect();
        let missing = if is_short { Vec::new() } else { missing(scan) };
        let end = match &validation.end {
            End::Interrupted => "interrupted",
            End::StopHeight => "stop-height",
            End::Invalid(_) => "invalid",
            End::Complete if !invalid_blocks.is_empty() => "fallback",
            End::Complete if !missing.is_empty() => "incomplete",
            End::Complete => "complete",
        };
        let utxo = validation.coins.as_ref().map(Utxo::new);
        Self {
            schema: 1,
            chain: chain.to_owned(),
            end,
            tip_height: validation.height,
            tip_hash: validation.hash.to_string(),
            chain_work: work(&validation.chain_work),
            minimum_chain_work: work(&validation.minimum_chain_work),
            below_minimum_chain_work: validation.is_below_minimum_chain_work(),
            start_height: validation.start_height,
            blocks,
            txs,
            inputs,
            outputs,
            block_bytes: bytes,
            assumed_blocks,
            utxo,
            invalid: invalid_blocks.first().cloned(),
            invalid_blocks,
            missing,
            scan: Scan::new(scan),
            scan_s: scan.elapsed_s,
            connect_s: validation.connect_s,
            hash_s: validation.hash_s,
            blocks_per_s: rate(run_totals.blocks),
            txs_per_s: rate(run_totals.txs),
            inputs_per_s: rate(run_totals.inputs),
            rss_bytes_max: rss_bytes_max(),
            is_lasting,
        }
    }

    /// True if the branch with the most work is valid up to the requested height.
    pub(super) fn is_valid(&self) -> bool {
        self.invalid_blocks.is_empty() && self.missing.is_empty()
    }

    /// Description of the failure in a line or two.
    pub(super) fn trouble(&self) -> Option<String> {
        let invalid = self.invalid_blocks.iter().map(|invalid| invalid.text.as_str());
        let missing = self.missing.iter().map(|missing| missing.text.as_str());
        let mut lines: Vec<String> = invalid.chain(missing).map(str::to_owned).collect();
        if !self.missing.is_empty() {
            lines.push(format!("{} blocks do not connect for that", self.scan.unconnected_blocks));
            lines.extend(self.scan.strays.first().map(|stray| stray.text.clone()));
        }
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        if let Some(trouble) = self.trouble() {
            let _ = writeln!(text, "{trouble}");
        }
        let verdict = match self.end {
            "complete" => "valid".to_owned(),
            "stop-height" => "valid up to the height asked for".to_owned(),
            "interrupted" if self.is_lasting => {
                "interrupted; the same command goes on from there".to_owned()
            }
            "interrupted" => "interrupted".to_owned(),
            "fallback" => format!(
                "valid up to height {} on the branch with the most work of those without an invalid block",
                self.tip_height
            ),
            _ => format!("valid up to height {}", self.tip_height),
        };
        let _ = writeln!(
            text,
            "{verdict}\ntip          {} at height {}\nblocks       {}\ntransactions {}\ninputs       {}\noutputs      {}",
            self.tip_hash, self.tip_height, self.blocks, self.txs, self.inputs, self.outputs,
        );
        if self.below_minimum_chain_work && self.end != "stop-height" && self.end != "interrupted" {
            let _ = writeln!(
                text,
                "warning      the tip has less work than the real chain of {} is known to have: files may be missing, \
                 or the chain is another one",
                self.chain
            );
        }
        if self.assumed_blocks > 0 {
            let _ = writeln!(
                text,
                "assumed      scripts of {} blocks were not verified (--assume-valid)",
                self.assumed_blocks
            );
        }
        if let Some(utxo) = &self.utxo {
            text.push_str(&utxo.text());
        }
        let _ = writeln!(
            text,
            "time         {:.2} s: finding blocks {:.2} s, connecting {:.2} s, hashing and writing coins {:.2} s",
            self.scan_s + self.connect_s + self.hash_s,
            self.scan_s,
            self.connect_s,
            self.hash_s,
        );
        if self.start_height > 0 {
            let _ = writeln!(text, "resumed      at height {}", self.start_height);
        }
        let _ = writeln!(
            text,
            "rates        {:.0} blocks/s, {:.0} transactions/s, {:.0} inputs/s",
            self.blocks_per_s, self.txs_per_s, self.inputs_per_s,
        );
        if let Some(bytes) = self.rss_bytes_max {
            let _ = writeln!(text, "memory       {} MiB at most", bytes >> 20);
        }
        text
    }
}

impl Utxo {
    pub(crate) fn new(coins: &UtxoStats) -> Self {
        Self {
            txouts: coins.txouts,
            transactions: coins.transactions,
            amount_sat: coins.total_amount_sat,
            bogosize: coins.bogosize,
            // A digest is printed in reverse byte order, as hashes of blocks are.
            muhash: BlockHash(coins.muhash.unwrap_or_default()).to_string(),
        }
    }

    pub(crate) fn text(&self) -> String {
        let amount = format_money(i64::try_from(self.amount_sat).unwrap_or(i64::MAX));
        let (count, muhash) = (self.txouts, &self.muhash);
        format!("utxo count   {count}\nutxo amount  {amount}\nutxo muhash  {muhash}\n")
    }
}

impl Place {
    fn new(place: &FilePlace) -> Self {
        let FilePlace { path, offset, bytes } = place;
        Self { file: path.display().to_string(), offset: *offset, bytes: *bytes }
    }
}

impl Invalid {
    fn new(block: &InvalidBlock) -> Self {
        Self {
            hash: block.hash.to_string(),
            height: block.height,
            reason: block.reason.clone(),
            debug: block.debug.clone(),
            damaged: block.is_damaged,
            place: Place::new(&block.place),
            text: block.to_string(),
        }
    }
}

/// Formats work as RPC does in `chainwork`.
fn work(big_endian: &[u8; 32]) -> String {
    big_endian.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a string does not fail");
        text
    })
}

/// Missing blocks that have descendants.
fn missing(scan: &ScanReport) -> Vec<Missing> {
    if scan.unconnected == 0 {
        return Vec::new();
    }
    let missing = |gap: &MissingBlock| Missing {
        hash: gap.hash.to_string(),
        child: gap.child.to_string(),
        child_place: Place::new(&gap.child_place),
        text: gap.to_string(),
    };
    scan.missing.iter().map(missing).collect()
}

impl Scan {
    fn new(scan: &ScanReport) -> Self {
        let stray = |stray: &assay_engine::Stray| Stray {
            place: Place::new(&stray.place),
            kind: stray.kind.describe(),
            text: stray.to_string(),
        };
        Self {
            files: scan.files,
            bytes: scan.bytes,
            obfuscated: scan.is_obfuscated,
            blocks: scan.blocks,
            duplicates: scan.duplicates,
            best_height: scan.height,
            best_hash: scan.hash.to_string(),
            stale_blocks: scan.stale_blocks,
            stale_branches: scan.stale_branches,
            unconnected_blocks: scan.unconnected,
            padding_bytes: scan.padding_bytes,
            stray_places: scan.stray_count,
            strays: scan.strays.iter().map(stray).collect(),
        }
    }
}

/// Result of the search for blocks, human-readable.
pub(super) fn scan_lines(scan: &ScanReport, strays_shown: usize) -> String {
    let mut text = format!(
        "found {} blocks in {} files ({}{}), best branch up to height {} {}\n",
        scan.blocks,
        scan.files,
        size(scan.bytes),
        if scan.is_obfuscated { ", obfuscated" } else { "" },
        scan.height,
        scan.hash,
    );
    if scan.stale_blocks > 0 {
        let (blocks, branches) = (scan.stale_blocks, scan.stale_branches);
        let _ = writeln!(text, "{blocks} blocks on {branches} other branches");
    }
    if scan.duplicates > 0 {
        let _ = writeln!(text, "{} blocks more than once", scan.duplicates);
    }
    if let Some(bad) = &scan.bad_header {
        let _ = writeln!(text, "{bad}");
    }
    for missing in missing(scan) {
        let _ = writeln!(text, "{}", missing.text);
    }
    if scan.unconnected > 0 {
        let _ = writeln!(text, "{} blocks do not connect for that", scan.unconnected);
    }
    for stray in scan.strays.iter().take(strays_shown) {
        let _ = writeln!(text, "{stray}");
    }
    if let Some(more @ 1..) = scan.stray_count.checked_sub(strays_shown) {
        let _ = writeln!(text, "and {more} more such places");
    }
    if scan.assumed_height > 0 {
        let height = scan.assumed_height;
        let _ = writeln!(text, "scripts are taken to be valid up to height {height}");
    }
    text
}

/// Formats bytes with a suitable unit.
pub(super) fn size(bytes: u64) -> String {
    let mebibytes = bytes as f64 / f64::from(1 << 20);
    if mebibytes < 1024.0 {
        format!("{mebibytes:.2} MiB")
    } else {
        format!("{:.2} GiB", mebibytes / 1024.0)
    }
}

/// Peak of the resident memory, as reported by Linux.
fn rss_bytes_max() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes * 1024)
}
