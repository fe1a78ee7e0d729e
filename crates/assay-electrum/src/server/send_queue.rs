//! Bounded send queue of a client, to which adding never blocks, and the limit of queued output over all clients.
//!
//! At that limit the server disconnects the largest connection of the address with the most queued output, not the connection
//! that needs memory next.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use assay_store::defect::{Point, point};
use hyper::body::Bytes;
use parking_lot::Mutex;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::DisconnectReason;
use super::client_budget::Account;

/// Bytes that a client may always queue, so that light use works even when others exhaust the shared memory.
pub(super) const ALWAYS_ALLOWED: usize = 16 << 10;

pub(super) struct SendQueue {
    pub(super) client: u64,
    pub(super) account: Arc<Account>,
    state: Mutex<State>,
    /// Queued bytes, shared with [`SendMemory`].
    queued_bytes: Arc<AtomicUsize>,
    /// Signals new output or the end of the connection.
    filled: Notify,
    /// Signals sent output or the end of the connection.
    drained: Notify,
    /// Signals the end of the connection.
    closed: Notify,
    max: usize,
    memory: Arc<SendMemory>,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Bytes>,
    bytes: usize,
    /// Notifications held until the response to a subscription is queued: an older status must not follow a newer one.
    held: Vec<Bytes>,
    holding: bool,
    closed: Option<DisconnectReason>,
}

impl SendQueue {
    pub(super) fn new(
        client: u64,
        account: Arc<Account>,
        max: usize,
        memory: Arc<SendMemory>,
    ) -> Arc<Self> {
        Arc::new_cyclic(|own: &Weak<Self>| {
            let queued_bytes = Arc::default();
            memory.register(client, &account, &queued_bytes, Weak::clone(own));
            Self {
                client,
                account,
                state: Mutex::default(),
                queued_bytes,
                filled: Notify::new(),
                drained: Notify::new(),
                closed: Notify::new(),
                max,
                memory,
            }
        })
    }

    pub(super) fn respond(&self, bytes: Vec<u8>) {
        self.push(bytes.len(), |state| state.queue.push_back(bytes.into()));
    }

    /// Queues a notification, behind the response to a subscription in progress.
    pub(super) fn notify(&self, bytes: Bytes) {
        point(Point::ElectrumNotify);
        self.push(bytes.len(), |state| {
            if state.holding { state.held.push(bytes) } else { state.queue.push_back(bytes) }
        });
    }

