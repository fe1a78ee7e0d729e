//! Read-ahead: separate threads read, parse, hash and check blocks as far as possible without coins, and return them in height
//! order.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use assay_consensus::block::BlockRules;
use assay_consensus::params::ChainParams;
use assay_store::{BlockFiles, BlockPlace};
use assay_wire::BlockHash;

use crate::files::{Chain, Fault, Refused, first_whole, read_block};
use crate::prepared::Prepared;

/// A block that has passed all checks without coins.
pub(crate) struct Ready {
    pub(crate) prepared: Prepared,
    pub(crate) rules: BlockRules,
    pub(crate) place: BlockPlace,
}

/// Supplies blocks and processes them independently of other blocks.
pub(crate) trait Source: Sync {
    type Ready: Send;
    type Fault: Send;

    /// Upper bound of the size of the block at a height, bytes.
    fn bytes_of(&self, height: u32) -> u64;

    /// Reads and processes the block at a height.
    fn get_ready(&self, height: u32) -> Result<Self::Ready, Self::Fault>;
}

/// State shared by the reader threads.
pub(crate) struct Prefetch<S: Source> {
    source: S,
    bytes_max: u64,
    last: u32,
    state: Mutex<State<S>>,
    room: Condvar,
    arrived: Condvar,
}

struct State<S: Source> {
    /// The next height to read, and the next to return.
    next: u32,
    wanted: u32,
    /// Bytes of blocks being read or not yet returned.
    bytes: u64,
    ready: BTreeMap<u32, Result<S::Ready, S::Fault>>,
    is_over: bool,
    is_broken: bool,
}

impl<S: Source> Prefetch<S> {
    /// Reads heights `first` to `last`, while at most `bytes_max` bytes are pending.
    pub(crate) fn new(source: S, (first, last): (u32, u32), bytes_max: u64) -> Self {
        let state = State {
            next: first,
            wanted: first,
            bytes: 0,
            ready: BTreeMap::new(),
            is_over: false,
            is_broken: false,
        };
        Self {
            source,
            bytes_max,
            last,
            state: Mutex::new(state),
            room: Condvar::new(),
            arrived: Condvar::new(),
        }
    }

    /// Runs `consume` while as many threads read; `failed` turns an error of their start into one of the caller's.
    pub(crate) fn with_readers<T, E>(
        &self,
        readers: usize,
        failed: impl Fn(&std::io::Error) -> E,
        consume: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        std::thread::scope(|scope| {
            // Also on unwind of this thread, so that the scope ends.
            let _ending = Ending(self);
            for _ in 0..readers {
                let reader = std::thread::Builder::new().name("read-blocks".to_owned());
                reader.spawn_scoped(scope, || self.work()).map_err(|error| failed(&error))?;
            }
            consume()
        })
    }

    /// Main loop of a reader thread; returns when all is read or after [`Prefetch::end`].
    fn work(&self) {
        let guard = Guard(self);
        while let Some(height) = self.take_height() {
            let outcome = self.source.get_ready(height);
            let mut state = self.lock();
            state.ready.insert(height, outcome);
            if height == state.wanted {
                self.arrived.notify_all();
            }
        }
        drop(guard);
    }

    fn take_height(&self) -> Option<u32> {
        let mut state = self.lock();
        loop {
            if state.is_over || state.next > self.last {
                return None;
            }
            if let Some(height) = self.claim(&mut state) {
                return Some(height);
            }
            state = self.room.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The next height to read, if any, and if there is room for its block.
    fn claim(&self, state: &mut State<S>) -> Option<u32> {
        let height = state.next;
        // The block that the consumer waits for is always read, however large it is.
        let has_room = state.bytes < self.bytes_max || height == state.wanted;
        if height > self.last || !has_room {
            return None;
        }
        state.next += 1;
        state.bytes += self.source.bytes_of(height);
        Some(height)
    }

    /// The next block in height order; must not be called after the last one. While another thread reads it, this one reads later
    /// blocks: if coins move faster than blocks are read, no core waits.
    pub(crate) fn next(&self) -> Result<S::Ready, S::Fault> {
        let mut state = self.lock();
        loop {
            if let Some(outcome) = self.take(&mut state) {
                return outcome;
            }
            assert!(!state.is_broken, "a reading thread has panicked");
            if let Some(height) = self.claim(&mut state) {
                drop(state);
                let outcome = self.source.get_ready(height);
                state = self.lock();
                state.ready.insert(height, outcome);
            } else {
                state = self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    /// The next block, if it is ready.
    pub(crate) fn try_next(&self) -> Option<Result<S::Ready, S::Fault>> {
        self.take(&mut self.lock())
    }

    fn take(&self, state: &mut State<S>) -> Option<Result<S::Ready, S::Fault>> {
        let height = state.wanted;
        let outcome = state.ready.remove(&height)?;
        state.wanted += 1;
        state.bytes -= self.source.bytes_of(height);
        self.room.notify_all();
        Some(outcome)
    }

    /// Makes the reader threads return.
    fn end(&self) {
        self.lock().is_over = true;
        self.room.notify_all();
    }

    pub(crate) fn into_source(self) -> S {
        self.source
    }

    fn lock(&self) -> MutexGuard<'_, State<S>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The blocks of a branch in block files.
pub(crate) struct BlockSource<'a> {
    pub(crate) params: &'a ChainParams,
    pub(crate) files: &'a BlockFiles,
    pub(crate) chain: &'a Chain<'a>,
}

impl Source for BlockSource<'_> {
    type Ready = Ready;
    type Fault = Refused;

    /// Length of its longest record.
    fn bytes_of(&self, height: u32) -> u64 {
        let sizes = self.chain.copies(height).map(|entry| u64::from(entry.place.size));
        sizes.max().unwrap_or(0)
    }

    fn get_ready(&self, height: u32) -> Result<Ready, Refused> {
        let hash = self.chain.hash(height);
        let copies = self.chain.copies(height).map(|entry| entry.place);
        first_whole(copies, |place| self.read(height, (place, hash)))
    }
}

impl BlockSource<'_> {
    fn read(&self, height: u32, (place, hash): (BlockPlace, BlockHash)) -> Result<Ready, Fault> {
        let params = self.params;
        let prepared = read_block(params, self.files, (&place, &hash))?;
        let view = self.chain.up_to(height - 1);
        let rules = BlockRules::new(params, &view, prepared.block.header(), &hash);
        prepared.check(params, &rules).map_err(|error| Fault::judged(params, &prepared, error))?;
        Ok(Ready { prepared, rules, place })
    }
}

/// Notifies the consumer when a reader thread unwinds.
struct Guard<'p, S: Source>(&'p Prefetch<S>);

impl<S: Source> Drop for Guard<'_, S> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.lock().is_broken = true;
            self.0.arrived.notify_all();
        }
    }
}

/// Ends the read-ahead on drop.
struct Ending<'p, S: Source>(&'p Prefetch<S>);

impl<S: Source> Drop for Ending<'_, S> {
    fn drop(&mut self) {
        self.0.end();
    }
}
