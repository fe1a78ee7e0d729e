//! Errors of the engine, with advice for the node's operator.

use assay_store::{
    AssumedError, BlockFileError, BlockFilesError, CoinError, CommitError, IndexError, LayoutError,
    UndoError,
};
use assay_wire::{BlockHash, OutPoint, ParseError};

/// A failure of the engine; never the fault of a block or transaction.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error("coins: {0}")]
    Coin(#[from] CoinError),
    #[error("block files: {0}")]
    BlockFile(#[from] BlockFileError),
    #[error("block index: {0}")]
    Index(#[from] IndexError),
    #[error("commit: {0}")]
    Commit(#[from] CommitError),
    #[error("undo data of block {hash}: {source}")]
    Undo { hash: BlockHash, source: UndoError },
    /// The number of coins in undo data does not match the block.
    #[error("undo data of block {hash} does not fit the block")]
    UndoMismatch { hash: BlockHash },
    /// A block stored according to the index is damaged.
    #[error("stored block {hash} no longer parses: {source}")]
    StoredBlock { hash: BlockHash, source: ParseError },
    #[error("no coin for {outpoint}, which an unconfirmed transaction spends")]
    NoCoin { outpoint: OutPoint },
    /// The index lacks block or undo data that are required.
    #[error("block {hash} at height {height} has no {what} on disk")]
    MissingData { hash: BlockHash, height: u32, what: &'static str },
    #[error("cannot disconnect the tip: {0}")]
    Disconnect(#[source] Box<EngineError>),
    #[error("cannot read a block that is to be connected: {0}")]
    ReadBlock(#[source] Box<EngineError>),
    /// The coins of a snapshot do not match their block, or a block below it is invalid.
    #[error(
        "The coins of the UTXO snapshot did not pass validation: the hardware or the software is at fault, or the file was made to \
         deceive. The node stops, and does not use what was built on the snapshot (blocks {validated} to {tip}): the next start \
         goes on from height {validated} without it. The coins are kept in {kept}, to find out what happened"
    )]
    SnapshotInvalid {
        /// Height of the tip built on them.
        tip: u32,
        /// Height of the last validated block.
        validated: u32,
        /// Path of the coins.
        kept: String,
    },
    #[error("coins of a snapshot: {0}")]
    Assumed(#[from] AssumedError),
    /// An earlier failure left memory and disk inconsistent.
    #[error("the engine stopped after an earlier failure: {0}; restart it")]
    Poisoned(String),
}

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("cannot open the store: {0}")]
    Store(#[source] assay_store::OpenError),
    /// The snapshot's base is not a known one; in Core's words (`validation.cpp`).
    #[error(
        "A fatal internal error occurred, see debug.log for details: Assumeutxo data not found for the given blockhash '{hash}'."
    )]
    UnknownBase { hash: BlockHash },
    #[error(
        "the coins belong to block {hash} at height {height}, which the block index does not hold"
    )]
    UnknownCoinTip { hash: BlockHash, height: u32 },
    /// Blocks above the segwit height were checked by the rules before segwit.
    #[error(
        "Witness data for blocks after height {height} requires validation. Please restart with -reindex."
    )]
    WitnessUnchecked { height: u32 },
    /// The clock is behind the tip.
    #[error(
        "The block database contains a block which appears to be from the future. This may be due to your computer's date and \
         time being set incorrectly. Only rebuild the block database if you are sure that your computer's date and time are \
         correct"
    )]
    FromTheFuture,
    /// The last blocks, checked at the start, are damaged.
    #[error("Corrupted block database detected")]
    Corrupted,
    /// The last blocks could not be checked at the requested level.
    #[error("Insufficient dbcache for block verification")]
    ShallowCheck,
    /// The data directory is pruned, but pruning is off.
    #[error(
        "You need to rebuild the database using -reindex to go back to unpruned mode.  This will redownload the entire blockchain"
    )]
    Pruned,
    #[error("cannot connect what is archived: {0}")]
    Engine(#[from] EngineError),
    #[error("cannot start threads: {0}")]
    Threads(String),
}

