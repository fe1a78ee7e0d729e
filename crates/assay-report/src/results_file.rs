//! Reads `results.json` of any kind, compressed or not.

use std::fs::File;
use std::io::{self, Read};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use serde::de::{DeserializeOwned, Error as _};
use serde_json::Value;

/// Size limit of results, decompressed: 1 GiB.
const BYTES_MAX: u64 = 1 << 30;

#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("cannot read {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{} holds no {what}", path.display())]
    Json { path: PathBuf, what: &'static str, source: serde_json::Error },
    #[error("{}: schema {found}, this program knows schema {known}", path.display())]
    Schema { path: PathBuf, found: u64, known: u32 },
}

#[derive(Debug)]
pub struct ResultsFile {
    path: PathBuf,
    value: Value,
}

impl ResultsFile {
    /// Reads a file; a name that ends in `.gz` is decompressed.
    ///
    /// # Errors
    /// When it cannot be read, is no JSON, or is larger than 1 GiB.
    pub fn read(path: &Path) -> Result<Self, LoadError> {
        let fail = |source| LoadError::Read { path: path.to_owned(), source };
        let file = File::open(path).map_err(fail)?;
        let mut text = Vec::new();
        let read = if path.extension().is_some_and(|extension| extension == "gz") {
            GzDecoder::new(file).take(BYTES_MAX + 1).read_to_end(&mut text)
        } else {
            file.take(BYTES_MAX + 1).read_to_end(&mut text)
        };
        read.map_err(fail)?;
        if text.len() as u64 > BYTES_MAX {
            return Err(fail(io::Error::other("larger than 1 GiB")));
        }
        let value = serde_json::from_slice(&text).map_err(|source| LoadError::Json {
            path: path.to_owned(),
            what: "results",
            source,
        })?;
        Ok(Self { path: path.to_owned(), value })
    }

    /// True for results of benchmarks, false for those of chains.
    pub fn is_of_benchmarks(&self) -> bool {
        self.is_of("bench")
    }

    pub fn is_of(&self, kind: &str) -> bool {
        self.text("kind") == Some(kind)
    }

    pub(crate) fn text(&self, field: &str) -> Option<&str> {
        self.value.get(field).and_then(Value::as_str)
    }

    pub fn error(self, what: &'static str) -> LoadError {
        let source = serde_json::Error::custom("results of another kind");
        LoadError::Json { path: self.path, what, source }
    }

    /// Replaces a text everywhere in the results, for example a path of the machine that made them.
    pub fn replace(&mut self, text: &str, with: &str) {
        replace(&mut self.value, text, with);
    }

    /// Parses results of one of these schema versions, checked first, so that another schema is not reported as malformed.
    ///
    /// # Errors
    /// On another version, or when the results are not `what`.
    pub fn parse<T: DeserializeOwned>(
        self,
        what: &'static str,
        schemas: RangeInclusive<u32>,
    ) -> Result<T, LoadError> {
        let Self { path, value } = self;
        let found = value.get("schema").and_then(Value::as_u64);
        let known = *schemas.end();
        match found {
            Some(found) if !u32::try_from(found).is_ok_and(|found| schemas.contains(&found)) => {
                Err(LoadError::Schema { path, found, known })
            }
            _ => serde_json::from_value(value).map_err(|source| LoadError::Json {
                path,
                what,
                source,
            }),
        }
    }
}

fn replace(value: &mut Value, text: &str, with: &str) {
    match value {
        Value::String(here) if here.contains(text) => *here = here.replace(text, with),
        Value::Array(all) => all.iter_mut().for_each(|one| replace(one, text, with)),
        Value::Object(all) => all.values_mut().for_each(|one| replace(one, text, with)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Small {
        schema: u32,
        figure: u32,
    }

    #[test]
    fn plain_and_compressed() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let text = br#"{"schema":2,"kind":"bench","figure":7}"#;
        let plain = folder.path().join("results.json");
        std::fs::write(&plain, text).expect("writable");
        let compressed = folder.path().join("results.json.gz");
        let mut encoder =
            GzEncoder::new(File::create(&compressed).expect("writable"), Compression::best());
        encoder.write_all(text).and_then(|()| encoder.try_finish()).expect("writable");
        for path in [plain, compressed] {
            let file = ResultsFile::read(&path).expect("results");
            assert!(file.is_of_benchmarks());
            assert_eq!(file.parse::<Small>("s", 1..=2).expect("small").figure, 7);
        }
    }

    #[test]
    fn paths_are_replaced_everywhere() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("results.json");
        std::fs::write(&path, br#"{"a":["/home/x/y",{"b":"--dir=/home/x"}],"c":7}"#)
            .expect("writable");
        let mut file = ResultsFile::read(&path).expect("results");
        file.replace("/home/x", "DIR");
        let expected = serde_json::json!({"a": ["DIR/y", {"b": "--dir=DIR"}], "c": 7});
        assert_eq!(file.value, expected);
    }

    #[test]
    fn error_names_other_files() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a.json");
        assert!(matches!(ResultsFile::read(&path), Err(LoadError::Read { .. })));
        for (text, end) in [
            ("{", "a.json holds no results"),
            ("{\"schema\":2}", "a.json holds no figures"),
            ("{\"schema\":9}", "a.json: schema 9, this program knows schema 2"),
        ] {
            std::fs::write(&path, text).expect("writable");
            let error = ResultsFile::read(&path)
                .and_then(|file| file.parse::<Small>("figures", 1..=2))
                .expect_err("no results");
            assert!(error.to_string().ends_with(end), "{error}");
        }
        let cut = folder.path().join("a.json.gz");
        std::fs::write(&cut, [0x1f, 0x8b, 8]).expect("writable");
        assert!(matches!(ResultsFile::read(&cut), Err(LoadError::Read { .. })));
    }
}
