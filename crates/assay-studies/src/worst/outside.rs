//! Time of the user's full nodes to accept the worst block, at the end of a whole chain over RPC.

use assay_bench::suite::{Extent, StudyTable};
use assay_bench::{BenchError, Progress};
use assay_consensus::script::RuleSet;
use assay_lab::companion::Companion;
use assay_lab::outside::Outside;
use assay_lab::plan::{TargetSpec, TargetSpecError};

use super::block::Made;
use super::cell::{Effort, STEP, growth};
use super::classes::Class;
use super::hashing::Rules;

/// The program of the target `assay`.
const ASSAY: Companion<'static> = Companion {
    variable: "ASSAY",
    folder: "",
    file: if cfg!(debug_assertions) { "target/debug/assay" } else { "target/release/assay" },
};

/// Time of a node for a block.
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

/// Parses target specifications of nodes.
pub(super) fn specs(nodes: &[String]) -> Result<Vec<TargetSpec>, BenchError> {
    let parse = |node: &String| {
        node.parse().map_err(|error: TargetSpecError| failed(node, &error.to_string()))
    };
    nodes.iter().map(parse).collect()
}

fn failed(node: &str, detail: &str) -> BenchError {
    BenchError::PeerFailed { program: node.into(), detail: detail.to_owned() }
}

/// Every class that is valid under today's rules, on each node: blocks grow until the next would take too long.
pub(super) fn measure(
    specs: &[TargetSpec],
    classes: &[&'static Class],
    rules: &Rules<'_>,
    (extent, effort): (Extent, &Effort),
    progress: &dyn Progress,
) -> Result<Vec<Timed>, BenchError> {
    let mut timed = Vec::new();
    if specs.is_empty() {
        return Ok(timed);
    }
    let classes: Vec<_> = classes.iter().filter(|class| !class.is_proposed).collect();
    progress.begin("nodes from outside", classes.len() as u64);
    for class in classes {
        for spec in specs {
            timed.extend(grow(spec, class, rules, (extent, effort))?);
        }
        progress.step();
    }
    Ok(timed)
}

/// The heaviest block that a node accepts in time.
fn grow(
    spec: &TargetSpec,
    class: &'static Class,
    rules: &Rules<'_>,
    (extent, effort): (Extent, &Effort),
) -> Result<Option<Timed>, BenchError> {
    let mut weight = effort.weight_outside(extent);
    let mut steps = Vec::new();
    loop {
        let Some(made) = (class.make)(rules, weight) else { return Ok(None) };
        if made.block.verify(&RuleSet::TODAY).is_err() {
            return Ok(None);
        }
        let timed = give(spec, class, &made)?;
        steps.push((timed.weight as f64, timed.seconds));
        let next = timed.seconds * f64::from(STEP).powf(growth(&steps));
        // A single block has no growth.
        let is_late = steps.len() > 1 && next > effort.seconds_max();
        if weight >= effort.weight_max() || made.is_all || is_late {
            return Ok(Some(timed));
        }
        weight *= STEP;
    }
}

/// Starts a node and submits the chain up to the block.
fn give(spec: &TargetSpec, class: &Class, made: &Made) -> Result<Timed, BenchError> {
    let name = spec.to_string();
    let outside = |error: anyhow::Error| failed(&name, &format!("{error:#}"));
    let dir = tempfile::tempdir()
        .map_err(|source| BenchError::File { path: std::env::temp_dir(), source })?;
    let looked = ASSAY.places(None);
    let own = looked.iter().find(|path| path.is_file()).ok_or_else(|| BenchError::File {
        path: looked[0].clone(),
        source: std::io::ErrorKind::NotFound.into(),
    })?;
    let own = (own.as_path(), env!("CARGO_PKG_VERSION"));
    let mut node = Outside::start(spec, own, &dir.path().join("node")).map_err(outside)?;
    let mut blocks = 0;
    let seconds = made.block.give(|raw| {
        blocks += 1;
        node.submit(raw)
    });
    let seconds = seconds.map_err(outside)?;
    let (name, version) = (node.name.clone(), node.version.clone());
    node.stop().map_err(outside)?;
    let weight = made.block.weight;
    Ok(Timed { class: class.name, node: name, version, weight, before: blocks - 1, seconds })
}

/// Description of the table.
pub(super) fn prose() -> String {
    "A node of its own for each row, over a new data folder: it is given a regtest chain over RPC that has the outputs, and the worst block last. Seconds are those from \
     `submitblock` to its answer, one block a row: decoding, all checks, coins and writing included, on whatever threads the node uses. Blocks of growing weight are made until the next one \
     would take longer than the plan allows."
        .to_owned()
}

/// Rows of the nodes, by class.
pub(super) fn table(timed: &[Timed]) -> StudyTable {
    let head = ["class", "node", "version", "weight", "blocks before", "seconds"];
    let row = |timed: &Timed| {
        vec![
            timed.class.to_owned(),
            timed.node.clone(),
            timed.version.clone(),
            timed.weight.to_string(),
            timed.before.to_string(),
            format!("{:.3}", timed.seconds),
        ]
    };
    StudyTable::of(
        "Seconds that a node takes to accept the block, by `submitblock`",
        &head,
        3,
        timed.iter().map(row),
    )
}
