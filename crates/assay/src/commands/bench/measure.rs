//! `assay bench FILTER` and `assay bench list`.

use anyhow::bail;
use assay_bench::registry::{Filter, benchmarks};
use assay_bench::run::{RunOptions, run as measure};
use assay_bench::suite::Benchmark;
use assay_bench::{report, table};
use serde_json::json;

use super::progress::{RunBar, warn};
use crate::Outcome;
use crate::cli::{BenchListArguments, MeasureArguments};
use crate::commands::stop_flag;
use crate::invocation::rerun;
use crate::output;

pub(super) fn run(arguments: &MeasureArguments) -> anyhow::Result<Outcome> {
    let options = RunOptions {
        plan: None,
        extent: arguments.extent,
        rounds: arguments.rounds,
        filter: Filter::new(arguments.filter.clone()),
        out_dir: None,
        resume: false,
        rerun: rerun(),
        software: super::software(),
        counter: super::counter(arguments.instructions, None)?,
        plan_source: Vec::new(),
    };
    let bar = RunBar::stopped_by(stop_flag());
    warn();
    let sections = super::caller(&options.software).sections()?;
    let results = measure(&sections, &options, &bar)?;
    drop(bar);
    if results.benchmarks.is_empty() && results.failures.is_empty() {
        bail!("no benchmark is called that; `assay bench list` shows them");
    }
    if let Some(path) = &arguments.out {
        report::write_json(&results, path)?;
    }
    if arguments.json {
        output::print_json(&results)?;
    } else if arguments.csv {
        output::print(&table::csv(&results))?;
    } else if arguments.markdown {
        output::print(&table::markdown(&results))?;
    } else {
        output::print(&table::terminal(&results))?;
    }
    Ok(super::outcome(&results))
}

pub(super) fn list(arguments: &BenchListArguments) -> anyhow::Result<Outcome> {
    let sections = super::caller(&super::software()).sections()?;
    let filter = Filter::new(arguments.filter.clone());
    let all = benchmarks(&sections, arguments.extent, &filter)?;
    if arguments.json {
        let entry = |(section, benchmark): &(&'static str, Benchmark<'_>)| {
            let Benchmark { name, series, size, unit, .. } = benchmark;
            json!({ "name": name, "section": section, "series": series, "size": size, "unit": unit })
        };
        output::print_json(&all.iter().map(entry).collect::<Vec<_>>())?;
    } else {
        let lines = all.iter().map(|(_, benchmark)| format!("{}\n", benchmark.name));
        output::print(&lines.collect::<String>())?;
    }
    Ok(if all.is_empty() { Outcome::Negative } else { Outcome::Good })
}
