//! What to do about damage on disk, in words for whoever runs the node.

use assay_store::{BlockFileError, CoinError, CommitError, IndexError};

use crate::types::{EngineError, OpenError};

const COINS: &str = "the coins can be made again from the archived blocks: check the disk, move the folder `coins` away and \
     start again";

const FILES: &str = "check the disk; then restore the file from a copy, or have the block files validated into a new \
     folder (assay validate --blocks)";

const FULL_OR_FAILING: &str =
    "check the disk and its free space, then start again: nothing that was acknowledged is lost";

impl OpenError {
    /// What helps, where something is known to.
    pub fn advice(&self) -> Option<&'static str> {
        match self {
            Self::Store(assay_store::OpenError::Tier(error)) => error.place.as_ref().map(|_| COINS),
            Self::Store(assay_store::OpenError::Coins(error)) => of_coins(error),
            Self::Store(assay_store::OpenError::Blocks(error)) => Some(of_files(error)),
            Self::Store(assay_store::OpenError::Index(error)) => of_index(error),
            Self::UnknownCoinTip { .. } => Some(FILES),
            Self::Engine(error) => error.advice(),
            Self::Threads(_) => None,
        }
    }
}

impl EngineError {
    /// What helps, where something is known to.
    pub fn advice(&self) -> Option<&'static str> {
        match self {
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
