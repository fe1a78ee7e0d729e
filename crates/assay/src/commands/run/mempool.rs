//! `assay run` with a mempool plan.

use std::path::{Path, PathBuf};

use anyhow::bail;
use assay_lab::admission::{self, MempoolOptions, MempoolPlan};
use assay_lab::progress::Terminal;

use super::{is_path, rerun};
use crate::Outcome;
use crate::cli::RunArguments;
use crate::commands::own_command;
use crate::commands::stop_flag;
use crate::output;

/// The plan; `None` if it is of another kind.
pub(super) fn find(name: &str) -> anyhow::Result<Option<MempoolPlan>> {
    if !is_path(name) {
        let text = MempoolPlan::builtin_text(name);
        return Ok(text.map(|text| MempoolPlan::parse(text, name)).transpose()?);
    }
    // An unreadable file is of no kind: the lookup of the last kind reports the error.
    let path = Path::new(name);
    let is_one = std::fs::read_to_string(path).is_ok_and(|text| MempoolPlan::is_one(&text));
    Ok(if is_one { Some(MempoolPlan::load(path)?) } else { None })
}

pub(super) fn run(mut plan: MempoolPlan, arguments: &RunArguments) -> anyhow::Result<Outcome> {
    reject_other_flags(arguments)?;
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
        assay_version: env!("CARGO_PKG_VERSION").to_owned(),
        rerun: rerun(&arguments.plan, arguments),
    };
    let reporter = Terminal::stopped_by(stop_flag());
    let results = admission::run(&plan, &options, &reporter)?;
    output::print_as(arguments.json, &results, || admission::terminal(&results))?;
    let is_faulty = results.faulty().next().is_some();
    Ok(if is_faulty { Outcome::Negative } else { Outcome::Good })
}

/// Rejects flags of chains and benchmarks.
fn reject_other_flags(arguments: &RunArguments) -> anyhow::Result<()> {
    let given = [
        ("--recipe", arguments.recipe.is_some()),
        ("--byte-scale", arguments.byte_scale.is_some()),
        ("--stop-height", arguments.stop_height.is_some()),
        ("--series", arguments.series.is_some()),
        ("--pair", arguments.pair.is_some()),
        ("--by", arguments.by.is_some()),
        ("--orphans", arguments.orphans.is_some()),
        ("--seen", !arguments.seen.is_empty()),
        ("--quick", arguments.quick),
        ("--smoke", arguments.smoke),
        ("--rounds", arguments.rounds.is_some()),
        ("--filter", !arguments.filter.is_empty()),
        ("--part", arguments.part.is_some()),
        ("--instructions", arguments.instructions),
        ("--chain", arguments.chain.is_some()),
        ("--resume", arguments.resume),
        ("--keep-datadirs", arguments.keep_datadirs),
        ("--profile", arguments.profile),
    ];
    match given.iter().find(|(_, is_given)| *is_given) {
        Some((flag, _)) => {
            bail!("{flag} means nothing for {}, a plan of the mempool", arguments.plan)
        }
        None => Ok(()),
    }
}
