//! Arguments of `assay top`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

/// Show a running node: its chain, rates, mempool and peers.
///
/// Asks by JSON-RPC, and finds the node as bitcoin-cli does: by the cookie in the data folder, or by
/// the user and the port in its bitcoin.conf. Works with Bitcoin Core, too. On a terminal the view is
/// renewed in place; otherwise a line is printed each time. Ctrl-C ends it.
#[derive(Debug, Args)]
pub(crate) struct TopArguments {
    /// Chain: main, test (or testnet3), testnet4, signet, regtest or bch-regtest [default: the chain in
    /// bitcoin.conf, or main].
    #[arg(long, value_name = "NAME")]
    pub(crate) chain: Option<String>,
    /// Data folder of the node [default: ~/.bitcoin].
    #[arg(long, value_name = "DIR")]
    pub(crate) datadir: Option<PathBuf>,
    /// Address of JSON-RPC [default: 127.0.0.1 and the port in bitcoin.conf, or the chain's].
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) rpc: Option<SocketAddr>,
    /// User for RPC instead of the cookie; goes with --rpc-password.
    #[arg(long, value_name = "NAME", requires = "rpc_password")]
    pub(crate) rpc_user: Option<String>,
    /// Password for --rpc-user; other users of this machine can see it, so prefer the environment.
    #[arg(long, value_name = "TEXT", env = "ASSAY_RPC_PASSWORD", hide_env_values = true)]
    pub(crate) rpc_password: Option<String>,
    /// Seconds from one look to the next.
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = interval)]
    pub(crate) interval: f64,
    /// End after N looks.
    #[arg(long, value_name = "N", conflicts_with = "json")]
    pub(crate) count: Option<u64>,
    /// Print one snapshot as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

fn interval(text: &str) -> Result<f64, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.1..=3600.0).contains(seconds));
    seconds.ok_or_else(|| "from 0.1 to 3600 seconds".to_owned())
}
