//! Removes the subscriptions of clients that disconnected, on a thread of its own.
//!
//! A client may have tens of thousands of subscriptions. They are removed a few at a time, client
//! by client, with a pause in between, so that neither locks nor cores are kept from the others.
//! The connection counts as open until all are removed: an address that connects and disconnects
//! with many subscriptions cannot exceed its limits by those that are still being removed.

use std::collections::{VecDeque, hash_set};
use std::sync::Arc;
use std::time::Duration;

use assay_wire::OutPoint;
use parking_lot::{Condvar, Mutex};

use super::registry::Subscriptions;
use crate::index::ScriptHash;
use crate::server::limits::accounts::ConnectionSlot;

/// Subscriptions that are removed at once, and the pause afterwards.
const STEP: usize = 64;
const PAUSE: Duration = Duration::from_millis(1);

/// The subscriptions of a client that disconnected.
pub(in crate::server) struct Removal {
    pub(in crate::server) client: u64,
    pub(in crate::server) scripts: hash_set::IntoIter<ScriptHash>,
    pub(in crate::server) outpoints: hash_set::IntoIter<OutPoint>,
    /// Counts as open until all are removed.
    pub(in crate::server) connection: Arc<ConnectionSlot>,
}

impl Removal {
    /// Removes some; says whether there are more.
    pub(in crate::server) fn step(&mut self, subscriptions: &Subscriptions) -> bool {
        let mut count = 0;
        for script in self.scripts.by_ref().take(STEP) {
            subscriptions.unsubscribe_script(&script, self.client);
            count += 1;
        }
        for outpoint in self.outpoints.by_ref().take(STEP - count) {
            subscriptions.unsubscribe_outpoint(&outpoint, self.client);
            count += 1;
        }
        subscriptions.release(self.connection.account(), count);
        self.scripts.len() + self.outpoints.len() > 0
    }
}

/// Clients that disconnected; never more than connections are allowed.
#[derive(Default)]
pub(in crate::server) struct Removals {
    queue: Mutex<Queue>,
    filled: Condvar,
}

#[derive(Default)]
struct Queue {
    removals: VecDeque<Removal>,
    stopping: bool,
}

impl Removals {
    /// Queues `removal`, unless the server stops.
    pub(in crate::server) fn add(&self, removal: Removal) {
        let mut queue = self.queue.lock();
        if !queue.stopping {
            queue.removals.push_back(removal);
            self.filled.notify_one();
        }
    }

    /// Removes until [`Removals::stop`].
    pub(in crate::server) fn run(&self, subscriptions: &Subscriptions) {
        loop {
            let mut removal = {
                let mut queue = self.queue.lock();
                loop {
                    if queue.stopping {
                        return;
                    }
                    if let Some(removal) = queue.removals.pop_front() {
                        break removal;
                    }
                    self.filled.wait(&mut queue);
                }
            };
            if removal.step(subscriptions) {
                self.add(removal);
                std::thread::sleep(PAUSE);
            }
        }
    }

    /// Ends [`Removals::run`]. What remains is dropped.
    pub(in crate::server) fn stop(&self) {
        let mut queue = self.queue.lock();
        queue.stopping = true;
        let left = std::mem::take(&mut queue.removals);
        self.filled.notify_all();
        drop(queue);
        drop(left);
    }
}
