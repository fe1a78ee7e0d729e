//! Results of experiments as records: times of alternatives, and their ratios.

use std::path::Path;

use assay_lab::machine::{Software, new_record};
use assay_report::record::{Record, Unit};

use crate::conditions::Conditions;
use crate::harness::Row;

/// A record without figures, with warnings about the machine. The caller of the experiment adds its software and command.
pub fn record(kind: &str) -> Record {
    let notes = Conditions::now().warnings;
    Record { notes, ..new_record(kind, &Software::default(), "", Path::new(".")) }
}

pub fn add_row(record: &mut Record, row: &Row) {
    for figures in &row.figures {
        for (metric, samples_ns) in
            [("time", &figures.samples_ns), ("CPU time", &figures.samples_cpu_ns)]
        {
            let seconds: Vec<f64> = samples_ns.iter().map(|ns| ns / 1e9).collect();
            record.add_rounds((&row.name, &figures.name), (metric, Unit::Seconds), &seconds);
        }
    }
}

/// Adds the time of `above` over that of `below`, by pairs of the same round, if both were measured.
pub fn add_ratio(record: &mut Record, row: &Row, above: &str, below: &str) {
    let case = format!("{above} / {below}");
    for (metric, ratio) in
        [(TIMES, row.ratio(above, below)), (CPU_TIMES, row.cpu_ratio(above, below))]
    {
        if let Some(ratio) = ratio {
            record.add_interval((&row.name, &case), (metric, Unit::Ratio), &ratio);
        }
    }
}

pub const TIMES: &str = "ratio of times";
pub const CPU_TIMES: &str = "ratio of CPU times";
