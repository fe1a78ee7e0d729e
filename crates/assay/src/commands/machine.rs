//! `assay machine`.

use assay_bench::counters;
use assay_bench::signatures::Backend;
use assay_lab::survey::{BackendSpeed, SurveyOptions, survey};

use crate::Outcome;
use crate::cli::MachineArguments;
use crate::output;

pub(crate) fn run(arguments: &MachineArguments) -> anyhow::Result<Outcome> {
    let options = SurveyOptions {
        dir: arguments.dir.clone(),
        quick: arguments.quick,
        counters: counters::available(),
        backends: backends(),
    };
    let survey = survey(&options);
    if arguments.json {
        output::print_json(&survey)?;
    } else {
        output::print(&survey.text())?;
    }
    Ok(Outcome::Good)
}

/// What a signature takes with each backend; those that this machine does not run come last.
fn backends() -> Vec<BackendSpeed> {
    let used = assay_engine::backend_name();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let speed = |backend: Backend, ns_per_signature: Option<f64>| {
        let name = backend.name();
        BackendSpeed { name, is_used: name == used, ns_per_signature }
    };
    let measured = Backend::measure(threads);
    let mut all: Vec<BackendSpeed> =
        measured.iter().map(|one| speed(one.backend, Some(one.ns_per_signature))).collect();
    all.extend(Backend::all().filter(|one| !one.available()).map(|one| speed(one, None)));
    all
}
