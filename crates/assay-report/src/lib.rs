//! Report output: tables, charts, pages and statistics, shared by the laboratory, the benchmarks and the command line.
//!
//! A report is a [`Page`] of [`Section`]s with text, [`Table`]s and [`Chart`]s; it has a self-contained HTML form and a Markdown
//! form. [`stats`] has the statistics of few, long measurements: medians, ratios of pairs with intervals, Student's t test, and
//! the common rule for significant differences. [`ResultsFile`] reads all results files.
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
pub mod control;
pub mod csv;
mod escape;
mod finding;
pub mod number;
mod page;
mod results_file;
pub mod stats;
mod style;
mod table;
mod temporary;

pub use chart::{
    Band, BarChart, Bars, Chart, LaneChart, LaneGroup, Line, LineChart, Look, RatioBar, RatioChart,
};
pub use escape::escape;
pub use finding::{Finding, Question};
pub use page::{Figure, Front, Page, Section};
pub use results_file::{LoadError, ResultsFile};
pub use table::Table;
pub use temporary::{Temporary, remove_all};
