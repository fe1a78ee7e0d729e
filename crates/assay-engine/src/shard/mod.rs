//! Full validation of a chain in parts that need not know of each other: on other cores, on other machines, in any order.
//!
//! A block can be judged from its bytes, the coins it spends and the headers below it. The coins come from files that nobody
//! trusts; whether they exist, are unspent and were older is decided for the whole chain at once, by two sums of keyed hashes
//! that must be equal: one over all coins created, one over all spent and all left over (with hints: over those that are not
//! left over, on both sides). How, why, and what it costs:
//! `docs/shard.md`.
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

/// A secret that the coins of one run are hashed with. Who prepares the files must not know it.
pub type Salt = [u8; 32];

/// What keeps a plan from being made, run or merged; never the fault of a block.
#[derive(Debug, thiserror::Error)]
pub enum ShardError {
    /// An I/O error.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// Block files cannot be read.
    #[error("block files: {0}")]
    Files(#[from] BlockFilesError),
    /// No copy of a block in the files is whole.
    #[error("{0}")]
    Damaged(Box<InvalidBlock>),
    /// Files of spent coins cannot be read.
    #[error("spent coins: {0}")]
    Spent(#[from] SpentFilesError),
    /// The snapshot of the UTXO set cannot be read.
    #[error("{}: {source}", path.display())]
    Coins {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: SnapshotError,
    },
    /// The snapshot belongs to another block.
    #[error(
        "{}: holds the coins of block {found}, the chain ends in {expected}; plan with --stop-height, or give the coins of that \
         block",
        path.display()
    )]
    OtherCoins {
        /// The file.
        path: PathBuf,
        /// Its block.
        found: BlockHash,
        /// The last block of the chain.
        expected: BlockHash,
    },
    /// The hints file cannot be read.
    #[error("{}: {source}", path.display())]
    Hints {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: HintsError,
    },
    /// The hints are of another height.
    #[error(
        "{}: holds the hints of height {found}, the chain ends at height {expected}; plan with --stop-height, or give the hints \
         of that height",
        path.display()
    )]
    OtherHints {
        /// The file.
        path: PathBuf,
        /// Its height.
        found: u32,
        /// The last height of the chain.
        expected: u32,
    },
    /// The chain in the block files cannot be found.
    #[error(transparent)]
    Chain(#[from] ValidateError),
    /// The chain is shorter than asked for.
    #[error("the chain in the files ends at height {height}, below --stop-height {stop_height}")]
    Short {
        /// Its height.
        height: u32,
        /// The height asked for.
        stop_height: u32,
    },
    /// No coins are known for a block.
    #[error(
        "no spent coins of block {hash} at height {height}: the files must be of the whole chain; without them, validate these \
         blocks by `assay validate` (with --write-spent, it writes them)"
    )]
    NoSpent {
        /// Its height.
        height: u32,
        /// Its hash.
        hash: BlockHash,
    },
    /// A file is not what it should be.
    #[error("{}: {what}", path.display())]
    Unusable {
        /// The file or directory.
        path: PathBuf,
        /// Why, and what to do.
        what: String,
    },
    /// There is no such part.
    #[error("the plan has no part {part}: its {count} parts begin with 0")]
    NoPart {
        /// What was asked for.
        part: usize,
        /// Parts of the plan.
        count: usize,
    },
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
