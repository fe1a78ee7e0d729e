//! Result of an experiment: one document, one schema and one renderer for all kinds.
//!
//! A [`Record`] has an envelope (how, when and where it was measured), [`Cell`]s with the figures, [`Check`]s, and perhaps
//! [`Series`] over time. Values keep their base unit; [`Unit`] formats them.
//!
//! A metric `GROUP | NAME` belongs to a table of its own, which only pages and CSV have; so does a parameter of that form.

mod charts;
mod render;
mod unit;

use std::fmt::Display;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::atomic_file::{self, WriteError};
use crate::machine::{Machine, Software};
use crate::stats::ratio::Ratio;
use crate::{LoadError, ResultsFile};

pub use self::unit::{Summary, Unit};

/// Version of the document, common to all kinds.
pub const SCHEMA: u32 = 1;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Name of the experiment: `crash`.
    pub kind: String,
    pub schema: u32,
    /// ISO 8601 in UTC.
    pub created: String,
    pub software: Software,
    pub machine: Machine,
    /// Command line that repeats the run.
    pub command: String,
    /// Environment variables with an effect on the run.
    pub environment: Vec<(String, String)>,
    /// Parameters and subjects, in order.
    pub setup: Vec<(String, String)>,
    /// Title of the page, if not the kind.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// Paragraph below it, if not the command line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub summary: String,
    pub headline: String,
    pub cells: Vec<Cell>,
    pub checks: Vec<Check>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<Series>,
    /// Named ranges of the x axis of charts over the height: name, begin, end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bands: Vec<(String, f64, f64)>,
    pub notes: Vec<String>,
}

/// One figure. Cells that differ only in their round are values of the same quantity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    pub target: String,
    /// Scenario of the target; empty if there is only one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub case: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round: Option<u32>,
    pub metric: String,
    pub value: f64,
    pub unit: Unit,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    pub name: String,
    pub outcome: Outcome,
}

/// Outcome of a check. Only comparisons that took place make a pass, hence its count cannot be zero.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Number of comparisons.
    Passed(NonZeroU64),
    /// First difference.
    Failed(String),
    NotRun(String),
}

/// A cell without its place: metric, unit and value.
pub type Figure<'a> = (&'a str, Unit, Option<f64>);

pub const fn count(metric: &str, count: u64) -> Figure<'_> {
    (metric, Unit::Count, Some(count as f64))
}

pub const fn bytes(metric: &str, bytes: u64) -> Figure<'_> {
    (metric, Unit::Bytes, Some(bytes as f64))
}

/// Rows over time, for one target and case. Charts draw all columns against the first one; of several rounds the first is drawn
/// full and the others thin.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    pub target: String,
    pub case: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round: Option<u32>,
    pub columns: Vec<(String, Unit)>,
    /// A value for each column, in order of time.
    pub rows: Vec<Vec<Option<f64>>>,
}

/// A file that is no readable record.
#[derive(Debug, thiserror::Error)]
#[error("{} is no record of an experiment that this program reads; {advice}", path.display())]
pub struct RecordError {
    pub path: PathBuf,
    pub advice: String,
    pub source: LoadError,
}

impl Outcome {
    /// Outcome of `compared` comparisons.
    pub fn of(compared: u64, failure: Option<String>) -> Self {
        match (failure, NonZeroU64::new(compared)) {
            (Some(failure), _) => Self::Failed(failure),
            (None, Some(compared)) => Self::Passed(compared),
            (None, None) => Self::NotRun("nothing was compared".to_owned()),
        }
    }
}

impl Record {
    pub fn set(&mut self, name: &str, value: impl Display) {
        self.setup.push((name.to_owned(), value.to_string()));
    }

    /// Adds all fields of a structure that have a value, as `prefix.field`.
    pub fn set_all(&mut self, prefix: &str, value: &impl Serialize) {
        match serde_json::to_value(value) {
            Ok(Value::Object(fields)) => {
                for (name, value) in &fields {
                    self.set_all(&format!("{prefix}.{name}"), value);
                }
            }
            Ok(Value::Null) | Err(_) => {}
            Ok(Value::String(text)) => self.set(prefix, text),
            Ok(value) => self.set(prefix, value),
        }
    }

