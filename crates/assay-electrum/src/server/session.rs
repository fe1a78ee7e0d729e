//! A client: what it negotiated, subscribed to and used.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use assay_wire::OutPoint;
use parking_lot::Mutex;

use super::accounts::Account;
use super::budget::Verdict;
use super::leaving::Departure;
use super::outbox::{Ending, Outbox};
use super::outpoints::OutpointStatus;
use super::protocol::error::CallError;
use super::protocol::{Code, RpcError, Version};
use super::shared::{Connection, Shared};
use super::watch::{Status, Subscriber};
use crate::index::ScriptHash;

/// A connection's state, apart from its socket.
#[derive(Debug)]
pub(super) struct Session {
    /// Its number.
    pub(super) client: u64,
    pub(super) peer: SocketAddr,
    pub(super) outbox: Arc<Outbox>,
    connection: Arc<Connection>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// The version agreed on, once it is.
    version: Option<Version>,
    /// How the client calls itself.
    name: String,
    scripts: HashSet<ScriptHash>,
    outpoints: HashSet<OutPoint>,
    headers: bool,
    /// Refusals in a row.
    refusals: u32,
    /// Why the connection ends after the present answer.
    ending: Option<Ending>,
    /// Whether the connection has ended; a worker may still be at a request.
    gone: bool,
}

impl Session {
    pub(super) fn new(shared: &Shared, peer: SocketAddr, connection: Arc<Connection>) -> Self {
        let limits = &shared.config.limits;
        let client = shared.next_client.fetch_add(1, Ordering::Relaxed);
        let account = Arc::clone(connection.account());
        let room = Arc::clone(&shared.output);
        Self {
            client,
            peer,
            outbox: Outbox::new(client, account, limits.output_bytes_max(), room),
            connection,
            state: Mutex::new(State {
                version: None,
                name: String::new(),
                scripts: HashSet::new(),
                outpoints: HashSet::new(),
                headers: false,
                refusals: 0,
                ending: None,
                gone: false,
            }),
        }
    }

    /// The version spoken; the oldest before one is agreed on.
    pub(super) fn version(&self) -> Version {
        self.state.lock().version.unwrap_or(Version::MIN)
    }

    /// Settles the version, unless that was done before.
    pub(super) fn negotiate(&self, version: Version, name: String) -> bool {
        let mut state = self.state.lock();
        if state.version.is_some() {
            return false;
        }
        tracing::debug!("Client {} at {} is {name:?}, version {version}", self.client, self.peer);
        state.version = Some(version);
        state.name = name;
        true
    }

    /// Has the connection end when the present answer is queued.
    pub(super) fn end_with(&self, ending: Ending) {
        self.state.lock().ending.get_or_insert(ending);
    }

    pub(super) fn ending(&self) -> Option<Ending> {
        self.state.lock().ending
    }

    /// What may be done with the next line.
    pub(super) fn verdict(&self, throttle_max: Duration) -> Verdict {
        self.account().verdict(throttle_max)
    }

    /// When the client will have been modest for long enough to be among those who are, if it asks for nothing until then.
    pub(super) fn modest_in(&self) -> Duration {
        self.account().modest_in()
    }

    /// Takes what a line has used.
    pub(super) fn spend(&self, units: f64) {
        self.account().spend(units);
    }

    /// Counts a refusal, and ends the connection at `max` in a row.
    pub(super) fn refuse(&self, max: u32) {
        let mut state = self.state.lock();
        state.refusals += 1;
        if state.refusals >= max {
            state.ending.get_or_insert(Ending::Refused);
        }
    }

    /// A request was understood.
    pub(super) fn accept(&self) {
        self.state.lock().refusals = 0;
    }

    fn account(&self) -> &Arc<Account> {
        self.connection.account()
    }

    fn subscriber(&self, by_script: bool) -> Subscriber {
        let (outbox, account) = (Arc::clone(&self.outbox), Arc::clone(self.account()));
        Subscriber { client: self.client, outbox, account, by_script }
    }

    pub(super) fn subscribe_headers(&self, shared: &Shared) {
        self.state.lock().headers = true;
        shared.hub.subscribe_headers(self.client, &self.outbox);
        if self.state.lock().gone {
            shared.hub.unsubscribe_headers(self.client);
        }
    }

