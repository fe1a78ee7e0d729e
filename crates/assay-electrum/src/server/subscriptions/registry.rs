//! Subscription registry and notifications.
//!
//! Lock order: the record of a script or an outpoint; its shard of the set; the list of new entries; a send queue; the list of
//! all send queues. Two of a kind are never held at once. No lock is held during a disk read, except the record being refreshed.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use assay_wire::{BlockHash, OutPoint};
use parking_lot::{Condvar, Mutex};

use super::notify_queue::{Item, NotifyQueue};
use super::outpoints::{OutpointRecord, OutpointState, Outpoints};
use super::scripts::{ScriptRecord, ScriptState, Watched};
use super::subscribers::Subscriber;
use crate::chain::Chain;
use crate::index::ScriptHash;
use crate::server::limits::client_budget::Account;
use crate::server::net::send_queue::SendQueue;
use crate::server::protocol::Out;
use crate::server::protocol::error::CallError;
use crate::server::snapshot::outpoint_status::{self, OutpointStatus};
use crate::server::snapshot::published::{Published, Snapshot, write_tip};
use crate::server::snapshot::script_status::{Status, write_status};

/// Pause before a status lookup that a reorg interrupted is retried, unless new changes arrive first.
const NOTIFY_PAUSE: Duration = Duration::from_millis(50);

#[derive(Debug, Default)]
pub(in crate::server) struct Changes {
    pub(in crate::server) tip: bool,
    /// Every watched item may have changed.
    pub(in crate::server) all: bool,
    /// Scripts that may have changed.
    pub(in crate::server) scripts: HashSet<ScriptHash>,
    /// Outputs that may have changed: a transaction that creates or spends them was added, removed, confirmed or moved.
    pub(in crate::server) outpoints: HashSet<OutPoint>,
}

pub(in crate::server) struct Subscriptions {
    published: Arc<Published>,
    chain: Arc<dyn Chain>,
    entries_max: usize,
    watched: Arc<Watched>,
    outpoints: Outpoints,
    headers: Mutex<HashMap<u64, Arc<SendQueue>>>,
    /// Script and outpoint subscriptions of all clients.
    pub(in crate::server) count: AtomicUsize,
    pub(in crate::server) notifications: AtomicUsize,
    /// Number of status lookups caused by changes.
    pub(in crate::server) lookups: AtomicUsize,
    /// Number of scripts and outpoints still to be looked up.
    pub(in crate::server) backlog: AtomicUsize,
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
    pub(in crate::server) fn new(
        published: Arc<Published>,
        chain: Arc<dyn Chain>,
        entries_max: usize,
    ) -> Self {
        Self {
            published,
            chain,
            entries_max,
            watched: Arc::default(),
            outpoints: Outpoints::default(),
            headers: Mutex::default(),
            count: AtomicUsize::new(0),
            notifications: AtomicUsize::new(0),
            lookups: AtomicUsize::new(0),
            backlog: AtomicUsize::new(0),
            inbox: Mutex::default(),
            arrived: Condvar::new(),
        }
    }

    pub(in crate::server) fn watched(&self) -> &Arc<Watched> {
        &self.watched
    }

    pub(in crate::server) fn outpoints(&self) -> &Outpoints {
        &self.outpoints
    }

    /// Passes `changes` to the notification thread, merged with its unprocessed ones.
    pub(in crate::server) fn enqueue(&self, changes: Changes) {
        let mut inbox = self.inbox.lock();
        match &mut inbox.changes {
            Some(waiting) => {
                waiting.tip |= changes.tip;
                waiting.all |= changes.all;
                waiting.scripts.extend(changes.scripts);
                waiting.outpoints.extend(changes.outpoints);
            }
            empty => *empty = Some(changes),
        }
        self.arrived.notify_one();
    }

