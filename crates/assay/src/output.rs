//! Output of data to standard output, and of everything else to standard error.

use std::io::{self, ErrorKind, Write};

use anyhow::Context;
use assay_report::record::Record;

use crate::Outcome;

/// Prints text to standard output unchanged.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    io::stdout().lock().write_all(text.as_bytes()).context("cannot write to standard output")
}

pub(crate) fn print_json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    let mut text = serde_json::to_string_pretty(value).context("cannot write JSON")?;
    text.push('\n');
    print(&text)
}

/// Prints a value, as JSON or as text.
pub(crate) fn print_as(
    is_json: bool,
    value: &impl serde::Serialize,
    text: impl FnOnce() -> String,
) -> anyhow::Result<()> {
    if is_json { print_json(value) } else { print(&text()) }
}

/// Prints the result of an experiment, as JSON or text. Its checks define the exit status.
pub(crate) fn print_record(record: &Record, is_json: bool) -> anyhow::Result<Outcome> {
    print_as(is_json, record, || record.text())?;
    Ok(if record.has_passed() { Outcome::Good } else { Outcome::Negative })
}

/// Prints to standard error; a closed one is no reason to fail.
pub(crate) fn complain(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// An error with its causes. A cause that the error's own text already has is not repeated.
pub(crate) fn explain(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        let cause = cause.to_string();
        if text.is_empty() {
            text = cause;
        } else if !text.ends_with(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    text
}

/// True if the reader of our output has closed it, which is success for a command in a pipe.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == ErrorKind::BrokenPipe)
}
