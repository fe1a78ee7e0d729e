//! Mempool admission benchmark: nodes without block work receive the same transactions, case by case.
//!
//! Each round starts all nodes and runs each case on one node after the other, in alternating order. Blocks empty the mempool
//! between cases. A case that overflows the mempool gets nodes of its own with a small mempool.

mod measure;
mod plan;
mod report;
mod work;

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Context as _;
use assay_report::atomic_file;
use assay_report::record::Record;

use self::measure::{CaseRun, Measured};
pub use self::plan::{By, Case, MempoolPlan, What};
use self::work::Workload;
use crate::machine::Software;
use crate::machine::clock::Clock;
use crate::machine::disk::renew_folder;
use crate::network::Node;
use crate::plan::TargetSpec;
use crate::progress::{Event, Reporter};
use crate::target::{Target, TargetError};

/// Options of a mempool benchmark.
#[derive(Debug, Clone)]
pub struct MempoolOptions {
    /// Folder of data, logs and results. Created if missing.
    pub out_dir: PathBuf,
    /// Command that starts Assay's node.
    pub node_command: Vec<OsString>,
    /// The calling program.
    pub software: Software,
    /// Command line that repeats the run.
    pub rerun: String,
}

/// Enough for all transactions of a case.
const LARGE_MEMPOOL_MB: u32 = 1000;

/// Measures all cases on all targets.
///
/// # Errors
/// When a target cannot be used or does not do its part, or the report cannot be written.
pub fn run(
    plan: &MempoolPlan,
    options: &MempoolOptions,
    reporter: &dyn Reporter,
) -> anyhow::Result<Record> {
    let targets = detect(&plan.targets(&plan.name)?, options)?;
    atomic_file::create_folder(&options.out_dir.join("logs"))?;
    let workload = Workload::make(plan);
    let mut runs = Vec::new();
    for round in 0..plan.repeat {
        let session =
            Session { plan, workload: &workload, targets: &targets, options, reporter, round };
        session.run(&mut runs)?;
        // Only data folders remain in it.
        let work = options.out_dir.join("work");
        renew_folder(&work)?;
    }
    reporter.event(&Event::Finished);
    let record = report::record(plan, options, &targets, &runs);
    record.write(&options.out_dir.join("mempool.json"))?;
    Ok(record)
}

fn detect(specs: &[TargetSpec], options: &MempoolOptions) -> Result<Vec<Target>, TargetError> {
    let mut targets = Vec::new();
    for spec in specs {
        let target = Target::detect(spec, &options.node_command, &options.software.assay)?;
        target.check_mempool()?;
        target.push_to(&mut targets);
    }
    Ok(targets)
}

struct Session<'a> {
    plan: &'a MempoolPlan,
    workload: &'a Workload,
    targets: &'a [Target],
    options: &'a MempoolOptions,
    reporter: &'a dyn Reporter,
    round: u32,
}

impl<'a> Session<'a> {
    /// Adds the runs of the round.
    fn run(&self, runs: &mut Vec<CaseRun<'a>>) -> anyhow::Result<()> {
        let nodes = self.start(LARGE_MEMPOOL_MB)?;
        for (at, case) in self.plan.cases.iter().enumerate() {
            let (round, of) = (self.round + 1, self.plan.repeat);
            let status = format!("round {round} of {of}: {}", case.name);
            self.reporter.event(&Event::Status(&status));
            if case.what == What::Evict {
                let small = self.start(self.plan.full_mempool_mb)?;
                self.case(at, &small, runs)?;
                self.stop(small)?;
            } else {
                self.case(at, &nodes, runs)?;
            }
        }
        self.stop(nodes)
    }

    /// Starts a node per target and loads the chain.
    fn start(&self, mempool_mb: u32) -> anyhow::Result<Vec<Node>> {
        let work = self.options.out_dir.join("work");
        let start = |target: &Target| -> anyhow::Result<Node> {
            let name = format!("{}-{mempool_mb}", target.name);
            let log = self.options.out_dir.join("logs").join(format!("{name}.log"));
            let node = Node::start_new(target, &work.join(&name), &log, |datadir, ports| {
                target.launch_mempool(datadir, ports, mempool_mb)
            })?;
            self.workload.base.give_in_batches(&node)?;
            Ok(node)
        };
        let named = |target: &Target| start(target).with_context(|| target.name.clone());
        self.targets.iter().map(named).collect()
    }

    /// Runs one case on all nodes; the first node alternates from round to round.
    fn case(&self, at: usize, nodes: &[Node], runs: &mut Vec<CaseRun<'a>>) -> anyhow::Result<()> {
        let mut order: Vec<_> = self.targets.iter().zip(nodes).collect();
        if (self.round as usize + at) % 2 == 1 {
            order.reverse();
        }
        for (target, node) in order {
            self.reporter.check_stop()?;
            let measured = Measured {
                plan: self.plan,
                case: &self.plan.cases[at],
                work: &self.workload.of_cases[at],
                node,
                target: &target.name,
                reporter: self.reporter,
                clock: Clock::start(),
            };
            runs.push(measured.run(self.round)?);
        }
        Ok(())
    }

    fn stop(&self, nodes: Vec<Node>) -> anyhow::Result<()> {
        for (node, target) in nodes.into_iter().zip(self.targets) {
            node.stop().with_context(|| target.name.clone())?;
        }
        Ok(())
    }
}