    /// Queues `bytes` more with `push`, or evicts the largest connection of the address with the most queued.
    fn push(&self, bytes: usize, push: impl FnOnce(&mut State)) {
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
            // Without a lock: never two send queues at once.
            match self.memory.victim(self.client, &self.account, bytes) {
                Victim::Other(other) => other.evict(),
                Victim::Requester => return self.evict(),
            }
        }
    }

    /// Ends the connection and drops the queue to free its memory. Chunks already taken are dropped with the connection's task.
    fn evict(&self) {
        let mut state = self.state.lock();
        state.closed.get_or_insert(DisconnectReason::OutputFull);
        let bytes = std::mem::take(&mut state.bytes);
        let chunks = (std::mem::take(&mut state.queue), std::mem::take(&mut state.held));
        self.release_memory(bytes);
        drop(state);
        self.wake();
        drop(chunks);
    }

    fn release_memory(&self, bytes: usize) {
        self.queued_bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.account.remove_output(bytes);
        self.memory.remove(bytes);
    }

    /// Holds notifications until [`SendQueue::release_notifications`].
    pub(super) fn hold_notifications(&self) {
        self.state.lock().holding = true;
    }

    pub(super) fn release_notifications(&self) {
        let mut state = self.state.lock();
        state.holding = false;
        if !state.held.is_empty() {
            let held = std::mem::take(&mut state.held);
            state.queue.extend(held);
            self.filled.notify_one();
        }
    }

    /// Ends the connection once the queue is sent; the first reason stands.
    pub(super) fn close(&self, reason: DisconnectReason) {
        let mut state = self.state.lock();
        state.closed.get_or_insert(reason);
        drop(state);
        self.wake();
    }

    pub(super) fn closed(&self) -> Option<DisconnectReason> {
        self.state.lock().closed
    }

    /// Waits for the end of the connection. For one task only.
    pub(super) async fn wait_closed(&self) -> DisconnectReason {
        loop {
            if let Some(reason) = self.closed() {
                return reason;
            }
            self.closed.notified().await;
        }
    }

    pub(super) fn memory(&self) -> &SendMemory {
        &self.memory
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.state.lock().bytes
    }

    /// Waits for output and takes all of it; `None` once the connection must end and the queue is empty.
    pub(super) async fn take(&self) -> Option<Vec<Bytes>> {
        loop {
            {
                let mut state = self.state.lock();
                if !state.queue.is_empty() {
                    return Some(state.queue.drain(..).collect());
                }
                if state.closed.is_some() {
                    return None;
                }
            }
            self.filled.notified().await;
        }
    }

    /// Reports that taken bytes were sent.
    pub(super) fn sent(&self, bytes: usize) {
        let mut state = self.state.lock();
        // An eviction may have released their memory already.
        let bytes = bytes.min(state.bytes);
        state.bytes -= bytes;
        self.release_memory(bytes);
        drop(state);
        self.drained.notify_one();
    }

    /// Waits until fewer than `bytes` are queued, or the connection must end.
    pub(super) async fn wait_below(&self, bytes: usize) {
        loop {
            {
                let state = self.state.lock();
                if state.bytes < bytes || state.closed.is_some() {
                    return;
                }
            }
            self.drained.notified().await;
        }
    }

    /// Accounts for `bytes` more; false if that ends the connection of a slow reader, `None` above the shared limit.
    fn admit(&self, state: &mut State, bytes: usize) -> Option<bool> {
        if state.closed.is_some() {
            return Some(false);
        }
        if state.bytes + bytes > self.max {
            state.closed = Some(DisconnectReason::SlowReader);
            self.wake();
            return Some(false);
        }
        if !self.memory.add(bytes) && state.bytes + bytes > ALWAYS_ALLOWED {
            self.memory.remove(bytes);
            return None;
        }
        state.bytes += bytes;
        self.queued_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.account.add_output(bytes);
        Some(true)
    }

    fn wake(&self) {
        self.filled.notify_one();
        self.drained.notify_one();
        self.closed.notify_one();
    }
}

impl Drop for SendQueue {
    fn drop(&mut self) {
        let bytes = self.state.get_mut().bytes;
        self.release_memory(bytes);
        self.memory.unregister(self.client);
    }
}

/// Bytes queued for all clients, and their queues.
pub(super) struct SendMemory {
    bytes: AtomicUsize,
    max: usize,
    queues: Mutex<HashMap<u64, Registered>>,
}

struct Registered {
    account: Arc<Account>,
    queued_bytes: Arc<AtomicUsize>,
    queue: Weak<SendQueue>,
}

pub(super) enum Victim {
    /// The requesting client's own.
    Requester,
    Other(Arc<SendQueue>),
}

