//! `assay history`: all results below a folder in order of time, with change points.

mod change_points;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use anyhow::{Context as _, ensure};
use assay_report::number::in_percent;
use assay_report::record::{Outcome, Record, Unit, count};
use assay_report::stats::median;

use crate::machine::utc_now;
use crate::results::{self, LoadError, Results, TargetResults};

pub use self::change_points::{ChangePoint, change_points};

const DEPTH_MAX: usize = 8;

#[derive(Debug, Clone, Copy)]
pub struct HistoryOptions {
    pub p_max: f64,
    pub size_min: f64,
    pub phases: bool,
}

impl Default for HistoryOptions {
    fn default() -> Self {
        Self { p_max: 0.001, size_min: 0.01, phases: false }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct History {
    pub folder: String,
    pub p_max: f64,
    pub size_min: f64,
    /// Series in order of their first figure.
    pub series: Vec<Series>,
    pub skipped: Vec<String>,
}

/// One figure over time: the same work, target family and machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    pub name: String,
    /// Fields that all its figures share.
    pub key: Vec<String>,
    /// Figures in order of time.
    pub points: Vec<Point>,
    /// Change points; levels in seconds.
    pub changes: Vec<ChangePoint>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    pub time: String,
    pub path: String,
    pub version: String,
    /// Median time of the valid runs, seconds.
    pub seconds: f64,
    pub min_s: f64,
    pub max_s: f64,
    pub runs: usize,
}

/// Reads every `results.json` below `folder`.
///
/// # Errors
/// When the folder cannot be read, or holds no results.
pub fn history(folder: &Path, options: HistoryOptions) -> anyhow::Result<History> {
    let mut files = Vec::new();
    find(folder, 0, &mut files).with_context(|| format!("cannot read {}", folder.display()))?;
    files.sort();
    let mut skipped = Vec::new();
    let mut loaded: Vec<(PathBuf, Results)> = Vec::new();
    for path in files {
        match results::load_file(&path) {
            Ok(results) => loaded.push((path, results)),
            Err(error) => skipped.push(why_skipped(&error)),
        }
    }
    // Times in ISO 8601 sort as text.
    loaded.sort_by(|a, b| a.1.created.cmp(&b.1.created).then_with(|| a.0.cmp(&b.0)));
    let mut series: Vec<Series> = Vec::new();
    for (path, results) in &loaded {
        add(results, path, options.phases, &mut series);
    }
    ensure!(!series.is_empty(), "no results of `assay run` under {}", folder.display());
    for one in &mut series {
        one.changes = changes(&one.points, options);
    }
    tell_apart(&mut series);
    Ok(History {
        folder: folder.display().to_string(),
        p_max: options.p_max,
        size_min: options.size_min,
        series,
        skipped,
    })
}

fn why_skipped(error: &LoadError) -> String {
    match error {
        LoadError::Json { path, .. } => {
            format!("{}: no results of a plan of a chain", path.display())
        }
        other => other.to_string(),
    }
}

/// Finds results, skipping chains and data folders.
fn find(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        if kind.is_file() && entry.file_name() == results::FILE {
            files.push(path);
        } else if kind.is_dir() && depth < DEPTH_MAX {
            // Unreadable or vanished folders hold no results.
            let _ = find(&path, depth + 1, files);
        }
    }
    Ok(())
}

fn changes(points: &[Point], options: HistoryOptions) -> Vec<ChangePoint> {
    // Logarithms make relative changes equal at every level.
    let logs: Vec<f64> = points.iter().map(|point| point.seconds.max(1e-9).ln()).collect();
    let size = (1.0 + options.size_min).ln();
    let exp = |point: ChangePoint| ChangePoint {
        before: point.before.exp(),
        after: point.after.exp(),
        ..point
    };
    change_points(&logs, options.p_max, size).into_iter().map(exp).collect()
}

fn add(results: &Results, path: &Path, phases: bool, series: &mut Vec<Series>) {
    for (number, target) in results.targets.iter().enumerate() {
        let family = family(target);
        // Several targets of one family differ by position, because names may contain versions, which change over time.
        let before = results.targets[..number].iter();
        let same = before.filter(|other| {
            other.distinct_keys == target.distinct_keys && self::family(other) == family
        });
        let family = match same.count() {
            0 => family,
            place => format!("{family} ({})", place + 1),
        };
        for seen in target.seen_shares() {
            add_figures(results, target, (&family, seen, phases), path, series);
        }
    }
}

