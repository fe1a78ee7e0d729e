//! What somebody needs who follows the engine: an index of the chain, for one.
//!
//! A follower goes its own way from block to block and reads what it needs from the archive; nothing here makes the engine
//! wait for it. That it usually need not read is a favour: connected blocks stay in memory until it takes them, as far as
//! there is room.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use assay_wire::{Block, BlockHash, Coin, Transaction, Txid};
use parking_lot::{Condvar, Mutex};

use crate::connect::Prepared;
use crate::engine::{Engine, State, UNCONFIRMED_HEIGHT};
use crate::types::{EngineError, Tip};

/// A block that has just been connected.
pub struct ConnectedBlock {
    height: u32,
    prepared: Arc<Prepared>,
    undo: Vec<u8>,
}

impl ConnectedBlock {
    /// The block.
    pub fn block(&self) -> &Block {
        &self.prepared.block
    }

    /// Its txids, in order.
    pub fn txids(&self) -> &[Txid] {
        &self.prepared.txids
    }

    /// The coins that it spent, encoded as undo data.
    pub fn undo(&self) -> &[u8] {
        &self.undo
    }

    fn bytes(&self) -> usize {
        self.prepared.block.bytes().len() + 32 * self.prepared.txids.len() + self.undo.len()
    }
}

/// Changes of the mempool.
#[derive(Clone, Debug)]
pub struct MempoolDelta {
    /// The tip at that moment.
    pub tip: Tip,
    /// Number of the last change.
    pub sequence: u64,
    /// Whether `added` begins with an empty mempool.
    pub from_scratch: bool,
    /// What has left, possibly to come back with `added`.
    pub removed: Vec<Txid>,
    /// What has come and is still there, parents before children.
    pub added: Vec<UnconfirmedTx>,
}

/// An unconfirmed transaction with what it spends.
#[derive(Clone, Debug)]
pub struct UnconfirmedTx {
    /// Its id.
    pub txid: Txid,
    /// The transaction.
    pub tx: Arc<Transaction>,
    /// What it spends, input by input.
    pub spent: Vec<Coin>,
    /// Its fee in satoshi.
    pub fee_sat: i64,
    /// Virtual size in bytes (BIP141); plain size where there are no witnesses.
    pub vsize: u32,
}

/// Wakes a follower.
#[derive(Default)]
pub(crate) struct Signal {
    /// Number of the last change of the mempool.
    sequence: AtomicU64,
    lock: Mutex<()>,
    changed: Condvar,
}

impl Signal {
    pub(crate) fn wake(&self) {
        drop(self.lock.lock());
        self.changed.notify_all();
    }
}

/// What has happened in the mempool, as far back as there is room.
pub(crate) struct Journal {
    signal: Arc<Signal>,
    /// Number of the first change kept; changes count from 1.
    first: u64,
    changes: VecDeque<(Change, Txid)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Added,
    Removed,
}

impl Journal {
    pub(crate) fn new(signal: Arc<Signal>) -> Self {
        Self { signal, first: 1, changes: VecDeque::new() }
    }

    pub(crate) fn note(&mut self, change: Change, txid: Txid) {
        if self.changes.len() == CHANGES_MAX {
            self.changes.pop_front();
            self.first += 1;
        }
        self.changes.push_back((change, txid));
        self.signal.sequence.store(self.last(), Ordering::Release);
        self.signal.wake();
    }

    fn last(&self) -> u64 {
        self.first + self.changes.len() as u64 - 1
    }

    /// The changes after number `since`; `None` when some of them have been forgotten.
    fn since(&self, since: u64) -> Option<impl Iterator<Item = (Change, Txid)> + '_> {
        let skipped = (since + 1).checked_sub(self.first)?;
        Some(self.changes.iter().skip(usize::try_from(skipped).ok()?).copied())
    }
}

/// Connected blocks that nobody has taken yet.
#[derive(Default)]
pub(crate) struct Handover {
    blocks: VecDeque<ConnectedBlock>,
    bytes: usize,
}

impl Handover {
    fn push(&mut self, block: ConnectedBlock) {
        let bytes = self.bytes + block.bytes();
        // What does not fit is read from the archive; the first ones are wanted first.
        if self.blocks.is_empty() || bytes <= HANDOVER_BYTES_MAX {
            self.bytes = bytes;
            self.blocks.push_back(block);
        }
    }

    /// Gives the block after `parent`, and drops those at its height and below: whoever follows has passed them, or they
    /// are stale.
    fn take(&mut self, parent: &BlockHash) -> Option<ConnectedBlock> {
        let is_next = |block: &ConnectedBlock| block.block().header().prev_block == *parent;
        let at = self.blocks.iter().position(is_next)?;
        let taken = self.blocks.remove(at)?;
        self.blocks.retain(|block| block.height > taken.height);
        self.bytes = self.blocks.iter().map(ConnectedBlock::bytes).sum();
        Some(taken)
    }
}

