//! Reading from the disk what later blocks spend, while earlier ones move.
//!
//! What is read is a hint, and [`CoinStore::settle`] takes it only where it is certain to hold: the cache still knows nothing
//! of the outpoint, so no block has spent or created it since, and nothing was flushed, so the disk is as it was when the cache
//! was asked. Everything else, errors included, is left to [`CoinStore::load`] and [`CoinStore::spend`], which read again.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use assay_wire::{Coin, OutPoint};

use super::arena::LOADED;
use super::tier::CoinTier;
use super::{CoinError, CoinStore, LOAD_SHARE_MIN, Located, read_coin};
use crate::codec::CoinRef;

/// Coins that are being read, from [`CoinStore::read_ahead`] to [`CoinStore::settle`]. When it is dropped, what was not read
/// yet is left out.
pub struct Expected {
    request: Arc<Request>,
    /// The store that was asked, by its salt, and its flushes up to then.
    asked: (u64, u64),
}

impl Drop for Expected {
    fn drop(&mut self) {
        self.request.is_cancelled.store(true, Ordering::Relaxed);
    }
}

/// Outpoints in the order of their keys, and what has been found of them.
struct Request {
    outpoints: Vec<OutPoint>,
    is_cancelled: AtomicBool,
    progress: Mutex<Progress>,
    /// The last part has been read.
    done: Condvar,
}

#[derive(Default)]
struct Progress {
    found: Vec<(OutPoint, Coin)>,
    /// Parts that are waited for.
    open: usize,
    is_broken: bool,
}

type Part = (Arc<Request>, Range<usize>);

impl Request {
    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads a part of the outpoints and notes what there is.
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
        self.lock().found.append(&mut found);
        drop(guard);
    }

    /// What has been found, once all parts are read.
    fn wait(&self) -> Vec<(OutPoint, Coin)> {
        let mut progress = self.lock();
        while progress.open > 0 {
            progress = self.done.wait(progress).unwrap_or_else(PoisonError::into_inner);
        }
        assert!(!progress.is_broken, "a thread that reads coins has panicked");
        std::mem::take(&mut progress.found)
    }
}

/// Closes a part, however its reading ends.
struct Guard<'r>(&'r Request);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        let mut progress = self.0.lock();
        progress.is_broken |= thread::panicking();
        progress.open -= 1;
        if progress.open == 0 {
            self.0.done.notify_all();
        }
    }
}

/// Threads that read ahead; they end with the store.
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
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The body of a reading thread.
    fn work(&self) {
        let mut queue = self.lock();
        while !queue.is_over {
            let Some((request, range)) = queue.parts.pop_front() else {
                queue = self.wake.wait(queue).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            drop(queue);
            request.read(range, &*self.tier);
            queue = self.lock();
        }
    }
}

impl Readers {
    /// As many threads as can be started, which may be none: then whoever settles reads.
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
        let mut queue = self.shared.lock();
        for start in ranges {
            let range = start..(start + LOAD_SHARE_MIN).min(count);
            queue.parts.push_back((Arc::clone(&request), range));
            self.shared.wake.notify_one();
        }
        request
    }

    /// Reads what no thread has begun with, and waits for the rest.
    fn finish(&self, request: &Arc<Request>) -> Vec<(OutPoint, Coin)> {
        loop {
            let mut queue = self.shared.lock();
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
            let mut queue = self.shared.lock();
            queue.is_over = true;
            queue.parts.clear();
        }
        self.shared.wake.notify_all();
        for thread in self.threads.drain(..) {
            // A thread that has panicked said so.
            let _ = thread.join();
        }
    }
}

impl CoinStore {
    /// Has those of `outpoints` that are not cached, and that `may_exist`, read from the disk by up to `threads` other threads,
    /// for [`settle`](Self::settle) to keep. `None` where the disk has nothing to add.
    ///
    /// Whatever changes in between, the coins stay right. What is read is held outside of the cache, so ask for what the next
    /// few blocks spend.
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
        // Neighbours on disk are read together.
        wanted.sort_unstable();
        wanted.dedup();
        let tier = &self.tier;
        let readers = self.readers.get_or_insert_with(|| Readers::start(tier, threads));
        Some(Expected { request: readers.submit(wanted), asked: self.state_on_disk() })
    }

    /// Keeps what was read, as far as it still holds; call it right before the coins are needed. Returns how many those are.
    ///
    /// # Errors
    /// The cache cannot take more; some coins may have been entered.
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

    /// Changes whenever the disk may.
    fn state_on_disk(&self) -> (u64, u64) {
        (self.salt.0, self.flushes)
    }
}
