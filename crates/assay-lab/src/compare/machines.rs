//! Pairs of several machines: each machine runs whole pairs of one plan.
//!
//! A folder of machines holds a folder per machine with the results of its pairs, as `assay-cluster run` leaves them:
//! `machines/NAME/pair-00003/results.json`. The results of a machine are merged as if from one execution, so that control load
//! and disturbances are judged per machine. Ratios never cross machines; [`assay_report::stats::machines`] combines them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use serde::{Deserialize, Serialize};

use super::{
    CompareOptions, Comparison, Difference, Group, PairComparison, Side, Source, compare_pair,
    finish, list, same_work, sides,
};
use crate::machine::Machine;
use crate::results::{Results, Status, disturbance};

/// Levels below a machine's folder that are searched.
const DEPTH_MAX: usize = 2;
/// Minimum number of machines for a statement about others.
pub const MACHINES_MIN: usize = 6;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MachineEntry {
    pub name: String,
    pub machine: Machine,
    /// Valid pairs over all pre-relayed shares.
    pub pairs: usize,
}

/// Merged results of each machine, sorted by name.
///
/// # Errors
/// When there is none, one cannot be read, or they are not pairs of one plan.
pub fn load_machines(dir: &Path) -> anyhow::Result<Vec<Source>> {
    let mut machines = Vec::new();
    for path in folders(dir)? {
        let mut found = Vec::new();
        collect(&path, DEPTH_MAX, &mut found)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if let Some(source) = merged(name, found)? {
            machines.push(source);
        }
    }
    ensure!(
        !machines.is_empty(),
        "{}: no results there; it must hold a folder for each machine, with the folders of its pairs",
        dir.display()
    );
    Ok(machines)
}

fn folders(dir: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let cannot_read = || format!("cannot read {}", dir.display());
    let mut paths = Vec::new();
    for entry in fs::read_dir(dir).with_context(cannot_read)? {
        let path = entry.with_context(cannot_read)?.path();
        if path.is_dir() {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

fn collect(dir: &Path, depth: usize, found: &mut Vec<Source>) -> anyhow::Result<()> {
    if dir.join(crate::results::FILE).is_file() {
        found.push(Source::load(dir)?);
    } else if depth > 0 {
        for path in folders(dir)? {
            collect(&path, depth - 1, found)?;
        }
    }
    Ok(())
}

fn merged(name: String, sources: Vec<Source>) -> anyhow::Result<Option<Source>> {
    let mut sources = sources.into_iter();
    let Some(first) = sources.next() else { return Ok(None) };
    let mut whole = Source { name, results: first.results };
    for source in sources {
        check_same_plan(&whole, &source, &[])?;
        for (target, more) in whole.results.targets.iter_mut().zip(source.results.targets) {
            target.runs.extend(more.runs);
        }
    }
    for target in &mut whole.results.targets {
        target.runs.sort_by(|a, b| {
            a.seen_requested.total_cmp(&b.seen_requested).then(a.repeat.cmp(&b.repeat))
        });
        // Judged again, because the machine now has other runs to compare with.
        for run in target.runs.iter_mut().filter(|run| run.status == Status::Disturbed) {
            run.status = Status::Valid;
        }
        disturbance::mark_runs(&mut target.runs);
    }
    Ok(Some(whole))
}

/// Checks that two results have the same work, settings, targets and programs.
fn check_same_plan(one: &Source, other: &Source, vary: &[String]) -> anyhow::Result<()> {
    let mut differences = Vec::new();
    let mut differ = |field: &str, first: String, second: String| {
        if first != second {
            differences.push(Difference {
                field: field.to_owned(),
                first,
                second,
                is_setting: true,
            });
        }
    };
    let named = |results: &Results| {
        let name = |target: &crate::results::TargetResults| {
            let index = target.index.as_ref().map(|index| format!(" + {}", index.kind.as_str()));
            format!("{} ({}){}", target.name, target.version, index.unwrap_or_default())
        };
        results.targets.iter().map(name).collect::<Vec<_>>().join(", ")
    };
    differ("targets", named(&one.results), named(&other.results));
    let planned =
        |results: &Results| results.pairs_planned.unwrap_or(results.plan.runs.repeat).to_string();
    differ("pairs_planned", planned(&one.results), planned(&other.results));
    let (first, second) = (&one.results.software, &other.results.software);
    differ("software.assay", first.assay.clone(), second.assay.clone());
    if differences.is_empty() {
        for (left, right) in one.results.targets.iter().zip(&other.results.targets) {
            let side = |number, source, target| Side { source: number, results: source, target };
            let found =
                same_work::differences(side(0, &one.results, left), side(1, &other.results, right));
            differences.extend(found.into_iter().filter(|found| !found.is_named_by(vary)));
        }
    }
    let (first, second) = (&one.name, &other.name);
    ensure!(
        differences.is_empty(),
        "{first} and {second} are not pairs of one plan, they differ in {}",
        list(&differences)
    );
    let rounds = |results: &Results| -> BTreeSet<u32> {
        results.targets.iter().flat_map(|target| &target.runs).map(|run| run.repeat).collect()
    };
    if let Some(pair) = rounds(&one.results).intersection(&rounds(&other.results)).next() {
        bail!("pair {} is in {first} and in {second}; a pair counts once", pair + 1);
    }
    Ok(())
}

/// Compares the targets of a plan whose pairs ran on several machines, as [`load_machines`] returns them.
///
/// # Errors
/// When there are fewer than two targets, or the machines did not run pairs of one plan.
pub fn compare_machines(
    machines: &[Source],
    options: &CompareOptions,
) -> anyhow::Result<Comparison> {
    let (one, others) = machines.split_first().context("there are no results of machines")?;
    // Differences between machines affect both sides of every pair.
    let mut vary = options.vary.clone();
    vary.push("machine".to_owned());
    for (number, other) in others.iter().enumerate() {
        for before in &machines[..=number] {
            check_same_plan(before, other, &vary)?;
        }
    }
    let position = |side: Side<'_>| {
        side.results.targets.iter().position(|target| std::ptr::eq(target, side.target))
    };
    let mut comparisons = Vec::new();
    for (first, second) in sides(std::slice::from_ref(one), options)? {
        let [left, right] = [first, second].map(|side| position(side).unwrap_or(0));
        let groups: Vec<Group<'_>> = machines
            .iter()
            .map(|source| {
                let results = &source.results;
                let side =
                    |index: usize| Side { source: 0, results, target: &results.targets[index] };
                (source.name.as_str(), [side(left), side(right)])
            })
            .collect();
        let names = [first, second].map(|side| side.target.name.clone());
        let mut compared = compare_pair(names, &groups, Vec::new(), options.control_limit);
        compared.notes.extend(few_machines(&compared));
        comparisons.push(compared);
    }
    Ok(finish(std::slice::from_ref(one), comparisons, options))
}

fn few_machines(compared: &PairComparison) -> Option<String> {
    let count = compared.machines.iter().filter(|entry| entry.pairs > 0).count();
    (count < MACHINES_MIN).then(|| {
        let machines = if count == 1 { "one machine speaks" } else { "few machines speak" };
        format!(
            "{count} of at least {MACHINES_MIN} machines: {machines} for {} alone, others may show another ratio",
            if count == 1 { "itself" } else { "themselves" }
        )
    })
}
