//! What a peer has asked for and not been given yet, and what this node has to say of its own accord.
//!
//! The thread that reads from the peer puts requests in, the one that writes takes them out, in this order. When the outbox is full
//! the reader waits, so that a peer which asks faster than it reads is held up by its own connection, and what waits in memory is
//! bounded. Messages of our own go before all requests: a pong says that whatever follows from earlier messages has been sent.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use assay_wire::BlockHash;
use assay_wire::p2p::{
    BlockTxsRequest, Command, FilterKind, FilterRange, INVENTORY_MAX, Inventory,
};

use super::bloom::FilterChange;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// Introduce ourselves.
    Greet,
    /// The peer has introduced itself: say what we understand, and that we agree.
    Agree {
        /// What it speaks.
        version: i32,
    },
    /// The handshake is over.
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

/// What the writer does next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Task {
    /// The end of a message that another thread has begun to write.
    Rest(Vec<u8>),
    /// One of the requests, other than data.
    Request(Request),
    /// A message of our own: its payload, behind room for the transport's part.
    Own(Command, Vec<u8>),
    /// One thing by hash, and whether it is the last of its message.
    Data(Inventory, bool),
    /// A block has come that builds on the tip.
    Fresh,
    /// The tip has moved.
    News,
    /// Nothing has happened for the time given.
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
    /// What another thread could not write of a message; nothing goes before it.
    rest: Vec<u8>,
    /// Whether the writer waits for something to do.
    is_idle: bool,
    /// Messages of our own, not framed yet, and their bytes.
    own: VecDeque<(Command, Vec<u8>)>,
    own_bytes: usize,
    /// Whether the handshake's last message has been given out: nothing of our own goes before it.
    has_agreed: bool,
    requests: VecDeque<Request>,
    /// What is being given at the moment.
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
        // Before whatever the peer waits for: who mines waits for this.
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
    /// Puts a request in; waits for room. `false` when the connection is over.
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

    /// Puts a message of our own in; never waits. A peer that lets megabytes of them pile up is left.
    pub(super) fn send(&self, command: Command, message: Vec<u8>) {
        let mut pending = self.lock();
        pending.own_bytes += message.len();
        pending.closed |= pending.own_bytes > OWN_BYTES_MAX;
        pending.own.push_back((command, message));
        drop(pending);
        self.changed.notify_all();
    }

    /// Tells of a new tip; several make one task.
    pub(super) fn tell_news(&self) {
        self.lock().news = true;
        self.changed.notify_all();
    }

    /// Tells of a block that builds on the tip; of several the latest counts.
    pub(super) fn tell_fresh(&self) {
        self.lock().fresh = true;
        self.changed.notify_all();
    }

    /// Calls `write` in place of the writer, if that one has nothing to do after the handshake; it writes one message without
    /// waiting and gives what is left of it. Gives whether it was called.
    pub(super) fn write_now(&self, write: impl FnOnce() -> Vec<u8>) -> bool {
        // The writer has to get this lock before it does anything.
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

    /// Ends the connection: nothing more goes in or comes out.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Takes the next task out; waits for one until `patience` is over.
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

    // Nothing panics between two changes that belong together.
    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Requests that wait at most, a message of data counting as one.
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
    fn own_messages_overtake_and_news_come_last() {
        let outbox = Outbox::default();
        outbox.tell_news();
        outbox.tell_news();
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
    fn another_thread_writes_only_where_the_writer_waits() {
        let outbox = Outbox::default();
        outbox.lock().has_agreed = true;
        // The writer is at something.
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
            // Nothing goes before the rest of a message.
            assert_eq!(writer.join().expect("no panic"), Task::Rest(vec![7, 8]));
        });
        assert!(!outbox.write_now(|| unreachable!()));
        assert_eq!(outbox.take(Duration::ZERO), Task::Own(Command::new("x"), vec![1]));
        outbox.close();
        assert!(!outbox.write_now(|| unreachable!()));
    }

    #[test]
    fn a_full_outbox_holds_the_reader_up() {
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
