//! Queue of pending responses and announcements for one peer.
//!
//! The reader thread enqueues requests, the writer thread dequeues them in order. The reader blocks while the
//! outbox is full: a peer that requests faster than it reads is throttled by its own connection, and memory is
//! bounded. Own messages precede all requests: a pong follows all responses to earlier messages.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use assay_wire::BlockHash;
use assay_wire::p2p::{
    BlockTxsRequest, Command, FilterKind, FilterRange, FrameHeader, INVENTORY_MAX, Inventory,
    Message,
};

use super::bloom::FilterChange;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// Send our `version`.
    Greet,
    /// After the peer's `version`: send feature messages and `verack`.
    Agree {
        version: i32,
    },
    Ready,
    Pong(u64),
    Headers {
        locator: Vec<BlockHash>,
        stop: BlockHash,
    },
    Hashes {
        locator: Vec<BlockHash>,
        stop: BlockHash,
    },
    BlockTxs(BlockTxsRequest),
    Filter(FilterChange),
    Filters(FilterRange),
    FilterHashes(FilterRange),
    FilterCheckpoints {
        kind: FilterKind,
        stop: BlockHash,
    },
    Data(Vec<Inventory>),
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Task {
    /// Rest of a message that another thread has partially written.
    Rest(Vec<u8>),
    Request(Request),
    /// Own message: command, and payload behind room for the transport header.
    Own(Command, Vec<u8>),
    /// One inventory item; true for the last of its message.
    Data(Inventory, bool),
    /// A block that extends the tip has arrived.
    Fresh,
    News,
    /// Timeout.
    Nothing,
    Closed,
}

#[derive(Default)]
pub(super) struct Outbox {
    pending: Mutex<Pending>,
    changed: Condvar,
}

#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is about something else")]
struct Pending {
    /// Unwritten rest of another thread's message; nothing precedes it.
    rest: Vec<u8>,
    is_idle: bool,
    /// Own unframed messages, and their bytes.
    own: VecDeque<(Command, Vec<u8>)>,
    own_bytes: usize,
    /// True after `verack` was dequeued: own messages wait for it.
    has_agreed: bool,
    requests: VecDeque<Request>,
    /// Inventory items in progress.
    data: VecDeque<Inventory>,
    /// Entries of `data` and of the data in `requests`.
    entries: usize,
    fresh: bool,
    news: bool,
    closed: bool,
}

impl Pending {
    fn has_room_for(&self, request: &Request) -> bool {
        match request {
            Request::Data(entries) => {
                let is_small = self.entries + entries.len() <= INVENTORY_MAX;
                self.requests.len() < REQUESTS_MAX && (self.entries == 0 || is_small)
            }
            _ => self.requests.len() < REQUESTS_MAX,
        }
    }

    fn next(&mut self) -> Option<Task> {
        if self.closed {
            return Some(Task::Closed);
        }
        if !self.rest.is_empty() {
            return Some(Task::Rest(std::mem::take(&mut self.rest)));
        }
        if self.has_agreed
            && let Some((command, message)) = self.own.pop_front()
        {
            self.own_bytes -= message.len();
            return Some(Task::Own(command, message));
        }
        // Before the pending responses: miners depend on it.
        if self.has_agreed && std::mem::take(&mut self.fresh) {
            return Some(Task::Fresh);
        }
        if let Some(entry) = self.data.pop_front() {
            self.entries -= 1;
            return Some(Task::Data(entry, self.data.is_empty()));
        }
        while let Some(request) = self.requests.pop_front() {
            match request {
                Request::Data(entries) => self.data = entries.into(),
                other => {
                    self.has_agreed |= matches!(other, Request::Agree { .. });
                    return Some(Task::Request(other));
                }
            }
            if !self.data.is_empty() {
                return self.next();
            }
        }
        std::mem::take(&mut self.news).then_some(Task::News)
    }
}

impl Outbox {
    /// Enqueues a request; blocks while full. `false` after the connection has ended.
    pub(super) fn put(&self, request: Request) -> bool {
        let mut pending = self.lock();
        while !pending.closed && !pending.has_room_for(&request) {
            pending = self.changed.wait(pending).unwrap_or_else(PoisonError::into_inner);
        }
        if pending.closed {
            return false;
        }
        match request {
            Request::Data(entries) => {
                pending.entries += entries.len();
                pending.requests.push_back(Request::Data(entries));
            }
            other => pending.requests.push_back(other),
        }
        drop(pending);
        self.changed.notify_all();
        true
    }

    /// Enqueues an own message without blocking. Disconnects a peer that accumulates megabytes of them.
    pub(super) fn send(&self, command: Command, message: Vec<u8>) {
        let mut pending = self.lock();
        pending.own_bytes += message.len();
        pending.closed |= pending.own_bytes > OWN_BYTES_MAX;
        pending.own.push_back((command, message));
        drop(pending);
        self.changed.notify_all();
    }

    /// Signals a new tip; coalesced.
    pub(super) fn notify_tip(&self) {
        self.lock().news = true;
        self.changed.notify_all();
    }

    /// Signals a block that extends the tip; only the latest counts.
    pub(super) fn notify_fresh(&self) {
        self.lock().fresh = true;
        self.changed.notify_all();
    }

