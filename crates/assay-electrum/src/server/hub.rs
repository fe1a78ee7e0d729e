//! Subscriptions, and telling those who have them.
//!
//! Locks are taken in this order: the record of a script or an outpoint, then the set that it is in, then an outbox. Two records are
//! never locked at once.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use assay_wire::OutPoint;
use parking_lot::{Condvar, Mutex, MutexGuard};

use super::outbox::Outbox;
use super::outpoints::{self, Found, OutpointRecord, OutpointState, OutpointStatus};
use super::protocol::Out;
use super::protocol::error::CallError;
use super::publish::{Moment, Published};
use super::watch::{ScriptRecord, ScriptState, Status, Subscriber, Watched};
use crate::chain::Chain;
use crate::index::ScriptHash;

/// How often a question is asked again when the chain is reorganised under it, and how long it waits for that in between.
const TRIES: u32 = 50;
const TRY_AGAIN: Duration = Duration::from_millis(20);

/// What has changed.
#[derive(Debug, Default)]
pub(super) struct News {
    /// There is a new tip.
    pub(super) tip: bool,
    /// Everything watched may have changed.
    pub(super) all: bool,
    /// These scripts may have changed.
    pub(super) scripts: HashSet<ScriptHash>,
}

/// All subscriptions.
pub(super) struct Hub {
    published: Arc<Published>,
    chain: Arc<dyn Chain>,
    entries_max: usize,
    watched: Arc<Watched>,
    /// Clients that subscribed to headers.
    headers: Mutex<HashMap<u64, Arc<Outbox>>>,
    outpoints: Mutex<HashMap<OutPoint, Arc<OutpointRecord>>>,
    /// Outpoints whose script is not known: they are looked at whenever anything changes.
    unresolved: Mutex<HashMap<OutPoint, Arc<OutpointRecord>>>,
    /// Subscriptions to scripts and outpoints, of all clients.
    pub(super) subscriptions: AtomicUsize,
    pub(super) notifications: AtomicUsize,
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
            headers: Mutex::default(),
            outpoints: Mutex::default(),
            unresolved: Mutex::default(),
            subscriptions: AtomicUsize::new(0),
            notifications: AtomicUsize::new(0),
            news: Mutex::default(),
            arrived: Condvar::new(),
        }
    }

    pub(super) fn watched(&self) -> &Arc<Watched> {
        &self.watched
    }

    /// Leaves `news` to the thread that tells clients; what it has not come to yet is merged with it.
    pub(super) fn tell(&self, news: News) {
        let mut inbox = self.news.lock();
        match &mut inbox.news {
            Some(waiting) => {
                waiting.tip |= news.tip;
                waiting.all |= news.all;
                waiting.scripts.extend(news.scripts);
            }
            empty => *empty = Some(news),
        }
        self.arrived.notify_one();
    }

    /// Tells clients what is new until [`Hub::stop`].
    pub(super) fn run(&self) {
        loop {
            let news = {
                let mut inbox = self.news.lock();
                loop {
                    if inbox.stopping {
                        return;
                    }
                    if let Some(news) = inbox.news.take() {
                        break news;
                    }
                    self.arrived.wait(&mut inbox);
                }
            };
            self.spread(&news);
        }
    }

    /// Ends [`Hub::run`].
    pub(super) fn stop(&self) {
        self.news.lock().stopping = true;
        self.arrived.notify_all();
    }

    fn stopping(&self) -> bool {
        self.news.lock().stopping
    }

    fn spread(&self, news: &News) {
        let Some(moment) = self.published.moment() else { return };
        if news.tip {
            self.tell_tip(&moment);
        }
        if news.all {
            for script in self.watched.all() {
                self.look_at(&script);
            }
        } else {
            for script in &news.scripts {
                self.look_at(script);
            }
        }
        let unresolved: Vec<_> = self.unresolved.lock().values().map(Arc::clone).collect();
        for record in unresolved {
            self.look_at_outpoint(&record);
        }
    }

    fn tell_tip(&self, moment: &Moment) {
        let mut out = Out::new();
        out.raw("{\"jsonrpc\":\"2.0\",\"method\":\"blockchain.headers.subscribe\",\"params\":[");
        write_tip(&mut out, moment);
        out.raw("]}\n");
        let text: Arc<[u8]> = out.into_bytes().into();
        let clients = self.headers.lock();
        self.notifications.fetch_add(clients.len(), Ordering::Relaxed);
        for outbox in clients.values() {
            outbox.notify(Arc::clone(&text));
        }
    }

    fn look_at(&self, script: &ScriptHash) {
        let Some(record) = self.watched.get(script) else { return };
        let outpoints = {
            let mut state = record.state.lock();
            if let Err(error) = self.patiently(|| self.refresh(&record, &mut state)) {
                // Subscribers keep the last status; the next change tries again.
                tracing::warn!("The status of script {script} cannot be computed: {error}");
            }
            state.outpoints.clone()
        };
        for outpoint in outpoints {
            self.look_at_outpoint(&outpoint);
        }
    }

    /// Repeats what a reorganisation interrupts, for a while.
    fn patiently<T>(
        &self,
        mut attempt: impl FnMut() -> Result<T, CallError>,
    ) -> Result<T, CallError> {
        for _ in 1..TRIES {
            match attempt() {
                Err(CallError::Again) if !self.stopping() => std::thread::sleep(TRY_AGAIN),
                done => return done,
            }
        }
        attempt()
    }

    /// Brings a script's status up to date, and tells subscribers if it has changed.
    fn refresh(&self, record: &ScriptRecord, state: &mut ScriptState) -> Result<Status, CallError> {
        let status = state.compute(&self.published, &record.script, self.entries_max)?;
        if state.status.replace(status).is_some_and(|before| before != status) {
            self.notify(&state.subscribers, |by_script, out| {
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

    /// Subscribes to headers.
    pub(super) fn subscribe_headers(&self, client: u64, outbox: &Arc<Outbox>) {
        self.headers.lock().insert(client, Arc::clone(outbox));
    }

    pub(super) fn unsubscribe_headers(&self, client: u64) {
        self.headers.lock().remove(&client);
    }

    /// Number of clients that subscribed to headers, and of outpoints that somebody subscribed to.
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.headers.lock().len(), self.outpoints.lock().len())
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
                subscribe(&mut state.subscribers, subscriber);
            }
            self.watched.bury_unused(&record, &mut state);
            return result;
        }
    }

    /// Ends a subscription to a script.
    pub(super) fn unsubscribe_script(&self, script: &ScriptHash, client: u64) {
        if let Some(record) = self.watched.get(script) {
            let mut state = record.state.lock();
            state.subscribers.retain(|subscriber| subscriber.client != client);
            self.watched.bury_unused(&record, &mut state);
        }
    }

    /// What has become of an output.
    pub(super) fn outpoint_status(&self, outpoint: &OutPoint) -> Result<OutpointStatus, CallError> {
        outpoints::find(&self.published, &*self.chain, outpoint).map(|found| found.status)
    }

    /// Subscribes to an output, which need not exist yet; `hint` is its script as far as the client knows.
    pub(super) fn subscribe_outpoint(
        &self,
        outpoint: &OutPoint,
        hint: Option<ScriptHash>,
        subscriber: Subscriber,
    ) -> Result<OutpointStatus, CallError> {
        let found = outpoints::find(&self.published, &*self.chain, outpoint)?;
        loop {
            let record = self.enter_outpoint(outpoint);
            // First in the list of what is looked at, then the answer: no change falls in between.
            self.attach(&record, found.script.or(hint));
            let mut state = record.state.lock();
            if state.dead {
                continue;
            }
            let result = self.refresh_outpoint(&record, &mut state);
            if result.is_ok() {
                subscribe(&mut state.subscribers, subscriber);
            }
            self.bury_unused_outpoint(&record, state);
            return result.map(|found| found.status);
        }
    }

    /// Ends a subscription to an output.
    pub(super) fn unsubscribe_outpoint(&self, outpoint: &OutPoint, client: u64) {
        let record = self.outpoints.lock().get(outpoint).map(Arc::clone);
        if let Some(record) = record {
            let mut state = record.state.lock();
            state.subscribers.retain(|subscriber| subscriber.client != client);
            self.bury_unused_outpoint(&record, state);
        }
    }

    fn enter_outpoint(&self, outpoint: &OutPoint) -> Arc<OutpointRecord> {
        let mut outpoints = self.outpoints.lock();
        let record = outpoints.entry(*outpoint).or_insert_with(|| {
            Arc::new(OutpointRecord { outpoint: *outpoint, state: Mutex::default() })
        });
        Arc::clone(record)
    }

    /// Puts an outpoint where changes of its script lead to it, or among those without a script.
    fn attach(&self, record: &Arc<OutpointRecord>, script: Option<ScriptHash>) {
        {
            let mut state = record.state.lock();
            if state.dead || state.script.is_some() {
                return;
            }
            let Some(script) = script else {
                self.unresolved.lock().insert(record.outpoint, Arc::clone(record));
                return;
            };
            state.script = Some(script);
            self.unresolved.lock().remove(&record.outpoint);
        }
        let Some(script) = script else { return };
        loop {
            let watched = self.watched.enter(&script);
            let mut state = watched.state.lock();
            if state.dead {
                continue;
            }
            state.outpoints.push(Arc::clone(record));
            return;
        }
    }

    /// Takes a record out that nobody needs any more.
    fn bury_unused_outpoint(
        &self,
        record: &Arc<OutpointRecord>,
        mut state: MutexGuard<'_, OutpointState>,
    ) {
        if !state.subscribers.is_empty() || state.dead {
            return;
        }
        state.dead = true;
        let script = state.script;
        self.outpoints.lock().remove(&record.outpoint);
        self.unresolved.lock().remove(&record.outpoint);
        drop(state);
        if let Some(watched) = script.and_then(|script| self.watched.get(&script)) {
            let mut state = watched.state.lock();
            state.outpoints.retain(|other| !Arc::ptr_eq(other, record));
            self.watched.bury_unused(&watched, &mut state);
        }
    }

    fn look_at_outpoint(&self, record: &Arc<OutpointRecord>) {
        let found = {
            let mut state = record.state.lock();
            if state.dead {
                return;
            }
            self.patiently(|| self.refresh_outpoint(record, &mut state))
        };
        match found {
            Ok(Found { script: Some(script), .. }) => self.attach(record, Some(script)),
            Ok(_) => {}
            Err(error) => tracing::warn!("An outpoint cannot be looked up: {error}"),
        }
    }

    /// Brings an output's state up to date, and tells subscribers if it has changed.
    fn refresh_outpoint(
        &self,
        record: &OutpointRecord,
        state: &mut OutpointState,
    ) -> Result<Found, CallError> {
        let found = outpoints::find(&self.published, &*self.chain, &record.outpoint)?;
        let status = found.status;
        if state.status.replace(status).is_some_and(|before| before != status) {
            self.notify(&state.subscribers, |_, out| {
                out.raw("{\"jsonrpc\":\"2.0\",\"method\":\"blockchain.outpoint.subscribe\",\"params\":[");
                out.hash(&record.outpoint.txid.0).raw(",").int(record.outpoint.vout).raw(",");
                status.write(out);
                out.raw("]}\n");
            });
        }
        Ok(found)
    }
}

fn subscribe(subscribers: &mut Vec<Subscriber>, new: Subscriber) {
    if !subscribers.iter().any(|other| other.client == new.client) {
        subscribers.push(new);
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
