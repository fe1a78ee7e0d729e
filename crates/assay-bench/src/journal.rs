//! Journal of measured benchmarks, one line each: a killed run loses at most the current one.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use assay_report::atomic_file;
use serde::Serialize;
use serde_json::Value;

use crate::results::Measured;

const NAME: &str = "journal.jsonl";

#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    file: File,
}

impl Journal {
    /// Opens the journal of a folder; returns its contents. Its first line holds the settings, which must be equal to reuse a
    /// figure: without `resume`, or with others, the old file is moved aside.
    pub(crate) fn open(
        dir: &Path,
        settings: &Value,
        resume: bool,
    ) -> Result<(Self, Vec<Measured>)> {
        atomic_file::create_folder(dir)?;
        let path = dir.join(NAME);
        let fail = || cannot_use(&path);
        let found = if resume { read(&path, settings) } else { None };
        if found.is_none() {
            move_aside(&path).with_context(fail)?;
        }
        let done = found.unwrap_or_default();
        // The file is rewritten without a torn last line.
        let mut text = line(settings).with_context(fail)?;
        for measured in &done {
            text.extend(line(measured).with_context(fail)?);
        }
        atomic_file::write(&path, &text)?;
        let file = File::options().append(true).open(&path).with_context(fail)?;
        Ok((Self { path, file }, done))
    }

    pub(crate) fn record(&mut self, measured: &Measured) -> Result<()> {
        let written = line(measured)
            .and_then(|text| self.file.write_all(&text))
            .and_then(|()| self.file.sync_data());
        written.with_context(|| cannot_use(&self.path))
    }
}

fn cannot_use(path: &Path) -> String {
    format!("cannot use {}", path.display())
}

fn line(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut text = serde_json::to_vec(value)?;
    text.push(b'\n');
    Ok(text)
}

/// Contents of a journal with equal settings, up to the first incomplete line.
fn read(path: &Path, settings: &Value) -> Option<Vec<Measured>> {
    let text = fs::read_to_string(path).ok()?;
    let mut lines = text.lines();
    let found: Value = serde_json::from_str(lines.next()?).ok()?;
    (found == *settings).then(|| lines.map_while(|line| serde_json::from_str(line).ok()).collect())
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
    use serde_json::json;

    use super::*;
    use crate::harness::Row;

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
                Journal::open(dir.path(), &json!({ "rounds": rounds }), resume).expect("writable");
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