impl SendMemory {
    pub(super) fn new(max: usize) -> Self {
        Self { bytes: AtomicUsize::new(0), max, queues: Mutex::default() }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// True if more than half is used: slow readers get a shorter timeout then.
    pub(super) fn is_half_used(&self) -> bool {
        self.bytes() > self.max / 2
    }

    /// Adds `bytes`; returns true if the total is within the limit.
    pub(super) fn add(&self, bytes: usize) -> bool {
        self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes <= self.max
    }

    pub(super) fn remove(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Registers a queue as a candidate for eviction.
    pub(super) fn register(
        &self,
        client: u64,
        account: &Arc<Account>,
        queued_bytes: &Arc<AtomicUsize>,
        queue: Weak<SendQueue>,
    ) {
        let (account, queued_bytes) = (Arc::clone(account), Arc::clone(queued_bytes));
        self.queues.lock().insert(client, Registered { account, queued_bytes, queue });
    }

    pub(super) fn unregister(&self, client: u64) {
        self.queues.lock().remove(&client);
    }

    /// Selects the connection to end for `bytes` more of `requester`: the largest of the account that would have the most.
    pub(super) fn victim(&self, requester: u64, account: &Arc<Account>, bytes: usize) -> Victim {
        let mut queues = self.queues.lock();
        loop {
            let size = |(client, queue): &(&u64, &Registered)| {
                let of_account = if Arc::ptr_eq(&queue.account, account) { bytes } else { 0 };
                let own = if **client == requester { bytes } else { 0 };
                (
                    queue.account.output_bytes() + of_account,
                    queue.queued_bytes.load(Ordering::Relaxed) + own,
                )
            };
            let largest = queues.iter().max_by_key(size);
            let Some((&client, registered)) = largest.filter(|(client, _)| **client != requester)
            else {
                return Victim::Requester;
            };
            if let Some(queue) = registered.queue.upgrade() {
                return Victim::Other(queue);
            }
            // It is being dropped, and releases its memory itself.
            queues.remove(&client);
        }
    }
}

const WRITE: usize = 64 << 10;
/// Number of steps of the read timeout. While send memory is half used, only one step is granted.
const STALL_STEPS: u32 = 10;

/// Chunks taken from a client's queue but not sent yet. Writing is cancel safe.
pub(super) struct Writer {
    /// Timeout for a client to read [`WRITE`] bytes.
    stall: Duration,
    chunks: VecDeque<Bytes>,
    /// Rest of the current piece, and the length of the whole piece until it is reported.
    piece: Bytes,
    piece_bytes: usize,
}

impl Writer {
    pub(super) fn new(stall: Duration) -> Self {
        Self { stall, chunks: VecDeque::new(), piece: Bytes::new(), piece_bytes: 0 }
    }

    /// Writes until the connection must end and the queue is empty, or the client does not read.
    pub(super) async fn run<W: AsyncWrite + Unpin>(
        &mut self,
        socket: &mut W,
        queue: &SendQueue,
        count_sent: impl Fn(usize),
    ) {
        loop {
            match self.step(socket, queue).await {
                Ok(true) => {
                    let bytes = std::mem::take(&mut self.piece_bytes);
                    queue.sent(bytes);
                    count_sent(bytes);
                }
                Ok(false) => match queue.take().await {
                    Some(chunks) => self.chunks = chunks.into(),
                    None => break,
                },
                Err(reason) => return queue.close(reason),
            }
        }
        // The peer may be gone already.
        let _ = timeout(self.stall, socket.shutdown()).await;
    }

    /// Writes the next [`WRITE`] bytes; returns true if there were any.
    async fn step<W: AsyncWrite + Unpin>(
        &mut self,
        socket: &mut W,
        queue: &SendQueue,
    ) -> Result<bool, DisconnectReason> {
        if self.piece_bytes == 0 {
            self.piece = next_piece(&mut self.chunks);
            self.piece_bytes = self.piece.len();
        }
        if self.piece_bytes == 0 {
            return Ok(false);
        }
        let (stall, piece) = (self.stall / STALL_STEPS, &mut self.piece);
        for step in 0..STALL_STEPS {
            let writing = async {
                socket.write_all_buf(piece).await?;
                socket.flush().await
            };
            match timeout(stall, writing).await {
                Ok(Ok(())) => return Ok(true),
                Ok(Err(_)) => return Err(DisconnectReason::Left),
                Err(_) if step + 1 < STALL_STEPS && !queue.memory().is_half_used() => {}
                Err(_) => break,
            }
        }
        Err(DisconnectReason::SlowReader)
    }
}

/// The next output of up to [`WRITE`] bytes: small chunks are joined into one packet or TLS record.
fn next_piece(chunks: &mut VecDeque<Bytes>) -> Bytes {
    let Some(mut first) = chunks.pop_front() else { return Bytes::new() };
    if first.len() > WRITE {
        chunks.push_front(first.split_off(WRITE));
        return first;
    }
    let fits = |bytes: usize, chunk: &Bytes| bytes + chunk.len() <= WRITE;
    if !chunks.front().is_some_and(|second| fits(first.len(), second)) {
        return first;
    }
    let mut together = first.to_vec();
    while let Some(chunk) = chunks.pop_front_if(|chunk| fits(together.len(), chunk)) {
        together.extend_from_slice(&chunk);
    }
    together.into()
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::server::Limits;

    fn text(send_queue: &SendQueue) -> String {
        let chunks = {
            let mut state = send_queue.state.lock();
            state.queue.drain(..).collect::<Vec<_>>()
        };
        chunks.iter().map(|chunk| String::from_utf8_lossy(chunk).into_owned()).collect()
    }

    fn send_queue(
        client: u64,
        account: &Arc<Account>,
        max: usize,
        memory: &Arc<SendMemory>,
    ) -> Arc<SendQueue> {
        SendQueue::new(client, Arc::clone(account), max, Arc::clone(memory))
    }

    fn account() -> Arc<Account> {
        Arc::new(Account::new(None, &Limits::default(), Instant::now()))
    }

    #[test]
    fn notifications_wait_for_the_response_before_them() {
        let send_queue = send_queue(1, &account(), 100, &Arc::new(SendMemory::new(1000)));
        send_queue.notify(Bytes::from_static(b"1"));
        send_queue.hold_notifications();
        send_queue.notify(Bytes::from_static(b"3"));
        send_queue.respond(b"2".to_vec());
        send_queue.release_notifications();
        send_queue.notify(Bytes::from_static(b"4"));
        assert_eq!(text(&send_queue), "1234");
    }

    #[test]
    fn a_client_that_does_not_read_is_disconnected() {
        let memory = Arc::new(SendMemory::new(150));
        let slow = send_queue(1, &account(), 100, &memory);
        slow.respond(vec![0; 90]);
        slow.respond(vec![0; 11]);
        assert_eq!(slow.closed(), Some(DisconnectReason::SlowReader));
        slow.respond(vec![0; 1]);
        assert_eq!((slow.bytes(), memory.bytes()), (90, 90));
        assert!(memory.is_half_used());
        let other = send_queue(2, &account(), 1 << 20, &memory);
        other.respond(vec![0; ALWAYS_ALLOWED]);
        assert_eq!(other.closed(), None);
        other.respond(vec![0; 61]);
        assert_eq!(other.closed(), Some(DisconnectReason::OutputFull));
        drop((slow, other));
        assert_eq!(memory.bytes(), 0);
    }

    #[test]
    fn the_largest_connection_is_evicted() {
        let memory = Arc::new(SendMemory::new(20 * ALWAYS_ALLOWED));
        let (greedy, honest) = (account(), account());
        let all: Vec<_> =
            (0..6).map(|client| send_queue(client, &greedy, 1 << 20, &memory)).collect();
        for greedy in &all {
            greedy.respond(vec![0; 3 * ALWAYS_ALLOWED]);
        }
        all[4].respond(vec![0; ALWAYS_ALLOWED]);
        let mine = send_queue(10, &honest, 1 << 20, &memory);
        mine.respond(vec![0; 4 * ALWAYS_ALLOWED]);
        assert_eq!(mine.closed(), None, "one connection has less than six of one address together");
        let reasons: Vec<_> = all.iter().map(|send_queue| send_queue.closed()).collect();
        assert_eq!(reasons[4], Some(DisconnectReason::OutputFull), "the largest of them");
        assert_eq!(reasons.iter().flatten().count(), 1);
        assert_eq!(
            (honest.output_bytes(), greedy.output_bytes()),
            (4 * ALWAYS_ALLOWED, 15 * ALWAYS_ALLOWED)
        );
        // Chunks that its task had taken may be sent after all, and must not be released twice.
        all[4].sent(ALWAYS_ALLOWED);
        assert_eq!(memory.bytes(), 19 * ALWAYS_ALLOWED);
        // A client that would exceed all others is evicted itself.
        mine.respond(vec![0; 13 * ALWAYS_ALLOWED]);
        assert_eq!(mine.closed(), Some(DisconnectReason::OutputFull));
        drop((all, mine));
        assert_eq!((memory.bytes(), honest.output_bytes(), greedy.output_bytes()), (0, 0, 0));
    }
}
