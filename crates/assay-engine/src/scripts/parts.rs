//! Cutting the inputs of one large transaction into parts, which several threads verify.
//!
//! A legacy message repeats the whole transaction for each input, so one transaction can be most of the work of a block.

use std::ops::Range;

use assay_consensus::script::{MESSAGES_TOGETHER, MESSAGES_TOGETHER_INPUTS_MIN, SharedHashes};
use assay_wire::{Coin, Tx};

use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// A part costs at least about this much, in bytes of SHA-256: a millisecond. A transaction of less than two parts stays
/// whole, as nearly all do (it takes some 130 inputs of the usual kind).
pub(crate) const PART_COST: u64 = 2 << 20;

/// Parts for each thread at most: enough that all end at about the same time although parts are not equal, and few
/// enough that what a part does for the whole transaction (a list of all spent outputs) does not matter.
const PARTS_PER_THREAD: usize = 8;

/// A signature with its key is some 107 bytes, and to verify it takes as long as hashing some 20,000.
const SPEND_BYTE_COST: u64 = 200;

/// Bytes of an input in the messages of the others.
const BLANK_INPUT: u64 = 41;

/// About what it costs at most to verify the inputs of a transaction, in bytes hashed.
pub(crate) fn cost(tx: Tx<'_>) -> u64 {
    let (inputs, outputs) = (tx.input_count() as u64, tx.outputs_raw().len() as u64);
    let spend_bytes = tx.total_size() as u64 - outputs;
    // Only legacy inputs have such messages; for others the parts come out smaller than they need to be.
    let legacy_messages = inputs * (BLANK_INPUT * inputs + outputs);
    spend_bytes * SPEND_BYTE_COST + legacy_messages
}

/// Into which runs of inputs a transaction is cut when so many threads may verify it and a part costs at least
/// `part_cost`; `None` where it stays whole. For one thread a large transaction is one part.
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
        // So that no lane of the vectors that hash legacy messages stays empty.
        size = size.next_multiple_of(MESSAGES_TOGETHER);
    }
    let part = move |first| first as u32..inputs.min(first + size) as u32;
    Some((0..inputs).step_by(size).map(part))
}

/// A transaction whose parts are verified apart.
pub(super) struct LargeTx {
    pub(super) coins: Vec<Coin>,
    pub(super) hashes: SharedHashes,
    /// Parts that have not passed.
    open: AtomicUsize,
    /// Signature checks of the parts that have.
    sigchecks: AtomicU64,
}

impl LargeTx {
    pub(super) fn new(tx: Tx<'_>, coins: Vec<Coin>, parts: usize) -> Self {
        let (open, sigchecks) = (AtomicUsize::new(parts), AtomicU64::new(0));
        Self { coins, hashes: SharedHashes::new(tx), open, sigchecks }
    }

    /// Counts a part whose inputs have all passed; gives the signature checks of all when it was the last.
    pub(super) fn pass(&self, sigchecks: u64) -> Option<u64> {
        self.sigchecks.fetch_add(sigchecks, Ordering::Relaxed);
        // Release and acquire: the last one sees what the others have added.
        let is_last = self.open.fetch_sub(1, Ordering::AcqRel) == 1;
        is_last.then(|| self.sigchecks.load(Ordering::Relaxed))
    }
}
