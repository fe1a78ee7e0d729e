//! The follower: brings the index to where the chain is, and keeps it there.
//!
//! It goes by the chain alone: back to where index and active chain part, then block by block forward. Blocks come from
//! memory where the node still has them, and from its archive otherwise, so that nothing depends on seeing every event; a
//! crash, a reorganisation while nobody looked, or an index that is switched on later are all the same case.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use assay_store::defect::{Point, Whole, point};
use assay_wire::{Block, BlockHash, OutPoint, Tx, Txid};
use parking_lot::{Condvar, Mutex};
use rayon::prelude::*;

use crate::chain::{Chain, ChainError, MempoolChanges, Moment, Tip};
use crate::index::{BlockRows, Counts, Index, Scope, ScriptHash, UpdateError, View};

/// Somebody who wants to know what the follower has done.
pub trait Listener: Send + Sync {
    /// Whether changes of the mempool are wanted.
    fn wants_mempool(&self) -> bool {
        false
    }

    /// Whether it should be told when this script is touched. Asked for every output and input of every block, from several
    /// threads.
    fn is_watched(&self, _script: &ScriptHash) -> bool {
        false
    }

    /// Appends the outputs that the transaction makes or spends and somebody wants to hear of. Asked for every transaction of
    /// every block, from several threads.
    fn add_watched_outputs(&self, _txid: &Txid, _tx: &Tx<'_>, _found: &mut Vec<OutPoint>) {}

    /// A block has become part of the index.
    fn connected(&self, _height: u32, _counts: &Counts) {}

    /// Index and mempool have reached another moment.
    fn publish(&self, _update: Update) {}
}

/// Nobody wants to know.
impl Listener for () {}

/// What has changed since the update before.
pub struct Update {
    /// The index now.
    pub view: View,
    /// Changes of the mempool up to the same moment; `None` while blocks are still being caught up with.
    pub mempool: Option<MempoolChanges>,
    /// What blocks did to what is watched.
    pub touched: Touched,
    /// The height down to which blocks were taken back, if some were.
    pub reorganised_to: Option<u32>,
}

/// What somebody watches and blocks changed, in no particular order; some may come several times.
#[derive(Debug, Default)]
pub struct Touched {
    /// Scripts that were paid to or spent from.
    pub scripts: Vec<ScriptHash>,
    /// Outputs that were made or spent.
    pub outpoints: Vec<OutPoint>,
}

impl Touched {
    fn append(&mut self, mut more: Self) {
        self.scripts.append(&mut more.scripts);
        self.outpoints.append(&mut more.outpoints);
    }
}

/// Why the follower did not get on.
#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    /// The node failed.
    #[error(transparent)]
    Chain(#[from] ChainError),
    /// The index failed.
    #[error(transparent)]
    Index(#[from] UpdateError),
    /// The node lacks a block of its active chain, or what it spent.
    #[error("the node has no {what} for block {hash}")]
    Missing {
        /// The block.
        hash: BlockHash,
        /// What is missing.
        what: &'static str,
    },
    /// The node does not have the blocks that the index has: it is of another chain.
    #[error("index and node agree on no block, not even genesis")]
    NoCommonBlock,
    /// A thread could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
}

/// Threads that follow a chain; they end when the node stops.
pub struct Follower {
    following: JoinHandle<()>,
    merging: JoinHandle<()>,
}

impl Follower {
    /// Starts to follow: one thread for the chain, `threads` more while there is much to catch up with, and one that merges
    /// runs.
    ///
    /// # Errors
    /// When threads cannot be started.
    pub fn start(
        index: Arc<Index>,
        chain: Arc<dyn Chain>,
        listener: Arc<dyn Listener>,
        threads: usize,
    ) -> Result<Self, FollowError> {
        let pool = preparers(threads)?;
        let wake = Arc::new(Wake::default());
        let merging = {
            let (index, chain, wake) = (Arc::clone(&index), Arc::clone(&chain), Arc::clone(&wake));
            let name = thread::Builder::new().name("index-merge".to_owned());
            name.spawn(move || merge_runs(&index, &*chain, &wake)).map_err(FollowError::Thread)?
        };
        let name = thread::Builder::new().name("index".to_owned());
        let follow = move || {
            let _whole = Whole::begin("what follows the chain");
            let parties = Parties { index: &index, chain: &*chain, listener: &*listener };
            let mut way = Way::new(parties, &pool);
            while !chain.is_stopping() {
                way.keep_up();
                wake.signal();
            }
            if let Err(error) = index.commit() {
                tracing::error!("could not write the index out: {error}");
            }
            wake.signal();
        };
        let following = name.spawn(follow).map_err(FollowError::Thread)?;
        Ok(Self { following, merging })
    }

    /// Waits until the threads have ended, which they do when the node stops: then everything is written out.
    pub fn join(self) {
        for thread in [self.following, self.merging] {
            if thread.join().is_err() {
                tracing::error!("a thread of the index ended abnormally");
            }
        }
    }
}

/// Brings an index to the tip of a chain and writes it out, then returns: for a chain that nobody extends meanwhile.
///
/// # Errors
/// When node or index fail; what was written out before stays.
pub fn build(
    index: &Index,
    chain: &dyn Chain,
    listener: &dyn Listener,
    threads: usize,
) -> Result<(), FollowError> {
    let pool = preparers(threads)?;
    let mut way = Way::new(Parties { index, chain, listener }, &pool);
    let (wake, is_done) = (Wake::default(), Mutex::new(false));
    thread::scope(|scope| {
        let merger = thread::Builder::new().name("index-merge".to_owned());
        let merge = || {
            loop {
                let was_done = *is_done.lock();
                match index.merge_once() {
                    Ok(true) => {}
                    Ok(false) if was_done => return,
                    Ok(false) => wake.wait(MERGE_INTERVAL),
                    Err(error) => {
                        return tracing::error!("cannot merge runs of the index: {error}");
                    }
                }
            }
        };
        merger.spawn_scoped(scope, merge).map_err(FollowError::Thread)?;
        let caught_up = way.catch_up().and_then(|()| Ok(index.commit()?));
        *is_done.lock() = true;
        wake.signal();
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

fn merge_runs(index: &Index, chain: &dyn Chain, wake: &Wake) {
    while !chain.is_stopping() {
        match index.merge_once() {
            Ok(true) => {}
            Ok(false) => wake.wait(MERGE_INTERVAL),
            Err(error) => {
                tracing::error!("cannot merge runs of the index: {error}");
                wake.wait(RETRY_INTERVAL);
            }
        }
    }
}

/// The parties.
#[derive(Clone, Copy)]
struct Parties<'a> {
    index: &'a Index,
    chain: &'a dyn Chain,
    listener: &'a dyn Listener,
}

impl Parties<'_> {
    /// Reads an archived block and makes its rows.
    fn load(&self, hash: &BlockHash) -> Result<(BlockRows, Touched), FollowError> {
        let missing = |what| FollowError::Missing { hash: *hash, what };
        let raw = self.chain.block(hash)?.ok_or_else(|| missing("data"))?;
        let block = Block::parse(raw, self.chain.encoding())
            .map_err(|source| UpdateError::Block { hash: *hash, source })?;
        let txids = block.txids(0..block.tx_count());
        let undo = match self.index.scope() {
            Scope::Txids => None,
            Scope::All => self.chain.undo(hash)?,
        };
        if undo.is_none() && block.tx_count() > 1 && self.index.scope() == Scope::All {
            return Err(missing("undo data"));
        }
        self.prepare(&block, &txids, undo.as_deref())
    }

    fn prepare(
        &self,
        block: &Block,
        txids: &[Txid],
        undo: Option<&[u8]>,
    ) -> Result<(BlockRows, Touched), FollowError> {
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

    fn connect(&self, rows: BlockRows) -> Result<Counts, FollowError> {
        point(Point::IndexFollow);
        let counts = rows.counts();
        self.index.connect(rows)?;
        let height = self.index.tip().map_or(0, |tip| tip.height);
        self.listener.connected(height, &counts);
        Ok(counts)
    }
}

/// One index on its way along one chain.
struct Way<'a> {
    parties: Parties<'a>,
    pool: &'a rayon::ThreadPool,
    /// Number of the last change of the mempool that was published.
    mempool: Option<u64>,
    seen: Option<Moment>,
    /// Number of the last change of the mempool when the node last woke us.
    woken_at: u64,
    touched: Touched,
    reorganised_to: Option<u32>,
    progress: Progress,
    committed: Instant,
}

impl<'a> Way<'a> {
    fn new(parties: Parties<'a>, pool: &'a rayon::ThreadPool) -> Self {
        Self {
            parties,
            pool,
            mempool: None,
            seen: None,
            woken_at: 0,
            touched: Touched::default(),
            reorganised_to: None,
            progress: Progress::default(),
            committed: Instant::now(),
        }
    }

    /// Goes along with what is new, and waits for more.
    fn keep_up(&mut self) {
        let Parties { index, chain, .. } = self.parties;
        if let Err(error) = self.catch_up().and_then(|()| self.publish_with_mempool()) {
            tracing::error!("the index does not get on: {error}");
            thread::sleep(RETRY_INTERVAL);
            return;
        }
        if self.committed.elapsed() >= COMMIT_INTERVAL {
            if let Err(error) = index.commit() {
                tracing::error!("could not write the index out: {error}");
            }
            self.committed = Instant::now();
        }
        if let Some(seen) = self.seen {
            let now = chain.wait(&seen, COMMIT_INTERVAL);
            if now.tip == seen.tip && !chain.is_stopping() {
                // Transactions come by the thousand: several are taken together.
                thread::sleep(MEMPOOL_INTERVAL);
            }
            self.woken_at = now.mempool;
        }
    }

    /// Brings the index to the tip.
    fn catch_up(&mut self) -> Result<(), FollowError> {
        let Parties { index, chain, .. } = self.parties;
        while !chain.is_stopping() {
            // What has just been connected comes first: no question to the node is needed, which may be at the next block.
            if let Some(tip) = index.tip()
                && let Some(block) = chain.take_connected(&tip.hash)
            {
                let prepared =
                    self.parties.prepare(block.block(), block.txids(), Some(block.undo()))?;
                drop(block);
                let (rows, touched) = prepared;
                let counts = self.parties.connect(rows)?;
                self.note(&counts, touched);
                self.publish(None);
                continue;
            }
            let tip = chain.tip();
            let Some(ours) = index.tip() else {
                let Some(genesis) = chain.hash_at(0) else { return Ok(()) };
                self.extend(&[genesis])?;
                continue;
            };
            if ours == tip {
                return Ok(());
            }
            if chain.hash_at(ours.height) != Some(ours.hash) {
                self.step_back(ours)?;
                continue;
            }
            let heights = ours.height + 1..=tip.height.min(ours.height + HEIGHTS_AT_ONCE);
            let hashes: Vec<_> = heights.map_while(|height| chain.hash_at(height)).collect();
            if hashes.is_empty() {
                return Ok(());
            }
            self.extend(&hashes)?;
        }
        Ok(())
    }

    /// Goes back to the highest block that the active chain has too.
    fn step_back(&mut self, ours: Tip) -> Result<(), FollowError> {
        let Parties { index, chain, .. } = self.parties;
        let view = index.view();
        for height in (0..ours.height).rev() {
            let hash = view.block_hash(height).map_err(UpdateError::from)?;
            if hash.is_some() && hash == chain.hash_at(height) {
                tracing::info!("index: back from height {} to {height}", ours.height);
                index.rewind(height)?;
                let lowest = self.reorganised_to.map_or(height, |before| before.min(height));
                self.reorganised_to = Some(lowest);
                return Ok(());
            }
        }
        Err(FollowError::NoCommonBlock)
    }

    /// Adds archived blocks: while the rows of some are added, those of the next are made.
    fn extend(&mut self, hashes: &[BlockHash]) -> Result<(), FollowError> {
        let parties = self.parties;
        let mut made: Vec<Result<(BlockRows, Touched), FollowError>> = Vec::new();
        let mut rest = hashes;
        loop {
            let (now, later) = rest.split_at(rest.len().min(BLOCKS_AT_ONCE));
            let before = std::mem::take(&mut made);
            let make = || now.par_iter().map(|hash| parties.load(hash)).collect();
            let connect = || -> Result<Vec<(Counts, Touched)>, FollowError> {
                let each = before.into_iter().map(|block| {
                    let (rows, touched) = block?;
                    Ok((parties.connect(rows)?, touched))
                });
                each.collect()
            };
            let connected;
            (made, connected) = self.pool.install(|| rayon::join(make, connect));
            for (counts, touched) in connected? {
                self.note(&counts, touched);
            }
            self.publish(None);
            rest = later;
            if made.is_empty() || parties.chain.is_stopping() {
                return Ok(());
            }
        }
    }

    fn note(&mut self, counts: &Counts, touched: Touched) {
        self.touched.append(touched);
        self.progress.add(counts, self.parties);
    }

    fn publish(&mut self, mempool: Option<MempoolChanges>) {
        let view = self.parties.index.view();
        if view.tip().is_none() {
            return;
        }
        self.parties.listener.publish(Update {
            view,
            mempool,
            touched: std::mem::take(&mut self.touched),
            reorganised_to: self.reorganised_to.take(),
        });
    }

    /// Publishes index and mempool as of one moment.
    fn publish_with_mempool(&mut self) -> Result<(), FollowError> {
        let Parties { index, chain, listener } = self.parties;
        if !listener.wants_mempool() {
            let tip = index.tip().unwrap_or_else(|| chain.tip());
            self.seen = Some(Moment { tip, mempool: self.woken_at });
            return Ok(());
        }
        while !chain.is_stopping() {
            let changes = chain.mempool_since(self.mempool)?;
            let moment = changes.moment;
            if index.tip() == Some(moment.tip) {
                (self.mempool, self.seen) = (Some(moment.mempool), Some(moment));
                self.publish(Some(changes));
                return Ok(());
            }
            // A block came in between: the index goes there first.
            self.catch_up()?;
        }
        Ok(())
    }
}

/// Says now and then how far a long way has come.
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
    fn add(&mut self, counts: &Counts, parties: Parties<'_>) {
        self.counts += *counts;
        let elapsed = self.since.elapsed();
        if elapsed < PROGRESS_INTERVAL {
            return;
        }
        let seconds = elapsed.as_secs_f64();
        let (height, tip) = (parties.index.tip().map_or(0, |tip| tip.height), parties.chain.tip());
        // Of the last stretch alone: a node at the tip says nothing but that a block came now and then.
        tracing::info!(
            "index: height {height} of {}, {:.0} inputs/s, {:.0} outputs/s",
            tip.height,
            self.counts.inputs as f64 / seconds,
            self.counts.outputs as f64 / seconds
        );
        *self = Self::default();
    }
}

/// Wakes the thread that merges runs.
#[derive(Default)]
struct Wake {
    lock: Mutex<()>,
    changed: Condvar,
}

impl Wake {
    fn signal(&self) {
        self.changed.notify_all();
    }

    fn wait(&self, timeout: Duration) {
        self.changed.wait_for(&mut self.lock.lock(), timeout);
    }
}

/// Blocks whose rows are made at once: few, since a block may have 256 MB.
const BLOCKS_AT_ONCE: usize = 4;
/// Heights that are asked for at once.
const HEIGHTS_AT_ONCE: u32 = 4096;
/// An index that was not written out after a crash is made again from archived blocks, faster than it was made first.
const COMMIT_INTERVAL: Duration = Duration::from_mins(5);
const MEMPOOL_INTERVAL: Duration = Duration::from_millis(5);
const MERGE_INTERVAL: Duration = Duration::from_millis(500);
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
const PROGRESS_INTERVAL: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests;
