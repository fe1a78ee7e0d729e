//! The folder of published results: `MACHINE/PLAN/`, each with `results.json.gz`, `report.md` and its charts.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use assay_bench::report as bench_report;
use assay_bench::results::BenchResults;
use assay_lab::builds::Cache;
use assay_lab::machine::Machine;
use assay_lab::results::{self, Results};
use assay_report::{Finding, Page, Question, ResultsFile, atomic_file};
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::commands::run::steps::StepsResults;

const RESULTS: &str = "results.json.gz";
const REPORT: &str = "report.md";
const CHARTS: &str = "charts";

pub(super) enum Stored {
    Chain(Box<Results>),
    Benchmarks(Box<BenchResults>),
    Steps(Box<StepsResults>),
}

impl Stored {
    /// Results of a run, without the paths of its output folder, of this program and of the builds.
    pub(super) fn of_run(dir: &Path) -> anyhow::Result<Self> {
        let path = StepsResults::file_in(dir).unwrap_or_else(|| dir.join(results::FILE));
        let mut file = ResultsFile::read(&path)?;
        let whole = dir.canonicalize().with_context(|| format!("cannot use {}", dir.display()))?;
        if let Some(program) = std::env::current_exe()?.to_str() {
            file.replace(program, "assay");
        }
        if let Some(builds) = Cache::of_user() {
            file.replace(&builds.root().to_string_lossy(), "builds");
        }
        file.replace(&whole.join("work").to_string_lossy(), "DIR");
        file.replace(&whole.to_string_lossy(), "DIR");
        if let Some(here) = std::env::current_dir()?.to_str().filter(|here| here.len() > 1) {
            file.replace(&format!("{here}/"), "");
        }
        let mut stored = Self::of(file)?;
        if let Self::Steps(results) = &mut stored {
            results.forget_clones();
        }
        Ok(stored)
    }

    fn read(path: &Path) -> anyhow::Result<Self> {
        Self::of(ResultsFile::read(path)?)
    }

    fn of(file: ResultsFile) -> anyhow::Result<Self> {
        if file.is_of_benchmarks() {
            return Ok(Self::Benchmarks(Box::new(bench_report::parse(file)?)));
        }
        if StepsResults::is_one(&file) {
            return Ok(Self::Steps(Box::new(StepsResults::parse(file)?)));
        }
        Ok(Self::Chain(Box::new(results::parse(file)?)))
    }

    pub(super) fn plan(&self) -> Option<&str> {
        match self {
            Self::Chain(results) => Some(&results.plan.name),
            Self::Benchmarks(results) => results.plan.as_ref().map(|plan| plan.name.as_str()),
            Self::Steps(results) => Some(&results.plan.name),
        }
    }

    pub(super) fn machine(&self) -> &Machine {
        match self {
            Self::Chain(results) => &results.machine,
            Self::Benchmarks(results) => &results.conditions.machine,
            Self::Steps(results) => &results.machine,
        }
    }

    pub(super) fn created(&self) -> &str {
        match self {
            Self::Chain(results) => &results.created,
            Self::Benchmarks(results) => &results.created,
            Self::Steps(results) => &results.created,
        }
    }

    pub(super) fn rerun(&self) -> &str {
        match self {
            Self::Chain(results) => &results.rerun,
            Self::Benchmarks(results) => &results.rerun,
            Self::Steps(results) => &results.rerun,
        }
    }

    pub(super) fn finding(&self, question: &Question) -> Option<Finding> {
        match self {
            Self::Chain(results) => assay_lab::report::finding(results, question),
            Self::Benchmarks(results) => bench_report::finding(results, question),
            Self::Steps(results) => results.finding(question),
        }
    }

    fn page(&self) -> Page {
        match self {
            Self::Chain(results) => assay_lab::report::record(results).page(),
            Self::Benchmarks(results) => bench_report::page(results),
            Self::Steps(results) => results.record().page(),
        }
    }

    fn json(&self) -> serde_json::Result<Vec<u8>> {
        match self {
            Self::Chain(results) => serde_json::to_vec(results),
            Self::Benchmarks(results) => serde_json::to_vec(results),
            Self::Steps(results) => serde_json::to_vec(results),
        }
    }

