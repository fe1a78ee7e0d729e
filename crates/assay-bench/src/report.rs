//! The report of a run: `results.json`, `results.csv`, `report.md` and `report.html`, all made from the results alone.

use std::path::Path;

use assay_lab::atomic_file::{self, WriteError};
use assay_lab::report::{Page, Section};

use crate::results::BenchResults;
use crate::table;

/// The files of a report.
pub const FILES: [&str; 4] = ["results.json", "results.csv", "report.md", "report.html"];

/// Writes the four files into `dir`, each whole or not at all; the results come first.
///
/// # Errors
/// When a file cannot be written; it names the file.
pub fn write_all(results: &BenchResults, dir: &Path) -> Result<(), WriteError> {
    atomic_file::create_folder(dir)?;
    let json_path = dir.join(FILES[0]);
    let json = serde_json::to_vec_pretty(results)
        .map_err(|error| WriteError { path: json_path.clone(), source: error.into() })?;
    atomic_file::write(&json_path, &json)?;
    atomic_file::write(&dir.join(FILES[1]), table::csv(results).as_bytes())?;
    let page = page(results);
    atomic_file::write(&dir.join(FILES[2]), page.markdown().as_bytes())?;
    atomic_file::write(&dir.join(FILES[3]), page.html().as_bytes())
}

fn page(results: &BenchResults) -> Page {
    let plan = results.plan.as_ref();
    let measured = Section {
        id: "measured".to_owned(),
        title: "Measured".to_owned(),
        tables: vec![table::measured("Everything", &results.benchmarks)],
        ..Section::default()
    };
    Page {
        title: plan.map_or("Benchmarks", |plan| &plan.title).to_owned(),
        summary: plan.map_or("", |plan| &plan.summary).to_owned(),
        created: results.created.clone(),
        sections: vec![measured],
    }
}
