//! Removes the subscriptions of disconnected clients on a separate thread.
//!
//! A client may have tens of thousands of subscriptions. They are removed in small steps, client by client, with pauses in
//! between, so that other threads get locks and cores. The connection counts as open until all are removed, so an address cannot
//! exceed its limits by reconnecting during removal.

use std::collections::{VecDeque, hash_set};
use std::sync::Arc;
use std::time::Duration;

use assay_wire::OutPoint;
use parking_lot::{Condvar, Mutex};

use super::registry::Subscriptions;
use crate::index::ScriptHash;
use crate::server::limits::client_budget::ConnectionSlot;

/// Subscriptions removed per step, and the pause afterwards.
const STEP: usize = 64;
const PAUSE: Duration = Duration::from_millis(1);

/// The subscriptions of a disconnected client.
pub(in crate::server) struct Removal {
    pub(in crate::server) client: u64,
    pub(in crate::server) scripts: hash_set::IntoIter<ScriptHash>,
    pub(in crate::server) outpoints: hash_set::IntoIter<OutPoint>,
    /// Counts as open until all are removed.
    pub(in crate::server) connection: Arc<ConnectionSlot>,
}

impl Removal {
    /// Removes some; returns true if more remain.
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

/// Disconnected clients; bounded by the connection limit.
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
    /// Queues `removal`, except during shutdown.
    pub(in crate::server) fn add(&self, removal: Removal) {
        let mut queue = self.queue.lock();
        if !queue.stopping {
            queue.removals.push_back(removal);
            self.filled.notify_one();
        }
    }

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

    /// Ends [`Removals::run`]. Remaining entries are dropped.
    pub(in crate::server) fn stop(&self) {
        let mut queue = self.queue.lock();
        queue.stopping = true;
        let left = std::mem::take(&mut queue.removals);
        self.filled.notify_all();
        drop(queue);
        drop(left);
    }
}
