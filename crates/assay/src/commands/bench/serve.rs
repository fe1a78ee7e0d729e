//! `assay bench serve`: the child processes of a comparison of builds.

use std::io::{stdin, stdout};

use anyhow::bail;
use assay_bench::plan::BenchPlan;
use assay_bench::serve::serve;

use crate::Outcome;
use crate::cli::BenchServeArguments;
use crate::commands::run::find_kind;

pub(super) fn run(arguments: &BenchServeArguments) -> anyhow::Result<Outcome> {
    let software = super::software();
    let caller = super::caller(&software);
    let sections = match &arguments.plan {
        None => caller.sections()?,
        Some(name) => match find_kind::<BenchPlan>(name)? {
            Some(plan) => caller.sections_of(&plan)?,
            None => bail!("{name} is no plan of benchmarks"),
        },
    };
    serve(&sections, arguments.extent.into(), stdin().lock(), stdout().lock())?;
    Ok(Outcome::Good)
}
