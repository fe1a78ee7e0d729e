//! Reading `results.json`.

use std::path::Path;

use assay_report::ResultsFile;

pub use assay_report::LoadError;

use super::{Results, SCHEMA, SCHEMA_OLDEST};

/// Results in a folder of results.
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

/// Results of a file that is read already.
///
/// # Errors
/// When it is malformed or of another schema version.
pub fn parse(file: ResultsFile) -> Result<Results, LoadError> {
    // Fields that an older schema lacks are read as absent; what is written again is of today's.
    let mut results: Results = file.parse("results of a chain", SCHEMA_OLDEST..=SCHEMA)?;
    results.schema = SCHEMA;
    Ok(results)
}