impl Engine {
    /// The tip, and the number of the last change of the mempool.
    ///
    /// Only an engine with [`Config::is_followed`](crate::Config::is_followed) counts changes.
    pub fn moment(&self) -> (Tip, u64) {
        (self.tip(), self.signal.sequence.load(Ordering::Acquire))
    }

    /// Waits until tip or mempool differ from what was seen, the time is over, or the engine closes.
    pub fn wait_for_news(&self, seen: (BlockHash, u64), timeout: Duration) -> (Tip, u64) {
        let deadline = Instant::now() + timeout;
        let mut guard = self.signal.lock.lock();
        loop {
            let now = self.moment();
            if (now.0.hash, now.1) != seen || self.is_closing() {
                return now;
            }
            if self.signal.changed.wait_until(&mut guard, deadline).timed_out() {
                return self.moment();
            }
        }
    }

    /// Whether the engine is closing.
    pub fn is_shutting_down(&self) -> bool {
        self.is_closing()
    }

    /// The block that was connected on top of `parent`, if it is still in memory; it is given once. It may have been
    /// disconnected since. Never waits for a block that is being connected.
    pub fn take_connected(&self, parent: &BlockHash) -> Option<ConnectedBlock> {
        self.handover.lock().take(parent)
    }

    /// Leaves a block for whoever follows.
    pub(crate) fn hand_over(&self, height: u32, prepared: &Arc<Prepared>, undo: Vec<u8>) {
        if self.config.is_followed {
            let prepared = Arc::clone(prepared);
            self.handover.lock().push(ConnectedBlock { height, prepared, undo });
        }
    }

    /// The undo data of a connected block, as it is stored.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read_undo(&self, hash: &BlockHash) -> Result<Option<Vec<u8>>, EngineError> {
        let pos = {
            let state = self.lock();
            state.tree.find(hash).and_then(|id| state.tree.get(id).undo)
        };
        pos.map(|pos| self.blocks.read_undo(pos, hash).map_err(EngineError::from)).transpose()
    }

    /// `length` bytes from `offset` of a stored block, unchecked.
    ///
    /// # Errors
    /// When they cannot be read, or the block is shorter.
    pub fn read_block_part(
        &self,
        hash: &BlockHash,
        offset: u32,
        length: u32,
    ) -> Result<Option<Vec<u8>>, EngineError> {
        if *hash == self.params.genesis_hash {
            let block = self.params.genesis_block();
            let end = (offset as usize).checked_add(length as usize);
            let part = end.and_then(|end| block.get(offset as usize..end));
            return Ok(part.map(<[u8]>::to_vec));
        }
        let pos = {
            let state = self.lock();
            state.tree.find(hash).and_then(|id| state.tree.get(id).block)
        };
        let read = |pos| self.blocks.read_block_part(pos, offset, length);
        pos.map(|pos| read(pos).map_err(EngineError::from)).transpose()
    }

    /// What has happened in the mempool since change number `since`; `None` asks for everything.
    ///
    /// # Errors
    /// When a coin that a transaction spends cannot be read.
    pub fn mempool_since(&self, since: Option<u64>) -> Result<MempoolDelta, EngineError> {
        let state = self.lock();
        let State { tree, coins, mempool, .. } = &*state;
        let journal = mempool.journal.as_ref();
        let changes = since.and_then(|since| journal?.since(since));
        let from_scratch = changes.is_none();
        let (mut removed, mut txids) = (Vec::new(), Vec::new());
        match changes {
            None => txids.extend(mempool.iter().map(|(txid, _)| *txid)),
            Some(changes) => {
                for (change, txid) in changes {
                    match change {
                        Change::Added => txids.push(txid),
                        Change::Removed => removed.push(txid),
                    }
                }
            }
        }
        let mut entries: Vec<_> =
            txids.iter().filter_map(|txid| Some((*txid, mempool.get(txid)?))).collect();
        entries.sort_unstable_by_key(|(_, entry)| entry.order);
        entries.dedup_by_key(|(_, entry)| entry.order);
        let mut added = Vec::with_capacity(entries.len());
        for (txid, entry) in entries {
            let mut spent = Vec::with_capacity(entry.tx.view().input_count());
            for input in entry.tx.view().inputs() {
                let coin = match mempool.output(&input.prevout, UNCONFIRMED_HEIGHT) {
                    Some(coin) => Some(coin),
                    None => coins.get(&input.prevout)?,
                };
                let outpoint = input.prevout;
                spent.push(coin.ok_or(EngineError::NoCoin { outpoint })?);
            }
            let (fee_sat, vsize) = (entry.fee_sat, entry.vsize);
            added.push(UnconfirmedTx { txid, tx: Arc::clone(&entry.tx), spent, fee_sat, vsize });
        }
        Ok(MempoolDelta {
            tip: crate::engine::tip_of(tree),
            sequence: journal.map_or(0, Journal::last),
            from_scratch,
            removed,
            added,
        })
    }
}

/// Bytes of connected blocks that wait in memory; a single block may go beyond.
const HANDOVER_BYTES_MAX: usize = 128 << 20;
/// Changes that the journal keeps: 35 MB.
const CHANGES_MAX: usize = 1 << 20;
