//! `assay machine`.

use assay_bench::counters;
use assay_lab::survey::{BackendSpeed, Effort, SurveyOptions, survey};
use assay_secp::Backend;

use crate::Outcome;
use crate::bar::Bar;
use crate::cli::MachineArguments;
use crate::output;

pub(crate) fn run(arguments: &MachineArguments) -> anyhow::Result<Outcome> {
    let options = SurveyOptions {
        dir: arguments.dir.clone(),
        effort: match (arguments.quick, arguments.thorough) {
            (true, _) => Effort::Quick,
            (false, true) => Effort::Thorough,
            (false, false) => Effort::Default,
        },
        counters: counters::available(),
        backends: backends(),
        software: super::bench::software(),
        command: crate::invocation::rerun(),
    };
    let bar = Bar::new("measuring [{bar:25}] {percent} %  ETA {eta}");
    let record = survey(&options, &|share| bar.set((share * 1000.0) as u64, 1000));
    drop(bar);
    output::print_as(arguments.json, &record, || record.text())?;
    Ok(Outcome::Good)
}

/// Time of a signature with each backend; unsupported backends come last.
fn backends() -> Vec<BackendSpeed> {
    let used = assay_engine::backend_name();
    let speed = |backend: Backend, ns_per_signature: Option<f64>| {
        let name = backend.name();
        BackendSpeed { name, is_used: name == used, ns_per_signature }
    };
    let measured = Backend::measure(super::threads(0));
    let mut all: Vec<BackendSpeed> =
        measured.iter().map(|one| speed(one.backend, Some(one.ns_per_signature))).collect();
    all.extend(Backend::all().filter(|one| !one.available()).map(|one| speed(one, None)));
    all
}
