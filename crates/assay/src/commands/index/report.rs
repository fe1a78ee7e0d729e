//! Record of an index build.

use std::time::Duration;

use assay_electrum::index::{Counts, Usage};
use assay_forge::Ledger;
use assay_report::record::{Figure, Record, Unit, bytes, count};

use super::progress::Step;

/// Adds the rates of the build, of each phase of a forged chain, and the size of the index before and after.
pub(super) fn add_figures(
    record: &mut Record,
    (steps, elapsed): (&[Step], Duration),
    (before, after): (&Usage, &Usage),
    ledger: Option<&Ledger>,
) {
    let mut total = Counts::default();
    for step in steps {
        total += step.counts;
    }
    for (name, counts, elapsed) in ledger.map_or_else(Vec::new, |ledger| phases(ledger, steps)) {
        record.add(("index", &name, None), &rates(&counts, elapsed));
    }
    record.add(("index", "all", None), &rates(&total, elapsed));
    let on_disk = |usage: &Usage| usage.run_bytes + usage.record_bytes;
    let added = on_disk(after).saturating_sub(on_disk(before));
    let written = after.bytes_written - before.bytes_written;
    let ratio = |a: u64, b: u64| (b > 0).then(|| a as f64 / b as f64);
    let figures = [
        bytes("runs", after.run_bytes),
        count("number of runs", after.runs),
        bytes("headers, txids and positions", after.record_bytes),
        count("entries of scripts", after.rows[0]),
        count("entries of spent outputs", after.rows[1]),
        count("entries of transactions", after.rows[2]),
        // Each entry of scripts is an input or a spendable output.
        ("for each input and output", Unit::Bytes, ratio(on_disk(after), after.rows[0])),
        ("written for each byte kept", Unit::Ratio, ratio(written, added)),
    ];
    record.add(("index", "on disk", None), &figures);
}

fn rates(counts: &Counts, elapsed: Duration) -> [Figure<'static>; 8] {
    let elapsed_s = elapsed.as_secs_f64();
    let rate = |metric, count: u64| (metric, Unit::PerSecond, Some(count as f64 / elapsed_s));
    [
        count("blocks", counts.blocks),
        count("inputs", counts.inputs),
        count("outputs", counts.outputs),
        bytes("size", counts.bytes),
        ("time", Unit::Seconds, Some(elapsed_s)),
        rate("inputs, rate", counts.inputs),
        rate("outputs, rate", counts.outputs),
        rate("transactions, rate", counts.txs),
    ]
}

/// Sums of the blocks and their time, by phase.
fn phases(ledger: &Ledger, steps: &[Step]) -> Vec<(String, Counts, Duration)> {
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
    sums
}
