//! `assay bench FILTER`.

use anyhow::bail;
use assay_bench::registry::Filter;
use assay_bench::run::{RunOptions, run as measure};
use assay_bench::{report, table};

use super::progress::RunBar;
use crate::Outcome;
use crate::cli::MeasureArguments;
use crate::commands::stop_flag;
use crate::output;

pub(super) fn run(arguments: &MeasureArguments) -> anyhow::Result<Outcome> {
    let options = RunOptions {
        plan: None,
        extent: arguments.extent.into(),
        rounds: arguments.rounds,
        filter: Filter::new(arguments.filter.clone()),
        out_dir: None,
        resume: false,
        rerun: rerun(arguments),
        software: super::software(),
        counter: super::counter(arguments.instructions, None)?,
        plan_source: String::new(),
    };
    let bar = RunBar::stopped_by(stop_flag());
    bar.warn();
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

fn rerun(arguments: &MeasureArguments) -> String {
    let mut words = vec!["assay bench".to_owned()];
    words.extend(arguments.filter.iter().map(|filter| format!("'{filter}'")));
    let extent = clap::ValueEnum::to_possible_value(&arguments.extent);
    words.extend(extent.map(|extent| format!("--extent {}", extent.get_name())));
    words.extend(arguments.instructions.then(|| "--instructions".to_owned()));
    words.extend(arguments.rounds.map(|rounds| format!("--rounds {rounds}")));
    words.join(" ")
}