#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error(transparent)]
    Files(#[from] BlockFilesError),
    /// The reindex marker cannot be removed.
    #[error(transparent)]
    Mark(LayoutError),
    #[error(transparent)]
    Engine(#[from] EngineError),
}

#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    #[error("block {hash} is not known")]
    UnknownBlock { hash: BlockHash },
    /// A block to be disconnected was pruned.
    #[error("the active block at height {height} was pruned and cannot be disconnected")]
    Pruned {
        /// Height of the highest one.
        height: u32,
    },
    #[error(transparent)]
    Engine(#[from] EngineError),
}

const COINS: &str = "the coins can be made again from the archived blocks: check the disk, move the folder `chainstate` away and \
     start again";

const FILES: &str = "check the disk; then restore the file from a copy, or have the block files validated into a new \
     folder (assay validate --blocks)";

const FULL_OR_FAILING: &str =
    "check the disk and its free space, then start again: nothing that was acknowledged is lost";

impl From<assay_store::OpenError> for OpenError {
    fn from(error: assay_store::OpenError) -> Self {
        match error {
            assay_store::OpenError::UnknownBase { hash } => Self::UnknownBase { hash },
            error => Self::Store(error),
        }
    }
}

impl OpenError {
    /// Advice for the operator, if any.
    pub fn advice(&self) -> Option<&'static str> {
        match self {
            Self::Store(assay_store::OpenError::Tier(error)) => error.place.as_ref().map(|_| COINS),
            Self::Store(assay_store::OpenError::Coins(error)) => of_coins(error),
            Self::Store(assay_store::OpenError::Blocks(error)) => Some(of_files(error)),
            Self::Store(assay_store::OpenError::Index(error)) => of_index(error),
            Self::UnknownCoinTip { .. } => Some(FILES),
            Self::Engine(error) => error.advice(),
            Self::Store(
                assay_store::OpenError::Layout(_)
                | assay_store::OpenError::Assumed(_)
                | assay_store::OpenError::UnknownBase { .. },
            )
            | Self::UnknownBase { .. }
            | Self::WitnessUnchecked { .. }
            | Self::FromTheFuture
            | Self::Pruned
            | Self::Corrupted
            | Self::ShallowCheck
            | Self::Threads(_) => None,
        }
    }
}

impl EngineError {
    /// Core's message for the same failure (`validation.cpp`, `FatalError`), or the error itself if Core has none.
    pub fn fatal_text(&self) -> String {
        let words = match self {
            Self::Disconnect(_) => "Failed to disconnect block.",
            Self::ReadBlock(_) => "Failed to read block.",
            Self::Commit(CommitError::Coins(_)) => "Failed to write to coin database.",
            Self::Commit(CommitError::Index(_)) | Self::Index(_) => {
                "Failed to write to block index database."
            }
            other => return other.to_string(),
        };
        words.to_owned()
    }

    /// Advice for the operator, if any.
    pub fn advice(&self) -> Option<&'static str> {
        match self {
            Self::Disconnect(source) | Self::ReadBlock(source) => source.advice(),
            Self::Coin(error) | Self::Commit(CommitError::Coins(error)) => of_coins(error),
            Self::BlockFile(error) | Self::Commit(CommitError::Blocks(error)) => {
                Some(of_files(error))
            }
            Self::Index(error) | Self::Commit(CommitError::Index(error)) => of_index(error),
            Self::Undo { .. }
            | Self::UndoMismatch { .. }
            | Self::StoredBlock { .. }
            | Self::MissingData { .. } => Some(FILES),
            _ => None,
        }
    }
}

fn of_coins(error: &CoinError) -> Option<&'static str> {
    match error {
        CoinError::Tier(error) if error.place.is_none() => Some(FULL_OR_FAILING),
        CoinError::Tier(_)
        | CoinError::Damaged { .. }
        | CoinError::UnknownEntry { .. }
        | CoinError::Marker { .. } => Some(COINS),
        _ => None,
    }
}

fn of_files(error: &BlockFileError) -> &'static str {
    if error.is_damage() { FILES } else { FULL_OR_FAILING }
}

fn of_index(error: &IndexError) -> Option<&'static str> {
    match error {
        IndexError::Io { .. } => Some(FULL_OR_FAILING),
        IndexError::Damaged { .. } => Some(FILES),
        _ => None,
    }
}
