//! `assay run` with a mempool plan.

use std::path::PathBuf;

use assay_lab::admission::{self, MempoolOptions, MempoolPlan};
use assay_lab::plan::PlanFile;
use assay_lab::progress::Terminal;

use super::rerun;
use crate::Outcome;
use crate::cli::RunArguments;
use crate::commands::bench::software;
use crate::commands::own_command;
use crate::commands::stop_flag;
use crate::output;

/// Flags of chains and benchmarks.
const OTHER_FLAGS: &str = "--recipe --byte-scale --stop-height --series --pair --by --orphans --seen --quick --smoke \
                           --rounds --filter --part --instructions --chain --resume --keep-datadirs --profile";

pub(super) fn run(mut plan: MempoolPlan, arguments: &RunArguments) -> anyhow::Result<Outcome> {
    arguments.reject("the mempool", OTHER_FLAGS)?;
    if let Some(scale) = arguments.scale {
        let own = plan.cases.iter_mut().filter_map(|case| case.txs.as_mut());
        for txs in own.chain([&mut plan.txs]) {
            *txs = (*txs as f64 * scale).ceil() as usize;
        }
    }
    plan.seed = arguments.seed.unwrap_or(plan.seed);
    plan.repeat = arguments.repeat.unwrap_or(plan.repeat);
    let plan = plan.checked("command line")?;
    let out_dir =
        arguments.out.clone().unwrap_or_else(|| PathBuf::from("results").join(&plan.name));
    let options = MempoolOptions {
        out_dir,
        targets: arguments.targets.clone(),
        node_command: own_command(&["node"])?,
        software: software(),
        rerun: rerun(&arguments.plan, arguments),
    };
    let reporter = Terminal::stopped_by(stop_flag());
    output::print_record(&admission::run(&plan, &options, &reporter)?, arguments.json)
}
