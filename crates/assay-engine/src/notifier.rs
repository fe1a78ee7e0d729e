//! Announcements of the engine: the tip, changes, and recently connected blocks.
//!
//! They are separate from the chain state, so that a query of the tip never waits for a block. A follower, such as an index,
//! moves independently from block to block and reads the archive; the engine never waits for it. Recently connected blocks stay
//! in memory until it takes them, as far as there is room, so it rarely needs to read.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use assay_wire::{Block, BlockHash, Txid, Wtxid};
use parking_lot::{Condvar, Mutex};

use crate::config::Config;
use crate::events::Events;
use crate::ibd::InitialDownload;
use crate::prepared::Prepared;
use crate::tree::BlockTree;
use crate::types::Tip;

/// A block that was just connected.
#[derive(Clone)]
pub struct ConnectedBlock {
    height: u32,
    prepared: Arc<Prepared>,
    undo: Arc<Vec<u8>>,
}

impl ConnectedBlock {
    pub fn block(&self) -> &Block {
        &self.prepared.block
    }

    pub fn txids(&self) -> &[Txid] {
        &self.prepared.txids
    }

    /// The spent coins, encoded as undo data.
    pub fn undo(&self) -> &[u8] {
        &self.undo
    }

    fn bytes(&self) -> usize {
        self.prepared.block.bytes().len() + 32 * self.prepared.txids.len() + self.undo.len()
    }
}

/// A block with valid work and position, whose transactions are being validated.
#[derive(Clone)]
pub struct FreshBlock {
    height: u32,
    prepared: Arc<Prepared>,
}

impl FreshBlock {
    pub(crate) fn new(height: u32, prepared: Arc<Prepared>) -> Self {
        Self { height, prepared }
    }

    pub fn hash(&self) -> &BlockHash {
        &self.prepared.hash
    }

    pub fn height(&self) -> u32 {
        self.height
    }

    pub fn block(&self) -> &Block {
        &self.prepared.block
    }

    pub fn txid(&self, index: usize) -> Txid {
        self.prepared.txids[index]
    }

    pub fn wtxid(&self, index: usize) -> Wtxid {
        self.prepared.wtxid(index)
    }
}

#[derive(Default)]
pub(crate) struct Signal {
    /// Number of the last change of the mempool.
    sequence: AtomicU64,
    lock: Mutex<()>,
    changed: Condvar,
}

impl Signal {
    /// Records the number of a change of the mempool.
    pub(crate) fn mempool_changed(&self, sequence: u64) {
        self.sequence.store(sequence, Ordering::Release);
        self.wake();
    }

    fn wake(&self) {
        drop(self.lock.lock());
        self.changed.notify_all();
    }
}

/// Connected blocks that are not taken yet.
#[derive(Default)]
pub(crate) struct Handover {
    blocks: VecDeque<ConnectedBlock>,
    bytes: usize,
}

impl Handover {
    fn push(&mut self, block: ConnectedBlock) {
        let bytes = self.bytes + block.bytes();
        // Blocks that do not fit are read from the archive; the first ones are needed first.
        if self.blocks.is_empty() || bytes <= HANDOVER_BYTES_MAX {
            self.bytes = bytes;
            self.blocks.push_back(block);
        }
    }

    /// Takes the block connected last after `parent`, and drops those at its height and below: the follower has passed them, or
    /// they are stale.
    fn take(&mut self, parent: &BlockHash) -> Option<ConnectedBlock> {
        let is_next = |block: &ConnectedBlock| block.block().header().prev_block == *parent;
        let at = self.blocks.iter().rposition(is_next)?;
        let taken = self.blocks.remove(at)?;
        self.blocks.retain(|block| block.height > taken.height);
        self.bytes = self.blocks.iter().map(ConnectedBlock::bytes).sum();
        Some(taken)
    }
}

/// Kinds of warnings for the operator, in display order (Core `kernel/warning.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Warning {
    /// Miners signal rules unknown to this program.
    UnknownRules,
    /// An invalid branch has much more work.
    InvalidBranch,
}

