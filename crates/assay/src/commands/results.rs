//! Commands on folders of results: `assay report`, `assay compare`, `assay history`.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use assay_bench::{report as bench_report, table};
use assay_lab::compare::{
    self, CompareOptions, Comparison, Floor, Source, compare_machines, load_machines,
};
use assay_lab::history::{self, HistoryOptions};
use assay_lab::{report as lab_report, results};
use assay_report::record::Record;
use assay_report::{ResultsFile, atomic_file};

use crate::cli::{CompareArguments, HistoryArguments, ReportArguments};
use crate::{Outcome, output};

pub(crate) fn report(arguments: &ReportArguments) -> anyhow::Result<Outcome> {
    if arguments.dir.is_file() {
        return record(arguments);
    }
    let file = ResultsFile::read(&arguments.dir.join(results::FILE))?;
    if file.is_of_benchmarks() {
        let results = bench_report::parse(file)?;
        bench_report::write_all(&results, &arguments.dir)?;
        output::print_as(arguments.json, &results, || table::terminal(&results))?;
    } else {
        let results = results::parse(file)?;
        lab_report::write_all(&results, &arguments.dir)?;
        output::print_as(arguments.json, &results, || lab_report::record(&results).text())?;
    }
    output::complain(&format!("report: {}", arguments.dir.join("report.html").display()));
    Ok(Outcome::Good)
}

pub(crate) fn compare(arguments: &CompareArguments) -> anyhow::Result<Outcome> {
    let load = |path: &PathBuf| Source::load(path);
    let sources = match &arguments.machines {
        Some(dir) => load_machines(dir)?,
        None => arguments.results.iter().map(load).collect::<Result<Vec<_>, _>>()?,
    };
    let aa = arguments.aa.as_deref().map(read_floor).transpose()?;
    if let (Some(floor), Some(source)) = (&aa, sources.first())
        && !floor.is_of(&source.results.machine)
    {
        output::complain("assay: the floor was measured on another machine than the results");
    }
    let options = CompareOptions {
        baseline: arguments.baseline.clone(),
        floor: arguments.floor,
        aa,
        delta: arguments.delta,
        control_limit: arguments.control_limit,
        vary: arguments.vary.clone(),
    };
    let comparison = match &arguments.machines {
        Some(_) => compare_machines(&sources, &options)?,
        None => compare::compare(&sources, &options)?,
    };
    let of = sources.first().context("nothing is compared")?;
    let record = comparison.record(&of.results);
    print(&comparison, &record, [arguments.json, arguments.csv, arguments.markdown])?;
    if let Some(path) = &arguments.save_floor {
        save_floor(&comparison, path)?;
    }
    Ok(if comparison.is_slower() { Outcome::Negative } else { Outcome::Good })
}

/// A floor that was kept, or that of results with the same software twice.
fn read_floor(path: &Path) -> anyhow::Result<Floor> {
    if let Some(floor) = Floor::load(path)? {
        return Ok(floor);
    }
    let source = Source::load(path)?;
    let found = compare::compare(&[source], &CompareOptions::default())?.floor;
    found.with_context(|| {
        format!("{}: no valid pairs of the same software with itself there", path.display())
    })
}

fn save_floor(comparison: &Comparison, path: &Path) -> anyhow::Result<()> {
    let Some(floor) = &comparison.floor else {
        bail!("no valid pairs of the same software with itself here, so there is no floor to save");
    };
    atomic_file::write_json(path, floor)?;
    output::complain(&format!("floor: {}", path.display()));
    Ok(())
}

pub(crate) fn history(arguments: &HistoryArguments) -> anyhow::Result<Outcome> {
    let p_max = arguments.p_max;
    ensure!(p_max > 0.0 && p_max < 1.0, "--p-max {p_max}: a probability lies between 0 and 1");
    let options = HistoryOptions { p_max, size_min: arguments.size_min, phases: arguments.phases };
    let history = history::history(&arguments.dir, options)?;
    let record = history.record();
    if let Some(path) = &arguments.html {
        atomic_file::write(path, record.page().html().as_bytes())?;
        output::complain(&format!("page: {}", path.display()));
    }
    print(&record, &record, [arguments.json, arguments.csv, arguments.markdown])?;
    Ok(if record.has_passed() { Outcome::Good } else { Outcome::Negative })
}

/// Prints a value as JSON, or its record as CSV, Markdown or text.
fn print(
    value: &impl serde::Serialize,
    record: &Record,
    [is_json, is_csv, is_markdown]: [bool; 3],
) -> anyhow::Result<()> {
    match (is_csv, is_markdown) {
        (true, _) => output::print(&record.csv()),
        (false, true) => output::print(&record.page().markdown()),
        (false, false) => output::print_as(is_json, value, || record.text()),
    }
}

/// Writes the forms of an experiment's result next to its file.
fn record(arguments: &ReportArguments) -> anyhow::Result<Outcome> {
    let record = Record::load(&arguments.dir)?;
    let page = record.page();
    for (extension, text) in [("html", page.html()), ("md", page.markdown()), ("csv", record.csv())]
    {
        atomic_file::write(&arguments.dir.with_extension(extension), text.as_bytes())?;
    }
    output::complain(&format!("report: {}", arguments.dir.with_extension("html").display()));
    output::print_record(&record, arguments.json)
}
