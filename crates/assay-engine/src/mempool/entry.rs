//! A transaction of the mempool with its figures.

use std::sync::Arc;

use assay_consensus::chain::Ancestors;
use assay_consensus::locktime::{
    SEQUENCE_LOCKTIME_DISABLE_FLAG, SequenceLocks, has_sequence_locks,
};
use assay_consensus::script::Flags;
use assay_wire::{BlockHash, Coin, Transaction, Tx, TxIn, Wtxid};

use crate::tree::BlockTree;

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) tx: Arc<Transaction>,
    pub(crate) wtxid: Wtxid,
    pub(crate) fee_sat: i64,
    pub(crate) weight: u32,
    /// Weight, adjusted for signature operations.
    pub(crate) adjusted_weight: u32,
    /// Virtual size: a quarter of `adjusted_weight`, rounded up; plain size without witnesses.
    pub(crate) vsize: u32,
    /// Cost of its signature operations; 0 on Bitcoin Cash.
    pub(crate) sigop_cost: u32,
    /// Fee delta of `prioritisetransaction`, satoshi.
    pub(crate) fee_delta_sat: i64,
    /// Time of admission, seconds since 1970.
    pub(crate) time: u64,
    /// Height of the tip at admission.
    pub(crate) height: u32,
    /// The flags under which every script passed.
    pub(crate) verified: Flags,
    /// Signature checks that its scripts executed (BCH rule).
    pub(crate) sigchecks: u32,
    /// Order of admission: parents come before children.
    pub(crate) order: u64,
    /// True if a block had confirmed it: peers may know it from that block.
    pub(crate) was_confirmed: bool,
    pub(crate) usage_bytes: u32,
    /// True if a lower tip may invalidate it: it has a lock time, or spends a coinbase.
    pub(crate) depends_on_height: bool,
    /// Its relative lock times, if it has any.
    pub(crate) lock_points: Option<Box<LockPoints>>,
}

impl Entry {
    /// Fee including the delta.
    pub(crate) fn modified_fee_sat(&self) -> i64 {
        self.fee_sat.saturating_add(self.fee_delta_sat)
    }

    /// The modified fee, clamped so that sums in clusters never overflow.
    pub(super) fn cluster_fee_sat(&self) -> i64 {
        const BOUND_SAT: i64 = 1 << 50;
        self.modified_fee_sat().clamp(-BOUND_SAT, BOUND_SAT)
    }
}

#[cfg(test)]
impl Entry {
    /// An entry of an unverified transaction without signatures.
    pub(crate) fn for_test(tx: Transaction, fee_sat: i64, vsize: u32) -> Self {
        Self {
            wtxid: tx.view().wtxid(),
            fee_sat,
            weight: 4 * vsize,
            adjusted_weight: 4 * vsize,
            vsize,
            sigop_cost: 0,
            fee_delta_sat: 0,
            time: 0,
            height: 1,
            verified: Flags::NONE,
            sigchecks: 0,
            order: 0,
            was_confirmed: false,
            usage_bytes: 0,
            depends_on_height: false,
            lock_points: None,
            tx: Arc::new(tx),
        }
    }
}

/// Relative lock times at their last computation (Core `primitives/transaction_identifier.h`, `LockPoints`).
#[derive(Clone, Debug)]
pub(crate) struct LockPoints {
    pub(crate) locks: SequenceLocks,
    /// The highest block with a spent coin: the lock times are valid while it is active.
    pub(crate) highest_input: Option<(u32, BlockHash)>,
}

impl LockPoints {
    /// True while the spent coins are unchanged.
    pub(super) fn hold(&self, tree: &BlockTree) -> bool {
        self.highest_input.is_none_or(|(height, hash)| {
            tree.active_at(height).is_some_and(|id| tree.get(id).hash == hash)
        })
    }
}

/// The relative lock times of a transaction in a block at `height`, in which unconfirmed outputs count as created (Core
/// `validation.cpp`, `CalculateLockPointsAtTip`); `None` if it has none.
pub(super) fn lock_points(
    tree: &BlockTree,
    tx: Tx<'_>,
    coins: &[Coin],
    height: u32,
) -> Option<Box<LockPoints>> {
    if !has_sequence_locks(tx) {
        return None;
    }
    let branch = tree.ancestors(tree.tip());
    let heights = coins.iter().map(|coin| coin.height);
    let locks = SequenceLocks::of(tx, heights, |at| branch.median_time_past_at(at));
    let counts = |input: &TxIn<'_>| input.sequence & SEQUENCE_LOCKTIME_DISABLE_FLAG == 0;
    let highest = tx
        .inputs()
        .zip(coins)
        .filter(|(input, coin)| counts(input) && coin.height < height)
        .map(|(_, coin)| coin.height)
        .max();
    let highest_input =
        highest.and_then(|height| tree.active_at(height).map(|id| (height, tree.get(id).hash)));
    Some(Box::new(LockPoints { locks, highest_input }))
}

/// Fixed memory of an entry without its bytes: map slots, allocation headers, offsets.
const ENTRY_OVERHEAD_BYTES: usize = 320;
/// Fixed memory of a spent output.
const SPEND_OVERHEAD_BYTES: usize = 96;

/// Memory of a cluster with one transaction: slots of three maps, the cluster and its parts, allocation headers. Larger clusters
/// take less per transaction.
pub(super) const CLUSTER_OVERHEAD_BYTES: u32 = 320;

/// Accounted memory of a transaction.
pub(crate) fn usage_bytes(tx: &Transaction) -> u32 {
    let view = tx.view();
    let offsets = 4 * (view.output_count() + 2 * view.input_count());
    (tx.bytes().len() + offsets + ENTRY_OVERHEAD_BYTES + SPEND_OVERHEAD_BYTES * view.input_count())
        as u32
}

/// An output of a transaction as a coin at `height`.
pub(super) fn output_of(tx: &Transaction, vout: u32, height: u32) -> Option<Coin> {
    let (view, index) = (tx.view(), vout as usize);
    (index < view.output_count()).then(|| {
        let output = view.output(index);
        Coin { value: output.value, height, coinbase: false, script_pubkey: output.to_script() }
    })
}
