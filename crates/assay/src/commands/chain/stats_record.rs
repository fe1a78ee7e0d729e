//! Record of `assay chain stats`, and its CSV.

use std::fmt::Write;

use assay_lab::machine::utc_now;
use assay_report::number::count as group;
use assay_report::record::{Figure, Outcome, Record, Unit, bytes, count};
use assay_stats::{Counts, OutputKind, RangeRow};
use serde::Serialize;

use super::rpc::{RpcFigures, Speed};
use super::tables::{add_count_names, add_counts};

/// Output of `--json`.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) schema: u32,
    pub(super) chain: &'static str,
    pub(super) first_height: u32,
    pub(super) last_height: u32,
    /// Last height of the chain, which may be above the last of `--heights`.
    pub(super) chain_last_height: u32,
    pub(super) tip_hash: String,
    pub(super) files: usize,
    pub(super) file_bytes: u64,
    pub(super) is_obfuscated: bool,
    pub(super) stale_blocks: usize,
    pub(super) duplicates: usize,
    pub(super) unconnected: usize,
    pub(super) stray_places: usize,
    /// A transaction with more inputs than this has many.
    pub(super) many_inputs: u32,
    pub(super) total: Counts,
    /// Phases of a forged chain.
    pub(super) phases: Vec<PhaseRow>,
    pub(super) ranges: Vec<RangeRow>,
    pub(super) damaged_blocks: u64,
    /// `None` without a ledger.
    pub(super) ledger: Option<Check>,
    pub(super) speed: Speed,
    /// `None` unless requested.
    pub(super) rpc: Option<RpcFigures>,
}

/// Sums over a phase of a forged chain.
#[derive(Debug, Serialize)]
pub(super) struct PhaseRow {
    pub(super) phase: String,
    #[serde(flatten)]
    pub(super) range: RangeRow,
}

/// Result of a comparison with a ledger.
#[derive(Debug, Default, Serialize)]
pub(super) struct Check {
    pub(super) equal: bool,
    pub(super) blocks: u64,
    pub(super) differences: Vec<String>,
    pub(super) difference_count: u64,
}

/// Inputs are without the coinbases'.
pub(super) fn record(report: &Report) -> Record {
    let total = &report.total;
    let heights = format!("height {} to {}", report.first_height, report.last_height);
    let mut record = Record {
        kind: "chain stats".to_owned(),
        schema: assay_report::record::SCHEMA,
        created: utc_now(),
        title: format!("Statistics of {}", report.chain),
        headline: format!(
            "{} blocks of {}, {heights}: {} transactions, {} SegWit.",
            group(total.blocks),
            report.chain,
            group(total.txs),
            percent(total.segwit_tx_share()),
        ),
        ..Record::default()
    };
    let obfuscated = if report.is_obfuscated { ", obfuscated" } else { "" };
    let files = format!(
        "{} with {} bytes{obfuscated}; {} stale blocks, {} copies, {} unconnected, {} damaged places",
        report.files,
        group(report.file_bytes),
        report.stale_blocks,
        report.duplicates,
        report.unconnected,
        report.stray_places
    );
    let speed = &report.speed;
    let speed = format!(
        "{:.1} MB/s, {:.0} blocks/s on {} threads, {:.3} s with the search for headers",
        speed.mb_per_s, speed.blocks_per_s, speed.threads, speed.seconds
    );
    let unit = unit(report);
    for (name, value) in [
        ("tip", report.tip_hash.clone()),
        ("files", files),
        ("output value", format!("{} {unit}", coins(total.output_value))),
        ("of it coinbases", format!("{} {unit}", coins(total.coinbase_value))),
        ("many inputs", format!("more than {}", report.many_inputs)),
        ("speed", speed),
    ] {
        record.set(name, value);
    }
    record.add(("chain", "", None), &figures(total));
    for row in &report.phases {
        record.add(("chain", &row.phase, None), &figures(&row.range.counts));
    }
    for RangeRow { first, last, counts } in &report.ranges {
        record.add(("chain", &format!("heights {first} to {last}"), None), &figures(counts));
    }
    for kind in OutputKind::ALL {
        let of_kind = total.of_kind(kind);
        let share = 100.0 * of_kind.outputs as f64 / total.outputs.max(1) as f64;
        let figures = [
            ("share of the outputs", Unit::Percent, Some(share)),
            count("number", of_kind.outputs),
            ("satoshi", Unit::Count, Some(of_kind.value as f64)),
        ];
        record.add(("outputs", kind.name(), None), &figures);
    }
    add_curves(report, &mut record);
    check(report, &mut record);
    record
}

