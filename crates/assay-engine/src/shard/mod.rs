//! Full validation of a chain in parts that are independent of each other: on other cores, on other machines, in any order.
//!
//! A block can be judged from its bytes, the coins it spends and the headers below it. The coins come from files that nobody
//! trusts; whether they exist, are unspent and were older is decided for the whole chain at once, by two sums of keyed hashes
//! that must be equal: one over all coins created, one over all spent and all left over (with hints: over those that are not
//! left over, on both sides). Method, reasons and costs: `docs/shard.md`.
//!
//! 1. [`plan_shards`] finds the chain in block files, checks its headers and cuts it into parts of equal work.
//! 2. [`run_part`] judges one part: blocks with the coins they spend ([`source`], [`spends`]), or a piece of the UTXO set.
//! 3. [`merge`] adds the results up.
//!
//! The coins that blocks spend come from `assay validate --write-spent` or from Bitcoin Core's undo files. Without either, only
//! `assay validate` checks the chain, block after block.

mod coins;
mod hints;
mod merge;
mod part;
mod plan;
mod planning;
mod result;
mod source;
mod spends;
mod spent;
mod tally;
mod timing;

use std::io;
use std::path::{Path, PathBuf};

use assay_store::{BlockFilesError, HintsError, SnapshotError, SpentFilesError};
use assay_wire::BlockHash;

pub use merge::{Merged, ShardVerdict, merge};
pub use part::{PartConfig, PartProgress, run_part};
pub use plan::{Inputs, ParamsOf, Part, Plan, Unspent};
pub use planning::{PlanConfig, plan_shards};
pub use result::{PartResult, Rejection};
pub use timing::{PartTimer, PartTiming, STAGES, StageClock};

use crate::files::InvalidBlock;
use crate::validate::ValidateError;

/// A secret that the coins of one run are hashed with. The author of the files must not know it.
pub type Salt = [u8; 32];

/// The reason a plan cannot be made, run or merged; never the fault of a block.
#[derive(Debug, thiserror::Error)]
pub enum ShardError {
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("block files: {0}")]
    Files(#[from] BlockFilesError),
    /// No copy of a block in the files is undamaged.
    #[error("{0}")]
    Damaged(Box<InvalidBlock>),
    #[error("spent coins: {0}")]
    Spent(#[from] SpentFilesError),
    /// The snapshot of the UTXO set cannot be read.
    #[error("{}: {source}", path.display())]
    Coins { path: PathBuf, source: SnapshotError },
    /// The snapshot belongs to another block.
    #[error(
        "{}: holds the coins of block {found}, the chain ends in {expected}; plan with --stop-height, or give the coins of that \
         block",
        path.display()
    )]
    OtherCoins { path: PathBuf, found: BlockHash, expected: BlockHash },
    /// The hints file cannot be read.
    #[error("{}: {source}", path.display())]
    Hints { path: PathBuf, source: HintsError },
    /// The hints are of another height.
    #[error(
        "{}: holds the hints of height {found}, the chain ends at height {expected}; plan with --stop-height, or give the hints \
         of that height",
        path.display()
    )]
    OtherHints { path: PathBuf, found: u32, expected: u32 },
    /// The chain in the block files cannot be found.
    #[error(transparent)]
    Chain(#[from] ValidateError),
    /// The chain is shorter than asked for.
    #[error("the chain in the files ends at height {height}, below --stop-height {stop_height}")]
    Short { height: u32, stop_height: u32 },
    #[error(
        "no spent coins of block {hash} at height {height}: the files must be of the whole chain; without them, validate these \
         blocks by `assay validate` (with --write-spent, it writes them)"
    )]
    NoSpent { height: u32, hash: BlockHash },
    #[error("{}: {what}", path.display())]
    Unusable {
        path: PathBuf,
        /// The reason, and the remedy.
        what: String,
    },
    #[error("the plan has no part {part}: its {count} parts begin with 0")]
    NoPart { part: usize, count: usize },
    /// No threads to work on.
    #[error("cannot start threads: {0}")]
    Threads(String),
    /// It was asked to end.
    #[error("interrupted")]
    Interrupted,
}

fn io_failed(path: &Path) -> impl Fn(io::Error) -> ShardError + use<'_> {
    move |source| ShardError::Io { path: path.to_path_buf(), source }
}

fn unusable(path: &Path, what: impl Into<String>) -> ShardError {
    ShardError::Unusable { path: path.to_path_buf(), what: what.into() }
}
