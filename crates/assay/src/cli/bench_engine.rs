//! Flags of the benchmarks of our engine: `assay bench signatures`, `blocks` and `sync`.

use std::path::PathBuf;

use assay_bench::options::{Against, BlocksOptions, SignaturesOptions};
use clap::Args;

/// Signature checks in batches against plain calls of libsecp256k1, interleaved, on one thread.
///
/// ECDSA and Schnorr signatures with distinct keys, and tweaks of Taproot keys; parsing compressed
/// keys is part of the work on all sides. Ratios are the plain library's time over ours. The
/// batches are also measured with the library as their backend, which is used on processors without
/// a vector backend.
#[derive(Debug, Args)]
pub(crate) struct BenchSignaturesArguments {
    #[command(flatten)]
    pub(crate) options: SignaturesOptions,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Blocks stage by stage and connected as a whole, and Bitcoin Core's kernel at the same work.
///
/// Parsing, txids, merkle root, block checks and scripts on one thread; connecting to a chain on
/// all cores. Blocks are forged as in Bitcoin Core's connectblock benchmark (1000 transactions of 5
/// inputs: all ECDSA, all Schnorr, mixed), and real ones where they are found. Ratios are the
/// other's time over ours.
#[derive(Debug, Args)]
pub(crate) struct BenchBlocksArguments {
    #[command(flatten)]
    pub(crate) options: BlocksOptions,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Full validation of one forged chain by ours and by Bitcoin Core's kernel, interleaved, process
/// against process.
///
/// Both read the same block files with a cold page cache, start with an empty folder, are pinned to
/// the same cores, get the same number of threads and memory for coins, and verify every script.
/// Runs come in pairs in alternating order; wall time, CPU time and memory are those of whole
/// processes. After each run tip, coin count and MuHash are compared on both sides. Ratios are the
/// kernel's figure over ours.
#[expect(clippy::struct_excessive_bools, reason = "flags, each on its own")]
#[derive(Debug, Args)]
pub(crate) struct BenchSyncArguments {
    /// Reference to compare with.
    #[arg(long, value_enum, value_name = "PEER")]
    pub(crate) against: Against,
    /// The program assay-peer-kernel [default: where Cargo puts it in this checkout].
    #[arg(long, value_name = "PATH", env = "ASSAY_PEER_KERNEL")]
    pub(crate) kernel: Option<PathBuf>,
    /// Pairs of runs.
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) pairs: u32,
    /// Recipe of the chain, of a Bitcoin network.
    #[arg(long, value_name = "NAME", default_value = "bitcoin-scaling")]
    pub(crate) recipe: String,
    /// Size of the chain; 2 makes about 360,000 inputs.
    #[arg(long, value_name = "F", default_value_t = 2.0)]
    pub(crate) scale: f64,
    /// Seed of the chain.
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Give every output a key of its own.
    #[arg(long)]
    pub(crate) distinct_keys: bool,
    /// An existing chain, instead of recipe, size and seed.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["recipe", "scale", "seed", "distinct_keys"])]
    pub(crate) chain: Option<PathBuf>,
    /// Folder for the chain, which is kept and reused, for the report of the runs, and for the coins
    /// of each run, which are removed.
    #[arg(long, value_name = "DIR", default_value = "results/bench-sync")]
    pub(crate) work: PathBuf,
    /// Cores that both may use, such as 0,1 [default: all that this process may use].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) cores: Vec<usize>,
    /// Threads that verify scripts, on both sides [default: one for each core].
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,
    /// Also compare ours on one core with ours on two.
    #[arg(long)]
    pub(crate) cores_compare: bool,
    /// Also compare ours with and without the sampled second verification (--sample-signatures 0).
    #[arg(long)]
    pub(crate) sample_compare: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