    /// Adds the figures of a case. Missing and non-finite values make no cell.
    pub fn add(
        &mut self,
        (target, case, round): (&str, &str, Option<u32>),
        figures: &[Figure<'_>],
    ) {
        for (metric, unit, value) in figures {
            let Some(value) = value.filter(|value| value.is_finite()) else { continue };
            let (target, case, metric) = (target.to_owned(), case.to_owned(), (*metric).to_owned());
            self.cells.push(Cell { target, case, round, metric, value, unit: *unit });
        }
    }

    pub fn add_rounds(
        &mut self,
        (target, case): (&str, &str),
        (metric, unit): (&str, Unit),
        values: &[f64],
    ) {
        for (round, value) in (0..).zip(values) {
            self.add((target, case, Some(round)), &[(metric, unit, Some(*value))]);
        }
    }

    pub fn add_interval(
        &mut self,
        (target, case): (&str, &str),
        (metric, unit): (&str, Unit),
        ratio: &Ratio,
    ) {
        let part = |part| format!("{metric}, {part}");
        let [low, high, coverage, pairs] = ["low", "high", "coverage", "pairs"].map(part);
        let figures = [
            (metric, unit, Some(ratio.median)),
            (&low, unit, Some(ratio.low)),
            (&high, unit, Some(ratio.high)),
            (&coverage, Unit::Percent, Some(100.0 * ratio.coverage)),
            count(&pairs, ratio.pairs as u64),
        ];
        self.add((target, case, None), &figures);
    }

    /// Adds figures over time, a row for each time. All rows have the metrics of the first one.
    pub fn add_series<'a, R: AsRef<[Figure<'a>]>>(
        &mut self,
        (target, case, round): (&str, &str, Option<u32>),
        rows: &[R],
    ) {
        let Some(first) = rows.first() else { return };
        let columns = first.as_ref().iter().map(|(name, unit, _)| ((*name).to_owned(), *unit));
        let values = |row: &R| row.as_ref().iter().map(|(.., value)| *value).collect();
        let (columns, rows) = (columns.collect(), rows.iter().map(values).collect());
        let (target, case) = (target.to_owned(), case.to_owned());
        self.samples.push(Series { target, case, round, columns, rows });
    }

    /// Adds the ratios of all figures of a case to those of another one, round by round, as the case `case / base`.
    pub fn add_ratios(&mut self, case: &str, base: &str) {
        let key = |cell: &Cell| (cell.target.clone(), cell.round, cell.metric.clone());
        let ratio = |cell: &Cell| {
            let of = |one: &&Cell| one.case == base && key(one) == key(cell);
            let value = cell.value / self.cells.iter().find(of)?.value;
            let case = format!("{case} / {base}");
            value.is_finite().then(|| Cell { case, value, unit: Unit::Ratio, ..cell.clone() })
        };
        let ratios: Vec<Cell> =
            self.cells.iter().filter(|cell| cell.case == case).filter_map(ratio).collect();
        self.cells.extend(ratios);
    }

    pub fn check(&mut self, name: &str, outcome: Outcome) {
        self.checks.push(Check { name: name.to_owned(), outcome });
    }

    pub fn values(&self, case: &str, metric: &str) -> Vec<f64> {
        let is_it = |cell: &&Cell| cell.case == case && cell.metric == metric;
        self.cells.iter().filter(is_it).map(|cell| cell.value).collect()
    }

    /// Common outcome: the first failure, else the first check that did not run, else all comparisons.
    pub fn outcome(&self) -> Outcome {
        let outcomes = || self.checks.iter().map(|check| &check.outcome);
        let failed = outcomes().find(|outcome| matches!(outcome, Outcome::Failed(_)));
        let bad = failed.or_else(|| outcomes().find(|one| matches!(one, Outcome::NotRun(_))));
        let compared = outcomes().map(|outcome| match outcome {
            Outcome::Passed(compared) => compared.get(),
            Outcome::Failed(_) | Outcome::NotRun(_) => 0,
        });
        bad.cloned().unwrap_or_else(|| Outcome::of(compared.sum(), None))
    }

