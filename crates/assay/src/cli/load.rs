//! Flags of `assay load`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::p2p::LoadP2pArguments;

/// Put load on a server.
#[derive(Debug, Args)]
pub(crate) struct LoadArguments {
    #[command(subcommand)]
    pub(crate) command: LoadCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LoadCommand {
    Electrum(LoadElectrumArguments),
    P2p(LoadP2pArguments),
}

/// What the clients do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MixArgument {
    /// What a wallet asks when it starts and when a block comes.
    Wallet,
    /// The scripts with the longest histories.
    Heavy,
    /// Many subscriptions, and a question now and then.
    Subscribe,
}

/// How hostile clients misbehave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AttackArgument {
    /// Lines without an end.
    Oversized,
    /// Random bytes.
    Garbage,
    /// Asks and never reads.
    Deaf,
    /// Two thousand questions a second.
    Flood,
    /// Half a line, byte by byte.
    HalfOpen,
    /// Connects, asks once and leaves.
    Churn,
    /// Lines full of brackets.
    Nesting,
    /// Batches that are too long.
    Batch,
    /// Thousands of outpoint subscriptions, then leaves.
    Outpoints,
    /// Asks for much, drops the connection and comes again.
    Reconnect,
}

/// Many wallets at once on any Electrum server: latencies and throughput for each method, answers checked.
///
/// Without --rate each client asks again when it has its answer; with it, questions are due at fixed moments and latency counts
/// from there, so that a server that stalls cannot hide what it kept waiting. With --chain-dir, answers are compared with the
/// chain. Exit status 1 when an answer was wrong or older than what the server had told of.
#[derive(Debug, Args)]
pub(crate) struct LoadElectrumArguments {
    /// Where the server is, as HOST:PORT.
    pub(crate) address: String,
    /// Clients, the hostile ones included.
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) clients: usize,
    /// What they do.
    #[arg(long, value_enum, default_value_t = MixArgument::Wallet)]
    pub(crate) mix: MixArgument,
    /// How long each phase is, such as 30s, 2m or 500ms: first while nothing happens, then, with --feed, while blocks come.
    #[arg(long = "for", value_name = "TIME", default_value = "30s", value_parser = super::duration)]
    pub(crate) time: std::time::Duration,
    /// Questions per second of all clients together [default: each asks again when it has its answer; with --mix subscribe
    /// one per client].
    #[arg(long, value_name = "R")]
    pub(crate) rate: Option<f64>,
    /// Questions that a client has under way, without a rate.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) depth: usize,
    /// Subscriptions of each client, with --mix subscribe.
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) subscriptions: usize,
    /// Share of the clients that misbehaves, such as 0.5: each run is a pair, without them and with them.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    pub(crate) hostile: f64,
    /// How the hostile clients misbehave, such as outpoints,reconnect [default: all ways in equal parts].
    #[arg(long, value_enum, value_name = "ATTACK", value_delimiter = ',', requires = "hostile")]
    pub(crate) attacks: Vec<AttackArgument>,
    /// Let all clients connect from the same address. Otherwise, if the server is at an address 127.x.x.x, each honest client
    /// has an address of its own there and hostile clients share a few (Linux).
    #[arg(long)]
    pub(crate) one_address: bool,
    /// Instead of all this: honest clients ask a thousand times a second, and some connect anew for every question, while
    /// three others with this many outpoint subscriptions of one script each leave; prints the longest time without an answer.
    /// --pairs says how often.
    #[arg(long, value_name = "N", conflicts_with_all = ["hostile", "mix", "chain_dir", "feed", "tls"])]
    pub(crate) leaving: Option<usize>,
    /// Pairs of runs with --hostile; every other pair begins with the hostile clients, and ratios are medians over pairs.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) pairs: usize,
    /// Connect with TLS; any certificate will do.
    #[arg(long)]
    pub(crate) tls: bool,
    /// Folder of the forged chain that the server's node follows: scripts to ask for, and the answers that are right.
    #[arg(long, value_name = "DIR")]
    pub(crate) chain_dir: Option<PathBuf>,
    /// File with script hashes as the protocol writes them, one in a line, to ask for; nothing is known of their answers.
    #[arg(long, value_name = "FILE")]
    pub(crate) scripts: Option<PathBuf>,
    /// Port of the node's JSON-RPC on this machine: blocks of the chain folder that it lacks are submitted in a second phase.
    #[arg(long, value_name = "PORT", requires = "chain_dir", requires = "feed_cookie")]
    pub(crate) feed: Option<u16>,
    /// The node's cookie file.
    #[arg(long, value_name = "FILE")]
    pub(crate) feed_cookie: Option<PathBuf>,
    /// From one block to the next, at least.
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = super::duration)]
    pub(crate) feed_every: std::time::Duration,
    /// The server's process, to watch its memory and its CPU time.
    #[arg(long, value_name = "PID")]
    pub(crate) server_pid: Option<u32>,
    /// Where the server shows metrics for Prometheus, as HOST:PORT, to watch its memory.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) server_metrics: Option<String>,
    /// Seed of all choices.
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
