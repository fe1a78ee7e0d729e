//! What coins need to know of a transaction besides its inputs and outputs.

use std::ops::Range;

use assay_wire::{Block, Tx};

use crate::locktime::has_sequence_locks;
use crate::sigops::legacy_sigops;

/// What follows from a transaction alone and is asked for again when its coins move: found while its
/// bytes are in the processor's cache anyway, so that they need not be fetched once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TxFacts {
    /// Signature operations in its own scripts, counted imprecisely ([`legacy_sigops`]).
    pub legacy_sigops: u32,
    /// Whether any input has a relative lock time ([`has_sequence_locks`]).
    pub has_sequence_locks: bool,
    /// Whether it is a coinbase.
    pub is_coinbase: bool,
}

impl TxFacts {
    /// The facts of one transaction.
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
