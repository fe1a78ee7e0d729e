//! `assay report`.

use assay_bench::{report as bench_report, table};
use assay_lab::{admission, report, results};
use assay_report::ResultsFile;

use crate::cli::ReportArguments;
use crate::{Outcome, output};

pub(crate) fn run(arguments: &ReportArguments) -> anyhow::Result<Outcome> {
    let file = ResultsFile::read(&arguments.dir.join(results::FILE))?;
    if file.is_of_benchmarks() {
        let results = bench_report::parse(file)?;
        bench_report::write_all(&results, &arguments.dir)?;
        print(arguments, &results, || table::terminal(&results))?;
    } else if file.is_of(admission::KIND) {
        let results = admission::parse(file)?;
        admission::write_all(&results, &arguments.dir)?;
        print(arguments, &results, || admission::terminal(&results))?;
    } else {
        let results = results::parse(file)?;
        report::write_all(&results, &arguments.dir)?;
        print(arguments, &results, || report::terminal(&results))?;
    }
    output::complain(&format!("report: {}", arguments.dir.join("report.html").display()));
    Ok(Outcome::Good)
}

fn print<T: serde::Serialize>(
    arguments: &ReportArguments,
    results: &T,
    text: impl Fn() -> String,
) -> anyhow::Result<()> {
    if arguments.json { output::print_json(results) } else { output::print(&text()) }
}
