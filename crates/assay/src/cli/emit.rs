//! Arguments of `assay emit`.

use std::path::PathBuf;

use assay_lab::emit::EmitTarget;
use assay_lab::plan::{Compact, Pace, Prefill, Rate, SeenMode};
use clap::Args;

/// Send a forged chain to nodes that run already: by RPC, or as their peer
///
/// TARGET is VIA@HOST:PORT with VIA one of rpc (submitblock and sendrawtransaction), p2p
/// (announces transactions and blocks, which the node requests) and compact (blocks as compact
/// blocks, BIP152). Settings follow behind commas: name=NAME; rpc=HOST:PORT with a peer, which
/// says what is in the mempool and when a block is the tip; cookie=FILE or user=NAME:PASSWORD for
/// RPC; delay=50ms (one way) and rate=40 (Mbit/s) for a link in between.
///
/// Before each block a share of its transactions is sent (--seen), then the block; the next one
/// follows when it is the tip. Each node is served at its own pace. Printed are blocks and
/// transactions, sent and taken, those before a parent, and the time from a block's announcement to
/// the tip; with --out, emit.json holds every block. Exit status 2 when a node was not given
/// everything; --resume then sends the rest.
///
/// Examples:
///   assay emit chain --to rpc@127.0.0.1:18443,cookie=data/regtest/.cookie
///   assay emit chain --to p2p@127.0.0.1:18444 --to compact@127.0.0.1:28444 --seen 0.9
///   assay emit chain --to p2p@127.0.0.1:18444 --seen 1 --pace 10s --rate interval --orphans 0.3
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct EmitArguments {
    /// Folder of the chain, from `assay chain forge`.
    pub(crate) chain: PathBuf,
    /// Node to send it to. May be repeated.
    #[arg(long, value_name = "TARGET", required = true)]
    pub(crate) to: Vec<EmitTarget>,
    /// Share of each block's transactions to send before it, 0 to 1.
    #[arg(long, value_name = "FRACTION", default_value_t = 0.0)]
    pub(crate) seen: f64,
    /// Which transactions these are.
    #[arg(long, value_enum, default_value_t = SeenMode::Prefix)]
    pub(crate) seen_mode: SeenMode,
    /// Share of the transactions sent beforehand that go before a parent in the same block, 0 to 1.
    #[arg(long, value_name = "FRACTION", default_value_t = 0.0)]
    pub(crate) orphans: f64,
    /// When blocks are due: asap, 600s, or poisson(600s) for random intervals of that mean.
    #[arg(long, default_value_t = Pace::Asap)]
    pub(crate) pace: Pace,
    /// Rate of transactions: asap, 500tx/s, 2MiB/s, or interval to spread them over the time until
    /// the block.
    #[arg(long, default_value_t = Rate::Asap)]
    pub(crate) rate: Rate,
    /// Transactions sent at once where there is a rate.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) burst: usize,
    /// Connections to each peer, over which transactions are spread.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) connections: usize,
    /// Mode of compact blocks.
    #[arg(long, value_enum, default_value_t = Compact::High)]
    pub(crate) compact: Compact,
    /// Transactions that compact blocks prefill.
    #[arg(long, value_enum, default_value_t = Prefill::Coinbase)]
    pub(crate) prefill: Prefill,
    /// Set the node's clock to each block's time before its transactions (setmocktime, which
    /// regtest has): nodes take compact blocks only where their tip is not old. Needs RPC.
    #[arg(long)]
    pub(crate) mock_time: bool,
    /// Send nodes that have blocks of the chain the rest.
    #[arg(long)]
    pub(crate) resume: bool,
    /// Last block to send.
    #[arg(long, value_name = "HEIGHT")]
    pub(crate) until: Option<u32>,
    /// Seconds without progress after which a node is given up.
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    pub(crate) timeout: u64,
    /// Folder for emit.json.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
