//! Index follower: syncs indexes with the active chain.
//!
//! The follower works from the chain alone: it disconnects blocks down to the fork with the active chain, then connects block by
//! block. Recent blocks come from the node's memory and all others from its archive, so correctness does not depend on receiving
//! every event. A crash, a reorg while the follower was off, and an index enabled later are the same case. A [`Follows`] is an
//! index under construction: the script index, which follows the mempool too, or the index of block filters.

mod chain_sync;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use assay_store::defect::{Point, Whole, point};
use assay_wire::{Block, BlockHash, OutPoint, Tx, Txid};
use parking_lot::Mutex;

use crate::chain::{Chain, ChainError, MempoolChanges, SnapshotId, Tip};
use crate::filters::{self, FilterIndex, MadeFilter, RecordsError};
use crate::index::{BlockRows, Counts, Index, Scope, ScriptHash, UpdateError, View};

use chain_sync::ChainSync;
pub use chain_sync::Follows;

pub trait Listener: Send + Sync {
    /// True if the listener needs mempool changes.
    fn wants_mempool(&self) -> bool {
        false
    }

    /// True if the listener watches this script. Called for every output and input of every block, from several threads.
    fn is_watched(&self, _script: &ScriptHash) -> bool {
        false
    }

    /// Appends the watched outputs that a transaction creates or spends. Called for all of every block, from several threads.
    fn add_watched_outputs(&self, _txid: &Txid, _tx: &Tx<'_>, _found: &mut Vec<OutPoint>) {}

    fn connected(&self, _height: u32, _counts: &Counts) {}

    /// Index and mempool have reached a new state.
    fn publish(&self, _update: Update) {}
}

impl Listener for () {}

pub struct Update {
    /// The index after these changes.
    pub view: View,
    /// Mempool changes up to the same state; `None` during initial sync of the index.
    pub mempool: Option<MempoolChanges>,
    /// Watched items that blocks affected.
    pub touched: Touched,
    /// Height of the fork if blocks were disconnected.
    pub reorganised_to: Option<u32>,
}

/// Watched items that blocks affected, unordered and possibly with duplicates.
#[derive(Debug, Default)]
pub struct Touched {
    /// Scripts that were paid to or spent from.
    pub scripts: Vec<ScriptHash>,
    /// Outputs that were created or spent.
    pub outpoints: Vec<OutPoint>,
}

impl Touched {
    fn append(&mut self, mut more: Self) {
        self.scripts.append(&mut more.scripts);
        self.outpoints.append(&mut more.outpoints);
    }
}

#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    #[error(transparent)]
    Chain(#[from] ChainError),
    #[error(transparent)]
    Index(#[from] UpdateError),
    /// The node lacks a block of its active chain or its undo data.
    #[error("the node has no {what} for block {hash}")]
    Missing { hash: BlockHash, what: &'static str },
    #[error(transparent)]
    Records(#[from] RecordsError),
    /// The index and the node share no block: they belong to different chains.
    #[error("index and node agree on no block, not even genesis")]
    NoCommonBlock,
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
}

/// Threads that keep an index at the tip; they end when the node stops.
pub struct Follower {
    following: JoinHandle<()>,
    merging: Option<JoinHandle<()>>,
}

impl Follower {
    /// Starts following: one thread for the chain, `threads` more during initial sync, and one that merges runs.
    pub fn start(
        index: Arc<Index>,
        chain: Arc<dyn Chain>,
        listener: Arc<dyn Listener>,
        threads: usize,
    ) -> Result<Self, FollowError> {
        let pool = preparers(threads)?;
        let merging = {
            let (index, chain) = (Arc::clone(&index), Arc::clone(&chain));
            let name = thread::Builder::new().name("index-merge".to_owned());
            name.spawn(move || merge_runs(&index, &*chain)).map_err(FollowError::Thread)?
        };
        let merger = merging.thread().clone();
        let name = thread::Builder::new().name("index".to_owned());
        let follow = move || {
            let _whole = Whole::begin("what follows the chain");
            keep_up(&Scripts::new(&index, &*chain, &*listener), &*chain, &pool);
            merger.unpark();
        };
        let following = name.spawn(follow).map_err(FollowError::Thread)?;
        Ok(Self { following, merging: Some(merging) })
    }

    /// Starts following for an index that needs blocks only: one thread, and `threads` more during initial sync.
    pub fn start_blocks<F: Follows + 'static>(
        target: Arc<F>,
        chain: Arc<dyn Chain>,
        threads: usize,
    ) -> Result<Self, FollowError> {
        let pool = preparers(threads)?;
        let name = thread::Builder::new().name(target.name().to_owned());
        let follow = move || {
            let _whole = Whole::begin("what follows the chain");
            keep_up(&*target, &*chain, &pool);
        };
        let following = name.spawn(follow).map_err(FollowError::Thread)?;
        Ok(Self { following, merging: None })
    }

    /// Waits until the threads have ended, which happens when the node stops. All changes are committed then.
    pub fn join(self) {
        for thread in [Some(self.following), self.merging].into_iter().flatten() {
            if thread.join().is_err() {
                tracing::error!("a thread of the index ended abnormally");
            }
        }
    }
}

/// Syncs an index to the tip and commits it, for a chain that does not grow meanwhile.
///
/// # Errors
/// If node or index fail; committed blocks remain.
pub fn build(
    index: &Index,
    chain: &dyn Chain,
    listener: &dyn Listener,
    threads: usize,
) -> Result<(), FollowError> {
    let pool = preparers(threads)?;
    let scripts = Scripts::new(index, chain, listener);
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        let merger = thread::Builder::new().name("index-merge".to_owned());
        let merge = || {
            loop {
                let was_done = is_done.load(Ordering::SeqCst);
                match index.merge_once() {
                    Ok(true) => {}
                    Ok(false) if was_done => return,
                    Ok(false) => thread::park_timeout(MERGE_INTERVAL),
                    Err(error) => {
                        return tracing::error!("cannot merge runs of the index: {error}");
                    }
                }
            }
        };
        let merger = merger.spawn_scoped(scope, merge).map_err(FollowError::Thread)?;
        let sync = ChainSync { target: &scripts, chain, pool: &pool };
        let caught_up = sync.catch_up().and_then(|()| Ok(index.commit()?));
        is_done.store(true, Ordering::SeqCst);
        merger.thread().unpark();
        caught_up
    })
}

fn preparers(threads: usize) -> Result<rayon::ThreadPool, FollowError> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads.max(1))
        .thread_name(|number| format!("index-{number}"))
        .build()
        .map_err(|error| FollowError::Thread(std::io::Error::other(error)))
}

