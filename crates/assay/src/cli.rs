//! Flags and arguments.

mod bench;
mod block_files;
mod builds;
mod electrum;
mod emit;
mod lab;
mod load;
mod p2p;
mod run;
mod shard;
mod stats;
mod top;

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use assay_bench::options::duration;
use assay_engine::{BlockHash, EXACT_NEAR_TIP_DEFAULT, SAMPLE_SIGNATURES_DEFAULT};
use assay_lab::plan::TargetSpec;
use assay_node::http::{RpcAuth, Subnet};
use clap::{Args, Parser, Subcommand, ValueEnum};

pub(crate) use bench::{
    BenchArguments, BenchCommand, BenchCompareArguments, BenchListArguments, BenchNetworkArguments,
    BenchPeersArguments, BenchServeArguments, BenchSyncArguments, CutArgument, ExperimentArguments,
    MeasureArguments,
};
pub(crate) use block_files::{LedgerArguments, ServeChainArguments};
pub(crate) use builds::{
    BuildsArguments, BuildsCleanArguments, BuildsCommand, BuildsMakeArguments, HowArguments,
    PartArgument, PrArguments,
};
pub(crate) use electrum::{
    ElectrumArguments, ElectrumCheckArguments, ElectrumCommand, ServeArguments,
};
pub(crate) use emit::EmitArguments;
pub(crate) use lab::{
    CompareArguments, HistoryArguments, LogsArguments, MachineArguments, PublishArguments,
};
pub(crate) use load::{LoadArguments, LoadCommand, LoadElectrumArguments};
pub(crate) use p2p::{LoadP2pArguments, P2pArguments};
pub(crate) use run::{OwnChainArguments, RunArguments, has_heading};
pub(crate) use shard::{
    ShardArguments, ShardCommand, ShardExplainArguments, ShardInputs, ShardMergeArguments,
    ShardPlanArguments, ShardRunArguments,
};
pub(crate) use stats::StatsArguments;
pub(crate) use top::TopArguments;

/// The version, with a warning for builds with test features.
pub(crate) const VERSION: &str = if cfg!(feature = "slowed") {
    concat!(env!("CARGO_PKG_VERSION"), " (slowed by 5 % on purpose)")
} else if cfg!(feature = "planted") {
    concat!(env!("CARGO_PKG_VERSION"), " (takes defects from ASSAY_PLANT on purpose)")
} else {
    env!("CARGO_PKG_VERSION")
};

/// Validates blocks, and measures how fast nodes and indexes do.
///
/// Assay forges Bitcoin-family chains, validates them with its own engine, feeds them to any node,
/// measures from outside and reports. Data goes to standard output, everything else to standard
/// error. Exit status: 0 success, 1 negative result (an invalid run, an invalid block, data lost by
/// a kill), 2 wrong usage or failure, 130 after Ctrl-C, 143 after SIGTERM (a node: 0).
#[derive(Debug, Parser)]
#[command(name = "assay", version = VERSION, propagate_version = true, max_term_width = 110)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

// Subcommands take their `--help` texts from the argument types: a doc comment on a variant would replace them.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(Box<RunArguments>),
    Crash(CrashArguments),
    Plan(PlanArguments),
    Chain(ChainArguments),
    Electrum(ElectrumArguments),
    Node(Box<NodeArguments>),
    Bitcoind(BitcoindArguments),
    Top(TopArguments),
    Index(IndexArguments),
    Validate(ValidateArguments),
    VerifyData(VerifyDataArguments),
    Shard(ShardArguments),
    Block(BlockArguments),
    Report(ReportArguments),
    Publish(PublishArguments),
    Compare(CompareArguments),
    History(HistoryArguments),
    Machine(MachineArguments),
    Bench(BenchArguments),
    Builds(BuildsArguments),
    Pr(PrArguments),
    Load(LoadArguments),
    Emit(EmitArguments),
    Logs(LogsArguments),
    Completions(CompletionsArguments),
    Man(ManArguments),
}

