//! Gives up what clients had subscribed to that have left, on a thread of its own.
//!
//! A client may have tens of thousands of subscriptions. They are given up a few at a time, client by client, with a pause in between,
//! so that neither locks nor cores are kept from those who stay. The connection counts as open until all are given up: who comes
//! and goes with many subscriptions cannot have more of them on the way out than inside.

use std::collections::{VecDeque, hash_set};
use std::sync::Arc;
use std::time::Duration;

use assay_wire::OutPoint;
use parking_lot::{Condvar, Mutex};

use super::hub::Hub;
use super::shared::Connection;
use crate::index::ScriptHash;

/// Subscriptions that are given up in one go, and the pause after it.
const STEP: usize = 64;
const PAUSE: Duration = Duration::from_millis(1);

/// What a client had.
pub(super) struct Departure {
    pub(super) client: u64,
    pub(super) scripts: hash_set::IntoIter<ScriptHash>,
    pub(super) outpoints: hash_set::IntoIter<OutPoint>,
    /// Keeps its place until all is done.
    pub(super) connection: Arc<Connection>,
}

impl Departure {
    /// Gives up some; says whether there are more.
    pub(super) fn step(&mut self, hub: &Hub) -> bool {
        let mut count = 0;
        for script in self.scripts.by_ref().take(STEP) {
            hub.unsubscribe_script(&script, self.client);
            count += 1;
        }
        for outpoint in self.outpoints.by_ref().take(STEP - count) {
            hub.unsubscribe_outpoint(&outpoint, self.client);
            count += 1;
        }
        hub.release(self.connection.account(), count);
        self.scripts.len() + self.outpoints.len() > 0
    }
}

/// Those who have left. There are never more of them than connections are allowed.
#[derive(Default)]
pub(super) struct Departures {
    queue: Mutex<Queue>,
    filled: Condvar,
}

#[derive(Default)]
struct Queue {
    departures: VecDeque<Departure>,
    stopping: bool,
}

impl Departures {
    /// Leaves the rest to the thread.
    pub(super) fn add(&self, departure: Departure) {
        let mut queue = self.queue.lock();
        if !queue.stopping {
            queue.departures.push_back(departure);
            self.filled.notify_one();
        }
    }

    /// Works until [`Departures::stop`].
    pub(super) fn run(&self, hub: &Hub) {
        loop {
            let mut departure = {
                let mut queue = self.queue.lock();
                loop {
                    if queue.stopping {
                        return;
                    }
                    if let Some(departure) = queue.departures.pop_front() {
                        break departure;
                    }
                    self.filled.wait(&mut queue);
                }
            };
            if departure.step(hub) {
                // Not after a stop: a client that has left keeps the server in memory.
                self.add(departure);
                std::thread::sleep(PAUSE);
            }
        }
    }

    /// Ends [`Departures::run`]. What is left goes with the server.
    pub(super) fn stop(&self) {
        let mut queue = self.queue.lock();
        queue.stopping = true;
        let left = std::mem::take(&mut queue.departures);
        self.filled.notify_all();
        drop(queue);
        drop(left);
    }
}
