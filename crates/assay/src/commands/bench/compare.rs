//! `assay bench compare`.

use assay_bench::compare::compare;
use assay_bench::report;

use crate::Outcome;
use crate::cli::BenchCompareArguments;
use crate::output;

pub(super) fn run(arguments: &BenchCompareArguments) -> anyhow::Result<Outcome> {
    let (before, after) = (report::load(&arguments.before)?, report::load(&arguments.after)?);
    let comparison = compare(&before, &after, arguments.floor);
    if arguments.json {
        output::print_json(&comparison)?;
    } else {
        output::print(&comparison.text())?;
    }
    Ok(if comparison.is_slower() { Outcome::Negative } else { Outcome::Good })
}
