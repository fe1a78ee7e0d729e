//! Subscriptions, and notifying those who have them.
//!
//! Locks are taken in this order: the record of a script or an outpoint; the part of the set that it is in; the list of newcomers of
//! that set; an outbox; the list of all outboxes. Two of a kind are never held at once, and none while something is read
//! from disk, except the record that it is read for.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use assay_wire::OutPoint;
use parking_lot::{Condvar, Mutex};

use super::accounts::Account;
use super::agenda::{Agenda, Item};
use super::outbox::Outbox;
use super::outpoints::{self, OutpointRecord, OutpointState, OutpointStatus, Outpoints};
use super::protocol::Out;
use super::protocol::error::CallError;
use super::publish::{Moment, Published};
use super::watch::{ScriptRecord, ScriptState, Status, Subscriber, Watched};
use crate::chain::Chain;
use crate::index::ScriptHash;

/// When something is looked at again that a reorganisation interrupted, unless there is news before.
const TRY_AGAIN: Duration = Duration::from_millis(50);

/// What has changed.
#[derive(Debug, Default)]
pub(super) struct News {
    /// There is a new tip.
    pub(super) tip: bool,
    /// Everything watched may have changed.
    pub(super) all: bool,
    /// These scripts may have changed.
    pub(super) scripts: HashSet<ScriptHash>,
    /// These outputs may have: a transaction that makes or spends them came, went, was confirmed, or has another height.
    pub(super) outpoints: HashSet<OutPoint>,
}

/// All subscriptions.
pub(super) struct Hub {
    published: Arc<Published>,
    chain: Arc<dyn Chain>,
    entries_max: usize,
    watched: Arc<Watched>,
    outpoints: Outpoints,
    /// Clients that subscribed to headers.
    headers: Mutex<HashMap<u64, Arc<Outbox>>>,
    /// Subscriptions to scripts and outpoints, of all clients.
    pub(super) subscriptions: AtomicUsize,
    pub(super) notifications: AtomicUsize,
    /// How often a script or an outpoint was looked up because something changed.
    pub(super) lookups: AtomicUsize,
    /// Scripts and outpoints that are still to be looked up.
    pub(super) backlog: AtomicUsize,
    news: Mutex<Inbox>,
    arrived: Condvar,
}

#[derive(Default)]
struct Inbox {
    news: Option<News>,
    stopping: bool,
}

