//! `assay report`.

use assay_bench::{report as bench_report, table};
use assay_lab::{report, results};

use crate::cli::ReportArguments;
use crate::{Outcome, output};

pub(crate) fn run(arguments: &ReportArguments) -> anyhow::Result<Outcome> {
    if bench_report::is_in(&arguments.dir) {
        return benchmarks(arguments);
    }
    let results = results::load(&arguments.dir)?;
    report::write_all(&results, &arguments.dir)?;
    if arguments.json {
        output::print_json(&results)?;
    } else {
        output::print(&report::terminal(&results))?;
    }
    output::complain(&format!("report: {}", arguments.dir.join("report.html").display()));
    Ok(Outcome::Good)
}

/// The same for results of benchmarks.
fn benchmarks(arguments: &ReportArguments) -> anyhow::Result<Outcome> {
    let results = bench_report::load(&arguments.dir)?;
    bench_report::write_all(&results, &arguments.dir)?;
    if arguments.json {
        output::print_json(&results)?;
    } else {
        output::print(&table::terminal(&results))?;
    }
    output::complain(&format!("report: {}", arguments.dir.join("report.html").display()));
    Ok(Outcome::Good)
}
