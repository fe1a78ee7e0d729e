//! `assay bench signatures`.

use anyhow::bail;
use assay_bench::signatures::{Backend, Options, Report, run as measure};

use super::progress::Bar;
use crate::Outcome;
use crate::cli::BenchSignaturesArguments;

pub(super) fn run(arguments: &BenchSignaturesArguments) -> anyhow::Result<Outcome> {
    let backend = match arguments.backend.as_deref() {
        None => Backend::fastest(),
        Some(name) => match Backend::by_name(name) {
            Some(backend) if backend.available() => backend,
            Some(_) => bail!("this processor does not run the backend {name}"),
            None => {
                let names: Vec<&str> = Backend::all().map(Backend::name).collect();
                bail!("unknown backend {name:?}; there are {}", names.join(", "))
            }
        },
    };
    let bar = Bar::new();
    bar.warn();
    let BenchSignaturesArguments { batch, rounds, seed, .. } = *arguments;
    let report = measure(&Options { batch, rounds, backend, seed }, &bar)?;
    drop(bar);
    super::print(&report, arguments.json, Report::text)?;
    Ok(Outcome::Good)
}