impl Hub {
    pub(super) fn new(
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
            subscriptions: AtomicUsize::new(0),
            notifications: AtomicUsize::new(0),
            lookups: AtomicUsize::new(0),
            backlog: AtomicUsize::new(0),
            news: Mutex::default(),
            arrived: Condvar::new(),
        }
    }

    pub(super) fn watched(&self) -> &Arc<Watched> {
        &self.watched
    }

    pub(super) fn outpoints(&self) -> &Outpoints {
        &self.outpoints
    }

    /// Leaves `news` to the thread that notifies clients; what it has not come to yet is merged with it.
    pub(super) fn tell(&self, news: News) {
        let mut inbox = self.news.lock();
        match &mut inbox.news {
            Some(waiting) => {
                waiting.tip |= news.tip;
                waiting.all |= news.all;
                waiting.scripts.extend(news.scripts);
                waiting.outpoints.extend(news.outpoints);
            }
            empty => *empty = Some(news),
        }
        self.arrived.notify_one();
    }

    /// Notifies clients of what is new until [`Hub::stop`].
    pub(super) fn run(&self) {
        let mut agenda = Agenda::default();
        let mut is_interrupted = false;
        loop {
            let news = {
                let mut inbox = self.news.lock();
                if inbox.news.is_none() && !inbox.stopping {
                    if agenda.len() == 0 {
                        self.arrived.wait(&mut inbox);
                    } else if is_interrupted {
                        self.arrived.wait_for(&mut inbox, TRY_AGAIN);
                    }
                }
                if inbox.stopping {
                    return;
                }
                let news = inbox.news.take();
                if news.is_some() {
                    self.backlog.fetch_add(1, Ordering::Relaxed);
                }
                news
            };
            if let Some(news) = news {
                self.enter(&news, &mut agenda);
            }
            is_interrupted = !agenda.work(|item| self.look_at(item));
            self.backlog.store(agenda.len(), Ordering::Release);
        }
    }

    /// Whether everybody has been notified of everything.
    #[cfg(test)]
    pub(super) fn is_idle(&self) -> bool {
        let inbox = self.news.lock();
        inbox.news.is_none() && self.backlog.load(Ordering::Acquire) == 0
    }

    /// Ends [`Hub::run`].
    pub(super) fn stop(&self) {
        self.news.lock().stopping = true;
        self.arrived.notify_all();
    }

    /// Notifies of a new tip, and notes what is to be looked at. Nothing is read from disk for that.
    fn enter(&self, news: &News, agenda: &mut Agenda) {
        let Some(moment) = self.published.moment() else { return };
        if news.tip {
            self.tell_tip(&moment);
        }
        if news.all {
            let scripts = self.watched.all().flatten().map(Item::Script);
            scripts
                .chain(self.outpoints.all().flatten().map(Item::Outpoint))
                .for_each(|item| agenda.add(item));
            return;
        }
        let scripts = news.scripts.iter().filter_map(|script| self.watched.get(script));
        let outpoints = news.outpoints.iter().filter_map(|outpoint| self.outpoints.get(outpoint));
        scripts
            .map(Item::Script)
            .chain(outpoints.map(Item::Outpoint))
            .for_each(|item| agenda.add(item));
    }

    /// Looks at something that may have changed, and notifies its subscribers if it has; `false` when a reorganisation came in between.
    fn look_at(&self, item: &Item) -> bool {
        self.lookups.fetch_add(1, Ordering::Relaxed);
        match item {
            Item::Script(record) => {
                let mut state = record.state.lock();
                if state.dead {
                    return true;
                }
                match self.refresh(record, &mut state) {
                    Ok(_) => {}
                    Err(CallError::Again) => return false,
                    Err(CallError::Rpc(error)) => {
                        // Subscribers keep the last status; the next change tries again.
                        let script = record.script;
                        tracing::warn!("The status of script {script} cannot be computed: {error}");
                        self.watched.try_later(&script);
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
                    Err(CallError::Again) => return false,
                    Err(CallError::Rpc(error)) => {
                        tracing::warn!("An outpoint cannot be looked up: {error}");
                        self.outpoints.try_later(&record.outpoint);
                    }
                }
            }
        }
        true
    }

    fn tell_tip(&self, moment: &Moment) {
        let mut out = Out::new();
        out.raw("{\"jsonrpc\":\"2.0\",\"method\":\"blockchain.headers.subscribe\",\"params\":[");
        write_tip(&mut out, moment);
        out.raw("]}\n");
        let text: Arc<[u8]> = out.into_bytes().into();
        // Nobody who subscribes or leaves meanwhile waits until all have their notification.
        let clients: Vec<_> = self.headers.lock().values().map(Arc::clone).collect();
        self.notifications.fetch_add(clients.len(), Ordering::Relaxed);
        for outbox in clients {
            outbox.notify(Arc::clone(&text));
        }
    }

    /// Brings a script's status up to date, and tells subscribers if it has changed.
    fn refresh(&self, record: &ScriptRecord, state: &mut ScriptState) -> Result<Status, CallError> {
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

    /// Sends what `write` makes, once for each way of naming it, to those who want it.
    fn notify(&self, subscribers: &[Subscriber], write: impl Fn(bool, &mut Out)) {
        self.notifications.fetch_add(subscribers.len(), Ordering::Relaxed);
        let mut texts: [Option<Arc<[u8]>>; 2] = [None, None];
        for subscriber in subscribers {
            let text = texts[usize::from(subscriber.by_script)].get_or_insert_with(|| {
                let mut out = Out::new();
                write(subscriber.by_script, &mut out);
                out.into_bytes().into()
            });
            subscriber.outbox.notify(Arc::clone(text));
        }
    }

    /// Subscriptions of an address have ended.
    pub(super) fn release(&self, account: &Account, count: usize) {
        account.release_subscriptions(count);
        self.subscriptions.fetch_sub(count, Ordering::Relaxed);
    }

    /// Subscribes to headers.
    pub(super) fn subscribe_headers(&self, client: u64, outbox: &Arc<Outbox>) {
        self.headers.lock().insert(client, Arc::clone(outbox));
    }

    pub(super) fn unsubscribe_headers(&self, client: u64) {
        self.headers.lock().remove(&client);
    }

    /// Number of clients that subscribed to headers, and of outpoints that somebody subscribed to.
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.headers.lock().len(), self.outpoints.len())
    }

    /// Subscribes to a script and returns its status. Subscribing twice is as good as once.
    pub(super) fn subscribe_script(
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
            let result = self.refresh(&record, &mut state);
            if result.is_ok() {
                state.subscribers.add(subscriber);
            }
            self.watched.remove_unused(&record, &mut state);
            return result;
        }
    }

    /// Ends a subscription to a script.
    pub(super) fn unsubscribe_script(&self, script: &ScriptHash, client: u64) {
        if let Some(record) = self.watched.get(script) {
            let mut state = record.state.lock();
            state.subscribers.remove(client);
            self.watched.remove_unused(&record, &mut state);
        }
    }

    /// What has become of an output.
    pub(super) fn outpoint_status(&self, outpoint: &OutPoint) -> Result<OutpointStatus, CallError> {
        outpoints::find(&self.published, &*self.chain, outpoint)
    }

    /// Subscribes to an output, which need not exist yet.
    pub(super) fn subscribe_outpoint(
        &self,
        outpoint: &OutPoint,
        subscriber: Subscriber,
    ) -> Result<OutpointStatus, CallError> {
        loop {
            // First in the set, then the answer: no change falls in between.
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

    /// Ends a subscription to an output.
    pub(super) fn unsubscribe_outpoint(&self, outpoint: &OutPoint, client: u64) {
        if let Some(record) = self.outpoints.get(outpoint) {
            let mut state = record.state.lock();
            state.subscribers.remove(client);
            self.outpoints.remove_unused(&record, &mut state);
        }
    }

    /// Brings an output's state up to date, and tells subscribers if it has changed.
    fn refresh_outpoint(
        &self,
        record: &OutpointRecord,
        state: &mut OutpointState,
    ) -> Result<OutpointStatus, CallError> {
        let status = outpoints::find(&self.published, &*self.chain, &record.outpoint)?;
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

/// Writes the tip as `blockchain.headers.subscribe` shows it.
pub(super) fn write_tip(out: &mut Out, moment: &Moment) {
    out.raw("{\"height\":").int(moment.tip.height);
    out.raw(",\"hex\":").hex(&moment.header).raw("}");
}

/// Writes a status: digits in the order of the hash function, or null.
pub(super) fn write_status(out: &mut Out, status: &Status) {
    match status {
        Some(status) => out.hex(status),
        None => out.raw("null"),
    };
}
