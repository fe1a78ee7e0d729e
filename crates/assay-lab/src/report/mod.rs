//! Writes the report: `results.json`, `blocks.csv`, `report.md`, `report.html` and `figures.csv`.
//!
//! All depend on [`Results`] alone, whose [`record()`] has the figures, checks and curves, so a report can be rebuilt from a
//! `results.json` of any schema at any time: [`crate::results::load`] and [`write_all`].

mod csv;
mod finding;
mod headline;
mod index;
mod placement;
mod record;
mod relay;
mod scaling;
mod series;
mod sync;
#[cfg(test)]
mod tests;
mod verdict;

use std::path::Path;

use assay_report::atomic_file::{self, WriteError};

use crate::results::Results;

pub use self::finding::finding;
pub use self::record::record;

pub const FILES: [&str; 5] =
    [crate::results::FILE, "blocks.csv", "report.md", "report.html", "figures.csv"];

/// Additional file of syncs: elapsed seconds by height.
pub const CURVES: &str = "curves.csv";

/// Writes the files into `dir`, plus [`CURVES`] for syncs, each atomically, the results first.
///
/// # Errors
/// When a file cannot be written; the error names it.
pub fn write_all(results: &Results, dir: &Path) -> Result<(), WriteError> {
    atomic_file::create_folder(dir)?;
    atomic_file::write_json(&dir.join(FILES[0]), results)?;
    atomic_file::write(&dir.join(FILES[1]), csv::blocks(results).as_bytes())?;
    if sync::is_one(results) {
        atomic_file::write(&dir.join(CURVES), csv::curves(results).as_bytes())?;
    }
    let record = record(results);
    record.page().write(dir)?;
    atomic_file::write(&dir.join(FILES[4]), record.csv().as_bytes())
}

/// True if the chain has the size of the published figures.
fn is_full_size(results: &Results) -> bool {
    (results.chain.scale - 1.0).abs() < 1e-9
}
