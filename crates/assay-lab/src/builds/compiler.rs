//! The C and C++ compiler pair of a build.

use std::path::Path;
use std::process::Command;

use anyhow::Context as _;
use assay_report::child;
use serde::{Deserialize, Serialize};

use super::no_program;
use crate::plan::is_target_name;

/// A C compiler and its C++ counterpart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compiler {
    /// Name in keys and targets: `gcc`, `clang-19`.
    pub name: String,
    pub cc: String,
    pub cxx: String,
    /// First line of the version output of the C++ compiler.
    pub version: String,
}

impl Compiler {
    /// Finds the pair by the name or path of either: `gcc`, `g++-13`, `/opt/llvm/bin/clang++`. Default: gcc, or clang without gcc.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn find(named: Option<&str>) -> anyhow::Result<Self> {
        match named {
            Some(name) => Self::named(name),
            None => Self::named("gcc").or_else(|gcc| Self::named("clang").map_err(|_| gcc)),
        }
    }

    fn named(text: &str) -> anyhow::Result<Self> {
        let (folder, file) = match text.rsplit_once('/') {
            Some((folder, file)) => (format!("{folder}/"), file),
            None => (String::new(), text),
        };
        let unknown = || format!("compiler {text:?}: give gcc, clang, or the path of one of them");
        let (c, cxx) = pair(file).with_context(unknown)?;
        let (cc, cxx) = (format!("{folder}{c}"), format!("{folder}{cxx}"));
        let version = version_of(&cxx)?;
        version_of(&cc)?;
        Ok(Self { name: c, cc, cxx, version })
    }
}

/// Names of both compilers, derived from either.
fn pair(file: &str) -> Option<(String, String)> {
    const PAIRS: [(&str, &str); 3] = [("clang", "clang++"), ("gcc", "g++"), ("cc", "c++")];
    let of = |(c, cxx): (&str, &str)| {
        // The C++ name first, because the C name may be a part of it. The rest is a target or a version.
        let (at, length) = match (file.find(cxx), file.find(c)) {
            (Some(at), _) => (at, cxx.len()),
            (None, Some(at)) => (at, c.len()),
            (None, None) => return None,
        };
        let (before, after) = (&file[..at], &file[at + length..]);
        Some((format!("{before}{c}{after}"), format!("{before}{cxx}{after}")))
    };
    PAIRS.into_iter().find_map(of).filter(|(c, _)| is_target_name(c))
}

fn version_of(program: &str) -> anyhow::Result<String> {
    let package = if program.contains("clang") { "clang" } else { "g++" };
    let fail = |source| no_program(source, program, package);
    let output = child::output(Command::new(program).arg("--version")).map_err(fail)?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().next().unwrap_or_default().trim();
    if output.status.success() && !line.is_empty() {
        return Ok(line.to_owned());
    }
    Err(fail(std::io::Error::other("it prints no version")))
}

/// True if the program is in `PATH`.
pub(super) fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| Path::new(&folder).join(program).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derives_both_names() {
        for (given, c, cxx) in [
            ("gcc", "gcc", "g++"),
            ("g++", "gcc", "g++"),
            ("clang", "clang", "clang++"),
            ("clang++-19", "clang-19", "clang++-19"),
            ("gcc-13", "gcc-13", "g++-13"),
            ("x86_64-linux-gnu-g++", "x86_64-linux-gnu-gcc", "x86_64-linux-gnu-g++"),
            ("cc", "cc", "c++"),
        ] {
            assert_eq!(pair(given), Some((c.to_owned(), cxx.to_owned())), "{given}");
        }
        assert_eq!(pair("rustc"), None);
        assert_eq!(pair("tcl"), None);
        let unknown = Compiler::find(Some("tcl")).expect_err("no compiler").to_string();
        assert!(unknown.starts_with("compiler \"tcl\": give gcc, clang"), "{unknown}");
        let missing = Compiler::find(Some("/nonexistent/clang")).expect_err("not there");
        assert!(missing.to_string().contains("/nonexistent/clang"), "{missing}");
    }
}
