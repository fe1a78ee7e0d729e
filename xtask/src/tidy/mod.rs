//! The checks that keep the house in order.

pub(crate) mod budgets;
mod children;
mod cycles;
mod debug_text;
mod edges;
mod imports;
mod tests;
mod tokens;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

/// A source file that is longer is several ideas.
const FILE_LINES_MAX: usize = 800;

/// Words that must not reach the repository; assembled so that this file does not hold them.
fn forbidden_words() -> [String; 5] {
    [
        format!("TO{}", "DO"),
        format!("FIX{}", "ME"),
        format!("todo{}", "!("),
        format!("unimplemented{}", "!("),
        format!("#[{}", "ignore"),
    ]
}

/// Prints the phrases in comments that count against their budget.
pub(crate) fn list_comments() -> anyhow::Result<()> {
    let root = workspace_root()?;
    for phrase in budgets::comment_phrases(&root, &tracked_files(&root)?)? {
        println!("{phrase}");
    }
    Ok(())
}

/// Runs all checks and reports every finding, not only the first.
pub(crate) fn run() -> anyhow::Result<()> {
    let root = workspace_root()?;
    let mut findings = Vec::new();
    let sources = tracked_files(&root)?;
    budgets::check(&root, &sources, &mut findings)?;
    edges::check(&root, &sources, &mut findings)?;
    cycles::check(&root, &mut findings)?;
    tests::check(&root, &sources, &mut findings)?;
    check_unsafe(&root, &sources, &mut findings)?;
    check_sources(&root, &sources, &mut findings)?;
    debug_text::check(&root, &sources, &mut findings)?;
    children::check(&root, &sources, &mut findings)?;
    check_documents(&root, &mut findings)?;
    crate::words::check(&root, &sources, &mut findings)?;
    if findings.is_empty() {
        println!("tidy: {} files in order", sources.len());
        return Ok(());
    }
    for finding in &findings {
        eprintln!("tidy: {finding}");
    }
    bail!("{} findings", findings.len())
}

fn workspace_root() -> anyhow::Result<PathBuf> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    Ok(manifest.parent().context("xtask lies in the workspace")?.to_path_buf())
}

fn read(path: &Path) -> anyhow::Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Files that git tracks or would track.
fn tracked_files(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let output = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .context("cannot run git")?;
    if !output.status.success() {
        bail!("git ls-files failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8(output.stdout)?
        .lines()
        .map(PathBuf::from)
        .filter(|path| root.join(path).is_file())
        .collect())
}

/// The folders of all crates, in both workspaces.
fn crates(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut folders = Vec::new();
    for workspace in ["crates", "curves"] {
        for entry in fs::read_dir(root.join(workspace))? {
            let folder = entry?.path();
            if folder.join("Cargo.toml").is_file() {
                folders.push(folder);
            }
        }
    }
    Ok(folders)
}

/// Only the files listed in `unsafe.txt` may hold unsafe code.
fn check_unsafe(
    root: &Path,
    sources: &[PathBuf],
    findings: &mut Vec<String>,
) -> anyhow::Result<()> {
    let list = read(&root.join("xtask/unsafe.txt"))?;
    let listed: BTreeSet<&str> =
        list.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).collect();
    let mut found = BTreeSet::new();
    let needle = format!("unsafe{} ", "_code,");
    for path in sources.iter().filter(|path| is_rust(path)) {
        if read(&root.join(path))?.contains(&needle) {
            found.insert(path.to_string_lossy().into_owned());
        }
    }
    for path in &found {
        if !listed.contains(path.as_str()) {
            findings
                .push(format!("{path} holds unsafe code but xtask/unsafe.txt does not list it"));
        }
    }
    for path in listed {
        if !found.contains(path) {
            findings.push(format!("xtask/unsafe.txt lists {path}, which holds no unsafe code"));
        }
    }
    Ok(())
}

fn is_rust(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "rs")
}

fn check_sources(
    root: &Path,
    sources: &[PathBuf],
    findings: &mut Vec<String>,
) -> anyhow::Result<()> {
    let words = forbidden_words();
    for path in sources.iter().filter(|path| is_rust(path)) {
        let text = read(&root.join(path))?;
        let lines = text.lines().count();
        if lines > FILE_LINES_MAX {
            findings
                .push(format!("{} has {lines} lines, {FILE_LINES_MAX} at most", path.display()));
        }
        for (number, line) in text.lines().enumerate() {
            if let Some(word) = words.iter().find(|word| line.contains(word.as_str())) {
                findings.push(format!("{}:{}: `{word}`", path.display(), number + 1));
            }
        }
    }
    Ok(())
}

/// Every crate is on the map.
fn check_documents(root: &Path, findings: &mut Vec<String>) -> anyhow::Result<()> {
    let map = read(&root.join("ARCHITECTURE.md"))?;
    for folder in crates(root)? {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        if !map.contains(&format!("`{name}`")) {
            findings.push(format!("ARCHITECTURE.md does not mention `{name}`"));
        }
    }
    for name in ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"] {
        if !root.join(name).is_file() {
            findings.push(format!("{name} is missing"));
        }
    }
    Ok(())
}
