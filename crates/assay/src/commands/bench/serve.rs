//! `assay bench serve` and `assay bench one`: the child processes of a comparison.

use std::io::{stdin, stdout};

use anyhow::bail;
use assay_bench::instructions::{Once, once};
use assay_bench::registry::Section;
use assay_bench::serve::serve;
use assay_studies::{sections, sections_of};

use crate::Outcome;
use crate::cli::{BenchOneArguments, BenchServeArguments};
use crate::commands::run::find_kind;
use crate::output;

pub(super) fn run(arguments: &BenchServeArguments) -> anyhow::Result<Outcome> {
    let sections = find_sections(arguments)?;
    serve(&sections, arguments.extent.into(), stdin().lock(), stdout().lock())?;
    Ok(Outcome::Good)
}

pub(super) fn one(arguments: &BenchOneArguments) -> anyhow::Result<Outcome> {
    let sections = find_sections(&arguments.of)?;
    let order = Once {
        benchmark: arguments.benchmark.clone(),
        alternative: arguments.alternative.clone(),
        operations: arguments.operations,
        extent: arguments.of.extent.into(),
    };
    output::print_json(&once(&sections, &order)?)?;
    Ok(Outcome::Good)
}

fn find_sections(arguments: &BenchServeArguments) -> anyhow::Result<Vec<Section>> {
    match &arguments.plan {
        None => Ok(sections()),
        Some(name) => match find_kind(name)? {
            Some(plan) => Ok(sections_of(&plan, &output::complain)?),
            None => bail!("{name} is no plan of benchmarks"),
        },
    }
}
