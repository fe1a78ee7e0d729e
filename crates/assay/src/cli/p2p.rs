//! Flags about the peer-to-peer protocol.

use std::net::SocketAddr;
use std::path::PathBuf;

use assay_lab::hostile::Attack;
use assay_lab::plan::TargetSpec;
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
    /// Permissions of peers by address, as Bitcoin Core's -whitelist. May be repeated.
    #[arg(long, value_name = "[PERMISSIONS@]SUBNET", requires = "p2p")]
    pub(crate) p2p_whitelist: Vec<String>,
}

/// Measure how fast a node serves blocks over the peer-to-peer protocol, or what hostile peers cost
/// it.
///
/// Connects as a node would, reads all headers, then requests all blocks in order, over and over,
/// several in flight, until the time is up. The checksum of every message and the hash of every
/// block are verified. Exit status 2 when one is wrong or the node disconnects.
///
/// With --hostile and an address, hostile peers attack that node (of regtest, on this machine or a
/// private network) until the time is up; printed is what became of them. With --hostile alone, pairs of runs without and with hostile
/// peers: a node of its own syncs from two honest peers and relays transactions and blocks to two
/// others. Time, memory and what became of each attack are printed and written to hostile.json.
/// Exit status 1 when an honest peer was lost.
#[derive(Debug, Args)]
pub(crate) struct LoadP2pArguments {
    /// Address of the node, as HOST:PORT.
    #[arg(required_unless_present = "hostile")]
    pub(crate) address: Option<String>,
    /// Hostile peers.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) hostile: Option<u16>,
    /// Attacks of the hostile peers, such as orphans,withhold [default: all, in equal parts].
    #[arg(long, value_enum, value_name = "ATTACK", value_delimiter = ',', requires = "hostile")]
    pub(crate) attacks: Vec<Attack>,
    /// With --hostile and no address: the node to attack, `assay` or `bitcoind=PATH`.
    #[arg(long, value_name = "NAME", default_value = "assay", conflicts_with = "address")]
    pub(crate) target: TargetSpec,
    /// With --hostile and no address: pairs of runs.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = super::at_least_one, conflicts_with = "address")]
    pub(crate) pairs: usize,
    /// With --hostile and no address: rounds in each run, of eight transactions and then sixteen
    /// blocks that are relayed.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100), conflicts_with = "address")]
    pub(crate) rounds: u32,
    /// With --hostile and no address: size of the chain; 1 is that of plan bitcoin-scaling.
    #[arg(long, value_name = "F", default_value_t = 1.0, conflicts_with = "address")]
    pub(crate) scale: f64,
    /// With --hostile: seed of chain and attacks.
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,
    /// With --hostile and no address: folder for hostile.json, logs, chain and data.
    #[arg(long, value_name = "DIR", default_value = "results/hostile", conflicts_with = "address")]
    pub(crate) out: PathBuf,
    /// Chain: main, test (or testnet3), testnet4, signet, regtest or bch-regtest.
    #[arg(long, value_name = "NAME", default_value = "main")]
    pub(crate) chain: String,
    /// Duration of the measurement, such as 30s, 2m or 500ms.
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

pub(super) fn rate(text: &str) -> Result<f64, String> {
    let rate: f64 = text.parse().map_err(|_| "give a number".to_owned())?;
    let is_sound = rate.is_finite() && (1e-6..=1e9).contains(&rate);
    if is_sound { Ok(rate) } else { Err("give more than nothing".to_owned()) }
}
