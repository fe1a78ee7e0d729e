//! Flags of `assay bench`.

use std::path::PathBuf;
use std::time::Duration;

use assay_bench::options::{
    Against, AgreementOptions, BlocksOptions, MempoolOptions, SignaturesOptions,
};
use assay_bench::plan::Change;
use assay_bench::suite::Extent;
use assay_lab::plan::TargetSpec;
use clap::{Args, Subcommand, ValueEnum};

/// Measure single operations, each with its alternatives interleaved.
///
/// Without a subcommand, every benchmark whose name a filter matches is measured with default
/// settings: its alternatives are interleaved, results are checked, and each ratio has an interval.
/// Plans (`assay run`) set sizes and write reports.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct BenchArguments {
    #[command(subcommand)]
    pub(crate) command: Option<BenchCommand>,
    #[command(flatten)]
    pub(crate) measure: MeasureArguments,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    List(BenchListArguments),
    Compare(BenchCompareArguments),
    /// Benchmark server for a comparison of builds.
    #[command(hide = true)]
    Serve(BenchServeArguments),
    /// Signature checks in batches against plain calls of libsecp256k1, interleaved, on one thread.
    ///
    /// ECDSA and Schnorr signatures with distinct keys, and tweaks of Taproot keys; parsing compressed
    /// keys is part of the work on all sides. Ratios are the plain library's time over ours. The
    /// batches are also measured with the library as their backend, which is used on processors without
    /// a vector backend.
    Signatures(ExperimentArguments<SignaturesOptions>),
    /// Blocks stage by stage and connected as a whole, and Bitcoin Core's kernel at the same work.
    ///
    /// Parsing, txids, merkle root, block checks and scripts on one thread; connecting to a chain on
    /// all cores. Blocks are forged as in Bitcoin Core's connectblock benchmark (1000 transactions of 5
    /// inputs: all ECDSA, all Schnorr, mixed), and real ones where they are found. Ratios are the
    /// other's time over ours.
    Blocks(ExperimentArguments<BlocksOptions>),
    Sync(BenchSyncArguments),
    Peers(BenchPeersArguments),
    Network(BenchNetworkArguments),
    /// Block connection while hostile threads submit the costliest transactions to the mempool.
    ///
    /// Blocks come in pairs on a regtest chain of our own, in a temporary folder: one with the engine
    /// otherwise idle, one under attack. Hostile threads submit clusters of 64 tangled transactions
    /// that outbid each other in a full mempool, and replacements that conflict with 100 such clusters
    /// and pay, but fail the feerate diagram. Every verdict is checked. Ratios are times under attack
    /// over quiet ones.
    Mempool(ExperimentArguments<MempoolOptions>),
    /// Verdicts of our engine and of Bitcoin Cash Node on the same random transactions and blocks.
    ///
    /// Both hold the same regression-test chain, in temporary folders, under the rules of May 2022. Each
    /// case is a transaction that spends outputs locked by random programs: arithmetic at the ends of the
    /// range, introspection, strings, lock times, ECDSA and Schnorr signatures; a third of the scripts
    /// and of the transactions are mutated. Both judge it as an offered transaction, where the reason
    /// names the script error, and in a block, where policy has no say. Exit status 1 when a verdict or a
    /// reason differs; the bytes are printed.
    Agreement(ExperimentArguments<AgreementOptions>),
    /// Rates of libsecp256k1 on one thread, the reference for the forge and the node.
    Libsecp {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

/// An experiment of `assay-bench`.
#[derive(Debug, Args)]
pub(crate) struct ExperimentArguments<O: Args> {
    #[command(flatten)]
    pub(crate) options: O,
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

/// Sync from many peers over slow links, with and without one that misbehaves.
///
/// A node of ours has the chain; the target syncs from it over several links of the given rate and
/// round trip, made by this program on loopback. In other runs there is one peer more, which is
/// connected first: it sends no block, or a thousand bytes a second, or has a longer branch on an
/// invalid block. In one the target assumes that the scripts are valid, so that the network is what
/// bounds it. Reported are time, the part of all links' rates that was used, who used the CPUs, and
/// memory; also in peers.json.
#[derive(Debug, Args)]
pub(crate) struct BenchPeersArguments {
    /// The node that syncs: `assay`, or `bitcoind=PATH` for a program of the Bitcoin Core family.
    #[arg(long, value_name = "NAME", default_value = "assay")]
    pub(crate) target: TargetSpec,
    /// Good peers, each over a link of its own.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u8).range(1..=100))]
    pub(crate) links: u8,
    /// Rate of each link, Mbit/s each way.
    #[arg(long, value_name = "MBIT", default_value_t = 40.0, value_parser = link_rate)]
    pub(crate) rate: f64,
    /// Time to the other end of a link and back.
    #[arg(long, value_name = "DURATION", default_value = "100ms", value_parser = super::duration)]
    pub(crate) round_trip: Duration,
    /// Rounds of all five scenarios.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = rounds)]
    pub(crate) rounds: usize,
    /// Size of the chain, at most 40; 1 is that of plan bitcoin-scaling, 40 MiB.
    #[arg(long, value_name = "F", default_value_t = 7.0)]
    pub(crate) scale: f64,
    /// Seed of the chain.
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Folder for peers.json, logs, chain and data.
    #[arg(long, value_name = "DIR", default_value = "results/peers")]
    pub(crate) out: PathBuf,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Load a network of several programs with transactions, blocks and partitions, and see whether its
/// nodes agree.
///
/// Starts the nodes on regtest, on loopback, and links them at random. Transactions with real
/// signatures go to random nodes, some in chains, some replacing others; blocks are made at random
/// nodes, though not at btcd. Random sets of links are cut for a while: messages wait, or connections
/// end, and both sides go on. Then all links are mended, and all nodes must get the same tip, the
/// same mempool and the same coins. Every link leads through this program, which reads the messages:
/// relay latency per hop, compact blocks that were put together without a request, and bytes are
/// measured for all programs in the same way. Also in network.json. Exit status 1 when nodes differ,
/// a log blames a peer, or a node ended a connection.
#[derive(Debug, Args)]
pub(crate) struct BenchNetworkArguments {
    /// A node: `assay`, `bitcoind=PATH` or `btcd=PATH`; once for each node, 2 to 16 [default: three
    /// times assay].
    #[arg(long = "target", value_name = "NAME")]
    pub(crate) targets: Vec<TargetSpec>,
    /// Duration of the load.
    #[arg(long = "for", value_name = "DURATION", default_value = "2m", value_parser = super::duration)]
    pub(crate) time: Duration,
    /// Transactions a second, in all.
    #[arg(long, value_name = "N", default_value_t = 10.0, value_parser = tx_rate)]
    pub(crate) tx_rate: f64,
    /// Mean time between blocks.
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = super::duration)]
    pub(crate) block_every: Duration,
    /// Type of the partitions.
    #[arg(long, value_enum, value_name = "HOW", default_value = "both")]
    pub(crate) cut: CutArgument,
    /// Mean time from one partition to the next.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = super::duration)]
    pub(crate) cut_every: Duration,
    /// Mean time that a partition lasts.
    #[arg(long, value_name = "DURATION", default_value = "12s", value_parser = super::duration)]
    pub(crate) cut_for: Duration,
    /// Links of a node, on average.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(2..=8))]
    pub(crate) degree: u8,
    /// Rate of each link, Mbit/s each way.
    #[arg(long, value_name = "MBIT", default_value_t = 100.0, value_parser = link_rate)]
    pub(crate) rate: f64,
    /// Time to the other end of a link and back.
    #[arg(long, value_name = "DURATION", default_value = "20ms", value_parser = super::duration)]
    pub(crate) round_trip: Duration,
    /// Seed of links, transactions, blocks and partitions.
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Folder for network.json, logs and data.
    #[arg(long, value_name = "DIR", default_value = "results/network")]
    pub(crate) out: PathBuf,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Types of partitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CutArgument {
    /// Messages wait until the links are mended.
    Hold,
    /// Connections end; nodes connect again afterwards.
    Break,
    /// Either, at random.
    Both,
    /// No partitions.
    None,
}

fn tx_rate(text: &str) -> Result<f64, String> {
    let rate: f64 = text.parse().map_err(|_| "give a number".to_owned())?;
    let is_sound = (0.01..=1_000.0).contains(&rate);
    if is_sound { Ok(rate) } else { Err("give 0.01 to 1000".to_owned()) }
}

fn link_rate(text: &str) -> Result<f64, String> {
    let rate: f64 = text.parse().map_err(|_| "give a number".to_owned())?;
    let is_sound = (0.01..=100_000.0).contains(&rate);
    if is_sound { Ok(rate) } else { Err("give 0.01 to 100000 Mbit/s".to_owned()) }
}

/// Which benchmarks, and how.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags, each on its own")]
pub(crate) struct MeasureArguments {
    /// Parts of names, or patterns of whole names where there is a `*` (anything) or `?` (one
    /// character) in them; a name of a subcommand is written as a pattern: `*blocks*`. Without one,
    /// all.
    #[arg(value_name = "FILTER")]
    pub(crate) filter: Vec<String>,
    /// Extent of the measurement.
    #[arg(long, value_enum, value_name = "EXTENT", default_value = "full")]
    pub(crate) extent: Extent,
    /// Measured rounds; every alternative runs once in each [default: 21, quick 15, smoke 1].
    #[arg(long, value_name = "N", value_parser = rounds)]
    pub(crate) rounds: Option<usize>,
    /// If the processor's counters are unavailable, count instructions with valgrind in child
    /// processes: on the code paths for valgrind's processor, which lacks AVX-512 and SHA
    /// instructions.
    #[arg(long)]
    pub(crate) instructions: bool,
    /// Print JSON with every sample.
    #[arg(long)]
    pub(crate) json: bool,
    /// Print a line of comma-separated values for each alternative.
    #[arg(long, conflicts_with = "json")]
    pub(crate) csv: bool,
    /// Print a Markdown table.
    #[arg(long, conflicts_with_all = ["json", "csv"])]
    pub(crate) markdown: bool,
    /// Also write the results as JSON to this file, for `assay bench compare`.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

/// Names of the benchmarks.
#[derive(Debug, Args)]
pub(crate) struct BenchListArguments {
    /// As for `assay bench`.
    #[arg(value_name = "FILTER")]
    pub(crate) filter: Vec<String>,
    /// Only benchmarks of this extent.
    #[arg(long, value_enum, value_name = "EXTENT", default_value = "full")]
    pub(crate) extent: Extent,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Compare two files of results: what became faster, what slower.
///
/// A ratio is the time in the first file over the time in the second: above 1 the second is faster.
/// Its interval is that of two unpaired medians. Exit status 1 when anything became slower.
#[derive(Debug, Args)]
pub(crate) struct BenchCompareArguments {
    /// Results before: a file of `assay bench --out`, or a folder of `assay run`.
    #[arg(value_name = "A.json")]
    pub(crate) before: PathBuf,
    /// Results after.
    #[arg(value_name = "B.json")]
    pub(crate) after: PathBuf,
    /// Smallest difference of medians that counts, percent [default: the larger noise floor of both
    /// runs, at least 2].
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub(crate) floor: Option<f64>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Benchmark server on standard input and output.
#[derive(Debug, Args)]
pub(crate) struct BenchServeArguments {
    /// Only benchmarks of this plan, a name or a path [default: all, with default settings].
    #[arg(long, value_name = "PLAN")]
    pub(crate) plan: Option<String>,
    /// Change a key of the plan, as `assay run --set`.
    #[arg(long, value_name = "KEY=VALUE", requires = "plan")]
    pub(crate) set: Vec<Change>,
    /// Only benchmarks of this extent.
    #[arg(long, value_enum, value_name = "EXTENT", default_value = "full")]
    pub(crate) extent: Extent,
}

/// A share given in percent.
pub(super) fn percent(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(percent) if (0.0..=1000.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err("give a number from 0 to 1000".to_owned()),
    }
}

/// A number of rounds that is possible.
pub(super) fn rounds(text: &str) -> Result<usize, String> {
    let most = assay_bench::plan::ROUNDS_MAX;
    match text.parse() {
        Ok(rounds) if (1..=most).contains(&rounds) => Ok(rounds),
        _ => Err(format!("give a number from 1 to {most}")),
    }
}