    pub(super) fn subscribe_script(
        &self,
        shared: &Shared,
        script: &ScriptHash,
        by_script: bool,
    ) -> Result<Status, CallError> {
        let new = {
            let mut state = self.state.lock();
            state.stay()?;
            let count = state.scripts.len() + state.outpoints.len();
            !state.scripts.contains(script)
                && self.reserve(shared, count)?
                && state.scripts.insert(*script)
        };
        let result = shared.hub.subscribe_script(script, self.subscriber(by_script));
        let mut state = self.state.lock();
        if state.gone {
            // The connection ended meanwhile, and what it had was given up without this.
            drop(state);
            shared.hub.unsubscribe_script(script, self.client);
        } else if result.is_err() && new {
            state.scripts.remove(script);
            shared.hub.release(self.account(), 1);
        }
        result
    }

    pub(super) fn unsubscribe_script(&self, shared: &Shared, script: &ScriptHash) -> bool {
        let had = self.state.lock().scripts.remove(script);
        if had {
            shared.hub.unsubscribe_script(script, self.client);
            shared.hub.release(self.account(), 1);
        }
        had
    }

    pub(super) fn subscribe_outpoint(
        &self,
        shared: &Shared,
        outpoint: &OutPoint,
    ) -> Result<OutpointStatus, CallError> {
        let new = {
            let mut state = self.state.lock();
            state.stay()?;
            let count = state.scripts.len() + state.outpoints.len();
            !state.outpoints.contains(outpoint)
                && self.reserve(shared, count)?
                && state.outpoints.insert(*outpoint)
        };
        let result = shared.hub.subscribe_outpoint(outpoint, self.subscriber(true));
        let mut state = self.state.lock();
        if state.gone {
            drop(state);
            shared.hub.unsubscribe_outpoint(outpoint, self.client);
        } else if result.is_err() && new {
            state.outpoints.remove(outpoint);
            shared.hub.release(self.account(), 1);
        }
        result
    }

    pub(super) fn unsubscribe_outpoint(&self, shared: &Shared, outpoint: &OutPoint) -> bool {
        let had = self.state.lock().outpoints.remove(outpoint);
        if had {
            shared.hub.unsubscribe_outpoint(outpoint, self.client);
            shared.hub.release(self.account(), 1);
        }
        had
    }

    /// Ends all subscriptions, in the background.
    pub(super) fn leave(&self, shared: &Shared) {
        let (scripts, outpoints) = {
            let mut state = self.state.lock();
            state.gone = true;
            (std::mem::take(&mut state.scripts), std::mem::take(&mut state.outpoints))
        };
        if self.state.lock().headers {
            shared.hub.unsubscribe_headers(self.client);
        }
        if !(scripts.is_empty() && outpoints.is_empty()) {
            shared.departures.add(Departure {
                client: self.client,
                scripts: scripts.into_iter(),
                outpoints: outpoints.into_iter(),
                connection: Arc::clone(&self.connection),
            });
        }
    }

    /// Makes room for a subscription of a client that has `count`; always true, or an error.
    fn reserve(&self, shared: &Shared, count: usize) -> Result<bool, RpcError> {
        let limits = &shared.config.limits;
        let refuse = |message: String| Err(RpcError::new(Code::Excessive, message));
        if count >= limits.subscriptions_max {
            return refuse(format!("more than {} subscriptions", limits.subscriptions_max));
        }
        let per_ip_max = limits.subscriptions_per_ip_max;
        if !self.account().reserve_subscription(per_ip_max) {
            return refuse(format!("more than {per_ip_max} subscriptions of one address"));
        }
        let all = &shared.hub.subscriptions;
        if all.fetch_add(1, Ordering::Relaxed) >= limits.subscriptions_total_max {
            shared.hub.release(self.account(), 1);
            return refuse("the server has no room for more subscriptions".to_owned());
        }
        Ok(true)
    }
}

impl State {
    /// Refuses what would outlast the connection; nobody will read it.
    fn stay(&self) -> Result<(), RpcError> {
        if self.gone {
            Err(RpcError::new(Code::Excessive, "the connection has ended"))
        } else {
            Ok(())
        }
    }
}
