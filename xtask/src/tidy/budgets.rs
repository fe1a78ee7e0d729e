//! Sizes that may not grow: `xtask/budgets.toml` against the tree.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{is_rust, read};
use crate::words;

/// Files shorter than this count as small.
const SMALL_FILE_LINES: usize = 40;

/// The contents of `xtask/budgets.toml`. Every figure is a maximum.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Budgets {
    /// Lines of Rust below each folder; `.` is the repository.
    lines: BTreeMap<String, u64>,
    small_files: u64,
    docs_bytes: u64,
    /// Comments and names of functions with phrases that `words.rs` lists; `cargo xtask tidy --comments` prints them.
    comment_phrases: u64,
    /// Packages in `Cargo.lock`, ours among them.
    packages: u64,
    /// Bytes of `target/release/assay`, checked by `cargo xtask ci size`.
    program_bytes: u64,
    /// Seconds of a test program, named `package/target`, on two cores without other work; checked by `cargo xtask ci tests`.
    test_seconds: BTreeMap<String, f64>,
}

fn budgets(root: &Path) -> anyhow::Result<Budgets> {
    Ok(toml::from_str(&read(&root.join("xtask/budgets.toml"))?)?)
}

pub(super) fn check(
    root: &Path,
    sources: &[PathBuf],
    findings: &mut Vec<String>,
) -> anyhow::Result<()> {
    let budgets = budgets(root)?;
    let mut lines = BTreeMap::new();
    for path in sources.iter().filter(|path| is_rust(path)) {
        lines.insert(path.as_path(), read(&root.join(path))?.lines().count());
    }
    check_lines(&budgets.lines, &lines, findings);
    for entry in fs::read_dir(root.join("crates"))? {
        let folder = format!("crates/{}", entry?.file_name().to_string_lossy());
        if !budgets.lines.contains_key(&folder) {
            findings.push(format!("xtask/budgets.toml has no lines for {folder}"));
        }
    }
    let phrases = comment_phrases(root, sources)?.len();
    over("comment_phrases", phrases as u64, budgets.comment_phrases, findings);
    let small = lines.values().filter(|lines| **lines < SMALL_FILE_LINES).count();
    over("small_files", small as u64, budgets.small_files, findings);
    let mut docs_bytes = 0;
    for path in sources.iter().filter(|path| path.starts_with("docs")) {
        docs_bytes += fs::metadata(root.join(path))?.len();
    }
    over("docs_bytes", docs_bytes, budgets.docs_bytes, findings);
    let packages = read(&root.join("Cargo.lock"))?.matches("[[package]]").count();
    over("packages", packages as u64, budgets.packages, findings);
    Ok(())
}

/// Places and phrases of comments and names of functions that the vocabulary replaces.
pub(super) fn comment_phrases(root: &Path, sources: &[PathBuf]) -> anyhow::Result<Vec<String>> {
    let mut phrases = Vec::new();
    for path in sources.iter().filter(|path| is_rust(path) && !path.ends_with("words.rs")) {
        let text = read(&root.join(path))?;
        let found = words::in_comments(&text).into_iter().chain(words::in_names(&text));
        phrases.extend(found.map(|(line, phrase)| format!("{}:{line}: {phrase}", path.display())));
    }
    Ok(phrases)
}

fn check_lines(
    budgets: &BTreeMap<String, u64>,
    lines: &BTreeMap<&Path, usize>,
    findings: &mut Vec<String>,
) {
    for (folder, &budget) in budgets {
        let is_inside = |path: &Path| folder == "." || path.starts_with(folder);
        let of_folder = lines.iter().filter(|(path, _)| is_inside(path));
        let sum: usize = of_folder.map(|(_, lines)| lines).sum();
        if sum == 0 {
            findings.push(format!("xtask/budgets.toml: {folder} holds no Rust"));
        }
        over(&format!("lines of {folder}"), sum as u64, budget, findings);
    }
}

fn over(name: &str, size: u64, budget: u64, findings: &mut Vec<String>) {
    if size > budget {
        findings.push(format!(
            "{name}: {size}, and the budget in xtask/budgets.toml is {budget}; remove as much as was added, or raise it in a \
             commit that states the reason"
        ));
    }
}

pub(crate) fn test_seconds() -> anyhow::Result<BTreeMap<String, f64>> {
    Ok(budgets(&super::workspace_root()?)?.test_seconds)
}

/// Compares the size of the release program with its budget.
pub(crate) fn check_program() -> anyhow::Result<()> {
    let root = super::workspace_root()?;
    let size = fs::metadata(root.join("target/release/assay"))?.len();
    let mut findings = Vec::new();
    over("target/release/assay, bytes", size, budgets(&root)?.program_bytes, &mut findings);
    println!("target/release/assay: {:.1} MB", size as f64 / 1e6);
    anyhow::ensure!(findings.is_empty(), "{}", findings.join("; "));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_and_missing_folders_are_findings() {
        let lines = BTreeMap::from([
            (Path::new("crates/a/src/lib.rs"), 90),
            (Path::new("crates/a/src/b.rs"), 20),
            (Path::new("crates/ab/src/lib.rs"), 1),
        ]);
        let findings = |folder: &str, budget| {
            let mut findings = Vec::new();
            check_lines(&BTreeMap::from([(folder.to_owned(), budget)]), &lines, &mut findings);
            findings
        };
        assert_eq!(findings("crates/a", 110), [""; 0]);
        assert!(findings("crates/a", 109)[0].starts_with("lines of crates/a: 110,"));
        assert_eq!(findings(".", 111), [""; 0]);
        assert!(findings(".", 110)[0].starts_with("lines of .: 111,"));
        assert_eq!(findings("crates/c", 1), ["xtask/budgets.toml: crates/c holds no Rust"]);
    }
}
