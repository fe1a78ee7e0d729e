//! Compact blocks (BIP152): a block by its header and short names of its transactions, most of which the receiver has.
//!
//! [`rebuild`] puts a block together from one; [`recent`] is the latest block in the form in which it is passed on. Who is asked
//! for what is decided with all other blocks (`sync/compact.rs`).

mod rebuild;
mod recent;

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use assay_engine::{FreshBlock, RelayId, TxIds};
use assay_wire::p2p::{COMPACT_TXS_MAX, Message};
use assay_wire::{BlockHash, Encoding, Transaction};

pub(super) use self::rebuild::{Partial, Unusable};
pub(super) use self::recent::{Recent, compact_of};
use super::Shared;
use super::peers::Peer;

/// What compact blocks are made of besides the mempool.
#[derive(Default)]
pub(super) struct Compact {
    /// The blocks passed on last, latest first.
    recent: Mutex<VecDeque<Arc<Recent>>>,
    /// Transactions that are not in the mempool and may be in a block all the same, latest last.
    extra: Mutex<VecDeque<(TxIds, Arc<Transaction>)>>,
    /// The block put together last, and the places of what it lacked: others will lack it, too.
    lacked: Mutex<Option<(BlockHash, Vec<u32>)>>,
    /// Height of the latest block that was passed on.
    highest: Mutex<u32>,
}

impl Compact {
    /// The latest block that built on the tip when it came, judged or not.
    pub(super) fn recent(&self) -> Option<Arc<Recent>> {
        lock(&self.recent).front().cloned()
    }

    /// A transaction of one of the latest blocks.
    pub(super) fn recent_tx(&self, id: &RelayId) -> Option<Arc<Transaction>> {
        let recent: Vec<_> = lock(&self.recent).iter().cloned().collect();
        recent.iter().find_map(|block| block.tx(id))
    }

    fn keep_recent(&self, block: Arc<Recent>) {
        let mut recent = lock(&self.recent);
        recent.push_front(block);
        recent.truncate(RECENT_MAX);
        let mut room = RECENT_BYTES_MAX;
        let below = recent.iter().skip(1).map(|block| block.block().bytes().len());
        let fit = |size: usize| room.checked_sub(size).map(|rest| room = rest);
        let kept = below.map_while(fit).count();
        recent.truncate(1 + kept);
    }

    /// Keeps a transaction that was not admitted for some time.
    pub(super) fn keep_extra(&self, tx: &Arc<Transaction>) {
        if tx.bytes().len() > EXTRA_BYTES_MAX {
            return;
        }
        let mut extra = lock(&self.extra);
        if extra.len() == EXTRA_MAX {
            extra.pop_front();
        }
        let ids = TxIds { txid: tx.view().txid(), wtxid: tx.view().wtxid() };
        extra.push_back((ids, Arc::clone(tx)));
    }

    pub(super) fn extra(&self) -> Vec<(TxIds, Arc<Transaction>)> {
        lock(&self.extra).iter().cloned().collect()
    }

    /// A block is about to be offered to the engine that lacked the transactions at these places.
    pub(super) fn note_lacked(&self, block: BlockHash, places: Vec<u32>) {
        *lock(&self.lacked) = Some((block, places));
    }
}

impl Shared {
    /// The version of compact blocks that is spoken: 2 names transactions with their witnesses, 1 without.
    pub(super) fn compact_version(&self) -> u64 {
        match self.encoding {
            Encoding::Segwit => 2,
            Encoding::Legacy => 1,
        }
    }

    /// Transactions that a compact block may have.
    pub(super) fn compact_txs_max(&self) -> usize {
        match self.encoding {
            Encoding::Segwit => COMPACT_TXS_MAX,
            Encoding::Legacy => self.block_bytes_max as usize / TX_BYTES_MIN,
        }
    }
}

/// Passes submitted blocks on before their scripts have been verified (Core `net_processing.cpp`, `NewPoWValidBlock`).
pub(super) fn pass_on(shared: &Shared) {
    while shared.engine.pass_fresh(|block| pass_on_block(shared, block)) {}
}

/// The same for a block of a peer, on the thread that has it taken: on a busy machine it takes milliseconds to wake another one.
/// The engine is in the middle of it and must not be called.
pub(super) fn pass_on_block(shared: &Shared, block: FreshBlock) {
    let has_segwit =
        shared.encoding == Encoding::Legacy || shared.engine.params().segwit_active(block.height());
    let compact = &shared.compact;
    // Kept until the block is there to be sent: two threads must not change their order.
    let mut highest = lock(&compact.highest);
    if block.height() <= *highest || !has_segwit {
        return;
    }
    *highest = block.height();
    let lacked = lock(&compact.lacked).take_if(|(hash, _)| hash == block.hash());
    let places = lacked.map(|(_, places)| places).unwrap_or_default();
    let recent = Arc::new(new_recent(block, places));
    compact.keep_recent(Arc::clone(&recent));
    let mut at_once = 0;
    for peer in shared.peers.list() {
        if at_once < AT_ONCE_MAX && pass_on_at_once(shared, &peer, &recent) {
            at_once += 1;
        } else {
            peer.outbox.tell_fresh();
        }
    }
}

/// Writes a block to a peer on this thread, if that takes no waiting and it is plain that the peer wants it.
fn pass_on_at_once(shared: &Shared, peer: &Peer, recent: &Recent) -> bool {
    let is_due = peer.is_ready() && peer.wants_compact.load(Ordering::Relaxed);
    if !is_due || shared.rate.is_limited() || !peer.knows_up_to(&recent.header().prev_block) {
        return false;
    }
    peer.outbox.write_now(|| {
        tracing::debug!(
            target: "net", "sending header-and-ids {} to peer={}", recent.hash(), peer.id
        );
        peer.with_known(|known| known.best_sent = Some(*recent.hash()));
        peer.write_some(shared, &Message::CompactBlock(recent.payload()))
    })
}

fn new_recent(block: FreshBlock, lacked: Vec<u32>) -> Recent {
    // Without chance a peer could choose transactions with equal names.
    Recent::new(block, lacked, getrandom::u64().unwrap_or(0))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Peers to whom a block is written on the thread that brings it: three as a rule, and many where they are hostile.
const AT_ONCE_MAX: usize = 8;
/// Blocks below the latest are kept for the transactions that were announced before they came: a peer whose messages were held up
/// asks for those, and some count each answer that there is no such transaction as misbehaviour (btcd, ten points each).
/// Core keeps one block.
const RECENT_MAX: usize = 6;
/// What those below the latest may take altogether.
const RECENT_BYTES_MAX: usize = 16 << 20;
/// Core's `-blockreconstructionextratxn` by default, and what one may take.
const EXTRA_MAX: usize = 100;
const EXTRA_BYTES_MAX: usize = 100_000;
/// Core `consensus/consensus.h`, `MIN_SERIALIZABLE_TRANSACTION_WEIGHT`.
const TX_BYTES_MIN: usize = 60;
