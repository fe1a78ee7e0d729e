//! Flags and arguments about Electrum servers.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Ask Electrum servers.
#[derive(Debug, Args)]
pub(crate) struct ElectrumArguments {
    #[command(subcommand)]
    pub(crate) command: ElectrumCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ElectrumCommand {
    /// Compare a server's answers with a forged chain: history, balance and unspent outputs of every script hash.
    ///
    /// Exit status: 0 all answers are right, 1 some differ or were refused, 2 wrong usage or failure.
    Check(ElectrumCheckArguments),
}

/// Compare a server's answers with a forged chain.
#[derive(Debug, Args)]
pub(crate) struct ElectrumCheckArguments {
    /// Address of the server, TCP without encryption.
    pub(crate) address: SocketAddr,
    /// Folder of the forged chain that the server's node has.
    #[arg(long, value_name = "DIR")]
    pub(crate) chain_dir: PathBuf,
    /// Script hashes to ask for; a sample where the chain has more.
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub(crate) sample: usize,
    /// Seed of the sample.
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,
    /// How long to wait for the server to be at the chain's tip, seconds.
    #[arg(long, value_name = "S", default_value_t = 60)]
    pub(crate) wait: u64,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
