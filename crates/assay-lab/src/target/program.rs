//! Version and options of a program, parsed from its output.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::Command;
use std::time::UNIX_EPOCH;

use assay_report::child;
use serde::{Deserialize, Serialize};

use super::TargetError;

pub(super) fn output_of(program: &Path, args: &[&str]) -> Result<String, TargetError> {
    let output = child::output(Command::new(program).args(args))
        .map_err(|source| TargetError::Run { program: program.to_owned(), source })?;
    // btcd prints its help to standard error.
    let text = if output.stdout.is_empty() { output.stderr } else { output.stdout };
    Ok(String::from_utf8_lossy(&text).into_owned())
}

pub(super) fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().trim().to_owned()
}

/// Option names in a help text: lines that begin, after blanks and a short form, with two dashes.
pub(super) fn long_options_in_help(help: &str) -> BTreeSet<String> {
    let name = |line: &str| {
        let line = line.trim_start();
        let line = line.split_once(", ").map_or(line, |(short, long)| {
            if short.len() == 2 && short.starts_with('-') { long } else { line }
        });
        let allowed = |c: &char| c.is_ascii_alphanumeric() || *c == '-';
        line.strip_prefix("--").map(|rest| rest.chars().take_while(allowed).collect::<String>())
    };
    help.lines().filter_map(name).filter(|name| !name.is_empty()).collect()
}

/// Option names in a help text: lines that begin with two blanks and a dash. Deeper lines belong to descriptions.
pub(super) fn options_in_help(help: &str) -> BTreeSet<String> {
    help.lines()
        .filter_map(|line| line.strip_prefix("  -"))
        .map(|rest| {
            let is_name = |c: &char| c.is_ascii_alphanumeric() || *c == '-';
            rest.chars().take_while(is_name).collect::<String>()
        })
        .filter(|name| !name.is_empty())
        .collect()
}

/// `31.99.0` from `Bitcoin Core daemon version v31.99.0-unk`, for file names; results keep the suffix, which identifies the commit.
pub(crate) fn version_number(banner: &str) -> String {
    let word = banner
        .split_ascii_whitespace()
        .map(|word| word.trim_start_matches('v'))
        .find(|word| word.starts_with(|c: char| c.is_ascii_digit()));
    let allowed = |c: &char| c.is_ascii_alphanumeric() || *c == '.';
    word.unwrap_or_default().chars().take_while(allowed).collect()
}

/// Distinguishes two builds of a program.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Fingerprint {
    bytes: u64,
    modified_unix_ms: u64,
}

pub(crate) fn fingerprint(program: &OsStr) -> Fingerprint {
    let Ok(metadata) = std::fs::metadata(program) else { return Fingerprint::default() };
    let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    Fingerprint {
        bytes: metadata.len(),
        modified_unix_ms: modified.map_or(0, |since| since.as_millis() as u64),
    }
}

/// An argument that ends with a path.
pub(super) fn datadir_arg(flag: &str, datadir: &Path) -> OsString {
    let mut arg = OsString::from(flag);
    arg.push(datadir);
    arg
}
