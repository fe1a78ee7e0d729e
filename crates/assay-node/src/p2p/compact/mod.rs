//! Compact blocks (BIP152): header and short txids of a block, most of whose transactions the receiver has.
//!
//! [`rebuild`] reconstructs a block; [`recent`] caches the compact form of the latest blocks. `sync/compact.rs`
//! schedules the requests.

mod rebuild;
mod recent;

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use assay_engine::{Engine, FreshBlock, RelayId, TxIds};
use assay_wire::p2p::{COMPACT_TXS_MAX, Message};
use assay_wire::{BlockHash, Encoding, Transaction};

pub(super) use self::rebuild::{Partial, Unusable};
pub(super) use self::recent::{Recent, compact_of};
use super::peers::{Peer, Peers};

/// Sources of compact blocks in addition to the mempool.
pub(super) struct Compact {
    engine: Arc<Engine>,
    peers: Arc<Peers>,
    /// Latest announced blocks, newest first.
    recent: Mutex<VecDeque<Arc<Recent>>>,
    /// Recent transactions outside the mempool, newest last.
    extra: Mutex<VecDeque<(TxIds, Arc<Transaction>)>>,
    /// Last reconstructed block and the indexes of its missing transactions: other peers probably lack them too.
    lacked: Mutex<Option<(BlockHash, Vec<u32>)>>,
    highest: Mutex<u32>,
}

impl Compact {
    pub(super) fn new(peers: &Arc<Peers>) -> Self {
        Self {
            engine: Arc::clone(&peers.engine),
            peers: Arc::clone(peers),
            recent: Mutex::default(),
            extra: Mutex::default(),
            lacked: Mutex::default(),
            highest: Mutex::default(),
        }
    }

    /// Latest block that extended the tip on arrival, validated or not.
    pub(super) fn recent(&self) -> Option<Arc<Recent>> {
        lock(&self.recent).front().cloned()
    }

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

    /// Keeps a transaction that was not admitted, as a candidate for reconstruction.
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

    /// Records the missing transactions of a block before it is submitted to the engine.
    pub(super) fn note_lacked(&self, block: BlockHash, places: Vec<u32>) {
        *lock(&self.lacked) = Some((block, places));
    }

    /// Compact block version: 2 identifies transactions by wtxid, 1 by txid.
    pub(super) fn version(&self) -> u64 {
        match self.peers.encoding {
            Encoding::Segwit => 2,
            Encoding::Legacy => 1,
        }
    }

    /// Maximum number of transactions in a compact block.
    pub(super) fn txs_max(&self) -> usize {
        match self.peers.encoding {
            Encoding::Segwit => COMPACT_TXS_MAX,
            Encoding::Legacy => self.peers.block_bytes_max as usize / TX_BYTES_MIN,
        }
    }

    /// Announces submitted blocks before script verification (Core `net_processing.cpp`, `NewPoWValidBlock`).
    pub(super) fn pass_on_submitted(&self) {
        while self.engine.blocks().pass_fresh(|block| self.pass_on(block)) {}
    }

    /// Announces a peer's block on the thread that submits it: on a busy machine, to wake another thread takes
    /// milliseconds. The caller must not call the engine, which is processing the block.
    pub(super) fn pass_on(&self, block: FreshBlock) {
        let has_segwit = self.peers.encoding == Encoding::Legacy
            || self.engine.params().segwit_active(block.height());
        // Held until the block is queued: two threads must not change the order.
        let mut highest = lock(&self.highest);
        if block.height() <= *highest || !has_segwit {
            return;
        }
        *highest = block.height();
        let lacked = lock(&self.lacked).take_if(|(hash, _)| hash == block.hash());
        let places = lacked.map(|(_, places)| places).unwrap_or_default();
        let recent = Arc::new(new_recent(block, places));
        self.keep_recent(Arc::clone(&recent));
        let mut at_once = 0;
        for peer in self.peers.list() {
            if at_once < AT_ONCE_MAX && self.pass_on_at_once(&peer, &recent) {
                at_once += 1;
            } else {
                peer.outbox.notify_fresh();
            }
        }
    }

    /// Writes a block to a peer on this thread if that does not block and the peer certainly wants it.
    fn pass_on_at_once(&self, peer: &Peer, recent: &Recent) -> bool {
        let is_due = peer.is_ready() && peer.wants_compact.load(Ordering::Relaxed);
        let is_limited = self.peers.rate.is_limited();
        if !is_due || is_limited || !peer.knows_up_to(&recent.header().prev_block) {
            return false;
        }
        peer.outbox.write_now(|| {
            net!("sending header-and-ids {} to peer={}", recent.hash(), peer.id);
            peer.with_known(|known| known.best_sent = Some(*recent.hash()));
            peer.write_some(self.peers.magic, &Message::CompactBlock(recent.payload()))
        })
    }
}

fn new_recent(block: FreshBlock, lacked: Vec<u32>) -> Recent {
    // Without a random nonce a peer could create short txid collisions.
    Recent::new(block, lacked, getrandom::u64().unwrap_or(0))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Peers that the submitting thread writes to: usually three, many under attack.
const AT_ONCE_MAX: usize = 8;
/// Older blocks stay available for transactions announced before them: a peer with delayed messages still requests
/// these, and some count each `notfound` as misbehaviour (btcd, ten points each). Core keeps one block.
const RECENT_MAX: usize = 6;
/// Total size of the older blocks.
const RECENT_BYTES_MAX: usize = 16 << 20;
/// Core's default of `-blockreconstructionextratxn`, and the maximum size of one transaction.
const EXTRA_MAX: usize = 100;
const EXTRA_BYTES_MAX: usize = 100_000;
/// Core `consensus/consensus.h`, `MIN_SERIALIZABLE_TRANSACTION_WEIGHT`.
const TX_BYTES_MIN: usize = 60;
