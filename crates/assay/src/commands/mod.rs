//! One file for each command or for those alike; the completions of a shell and the pages of the manual are here.

pub(crate) mod bench;
pub(crate) mod block;
pub(crate) mod builds;
pub(crate) mod chain;
pub(crate) mod crash;
pub(crate) mod electrum;
pub(crate) mod emit;
mod hostile;
pub(crate) mod index;
pub(crate) mod load;
pub(crate) mod logs;
pub(crate) mod machine;
pub(crate) mod node;
pub(crate) mod pr;
pub(crate) mod publish;
pub(crate) mod results;
pub(crate) mod run;
pub(crate) mod shard;
pub(crate) mod top;
pub(crate) mod validate;
pub(crate) mod verify_data;

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, ensure};
use assay_engine::ChainParams;
use assay_lab::network::NetworkOptions;
use assay_lab::plan::{Plan, TargetSpec};
use assay_lab::run::RunOptions;
use assay_node::NodeConfig;
use assay_report::atomic_file;
use clap::CommandFactory;

use crate::bitcoind::with_activation_heights;
use crate::cli::{Cli, CompletionsArguments, ManArguments};
use crate::invocation::rerun;
use crate::signals::stop_flag;
use crate::{Outcome, output};

/// Prints the completion script of a shell, generated from the definition of the flags as the pages of [`man`] are.
pub(crate) fn completions(arguments: &CompletionsArguments) -> anyhow::Result<Outcome> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "assay", &mut script);
    output::print(std::str::from_utf8(&script).context("the script is not UTF-8")?)?;
    Ok(Outcome::Good)
}

/// Writes a page for the program and one for each command.
pub(crate) fn man(arguments: &ManArguments) -> anyhow::Result<Outcome> {
    atomic_file::create_folder(&arguments.out)?;
    clap_mangen::generate_to(Cli::command(), &arguments.out)
        .with_context(|| format!("cannot write man pages to {}", arguments.out.display()))?;
    Ok(Outcome::Good)
}

/// Configuration of a node that has stored blocks in this data folder.
fn node_with_blocks(chain: &str, datadir: &Path) -> anyhow::Result<NodeConfig> {
    let node = NodeConfig::new(chain, datadir)?;
    let dir = node.chain_dir();
    ensure!(
        dir.join("blocks").is_dir(),
        "{} holds no blocks: name the --datadir and --chain of a node that has validated some",
        dir.display()
    );
    Ok(node)
}

fn chain(name: &str) -> anyhow::Result<Arc<ChainParams>> {
    let params = ChainParams::by_name(name).with_context(|| assay_engine::unknown_chain(name))?;
    Ok(Arc::new(params))
}

/// The same, with heights of soft forks as `--test-activation-height` has them.
fn chain_with(name: &str, heights: &[String]) -> anyhow::Result<Arc<ChainParams>> {
    let params = Arc::unwrap_or_clone(chain(name)?);
    with_activation_heights(params, "--test-activation-height", heights).map(Arc::new)
}

/// Command line that starts this program with the given arguments.
fn own_command(words: &[&str]) -> anyhow::Result<Vec<OsString>> {
    let path = std::env::current_exe().context("cannot find the path of this program")?;
    Ok(std::iter::once(path.into_os_string()).chain(words.iter().map(OsString::from)).collect())
}

/// Options of a network around one target, on a chain of the plan `bitcoin-scaling`.
fn network_options(
    target: &TargetSpec,
    scale: f64,
    seed: u64,
    out_dir: &Path,
) -> anyhow::Result<NetworkOptions> {
    let mut plan = Plan::builtin("bitcoin-scaling")?;
    (plan.chain.scale, plan.chain.seed) = (scale, seed);
    Ok(NetworkOptions {
        out_dir: out_dir.to_owned(),
        plan,
        target: target.clone(),
        forge_command: own_command(&["chain", "forge"])?,
        node_command: own_command(&["node"])?,
        software: bench::software(),
        rerun: rerun(),
    })
}

/// Options with the paths of this program's own subcommands.
fn own_programs() -> anyhow::Result<RunOptions> {
    Ok(RunOptions {
        forge_command: own_command(&["chain", "forge"])?,
        node_command: own_command(&["node"])?,
        serve_command: own_command(&["chain", "serve"])?,
        reference_rate_command: own_command(&["bench", "libsecp", "--json"])?,
        assay_version: env!("CARGO_PKG_VERSION").to_owned(),
        rustc_version: env!("ASSAY_RUSTC_VERSION").to_owned(),
        ..RunOptions::default()
    })
}

/// Number of threads: as given, or one per core for 0.
fn threads(asked: usize) -> usize {
    match asked {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        asked => asked,
    }
}

/// Prints names, each with a description on its line unless as JSON.
fn print_names(is_json: bool, names: &[(&str, String)]) -> anyhow::Result<Outcome> {
    let only: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
    let width = only.iter().map(|name| name.len()).max().unwrap_or_default();
    output::print_as(is_json, &only, || {
        let line = |(name, about): &(&str, String)| format!("{name:<width$}  {about}");
        names.iter().map(|name| line(name).trim_end().to_owned() + "\n").collect()
    })?;
    Ok(Outcome::Good)
}

/// Prints the built-in text of a name, which a command lists.
fn print_builtin(
    text: Option<&str>,
    what: &str,
    name: &str,
    list: &str,
) -> anyhow::Result<Outcome> {
    output::print(text.with_context(|| {
        format!("there is no built-in {what} {name:?}; `assay {list}` lists them")
    })?)?;
    Ok(Outcome::Good)
}

fn mebibytes(flag: &str, count: usize) -> anyhow::Result<usize> {
    const MAX: usize = 1 << 20;
    ensure!((1..=MAX).contains(&count), "{flag} {count}: give 1 to {MAX} MiB");
    Ok(count << 20)
}
