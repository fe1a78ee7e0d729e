//! Reading `results.json`.

use std::path::{Path, PathBuf};
use std::{fs, io};

use super::{Results, SCHEMA, SCHEMA_OLDEST};

/// Results in a folder of results.
pub const FILE: &str = "results.json";

/// Why results could not be read.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The file is no results file.
    #[error("{} is no results file", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// What the JSON library says.
        source: serde_json::Error,
    },
    /// The file is of another schema version.
    #[error("{}: schema {found}, this program knows schema {SCHEMA}", path.display())]
    Schema {
        /// The file.
        path: PathBuf,
        /// Its schema.
        found: u64,
    },
}

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
    let path = path.to_owned();
    let text = fs::read(&path).map_err(|source| LoadError::Read { path: path.clone(), source })?;
    let json = |source| LoadError::Json { path: path.clone(), source };
    // The version is read first: another schema is no malformed file.
    let value: serde_json::Value = serde_json::from_slice(&text).map_err(json)?;
    match value.get("schema").and_then(serde_json::Value::as_u64) {
        Some(found) if !(SCHEMA_OLDEST.into()..=SCHEMA.into()).contains(&found) => {
            Err(LoadError::Schema { path, found })
        }
        // Fields that an older schema lacks are read as absent; what is written again is of today's.
        _ => {
            let mut results: Results = serde_json::from_value(value).map_err(json)?;
            results.schema = SCHEMA;
            Ok(results)
        }
    }
}