    /// Notifies clients until [`Subscriptions::stop`].
    pub(in crate::server) fn run(&self) {
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
            is_interrupted = !queue.run_slice(|item| self.refresh_item(item));
            self.backlog.store(queue.len(), Ordering::Release);
        }
    }

    /// True if all notifications are queued.
    #[cfg(test)]
    pub(in crate::server) fn is_idle(&self) -> bool {
        let inbox = self.inbox.lock();
        inbox.changes.is_none() && self.backlog.load(Ordering::Acquire) == 0
    }

    pub(in crate::server) fn stop(&self) {
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
            self.notify_tip(&snapshot);
        }
        if changes.all {
            let scripts = self.watched.all().flatten().map(Item::Script);
            scripts
                .chain(self.outpoints.all().flatten().map(Item::Outpoint))
                .for_each(|item| queue.add(item));
            return;
        }
        let scripts = changes.scripts.iter().filter_map(|script| self.watched.get(script));
        let outpoints =
            changes.outpoints.iter().filter_map(|outpoint| self.outpoints.get(outpoint));
        scripts
            .map(Item::Script)
            .chain(outpoints.map(Item::Outpoint))
            .for_each(|item| queue.add(item));
    }

    /// Computes the status of an item and notifies its subscribers of a change; `false` if a reorg interrupted it.
    fn refresh_item(&self, item: &Item) -> bool {
        self.lookups.fetch_add(1, Ordering::Relaxed);
        match item {
            Item::Script(record) => {
                let mut state = record.state.lock();
                if state.dead {
                    return true;
                }
                match self.refresh_script(record, &mut state) {
                    Ok(_) => {}
                    Err(CallError::Again | CallError::NotAtOnce) => return false,
                    Err(CallError::Rpc(error)) => {
                        // Subscribers keep the last status; the next change retries.
                        let script = record.script;
                        tracing::warn!("The status of script {script} cannot be computed: {error}");
                        self.watched.retry_later(&script);
                    }
                }
            }
            Item::Outpoint(record) => {
                let mut state = record.state.lock();
                if state.dead {
                    return true;
                }
                match self.refresh_outpoint(record, &mut state) {
                    Ok(_) => {}
                    Err(CallError::Again | CallError::NotAtOnce) => return false,
                    Err(CallError::Rpc(error)) => {
                        tracing::warn!("An outpoint cannot be looked up: {error}");
                        self.outpoints.retry_later(&record.outpoint);
                    }
                }
            }
        }
        true
    }

    fn notify_tip(&self, snapshot: &Snapshot) {
        let mut out = Out::new();
        out.raw("{\"jsonrpc\":\"2.0\",\"method\":\"blockchain.headers.subscribe\",\"params\":[");
        write_tip(&mut out, snapshot);
        out.raw("]}\n");
        let text: Arc<[u8]> = out.into_bytes().into();
        // Copied, so that subscribing and disconnecting do not wait for all notifications.
        let clients: Vec<_> = self.headers.lock().values().map(Arc::clone).collect();
        self.notifications.fetch_add(clients.len(), Ordering::Relaxed);
        for send_queue in clients {
            send_queue.notify(Arc::clone(&text));
        }
    }

    /// Updates a script's status, and notifies subscribers of a change.
    fn refresh_script(
        &self,
        record: &ScriptRecord,
        state: &mut ScriptState,
    ) -> Result<Status, CallError> {
        let status = state.compute(&self.published, &record.script, self.entries_max)?;
        if state.status.replace(status).is_some_and(|before| before != status) {
            self.notify(state.subscribers.as_slice(), |by_script, out| {
                out.raw("{\"jsonrpc\":\"2.0\",\"method\":\"blockchain.");
                out.raw(if by_script { "scriptpubkey" } else { "scripthash" });
                out.raw(".subscribe\",\"params\":[").hash(&record.script.0).raw(",");
                write_status(out, &status);
                out.raw("]}\n");
            });
        }
        Ok(status)
    }

    /// Sends the output of `write`, generated once per notification name, to the subscribers.
    fn notify(&self, subscribers: &[Subscriber], write: impl Fn(bool, &mut Out)) {
        self.notifications.fetch_add(subscribers.len(), Ordering::Relaxed);
        let mut texts: [Option<Arc<[u8]>>; 2] = [None, None];
        for subscriber in subscribers {
            let text = texts[usize::from(subscriber.by_script)].get_or_insert_with(|| {
                let mut out = Out::new();
                write(subscriber.by_script, &mut out);
                out.into_bytes().into()
            });
            subscriber.send_queue.notify(Arc::clone(text));
        }
    }

    pub(in crate::server) fn release(&self, account: &Account, count: usize) {
        account.release_subscriptions(count);
        self.count.fetch_sub(count, Ordering::Relaxed);
    }

    pub(in crate::server) fn subscribe_headers(&self, client: u64, send_queue: &Arc<SendQueue>) {
        self.headers.lock().insert(client, Arc::clone(send_queue));
    }

    pub(in crate::server) fn unsubscribe_headers(&self, client: u64) {
        self.headers.lock().remove(&client);
    }

    /// Number of clients subscribed to headers, and of subscribed outpoints.
    pub(in crate::server) fn counts(&self) -> (usize, usize) {
        (self.headers.lock().len(), self.outpoints.len())
    }

    /// Subscribes to a script and returns its status. Idempotent.
    pub(in crate::server) fn subscribe_script(
        &self,
        script: &ScriptHash,
        subscriber: Subscriber,
    ) -> Result<Status, CallError> {
        loop {
            let record = self.watched.enter(script);
            let mut state = record.state.lock();
            if state.dead {
                continue;
            }
            let result = self.refresh_script(&record, &mut state);
            if result.is_ok() {
                state.subscribers.add(subscriber);
            }
            self.watched.remove_unused(&record, &mut state);
            return result;
        }
    }

    pub(in crate::server) fn unsubscribe_script(&self, script: &ScriptHash, client: u64) {
        if let Some(record) = self.watched.get(script) {
            let mut state = record.state.lock();
            state.subscribers.remove(client);
            self.watched.remove_unused(&record, &mut state);
        }
    }

    /// Subscribes to an output, which need not exist yet.
    pub(in crate::server) fn subscribe_outpoint(
        &self,
        outpoint: &OutPoint,
        subscriber: Subscriber,
    ) -> Result<OutpointStatus, CallError> {
        loop {
            // Insert first, then respond: no change is missed in between.
            let record = self.outpoints.enter(outpoint);
            let mut state = record.state.lock();
            if state.dead {
                continue;
            }
            let result = self.refresh_outpoint(&record, &mut state);
            if result.is_ok() {
                state.subscribers.add(subscriber);
            }
            self.outpoints.remove_unused(&record, &mut state);
            return result;
        }
    }

    pub(in crate::server) fn unsubscribe_outpoint(&self, outpoint: &OutPoint, client: u64) {
        if let Some(record) = self.outpoints.get(outpoint) {
            let mut state = record.state.lock();
            state.subscribers.remove(client);
            self.outpoints.remove_unused(&record, &mut state);
        }
    }

    /// Updates an output's status, and notifies subscribers of a change.
    fn refresh_outpoint(
        &self,
        record: &OutpointRecord,
        state: &mut OutpointState,
    ) -> Result<OutpointStatus, CallError> {
        let status = outpoint_status::find(&self.published, &*self.chain, &record.outpoint)?;
        if state.status.replace(status).is_some_and(|before| before != status) {
            self.notify(state.subscribers.as_slice(), |_, out| {
                out.raw("{\"jsonrpc\":\"2.0\",\"method\":\"blockchain.outpoint.subscribe\",\"params\":[");
                out.hash(&record.outpoint.txid.0).raw(",").int(record.outpoint.vout).raw(",");
                status.write(out);
                out.raw("]}\n");
            });
        }
        Ok(status)
    }
}
