//! Flags of `assay chain stats`.

use std::net::SocketAddr;
use std::path::PathBuf;

use assay_stats::Heights;
use clap::Args;

/// Chain statistics from block files: counts per range of heights, also as CSV tables.
///
/// Reads Bitcoin Core's `blocks` folder, a forged chain or our own data folder, plain or obfuscated
/// (xor.dat), blocks in any order, on the branch with the most work; a pruned folder too. Counts
/// for each range of heights: bytes, weight, transactions, inputs, outputs by kind, `SegWit`
/// shares, transactions with many inputs. Validated are headers, and that transactions and
/// witnesses are those that a header commits to. A forged chain is compared with its ledger, block by
/// block. Damage is reported with file and offset. Exit status 1 when a block of the chain could not
/// be counted, or a ledger or node disagrees.
#[derive(Debug, Args)]
pub(crate) struct StatsArguments {
    /// Directory with blk*.dat in it or in its `blocks`, or one file of blocks. Nothing in it is
    /// changed.
    #[arg(long, value_name = "DIR")]
    pub(crate) blocks: PathBuf,
    /// Chain: main, test (or testnet3), testnet4, signet, regtest or bch-regtest [default: that of
    /// the ledger or the files].
    #[arg(long, value_name = "NAME")]
    pub(crate) chain: Option<String>,
    /// Count these heights alone, both included, as far as the files have them [default: the whole
    /// chain].
    #[arg(long, value_name = "A..B", value_parser = heights)]
    pub(crate) heights: Option<Heights>,
    /// Heights in a range; 1 gives single blocks [default: about a hundred ranges].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) range: Option<u32>,
    /// A transaction has many inputs when it has more than this.
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) many: u32,
    /// Folder of a forged chain to compare with, or its ledger.jsonl [default: the folder of the
    /// blocks, if it has one].
    #[arg(long, value_name = "LEDGER")]
    pub(crate) check: Option<PathBuf>,
    /// Write blocks.csv and transactions.csv, a row for each block and each transaction, into this
    /// folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) tables: Option<PathBuf>,
    /// Read the same counts from a node by JSON-RPC too (`getblock HASH 2`), compare them, and
    /// print both rates.
    #[arg(long, value_name = "HOST:PORT", requires = "cookie")]
    pub(crate) against_rpc: Option<SocketAddr>,
    /// The node's cookie file, or any file with USER:PASSWORD in it.
    #[arg(long, value_name = "FILE", requires = "against_rpc")]
    pub(crate) cookie: Option<PathBuf>,
    /// Blocks to read by RPC at most, evenly spread over the chain.
    #[arg(long, value_name = "N", default_value_t = 1000, requires = "against_rpc", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rpc_blocks: u32,
    /// Threads that read; 0 takes one for each core.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) threads: usize,
    /// Print the ranges as CSV.
    #[arg(long, conflicts_with_all = ["json", "markdown"])]
    pub(crate) csv: bool,
    /// Print JSON.
    #[arg(long, conflicts_with = "markdown")]
    pub(crate) json: bool,
    /// Print Markdown.
    #[arg(long)]
    pub(crate) markdown: bool,
    /// Write a page with charts and tables.
    #[arg(long, value_name = "FILE.html")]
    pub(crate) plot: Option<PathBuf>,
}

/// Reads `A..B`.
fn heights(text: &str) -> Result<Heights, String> {
    let number = |text: &str| text.parse::<u32>().ok();
    let both = text.split_once("..").and_then(|(a, b)| Some((number(a)?, number(b)?)));
    match both {
        Some((first, last)) if first <= last => Ok(Heights { first, last }),
        _ => Err("give A..B, two heights, both included".to_owned()),
    }
}
