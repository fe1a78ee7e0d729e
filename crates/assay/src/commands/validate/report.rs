//! Result of a validation, as text and as JSON.

use std::fmt::Write as _;

use assay_engine::{
    BlockHash, End, FilePlace, InvalidBlock, MissingBlock, ScanReport, Stray, UtxoStats,
    Validation, format_money,
};
use indicatif::BinaryBytes;
use serde_json::{Value, json};

pub(super) struct Report<'a> {
    chain: &'a str,
    run: &'a Validation,
    /// True if the coins are kept.
    is_lasting: bool,
    /// `complete`, `stop-height`, `interrupted`, `invalid` (the block above the tip is), `fallback` (the tip is that
    /// of the best branch without invalid blocks), `incomplete` (a block is missing below others).
    end: &'static str,
    /// Invalid blocks of branches with more work than the tip, in the order in which they were tried.
    invalid: Vec<&'a InvalidBlock>,
    missing: Vec<&'a MissingBlock>,
}

impl<'a> Report<'a> {
    pub(super) fn new(chain: &'a str, run: &'a Validation, is_lasting: bool) -> Self {
        let is_short = run.end == End::StopHeight || run.end == End::Interrupted;
        // Below the requested height a bad header above it is no error.
        let bad_header = run.scan.bad_header.as_ref().filter(|_| !is_short);
        let invalid: Vec<_> = bad_header.into_iter().chain(&run.invalid).collect();
        let missing: Vec<_> = missing(&run.scan).filter(|_| !is_short).collect();
        let end = match &run.end {
            End::Interrupted => "interrupted",
            End::StopHeight => "stop-height",
            End::Invalid(_) => "invalid",
            End::Complete if !invalid.is_empty() => "fallback",
            End::Complete if !missing.is_empty() => "incomplete",
            End::Complete => "complete",
        };
        Self { chain, run, is_lasting, end, invalid, missing }
    }

    /// True if the branch with the most work is valid up to the requested height.
    pub(super) fn is_valid(&self) -> bool {
        self.invalid.is_empty() && self.missing.is_empty()
    }

    /// Description of the failure in a line or two.
    pub(super) fn trouble(&self) -> Option<String> {
        let invalid = self.invalid.iter().map(ToString::to_string);
        let mut lines: Vec<String> =
            invalid.chain(self.missing.iter().map(ToString::to_string)).collect();
        if !self.missing.is_empty() {
            let scan = &self.run.scan;
            lines.push(format!("{} blocks do not connect for that", scan.unconnected));
            lines.extend(scan.strays.first().map(ToString::to_string));
        }
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    /// Blocks, transactions and inputs of this run, per second.
    fn rates(&self) -> [f64; 3] {
        let totals = &self.run.run_totals;
        [totals.blocks, totals.txs, totals.inputs]
            .map(|count| count as f64 / self.run.connect_s.max(1e-9))
    }

    pub(super) fn json(&self) -> Value {
        let Validation { scan, totals, .. } = self.run;
        let [blocks_per_s, txs_per_s, inputs_per_s] = self.rates();
        let invalid: Vec<Value> = self.invalid.iter().map(|block| invalid_json(block)).collect();
        let missing: Vec<Value> = self.missing.iter().map(|gap| missing_json(gap)).collect();
        json!({
            "schema": 1,
            "chain": self.chain,
            "end": self.end,
            "tip_height": self.run.height,
            "tip_hash": self.run.hash.to_string(),
            "chain_work": work(&self.run.chain_work),
            "minimum_chain_work": work(&self.run.minimum_chain_work),
            "below_minimum_chain_work": self.run.is_below_minimum_chain_work(),
            "start_height": self.run.start_height,
            "blocks": totals.blocks,
            "txs": totals.txs,
            "inputs": totals.inputs,
            "outputs": totals.outputs,
            "block_bytes": totals.bytes,
            "assumed_blocks": totals.assumed_blocks,
            "utxo": self.run.coins.as_ref().map(utxo_json),
            "invalid": invalid.first(),
            "invalid_blocks": invalid,
            "missing": missing,
            "scan": scan_json(scan),
            "scan_s": scan.elapsed_s,
            "connect_s": self.run.connect_s,
            "hash_s": self.run.hash_s,
            "blocks_per_s": blocks_per_s,
            "txs_per_s": txs_per_s,
            "inputs_per_s": inputs_per_s,
            "rss_bytes_max": rss_bytes_max(),
        })
    }

    pub(super) fn text(&self) -> String {
        let Validation { scan, totals, connect_s, hash_s, .. } = self.run;
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
                self.run.height
            ),
            _ => format!("valid up to height {}", self.run.height),
        };
        let _ = writeln!(
            text,
            "{verdict}\ntip          {} at height {}\nblocks       {}\ntransactions {}\ninputs       {}\noutputs      {}",
            self.run.hash,
            self.run.height,
            totals.blocks,
            totals.txs,
            totals.inputs,
            totals.outputs,
        );
        let is_short = matches!(self.end, "stop-height" | "interrupted");
        if self.run.is_below_minimum_chain_work() && !is_short {
            let _ = writeln!(
                text,
                "warning      the tip has less work than the real chain of {} is known to have: files may be missing, \
                 or the chain is another one",
                self.chain
            );
        }
        if totals.assumed_blocks > 0 {
            let _ = writeln!(
                text,
                "assumed      scripts of {} blocks were not verified (--assume-valid)",
                totals.assumed_blocks
            );
        }
        text.extend(self.run.coins.as_ref().map(utxo_text));
        let _ = writeln!(
            text,
            "time         {:.2} s: finding blocks {:.2} s, connecting {connect_s:.2} s, hashing and writing coins {hash_s:.2} s",
            scan.elapsed_s + connect_s + hash_s,
            scan.elapsed_s,
        );
        if self.run.start_height > 0 {
            let _ = writeln!(text, "resumed      at height {}", self.run.start_height);
        }
        let [blocks_per_s, txs_per_s, inputs_per_s] = self.rates();
        let _ = writeln!(
            text,
            "rates        {blocks_per_s:.0} blocks/s, {txs_per_s:.0} transactions/s, {inputs_per_s:.0} inputs/s"
        );
        if let Some(bytes) = rss_bytes_max() {
            let _ = writeln!(text, "memory       {} MiB at most", bytes >> 20);
        }
        text
    }
}