struct Announced {
    tip: Tip,
    header_height: u32,
    fresh: Option<FreshBlock>,
    /// True while a block is being relayed.
    is_passing_on: bool,
    warnings: BTreeMap<Warning, String>,
    alerts: VecDeque<String>,
    is_closing: bool,
}

/// The state for waiting threads and followers.
pub(crate) struct Notifier {
    announced: Mutex<Announced>,
    changed: Condvar,
    download: InitialDownload,
    signal: Arc<Signal>,
    /// `None` if events are off.
    events: Option<Arc<Events>>,
    /// One per follower.
    handovers: Vec<Mutex<Handover>>,
}

impl Notifier {
    /// Announcements of a chain with this tip.
    pub(crate) fn new(tip: Tip, config: &Config) -> Self {
        Self {
            announced: Mutex::new(Announced {
                tip,
                header_height: tip.height,
                fresh: None,
                is_passing_on: false,
                warnings: BTreeMap::new(),
                alerts: VecDeque::new(),
                is_closing: false,
            }),
            changed: Condvar::new(),
            download: InitialDownload::new(config),
            signal: Arc::default(),
            events: config.has_events.then(Arc::default),
            handovers: (0..usize::from(config.is_followed) + config.block_followers)
                .map(|_| Mutex::default())
                .collect(),
        }
    }

    pub(crate) fn events(&self) -> Option<&Arc<Events>> {
        self.events.as_ref()
    }

    /// The signal of the mempool's journal to followers.
    pub(crate) fn signal(&self) -> &Arc<Signal> {
        &self.signal
    }

    /// Publishes the tip to waiting threads.
    pub(crate) fn announce(&self, tree: &BlockTree) {
        let header_height = tree.get(tree.best_header()).height;
        let tip = tree.tip_facts();
        self.download.goes_on(&tip);
        let mut announced = self.announced.lock();
        (announced.tip, announced.header_height) = (tip, header_height);
        drop(announced);
        self.wake();
    }

    /// Wakes all waiting threads at the end.
    pub(crate) fn close(&self) {
        self.announced.lock().is_closing = true;
        if let Some(events) = &self.events {
            events.close();
        }
        self.wake();
    }

    fn wake(&self) {
        self.changed.notify_all();
        self.signal.wake();
    }

    pub(crate) fn tip(&self) -> Tip {
        self.announced.lock().tip
    }

    pub(crate) fn header_height(&self) -> u32 {
        self.announced.lock().header_height
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.announced.lock().is_closing
    }

    pub(crate) fn download(&self) -> &InitialDownload {
        &self.download
    }

    /// Waits until `is_reached` accepts the tip, the timeout expires, or the engine closes; returns the current tip.
    pub(crate) fn wait_for(
        &self,
        timeout: Option<Duration>,
        is_reached: impl Fn(&Tip) -> bool,
    ) -> Tip {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut announced = self.announced.lock();
        while !is_reached(&announced.tip) && !announced.is_closing {
            match deadline {
                None => self.changed.wait(&mut announced),
                Some(deadline) => {
                    if self.changed.wait_until(&mut announced, deadline).timed_out() {
                        break;
                    }
                }
            }
        }
        announced.tip
    }

    pub(crate) fn show_fresh(&self, block: FreshBlock) {
        self.announced.lock().fresh = Some(block);
        self.changed.notify_all();
    }

    /// Waits for the next fresh block and passes it to `pass_on`; `false` when the engine closes.
    pub(crate) fn pass_fresh(&self, pass_on: impl FnOnce(FreshBlock)) -> bool {
        let mut announced = self.announced.lock();
        let fresh = loop {
            if announced.is_closing {
                return false;
            }
            if let Some(fresh) = announced.fresh.take() {
                break fresh;
            }
            self.changed.wait(&mut announced);
        };
        announced.is_passing_on = true;
        drop(announced);
        pass_on(fresh);
        self.announced.lock().is_passing_on = false;
        self.changed.notify_all();
        true
    }