    /// Writes the results, the report and its charts into `dir`, and removes charts of an earlier report.
    pub(super) fn write(&self, dir: &Path) -> anyhow::Result<()> {
        let charts = dir.join(CHARTS);
        if charts.exists() {
            fs::remove_dir_all(&charts)
                .with_context(|| format!("cannot replace {}", charts.display()))?;
        }
        atomic_file::create_folder(&charts)?;
        let page = self.page();
        for (name, svg) in page.pictures() {
            atomic_file::write(&charts.join(name), svg.as_bytes())?;
        }
        let report = page.illustrated_markdown(CHARTS);
        atomic_file::write(&dir.join(REPORT), report.as_bytes())?;
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&self.json()?)?;
        atomic_file::write(&dir.join(RESULTS), &encoder.finish()?)?;
        Ok(())
    }
}

pub(super) struct Entry {
    pub(super) machine: String,
    pub(super) plan: String,
    pub(super) results: Stored,
}

impl Entry {
    /// Path of the report, relative to the folder of all.
    pub(super) fn report(&self) -> String {
        format!("{}/{}/{REPORT}", self.machine, self.plan)
    }
}

/// All entries in `into`, sorted by name.
pub(super) fn entries(into: &Path) -> anyhow::Result<Vec<Entry>> {
    let mut all = Vec::new();
    for machine in folders(into)? {
        for plan in folders(&into.join(&machine))? {
            let path = into.join(&machine).join(&plan).join(RESULTS);
            if path.exists() {
                let results = Stored::read(&path)?;
                all.push(Entry { machine: machine.clone(), plan, results });
            }
        }
    }
    Ok(all)
}

fn folders(dir: &Path) -> anyhow::Result<Vec<String>> {
    let listed = fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))?;
    let mut names = Vec::new();
    for entry in listed {
        let entry = entry.with_context(|| format!("cannot read {}", dir.display()))?;
        if entry.path().is_dir() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// Stores results under the machine's name; returns their folder.
pub(super) fn store(
    results: &Stored,
    into: &Path,
    machine: Option<&str>,
) -> anyhow::Result<PathBuf> {
    let plan = results.plan().context("the results are of no plan: publish a run of a plan")?;
    let default = slug(results.machine());
    let machine = machine.unwrap_or(&default);
    ensure!(is_name(machine), "--machine {machine:?}: give small letters, digits and `-`");
    ensure!(is_name(plan), "plan {plan:?} cannot be a folder: give small letters, digits and `-`");
    let dir = into.join(machine).join(plan);
    results.write(&dir)?;
    Ok(dir)
}

fn is_name(name: &str) -> bool {
    let is_fine = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !name.is_empty() && !name.starts_with('-') && name.chars().all(is_fine)
}

/// Folder name from the processor and its cores: `amd-epyc-2-cores`.
fn slug(machine: &Machine) -> String {
    let cpu = machine.cpu.as_deref().unwrap_or("unknown-processor").to_ascii_lowercase();
    let cpu = cpu.replace("(r)", "").replace("(tm)", "").replace(" cpu", "");
    let cpu = cpu.split('@').next().unwrap_or_default();
    let words: Vec<&str> =
        cpu.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    format!("{}-{}-cores", words.join("-"), machine.cores)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_machines() {
        let machine = |cpu: Option<&str>, cores| Machine {
            cpu: cpu.map(str::to_owned),
            cores,
            ..Machine::default()
        };
        for (cpu, name) in [
            (Some("AMD EPYC"), "amd-epyc-2-cores"),
            (Some("Intel(R) Xeon(R) CPU E5-2686 v4 @ 2.30GHz"), "intel-xeon-e5-2686-v4-2-cores"),
            (None, "unknown-processor-2-cores"),
        ] {
            assert_eq!(slug(&machine(cpu, 2)), name);
            assert!(is_name(name));
        }
        for bad in ["", "-a", "../a", "A b", "a/b"] {
            assert!(!is_name(bad), "{bad}");
        }
    }
}
