//! Flags of `assay shard`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Validate a chain in parts that need not know of each other: on many cores or many machines
///
/// Every rule is checked, and the coins of the chain come out, as with `assay validate`. The coins
/// that blocks spend come from files that nobody has to trust: two sums of keyed hashes, over all
/// coins created and over all spent or left over, show at the end whether they were right.
///
///   assay validate --blocks DIR --write-spent SPENT   # once for a chain, anywhere
///   assay shard plan --blocks DIR --spent SPENT --out PLAN
///   assay shard run PLAN --all --out RESULTS          # or --part N on many machines
///   assay shard merge PLAN RESULTS
///
/// The first command is not needed for a folder of Bitcoin Core with undo files (plan --core-undo).
/// `assay validate` validates blocks without undo data, in order. explain prints a plan and the time
/// breakdown of a run.
///
/// Correctness, cost and the use of many machines: docs/guide/many-machines.md.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ShardArguments {
    #[command(subcommand)]
    pub(crate) command: ShardCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ShardCommand {
    Plan(ShardPlanArguments),
    Run(ShardRunArguments),
    Merge(ShardMergeArguments),
    Explain(ShardExplainArguments),
}

/// Find the chain in block files, check its headers, and cut it into parts of about equal work.
///
/// The plan is a folder that goes to every machine: a text of the files and parts, and a table of 72
/// bytes for each block. Exit status 0, or 2 if the files do not hold the whole chain or its coins.
#[derive(Debug, Args)]
pub(crate) struct ShardPlanArguments {
    /// Directory with blk*.dat in it or in its `blocks`, or one file of blocks.
    #[arg(long, value_name = "DIR")]
    pub(crate) blocks: PathBuf,
    /// Chain: main, test (or testnet3), testnet4, signet, regtest or bch-regtest.
    #[arg(long, value_name = "NAME", default_value = "main")]
    pub(crate) chain: String,
    /// Height from which a soft fork (bip34, dersig, cltv, csv, segwit) is active; not on main. May
    /// be given several times.
    #[arg(long, value_name = "NAME@HEIGHT")]
    pub(crate) test_activation_height: Vec<String>,
    /// Folder that `assay validate --write-spent` wrote, of this chain.
    #[arg(long, value_name = "DIR", required_unless_present = "core_undo")]
    pub(crate) spent: Option<PathBuf>,
    /// Take the spent coins from Bitcoin Core's undo files (rev*.dat) next to the block files
    /// instead; with --coins, --hints or --muhash.
    #[arg(long, conflicts_with = "spent")]
    pub(crate) core_undo: bool,
    /// The coins left over: a snapshot of the UTXO set of the last block, as `dumptxoutset` of
    /// Bitcoin Core or of our node writes it [default: utxo.dat in --spent].
    #[arg(long, value_name = "FILE")]
    pub(crate) coins: Option<PathBuf>,
    /// Instead of the coins left over: which outputs they are, as a hints file (BIP 456), which
    /// `assay validate --write-hints` writes. Nobody has to trust it, and it is a hundredth of the
    /// size of the coins.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["coins", "muhash"])]
    pub(crate) hints: Option<PathBuf>,
    /// Instead of the coins left over: their MuHash, of a node that you trust. Who says what it
    /// is can make coins that were invented pass. Slower, but the parts need no salt.
    #[arg(long, value_name = "HEX", conflicts_with = "coins")]
    pub(crate) muhash: Option<String>,
    /// Parts wanted; about eight for each process that will work at a time.
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub(crate) parts: usize,
    /// Last height.
    #[arg(long, value_name = "HEIGHT", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) stop_height: Option<u32>,
    /// Folder for the plan, created if missing.
    #[arg(long, value_name = "PLAN")]
    pub(crate) out: PathBuf,
    /// Threads that search files; 0 takes one for each core.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) par: usize,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Judge one part of a plan, or all.
///
/// One part: the salt is read from standard input, 64 hexadecimal digits and a line feed: the same
/// for all parts of a run, random, new for each run, and unknown to who made the files. Nothing
/// else must be on standard input; with --with-parent the program ends when it closes.
///
/// All parts: processes of this program take one part after the other; the salt is made here and
/// kept in the results folder, readable by its owner alone, so that the same command goes on after
/// an interruption. Then the results are merged.
///
/// Exit status: 0 passed, 1 a block does not pass or the sums differ, 2 it could not be judged:
/// try again, perhaps elsewhere; 130 or 143 interrupted.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(crate) struct ShardRunArguments {
    /// Folder of the plan.
    #[arg(value_name = "PLAN")]
    pub(crate) plan: PathBuf,
    /// The part, from 0 on.
    #[arg(long, value_name = "N", required_unless_present_any = ["all", "follow"], conflicts_with = "all")]
    pub(crate) part: Option<usize>,
    /// Read the numbers of parts from standard input too, after the salt, one a line, and print a
    /// line of JSON for each; end when it closes. --all starts these processes.
    #[arg(long, conflicts_with_all = ["all", "part"])]
    pub(crate) follow: bool,
    /// All parts that have no result yet.
    #[arg(long)]
    pub(crate) all: bool,
    /// With --all: processes that work at a time; 0 takes one for each core.
    #[arg(long, value_name = "P", default_value_t = 0, requires = "all")]
    pub(crate) processes: usize,
    /// Folder for results, created if missing.
    #[arg(long, value_name = "RESULTS")]
    pub(crate) out: PathBuf,
    /// Threads of one part [default: 1 with --all, otherwise one for each core].
    #[arg(long, value_name = "N")]
    pub(crate) par: Option<usize>,
    #[command(flatten)]
    pub(crate) inputs: ShardInputs,
    /// End when standard input closes, so that no process outlives the one that started it.
    #[arg(long, conflicts_with = "all")]
    pub(crate) with_parent: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Paths of files on this machine.
#[derive(Debug, Args)]
pub(crate) struct ShardInputs {
    /// Folder of the block files, if not where the plan says.
    #[arg(long, value_name = "DIR")]
    pub(crate) blocks: Option<PathBuf>,
    /// Folder of the spent coins, if not where the plan says.
    #[arg(long, value_name = "DIR")]
    pub(crate) spent: Option<PathBuf>,
    /// Snapshot of the coins left over, if not where the plan says.
    #[arg(long, value_name = "FILE")]
    pub(crate) coins: Option<PathBuf>,
    /// Hints file, if not where the plan says.
    #[arg(long, value_name = "FILE")]
    pub(crate) hints: Option<PathBuf>,
}

/// Add the results of all parts up: the verdict, and the figures that `assay validate` prints.
///
/// Exit status: 0 the chain is valid, 1 it is not, or the files of coins are wrong: `assay validate`
/// shows which; 2 a result is missing, damaged or of another run.
#[derive(Debug, Args)]
pub(crate) struct ShardMergeArguments {
    /// Folder of the plan.
    #[arg(value_name = "PLAN")]
    pub(crate) plan: PathBuf,
    /// Folder of the results.
    #[arg(value_name = "RESULTS")]
    pub(crate) results: PathBuf,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Print a plan and where the time of its run went.
///
/// Without RESULTS: the parts and their share of the estimated work. With RESULTS: the time of each
/// part, the processor time of each stage, and the slowest part. The times of a part are known only
/// on the machine that ran it.
///
/// Exit status 0, or 2 if a file is damaged or of another plan.
#[derive(Debug, Args)]
pub(crate) struct ShardExplainArguments {
    /// Folder of the plan.
    #[arg(value_name = "PLAN")]
    pub(crate) plan: PathBuf,
    /// Folder of the results.
    #[arg(value_name = "RESULTS")]
    pub(crate) results: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
