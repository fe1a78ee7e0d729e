//! Session state of a client: version, subscriptions and usage.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use assay_wire::OutPoint;
use parking_lot::Mutex;

use super::disconnect::DisconnectReason;
use super::limits::client_budget::{Account, ConnectionSlot};
use super::limits::rate_limit::Admission;
use super::net::send_queue::SendQueue;
use super::protocol::error::CallError;
use super::protocol::{Code, RpcError, Version};
use super::shared::Shared;
use super::snapshot::outpoint_status::OutpointStatus;
use super::snapshot::script_status::Status;
use super::subscriptions::removal::Removal;
use super::subscriptions::subscribers::Subscriber;
use crate::index::ScriptHash;

/// State of a connection, without its socket.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) client: u64,
    pub(super) peer: SocketAddr,
    pub(super) send_queue: Arc<SendQueue>,
    connection: Arc<ConnectionSlot>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Negotiated version.
    version: Option<Version>,
    /// Client name from `server.version`.
    name: String,
    scripts: HashSet<ScriptHash>,
    outpoints: HashSet<OutPoint>,
    headers: bool,
    /// Consecutive rejected requests.
    rejections: u32,
    /// Reason to disconnect after the current response.
    disconnect: Option<DisconnectReason>,
    /// True once the connection has ended; a worker may still be processing a request.
    disconnected: bool,
}

impl Session {
    pub(super) fn new(shared: &Shared, peer: SocketAddr, connection: Arc<ConnectionSlot>) -> Self {
        let limits = &shared.config.limits;
        let client = shared.next_client.fetch_add(1, Ordering::Relaxed);
        let account = Arc::clone(connection.account());
        let memory = Arc::clone(&shared.send_memory);
        Self {
            client,
            peer,
            send_queue: SendQueue::new(client, account, limits.output_bytes_max(), memory),
            connection,
            state: Mutex::new(State {
                version: None,
                name: String::new(),
                scripts: HashSet::new(),
                outpoints: HashSet::new(),
                headers: false,
                rejections: 0,
                disconnect: None,
                disconnected: false,
            }),
        }
    }

    /// Negotiated version, or the oldest before negotiation.
    pub(super) fn version(&self) -> Version {
        self.state.lock().version.unwrap_or(Version::MIN)
    }

    /// Sets the version once; returns false if it was set before.
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

    pub(super) fn disconnect_after_response(&self, reason: DisconnectReason) {
        self.state.lock().disconnect.get_or_insert(reason);
    }

    /// Reason to disconnect after the current response, if any.
    pub(super) fn disconnect(&self) -> Option<DisconnectReason> {
        self.state.lock().disconnect
    }

    pub(super) fn admit(&self, throttle_max: Duration) -> Admission {
        self.account().admit(throttle_max)
    }

    /// Time until the client counts as light, assuming that it sends nothing.
    pub(super) fn light_in(&self) -> Duration {
        self.account().light_in()
    }

    pub(super) fn spend(&self, units: f64) {
        self.account().spend(units);
    }

    /// Counts a rejected request, and disconnects after `max` consecutive ones.
    pub(super) fn count_rejection(&self, max: u32) {
        let mut state = self.state.lock();
        state.rejections += 1;
        if state.rejections >= max {
            state.disconnect.get_or_insert(DisconnectReason::Refused);
        }
    }

    pub(super) fn clear_rejections(&self) {
        self.state.lock().rejections = 0;
    }

    fn account(&self) -> &Arc<Account> {
        self.connection.account()
    }

    fn subscriber(&self, by_script: bool) -> Subscriber {
        let (send_queue, account) = (Arc::clone(&self.send_queue), Arc::clone(self.account()));
        Subscriber { client: self.client, send_queue, account, by_script }
    }