fn family(target: &TargetResults) -> String {
    let index = target.index.as_ref().map(|index| format!("+{}", index.kind.as_str()));
    format!("{}{}", target.family, index.unwrap_or_default())
}

fn add_figures(
    results: &Results,
    target: &TargetResults,
    (family, seen, phases): (&str, f64, bool),
    path: &Path,
    series: &mut Vec<Series>,
) {
    let runs = target.valid_runs(seen);
    let chain = results.chain_of(target);
    let machine = &results.machine;
    let mut figures: BTreeMap<(usize, String), Vec<f64>> = BTreeMap::new();
    for run in &runs {
        let total = (0, "total".to_owned(), run.total.seconds);
        let measured = |name: &str| phases && results.plan.is_measured(name);
        let of_phases = run.phases.iter().enumerate().filter(|(_, phase)| measured(&phase.name));
        let all = of_phases.map(|(place, phase)| (place + 1, phase.name.clone(), phase.seconds));
        for (place, what, seconds) in std::iter::once(total).chain(all) {
            figures.entry((place, what)).or_default().push(seconds);
        }
    }
    for ((_, what), seconds) in figures {
        let key = vec![
            results.plan.name.clone(),
            family.to_owned(),
            format!("{} % pre-relayed", in_percent(seen)),
            what.clone(),
            chain.tip.clone(),
            chain.utxo_muhash.clone(),
            machine.cpu.clone().unwrap_or_default(),
            format!("{} cores", machine.cores),
            results.software.profile.clone(),
        ];
        let point = Point {
            time: results.created.clone(),
            path: path.display().to_string(),
            version: target.version.clone(),
            seconds: median(&seconds),
            min_s: seconds.iter().copied().fold(f64::MAX, f64::min),
            max_s: seconds.iter().copied().fold(0.0, f64::max),
            runs: seconds.len(),
        };
        match series.iter_mut().find(|one| one.key == key) {
            Some(one) => one.points.push(point),
            None => series.push(Series {
                name: format!(
                    "{}, {family}, {} % pre-relayed, {what}",
                    results.plan.name,
                    in_percent(seen)
                ),
                key,
                points: vec![point],
                changes: Vec::new(),
            }),
        }
    }
}

/// Distinguishes series of other chains or machines with the same name.
fn tell_apart(series: &mut [Series]) {
    for index in 1..series.len() {
        let (before, rest) = series.split_at_mut(index);
        let one = &mut rest[0];
        let base = |name: &str| name.split(" #").next().unwrap_or_default().to_owned();
        let same = before.iter().filter(|other| base(&other.name) == one.name).count();
        if same > 0 {
            one.name = format!("{} #{}", one.name, same + 1);
        }
    }
}

impl History {
    /// Record: changes in order of time, all figures, and a chart for each series.
    pub fn record(&self) -> Record {
        let mut record = Record {
            kind: "history".to_owned(),
            schema: assay_report::record::SCHEMA,
            created: utc_now(),
            command: format!("assay history {}", self.folder),
            notes: self.skipped.iter().map(|why| format!("skipped {why}")).collect(),
            ..Record::default()
        };
        record.set("largest probability of a change by chance", self.p_max);
        record.set("smallest change, percent", self.size_min * 100.0);
        let mut changes = 0;
        for one in &self.series {
            for (index, point) in one.points.iter().enumerate() {
                let case = format!("{}, {}", point.time, point.version);
                if let Some(change) = one.changes.iter().find(|change| change.index == index) {
                    changes += 1;
                    let share = 100.0 * (change.after / change.before - 1.0);
                    let figures = [
                        ("change", Unit::Percent, Some(share)),
                        ("before", Unit::Seconds, Some(change.before)),
                        ("after", Unit::Seconds, Some(change.after)),
                        ("p", Unit::Percent, Some(100.0 * change.p)),
                    ];
                    record.add((&one.name, &format!("since {case}"), None), &figures);
                }
                if record.setup.iter().all(|(_, path)| *path != point.path) {
                    record.set(&format!("results | {}", point.time), &point.path);
                }
                let time = |metric, seconds| (metric, Unit::Seconds, Some(seconds));
                let figures = [
                    time("results | median", point.seconds),
                    time("results | median, low", point.min_s),
                    time("results | median, high", point.max_s),
                    count("results | runs", point.runs as u64),
                    time("results | level", one.level(index)),
                ];
                record.add((&one.name, &case, None), &figures);
            }
            for (label, value) in [("median of runs", None), ("level", Some(()))] {
                let row = |(index, point): (usize, &Point)| {
                    let seconds = value.map_or(point.seconds, |()| one.level(index));
                    let number = count("result, in order of time", index as u64 + 1);
                    [number, (one.name.as_str(), Unit::Seconds, Some(seconds))]
                };
                let rows: Vec<_> = one.points.iter().enumerate().map(row).collect();
                record.add_series((label, "", None), &rows);
            }
        }
        let series = self.series.len();
        record.headline = format!("{changes} changes of level in {series} series.");
        let slower = self.slower().next().map(|one| format!("{} is slower", one.name));
        let check = "the last change of a series makes it no slower";
        record.check(check, Outcome::of(series as u64, slower));
        record
    }

