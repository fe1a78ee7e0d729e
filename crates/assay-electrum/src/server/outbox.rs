//! What waits to be sent to a client. Whoever puts something there never waits.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use assay_store::defect::{Point, point};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::accounts::Account;
use super::room::{Room, Victim};

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
    /// Too much waits for all clients together, and most of it for the address of this one.
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

/// The queue of one client.
#[derive(Debug)]
pub(super) struct Outbox {
    /// Number of the client.
    client: u64,
    account: Arc<Account>,
    state: Mutex<State>,
    /// Bytes that wait, for others to see.
    waiting: Arc<AtomicUsize>,
    /// Something to send, or the end.
    filled: Notify,
    /// Something was sent, or the end.
    drained: Notify,
    /// The end.
    over: Notify,
    max: usize,
    room: Arc<Room>,
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
    pub(super) fn new(
        client: u64,
        account: Arc<Account>,
        max: usize,
        room: Arc<Room>,
    ) -> Arc<Self> {
        Arc::new_cyclic(|own: &Weak<Self>| {
            let waiting = Arc::default();
            room.enter(client, &account, &waiting, Weak::clone(own));
            Self {
                client,
                account,
                state: Mutex::default(),
                waiting,
                filled: Notify::new(),
                drained: Notify::new(),
                over: Notify::new(),
                max,
                room,
            }
        })
    }

    /// Queues an answer.
    pub(super) fn answer(&self, bytes: Vec<u8>) {
        self.put(bytes.len(), |state| state.queue.push_back(Chunk::Own(bytes)));
    }

    /// Queues a notification, behind the answer that is on its way if there is one.
    pub(super) fn notify(&self, bytes: Arc<[u8]>) {
        point(Point::ElectrumNotify);
        self.put(bytes.len(), |state| {
            let chunk = Chunk::Shared(bytes);
            if state.holding { state.held.push(chunk) } else { state.queue.push_back(chunk) }
        });
    }

    /// Queues `bytes` more with `push`, or ends the connection of whoever has most waiting.
    fn put(&self, bytes: usize, push: impl FnOnce(&mut State)) {
        loop {
            {
                let mut state = self.state.lock();
                match self.admit(&mut state, bytes) {
                    Some(true) => {
                        push(&mut state);
                        self.filled.notify_one();
                        return;
                    }
                    Some(false) => return,
                    None => {}
                }
            }
            // Without a lock: never two outboxes at once.
            match self.room.victim(self.client, &self.account, bytes) {
                Victim::Other(other) => other.evict(),
                Victim::Asker => return self.evict(),
            }
        }
    }

    /// Ends the connection without what waits for it, which others need the room of. What has been taken to be sent goes with the
    /// connection's task.
    fn evict(&self) {
        let mut state = self.state.lock();
        state.ending.get_or_insert(Ending::OutputFull);
        let bytes = std::mem::take(&mut state.bytes);
        let chunks = (std::mem::take(&mut state.queue), std::mem::take(&mut state.held));
        self.forget(bytes);
        drop(state);
        self.wake();
        drop(chunks);
    }

    /// Gives room back.
    fn forget(&self, bytes: usize) {
        self.waiting.fetch_sub(bytes, Ordering::Relaxed);
        self.account.remove_output(bytes);
        self.room.remove(bytes);
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
        // An eviction may have given it back already.
        let bytes = bytes.min(state.bytes);
        state.bytes -= bytes;
        self.forget(bytes);
        drop(state);
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

    /// Takes `bytes` more, or ends the connection of a client that reads too slowly; says which. `None` where there is no room.
    fn admit(&self, state: &mut State, bytes: usize) -> Option<bool> {
        if state.ending.is_some() {
            return Some(false);
        }
        if state.bytes + bytes > self.max {
            state.ending = Some(Ending::SlowReader);
            self.wake();
            return Some(false);
        }
        if !self.room.add(bytes) && state.bytes + bytes > SMALL {
            self.room.remove(bytes);
            return None;
        }
        state.bytes += bytes;
        self.waiting.fetch_add(bytes, Ordering::Relaxed);
        self.account.add_output(bytes);
        Some(true)
    }

    fn wake(&self) {
        self.filled.notify_one();
        self.drained.notify_one();
        self.over.notify_one();
    }
}

impl Drop for Outbox {
    fn drop(&mut self) {
        let bytes = self.state.get_mut().bytes;
        self.forget(bytes);
        self.room.leave(self.client);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::server::Limits;

    fn text(outbox: &Outbox) -> String {
        let chunks = {
            let mut state = outbox.state.lock();
            state.queue.drain(..).collect::<Vec<_>>()
        };
        chunks.iter().map(|chunk| String::from_utf8_lossy(chunk.as_ref()).into_owned()).collect()
    }

    fn outbox(client: u64, account: &Arc<Account>, max: usize, room: &Arc<Room>) -> Arc<Outbox> {
        Outbox::new(client, Arc::clone(account), max, Arc::clone(room))
    }

    fn account() -> Arc<Account> {
        Arc::new(Account::new(None, &Limits::default(), Instant::now()))
    }

    #[test]
    fn notifications_wait_for_the_answer_before_them() {
        let outbox = outbox(1, &account(), 100, &Arc::new(Room::new(1000)));
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
        let room = Arc::new(Room::new(150));
        let slow = outbox(1, &account(), 100, &room);
        slow.answer(vec![0; 90]);
        slow.answer(vec![0; 11]);
        assert_eq!(slow.ending(), Some(Ending::SlowReader));
        slow.answer(vec![0; 1]);
        assert_eq!((slow.bytes(), room.bytes()), (90, 90));
        assert!(room.is_short());
        let other = outbox(2, &account(), 1 << 20, &room);
        other.answer(vec![0; SMALL]);
        assert_eq!(other.ending(), None);
        other.answer(vec![0; 61]);
        assert_eq!(other.ending(), Some(Ending::OutputFull));
        drop((slow, other));
        assert_eq!(room.bytes(), 0);
    }

    #[test]
    fn the_largest_holder_makes_room() {
        let room = Arc::new(Room::new(20 * SMALL));
        let (greedy, honest) = (account(), account());
        let all: Vec<_> = (0..6).map(|client| outbox(client, &greedy, 1 << 20, &room)).collect();
        for greedy in &all {
            greedy.answer(vec![0; 3 * SMALL]);
        }
        all[4].answer(vec![0; SMALL]);
        let mine = outbox(10, &honest, 1 << 20, &room);
        mine.answer(vec![0; 4 * SMALL]);
        assert_eq!(mine.ending(), None, "one connection has less than six of one address together");
        let endings: Vec<_> = all.iter().map(|outbox| outbox.ending()).collect();
        assert_eq!(endings[4], Some(Ending::OutputFull), "the largest of them");
        assert_eq!(endings.iter().flatten().count(), 1);
        assert_eq!((honest.output_bytes(), greedy.output_bytes()), (4 * SMALL, 15 * SMALL));
        // What its task had taken may be sent after all, and is not given back twice.
        all[4].sent(SMALL);
        assert_eq!(room.bytes(), 19 * SMALL);
        // Who wants more than all others have is the one to go.
        mine.answer(vec![0; 13 * SMALL]);
        assert_eq!(mine.ending(), Some(Ending::OutputFull));
        drop((all, mine));
        assert_eq!((room.bytes(), honest.output_bytes(), greedy.output_bytes()), (0, 0, 0));
    }
}