/// Coins in JSON. Number of transactions and bogosize are 0 if only their `MuHash` is known, from `assay shard`.
pub(crate) fn utxo_json(coins: &UtxoStats) -> Value {
    json!({
        "txouts": coins.txouts,
        "transactions": coins.transactions,
        "amount_sat": coins.total_amount_sat,
        "bogosize": coins.bogosize,
        "muhash": muhash(coins),
    })
}

pub(crate) fn utxo_text(coins: &UtxoStats) -> String {
    let amount = format_money(i64::try_from(coins.total_amount_sat).unwrap_or(i64::MAX));
    let (count, muhash) = (coins.txouts, muhash(coins));
    format!("utxo count   {count}\nutxo amount  {amount}\nutxo muhash  {muhash}\n")
}

/// The hash as `gettxoutsetinfo muhash` prints it: in reverse byte order, as hashes of blocks are.
fn muhash(coins: &UtxoStats) -> String {
    BlockHash(coins.muhash.unwrap_or_default()).to_string()
}

fn place_json(place: &FilePlace) -> Value {
    json!({ "file": place.path.display().to_string(), "offset": place.offset, "bytes": place.bytes })
}

fn invalid_json(block: &InvalidBlock) -> Value {
    json!({
        "hash": block.hash.to_string(),
        "height": block.height,
        "reason": block.reason,
        "debug": block.debug,
        "damaged": block.is_damaged,
        "place": place_json(&block.place),
        "text": block.to_string(),
    })
}

fn missing_json(gap: &MissingBlock) -> Value {
    json!({
        "hash": gap.hash.to_string(),
        "child": gap.child.to_string(),
        "child_place": place_json(&gap.child_place),
        "text": gap.to_string(),
    })
}

fn scan_json(scan: &ScanReport) -> Value {
    let stray = |stray: &Stray| {
        let (kind, text) = (stray.kind.describe(), stray.to_string());
        json!({ "place": place_json(&stray.place), "kind": kind, "text": text })
    };
    json!({
        "files": scan.files,
        "bytes": scan.bytes,
        "obfuscated": scan.is_obfuscated,
        "blocks": scan.blocks,
        "duplicates": scan.duplicates,
        "best_height": scan.height,
        "best_hash": scan.hash.to_string(),
        "stale_blocks": scan.stale_blocks,
        "stale_branches": scan.stale_branches,
        "unconnected_blocks": scan.unconnected,
        "padding_bytes": scan.padding_bytes,
        "stray_places": scan.stray_count,
        "strays": scan.strays.iter().map(stray).collect::<Vec<_>>(),
    })
}

/// Formats work as RPC does in `chainwork`.
fn work(big_endian: &[u8; 32]) -> String {
    faster_hex::hex_string(big_endian)
}

/// Missing blocks that have descendants.
fn missing(scan: &ScanReport) -> impl Iterator<Item = &MissingBlock> {
    scan.missing.iter().filter(move |_| scan.unconnected > 0)
}

/// Result of the search for blocks, human-readable.
pub(super) fn scan_lines(scan: &ScanReport, strays_shown: usize) -> String {
    let mut text = format!(
        "found {} blocks in {} files ({}{}), best branch up to height {} {}\n",
        scan.blocks,
        scan.files,
        BinaryBytes(scan.bytes),
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
        let _ = writeln!(text, "{missing}");
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

/// Peak of the resident memory, as reported by Linux.
fn rss_bytes_max() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes * 1024)
}
