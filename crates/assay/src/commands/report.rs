//! `assay report`.

use assay_lab::report;

use crate::Outcome;
use crate::cli::ReportArguments;
use crate::output;

pub(crate) fn run(arguments: &ReportArguments) -> anyhow::Result<Outcome> {
    let results = report::load(&arguments.dir)?;
    report::write_all(&results, &arguments.dir)?;
    if arguments.json {
        output::print_json(&results)?;
    } else {
        output::print(&report::terminal(&results))?;
    }
    output::complain(&format!("report: {}", arguments.dir.join("report.html").display()));
    Ok(Outcome::Good)
}
