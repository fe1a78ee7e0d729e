//! What waits to be sent to a client. Whoever puts something there never waits.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;

/// What a client may always have waiting: those who ask little do not pay for those who fill the room of all.
pub(super) const SMALL: usize = 16 << 10;

/// Text that is sent: an answer, or a notification that many clients get.
#[derive(Clone, Debug)]
pub(super) enum Chunk {
    Own(Vec<u8>),
    Shared(Arc<[u8]>),
}

impl AsRef<[u8]> for Chunk {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Own(bytes) => bytes,
            Self::Shared(bytes) => bytes,
        }
    }
}

/// Why a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Ending {
    /// The client left.
    Left,
    /// The server stops.
    Stopping,
    /// The client does not read what it asked for.
    SlowReader,
    /// Too much waits for all clients together, and this one wanted more.
    OutputFull,
    /// Line too long.
    Oversize,
    /// No request for too long.
    Idle,
    /// No first request.
    NoRequest,
    /// Too many refusals.
    Refused,
    /// No protocol version in common.
    Version,
    /// The TLS handshake failed.
    Handshake,
    /// No room for its request.
    InputFull,
    /// A defect of ours.
    Defect,
}

impl Ending {
    pub(super) const ALL: [Self; 12] = [
        Self::Left,
        Self::Stopping,
        Self::SlowReader,
        Self::OutputFull,
        Self::Oversize,
        Self::Idle,
        Self::NoRequest,
        Self::Refused,
        Self::Version,
        Self::Handshake,
        Self::InputFull,
        Self::Defect,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Left => "left",
            Self::Stopping => "stopping",
            Self::SlowReader => "slow-reader",
            Self::OutputFull => "output-full",
            Self::Oversize => "oversize-line",
            Self::Idle => "idle",
            Self::NoRequest => "no-request",
            Self::Refused => "too-many-refusals",
            Self::Version => "protocol-version",
            Self::Handshake => "tls-handshake",
            Self::InputFull => "input-full",
            Self::Defect => "defect",
        }
    }
}

/// Bytes that wait, all clients together.
#[derive(Debug)]
pub(super) struct Total {
    bytes: AtomicUsize,
    max: usize,
}

