//! Flags of `assay run`, and the chain from block files that it shares with `assay pr`.

use std::path::PathBuf;

use assay_bench::plan::{Change, Value};
use assay_lab::plan::{Kind, TargetSpec};
use clap::Args;

/// Run a plan: feed chains to nodes, measure mempools, run benchmarks.
#[derive(Debug, Clone, Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags, each on its own")]
#[command(disable_version_flag = true)]
pub(crate) struct RunArguments {
    /// Built-in plan (`assay plan list`) or path of a TOML file.
    pub(crate) plan: String,
    /// Change any key of the plan, such as feed.pace=10s.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<Change>,
    /// Seed of the chain, or of the mempool's keys.
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    seed: Option<u64>,
    /// Size: a factor; small is 0.05, medium 0.3, large 1.
    #[arg(long, value_name = "F", value_parser = super::scale)]
    scale: Option<f64>,
    /// Node to measure; may be given several times.
    #[arg(long = "target", value_name = "NAME")]
    pub(crate) targets: Vec<TargetSpec>,
    /// Runs of each target [alias: --pairs].
    #[arg(long, value_name = "N", alias = "pairs")]
    pub(crate) repeat: Option<u32>,
    /// Rounds of each benchmark.
    #[arg(long, value_name = "N")]
    pub(crate) rounds: Option<usize>,
    /// Part of a plan that has parts.
    #[arg(long, value_name = "NAME")]
    pub(crate) part: Option<String>,
    /// Folder of results [default: results/PLAN].
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Keep finished runs in OUT, make the missing ones.
    #[arg(long)]
    pub(crate) resume: bool,
    /// Print the results as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Delivery of blocks, such as p2p or reindex.
    #[arg(long, value_name = "WAY", help_heading = CHAINS)]
    by: Option<String>,
    /// Pre-relayed share of transactions, 0 to 1.
    #[arg(long, value_name = "FRACTION", help_heading = CHAINS)]
    seen: Vec<f64>,
    /// Run the whole plan N times, and count the verdicts.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100), help_heading = CHAINS)]
    pub(crate) series: Option<u32>,
    /// Run only this pair, from 1.
    #[arg(long, value_name = "I", value_parser = clap::value_parser!(u32).range(1..=100), conflicts_with_all = ["series", "profile"], help_heading = CHAINS)]
    pub(crate) pair: Option<u32>,
    /// Run each target once more under `perf`.
    #[arg(long, help_heading = CHAINS)]
    pub(crate) profile: bool,
    /// Keep the data folders of nodes.
    #[arg(long, help_heading = CHAINS)]
    pub(crate) keep_datadirs: bool,
    #[command(flatten)]
    pub(crate) own_chain: OwnChainArguments,
    /// Fewer sizes and rounds, which take minutes.
    #[arg(long, help_heading = BENCHMARKS)]
    pub(crate) quick: bool,
    /// Check the results; the times mean nothing.
    #[arg(long, conflicts_with = "quick", help_heading = BENCHMARKS)]
    pub(crate) smoke: bool,
    /// Benchmarks whose names contain or match this.
    #[arg(long, value_name = "NAME", help_heading = BENCHMARKS)]
    pub(crate) filter: Vec<String>,
    /// Count instructions with valgrind.
    #[arg(long, help_heading = BENCHMARKS)]
    pub(crate) instructions: bool,
}

/// A chain that exists.
#[derive(Debug, Clone, Args)]
pub(crate) struct OwnChainArguments {
    /// Folder; with --blocks, name of the chain.
    #[arg(long, value_name = "DIR|NAME", help_heading = OWN_CHAIN)]
    pub(crate) chain: Option<PathBuf>,
    /// Block files, as of Bitcoin Core.
    #[arg(long, value_name = "DIR", requires = "chain", conflicts_with = "scale", help_heading = OWN_CHAIN)]
    pub(crate) blocks: Option<PathBuf>,
    /// Last height.
    #[arg(long, value_name = "HEIGHT", help_heading = OWN_CHAIN)]
    pub(crate) stop_height: Option<u32>,
    /// UTXO snapshot to begin with.
    #[arg(long, value_name = "FILE", requires = "blocks", help_heading = OWN_CHAIN)]
    pub(crate) from_snapshot: Option<PathBuf>,
    /// Soft fork of --blocks, as NAME@HEIGHT.
    #[arg(long, value_name = "FORK", requires = "blocks", help_heading = OWN_CHAIN)]
    pub(crate) test_activation_height: Vec<String>,
}

const CHAINS: &str = "Chains and syncs";
const OWN_CHAIN: &str = "An existing chain";
const BENCHMARKS: &str = "Benchmarks";

/// True if plans of this kind use the flags under a heading of `--help`.
pub(crate) fn has_heading(kind: Kind, heading: &str) -> bool {
    match heading {
        CHAINS => kind == Kind::Chain,
        OWN_CHAIN => matches!(kind, Kind::Chain | Kind::Steps),
        BENCHMARKS => kind == Kind::Bench,
        _ => true,
    }
}

impl RunArguments {
    /// Folder of the results of the plan of this name.
    pub(crate) fn out_dir(&self, plan: &str) -> PathBuf {
        self.out.clone().unwrap_or_else(|| PathBuf::from("results").join(plan))
    }

    /// Changed keys of a plan: those of short flags, then those of `--set`.
    pub(crate) fn changes(&self, kind: Kind) -> anyhow::Result<Vec<Change>> {
        let list = |values: Vec<Value>| (!values.is_empty()).then_some(Value::Array(values));
        let targets = self.targets.iter().map(|target| target.to_string().into()).collect();
        let number = |number: Option<u64>| number.map(Value::try_from).transpose();
        let own = &self.own_chain;
        // The files of a user end there.
        let stop_height = own.stop_height.filter(|_| kind == Kind::Chain || own.blocks.is_none());
        // Keys of chains, the mempool, benchmarks and steps.
        let short = [
            ("--seed", number(self.seed)?, ["chain.seed", "seed", "", ""]),
            ("--scale", self.scale.map(Value::from), ["chain.scale", "scale", "", "scale"]),
            ("--target", list(targets), ["runs.targets", "targets", "worst.nodes", ""]),
            ("--repeat", self.repeat.map(Value::from), ["runs.repeat", "repeat", "", "pairs"]),
            ("--by", self.by.clone().map(Value::from), ["feed.by", "", "", ""]),
            (
                "--seen",
                list(self.seen.iter().copied().map(Value::from).collect()),
                ["feed.seen", "", "", ""],
            ),
            ("--stop-height", stop_height.map(Value::from), ["chain.stop_height", "", "", ""]),
            (
                "--rounds",
                number(self.rounds.map(|rounds| rounds as u64))?,
                ["", "", "rounds", "rounds"],
            ),
        ];
        let mut changes = Vec::new();
        for (flag, value, keys) in short {
            let Some(value) = value else { continue };
            let of_kind = keys[kind as usize];
            // A key of other plans is rejected with their names.
            let key = [of_kind].into_iter().chain(keys).find(|key| !key.is_empty());
            changes.extend(key.map(|key| Change::new(flag, key, value)));
        }
        changes.extend(self.set.iter().cloned());
        Ok(changes)
    }
}
