//! Facts about a transaction that its coins need besides its inputs and outputs.

use std::ops::Range;

use assay_wire::{Block, Tx};

use crate::locktime::has_sequence_locks;
use crate::sigops::legacy_sigops;

/// Facts that follow from a transaction alone and are needed again when its coins move. They are
/// computed while its bytes are in the processor's cache, so that the bytes need not be fetched again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TxFacts {
    /// Signature operations in its own scripts, counted imprecisely ([`legacy_sigops`]).
    pub legacy_sigops: u32,
    /// `true` if any input has a relative lock time ([`has_sequence_locks`]).
    pub has_sequence_locks: bool,
    pub is_coinbase: bool,
}

impl TxFacts {
    #[must_use]
    pub fn of(tx: Tx<'_>) -> Self {
        Self {
            // At most 20 for each byte, and no valid block has this many.
            legacy_sigops: u32::try_from(legacy_sigops(tx)).unwrap_or(u32::MAX),
            has_sequence_locks: has_sequence_locks(tx),
            is_coinbase: tx.is_coinbase(),
        }
    }

    /// The facts of the transactions in `range`, in order.
    ///
    /// # Panics
    /// When the range goes beyond the block.
    #[must_use]
    pub fn of_range(block: &Block, range: Range<usize>) -> Vec<Self> {
        range.map(|tx_index| Self::of(block.tx(tx_index))).collect()
    }
}
