//! Report output: tables, charts, pages and statistics, shared by the laboratory, the benchmarks and the command line.
//!
//! A report is a [`Page`] of [`Section`]s with text, [`Table`]s and [`Chart`]s; it has a self-contained HTML form and a Markdown
//! form. [`stats`] has the statistics of few, long measurements: medians, ratios of pairs with intervals, Student's t test, and
//! the common rule for significant differences. [`record::Record`] is the document of an experiment, and [`ResultsFile`] reads all
//! results files.
//!
//! ```
//! use assay_report::{Page, Section, Table};
//!
//! let mut table = Table::new("Rates", &["Phase", "tx/s"], 1);
//! table.push(["steady".to_owned(), assay_report::number::rate(5833.4)]);
//! let section = Section { title: "Throughput".to_owned(), tables: vec![table], ..Section::default() };
//! let page = Page { title: "Report".to_owned(), sections: vec![section], ..Page::default() };
//! assert!(page.markdown().contains("| steady | 5,833.4 |"));
//! ```
//!
//! Deliberately absent: measurement. This crate has no plan, target or results schema, and depends on no crate of the workspace.

pub mod atomic_file;
mod chart;
pub mod child;
pub mod control;
pub mod machine;
pub mod number;
mod page;
pub mod record;
mod results_file;
pub mod stats;
mod table;
mod temporary;

pub use chart::{BarChart, Chart, LaneChart, LaneGroup, Line, LineChart, RatioBar, RatioChart};
pub use page::{Figure, Front, Page, Section};
pub use results_file::{LoadError, ResultsFile};
pub use table::{Table, csv_field, escape};
pub use temporary::{Temporary, remove_all};

use serde::{Deserialize, Serialize};

/// A question of a published report, a row of `reports/README.md`, and the selection of the figure that answers it. Without
/// `benchmark`, `phase` and `step`, the answer of the whole report is used.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    pub ask: String,
    /// Plan whose results answer it, if not that of the report.
    pub plan: Option<String>,
    pub benchmark: Option<String>,
    /// Alternative of the benchmark, if not the fastest.
    pub alternative: Option<String>,
    /// Name of a chain phase in the plan.
    pub phase: Option<String>,
    /// Name of a branch step in the plan.
    pub step: Option<String>,
    /// Pre-relayed share of the phase, 0 to 1.
    #[serde(default)]
    pub seen: f64,
    /// True for the phase of the index, false for the node.
    #[serde(default)]
    pub index: bool,
    /// Published figure, if the results contain none.
    pub published: Option<String>,
    #[serde(default)]
    pub caveat: String,
}

/// Answer to a question; a row of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Published figure with unit and source.
    pub published: String,
    /// Measured figure with unit.
    pub measured: String,
    /// Verdict: faster or slower, by how much, and its uncertainty.
    pub verdict: String,
    pub caveat: String,
}
