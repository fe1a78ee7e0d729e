//! Session state of a client: version, subscriptions and usage.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::Mutex;

use super::client_budget::{Account, ConnectionSlot};
use super::protocol::{CallError, Code, RpcError, Version};
use super::send_queue::SendQueue;
use super::status::Status;
use super::subscriptions::Removal;
use super::watched::{Item, Subscriber};
use super::{DisconnectReason, Shared};

/// State of a connection, without its socket.
pub(super) struct Session {
    pub(super) peer: SocketAddr,
    pub(super) send_queue: Arc<SendQueue>,
    connection: Arc<ConnectionSlot>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Negotiated version.
    version: Option<Version>,
    items: HashSet<Item>,
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
            peer,
            send_queue: SendQueue::new(client, account, limits.output_bytes_max(), memory),
            connection,
            state: Mutex::default(),
        }
    }

    /// Negotiated version, or the oldest before negotiation.
    pub(super) fn version(&self) -> Version {
        self.state.lock().version.unwrap_or(Version::MIN)
    }

    /// Sets the version once; returns false if it was set before. The name of the client is for the log.
    pub(super) fn negotiate(&self, version: Version, name: &str) -> bool {
        let mut state = self.state.lock();
        if state.version.is_some() {
            return false;
        }
        let client = self.send_queue.client;
        tracing::debug!("Client {client} at {} is {name:?}, version {version}", self.peer);
        state.version = Some(version);
        true
    }

    pub(super) fn disconnect_after_response(&self, reason: DisconnectReason) {
        self.state.lock().disconnect.get_or_insert(reason);
    }

    /// Reason to disconnect after the current response, if any.
    pub(super) fn disconnect(&self) -> Option<DisconnectReason> {
        self.state.lock().disconnect
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

    pub(super) fn account(&self) -> &Arc<Account> {
        self.connection.account()
    }

    pub(super) fn subscribe_headers(&self, shared: &Shared) {
        self.state.lock().headers = true;
        shared.subscriptions.subscribe_headers(&self.send_queue);
        if self.state.lock().disconnected {
            shared.subscriptions.unsubscribe_headers(self.send_queue.client);
        }
    }

    /// Subscribes to an item; `by_script` is true for protocol 1.7 or later.
    pub(super) fn subscribe(
        &self,
        shared: &Shared,
        item: &Item,
        by_script: bool,
    ) -> Result<Status, CallError> {
        let new = {
            let mut state = self.state.lock();
            if state.disconnected {
                // A subscription would outlive it.
                return Err(RpcError::new(Code::Excessive, "the connection has ended").into());
            }
            !state.items.contains(item)
                && self.reserve(shared, state.items.len())?
                && state.items.insert(*item)
        };
        let subscriber = Subscriber { send_queue: Arc::clone(&self.send_queue), by_script };
        let result = shared.subscriptions.subscribe(item, subscriber);
        let mut state = self.state.lock();
        if state.disconnected {
            // The connection ended meanwhile, and its subscriptions were removed without this one.
            drop(state);
            shared.subscriptions.unsubscribe(item, self.send_queue.client);
        } else if result.is_err() && new {
            state.items.remove(item);
            shared.subscriptions.release(self.account(), 1);
        }
        result
    }

    /// True if the client had subscribed.
    pub(super) fn unsubscribe(&self, shared: &Shared, item: &Item) -> bool {
        let had = self.state.lock().items.remove(item);
        if had {
            shared.subscriptions.unsubscribe(item, self.send_queue.client);
            shared.subscriptions.release(self.account(), 1);
        }
        had
    }

    /// Marks the connection as ended and removes its subscriptions in the background.
    pub(super) fn end(&self, shared: &Shared) {
        let (items, headers) = {
            let mut state = self.state.lock();
            state.disconnected = true;
            (std::mem::take(&mut state.items), state.headers)
        };
        if headers {
            shared.subscriptions.unsubscribe_headers(self.send_queue.client);
        }
        if !items.is_empty() {
            let (items, connection) = (items.into_iter(), Arc::clone(&self.connection));
            shared.removals.add(Removal { client: self.send_queue.client, items, connection });
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