/// Run a node with Bitcoin Core's command line and configuration file.
///
/// `assay bitcoind -help` lists the options. Scripts that start `bitcoind` can use a link of that name to
/// this program.
#[derive(Debug, Args)]
#[command(disable_help_flag = true, disable_version_flag = true)]
pub(crate) struct BitcoindArguments {
    /// Options of Bitcoin Core, such as `-regtest -datadir=DIR`.
    #[arg(value_name = "OPTION", trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) arguments: Vec<std::ffi::OsString>,
}

/// Print the completion script of a shell.
///
/// For bash: `assay completions bash > ~/.local/share/bash-completion/completions/assay`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArguments {
    /// The shell.
    pub(crate) shell: clap_complete::Shell,
}

/// Write man pages, one for each command.
#[derive(Debug, Args)]
pub(crate) struct ManArguments {
    /// Folder for the pages, created if missing.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
}

/// Kill a node at random times and check that it loses nothing.
///
/// Two forged chains that fork at genesis alternate as the best chain, so the node extends,
/// reorganises down to genesis and is rolled back by `invalidateblock`, while it is killed
/// (SIGKILL) at seeded random times. After every start all acknowledged blocks must be present, and
/// tip and UTXO MuHash must equal those of a run that was never killed. Exit status 1 when anything
/// was lost.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "one for each flag of the command line")]
pub(crate) struct CrashArguments {
    /// Built-in plan or TOML file with the recipe and node settings to use.
    #[arg(default_value = "bitcoin-scaling")]
    pub(crate) plan: String,
    /// Processes to kill.
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) kills: u32,
    /// Let the blocks come from a second node, over the peer-to-peer protocol, instead of by RPC;
    /// our own node only. Every tip that the node reports counts as acknowledged.
    #[arg(long)]
    pub(crate) p2p: bool,
    /// Panic at marked points of the program instead of SIGKILL; our own node only, built with
    /// `--features panic-points`.
    #[arg(long)]
    pub(crate) panics: bool,
    /// Size of the chains; 1 is the size of the plan's published experiment.
    #[arg(long, value_name = "F", default_value_t = 0.02)]
    pub(crate) scale: f64,
    /// Seed of the chains, the schedules and the kill times.
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Target to kill: `assay`, or `bitcoind=PATH` for a program of the Bitcoin Core family.
    #[arg(long, value_name = "NAME", default_value = "assay")]
    pub(crate) target: TargetSpec,
    /// Run the node with its index too, and compare the index's results, byte for byte, with those
    /// of an index that was never killed.
    #[arg(long)]
    pub(crate) index: bool,
    /// With --index: compare the results at every K-th start.
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) index_every: u32,
    /// With --index: script hashes of each chain to query; a sample where there are more.
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = at_least_one)]
    pub(crate) index_scripts: usize,
    /// Sizes of the coins cache in MiB, used alternately: a small one flushes often.
    #[arg(long, value_name = "MIB", value_delimiter = ',', default_values_t = [4, 16, 256])]
    pub(crate) db_cache: Vec<u32>,
    /// Folder for crash.json, the chains and, when something was lost, the node's data.
    #[arg(long, value_name = "DIR", default_value = "results/crash")]
    pub(crate) out: PathBuf,
    /// Print the results as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show the built-in plans.
