//! Flags of the steps of `assay shard` that find the coins which blocks spend.

use std::path::PathBuf;

use clap::Args;

/// Find the coins that blocks spend, 1 of 3: read the blocks, range by range
///
/// For a chain without undo data that nobody has validated in order. Three steps sort outputs and
/// inputs on disk, and give the files that `assay validate --write-spent` gives, which nobody has to
/// trust. Each step stays within --memory, goes on after an interruption with what is missing, and
/// can be divided among machines that share WORK (--only):
///
///   assay shard scatter WORK --blocks DIR
///   assay shard join WORK
///   assay shard gather WORK --out SPENT
///   assay shard plan --blocks DIR --spent SPENT --out PLAN
///
/// This one writes a file for each range of blocks: coins that are created and spent within the range,
/// matched in memory, and all other outputs and inputs, by partition. WORK takes up to four times the
/// room of the blocks after the second step; remove it when the third is done.
///
/// Exit status: 0 all ranges are there, 2 a range is missing; 130 or 143 interrupted.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ShardScatterArguments {
    /// Folder for the files between the steps, created if missing.
    #[arg(value_name = "WORK")]
    pub(crate) work: PathBuf,
    /// Directory with blk*.dat in it or in its `blocks`, or one file of blocks. Needed at first; later
    /// only where the files have moved.
    #[arg(long, value_name = "DIR")]
    pub(crate) blocks: Option<PathBuf>,
    /// Chain: main, test (or testnet3), testnet4, signet, regtest or bch-regtest [default: main].
    #[arg(long, value_name = "NAME")]
    pub(crate) chain: Option<String>,
    /// Height from which a soft fork (bip34, dersig, cltv, csv, segwit) is active; not on main. May
    /// be given several times.
    #[arg(long, value_name = "NAME@HEIGHT")]
    pub(crate) test_activation_height: Vec<String>,
    /// Last height.
    #[arg(long, value_name = "HEIGHT", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) stop_height: Option<u32>,
    /// Ranges of blocks wanted: what is done again after an interruption, and what machines share.
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub(crate) parts: usize,
    #[command(flatten)]
    pub(crate) limits: ShuffleLimits,
}

/// Find the coins that blocks spend, 2 of 3: match inputs with outputs.
///
/// `assay shard scatter` must have done all ranges. Writes a file for each partition. One that does
/// not fit into --memory is read in several passes.
///
/// Exit status: 0 every input has its coin; 1 an input spends a coin that does not exist, or is spent
/// before: the chain is invalid, and `assay validate` gives the verdict; 2 a partition is missing;
/// 130 or 143 interrupted.
#[derive(Debug, Args)]
pub(crate) struct ShardJoinArguments {
    /// Folder of `assay shard scatter`.
    #[arg(value_name = "WORK")]
    pub(crate) work: PathBuf,
    #[command(flatten)]
    pub(crate) limits: ShuffleLimits,
}

/// Find the coins that blocks spend, 3 of 3: put them in the order of the blocks.
///
/// `assay shard join` must have done all partitions. Writes a file of spent coins for each range of
/// blocks, and the coins left over as utxo.dat: what `assay shard plan --spent` takes.
///
/// Exit status: 0 all files are there, 2 a file is missing; 130 or 143 interrupted.
#[derive(Debug, Args)]
pub(crate) struct ShardGatherArguments {
    /// Folder of `assay shard scatter`.
    #[arg(value_name = "WORK")]
    pub(crate) work: PathBuf,
    /// Folder for the coins, created if missing.
    #[arg(long, value_name = "SPENT")]
    pub(crate) out: PathBuf,
    #[command(flatten)]
    pub(crate) limits: ShuffleLimits,
}

/// How much of a machine a step takes.
#[derive(Debug, Args)]
pub(crate) struct ShuffleLimits {
    /// Memory of the whole process. Beyond it go a table of the chain's headers while scatter looks
    /// for them at first, and the coins of a single block in gather.
    #[arg(long, value_name = "MIB", default_value_t = 1024)]
    pub(crate) memory: usize,
    /// Units of work at a time, which share --memory; 0 takes one for each core.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) par: usize,
    /// Only this range (of gather also the number after the last range: the coins left over) or
    /// partition, from 0 on, for machines that share the work; all that are missing otherwise.
    #[arg(long, value_name = "N")]
    pub(crate) only: Option<usize>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