    /// Calls `write` in place of an idle writer after the handshake; it writes one message without blocking and
    /// returns the unwritten rest. Returns true if it was called.
    pub(super) fn write_now(&self, write: impl FnOnce() -> Vec<u8>) -> bool {
        // The writer needs this lock for all work.
        let mut pending = self.lock();
        let is_free = pending.is_idle && pending.has_agreed && !pending.closed;
        let has_nothing = pending.rest.is_empty()
            && pending.own.is_empty()
            && pending.requests.is_empty()
            && pending.data.is_empty();
        if !(is_free && has_nothing) {
            return false;
        }
        pending.rest = write();
        let has_rest = !pending.rest.is_empty();
        drop(pending);
        if has_rest {
            self.changed.notify_all();
        }
        true
    }

    /// Ends the connection; later calls fail.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Dequeues the next task; waits up to `patience`.
    pub(super) fn take(&self, patience: Duration) -> Task {
        let deadline = Instant::now() + patience;
        let mut pending = self.lock();
        loop {
            if let Some(task) = pending.next() {
                drop(pending);
                self.changed.notify_all();
                return task;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Task::Nothing;
            }
            pending.is_idle = true;
            let waited = self.changed.wait_timeout(pending, left);
            (pending, _) = waited.unwrap_or_else(PoisonError::into_inner);
            pending.is_idle = false;
        }
    }

    // No panic occurs between dependent changes.
    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Encodes a message behind [`ROOM`].
pub(super) fn with_room(message: &Message<'_>) -> Vec<u8> {
    let mut buffer = vec![0; ROOM];
    message.encode(&mut buffer);
    buffer
}

/// Room before a payload for the transport header.
pub(super) const ROOM: usize = FrameHeader::SIZE;
/// Queue limit; a data message counts as one.
const REQUESTS_MAX: usize = 16;
const OWN_BYTES_MAX: usize = 8 << 20;

#[cfg(test)]
mod tests {
    use std::thread;

    use assay_wire::p2p::InventoryKind;

    use super::*;

    fn entry(number: u8) -> Inventory {
        Inventory { kind: InventoryKind::BLOCK, hash: [number; 32] }
    }

    #[test]
    fn own_messages_precede_and_tips_follow_requests() {
        let outbox = Outbox::default();
        outbox.notify_tip();
        outbox.notify_tip();
        assert!(outbox.put(Request::Data(vec![entry(1), entry(2)])));
        assert!(outbox.put(Request::Data(Vec::new())));
        assert!(outbox.put(Request::Greet));
        let now = Duration::ZERO;
        assert_eq!(outbox.take(now), Task::Data(entry(1), false));
        assert!(outbox.put(Request::Pong(7)));
        outbox.lock().has_agreed = true;
        outbox.send(Command::new("x"), vec![1]);
        assert_eq!(outbox.take(now), Task::Own(Command::new("x"), vec![1]));
        assert_eq!(outbox.take(now), Task::Data(entry(2), true));
        assert_eq!(outbox.take(now), Task::Request(Request::Greet));
        assert_eq!(outbox.take(now), Task::Request(Request::Pong(7)));
        assert_eq!(outbox.take(now), Task::News);
        assert_eq!(outbox.take(now), Task::Nothing);
        outbox.close();
        assert_eq!(outbox.take(now), Task::Closed);
        assert!(!outbox.put(Request::Greet));
    }

    #[test]
    fn write_now_requires_an_idle_writer() {
        let outbox = Outbox::default();
        outbox.lock().has_agreed = true;
        // The writer is busy.
        assert!(!outbox.write_now(|| unreachable!()));
        thread::scope(|scope| {
            let writer = scope.spawn(|| outbox.take(Duration::from_mins(1)));
            while !outbox.lock().is_idle {
                thread::yield_now();
            }
            assert!(outbox.write_now(Vec::new));
            outbox.lock().has_agreed = false;
            assert!(!outbox.write_now(|| unreachable!()));
            outbox.lock().has_agreed = true;
            assert!(outbox.write_now(|| vec![7, 8]));
            outbox.send(Command::new("x"), vec![1]);
            // Nothing precedes the rest of a message.
            assert_eq!(writer.join().expect("no panic"), Task::Rest(vec![7, 8]));
        });
        assert!(!outbox.write_now(|| unreachable!()));
        assert_eq!(outbox.take(Duration::ZERO), Task::Own(Command::new("x"), vec![1]));
        outbox.close();
        assert!(!outbox.write_now(|| unreachable!()));
    }

    #[test]
    fn full_outbox_blocks_the_reader() {
        let outbox = Outbox::default();
        assert!(outbox.put(Request::Data(vec![entry(0); INVENTORY_MAX])));
        thread::scope(|scope| {
            let second = scope.spawn(|| outbox.put(Request::Data(vec![entry(1)])));
            for left in (0..INVENTORY_MAX).rev() {
                assert_eq!(outbox.take(Duration::ZERO), Task::Data(entry(0), left == 0));
            }
            assert!(second.join().expect("no panic"));
            let third = scope.spawn(|| outbox.put(Request::Data(vec![entry(2); INVENTORY_MAX])));
            outbox.close();
            let _ = third.join().expect("closing wakes");
        });
    }
}