    /// Series whose last change is an increase.
    fn slower(&self) -> impl Iterator<Item = &Series> {
        let is_up = |change: &ChangePoint| change.after > change.before;
        self.series.iter().filter(move |one| one.changes.last().is_some_and(is_up))
    }
}

impl Series {
    /// Geometric mean of the segment that contains a figure.
    fn level(&self, index: usize) -> f64 {
        let before = self.changes.iter().rev().find(|change| change.index <= index);
        let next = self.changes.iter().find(|change| change.index > index);
        match (before, next) {
            (Some(change), _) => change.after,
            (None, Some(change)) => change.before,
            (None, None) => {
                let logs: f64 = self.points.iter().map(|point| point.seconds.max(1e-9).ln()).sum();
                (logs / self.points.len().max(1) as f64).exp()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Run;
    use crate::results::fixture;

    /// Ten results; the last five are a tenth slower.
    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for number in 0..10u32 {
            let mut results = fixture::node_results();
            results.created = format!("2026-01-{:02}T00:00:00Z", number + 1);
            let factor = if number < 5 { 1.0 } else { 1.1 } + 0.001 * f64::from(number % 3);
            let slow = |run: &mut Run| run.total.seconds *= factor;
            results.targets.iter_mut().flat_map(|target| &mut target.runs).for_each(slow);
            // Folder names are not in order of time.
            let dir = folder.path().join(format!("{}", 9 - number)).join("out");
            fs::create_dir_all(&dir).expect("writable");
            let json = serde_json::to_vec(&results).expect("JSON");
            fs::write(dir.join("results.json"), json).expect("writable");
        }
        fs::write(folder.path().join("results.json"), b"{}").expect("writable");
        folder
    }

    #[test]
    fn a_step_is_found_in_every_series() {
        let folder = folder();
        let history = history(folder.path(), HistoryOptions::default()).expect("results");
        assert_eq!(history.series.len(), 4, "two targets, two shares");
        for series in &history.series {
            assert_eq!(series.points.len(), 10);
            let [change] = &series.changes[..] else { panic!("{:?}", series.changes) };
            assert_eq!(change.index, 5);
            assert!((change.after / change.before - 1.1).abs() < 0.005, "{change:?}");
        }
        assert_eq!(history.skipped.len(), 1, "{:?}", history.skipped);
        let record = history.record();
        assert!(matches!(record.outcome(), Outcome::Failed(_)), "slower");
        let count = |metric: &str| record.cells.iter().filter(|c| c.metric == metric).count();
        assert_eq!((count("change"), count("results | median")), (4, 40));
        assert!(record.page().pictures().len() > 4, "a chart for each series, and changes");
    }

    #[test]
    fn other_work_is_another_series() {
        let folder = folder();
        let mut results = fixture::node_results();
        results.chain.tip = "cc".repeat(32);
        let dir = folder.path().join("other");
        fs::create_dir_all(&dir).expect("writable");
        fs::write(dir.join("results.json"), serde_json::to_vec(&results).expect("JSON"))
            .expect("writable");
        let options = HistoryOptions { phases: true, ..HistoryOptions::default() };
        let history = history(folder.path(), options).expect("results");
        assert_eq!(history.series.len(), 2 * 4 * 6);
        assert!(history.series.iter().any(|one| one.name.ends_with("#2")));
    }

    #[test]
    fn empty_and_missing_folders() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let failure = |folder: &Path| {
            history(folder, HistoryOptions::default()).expect_err("no results").to_string()
        };
        let nothing = failure(folder.path());
        assert!(nothing.starts_with("no results of `assay run` under "), "{nothing}");
        let missing = failure(&folder.path().join("x"));
        assert!(missing.starts_with("cannot read "), "{missing}");
    }
}
