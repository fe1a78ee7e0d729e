//! Version and options of a program, parsed from its output.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::Command;
use std::time::UNIX_EPOCH;

use anyhow::{Context as _, anyhow};
use assay_report::child;
use serde::{Deserialize, Serialize};

pub(super) fn output_of(program: &Path, args: &[&str]) -> anyhow::Result<String> {
    let output = child::output(Command::new(program).args(args))
        .with_context(|| format!("cannot run {}", program.display()))?;
    // btcd prints its help to standard error.
    let text = if output.stdout.is_empty() { output.stderr } else { output.stdout };
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// First line of the version output, which begins with `start`.
pub(super) fn banner_of(program: &Path, start: &str) -> anyhow::Result<String> {
    let banner = first_line(&output_of(program, &["--version"])?);
    if banner.starts_with(start) { Ok(banner) } else { Err(unknown_family(program, &banner)) }
}

pub(super) fn unknown_family(program: &Path, banner: &str) -> anyhow::Error {
    let program = program.display();
    anyhow!("{program} is of no known family; it calls itself {banner:?}")
}

pub(super) fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().trim().to_owned()
}

/// Option names in a help text: lines that begin, after blanks and a short form, with two dashes.
pub(super) fn long_options_in_help(help: &str) -> BTreeSet<String> {
    fn rest(line: &str) -> Option<&str> {
        let line = line.trim_start();
        let line = line.split_once(", ").map_or(line, |(short, long)| {
            if short.len() == 2 && short.starts_with('-') { long } else { line }
        });
        line.strip_prefix("--")
    }
    names_at_start(help.lines().filter_map(rest))
}

/// Option names in a help text: lines that begin with two blanks and a dash. Deeper lines belong to descriptions.
pub(super) fn options_in_help(help: &str) -> BTreeSet<String> {
    names_at_start(help.lines().filter_map(|line| line.strip_prefix("  -")))
}

fn names_at_start<'a>(texts: impl Iterator<Item = &'a str>) -> BTreeSet<String> {
    let is_end = |c: char| !c.is_ascii_alphanumeric() && c != '-';
    let names = texts.filter_map(|text| text.split(is_end).next());
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
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
