//! Flags of `assay load`.

use std::path::PathBuf;

use assay_lab::load::{Attack, Mix};
use clap::{Args, Subcommand};

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

/// Load any Electrum server with many wallets: latency and throughput per method, responses
/// checked.
///
/// Without --rate each client sends its next request on the response; with it, requests are
/// scheduled at fixed times and latency counts from the schedule, so a server that stalls cannot
/// hide it. With --chain-dir, responses are compared with the chain. Exit status 1 when a response
/// was wrong, older than what the server had announced, or none could be compared.
#[derive(Debug, Args)]
pub(crate) struct LoadElectrumArguments {
    /// Address of the server, as HOST:PORT.
    pub(crate) address: String,
    /// Clients, the hostile ones included.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = super::at_least_one)]
    pub(crate) clients: usize,
    /// Requests of the clients.
    #[arg(long, value_enum, default_value_t = Mix::Wallet)]
    pub(crate) mix: Mix,
    /// Length of each phase, such as 30s, 2m or 500ms: first idle, then, with --feed, while blocks
    /// arrive.
    #[arg(long = "for", value_name = "TIME", default_value = "30s", value_parser = super::duration)]
    pub(crate) time: std::time::Duration,
    /// Requests per second of all clients together [default: each sends the next on the response;
    /// with --mix subscribe one per client].
    #[arg(long, value_name = "R")]
    pub(crate) rate: Option<f64>,
    /// Requests in flight per client, without --rate.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) depth: usize,
    /// Subscriptions of each client, with --mix subscribe.
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) subscriptions: usize,
    /// Share of the clients that misbehaves, such as 0.5: each run is a pair, without them and with
    /// them.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    pub(crate) hostile: f64,
    /// Attacks of the hostile clients, such as outpoints,reconnect [default: all, in equal parts].
    #[arg(long, value_enum, value_name = "ATTACK", value_delimiter = ',', requires = "hostile")]
    pub(crate) attacks: Vec<Attack>,
    /// Let all clients connect from the same address. Otherwise, if the server is at an address
    /// 127.x.x.x, each honest client has an address of its own there and hostile clients share a
    /// few (Linux).
    #[arg(long)]
    pub(crate) one_address: bool,
    /// Instead of all this: honest clients send a thousand requests a second, some on a new
    /// connection each, while three others with this many outpoint subscriptions of one script each
    /// disconnect; prints the longest time without a response. --pairs says how often.
    #[arg(long, value_name = "N", conflicts_with_all = ["hostile", "mix", "chain_dir", "feed", "tls"])]
    pub(crate) leaving: Option<usize>,
    /// Pairs of runs with --hostile; every other pair begins with the hostile clients, and ratios
    /// are medians over pairs.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = super::at_least_one)]
    pub(crate) pairs: usize,
    /// Connect with TLS; any certificate will do.
    #[arg(long)]
    pub(crate) tls: bool,
    /// Folder of the forged chain that the server's node follows: source of scripts to query and of
    /// correct responses.
    #[arg(long, value_name = "DIR")]
    pub(crate) chain_dir: Option<PathBuf>,
    /// File with script hashes to query, one per line as in the protocol; responses are not
    /// checked.
    #[arg(long, value_name = "FILE")]
    pub(crate) scripts: Option<PathBuf>,
    /// Port of the node's JSON-RPC on this machine: blocks of the chain folder that it lacks are
    /// submitted in a second phase.
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
    /// Address of the server's Prometheus metrics, as HOST:PORT, to watch its memory.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) server_metrics: Option<String>,
    /// Seed of all random choices.
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
