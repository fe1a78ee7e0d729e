//! Subscription registry and notifications.
//!
//! Lock order: the record of a script or an outpoint; its shard of the set; the list of new entries; a send queue; the list of
//! all send queues. Two of a kind are never held at once. No lock is held during a disk read, except the record being refreshed.

use std::collections::{HashMap, HashSet, VecDeque, hash_set};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use assay_wire::BlockHash;
use hyper::body::Bytes;
use parking_lot::{Condvar, Mutex};

use super::client_budget::{Account, ConnectionSlot};
use super::protocol::{CallError, Out};
use super::send_queue::SendQueue;
use super::snapshot::{Published, write_tip};
use super::status::{Status, outpoint_status};
use super::watched::{Item, NotifyQueue, Record, RecordState, Subscriber, Watched};
use crate::chain::Chain;

/// Pause before a status lookup that a reorg interrupted is retried, unless new changes arrive first.
const NOTIFY_PAUSE: Duration = Duration::from_millis(50);

#[derive(Debug, Default)]
pub(super) struct Changes {
    pub(super) tip: bool,
    /// Every watched item may have changed.
    pub(super) all: bool,
    /// Items that may have changed. Of an output: a transaction that creates or spends it was added, removed, confirmed or moved.
    pub(super) items: HashSet<Item>,
}

pub(super) struct Subscriptions {
    published: Arc<Published>,
    chain: Arc<dyn Chain>,
    entries_max: usize,
    pub(super) watched: Watched,
    headers: Mutex<HashMap<u64, Arc<SendQueue>>>,
    /// Script and outpoint subscriptions of all clients.
    pub(super) count: AtomicUsize,
    pub(super) notifications: AtomicUsize,
    /// Number of status lookups caused by changes.
    pub(super) lookups: AtomicUsize,
    /// Number of items still to be looked up.
    pub(super) backlog: AtomicUsize,
    inbox: Mutex<Inbox>,
    arrived: Condvar,
}

/// Changes not yet processed by the notification thread.
#[derive(Default)]
struct Inbox {
    changes: Option<Changes>,
    stopping: bool,
}

impl Subscriptions {
    pub(super) fn new(
        published: Arc<Published>,
        chain: Arc<dyn Chain>,
        entries_max: usize,
    ) -> Self {
        Self {
            published,
            chain,
            entries_max,
            watched: Watched::default(),
            headers: Mutex::default(),
            count: AtomicUsize::new(0),
            notifications: AtomicUsize::new(0),
            lookups: AtomicUsize::new(0),
            backlog: AtomicUsize::new(0),
            inbox: Mutex::default(),
            arrived: Condvar::new(),
        }
    }

    /// Passes `changes` to the notification thread, merged with its unprocessed ones.
    pub(super) fn enqueue(&self, changes: Changes) {
        let mut inbox = self.inbox.lock();
        match &mut inbox.changes {
            Some(waiting) => {
                waiting.tip |= changes.tip;
                waiting.all |= changes.all;
                waiting.items.extend(changes.items);
            }
            empty => *empty = Some(changes),
        }
        self.arrived.notify_one();
    }

    /// Notifies clients until [`Subscriptions::stop`].
    pub(super) fn run(&self) {
        let mut queue = NotifyQueue::default();
        let mut last_tip = None;
        let mut is_interrupted = false;
        loop {
            let changes = {
                let mut inbox = self.inbox.lock();
                if inbox.changes.is_none() && !inbox.stopping {
                    if queue.len() == 0 {
                        self.arrived.wait(&mut inbox);
                    } else if is_interrupted {
                        self.arrived.wait_for(&mut inbox, NOTIFY_PAUSE);
                    }
                }
                if inbox.stopping {
                    return;
                }
                let changes = inbox.changes.take();
                if changes.is_some() {
                    self.backlog.fetch_add(1, Ordering::Relaxed);
                }
                changes
            };
            if let Some(changes) = changes {
                self.schedule(&changes, &mut last_tip, &mut queue);
            }
            is_interrupted = !queue.run_slice(|record| self.refresh_queued(record));
            self.backlog.store(queue.len(), Ordering::Release);
        }
    }

