//! `assay bench agreement`.

use assay_bench::agreement::{Options, Report, run as compare};

use super::progress::Bar;
use crate::Outcome;
use crate::cli::BenchAgreementArguments;

pub(super) fn run(arguments: &BenchAgreementArguments) -> anyhow::Result<Outcome> {
    let BenchAgreementArguments { target, cases, seed, .. } = arguments;
    let options = Options { target: target.clone(), cases: *cases, seed: *seed };
    let bar = Bar::new();
    let report = compare(&options, &bar)?;
    drop(bar);
    super::print(&report, arguments.json, Report::text)?;
    Ok(if report.agrees() { Outcome::Good } else { Outcome::Negative })
}
