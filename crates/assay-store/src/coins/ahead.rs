//! Reads the inputs of later blocks from the disk while earlier blocks change the coins.
//!
//! The result is a hint. [`CoinStore::settle`] accepts it only under two conditions: the cache still has no entry for the
//! outpoint, so no block has spent or created it since; and there was no flush, so the disk is unchanged. [`CoinStore::load`] and
//! [`CoinStore::spend`] read everything else again, errors included.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use assay_wire::{Coin, OutPoint};
use parking_lot::{Condvar, Mutex};

use super::arena::LOADED;
use super::tier::CoinTier;
use super::{CoinError, CoinStore, LOAD_SHARE_MIN, Located, read_coin};
use crate::codec::CoinRef;

/// Coins being read, from [`CoinStore::read_ahead`] to [`CoinStore::settle`]. A drop cancels the remaining reads.
pub struct Expected {
    request: Arc<Request>,
    /// Salt of the store, and its number of flushes at the request.
    asked: (u64, u64),
}

impl Drop for Expected {
    fn drop(&mut self) {
        self.request.is_cancelled.store(true, Ordering::Relaxed);
    }
}

/// Outpoints in key order, and the coins found.
struct Request {
    outpoints: Vec<OutPoint>,
    is_cancelled: AtomicBool,
    progress: Mutex<Progress>,
    /// Signals the end of the last part.
    done: Condvar,
}

#[derive(Default)]
struct Progress {
    found: Vec<(OutPoint, Coin)>,
    /// Parts not yet finished.
    open: usize,
    is_broken: bool,
}

type Part = (Arc<Request>, Range<usize>);

impl Request {
    /// Reads a part of the outpoints and stores the coins found.
    fn read(&self, range: Range<usize>, tier: &dyn CoinTier) {
        let guard = Guard(self);
        let mut found = Vec::new();
        for outpoint in &self.outpoints[range] {
            if self.is_cancelled.load(Ordering::Relaxed) {
                break;
            }
            if let Ok(Some(coin)) = read_coin(tier, outpoint) {
                found.push((*outpoint, coin));
            }
        }
        self.progress.lock().found.append(&mut found);
        drop(guard);
    }

    /// Waits for all parts and returns the coins found.
    fn wait(&self) -> Vec<(OutPoint, Coin)> {
        let mut progress = self.progress.lock();
        while progress.open > 0 {
            self.done.wait(&mut progress);
        }
        assert!(!progress.is_broken, "a thread that reads coins has panicked");
        std::mem::take(&mut progress.found)
    }
}

/// Finishes a part on drop, also after an error or panic.
struct Guard<'r>(&'r Request);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        let mut progress = self.0.progress.lock();
        progress.is_broken |= thread::panicking();
        progress.open -= 1;
        if progress.open == 0 {
            self.0.done.notify_all();
        }
    }
}

/// Reader threads; they end with the store.
pub(super) struct Readers {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    tier: Arc<dyn CoinTier>,
    queue: Mutex<Queue>,
    wake: Condvar,
}

#[derive(Default)]
struct Queue {
    parts: VecDeque<Part>,
    is_over: bool,
}

impl Shared {
    /// Main loop of a reader thread.
    fn work(&self) {
        let mut queue = self.queue.lock();
        while !queue.is_over {
            let Some((request, range)) = queue.parts.pop_front() else {
                self.wake.wait(&mut queue);
                continue;
            };
            drop(queue);
            request.read(range, &*self.tier);
            queue = self.queue.lock();
        }
    }
}

impl Readers {
    /// Starts as many threads as possible; with none, `settle` reads.
    fn start(tier: &Arc<dyn CoinTier>, threads: usize) -> Self {
        let shared = Arc::new(Shared {
            tier: Arc::clone(tier),
            queue: Mutex::default(),
            wake: Condvar::new(),
        });
        let start = |_| {
            let shared = Arc::clone(&shared);
            let reader = thread::Builder::new().name("read-ahead".to_owned());
            reader.spawn(move || shared.work()).ok()
        };
        let threads = (0..threads).map_while(start).collect();
        Self { shared, threads }
    }

    fn submit(&self, outpoints: Vec<OutPoint>) -> Arc<Request> {
        let count = outpoints.len();
        let ranges = (0..count).step_by(LOAD_SHARE_MIN);
        let progress = Progress { open: ranges.len(), ..Progress::default() };
        let request = Arc::new(Request {
            outpoints,
            is_cancelled: AtomicBool::new(false),
            progress: Mutex::new(progress),
            done: Condvar::new(),
        });
        let mut queue = self.shared.queue.lock();
        for start in ranges {
            let range = start..(start + LOAD_SHARE_MIN).min(count);
            queue.parts.push_back((Arc::clone(&request), range));
            self.shared.wake.notify_one();
        }
        request
    }

    /// Reads the parts that no thread has started, and waits for the rest.
    fn finish(&self, request: &Arc<Request>) -> Vec<(OutPoint, Coin)> {
        loop {
            let mut queue = self.shared.queue.lock();
            let own = |(other, _): &Part| Arc::ptr_eq(other, request);
            let Some(place) = queue.parts.iter().position(own) else { break };
            let Some((_, range)) = queue.parts.remove(place) else { break };
            drop(queue);
            request.read(range, &*self.shared.tier);
        }
        request.wait()
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        {
            let mut queue = self.shared.queue.lock();
            queue.is_over = true;
            queue.parts.clear();
        }
        self.shared.wake.notify_all();
        for thread in self.threads.drain(..) {
            // The panic is already reported.
            let _ = thread.join();
        }
    }
}

impl CoinStore {
    /// Reads those of `outpoints` that are not cached and `may_exist` on up to `threads` other threads, for
    /// [`settle`](Self::settle). `None` if the disk has nothing to add.
    ///
    /// Changes in between do no harm. The results take memory outside of the cache: request inputs of the next few blocks only.
    pub fn read_ahead(
        &mut self,
        outpoints: impl IntoIterator<Item = OutPoint>,
        may_exist: impl Fn(&OutPoint) -> bool,
        threads: usize,
    ) -> Option<Expected> {
        let mut wanted = self.unknown(outpoints);
        wanted.retain(may_exist);
        if wanted.is_empty() {
            return None;
        }
        // Sort, so that neighbours on disk are read together.
        wanted.sort_unstable();
        wanted.dedup();
        let tier = &self.tier;
        let readers = self.readers.get_or_insert_with(|| Readers::start(tier, threads));
        Some(Expected { request: readers.submit(wanted), asked: self.state_on_disk() })
    }

    /// Caches the results that are still valid; call it just before the coins are needed. Returns their number.
    ///
    /// # Errors
    /// The cache is full; some coins may have been entered.
    #[expect(clippy::needless_pass_by_value, reason = "what was kept is not to be kept again")]
    pub fn settle(&mut self, expected: Expected) -> Result<usize, CoinError> {
        let Some(readers) =
            self.readers.as_ref().filter(|_| expected.asked == self.state_on_disk())
        else {
            return Ok(0);
        };
        let mut settled = 0;
        for (outpoint, coin) in readers.finish(&expected.request) {
            let at = Located { hash: self.hash(&outpoint), outpoint };
            if self.find(&at).is_none() {
                self.enter(&at, CoinRef::from(&coin), LOADED)?;
                self.unspent += 1;
                settled += 1;
            }
        }
        Ok(settled)
    }

    /// Changes with every possible change of the disk.
    fn state_on_disk(&self) -> (u64, u64) {
        (self.salt.0, self.flushes)
    }
}
