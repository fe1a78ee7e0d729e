//! Import cycles between the top-level modules of a crate, and between its files.
//!
//! Modules that need each other can only be read, and changed, together. A module and those below it count as one. The cycles
//! that remain stand in `xtask/cycles.txt`, a list that may only shrink: a cycle that is not on it is a finding, and so is a line
//! that is no longer true.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::imports::{self, Place, Sources};
use super::{is_rust, read};

type Edges = BTreeMap<String, BTreeMap<String, Place>>;

/// Modules of a crate that reach each other.
#[derive(Debug, PartialEq, Eq)]
struct Knot {
    modules: BTreeSet<String>,
    /// One of its cycles, edge by edge.
    cycle: Vec<(String, String, Place)>,
}

/// Compares the knots of all crates with `xtask/cycles.txt`.
pub(super) fn check(root: &Path, findings: &mut Vec<String>) -> anyhow::Result<()> {
    let mut known = known(&read(&root.join("xtask/cycles.txt"))?, findings);
    for (name, sources) in crates(root)? {
        let listed = known.remove(&name).unwrap_or_default();
        compare(&name, &knots(&imports::edges(&sources)), &listed, findings);
        let name = format!("{name} files");
        let listed = known.remove(&name).unwrap_or_default();
        compare(&name, &knots(&imports::file_edges(&sources)), &listed, findings);
    }
    for name in known.keys() {
        findings.push(format!("xtask/cycles.txt names {name}, which is no crate"));
    }
    Ok(())
}

fn crates(root: &Path) -> anyhow::Result<BTreeMap<String, Sources>> {
    let mut crates = BTreeMap::new();
    for folder in super::crates(root)? {
        let mut sources = Sources::new();
        gather(&folder.join("src"), "", &mut sources)?;
        let name = folder.file_name().unwrap_or_default();
        crates.insert(name.to_string_lossy().into_owned(), sources);
    }
    let mut sources = Sources::new();
    gather(&root.join("xtask/src"), "", &mut sources)?;
    crates.insert("xtask".to_owned(), sources);
    Ok(crates)
}

fn gather(folder: &Path, prefix: &str, sources: &mut Sources) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            gather(&entry.path(), &format!("{name}/"), sources)?;
        } else if is_rust(&entry.path()) {
            sources.insert(name, read(&entry.path())?);
        }
    }
    Ok(())
}

/// Lines `crate: module module … # reason`.
fn known(text: &str, findings: &mut Vec<String>) -> BTreeMap<String, Vec<BTreeSet<String>>> {
    let mut known: BTreeMap<String, Vec<BTreeSet<String>>> = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()) {
        let (what, reason) = line.split_once('#').unwrap_or((line, ""));
        let Some((name, modules)) = what.split_once(':').filter(|_| !reason.trim().is_empty())
        else {
            findings
                .push(format!("xtask/cycles.txt: `{line}` is not `crate: module module # reason`"));
            continue;
        };
        let modules = modules.split_whitespace().map(str::to_owned).collect();
        known.entry(name.trim().to_owned()).or_default().push(modules);
    }
    known
}

fn compare(name: &str, found: &[Knot], listed: &[BTreeSet<String>], findings: &mut Vec<String>) {
    for knot in found.iter().filter(|knot| !listed.contains(&knot.modules)) {
        let edges: Vec<String> = knot
            .cycle
            .iter()
            .map(|(from, to, (file, line))| format!("{from} -> {to} ({file}:{line})"))
            .collect();
        let modules: Vec<&str> = knot.modules.iter().map(String::as_str).collect();
        findings.push(format!(
            "{name}: modules import each other: {}; one cycle: {}",
            modules.join(" "),
            edges.join(", ")
        ));
    }
    for modules in
        listed.iter().filter(|modules| found.iter().all(|knot| knot.modules != **modules))
    {
        let modules: Vec<&str> = modules.iter().map(String::as_str).collect();
        findings.push(format!(
            "xtask/cycles.txt: `{name}: {}` is no longer true; remove or shorten it",
            modules.join(" ")
        ));
    }
}

