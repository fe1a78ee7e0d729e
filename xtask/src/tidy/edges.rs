//! Dependencies: those between our crates are the allowed ones, and every one is used.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use serde_json::Value;

use super::{is_rust, read, tokens};

/// Contents of `edges.txt`: each crate with its allowed dependencies.
type Allowed = BTreeMap<String, BTreeSet<String>>;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Dependency {
    name: String,
    /// Name in sources.
    word: String,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Normal,
    Dev,
    Build,
}

struct Package {
    name: String,
    dependencies: Vec<Dependency>,
    /// Names in code that ships: `src/`.
    shipped: BTreeSet<String>,
    /// Names in all code: tests, benches, examples and the build script as well.
    all: BTreeSet<String>,
}

/// The crate of test helpers: only ever a dev-dependency, even if `edges.txt` allows more.
const TESTKIT: &str = "assay-testkit";

/// Compares the manifests with `xtask/edges.txt`, and both with what sources use.
pub(super) fn check(
    root: &Path,
    files: &[PathBuf],
    findings: &mut Vec<String>,
) -> anyhow::Result<()> {
    let allowed = allowed(&read(&root.join("xtask/edges.txt"))?);
    let mut packages = packages(root, root, files)?;
    packages.extend(self::packages(root, &root.join("curves"), files)?);
    compare(&allowed, &packages, findings);
    Ok(())
}

fn allowed(text: &str) -> Allowed {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let edge = |line: &str| {
        let (name, dependencies) = line.split_once("<-")?;
        let dependencies = dependencies.split_whitespace().map(str::to_owned).collect();
        Some((name.trim().to_owned(), dependencies))
    };
    lines.filter_map(edge).collect()
}

fn packages(root: &Path, workspace: &Path, files: &[PathBuf]) -> anyhow::Result<Vec<Package>> {
    let output = Command::new("cargo")
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(workspace)
        .output()
        .context("cannot run cargo metadata")?;
    let metadata: Value = serde_json::from_slice(&output.stdout).context("cargo metadata")?;
    let packages = metadata["packages"].as_array().context("cargo metadata lists packages")?;
    packages.iter().map(|package| read_package(root, files, package)).collect()
}

fn read_package(root: &Path, files: &[PathBuf], package: &Value) -> anyhow::Result<Package> {
    let name = package["name"].as_str().context("a package has a name")?.to_owned();
    let manifest = package["manifest_path"].as_str().context("a package has a manifest")?;
    let folder = Path::new(manifest).parent().context("a manifest lies in a folder")?;
    let folder = folder.strip_prefix(root).context("a package lies in the workspace")?;
    let dependencies: Vec<Dependency> =
        package["dependencies"].as_array().into_iter().flatten().filter_map(dependency).collect();
    let (mut shipped, mut all) = (BTreeSet::new(), BTreeSet::new());
    for path in files.iter().filter(|path| is_rust(path) && path.starts_with(folder)) {
        let text = read(&root.join(path))?;
        let is_shipped = path.starts_with(folder.join("src"));
        // Tests find the tables of vectors that some packages bring by the package's name.
        let is_looked_for =
            |edge: &&Dependency| text.contains(&format!("package(\"{}\")", edge.name));
        all.extend(dependencies.iter().filter(is_looked_for).map(|edge| edge.word.clone()));
        for token in tokens::of(&text).iter().filter(|token| token.is_name()) {
            all.insert(token.text.to_owned());
            if is_shipped {
                shipped.insert(token.text.to_owned());
            }
        }
    }
    Ok(Package { name, dependencies, shipped, all })
}

fn dependency(value: &Value) -> Option<Dependency> {
    let name = value["name"].as_str()?.to_owned();
    let word = value["rename"].as_str().unwrap_or(&name).replace('-', "_");
    let kind = match value["kind"].as_str() {
        Some("dev") => Kind::Dev,
        Some("build") => Kind::Build,
        _ => Kind::Normal,
    };
    Some(Dependency { name, word, kind })
}

