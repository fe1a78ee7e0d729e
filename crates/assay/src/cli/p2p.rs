//! Flags about the peer-to-peer protocol.

use std::net::SocketAddr;

use clap::Args;

/// The node's peers.
#[derive(Debug, Args)]
#[expect(clippy::option_option, reason = "a flag that may come without a value")]
pub(crate) struct P2pArguments {
    /// Take the chain from peers and give it to them over the peer-to-peer protocol; listen on this
    /// address [default without a value: 127.0.0.1 and the chain's port].
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1)]
    pub(crate) p2p: Option<Option<SocketAddr>>,
    /// Stay connected to this peer, as HOST or HOST:PORT. May be repeated.
    #[arg(long, value_name = "PEER", requires = "p2p")]
    pub(crate) connect: Vec<String>,
    /// Allow an address that other machines can reach: anyone may then connect.
    #[arg(long, requires = "p2p")]
    pub(crate) p2p_expose: bool,
    /// Upload limit for all peers together, MB (of 1,000,000 bytes) per second; may be a fraction.
    #[arg(long, value_name = "MB/S", requires = "p2p", value_parser = rate)]
    pub(crate) p2p_rate: Option<f64>,
    /// Peers at once.
    #[arg(long, value_name = "N", default_value_t = 125, requires = "p2p")]
    pub(crate) p2p_peers: usize,
}

/// Measure how fast a node serves blocks over the peer-to-peer protocol.
///
/// Connects as a node would, reads all headers, then requests all blocks in order, over and over,
/// several in flight, until the time is up. The checksum of every message and the hash of every
/// block are verified. Exit status 2 when one is wrong or the node disconnects.
#[derive(Debug, Args)]
pub(crate) struct LoadP2pArguments {
    /// Address of the node, as HOST:PORT.
    pub(crate) address: String,
    /// Chain: main, test (or testnet3), testnet4, signet, regtest or bch-regtest.
    #[arg(long, value_name = "NAME", default_value = "main")]
    pub(crate) chain: String,
    /// How long to request blocks, such as 30s, 2m or 500ms.
    #[arg(long = "for", value_name = "TIME", default_value = "10s", value_parser = super::duration)]
    pub(crate) time: std::time::Duration,
    /// Blocks in flight; Bitcoin Core has 16.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) window: u32,
    /// Request blocks without witnesses, as nodes from before 2016 do.
    #[arg(long)]
    pub(crate) stripped: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

fn rate(text: &str) -> Result<f64, String> {
    let rate: f64 = text.parse().map_err(|_| "give a number".to_owned())?;
    let is_sound = rate.is_finite() && (1e-6..=1e9).contains(&rate);
    if is_sound { Ok(rate) } else { Err("give more than nothing".to_owned()) }
}
