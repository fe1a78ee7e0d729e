//! Definition of a benchmark, and of the suites behind a plan's sections.

use std::fmt;

use anyhow::Result;
use assay_report::Chart;
pub use assay_report::{
    BarChart as StudyChart, LaneChart as StudyLanes, LaneGroup as StudyLaneGroup,
    Table as StudyTable,
};
use serde::{Deserialize, Serialize};

use crate::Progress;
use crate::harness::{Alternative, Row};

pub trait Watch: Progress {
    /// A benchmark begins; `number` counts from 0 to `total`.
    fn benchmark(&self, name: &str, number: usize, total: usize);
    /// Later events belong to no benchmark: parts with steps of their own.
    fn stage(&self) {}
    fn note(&self, text: &str);
    /// True to stop after this benchmark.
    fn is_stopped(&self) -> bool {
        false
    }
}

impl Watch for crate::Silent {
    fn benchmark(&self, _: &str, _: usize, _: usize) {}
    fn note(&self, _: &str) {}
}

/// Creates the alternatives of a benchmark with prepared inputs and verified results.
type Make<'a> = dyn Fn() -> Result<Vec<Alternative<'a>>> + 'a;

/// One operation and its implementations, not yet prepared: preparation may take memory and time, listing must not.
#[derive(Serialize, Deserialize)]
pub struct Benchmark<'a> {
    /// Unique path-like name, small letters, from the general to the special: `xor/1048576`, `script/p2wsh/sha256/520`.
    pub name: String,
    /// Series in charts over sizes: the name without the size, such as `script/p2wsh/sha256`.
    pub series: String,
    /// Size of its input in `unit`, if it has one.
    pub size: Option<u64>,
    /// Unit of the size: `bytes`, `inputs`, `points`.
    pub unit: String,
    /// Bytes that one operation works through, where throughput means something.
    pub bytes_per_op: Option<u64>,
    /// Name of the baseline alternative (ratio = its time over theirs); the first one if `None`.
    pub baseline: Option<String>,
    #[serde(skip, default = "no_alternatives")]
    pub make: Box<Make<'a>>,
}

fn no_alternatives<'a>() -> Box<Make<'a>> {
    Box::new(|| Ok(Vec::new()))
}

impl<'a> Benchmark<'a> {
    /// A benchmark without size, in a series of its own, against its first alternative. `make` receives its name.
    pub fn new(
        name: String,
        unit: &str,
        make: impl Fn(&str) -> Result<Vec<Alternative<'a>>> + 'a,
    ) -> Self {
        let (series, own) = (name.clone(), name.clone());
        let (make, unit) = (Box::new(move || make(&own)), unit.to_owned());
        Self { name, series, size: None, unit, bytes_per_op: None, baseline: None, make }
    }

    /// One size of a series, named `series/size`.
    pub fn of_size(
        series: &str,
        size: u64,
        unit: &str,
        make: impl Fn(&str) -> Result<Vec<Alternative<'a>>> + 'a,
    ) -> Self {
        let (series, name) = (series.to_owned(), format!("{series}/{size}"));
        Self { series, size: Some(size), ..Self::new(name, unit, make) }
    }

    /// The same for data of `size` bytes, with its throughput.
    pub fn of_bytes(
        series: &str,
        size: u64,
        make: impl Fn(&str) -> Result<Vec<Alternative<'a>>> + 'a,
    ) -> Self {
        Self { bytes_per_op: Some(size), ..Self::of_size(series, size, "bytes", make) }
    }
}

impl fmt::Debug for Benchmark<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Benchmark").field("name", &self.name).finish_non_exhaustive()
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Extent {
    /// Just enough to check every result; the times mean nothing.
    Smoke,
    /// Fewer sizes and rounds.
    Quick,
    /// Everything.
    #[default]
    Full,
}

impl Extent {
    /// Name in flags and files.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Smoke => "smoke",
            Self::Quick => "quick",
            Self::Full => "full",
        }
    }
}

/// The benchmarks of one section of a plan.
pub trait Suite {
    /// The benchmarks in the order of the report.
    ///
    /// # Errors
    /// When the settings are invalid, or a named file or program is missing.
    fn benchmarks(&self, extent: Extent) -> Result<Vec<Benchmark<'_>>>;

    /// Studies beyond times, computed after measuring from the rows of its benchmarks.
    ///
    /// # Errors
    /// When a study fails.
    fn studies(&self, _: Extent, _: &[Row], _: &dyn Progress) -> Result<Vec<Study>> {
        Ok(Vec::new())
    }

    fn published(&self) -> Vec<Published> {
        Vec::new()
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// The corresponding benchmark here.
    pub benchmark: String,
    /// Measured software: `bitcoin core p2qrh branch`.
    pub subject: String,
    pub machine: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ns_per_op: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions_per_op: Option<f64>,
    /// Time before over time after, for an optimisation: results that are stored have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// Caveats.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// Location of the publication.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// Publication date, as precisely as known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub date: String,
}

/// An answer in words and tables.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Study {
    /// Link identifier: small letters, digits, `-`.
    pub id: String,
    pub title: String,
    /// The answer in a sentence, for the summary of a report about this study.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lead: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub charts: Vec<StudyChart>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lanes: Vec<StudyLanes>,
    /// Paragraphs; a leading `- ` makes a list item; text between backquotes is code.
    pub prose: Vec<String>,
    pub tables: Vec<StudyTable>,
}

impl Study {
    /// Draws its charts and lanes; empty ones are left out.
    pub fn draw(&self) -> Vec<Chart> {
        let charts = self.charts.iter().filter_map(|chart| chart.draw(true));
        charts.chain(self.lanes.iter().filter_map(StudyLanes::draw)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_are_kept_and_drawn_after_charts() {
        let group = StudyLaneGroup {
            label: "pool".to_owned(),
            note: "2 ms".to_owned(),
            end: 2.0,
            lanes: vec![vec![1.0, 0.5]],
        };
        let lanes = StudyLanes { x_end: 2.0, groups: vec![group], ..StudyLanes::default() };
        let bars = StudyChart {
            title: "bars".to_owned(),
            groups: vec!["g".to_owned()],
            bars: vec![("b".to_owned(), vec![Some(3.0)])],
            ..StudyChart::default()
        };
        let study = Study {
            charts: vec![bars],
            lanes: vec![lanes, StudyLanes::default()],
            ..Study::default()
        };
        let json = serde_json::to_string(&study).expect("plain data");
        assert_eq!(serde_json::from_str::<Study>(&json).expect("the same"), study);
        let titles: Vec<String> =
            study.draw().iter().map(|chart| chart.title().to_owned()).collect();
        assert_eq!(titles, ["bars", ""], "nothing is drawn without a lane");
        // Older results have no lanes.
        let json = serde_json::to_string(&Study::default()).expect("plain data");
        assert!(!json.contains("lanes"), "{json}");
    }
}
