//! Journal of measured benchmarks, one line each: a killed run loses at most the current one.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use assay_report::atomic_file;
use serde::{Deserialize, Serialize};

use crate::BenchError;
use crate::plan::BenchPlan;
use crate::results::{Measured, SCHEMA};
use crate::suite::Extent;

/// File name in the folder of results.
const NAME: &str = "journal.jsonl";

/// Settings that must be equal to reuse an earlier figure: the first line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Settings {
    pub(crate) schema: u32,
    pub(crate) plan: Option<BenchPlan>,
    pub(crate) extent: Extent,
    pub(crate) rounds: usize,
    /// Version and build of this program.
    pub(crate) software: String,
    pub(crate) cpu: Option<String>,
    pub(crate) cores: usize,
    /// Source of instruction counts.
    pub(crate) counting: Option<String>,
}

#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    file: File,
}

impl Journal {
    /// Opens the journal of a folder; returns its contents. Without `resume`, or with other settings, the old file is moved aside.
    pub(crate) fn open(
        dir: &Path,
        settings: &Settings,
        resume: bool,
    ) -> Result<(Self, Vec<Measured>), BenchError> {
        atomic_file::create_folder(dir)?;
        let path = dir.join(NAME);
        let fail = |source| BenchError::File { path: path.clone(), source };
        let found = if resume { read(&path, settings) } else { None };
        if found.is_none() {
            move_aside(&path).map_err(fail)?;
        }
        let done = found.unwrap_or_default();
        // The file is rewritten without a torn last line.
        let mut text = line(settings).map_err(fail)?;
        for measured in &done {
            text.extend(line(measured).map_err(fail)?);
        }
        atomic_file::write(&path, &text)?;
        let file = File::options().append(true).open(&path).map_err(fail)?;
        Ok((Self { path, file }, done))
    }

    pub(crate) fn record(&mut self, measured: &Measured) -> Result<(), BenchError> {
        let written = line(measured)
            .and_then(|text| self.file.write_all(&text))
            .and_then(|()| self.file.sync_data());
        written.map_err(|source| BenchError::File { path: self.path.clone(), source })
    }
}

fn line(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut text = serde_json::to_vec(value)?;
    text.push(b'\n');
    Ok(text)
}

/// Contents of a journal with equal settings, up to the first incomplete line.
fn read(path: &Path, settings: &Settings) -> Option<Vec<Measured>> {
    let text = fs::read_to_string(path).ok()?;
    let mut lines = text.lines();
    let found: Settings = serde_json::from_str(lines.next()?).ok()?;
    let same = found.schema == SCHEMA && found == *settings;
    same.then(|| lines.map_while(|line| serde_json::from_str(line).ok()).collect())
}

fn move_aside(path: &Path) -> io::Result<()> {
    if !path.exists() {
        return Ok(());
    }
    let mut places = (1u64..).map(|number| path.with_extension(format!("{number}.jsonl")));
    let place = places.find(|place| !place.exists()).unwrap_or_else(|| path.to_owned());
    fs::rename(path, place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::Row;

    fn settings(rounds: usize) -> Settings {
        Settings {
            schema: SCHEMA,
            plan: None,
            extent: Extent::Full,
            rounds,
            software: "0".to_owned(),
            cpu: None,
            cores: 1,
            counting: None,
        }
    }

    fn measured(name: &str) -> Measured {
        Measured {
            section: "s".to_owned(),
            name: name.to_owned(),
            series: name.to_owned(),
            size: None,
            unit: String::new(),
            bytes_per_op: None,
            baseline: String::new(),
            row: Row { name: name.to_owned(), figures: Vec::new() },
            comparisons: Vec::new(),
        }
    }

    #[test]
    fn measured_benchmarks_stay_in_the_journal() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let names = |resume, rounds| {
            let (journal, done) =
                Journal::open(dir.path(), &settings(rounds), resume).expect("writable");
            (journal, done.into_iter().map(|done| done.name).collect::<Vec<_>>())
        };
        let (mut journal, done) = names(true, 5);
        assert!(done.is_empty(), "nothing there");
        journal.record(&measured("a")).expect("writable");
        journal.record(&measured("b")).expect("writable");
        // Killed while writing: the third line is torn.
        let path = dir.path().join(NAME);
        let whole = fs::read(&path).expect("readable");
        fs::write(&path, &whole[..whole.len() - 9]).expect("writable");
        let (mut journal, done) = names(true, 5);
        assert_eq!(done, ["a"]);
        journal.record(&measured("b")).expect("writable");
        assert_eq!(names(true, 5).1, ["a", "b"]);
        assert!(names(true, 7).1.is_empty(), "other settings");
        assert!(names(false, 7).1.is_empty());
        let entries = fs::read_dir(dir.path()).expect("readable").count();
        assert_eq!(entries, 3, "two former journals are kept");
    }
}
