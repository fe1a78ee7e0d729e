//! The checks that keep the house in order.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use serde_json::Value;

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

/// Runs all checks and reports every finding, not only the first.
pub(crate) fn run() -> anyhow::Result<()> {
    let root = workspace_root()?;
    let mut findings = Vec::new();
    check_edges(&root, &mut findings)?;
    let sources = tracked_files(&root)?;
    check_unsafe(&root, &sources, &mut findings)?;
    check_sources(&root, &sources, &mut findings)?;
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

/// Compares the dependencies between our crates with `edges.txt`.
fn check_edges(root: &Path, findings: &mut Vec<String>) -> anyhow::Result<()> {
    let mut allowed: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in read(&root.join("xtask/edges.txt"))?.lines() {
        if let Some((name, dependencies)) = line.split_once("<-").filter(|_| !line.starts_with('#'))
        {
            allowed.insert(
                name.trim().to_owned(),
                dependencies.split_whitespace().map(str::to_owned).collect(),
            );
        }
    }
    let output = Command::new("cargo")
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root)
        .output()
        .context("cannot run cargo metadata")?;
    let metadata: Value = serde_json::from_slice(&output.stdout).context("cargo metadata")?;
    let packages = metadata["packages"].as_array().context("cargo metadata lists packages")?;
    let ours: BTreeSet<&str> = packages.iter().filter_map(|p| p["name"].as_str()).collect();
    for package in packages {
        let name = package["name"].as_str().context("a package has a name")?;
        let Some(permitted) = allowed.get(name) else {
            findings.push(format!("xtask/edges.txt does not list the crate {name}"));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let target = dependency["name"].as_str().unwrap_or_default();
            // Tests may look across; what ships may not.
            let is_shipped = dependency["kind"].as_str() != Some("dev");
            if is_shipped && ours.contains(target) && !permitted.contains(target) {
                findings.push(format!("the edge {name} <- {target} is not allowed"));
            }
        }
    }
    Ok(())
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
    for entry in fs::read_dir(root.join("crates"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
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
