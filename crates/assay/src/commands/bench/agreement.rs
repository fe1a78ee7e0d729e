//! `assay bench agreement`.

use assay_bench::agreement::{AgreementError, Options, Report, run as compare};

use super::progress::Bar;
use crate::Outcome;
use crate::cli::BenchAgreementArguments;
use crate::commands::stop_flag;

pub(super) fn run(arguments: &BenchAgreementArguments) -> anyhow::Result<Outcome> {
    let BenchAgreementArguments { target, cases, seed, .. } = arguments;
    let options = Options { target: target.clone(), cases: *cases, seed: *seed };
    let bar = Bar::new();
    let report = match compare(&options, &bar, &stop_flag()) {
        Err(AgreementError::Interrupted) => return Ok(Outcome::Interrupted),
        other => other?,
    };
    drop(bar);
    super::print(&report, arguments.json, Report::text)?;
    Ok(if report.agrees() { Outcome::Good } else { Outcome::Negative })
}
