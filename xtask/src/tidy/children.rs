//! The command line, the laboratory and the benchmarks start processes by `assay_report::child` alone, which ends them with the
//! program.

use std::path::{Path, PathBuf};

/// Folders with programs that end their children at a signal.
const FOLDERS: [&str; 4] = [
    "crates/assay/src",
    "crates/assay-bench/src",
    "crates/assay-lab/src",
    "crates/assay-studies/src",
];

/// Calls of other types by the same names.
const OTHERS: [&str; 4] =
    ["child.status()", "response.status()", "script.status()", "self.status()"];

/// Adds a finding for every other start.
pub(super) fn check(
    root: &Path,
    sources: &[PathBuf],
    findings: &mut Vec<String>,
) -> anyhow::Result<()> {
    let is_checked = |path: &&PathBuf| {
        super::is_rust(path)
            && !super::debug_text::is_test(path)
            && FOLDERS.iter().any(|folder| path.starts_with(folder))
    };
    for path in sources.iter().filter(is_checked) {
        for line in starts(&super::read(&root.join(path))?) {
            findings.push(format!("{}:{line}: start it by assay_report::child", path.display()));
        }
    }
    Ok(())
}

/// Lines that start a process.
fn starts(source: &str) -> Vec<usize> {
    // Tests stand at the end of a file.
    let source = source.split("#[cfg(test)]\nmod ").next().unwrap_or(source);
    let has_start = |line: &str| {
        let is_own = OTHERS.iter().any(|other| line.contains(other));
        [".spawn()", ".output()", ".status()"].iter().any(|call| line.contains(call)) && !is_own
    };
    let lines = source.lines().enumerate().filter(|(_, line)| has_start(line));
    lines.map(|(at, _)| at + 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_planted_start_is_found() {
        let source = "fn f() {\n    a.spawn();\n    thread::spawn(f);\n    b\n        .output()?;\n    child.status();\n    c.status();\n}\n#[cfg(test)]\nmod tests {\n    d.spawn();\n}\n";
        assert_eq!(starts(source), [2, 5, 7]);
    }
}