fn compare(allowed: &Allowed, packages: &[Package], findings: &mut Vec<String>) {
    let ours: BTreeSet<&str> = packages.iter().map(|package| package.name.as_str()).collect();
    for package in packages {
        let name = &package.name;
        let Some(permitted) = allowed.get(name) else {
            findings.push(format!("xtask/edges.txt does not list the crate {name}"));
            continue;
        };
        for dependency in &package.dependencies {
            let target = &dependency.name;
            // Dependencies of tests may be others than the permitted ones; those of code that ships may not.
            let is_shipped = dependency.kind != Kind::Dev;
            if is_shipped && ours.contains(target.as_str()) && !permitted.contains(target) {
                findings.push(format!("the edge {name} <- {target} is not allowed"));
            }
            if is_shipped && target == TESTKIT {
                findings.push(format!("{name} ships {TESTKIT}, which is for tests alone"));
            }
            let used =
                if dependency.kind == Kind::Normal { &package.shipped } else { &package.all };
            if !used.contains(&dependency.word) {
                findings.push(format!("{name} depends on {target} and does not use it"));
            }
        }
        let is_edge = |target: &&String| {
            let mut edges = package.dependencies.iter().filter(|edge| edge.kind != Kind::Dev);
            edges.any(|edge| edge.name == **target)
        };
        for target in permitted.iter().filter(|target| !is_edge(target)) {
            findings
                .push(format!("xtask/edges.txt allows {name} <- {target}, which no manifest has"));
        }
    }
    for name in allowed.keys().filter(|name| !ours.contains(name.as_str())) {
        findings.push(format!("xtask/edges.txt names {name}, which is no crate"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, edges: &[(&str, Kind)], source: &str) -> Package {
        let edge = |(name, kind): &(&str, Kind)| Dependency {
            name: (*name).to_owned(),
            word: name.replace('-', "_"),
            kind: *kind,
        };
        let names: BTreeSet<String> =
            tokens::of(source).iter().map(|token| token.text.to_owned()).collect();
        Package {
            name: name.to_owned(),
            dependencies: edges.iter().map(edge).collect(),
            shipped: names.clone(),
            all: names,
        }
    }

    fn findings_of(list: &str, packages: &[Package]) -> Vec<String> {
        let mut findings = Vec::new();
        compare(&allowed(list), packages, &mut findings);
        findings
    }

    #[test]
    fn planted_edges_are_found() {
        let hash = || package("a-hash", &[], "");
        let used = || package("a-node", &[("a-hash", Kind::Normal)], "use a_hash::sha256;");
        assert_eq!(findings_of("a-hash <-\na-node <- a-hash\n", &[hash(), used()]), [""; 0]);
        // Only a comment names it.
        let unused = package("a-node", &[("a-hash", Kind::Normal)], "// a_hash\n\"a_hash\"");
        assert_eq!(
            findings_of("a-hash <-\na-node <- a-hash\n", &[hash(), unused]),
            ["a-node depends on a-hash and does not use it"]
        );
        assert_eq!(
            findings_of("a-hash <-\na-node <-\n", &[hash(), used()]),
            ["the edge a-node <- a-hash is not allowed"]
        );
        let dev = package("a-node", &[("a-hash", Kind::Dev)], "use a_hash::sha256;");
        assert_eq!(
            findings_of("a-hash <-\na-node <- a-hash\na-gone <-\n", &[hash(), dev]),
            [
                "xtask/edges.txt allows a-node <- a-hash, which no manifest has",
                "xtask/edges.txt names a-gone, which is no crate"
            ]
        );
        assert_eq!(findings_of("", &[hash()]), ["xtask/edges.txt does not list the crate a-hash"]);
    }

    #[test]
    fn dependencies_of_tests_are_not_shipped() {
        let kit = || package(TESTKIT, &[], "");
        let user = |kind| package("a-node", &[(TESTKIT, kind)], "use assay_testkit::hex;");
        assert_eq!(
            findings_of("assay-testkit <-\na-node <-\n", &[kit(), user(Kind::Dev)]),
            [""; 0]
        );
        assert_eq!(
            findings_of(
                "assay-testkit <-\na-node <- assay-testkit\n",
                &[kit(), user(Kind::Normal)]
            ),
            ["a-node ships assay-testkit, which is for tests alone"]
        );
    }

    #[test]
    fn libraries_of_others_are_used_too() {
        let idle = package("a-hash", &[("base64", Kind::Normal)], "fn f() {}");
        assert_eq!(
            findings_of("a-hash <-", &[idle]),
            ["a-hash depends on base64 and does not use it"]
        );
    }
}