#[derive(Debug, Args)]
pub(crate) struct PlanArguments {
    #[command(subcommand)]
    pub(crate) command: PlanCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PlanCommand {
    /// Names of the built-in plans.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// The text of a built-in plan, as a starting point for your own.
    Show {
        /// Name of the plan.
        name: String,
    },
}

/// Forge chains; chain statistics.
#[derive(Debug, Args)]
pub(crate) struct ChainArguments {
    #[command(subcommand)]
    pub(crate) command: ChainCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ChainCommand {
    Forge(ForgeArguments),
    Scripts(ScriptsArguments),
    Stats(StatsArguments),
    Ledger(LedgerArguments),
    Serve(ServeChainArguments),
    /// Names of the built-in recipes.
    Recipes {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// The text of a built-in recipe, as a starting point for your own.
    Recipe {
        /// Name of the recipe.
        name: String,
    },
}

/// Which generator to copy where the report and the published program differ.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum VariantArgument {
    /// The chain as the report describes it.
    Intended,
    /// The chain as the published program generated it, with its quirks.
    Faithful,
}

/// Forge a chain from a recipe and a seed: same recipe, seed and scale, same bytes.
#[derive(Debug, Args)]
pub(crate) struct ForgeArguments {
    /// Name of a built-in recipe (`assay chain recipes`) or path of a TOML file.
    pub(crate) recipe: String,
    /// Seed of all random choices.
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Size; 1 is the size of the published experiment. Of `history`: number of blocks, 20,000 at 1
    /// [default: 0.02; 0.05 of a history].
    #[arg(long, value_name = "F")]
    pub(crate) scale: Option<f64>,
    /// Of `history`: transactions in a block, as a multiple of the recipe's 8 % of the main
    /// chain's.
    #[arg(long, value_name = "F", default_value_t = 1.0)]
    pub(crate) byte_scale: f64,
    /// Folder to write to; must be new, empty, or left by an interrupted forge. A history goes on
    /// where that ended, other chains begin anew.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Which generator to copy.
    #[arg(long, value_enum, default_value_t = VariantArgument::Intended)]
    pub(crate) variant: VariantArgument,
    /// Give every output a key of its own, as a history always does; the published chain repeats
    /// keys.
    #[arg(long)]
    pub(crate) distinct_keys: bool,
    /// Threads that sign; 0 takes one for each core.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) threads: usize,
    /// Stop after this height.
    #[arg(long, value_name = "HEIGHT")]
    pub(crate) stop_height: Option<u32>,
    /// Time of the last block, seconds since 1970, instead of the recipe's.
    #[arg(long, value_name = "TIME")]
    pub(crate) end_time: Option<u32>,
    /// Also print the reference rate: libsecp256k1's signing rate on this machine.
    // Former name of the flag.
    #[arg(long, alias = "yardstick")]
    pub(crate) reference_rate: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// List history, balance and unspent outputs of every script of a forged chain.
///
/// Reads the block files once and writes JSON lines: a line about the chain, then one for each
/// script hash. Of more than N scripts it samples the N whose hash under the seed is smallest.
#[derive(Debug, Args)]
pub(crate) struct ScriptsArguments {
    /// Folder of the chain.
    pub(crate) dir: PathBuf,
    /// Scripts to keep at most.
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub(crate) sample: usize,
    /// Seed of the sample.
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,
    /// List spent outputs as well, with the height of the block that spends them.
    #[arg(long)]
    pub(crate) spent: bool,
    /// File to write instead of standard output.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

/// Run the validating node.
#[expect(clippy::struct_excessive_bools, reason = "flags")]
#[derive(Debug, Args)]
pub(crate) struct NodeArguments {
    /// Chain: main, test (or testnet3), testnet4, signet, regtest or bch-regtest.
    #[arg(long, value_name = "NAME", default_value = "main")]
    pub(crate) chain: String,
    /// Data folder; each chain has a folder of its own in it, named as Bitcoin Core names it.
    #[arg(long, value_name = "DIR")]
    pub(crate) datadir: PathBuf,
    /// Address to serve JSON-RPC on [default: 127.0.0.1 and the chain's port].
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) rpc: Option<SocketAddr>,
    /// Clients on other machines that may connect, as an address or subnet; without one only
    /// loopback is served. There is no encryption: put a tunnel in front. May be given several
    /// times.
    #[arg(long, value_name = "SUBNET")]
    pub(crate) rpc_allow: Vec<Subnet>,
    /// User for RPC instead of the cookie; goes with --rpc-password.
    #[arg(long, value_name = "NAME", requires = "rpc_password")]
    pub(crate) rpc_user: Option<String>,
    /// Password for --rpc-user; other users of this machine can see it, so prefer the environment.
    #[arg(long, value_name = "TEXT", env = "ASSAY_RPC_PASSWORD", hide_env_values = true)]
    pub(crate) rpc_password: Option<String>,
    /// User with a salted password hash, as Bitcoin Core's rpcauth.py prints it. May be given
    /// several times.
    #[arg(long, value_name = "USER:SALT$HASH")]
    pub(crate) rpc_auth: Vec<RpcAuth>,
    /// Answer REST requests at the RPC address, without a password: all who can connect can read
    /// the chain and the mempool, and web pages can make a browser on this machine ask.
    #[arg(long)]
    pub(crate) rest: bool,
    /// Largest RPC request, MiB.
    #[arg(long, value_name = "MIB", default_value_t = 640)]
    pub(crate) rpc_max_body: usize,
    /// Memory for coins, MiB: the cache, what writing it out takes, and the block cache of the
    /// coins on disk [default: a quarter of the memory that is available, control groups respected,
    /// from 64 to 4096].
    #[arg(long, value_name = "MIB")]
    pub(crate) db_cache: Option<usize>,
    /// Take the scripts of this block and its ancestors to be valid while blocks far below the best
    /// header are connected; 0 verifies all [default: the block built in for the chain, as in Bitcoin
    /// Core; none on regtest].
    #[arg(long, value_name = "HASH", value_parser = assumed_block)]
    pub(crate) assume_valid: Option<BlockHash>,
    /// Memory for unconfirmed transactions, MB [default: 300, on bch-regtest 4295].
    #[arg(long, value_name = "MB")]
    pub(crate) max_mempool: Option<u64>,
    /// Threads that verify scripts; 0 takes one for each core.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) par: usize,
    /// Verify a random one of every N signatures that the vector code found valid again with
    /// libsecp256k1; on a mismatch the process logs the evidence and exits. 0 for none.
    #[arg(long, value_name = "N", env = "ASSAY_SAMPLE_SIGNATURES", default_value_t = SAMPLE_SIGNATURES_DEFAULT)]
    pub(crate) sample_signatures: u32,
    /// Use libsecp256k1 alone for signatures within N blocks of the best known header, if less than
    /// a day old and with at most 25,000 inputs. 0 for none.
    #[arg(long, value_name = "N", env = "ASSAY_EXACT_NEAR_TIP", default_value_t = EXACT_NEAR_TIP_DEFAULT)]
    pub(crate) exact_near_tip: u32,
    /// Age of the tip, seconds, up to which the chain counts as caught up with: only then are
    /// transactions taken from peers [default: 86400].
    #[arg(long, value_name = "SECONDS")]
    pub(crate) max_tip_age: Option<u64>,
    /// Least fee rate for relay, satoshi per 1,000 virtual bytes [default: 100, on bch-regtest
    /// 1000].
    #[arg(long, value_name = "SAT")]
    pub(crate) min_relay_fee: Option<u64>,
    /// Keep the mempool in mempool.dat across restarts.
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = false,
        default_value_t = true,
        default_missing_value = "true",
        action = clap::ArgAction::Set
    )]
    pub(crate) persist_mempool: bool,
    /// The same as --persist-mempool false.
    #[arg(long, conflicts_with = "persist_mempool")]
    pub(crate) no_persist_mempool: bool,
    /// Keep an index of scripts, transactions and spent outputs in the folder `indexes/electrum` of the
    /// chain; it is built from the archived blocks where it is missing or behind.
    #[arg(long)]
    pub(crate) index: bool,
    /// Memory for the index before it is written out, MiB [default: 256].
    #[arg(long, value_name = "MIB", requires = "index")]
    pub(crate) index_memory: Option<usize>,
    #[command(flatten)]
    pub(crate) electrum: ServeArguments,
    #[command(flatten)]
    pub(crate) p2p: P2pArguments,
    /// Serve Prometheus metrics of the node over HTTP on this address of this machine.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) metrics: Option<SocketAddr>,
    /// Also print the log to standard output, as Bitcoin Core does.
    #[arg(long)]
    pub(crate) print_to_console: bool,
}

/// Build the index of scripts without a node.
#[derive(Debug, Args)]
pub(crate) struct IndexArguments {
    #[command(subcommand)]
    pub(crate) command: IndexCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum IndexCommand {
    Build(IndexBuildArguments),
}

/// Build the index from the archived blocks and undo data of a datadir that no node uses at the
/// moment, or bring it up to the tip, and say how fast that went and what it takes.
#[derive(Debug, Args)]
pub(crate) struct IndexBuildArguments {
    /// Chain: main, test (or testnet3), testnet4, signet, regtest or bch-regtest.
    #[arg(long, value_name = "NAME", default_value = "main")]
    pub(crate) chain: String,
    /// Data folder of the node.
    #[arg(long, value_name = "DIR")]
    pub(crate) datadir: PathBuf,
    /// Folder of the index [default: electrum in the folder of the chain, where `assay node
    /// --index` looks for it].
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Begin anew: remove the folder of the index first.
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Folder of the forged chain that the blocks are from: figures are printed for each of its
    /// phases too.
    #[arg(long, value_name = "DIR")]
    pub(crate) chain_dir: Option<PathBuf>,
    /// Threads that read blocks and make rows; 0 takes one for each core.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) par: usize,
    /// Memory for the index before it is written out, MiB.
    #[arg(long, value_name = "MIB", default_value_t = 256)]
    pub(crate) index_memory: usize,
    /// Print the figures as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Check a node's data directory: coins against blocks, marks of invalidity against the rules.
///
/// Reads all blocks, undo data and coins of a data directory that no node uses at the moment. It is
/// opened as a node opens it, which puts in order what a kill has left; nothing else is changed.
/// Reports damaged files of the coins, the heights whose coins do not follow from the blocks, and
/// blocks within 100 of the tip that are marked as invalid though no rule supports it. `assay
/// bitcoind -reindex-chainstate` mends all of it, without a download. A pruned directory cannot be
/// checked.
///
/// Exit status: 0 nothing is wrong, 1 something is, 2 wrong usage or failure, 130 interrupted.
#[derive(Debug, Args)]
pub(crate) struct VerifyDataArguments {
    /// Chain: main, test (or testnet3), testnet4, signet, regtest or bch-regtest.
    #[arg(long, value_name = "NAME", default_value = "main")]
    pub(crate) chain: String,
    /// Data folder of the node.
    #[arg(long, value_name = "DIR")]
    pub(crate) datadir: PathBuf,
    /// Print the report as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Validate a whole chain from block files: a Bitcoin Core datadir, a forged chain, a
/// bootstrap.dat.
///
/// Reads blocks in place and checks every rule on the complete branch with the most work. Files may
/// be obfuscated (xor.dat in the same folder); blocks may be in any order, repeated, stale or cut
/// off, with anything between them. Of repeated blocks the first undamaged copy is used. When a
/// block is invalid, or every copy of it is damaged, the branch with the next most work is tried,
/// as Bitcoin Core does after -reindex, until no other has more work than the valid one; the report
/// names every invalid block with file and offset.
///
/// Exit status: 0 the branch with the most work is valid, 1 a block of it is invalid, damaged or
/// missing, even if another branch is valid (the report then gives its tip), 2 wrong usage or
/// failure, 130 or 143 interrupted.
#[derive(Debug, Args)]
pub(crate) struct ValidateArguments {
    /// Directory with blk*.dat in it or in its `blocks`, or one file of blocks. Nothing in it is
    /// changed.
    #[arg(long, value_name = "DIR")]
    pub(crate) blocks: PathBuf,
    /// Chain: main, test (or testnet3), testnet4, signet, regtest or bch-regtest.
    #[arg(long, value_name = "NAME", default_value = "main")]
    pub(crate) chain: String,
    /// Folder to keep the coins in, under CHAIN/validate: an interrupted or killed validation then
    /// goes on where it was. Without it they go to a temporary folder that is removed at the end.
    #[arg(long, value_name = "DIR")]
    pub(crate) datadir: Option<PathBuf>,
    /// Stop after this height; with --datadir a later call goes on from there.
    #[arg(long, value_name = "HEIGHT")]
    pub(crate) stop_height: Option<u32>,
    /// Height from which a soft fork (bip34, dersig, cltv, csv, segwit, or the proposed bip54) is
    /// active, as Bitcoin Core's -testactivationheight has it; not on main. May be given several
    /// times.
    #[arg(long, value_name = "NAME@HEIGHT")]
    pub(crate) test_activation_height: Vec<String>,
    /// Take the scripts of this block and its ancestors to be valid; everything else is still
    /// checked.
    #[arg(long, value_name = "HASH")]
    pub(crate) assume_valid: Option<BlockHash>,
    /// Memory for coins, MiB [default: a quarter of what is available, from 64 to 4096, as for
    /// `assay node`].
    #[arg(long, value_name = "MIB")]
    pub(crate) db_cache: Option<usize>,
    /// Threads that verify scripts; 0 takes one for each core.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) par: usize,
    /// Verify a random one of every N signatures that the vector code found valid again with
    /// libsecp256k1; on a mismatch the process logs the evidence and exits. 0 for none.
    #[arg(long, value_name = "N", env = "ASSAY_SAMPLE_SIGNATURES", default_value_t = SAMPLE_SIGNATURES_DEFAULT)]
    pub(crate) sample_signatures: u32,
    /// Write the coins that blocks spend, and those left over at the end, into this folder, for
    /// `assay shard plan`: about 30 bytes for each input and coin. Goes on in a folder that is
    /// there already.
    #[arg(long, value_name = "DIR")]
    pub(crate) write_spent: Option<PathBuf>,
    /// Write which outputs of each block are left over at the end into this file, for
    /// `assay shard plan --hints`: a hints file (BIP 456). Blocks that have coins left over are read
    /// again for it.
    #[arg(long, value_name = "FILE")]
    pub(crate) write_hints: Option<PathBuf>,
    /// With --json, print a line for each height before the result, at most a hundred per second,
    /// for other programs to follow.
    #[arg(long, requires = "json")]
    pub(crate) progress: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Work on single blocks.
#[derive(Debug, Args)]
pub(crate) struct BlockArguments {
    #[command(subcommand)]
    pub(crate) command: BlockCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BlockCommand {
    Verify(BlockVerifyArguments),
}

/// Verify every script and signature of one block, given the outputs it spends, and every other
/// rule that needs no chain.
///
/// Exit status: 0 the block passes all checks that need no chain, 1 it is invalid, 2 the input is
/// unusable.
#[derive(Debug, Args)]
#[command(after_long_help = assay_engine::RuleSet::help())]
pub(crate) struct BlockVerifyArguments {
    /// The serialised block.
    pub(crate) file: PathBuf,
    /// The outputs that its inputs spend, in block order without the coinbase's: value (8 bytes,
    /// little endian, satoshi), length of the script (4 bytes, little endian), script.
    #[arg(long, value_name = "FILE")]
    pub(crate) prevouts: PathBuf,
    /// Chain: main, test (or testnet3), testnet4, signet, regtest or bch-regtest.
    #[arg(long, value_name = "NAME")]
    pub(crate) chain: String,
    /// Height of the block; with the chain and the block's hash it decides which rules are in
    /// force.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..i64::from(i32::MAX)))]
    pub(crate) height: u32,
    /// Median time past of its parent, seconds since 1970, for the rules about time.
    #[arg(long, value_name = "T")]
    pub(crate) median_time: Option<u32>,
    /// Rules that apply to the block in place of today's, whatever its height: a name of the list
    /// below, or several with + between them.
    #[arg(long, value_name = "NAMES", default_value = "today")]
    pub(crate) rules: String,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Write reports again from results.json or the JSON of an experiment.
#[derive(Debug, Args)]
pub(crate) struct ReportArguments {
    /// Folder that holds results.json, or the JSON file of an experiment, such as crash.json: HTML,
    /// Markdown and CSV are written next to it.
    pub(crate) dir: PathBuf,
    /// Print the results as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// A block hash, or 0 for none.
fn assumed_block(text: &str) -> Result<BlockHash, String> {
    if text == "0" {
        return Ok(BlockHash::ZERO);
    }
    text.parse().map_err(|_| "give a block hash of 64 hex digits, or 0".to_owned())
}

/// A number of things to compare or to repeat: without any, no check would have run.
fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().map(NonZeroUsize::get).map_err(|error| error.to_string())
}

/// A size as a number or a word.
fn scale(text: &str) -> Result<f64, String> {
    match text {
        "small" => Ok(0.05),
        "medium" => Ok(0.3),
        "large" => Ok(1.0),
        number => number.parse().map_err(|_| "give a number, small, medium or large".to_owned()),
    }
}