    /// Waits until every fresh block so far is relayed.
    pub(crate) fn wait_for_fresh(&self) {
        let mut announced = self.announced.lock();
        while (announced.fresh.is_some() || announced.is_passing_on) && !announced.is_closing {
            self.changed.wait(&mut announced);
        }
    }

    /// Sets a warning, unless it is set already; returns true if it is new.
    pub(crate) fn warn(&self, warning: Warning, text: String) -> bool {
        let mut announced = self.announced.lock();
        if announced.warnings.contains_key(&warning) {
            return false;
        }
        announced.warnings.insert(warning, text.clone());
        // There may be no reader.
        if announced.alerts.len() < ALERTS_MAX {
            announced.alerts.push_back(text);
        }
        self.changed.notify_all();
        true
    }

    pub(crate) fn end_warning(&self, warning: Warning) {
        self.announced.lock().warnings.remove(&warning);
    }

    pub(crate) fn warnings(&self) -> Vec<String> {
        self.announced.lock().warnings.values().cloned().collect()
    }

    /// Waits for the next new warning; `None` when the engine closes.
    pub(crate) fn next_alert(&self) -> Option<String> {
        let mut announced = self.announced.lock();
        loop {
            if let Some(alert) = announced.alerts.pop_front() {
                return Some(alert);
            }
            if announced.is_closing {
                return None;
            }
            self.changed.wait(&mut announced);
        }
    }

    /// The tip, and the number of the last change of the mempool.
    pub(crate) fn moment(&self) -> (Tip, u64) {
        (self.tip(), self.signal.sequence.load(Ordering::Acquire))
    }

    /// Waits until tip or mempool differ from `seen`, the timeout expires, or the engine closes.
    pub(crate) fn wait_for_news(&self, seen: (BlockHash, u64), timeout: Duration) -> (Tip, u64) {
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

    /// Keeps a block for every follower.
    pub(crate) fn hand_over(&self, height: u32, prepared: &Arc<Prepared>, undo: Vec<u8>) {
        let block = ConnectedBlock { height, prepared: Arc::clone(prepared), undo: Arc::new(undo) };
        for handover in &self.handovers {
            handover.lock().push(block.clone());
        }
    }

    /// The block connected on top of `parent`, if it is still in memory for this follower.
    pub(crate) fn take_connected(
        &self,
        follower: usize,
        parent: &BlockHash,
    ) -> Option<ConnectedBlock> {
        self.handovers.get(follower)?.lock().take(parent)
    }
}

/// Limit of queued new warnings.
const ALERTS_MAX: usize = 16;

/// Limit of the bytes of connected blocks in memory; a single block may exceed it.
const HANDOVER_BYTES_MAX: usize = 128 << 20;

#[cfg(test)]
mod tests {
    use assay_consensus::params::ChainParams;

    use super::*;

    /// A block after `parent`; no rule is checked here.
    fn block(height: u32, parent: BlockHash, nonce: u8) -> ConnectedBlock {
        let params = ChainParams::by_name("regtest").unwrap();
        let mut raw = params.genesis_block();
        raw[4..36].copy_from_slice(&parent.0);
        raw[76] = nonce;
        let block = Block::parse(raw, params.encoding).unwrap();
        let hash = block.hash();
        let prepared = Arc::new(Prepared::new(block, hash));
        ConnectedBlock { height, prepared, undo: Arc::default() }
    }

    #[test]
    fn of_two_branches_a_follower_takes_the_one_connected_last() {
        let fork = BlockHash([7; 32]);
        let left = block(10, fork, 1);
        let left_tip = block(11, left.block().hash(), 2);
        let first = block(10, fork, 3);
        let second = block(11, first.block().hash(), 4);
        let third = block(12, second.block().hash(), 5);
        let mut handover = Handover::default();
        for block in [&left, &left_tip, &first, &second, &third] {
            handover.push(block.clone());
        }
        let mut at = fork;
        for expected in [&first, &second, &third] {
            let taken = handover.take(&at).expect("it waits");
            at = taken.block().hash();
            assert_eq!(at, expected.block().hash());
        }
        assert!(handover.take(&at).is_none() && handover.blocks.is_empty());
        assert_eq!(handover.bytes, 0);
    }
}
