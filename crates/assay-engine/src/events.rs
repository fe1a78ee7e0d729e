//! Every change of chain and mempool in order, for notifications (Core `validationinterface.h`).
//!
//! Events are queued under the state lock and taken later: the engine never waits here. If they are not taken for long, the queue
//! is full, and further events are lost, which the reader receives as an event.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use assay_wire::{Block, BlockHash, Transaction, Txid};
use parking_lot::{Condvar, Mutex};

use crate::prepared::Prepared;

#[derive(Clone)]
pub enum Event {
    /// A transaction entered the mempool.
    Added {
        tx: Arc<Transaction>,
        txid: Txid,
        /// Number of this change of the mempool, from 1.
        sequence: u64,
    },
    /// A transaction left the mempool, except by confirmation in a block.
    Removed {
        txid: Txid,
        /// Number of this change of the mempool.
        sequence: u64,
    },
    /// A block was connected to the active chain.
    Connected(EventBlock),
    /// A block was disconnected from the active chain.
    Disconnected(EventBlock),
    /// The active chain has a new tip, outside of IBD.
    Tip(BlockHash),
    Lost,
}

#[derive(Clone)]
pub struct EventBlock(Arc<Prepared>);

impl EventBlock {
    pub fn hash(&self) -> &BlockHash {
        &self.0.hash
    }

    pub fn block(&self) -> &Block {
        &self.0.block
    }

    pub fn txids(&self) -> &[Txid] {
        &self.0.txids
    }
}

impl Event {
    fn bytes(&self) -> usize {
        EVENT_BYTES
            + match self {
                Self::Added { tx, .. } => tx.bytes().len(),
                Self::Connected(block) | Self::Disconnected(block) => block.0.memory_bytes(),
                Self::Removed { .. } | Self::Tip(_) | Self::Lost => 0,
            }
    }
}

#[derive(Default)]
pub(crate) struct Events {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    events: VecDeque<Event>,
    bytes: usize,
    /// Connected blocks, held until the mempool is updated, as in Core, and their bytes: a long reorg may have many.
    held: Vec<Event>,
    held_bytes: usize,
    is_closed: bool,
}

impl Queue {
    fn push(&mut self, event: Event) {
        let bytes = event.bytes();
        let is_full = self.bytes + bytes > QUEUE_BYTES_MAX && !self.events.is_empty();
        if is_full || matches!(event, Event::Lost) {
            if !matches!(self.events.back(), Some(Event::Lost)) {
                self.events.push_back(Event::Lost);
            }
            return;
        }
        self.bytes += bytes;
        self.events.push_back(event);
    }

    /// Holds a connected block, as far as there is room.
    fn hold(&mut self, event: Event) {
        let bytes = event.bytes();
        if self.bytes + self.held_bytes + bytes > QUEUE_BYTES_MAX && !self.held.is_empty() {
            if !matches!(self.held.last(), Some(Event::Lost)) {
                self.held.push(Event::Lost);
            }
            return;
        }
        self.held_bytes += bytes;
        self.held.push(event);
    }

    fn show_held(&mut self) {
        self.held_bytes = 0;
        for event in std::mem::take(&mut self.held) {
            self.push(event);
        }
    }
}

impl Events {
    /// Queues a change of the mempool.
    pub(crate) fn push(&self, event: Event) {
        self.queue.lock().push(event);
        self.changed.notify_all();
    }

    /// Holds a connected block until [`Events::settled`].
    pub(crate) fn connected(&self, block: &Arc<Prepared>) {
        self.queue.lock().hold(Event::Connected(EventBlock(Arc::clone(block))));
    }

    pub(crate) fn disconnected(&self, block: &Arc<Prepared>) {
        let mut queue = self.queue.lock();
        queue.show_held();
        queue.push(Event::Disconnected(EventBlock(Arc::clone(block))));
        self.changed.notify_all();
    }

    /// Queues the held blocks after the update of the mempool, and the new tip, if any.
    pub(crate) fn settled(&self, tip: Option<BlockHash>) {
        let mut queue = self.queue.lock();
        let has_connected = !queue.held.is_empty();
        queue.show_held();
        if let Some(hash) = tip.filter(|_| has_connected) {
            queue.push(Event::Tip(hash));
        }
        self.changed.notify_all();
    }

    /// No more events follow.
    pub(crate) fn close(&self) {
        self.queue.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// Events since the last call; waits up to `timeout` for the first. `None` once the engine has closed and all events were
    /// taken.
    pub(crate) fn take(&self, timeout: Duration) -> Option<Vec<Event>> {
        let deadline = Instant::now() + timeout;
        let mut queue = self.queue.lock();
        while queue.events.is_empty() && !queue.is_closed {
            if self.changed.wait_until(&mut queue, deadline).timed_out() {
                break;
            }
        }
        if queue.is_closed && queue.events.is_empty() {
            return None;
        }
        queue.bytes = 0;
        Some(std::mem::take(&mut queue.events).into())
    }
}

/// Estimated bytes of an event without its block or transaction.
const EVENT_BYTES: usize = 128;
/// Limit of the bytes of queued events; a single one may exceed it.
const QUEUE_BYTES_MAX: usize = 128 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn removed(sequence: u64) -> Event {
        Event::Removed { txid: Txid::ZERO, sequence }
    }

    #[test]
    fn connected_blocks_that_are_held_have_bounds_as_well() {
        let params = assay_consensus::params::ChainParams::by_name("regtest").unwrap();
        let block = Block::parse(params.genesis_block(), params.encoding).unwrap();
        let hash = block.hash();
        let prepared = Arc::new(Prepared::new(block, hash));
        let bytes = Event::Connected(EventBlock(Arc::clone(&prepared))).bytes();
        let events = Events::default();
        let room = QUEUE_BYTES_MAX / bytes;
        for _ in 0..room + 3 {
            events.connected(&prepared);
        }
        assert_eq!(events.queue.lock().held.len(), room + 1);
        events.settled(None);
        let taken = events.take(Duration::ZERO).unwrap();
        assert!(matches!(taken[room - 1..], [Event::Connected(_), Event::Lost]));
        events.connected(&prepared);
        events.settled(None);
        assert!(matches!(events.take(Duration::ZERO).unwrap()[..], [Event::Connected(_)]));
    }

    #[test]
    fn a_full_queue_reports_lost_events_once() {
        let events = Events::default();
        let count = QUEUE_BYTES_MAX / EVENT_BYTES;
        for sequence in 0..count as u64 + 5 {
            events.push(removed(sequence));
        }
        let taken = events.take(Duration::ZERO).unwrap();
        assert_eq!(taken.len(), count + 1);
        assert!(matches!(taken.last(), Some(Event::Lost)));
        events.push(removed(7));
        let taken = events.take(Duration::ZERO).unwrap();
        assert!(matches!(taken[..], [Event::Removed { sequence: 7, .. }]));
        assert_eq!(events.take(Duration::ZERO).unwrap().len(), 0);
        events.close();
        assert!(events.take(Duration::MAX.min(Duration::from_secs(9))).is_none());
    }
}
