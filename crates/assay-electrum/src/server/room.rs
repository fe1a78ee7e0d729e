//! Room for what waits to be read, which all clients share.
//!
//! When it is full, the connection that ends is the largest of the address that has taken most of it, not the one that happens to ask next.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::accounts::Account;
use super::outbox::Outbox;

/// Bytes that wait, all clients together.
#[derive(Debug)]
pub(super) struct Room {
    bytes: AtomicUsize,
    max: usize,
    holders: Mutex<HashMap<u64, Holder>>,
}

/// Who may hold some of it.
#[derive(Debug)]
struct Holder {
    account: Arc<Account>,
    waiting: Arc<AtomicUsize>,
    outbox: Weak<Outbox>,
}

/// Whose connection ends.
pub(super) enum Victim {
    /// That of the one who asks.
    Asker,
    Other(Arc<Outbox>),
}

impl Room {
    pub(super) fn new(max: usize) -> Self {
        Self { bytes: AtomicUsize::new(0), max, holders: Mutex::default() }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether more than half of it is taken: time to be strict with those who do not read.
    pub(super) fn is_short(&self) -> bool {
        self.bytes() > self.max / 2
    }

    pub(super) fn add(&self, bytes: usize) -> bool {
        self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes <= self.max
    }

    pub(super) fn remove(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// From now on the outbox may have to end for others.
    pub(super) fn enter(
        &self,
        client: u64,
        account: &Arc<Account>,
        waiting: &Arc<AtomicUsize>,
        outbox: Weak<Outbox>,
    ) {
        let (account, waiting) = (Arc::clone(account), Arc::clone(waiting));
        self.holders.lock().insert(client, Holder { account, waiting, outbox });
    }

    pub(super) fn leave(&self, client: u64) {
        self.holders.lock().remove(&client);
    }

    /// Whose connection is to end so that `asker` can have `bytes` more: of the account that would hold most with them, the connection that
    /// would.
    pub(super) fn victim(&self, asker: u64, account: &Arc<Account>, bytes: usize) -> Victim {
        let mut holders = self.holders.lock();
        loop {
            let weight = |(client, holder): &(&u64, &Holder)| {
                let of_account = if Arc::ptr_eq(&holder.account, account) { bytes } else { 0 };
                let own = if **client == asker { bytes } else { 0 };
                (
                    holder.account.output_bytes() + of_account,
                    holder.waiting.load(Ordering::Relaxed) + own,
                )
            };
            let largest = holders.iter().max_by_key(weight);
            let Some((&client, holder)) = largest.filter(|(client, _)| **client != asker) else {
                return Victim::Asker;
            };
            if let Some(outbox) = holder.outbox.upgrade() {
                return Victim::Other(outbox);
            }
            // It is going, and gives its room back without us.
            holders.remove(&client);
        }
    }
}
