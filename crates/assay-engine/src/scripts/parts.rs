//! Splits the inputs of one large transaction into parts for several threads.
//!
//! A legacy message repeats the whole transaction for each input, so one transaction can be most of the work of a block.

use std::ops::Range;

use assay_consensus::script::{MESSAGES_TOGETHER, MESSAGES_TOGETHER_INPUTS_MIN, SharedHashes};
use assay_wire::{Coin, Tx};

use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Approximate minimum cost of a part, in bytes of SHA-256: a millisecond. A transaction below two parts stays whole, as nearly
/// all do (it takes some 130 usual inputs).
pub(crate) const PART_COST: u64 = 2 << 20;

/// Maximum parts per thread: enough for an even finish although parts are unequal, and few enough that the overhead per part (a
/// list of all spent outputs) is negligible.
const PARTS_PER_THREAD: usize = 8;

/// A signature with its key has some 107 bytes, and its verification takes as long as hashing some 20,000.
const SPEND_BYTE_COST: u64 = 200;

/// Bytes of an input in the messages of the others.
const BLANK_INPUT: u64 = 41;

/// Estimated upper bound of the cost of verifying a transaction's inputs, in bytes hashed.
pub(crate) fn cost(tx: Tx<'_>) -> u64 {
    let (inputs, outputs) = (tx.input_count() as u64, tx.outputs_raw().len() as u64);
    let spend_bytes = tx.total_size() as u64 - outputs;
    // Only legacy inputs have such messages; for others the parts become smaller than necessary.
    let legacy_messages = inputs * (BLANK_INPUT * inputs + outputs);
    spend_bytes * SPEND_BYTE_COST + legacy_messages
}

/// Splits a transaction into runs of inputs for this many threads, with a cost of at least `part_cost` each; `None` if it stays
/// whole. For one thread a large transaction is one part.
pub(crate) fn cut(
    tx: Tx<'_>,
    threads: usize,
    part_cost: u64,
) -> Option<impl ExactSizeIterator<Item = Range<u32>> + use<>> {
    let inputs = tx.input_count();
    let parts = cost(tx) / part_cost;
    if parts < 2 || inputs < 2 {
        return None;
    }
    let parts_max = if threads > 1 { threads * PARTS_PER_THREAD } else { 1 };
    let mut size = inputs.div_ceil(parts.min(parts_max as u64) as usize);
    if inputs >= MESSAGES_TOGETHER_INPUTS_MIN {
        // Fills all lanes of the vector code for legacy messages.
        size = size.next_multiple_of(MESSAGES_TOGETHER);
    }
    let part = move |first| first as u32..inputs.min(first + size) as u32;
    Some((0..inputs).step_by(size).map(part))
}

/// A transaction whose parts are verified separately.
pub(super) struct LargeTx {
    pub(super) coins: Vec<Coin>,
    pub(super) hashes: SharedHashes,
    /// Number of parts that have not passed.
    open: AtomicUsize,
    /// Signature checks of the parts that have passed.
    sigchecks: AtomicU64,
}

impl LargeTx {
    pub(super) fn new(tx: Tx<'_>, coins: Vec<Coin>, parts: usize) -> Self {
        let (open, sigchecks) = (AtomicUsize::new(parts), AtomicU64::new(0));
        Self { coins, hashes: SharedHashes::new(tx), open, sigchecks }
    }

    /// Records a passed part; returns the signature checks of all parts if it was the last.
    pub(super) fn pass(&self, sigchecks: u64) -> Option<u64> {
        self.sigchecks.fetch_add(sigchecks, Ordering::Relaxed);
        // Release and acquire: the last one sees the additions of the others.
        let is_last = self.open.fetch_sub(1, Ordering::AcqRel) == 1;
        is_last.then(|| self.sigchecks.load(Ordering::Relaxed))
    }
}