    /// True if there are checks, and all of them ran and passed.
    pub fn has_passed(&self) -> bool {
        matches!(self.outcome(), Outcome::Passed(_))
    }

    /// Writes the document as JSON.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), WriteError> {
        atomic_file::write_json(path, self)
    }

    /// Reads a document, compressed or not.
    ///
    /// # Errors
    /// When it cannot be read, or has another schema or content.
    pub fn load(path: &Path) -> Result<Self, RecordError> {
        let fail = |advice: &str, source| {
            let (path, advice) = (path.to_owned(), advice.to_owned());
            RecordError { path, advice, source }
        };
        let file = ResultsFile::read(path)
            .map_err(|source| fail("give the JSON file that an experiment wrote", source))?;
        let again = file.text("command").or_else(|| file.text("rerun")).map_or_else(
            || "give the JSON file that an experiment wrote".to_owned(),
            |command| format!("read it with the version that wrote it, or repeat it: {command}"),
        );
        file.parse("record of an experiment", SCHEMA..=SCHEMA)
            .map_err(|source| fail(&again, source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn example() -> Record {
        let mut record = Record {
            kind: "crash".to_owned(),
            schema: SCHEMA,
            created: "2025-11-30T12:00:00Z".to_owned(),
            software: Software { assay: "0.1.0".to_owned(), ..Software::default() },
            machine: Machine { cores: 2, ..Machine::default() },
            command: "assay crash --kills 3".to_owned(),
            headline: "Three kills; nothing lost.".to_owned(),
            ..Record::default()
        };
        record
            .set("rival chains", "bitcoin-scaling, seeds 1 and 2, 120 and 110 blocks, scale 0.01");
        record.set_all("feed", &serde_json::json!({"seen": [0.5], "pace": "asap", "none": null}));
        for (case, times) in [("quiet", [0.012, 0.5, 0.0125]), ("hostile", [0.024, 0.5, 1.25])] {
            record.add_rounds(("assay", case), ("sync time", Unit::Seconds), &times);
        }
        record.add_ratios("hostile", "quiet");
        let bytes = ("memory", Unit::Bytes, Some(177.0 * 1_048_576.0));
        record.add(("assay", "quiet", None), &[bytes, ("no value", Unit::Count, None)]);
        record.check("state after each start", Outcome::of(120, None));
        let height = |height| [("height", Unit::Count, height)];
        record.add_series(("assay", "", None), &[height(Some(1.0)), height(None)]);
        record.notes.push("A kill leaves written data intact.".to_owned());
        record
    }

    #[test]
    fn a_written_record_loads() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("crash.json");
        let record = example();
        record.write(&path).expect("writable");
        assert_eq!(Record::load(&path).expect("a record"), record);
        for (text, advice) in [
            ("{", "give the JSON file that an experiment wrote"),
            (r#"{"schema":2,"rerun":"assay crash"}"#, "or repeat it: assay crash"),
            (r#"{"kind":"bench","schema":1}"#, "give the JSON file that an experiment wrote"),
        ] {
            std::fs::write(&path, text).expect("writable");
            let error = Record::load(&path).expect_err("no record").to_string();
            assert!(error.contains("crash.json") && error.ends_with(advice), "{error}");
        }
    }

    #[test]
    fn a_check_that_did_not_run_is_no_pass() {
        let mut record = Record::default();
        assert!(!record.has_passed());
        record.check("one", Outcome::of(3, None));
        assert_eq!(record.outcome(), Outcome::of(3, None));
        record.check("two", Outcome::of(0, None));
        assert_eq!(record.outcome(), Outcome::NotRun("nothing was compared".to_owned()));
        record.check("three", Outcome::of(9, Some("a difference".to_owned())));
        assert_eq!(record.outcome(), Outcome::Failed("a difference".to_owned()));
        assert!(serde_json::from_str::<Outcome>(r#"{"passed":0}"#).is_err());
    }
}
