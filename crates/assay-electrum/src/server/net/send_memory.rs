//! Limit of queued output over all clients.
//!
//! At the limit, the server disconnects the largest connection of the address with the most queued output, not the connection
//! that needs memory next.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::send_queue::SendQueue;
use crate::server::limits::client_budget::Account;

/// Bytes queued for all clients, and their queues.
#[derive(Debug)]
pub(in crate::server) struct SendMemory {
    bytes: AtomicUsize,
    max: usize,
    queues: Mutex<HashMap<u64, Registered>>,
}

#[derive(Debug)]
struct Registered {
    account: Arc<Account>,
    queued_bytes: Arc<AtomicUsize>,
    queue: Weak<SendQueue>,
}

/// The connection to end.
pub(in crate::server) enum Victim {
    /// The requesting client's own.
    Requester,
    Other(Arc<SendQueue>),
}

impl SendMemory {
    pub(in crate::server) fn new(max: usize) -> Self {
        Self { bytes: AtomicUsize::new(0), max, queues: Mutex::default() }
    }

    pub(in crate::server) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// True if more than half is used: slow readers get a shorter timeout then.
    pub(in crate::server) fn is_half_used(&self) -> bool {
        self.bytes() > self.max / 2
    }

    /// Adds `bytes`; returns true if the total is within the limit.
    pub(in crate::server) fn add(&self, bytes: usize) -> bool {
        self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes <= self.max
    }

    pub(in crate::server) fn remove(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Registers a queue as a candidate for eviction.
    pub(in crate::server) fn register(
        &self,
        client: u64,
        account: &Arc<Account>,
        queued_bytes: &Arc<AtomicUsize>,
        queue: Weak<SendQueue>,
    ) {
        let (account, queued_bytes) = (Arc::clone(account), Arc::clone(queued_bytes));
        self.queues.lock().insert(client, Registered { account, queued_bytes, queue });
    }

    pub(in crate::server) fn unregister(&self, client: u64) {
        self.queues.lock().remove(&client);
    }

    /// Selects the connection to end so that `requester` can queue `bytes` more: the largest connection of the account that would
    /// have the most queued.
    pub(in crate::server) fn victim(
        &self,
        requester: u64,
        account: &Arc<Account>,
        bytes: usize,
    ) -> Victim {
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