impl Total {
    pub(super) fn new(max: usize) -> Self {
        Self { bytes: AtomicUsize::new(0), max }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether more than half of the room is taken: time to be strict with those who do not read.
    pub(super) fn is_short(&self) -> bool {
        self.bytes() > self.max / 2
    }

    fn add(&self, bytes: usize) -> bool {
        self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes <= self.max
    }

    fn sub(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// The queue of one client.
#[derive(Debug)]
pub(super) struct Outbox {
    state: Mutex<State>,
    /// Something to send, or the end.
    filled: Notify,
    /// Something was sent, or the end.
    drained: Notify,
    /// The end.
    over: Notify,
    max: usize,
    total: Arc<Total>,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Chunk>,
    bytes: usize,
    /// Notifications that wait until the answer of a subscribing request is in the queue: an older status must not follow a newer one.
    held: Vec<Chunk>,
    holding: bool,
    ending: Option<Ending>,
}

impl Outbox {
    pub(super) fn new(max: usize, total: Arc<Total>) -> Self {
        Self {
            state: Mutex::default(),
            filled: Notify::new(),
            drained: Notify::new(),
            over: Notify::new(),
            max,
            total,
        }
    }

    /// Queues an answer.
    pub(super) fn answer(&self, bytes: Vec<u8>) {
        let mut state = self.state.lock();
        if self.admit(&mut state, bytes.len()) {
            state.queue.push_back(Chunk::Own(bytes));
            self.filled.notify_one();
        }
    }

    /// Queues a notification, behind the answer that is on its way if there is one.
    pub(super) fn notify(&self, bytes: Arc<[u8]>) {
        let mut state = self.state.lock();
        if self.admit(&mut state, bytes.len()) {
            if state.holding {
                state.held.push(Chunk::Shared(bytes));
            } else {
                state.queue.push_back(Chunk::Shared(bytes));
                self.filled.notify_one();
            }
        }
    }

    /// Holds notifications back until [`Outbox::release`].
    pub(super) fn hold(&self) {
        self.state.lock().holding = true;
    }

    /// Lets notifications go again.
    pub(super) fn release(&self) {
        let mut state = self.state.lock();
        state.holding = false;
        if !state.held.is_empty() {
            let held = std::mem::take(&mut state.held);
            state.queue.extend(held);
            self.filled.notify_one();
        }
    }

    /// Ends the connection when what is in the queue has been sent; the first reason stands.
    pub(super) fn close(&self, ending: Ending) {
        let mut state = self.state.lock();
        state.ending.get_or_insert(ending);
        drop(state);
        self.wake();
    }

    pub(super) fn ending(&self) -> Option<Ending> {
        self.state.lock().ending
    }

    /// Waits until the connection is to end. For one task alone.
    pub(super) async fn over(&self) -> Ending {
        loop {
            if let Some(ending) = self.ending() {
                return ending;
            }
            self.over.notified().await;
        }
    }

    /// Bytes that wait.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.state.lock().bytes
    }

    /// Everything that waits; `None` when nothing ever will.
    pub(super) async fn take(&self) -> Option<Vec<Chunk>> {
        loop {
            {
                let mut state = self.state.lock();
                if !state.queue.is_empty() {
                    return Some(state.queue.drain(..).collect());
                }
                if state.ending.is_some() {
                    return None;
                }
            }
            self.filled.notified().await;
        }
    }

    /// Says that bytes which were taken have left.
    pub(super) fn sent(&self, bytes: usize) {
        let mut state = self.state.lock();
        state.bytes = state.bytes.saturating_sub(bytes);
        drop(state);
        self.total.sub(bytes);
        self.drained.notify_one();
    }

    /// Waits until less than `bytes` wait, or the connection ends.
    pub(super) async fn below(&self, bytes: usize) {
        loop {
            {
                let state = self.state.lock();
                if state.bytes < bytes || state.ending.is_some() {
                    return;
                }
            }
            self.drained.notified().await;
        }
    }

    /// Takes `bytes` more, or ends the connection of a client that reads too slowly.
    fn admit(&self, state: &mut State, bytes: usize) -> bool {
        if state.ending.is_some() {
            return false;
        }
        if state.bytes + bytes > self.max {
            state.ending = Some(Ending::SlowReader);
        } else if self.total.add(bytes) || state.bytes + bytes <= SMALL {
            state.bytes += bytes;
            return true;
        } else {
            self.total.sub(bytes);
            state.ending = Some(Ending::OutputFull);
        }
        self.wake();
        false
    }

    fn wake(&self) {
        self.filled.notify_one();
        self.drained.notify_one();
        self.over.notify_one();
    }
}

impl Drop for Outbox {
    fn drop(&mut self) {
        self.total.sub(self.state.get_mut().bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(outbox: &Outbox) -> String {
        let chunks = {
            let mut state = outbox.state.lock();
            state.queue.drain(..).collect::<Vec<_>>()
        };
        chunks.iter().map(|chunk| String::from_utf8_lossy(chunk.as_ref()).into_owned()).collect()
    }

    #[test]
    fn notifications_wait_for_the_answer_before_them() {
        let outbox = Outbox::new(100, Arc::new(Total::new(1000)));
        outbox.notify(Arc::from(*b"1"));
        outbox.hold();
        outbox.notify(Arc::from(*b"3"));
        outbox.answer(b"2".to_vec());
        outbox.release();
        outbox.notify(Arc::from(*b"4"));
        assert_eq!(text(&outbox), "1234");
    }

    #[test]
    fn who_does_not_read_is_disconnected() {
        let total = Arc::new(Total::new(150));
        let slow = Outbox::new(100, Arc::clone(&total));
        slow.answer(vec![0; 90]);
        slow.answer(vec![0; 11]);
        assert_eq!(slow.ending(), Some(Ending::SlowReader));
        slow.answer(vec![0; 1]);
        assert_eq!((slow.bytes(), total.bytes()), (90, 90));
        assert!(total.is_short());
        let other = Outbox::new(1 << 20, Arc::clone(&total));
        other.answer(vec![0; SMALL]);
        assert_eq!(other.ending(), None);
        other.answer(vec![0; 61]);
        assert_eq!(other.ending(), Some(Ending::OutputFull));
        drop((slow, other));
        assert_eq!(total.bytes(), 0);
    }
}