fn merge_runs(index: &Index, chain: &dyn Chain) {
    while !chain.is_stopping() {
        match index.merge_once() {
            Ok(true) => {}
            Ok(false) => thread::park_timeout(MERGE_INTERVAL),
            Err(error) => {
                tracing::error!("cannot merge runs of the index: {error}");
                thread::park_timeout(RETRY_INTERVAL);
            }
        }
    }
}

/// Follows the chain until the node stops.
fn keep_up<F: Follows>(target: &F, chain: &dyn Chain, pool: &rayon::ThreadPool) {
    let sync = ChainSync { target, chain, pool };
    let catch_up = || -> Result<(), FollowError> {
        sync.catch_up()?;
        while !chain.is_stopping() && !target.caught_up()? {
            sync.catch_up()?;
        }
        Ok(())
    };
    let commit = || {
        if let Err(error) = target.commit() {
            tracing::error!("could not write {} out: {error}", target.name());
        }
    };
    let mut committed = Instant::now();
    while !chain.is_stopping() {
        let before = chain.tip();
        if let Err(error) = catch_up() {
            tracing::error!("{} does not get on: {error}", target.name());
            thread::sleep(RETRY_INTERVAL);
            continue;
        }
        if committed.elapsed() >= COMMIT_INTERVAL {
            commit();
            committed = Instant::now();
        }
        target.wait(chain, &before);
    }
    commit();
}

struct Scripts<'a> {
    index: &'a Index,
    chain: &'a dyn Chain,
    listener: &'a dyn Listener,
    pending: Mutex<PendingEvents>,
    mempool: Mutex<MempoolState>,
}

#[derive(Default)]
struct PendingEvents {
    touched: Touched,
    reorganised_to: Option<u32>,
    progress: Progress,
}

#[derive(Default)]
struct MempoolState {
    /// Number of the last published change.
    published: Option<u64>,
    seen: Option<SnapshotId>,
    /// Number of the last change when the node last woke the follower.
    woken_at: u64,
}

impl<'a> Scripts<'a> {
    fn new(index: &'a Index, chain: &'a dyn Chain, listener: &'a dyn Listener) -> Self {
        Self { index, chain, listener, pending: Mutex::default(), mempool: Mutex::default() }
    }
}