/// The strongly connected parts of more than one module.
fn knots(edges: &Edges) -> Vec<Knot> {
    let reached: BTreeMap<&String, BTreeSet<&String>> =
        edges.keys().map(|from| (from, reachable(edges, from))).collect();
    let meet = |a: &String, b: &String| {
        let reaches = |from: &String, to: &String| {
            reached.get(from).is_some_and(|reached| reached.contains(to))
        };
        reaches(a, b) && reaches(b, a)
    };
    let mut knots: Vec<Knot> = Vec::new();
    for module in edges.keys() {
        if knots.iter().any(|knot| knot.modules.contains(module)) {
            continue;
        }
        let modules: BTreeSet<String> =
            edges.keys().filter(|other| meet(module, other)).cloned().collect();
        if modules.len() > 1 {
            let cycle = shortest_cycle(edges, module);
            knots.push(Knot { modules, cycle });
        }
    }
    knots
}

/// All modules at the ends of paths that begin at `from`.
fn reachable<'a>(edges: &'a Edges, from: &String) -> BTreeSet<&'a String> {
    let mut found = BTreeSet::new();
    let mut open: Vec<&String> = edges.get(from).into_iter().flat_map(BTreeMap::keys).collect();
    while let Some(module) = open.pop() {
        if found.insert(module) {
            open.extend(edges.get(module).into_iter().flat_map(BTreeMap::keys));
        }
    }
    found
}

/// The shortest way from a module back to itself.
fn shortest_cycle(edges: &Edges, start: &String) -> Vec<(String, String, Place)> {
    let mut paths: Vec<Vec<&String>> = vec![vec![start]];
    let mut seen = BTreeSet::new();
    while !paths.is_empty() {
        let mut longer = Vec::new();
        for path in &paths {
            let last = path[path.len() - 1];
            for next in edges.get(last).into_iter().flat_map(BTreeMap::keys) {
                let mut whole = path.clone();
                whole.push(next);
                if next == start {
                    let steps = whole.windows(2);
                    return steps
                        .map(|step| {
                            let place = edges[step[0]][step[1]].clone();
                            (step[0].clone(), step[1].clone(), place)
                        })
                        .collect();
                }
                if seen.insert(next) {
                    longer.push(whole);
                }
            }
        }
        paths = longer;
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planted() -> Vec<Knot> {
        let files = [
            ("lib.rs", "mod plan; mod target; mod report; mod stats;"),
            ("plan.rs", "use crate::target::Spec;"),
            ("target/mod.rs", "mod ports;"),
            ("target/ports.rs", "\nuse crate::{report, stats};"),
            ("report.rs", "fn f() -> crate::plan::Plan { x() }"),
            ("stats.rs", "#[cfg(test)] mod tests { use crate::report; }"),
        ];
        let sources =
            files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        knots(&imports::edges(&sources))
    }

    fn findings_of(list: &str) -> Vec<String> {
        let mut findings = Vec::new();
        let listed = known(list, &mut findings).remove("a").unwrap_or_default();
        compare("a", &planted(), &listed, &mut findings);
        findings
    }

    #[test]
    fn a_planted_cycle_is_found() {
        let found = findings_of("# nothing\n");
        let expected = "a: modules import each other: plan report target; one cycle: \
             plan -> target (plan.rs:1), target -> report (target/ports.rs:2), report -> plan (report.rs:1)";
        assert_eq!(found, [expected]);
    }

    #[test]
    fn the_list_may_only_shrink() {
        assert_eq!(findings_of("a: plan report target # old knot\n"), [""; 0]);
        let found = findings_of("a: plan report stats target # grown\n");
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[1].contains("no longer true"), "{found:?}");
        let found = findings_of("a: plan report target # old\na: stats plan # mended\n");
        assert!(found.len() == 1 && found[0].contains("`a: plan stats` is no longer"), "{found:?}");
        assert!(
            findings_of("a: plan report target\n")[0].contains("# reason"),
            "a reason is asked for"
        );
    }
}
