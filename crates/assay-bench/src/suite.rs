//! What a benchmark is, and where the ones that a plan names come from.

use std::fmt;

use assay_report::{BarChart, Bars, Chart, LaneChart, LaneGroup, Look, Table};
use serde::{Deserialize, Serialize};

use crate::harness::{Alternative, Row};
use crate::{BenchError, Progress};

/// Hears how a run goes.
pub trait Watch: Progress {
    /// A benchmark begins, the one with this number, from 0, of so many.
    fn benchmark(&self, name: &str, number: usize, total: usize);
    /// What begins from now on belongs to no benchmark: parts with steps of their own.
    fn stage(&self) {}
    /// Something that a person should know now.
    fn note(&self, text: &str);
    /// Whether to stop after this benchmark.
    fn is_stopped(&self) -> bool {
        false
    }
}

impl Watch for crate::Silent {
    fn benchmark(&self, _: &str, _: usize, _: usize) {}
    fn note(&self, _: &str) {}
}

/// Makes the alternatives of a benchmark, with everything that they need already prepared and their answers compared.
type Make<'a> = dyn Fn() -> Result<Vec<Alternative<'a>>, BenchError> + 'a;

/// One operation and the ways of doing it, not yet prepared: preparing may take memory and time, listing must not.
pub struct Benchmark<'a> {
    /// Unique path-like name, small letters, from the general to the special: `xor/1048576`, `script/p2wsh/sha256/520`.
    pub name: String,
    /// Series of a chart over sizes to which it belongs: the name without the size, such as `script/p2wsh/sha256`.
    pub series: String,
    /// Size of its input, in `unit`, where it has one.
    pub size: Option<u64>,
    /// What the size counts: `bytes`, `inputs`, `points`.
    pub unit: &'a str,
    /// Bytes that one operation works through, where throughput means something.
    pub bytes_per_op: Option<u64>,
    /// Name of the alternative with which the others are compared (ratio = its time over theirs); the first one if `None`.
    pub baseline: Option<String>,
    /// Prepares it.
    pub make: Box<Make<'a>>,
}

impl fmt::Debug for Benchmark<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Benchmark").field("name", &self.name).finish_non_exhaustive()
    }
}

/// How much is to be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Extent {
    /// As small as it can be and still check every answer: for tests.
    Smoke,
    /// Less than everything, within minutes.
    Quick,
    /// Everything the plan names.
    Full,
}

impl Extent {
    /// As flags and files name it.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Smoke => "smoke",
            Self::Quick => "quick",
            Self::Full => "full",
        }
    }
}

/// The benchmarks that one section of a plan asks for.
pub trait Suite {
    /// They, in the order of the report.
    ///
    /// # Errors
    /// When the settings make no sense, or something that they name is not there.
    fn benchmarks(&self, extent: Extent) -> Result<Vec<Benchmark<'_>>, BenchError>;

    /// Questions that are not answered by times alone, answered after measuring; `rows` are those of its benchmarks.
    ///
    /// # Errors
    /// When something cannot be found out that should be.
    fn studies(
        &self,
        extent: Extent,
        rows: &[Row],
        progress: &dyn Progress,
    ) -> Result<Vec<Study>, BenchError>;

    /// Published figures that belong beside ours.
    fn published(&self) -> Vec<Published>;
}

/// A figure that somebody published.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// The benchmark of ours that does the same.
    pub benchmark: String,
    /// Who or what was measured: `bitcoin core p2qrh branch`.
    pub subject: String,
    /// Machine on which it was.
    pub machine: String,
    /// Time of one operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ns_per_op: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions_per_op: Option<f64>,
    /// Time before over time after, for an optimisation: results that are stored have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// Anything else that a reader has to know.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// Where it was published.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// When, as precisely as is known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub date: String,
}

/// An answer in words and tables.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Study {
    /// Identifier in links: small letters, digits, `-`.
    pub id: String,
    pub title: String,
    /// The answer in a sentence, for the first screen of a report that is about this study.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lead: Option<String>,
    /// Charts over it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub charts: Vec<StudyChart>,
    /// Lanes under the charts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lanes: Vec<StudyLanes>,
    /// Paragraphs; one that begins with `- ` is a point of a list; text between backquotes is code.
    pub prose: Vec<String>,
    /// Tables under it.
    pub tables: Vec<StudyTable>,
}

/// A table of a [`Study`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StudyTable {
    pub caption: String,
    /// Headings of columns.
    pub head: Vec<String>,
    /// Leading columns that hold words; the others hold numbers and are set to the right.
    pub word_columns: usize,
    /// Cells.
    pub rows: Vec<Vec<String>>,
}

/// Bars of a [`Study`], on a logarithmic axis.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StudyChart {
    pub title: String,
    /// What the bars count, with its unit.
    pub y_label: String,
    /// Names of the groups.
    pub groups: Vec<String>,
    /// The bars by their names in the legend, one for each group.
    pub bars: Vec<(String, Vec<Option<f64>>)>,
}

/// Lanes of a [`Study`]: shares of slices of time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StudyLanes {
    pub title: String,
    /// What the axis counts, with its unit.
    pub x_label: String,
    /// Where the axis ends; it begins at 0.
    pub x_end: f64,
    /// Lanes that belong together.
    pub groups: Vec<StudyLaneGroup>,
}

/// A group of [`StudyLanes`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StudyLaneGroup {
    pub label: String,
    /// A second line under the name.
    pub note: String,
    /// Where its lanes end.
    pub end: f64,
    /// For each lane, shares from 0 to 1 of equal slices of the whole axis.
    pub lanes: Vec<Vec<f64>>,
}

impl Study {
    /// Draws its charts and lanes; what is empty is left out.
    pub fn draw(&self) -> Vec<Chart> {
        let charts = self.charts.iter().filter_map(StudyChart::draw);
        charts.chain(self.lanes.iter().filter_map(StudyLanes::draw)).collect()
    }
}

impl StudyLanes {
    /// Draws them; nothing without a lane.
    pub fn draw(&self) -> Option<Chart> {
        let groups = self.groups.iter().cloned();
        let group =
            |StudyLaneGroup { label, note, end, lanes }| LaneGroup { label, note, end, lanes };
        let chart = LaneChart {
            title: self.title.clone(),
            x_label: self.x_label.clone(),
            x_end: self.x_end,
            groups: groups.map(group).collect(),
        };
        chart.draw()
    }
}

impl StudyChart {
    /// Draws it; nothing without a bar above zero.
    pub fn draw(&self) -> Option<Chart> {
        let series = self.bars.iter().enumerate().map(|(number, (label, values))| Bars {
            label: label.clone(),
            look: Look { colour: Some(number), dashed: false },
            values: values.clone(),
        });
        let chart = BarChart {
            title: self.title.clone(),
            y_label: self.y_label.clone(),
            groups: self.groups.clone(),
            series: series.collect(),
            logarithmic: true,
        };
        chart.draw()
    }
}

impl From<&StudyTable> for Table {
    fn from(table: &StudyTable) -> Self {
        let StudyTable { caption, head, word_columns, rows } = table.clone();
        Self { caption, head, rows, word_columns }
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
        // Results of before have no lanes.
        let json = serde_json::to_string(&Study::default()).expect("plain data");
        assert!(!json.contains("lanes"), "{json}");
    }
}