impl Follows for Scripts<'_> {
    type Made = (BlockRows, Touched);

    fn name(&self) -> &'static str {
        "index"
    }

    fn needs_undo(&self) -> bool {
        self.index.scope() == Scope::All
    }

    fn tip(&self) -> Option<Tip> {
        self.index.tip()
    }

    fn hash_at(&self, height: u32) -> Result<Option<BlockHash>, FollowError> {
        Ok(self.index.view().block_hash(height).map_err(UpdateError::from)?)
    }

    fn make(
        &self,
        block: &Block,
        txids: &[Txid],
        undo: Option<&[u8]>,
    ) -> Result<Self::Made, FollowError> {
        point(Point::IndexRows);
        let mut touched = Touched::default();
        let rows = self.index.prepare(block, txids, undo, &mut |script| {
            if self.listener.is_watched(script) {
                touched.scripts.push(*script);
            }
        })?;
        for (tx, txid) in block.txs().zip(txids) {
            self.listener.add_watched_outputs(txid, &tx, &mut touched.outpoints);
        }
        Ok((rows, touched))
    }

    fn connect(&self, (rows, touched): Self::Made) -> Result<(), FollowError> {
        point(Point::IndexFollow);
        let counts = rows.counts();
        self.index.connect(rows)?;
        let height = self.index.tip().map_or(0, |tip| tip.height);
        self.listener.connected(height, &counts);
        let mut pending = self.pending.lock();
        pending.touched.append(touched);
        pending.progress.add(&counts, height, self.chain);
        Ok(())
    }

    fn rewind(&self, height: u32) -> Result<(), FollowError> {
        self.index.rewind(height)?;
        let mut pending = self.pending.lock();
        let lowest = pending.reorganised_to.map_or(height, |before| before.min(height));
        pending.reorganised_to = Some(lowest);
        Ok(())
    }

    fn commit(&self) -> Result<(), FollowError> {
        Ok(self.index.commit()?)
    }

    fn advanced(&self) {
        self.publish(None);
    }

    /// Publishes index and mempool as one consistent state.
    fn caught_up(&self) -> Result<bool, FollowError> {
        let mut mempool = self.mempool.lock();
        if !self.listener.wants_mempool() {
            let tip = self.index.tip().unwrap_or_else(|| self.chain.tip());
            mempool.seen = Some(SnapshotId { tip, mempool: mempool.woken_at });
            return Ok(true);
        }
        let changes = self.chain.mempool_since(mempool.published)?;
        let moment = changes.moment;
        if self.index.tip() != Some(moment.tip) {
            return Ok(false);
        }
        (mempool.published, mempool.seen) = (Some(moment.mempool), Some(moment));
        self.publish(Some(changes));
        Ok(true)
    }

    fn wait(&self, chain: &dyn Chain, _before: &Tip) {
        let mut mempool = self.mempool.lock();
        let Some(seen) = mempool.seen else { return };
        let now = chain.wait(&seen, COMMIT_INTERVAL);
        if now.tip == seen.tip && !chain.is_stopping() {
            // Transactions arrive by the thousand: batch them.
            thread::sleep(MEMPOOL_INTERVAL);
        }
        mempool.woken_at = now.mempool;
    }
}

impl Follows for FilterIndex {
    type Made = MadeFilter;

    fn name(&self) -> &'static str {
        filters::NAME
    }

    fn needs_undo(&self) -> bool {
        true
    }

    fn tip(&self) -> Option<Tip> {
        self.tip()
    }

    fn hash_at(&self, height: u32) -> Result<Option<BlockHash>, FollowError> {
        Ok(self.at(height)?.map(|entry| entry.block))
    }

    fn make(
        &self,
        block: &Block,
        _txids: &[Txid],
        undo: Option<&[u8]>,
    ) -> Result<MadeFilter, FollowError> {
        Ok(MadeFilter::new(block, undo)?)
    }

    fn connect(&self, made: MadeFilter) -> Result<(), FollowError> {
        Ok(self.connect(&made)?)
    }

    fn rewind(&self, height: u32) -> Result<(), FollowError> {
        Ok(self.rewind(height)?)
    }

    fn commit(&self) -> Result<(), FollowError> {
        Ok(self.commit()?)
    }
}

impl Scripts<'_> {
    fn publish(&self, mempool: Option<MempoolChanges>) {
        let view = self.index.view();
        if view.tip().is_none() {
            return;
        }
        let (touched, reorganised_to) = {
            let mut pending = self.pending.lock();
            (std::mem::take(&mut pending.touched), pending.reorganised_to.take())
        };
        self.listener.publish(Update { view, mempool, touched, reorganised_to });
    }
}

/// Logs the progress of a long sync at intervals.
struct Progress {
    since: Instant,
    counts: Counts,
}

impl Default for Progress {
    fn default() -> Self {
        Self { since: Instant::now(), counts: Counts::default() }
    }
}

impl Progress {
    fn add(&mut self, counts: &Counts, height: u32, chain: &dyn Chain) {
        self.counts += *counts;
        let elapsed = self.since.elapsed();
        if elapsed < PROGRESS_INTERVAL {
            return;
        }
        let seconds = elapsed.as_secs_f64();
        let tip = chain.tip();
        // Rate over the last interval. At the tip only the blocks are logged.
        tracing::info!(
            "index: height {height} of {}, {:.0} inputs/s, {:.0} outputs/s",
            tip.height,
            self.counts.inputs as f64 / seconds,
            self.counts.outputs as f64 / seconds
        );
        *self = Self::default();
    }
}

/// After a crash the uncommitted part is rebuilt from archived blocks, faster than the first time.
const COMMIT_INTERVAL: Duration = Duration::from_mins(5);
const MEMPOOL_INTERVAL: Duration = Duration::from_millis(5);
const MERGE_INTERVAL: Duration = Duration::from_millis(500);
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
const PROGRESS_INTERVAL: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests;
