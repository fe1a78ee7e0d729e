//! Figures of indexes next to their nodes.
//!
//! Rates are of service time: from the later of two times, when the block became the node's tip and when its predecessor was
//! indexed, to the announcement of the block. Rates with the node are of the time from sending the block, and are those to compare
//! between programs that divide the work differently.

use assay_report::record::{Figure, Record, Unit};
use assay_report::stats::median_of;

use super::series::{self, cases};
use crate::results::{IndexPhase, IndexRun, Results, Run};

fn phase_of<'a>(run: &'a Run, name: &str) -> Option<&'a IndexPhase> {
    let index = run.index.as_ref()?;
    if name == "total" {
        return Some(&index.total);
    }
    index.phases.iter().find(|phase| phase.name == name)
}

/// Inputs per second of node and index together; the phase `total` is the sum of measured phases.
pub(super) fn with_node_inputs_per_s(runs: &[&Run], phase: &str) -> Option<f64> {
    let phases = runs.iter().filter_map(|run| phase_of(run, phase));
    median_of(phases.map(|phase| phase.pair_inputs_per_s)).filter(|value| *value > 0.0)
}

/// Adds the figures of each phase, and of each index at the end of its run.
pub(super) fn add(results: &Results, record: &mut Record) {
    let all = series::all(results);
    for (name, case) in cases(results) {
        for series in &all {
            for (run, round) in series.rounds() {
                let Some(phase) = phase_of(run, &name) else { continue };
                record.add((&series.label, &case, round), &figures(phase));
            }
        }
    }
    for series in &all {
        for (run, round) in series.rounds() {
            let Some(index) = &run.index else { continue };
            record.add((&series.label, "", round), &end(index));
            record.set(
                &format!("index | {}", run.id),
                format!("{}, protocol {}", index.server, index.protocol),
            );
        }
    }
}

fn figures(phase: &IndexPhase) -> [Figure<'_>; 14] {
    let rate = |name, value: f64| (name, Unit::PerSecond, Some(value).filter(|rate| *rate > 0.0));
    let time = |name, seconds| (name, Unit::Seconds, Some(seconds));
    let disk = |of: Option<u64>| of.map(|bytes| bytes as f64);
    [
        rate("index | inputs", phase.inputs_per_s),
        rate("index | inputs, with the node", phase.pair_inputs_per_s),
        rate("index | transactions", phase.tx_per_s),
        rate("index | transactions, with the node", phase.pair_tx_per_s),
        rate("index | outputs", phase.outputs_per_s),
        rate("index | MiB", phase.mib_per_s),
        rate("index | script hashes", phase.script_hashes_per_s),
        rate("index | script hashes, with the node", phase.pair_script_hashes_per_s),
        time("index | service time", phase.seconds),
        time("index | service time, with the node", phase.pair_s),
        time("index | queue", phase.queue_s),
        time("index | longest lag", phase.lag_s_max),
        ("disk | index, read", Unit::Bytes, disk(phase.disk.map(|disk| disk.read_bytes))),
        ("disk | index, written", Unit::Bytes, disk(phase.disk.map(|disk| disk.written_bytes))),
    ]
}

fn end(index: &IndexRun) -> Vec<Figure<'_>> {
    let size = |name, size: Option<u64>| (name, Unit::Bytes, size.map(|bytes| bytes as f64));
    let number = |name, number: u64| (name, Unit::Count, Some(number as f64));
    let mut figures = vec![
        size("index at the end | on disk", index.index_bytes),
        size("index at the end | node on disk", index.node_bytes),
        size("index at the end | peak memory", index.rss_peak_bytes),
        size("index at the end | written", index.written_bytes),
        ("index at the end | lag", Unit::Seconds, index.lag_end_s),
        ("index at the end | CPU time", Unit::Seconds, index.cpu_s),
    ];
    if let Some(ledger) = &index.ledger {
        figures.extend([
            number("index at the end | scripts compared", ledger.scripts),
            number("index at the end | history entries", ledger.history),
            number("index at the end | unspent", ledger.unspent),
            number("index at the end | differences", ledger.differences),
            number("index at the end | rejected", ledger.refused),
        ]);
    }
    figures.extend(index.timeouts.map(|timeouts| number("index at the end | timeouts", timeouts)));
    figures
}
