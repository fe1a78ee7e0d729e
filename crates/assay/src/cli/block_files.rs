//! Flags of `assay chain ledger` and `assay chain serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

/// Check another program's block files, and write a ledger of their chain.
///
/// The ledger lists the blocks from height 1 with file, offset and counts, and makes the files a
/// chain that `assay run` can measure (`assay run --blocks` calls this) and `assay chain serve`
/// gives to peers. Blocks stay where they are; nothing in DIR is changed. Checked are magic bytes,
/// proof of work, that the branch with the most work reaches from the first block to the last
/// height without a gap, and that every block on it has the transactions and witnesses that its
/// header commits to; consensus rules are left to those who are measured. Exit status 2 with file and offset where
/// something is missing or damaged. A ledger of unchanged files is kept.
#[derive(Debug, Args)]
pub(crate) struct LedgerArguments {
    /// Bitcoin Core's data folder, the folder of its blk*.dat, or one file of blocks; plain or
    /// obfuscated (xor.dat).
    #[arg(long, value_name = "DIR")]
    pub(crate) blocks: PathBuf,
    /// Chain: main, test (or testnet3), testnet4, signet, regtest or bch-regtest.
    #[arg(long, value_name = "NAME")]
    pub(crate) chain: String,
    /// Last height that is wanted; what the files hold above it may have gaps [default: all there
    /// is].
    #[arg(long, value_name = "HEIGHT", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) stop_height: Option<u32>,
    /// Height from which a soft fork (bip34, dersig, cltv, csv, segwit) is active on this chain,
    /// for those who take it; not on main. May be given several times.
    #[arg(long, value_name = "NAME@HEIGHT")]
    pub(crate) test_activation_height: Vec<String>,
    /// Folder for ledger.jsonl, created if missing; not DIR.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: PathBuf,
    /// Threads that read; 0 takes one for each core.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) threads: usize,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Give the chain of a ledger to peers: headers and blocks, straight from the block files.
///
/// For measurements: any node that connects to the address downloads the chain up to the ledger's
/// last height. Nothing is validated, copied or taken from peers, and nothing but headers, hashes
/// and blocks is answered. Runs until SIGTERM or SIGINT.
#[derive(Debug, Args)]
pub(crate) struct ServeChainArguments {
    /// Folder with a ledger.jsonl of `assay chain ledger` or of `assay chain forge`.
    #[arg(value_name = "FOLDER")]
    pub(crate) folder: PathBuf,
    /// Address to listen on, of the loopback interface [default: 127.0.0.1 and the chain's port].
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) p2p: Option<SocketAddr>,
    /// Upload limit for all peers together, MB (of 1,000,000 bytes) per second; may be a fraction.
    #[arg(long, value_name = "MB/S", value_parser = super::p2p::rate)]
    pub(crate) p2p_rate: Option<f64>,
    /// Print address, chain, height and tip as a line of JSON once peers can connect.
    #[arg(long)]
    pub(crate) json: bool,
}
