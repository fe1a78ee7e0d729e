//! Time of the user's full nodes to accept the worst block, at the end of a whole chain over RPC.

use anyhow::{Context as _, Result};
use assay_bench::Progress;
use assay_bench::suite::{Extent, StudyTable};
use assay_consensus::script::RuleSet;
use assay_lab::companion::{Companion, listed};
use assay_lab::outside::Outside;
use assay_lab::plan::TargetSpec;

use super::block::Made;
use super::cell::Effort;
use super::classes::Class;
use super::hashing::Rules;
use crate::temporary_folder;

const ASSAY: Companion<'static> = Companion {
    variable: "ASSAY",
    folder: "",
    file: if cfg!(debug_assertions) { "target/debug/assay" } else { "target/release/assay" },
};

#[derive(Clone, Debug)]
pub(super) struct Timed {
    class: &'static str,
    node: String,
    version: String,
    weight: u64,
    /// Number of blocks submitted before it.
    before: usize,
    seconds: f64,
}

pub(super) fn specs(nodes: &[String]) -> Result<Vec<TargetSpec>> {
    let parse =
        |node: &String| node.parse::<TargetSpec>().with_context(|| format!("{node} failed"));
    nodes.iter().map(parse).collect()
}

/// Every class that is valid under today's rules, on each node: blocks grow until the next would take too long.
pub(super) fn measure(
    specs: &[TargetSpec],
    classes: &[&'static Class],
    rules: &Rules<'_>,
    (extent, effort): (Extent, &Effort),
    progress: &dyn Progress,
) -> Result<Vec<Timed>> {
    let mut timed = Vec::new();
    if specs.is_empty() {
        return Ok(timed);
    }
    let classes: Vec<_> = classes.iter().filter(|class| !class.is_proposed).collect();
    progress.begin("nodes from outside", classes.len() as u64);
    for class in classes {
        let make = |weight: u32| {
            let is_valid = |made: &Made| made.block.verify(&RuleSet::TODAY).is_ok();
            (class.make)(rules, weight).filter(is_valid)
        };
        for spec in specs {
            let mut last = None;
            let found = effort.heaviest(effort.weight_outside(extent), make, |made| {
                let timed = give(spec, class, made).with_context(|| format!("{spec} failed"))?;
                Ok(last.insert(timed).seconds)
            })?;
            timed.extend(found.and(last));
        }
        progress.step();
    }
    Ok(timed)
}

fn give(spec: &TargetSpec, class: &Class, made: &Made) -> Result<Timed> {
    let dir = temporary_folder()?;
    let looked = ASSAY.places(None);
    let own = looked.iter().find(|path| path.is_file());
    let own = own.with_context(|| format!("cannot find assay{}", listed(&looked)))?;
    let own = (own.as_path(), env!("CARGO_PKG_VERSION"));
    let mut node = Outside::start(spec, own, &dir.path().join("node"))?;
    let mut blocks = 0;
    let seconds = made.block.give(|raw| {
        blocks += 1;
        node.submit(raw)
    })?;
    let (name, version) = (node.name.clone(), node.version.clone());
    node.stop()?;
    let weight = made.block.weight;
    Ok(Timed { class: class.name, node: name, version, weight, before: blocks - 1, seconds })
}

pub(super) fn prose() -> String {
    "A node of its own for each row, over a new data folder: it is given a regtest chain over RPC that has the outputs, and the worst block last. Seconds are those from \
     `submitblock` to its answer, one block a row: decoding, all checks, coins and writing included, on whatever threads the node uses. Blocks of growing weight are made until the next one \
     would take longer than the plan allows."
        .to_owned()
}

pub(super) fn table(timed: &[Timed]) -> StudyTable {
    crate::table(
        "Seconds that a node takes to accept the block, by `submitblock`",
        3,
        timed,
        &[
            ("class", &|timed| timed.class.to_owned()),
            ("node", &|timed| timed.node.clone()),
            ("version", &|timed| timed.version.clone()),
            ("weight", &|timed| timed.weight.to_string()),
            ("blocks before", &|timed| timed.before.to_string()),
            ("seconds", &|timed| format!("{:.3}", timed.seconds)),
        ],
    )
}
