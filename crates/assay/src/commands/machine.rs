//! `assay machine`.

use assay_bench::counters;
use assay_lab::survey::{SurveyOptions, survey};

use crate::Outcome;
use crate::cli::MachineArguments;
use crate::output;

pub(crate) fn run(arguments: &MachineArguments) -> anyhow::Result<Outcome> {
    let options = SurveyOptions {
        dir: arguments.dir.clone(),
        quick: arguments.quick,
        counters: counters::available(),
    };
    let survey = survey(&options);
    if arguments.json {
        output::print_json(&survey)?;
    } else {
        output::print(&survey.text())?;
    }
    Ok(Outcome::Good)
}