    /// True if all notifications are queued.
    #[cfg(test)]
    pub(super) fn is_idle(&self) -> bool {
        let inbox = self.inbox.lock();
        inbox.changes.is_none() && self.backlog.load(Ordering::Acquire) == 0
    }

    pub(super) fn stop(&self) {
        self.inbox.lock().stopping = true;
        self.arrived.notify_all();
    }

    /// Notifies of a new tip, and queues status lookups. Reads nothing from disk.
    fn schedule(
        &self,
        changes: &Changes,
        last_tip: &mut Option<BlockHash>,
        queue: &mut NotifyQueue,
    ) {
        let Some(snapshot) = self.published.snapshot() else { return };
        // A change may be processed only after the next one: its tip is notified once. Clients that subscribed in between have it
        // in the response.
        if changes.tip && last_tip.replace(snapshot.tip.hash) != Some(snapshot.tip.hash) {
            let text = notification("headers", |out| write_tip(out, &snapshot));
            // Copied, so that subscribing and disconnecting do not wait for all notifications.
            let clients: Vec<_> = self.headers.lock().values().map(Arc::clone).collect();
            self.notifications.fetch_add(clients.len(), Ordering::Relaxed);
            for send_queue in clients {
                send_queue.notify(text.clone());
            }
        }
        if changes.all {
            self.watched.all().flatten().for_each(|record| queue.add(record));
        } else {
            let changed = changes.items.iter().filter_map(|item| self.watched.get(item));
            changed.for_each(|record| queue.add(record));
        }
    }

    /// Computes the status of an item and notifies its subscribers of a change; `false` if a reorg interrupted it.
    fn refresh_queued(&self, record: &Record) -> bool {
        self.lookups.fetch_add(1, Ordering::Relaxed);
        let mut state = record.state.lock();
        if state.dead {
            return true;
        }
        match self.refresh(record, &mut state) {
            Ok(_) => true,
            Err(CallError::Again | CallError::NotAtOnce) => false,
            Err(CallError::Rpc(error)) => {
                // Subscribers keep the last status; the next change retries.
                tracing::warn!("The status of {} cannot be computed: {error}", record.item);
                self.watched.retry_later(&record.item);
                true
            }
        }
    }

    /// Updates an item's status, and notifies subscribers of a change.
    fn refresh(&self, record: &Record, state: &mut RecordState) -> Result<Status, CallError> {
        let status = match &record.item {
            Item::Script(script) => {
                let hasher = state.hasher.get_or_insert_default();
                Status::Script(hasher.status(&self.published, script, self.entries_max)?)
            }
            Item::Outpoint(outpoint) => {
                Status::Outpoint(outpoint_status(&self.published, &*self.chain, outpoint)?)
            }
        };
        if state.status.replace(status).is_some_and(|before| before != status) {
            self.notify(&record.item, &status, state.subscribers.as_slice());
        }
        Ok(status)
    }

    /// Sends a new status; its text is generated once per notification name.
    fn notify(&self, item: &Item, status: &Status, subscribers: &[Subscriber]) {
        self.notifications.fetch_add(subscribers.len(), Ordering::Relaxed);
        let mut texts: [Option<Bytes>; 2] = [None, None];
        for subscriber in subscribers {
            let text = texts[usize::from(subscriber.by_script)].get_or_insert_with(|| {
                let name = match item {
                    Item::Script(_) if subscriber.by_script => "scriptpubkey",
                    Item::Script(_) => "scripthash",
                    Item::Outpoint(_) => "outpoint",
                };
                notification(name, |out| {
                    match item {
                        Item::Script(script) => out.hash(&script.0),
                        Item::Outpoint(it) => out.hash(&it.txid.0).raw(",").int(it.vout),
                    };
                    out.raw(",");
                    status.write(out);
                })
            });
            subscriber.send_queue.notify(text.clone());
        }
    }

    pub(super) fn release(&self, account: &Account, count: usize) {
        account.release_subscriptions(count);
        self.count.fetch_sub(count, Ordering::Relaxed);
    }

