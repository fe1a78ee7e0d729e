//! `assay crash`.

use assay_lab::crash::{CrashOptions, run as run_crash};
use assay_lab::progress::Terminal;

use super::run::{find_plan, own_command};
use super::stop_flag;
use crate::Outcome;
use crate::cli::CrashArguments;
use crate::output;

pub(crate) fn run(arguments: &CrashArguments) -> anyhow::Result<Outcome> {
    let mut plan = find_plan(&arguments.plan)?;
    plan.chain.scale = arguments.scale;
    plan.chain.seed = arguments.seed;
    let options = CrashOptions {
        out_dir: arguments.out.clone(),
        plan,
        kills: arguments.kills,
        seed: arguments.seed,
        target: arguments.target.clone(),
        cache_mib: arguments.db_cache.clone(),
        forge_command: own_command(&["chain", "forge"])?,
        node_command: own_command(&["node"])?,
        assay_version: env!("CARGO_PKG_VERSION").to_owned(),
        rustc_version: env!("ASSAY_RUSTC_VERSION").to_owned(),
        rerun: rerun(arguments),
    };
    let report = run_crash(&options, &Terminal::stopped_by(stop_flag()?))?;
    if arguments.json {
        output::print_json(&report)?;
    } else {
        output::print(&report.terminal())?;
    }
    Ok(if report.is_good() { Outcome::Good } else { Outcome::Negative })
}

/// The command line that does it again; moments in real time differ from run to run all the same.
fn rerun(arguments: &CrashArguments) -> String {
    let CrashArguments { plan, kills, scale, seed, target, db_cache, .. } = arguments;
    let cache: Vec<String> = db_cache.iter().map(u32::to_string).collect();
    let cache = cache.join(",");
    format!(
        "assay crash {plan} --kills {kills} --scale {scale} --seed {seed} --target {target} --db-cache {cache}"
    )
}
