//! Reading `results.json`.

use std::path::Path;

use assay_report::ResultsFile;

pub use assay_report::LoadError;

use super::{Results, SCHEMA, SCHEMA_OLDEST};

/// File name of results in a folder.
pub const FILE: &str = "results.json";

/// Reads `results.json` from `dir`.
///
/// # Errors
/// When it is missing, malformed or of another schema version.
pub fn load(dir: &Path) -> Result<Results, LoadError> {
    load_file(&dir.join(FILE))
}

/// Reads results from this file.
///
/// # Errors
/// When it is missing, malformed or of another schema version.
pub fn load_file(path: &Path) -> Result<Results, LoadError> {
    parse(ResultsFile::read(path)?)
}

/// Parses results.
///
/// # Errors
/// When they are malformed or of another schema version.
pub fn parse(file: ResultsFile) -> Result<Results, LoadError> {
    // Fields missing in an older schema default to absent; the current schema is written.
    let mut results: Results = file.parse("results of a chain", SCHEMA_OLDEST..=SCHEMA)?;
    results.schema = SCHEMA;
    Ok(results)
}