    pub(super) fn subscribe_headers(&self, send_queue: &Arc<SendQueue>) {
        self.headers.lock().insert(send_queue.client, Arc::clone(send_queue));
    }

    pub(super) fn unsubscribe_headers(&self, client: u64) {
        self.headers.lock().remove(&client);
    }

    pub(super) fn header_count(&self) -> usize {
        self.headers.lock().len()
    }

    /// Subscribes to an item and returns its status. Idempotent.
    pub(super) fn subscribe(
        &self,
        item: &Item,
        subscriber: Subscriber,
    ) -> Result<Status, CallError> {
        loop {
            // Insert first, then respond: no change is missed in between.
            let record = self.watched.enter(item);
            let mut state = record.state.lock();
            if state.dead {
                continue;
            }
            let result = self.refresh(&record, &mut state);
            if result.is_ok() {
                state.subscribers.add(subscriber);
            }
            self.watched.remove_unused(&record, &mut state);
            return result;
        }
    }

    pub(super) fn unsubscribe(&self, item: &Item, client: u64) {
        if let Some(record) = self.watched.get(item) {
            let mut state = record.state.lock();
            state.subscribers.remove(client);
            self.watched.remove_unused(&record, &mut state);
        }
    }
}

/// A notification line of `blockchain.NAME.subscribe`.
fn notification(name: &str, write: impl FnOnce(&mut Out)) -> Bytes {
    let mut out = Out::new();
    out.raw("{\"jsonrpc\":\"2.0\",\"method\":\"blockchain.").raw(name);
    out.raw(".subscribe\",\"params\":[");
    write(&mut out);
    out.raw("]}\n");
    // Without spare capacity: many may be queued.
    out.into_bytes().into_boxed_slice().into()
}

/// Subscriptions removed per step, and the pause afterwards.
const STEP: usize = 64;
const PAUSE: Duration = Duration::from_millis(1);

pub(super) struct Removal {
    pub(super) client: u64,
    pub(super) items: hash_set::IntoIter<Item>,
    /// Counts as open until all are removed.
    pub(super) connection: Arc<ConnectionSlot>,
}

impl Removal {
    /// Removes some; returns true if more remain.
    fn step(&mut self, subscriptions: &Subscriptions) -> bool {
        let before = self.items.len();
        for item in self.items.by_ref().take(STEP) {
            subscriptions.unsubscribe(&item, self.client);
        }
        subscriptions.release(self.connection.account(), before - self.items.len());
        self.items.len() > 0
    }
}

/// Disconnected clients whose subscriptions a thread removes; bounded by the connection limit.
///
/// A client may have tens of thousands of subscriptions. They are removed in small steps, client by client, with pauses in
/// between, so that other threads get locks and cores. The connection counts as open until all are removed, so an address cannot
/// exceed its limits by reconnecting during removal.
#[derive(Default)]
pub(super) struct Removals {
    queue: Mutex<RemovalQueue>,
    filled: Condvar,
}

#[derive(Default)]
struct RemovalQueue {
    removals: VecDeque<Removal>,
    stopping: bool,
}

impl Removals {
    /// Queues `removal`, except during shutdown.
    pub(super) fn add(&self, removal: Removal) {
        let mut queue = self.queue.lock();
        if !queue.stopping {
            queue.removals.push_back(removal);
            self.filled.notify_one();
        }
    }

    pub(super) fn run(&self, subscriptions: &Subscriptions) {
        loop {
            let mut removal = {
                let mut queue = self.queue.lock();
                let is_idle =
                    |queue: &mut RemovalQueue| !queue.stopping && queue.removals.is_empty();
                self.filled.wait_while(&mut queue, is_idle);
                // `stop` has taken all removals.
                let Some(removal) = queue.removals.pop_front() else { return };
                removal
            };
            if removal.step(subscriptions) {
                self.add(removal);
                std::thread::sleep(PAUSE);
            }
        }
    }

    /// Ends [`Removals::run`]. Remaining entries are dropped.
    pub(super) fn stop(&self) {
        let mut queue = self.queue.lock();
        queue.stopping = true;
        let left = std::mem::take(&mut queue.removals);
        self.filled.notify_all();
        drop(queue);
        drop(left);
    }
}