    pub(super) fn subscribe_headers(&self, shared: &Shared) {
        self.state.lock().headers = true;
        shared.subscriptions.subscribe_headers(self.client, &self.send_queue);
        if self.state.lock().disconnected {
            shared.subscriptions.unsubscribe_headers(self.client);
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
            state.check_connected()?;
            let count = state.scripts.len() + state.outpoints.len();
            !state.scripts.contains(script)
                && self.reserve(shared, count)?
                && state.scripts.insert(*script)
        };
        let result = shared.subscriptions.subscribe_script(script, self.subscriber(by_script));
        let mut state = self.state.lock();
        if state.disconnected {
            // The connection ended meanwhile, and its subscriptions were removed without this one.
            drop(state);
            shared.subscriptions.unsubscribe_script(script, self.client);
        } else if result.is_err() && new {
            state.scripts.remove(script);
            shared.subscriptions.release(self.account(), 1);
        }
        result
    }

    pub(super) fn unsubscribe_script(&self, shared: &Shared, script: &ScriptHash) -> bool {
        let had = self.state.lock().scripts.remove(script);
        if had {
            shared.subscriptions.unsubscribe_script(script, self.client);
            shared.subscriptions.release(self.account(), 1);
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
            state.check_connected()?;
            let count = state.scripts.len() + state.outpoints.len();
            !state.outpoints.contains(outpoint)
                && self.reserve(shared, count)?
                && state.outpoints.insert(*outpoint)
        };
        let result = shared.subscriptions.subscribe_outpoint(outpoint, self.subscriber(true));
        let mut state = self.state.lock();
        if state.disconnected {
            drop(state);
            shared.subscriptions.unsubscribe_outpoint(outpoint, self.client);
        } else if result.is_err() && new {
            state.outpoints.remove(outpoint);
            shared.subscriptions.release(self.account(), 1);
        }
        result
    }

    pub(super) fn unsubscribe_outpoint(&self, shared: &Shared, outpoint: &OutPoint) -> bool {
        let had = self.state.lock().outpoints.remove(outpoint);
        if had {
            shared.subscriptions.unsubscribe_outpoint(outpoint, self.client);
            shared.subscriptions.release(self.account(), 1);
        }
        had
    }

    /// Marks the connection as ended and removes its subscriptions in the background.
    pub(super) fn end(&self, shared: &Shared) {
        let (scripts, outpoints) = {
            let mut state = self.state.lock();
            state.disconnected = true;
            (std::mem::take(&mut state.scripts), std::mem::take(&mut state.outpoints))
        };
        if self.state.lock().headers {
            shared.subscriptions.unsubscribe_headers(self.client);
        }
        if !(scripts.is_empty() && outpoints.is_empty()) {
            shared.removals.add(Removal {
                client: self.client,
                scripts: scripts.into_iter(),
                outpoints: outpoints.into_iter(),
                connection: Arc::clone(&self.connection),
            });
        }
    }

    /// Counts a subscription of a client that has `count`; always true, or an error.
    fn reserve(&self, shared: &Shared, count: usize) -> Result<bool, RpcError> {
        let limits = &shared.config.limits;
        let reject = |message: String| Err(RpcError::new(Code::Excessive, message));
        if count >= limits.subscriptions_max {
            return reject(format!("more than {} subscriptions", limits.subscriptions_max));
        }
        let per_ip_max = limits.subscriptions_per_ip_max;
        if !self.account().reserve_subscription(per_ip_max) {
            return reject(format!("more than {per_ip_max} subscriptions of one address"));
        }
        let all = &shared.subscriptions.count;
        if all.fetch_add(1, Ordering::Relaxed) >= limits.subscriptions_total_max {
            shared.subscriptions.release(self.account(), 1);
            return reject("the server has no room for more subscriptions".to_owned());
        }
        Ok(true)
    }
}

impl State {
    /// Fails after the connection has ended: a subscription would outlive it.
    fn check_connected(&self) -> Result<(), RpcError> {
        if self.disconnected {
            Err(RpcError::new(Code::Excessive, "the connection has ended"))
        } else {
            Ok(())
        }
    }
}
