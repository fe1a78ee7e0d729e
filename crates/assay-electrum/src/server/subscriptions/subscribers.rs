//! Subscribers of one script or output.

use std::sync::Arc;

use crate::server::limits::client_budget::Account;
use crate::server::net::send_queue::SendQueue;

#[derive(Clone, Debug)]
pub(in crate::server) struct Subscriber {
    pub(in crate::server) client: u64,
    pub(in crate::server) send_queue: Arc<SendQueue>,
    pub(in crate::server) account: Arc<Account>,
    /// True for protocol 1.7 or later, where script notifications have another name.
    pub(in crate::server) by_script: bool,
}

/// Number of subscribers searched for the one with the fewest subscriptions.
const WEIGHED: usize = 16;
/// Weight of a record that is locked.
pub(in crate::server) const WEIGHT_UNKNOWN: usize = 0;

/// Subscribers, sorted by client number. Most items have one, some have every client.
#[derive(Debug, Default)]
pub(in crate::server) struct Subscribers(Vec<Subscriber>);

impl Subscribers {
    pub(in crate::server) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(in crate::server) fn as_slice(&self) -> &[Subscriber] {
        &self.0
    }

    /// Idempotent.
    pub(in crate::server) fn add(&mut self, new: Subscriber) {
        if let Err(at) = self.find(new.client) {
            if self.0.is_empty() {
                self.0.reserve_exact(1);
            }
            self.0.insert(at, new);
        }
    }

    pub(in crate::server) fn remove(&mut self, client: u64) {
        if let Ok(at) = self.find(client) {
            self.0.remove(at);
        }
    }

    fn find(&self, client: u64) -> Result<usize, usize> {
        self.0.binary_search_by_key(&client, |subscriber| subscriber.client)
    }

    /// Subscriptions of the address that has the fewest.
    pub(in crate::server) fn weight(&self) -> usize {
        let some = self.0.iter().take(WEIGHED);
        some.map(|subscriber| subscriber.account.subscriptions()).min().unwrap_or(0)
    }
}
