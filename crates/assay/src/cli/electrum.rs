//! Flags and arguments about Electrum servers.

use std::net::SocketAddr;
use std::path::PathBuf;

use assay_node::http::Subnet;
use clap::{Args, Subcommand};

/// Query Electrum servers, ours or others.
#[derive(Debug, Args)]
pub(crate) struct ElectrumArguments {
    #[command(subcommand)]
    pub(crate) command: ElectrumCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ElectrumCommand {
    Check(ElectrumCheckArguments),
}

/// Compare a server's responses with a forged chain: history, balance and unspent outputs of every
/// script hash.
///
/// Exit status: 0 all responses are correct, 1 some differ or are errors, 2 wrong usage or failure.
#[derive(Debug, Args)]
pub(crate) struct ElectrumCheckArguments {
    /// Address of the server, TCP without encryption.
    pub(crate) address: SocketAddr,
    /// Folder of the forged chain that the server's node has.
    #[arg(long, value_name = "DIR")]
    pub(crate) chain_dir: PathBuf,
    /// Script hashes to query; a sample where the chain has more.
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = super::at_least_one)]
    pub(crate) sample: usize,
    /// Seed of the sample.
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Longest wait for the server to reach the chain's tip, seconds.
    #[arg(long, value_name = "S", default_value_t = 60)]
    pub(crate) wait: u64,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The Electrum server of the node.
#[derive(Debug, Args)]
#[expect(clippy::option_option, reason = "a flag that may come without a value")]
pub(crate) struct ServeArguments {
    /// Serve Electrum clients on this address, with an index as --index keeps it [default without a
    /// value: 127.0.0.1 and port 50001, or 60001 on chains other than main].
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1)]
    pub(crate) electrum: Option<Option<SocketAddr>>,
    /// The same with TLS [default without a value: 127.0.0.1 and port 50002, or 60002].
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1)]
    pub(crate) electrum_tls: Option<Option<SocketAddr>>,
    /// Certificates for TLS, PEM, the server's own first [default: electrum-cert.pem in the folder
    /// of the chain, made and signed by itself at the first start].
    #[arg(long, value_name = "FILE", requires = "electrum_key")]
    pub(crate) electrum_cert: Option<PathBuf>,
    /// Private key of --electrum-cert, PEM.
    #[arg(long, value_name = "FILE", requires = "electrum_cert")]
    pub(crate) electrum_key: Option<PathBuf>,
    /// Serve Prometheus metrics over HTTP on this address.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) electrum_metrics: Option<SocketAddr>,
    /// Allow addresses that other machines can reach: anyone may then query, within the limits.
    #[arg(long)]
    pub(crate) electrum_expose: bool,
    /// Response to server.banner.
    #[arg(long, value_name = "TEXT")]
    pub(crate) electrum_banner: Option<String>,
    /// Long-term rate limit of an address over all its connections, in units per second; a request
    /// and 100 µs of work are a unit each; 0 for no limit.
    #[arg(long, value_name = "N", default_value_t = 500)]
    pub(crate) electrum_rate: u32,
    /// Entries that a history or unspent list may have at most.
    #[arg(long, value_name = "N", default_value_t = 125_000)]
    pub(crate) electrum_entries: usize,
    /// Connections at once.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub(crate) electrum_clients: usize,
    /// Subscriptions of one client.
    #[arg(long, value_name = "N", default_value_t = 50_000)]
    pub(crate) electrum_subscriptions: usize,
    /// Subscriptions of one address, over all its connections.
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub(crate) electrum_per_address: usize,
    /// Address or subnet that many users share, such as that of a TLS proxy: each connection from
    /// there counts as an address of its own. May be given several times; this machine always is.
    #[arg(long, value_name = "SUBNET")]
    pub(crate) electrum_proxy: Vec<Subnet>,
}