fn check(report: &Report, record: &mut Record) {
    let damaged = report.damaged_blocks;
    let failure = (damaged > 0).then(|| format!("{damaged} blocks could not be counted"));
    record.check("blocks are whole", Outcome::of(report.total.blocks, failure));
    if let Some(check) = &report.ledger {
        let failure = (!check.equal).then(|| {
            let differences = check.difference_count;
            format!("DIFFERS from the ledger: {differences} differences in {} blocks", check.blocks)
        });
        record.check("counts equal the ledger", Outcome::of(check.blocks, failure));
    }
    if let Some(rpc) = &report.rpc {
        let failure = (!rpc.equal).then(|| rpc.differences.join("; "));
        record.check("counts equal those by RPC", Outcome::of(rpc.blocks, failure));
        let by_rpc = format!(
            "{:.1} MB/s, {:.0} blocks/s, {:.3} s for {} of {} blocks; block files are {:.1} times as fast",
            rpc.speed.mb_per_s,
            rpc.speed.blocks_per_s,
            rpc.speed.seconds,
            rpc.blocks,
            report.total.blocks,
            rpc.ratio
        );
        record.set("by RPC", by_rpc);
    }
}

fn figures(counts: &Counts) -> [Figure<'static>; 12] {
    let percent = |share: Option<f64>| share.map(|share| 100.0 * share);
    [
        count("blocks", counts.blocks),
        bytes("size", counts.bytes),
        bytes("stripped", counts.stripped_bytes),
        count("weight", counts.weight),
        count("transactions", counts.txs),
        count("inputs", counts.inputs),
        count("outputs", counts.outputs),
        ("SegWit transactions", Unit::Percent, percent(counts.segwit_tx_share())),
        ("SegWit inputs", Unit::Percent, percent(counts.segwit_input_share())),
        count("many inputs, SegWit", counts.many_input_segwit_txs),
        count("many inputs, legacy", counts.many_input_legacy_txs),
        count("most inputs", counts.largest_tx_inputs),
    ]
}

/// Lines over the centres of the ranges.
fn add_curves(report: &Report, record: &mut Record) {
    type Value<'a> = &'a dyn Fn(&Counts) -> Option<f64>;
    let hundred = |share: Option<f64>| share.map(|share| share * 100.0);
    let mut add = |label: &str, metric: &str, unit: Unit, value: Value<'_>| {
        let row = |range: &RangeRow| {
            let middle = f64::midpoint(f64::from(range.first), f64::from(range.last));
            [("height", Unit::Count, Some(middle)), (metric, unit, value(&range.counts))]
        };
        let rows: Vec<_> = report.ranges.iter().map(row).collect();
        record.add_series((label, "", None), &rows);
    };
    let share = "SegWit share";
    add("of transactions", share, Unit::Percent, &|counts| hundred(counts.segwit_tx_share()));
    add("of inputs", share, Unit::Percent, &|counts| hundred(counts.segwit_input_share()));
    let many = "transactions with many inputs";
    add("SegWit", many, Unit::Count, &|counts| Some(counts.many_input_segwit_txs as f64));
    add("legacy", many, Unit::Count, &|counts| Some(counts.many_input_legacy_txs as f64));
    let block = "in a block";
    add("inputs", block, Unit::Count, &|counts| Some(per_block(counts.inputs, counts)));
    add("outputs", block, Unit::Count, &|counts| Some(per_block(counts.outputs, counts)));
    let kinds = OutputKind::ALL.into_iter();
    for kind in kinds.filter(|kind| report.total.of_kind(*kind).outputs > 0) {
        add(kind.name(), "share of the outputs", Unit::Percent, &|counts| {
            let share = counts.of_kind(kind).outputs as f64 / counts.outputs as f64;
            (counts.outputs > 0).then_some(share * 100.0)
        });
    }
}

/// CSV with one row per range.
pub(super) fn csv(report: &Report) -> String {
    let mut out = String::from("first_height,last_height,blocks");
    add_count_names(&mut out);
    out.push_str(",segwit_tx_share,segwit_input_share\n");
    let share = |share: Option<f64>| share.map_or_else(String::new, |share| format!("{share:.6}"));
    for RangeRow { first, last, counts } in &report.ranges {
        // Writing to a string cannot fail.
        let _ = write!(out, "{first},{last},{}", counts.blocks);
        add_counts(counts, &mut out);
        let (txs, inputs) = (counts.segwit_tx_share(), counts.segwit_input_share());
        let _ = writeln!(out, ",{},{}", share(txs), share(inputs));
    }
    out
}

fn per_block(count: u64, counts: &Counts) -> f64 {
    count as f64 / counts.blocks.max(1) as f64
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), |share| format!("{:.1} %", share * 100.0))
}

/// Name of the currency unit.
fn unit(report: &Report) -> &'static str {
    if report.chain.starts_with("bch") { "BCH" } else { "BTC" }
}

/// Formats satoshi as a decimal number of coins.
fn coins(value: i128) -> String {
    const COIN: u128 = 100_000_000;
    let sign = if value < 0 { "-" } else { "" };
    let size = value.unsigned_abs();
    format!("{sign}{}.{:08}", size / COIN, size % COIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_people() {
        assert_eq!(coins(-150_000_001), "-1.50000001");
        assert_eq!((percent(None), percent(Some(0.125))), ("-".to_owned(), "12.5 %".to_owned()));
    }
}
