//! The follower on growing and reorganising chains, in large and small steps.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use assay_store::io::{Io, SimIo};
use assay_wire::{Encoding, Txid};

use super::*;
use crate::chain::{Connected, ConnectedBlock, Refusal, Relay, TestVerdict};
use crate::index::IndexConfig;
use crate::index::fixture::{Random, TestBlock, branches};

/// A node with blocks only: no mempool.
struct Blocks {
    active: Mutex<Vec<TestBlock>>,
    /// Blocks still in memory.
    fresh: Mutex<Vec<TestBlock>>,
    changed: Condvar,
    is_stopping: AtomicBool,
    reads: AtomicUsize,
}

struct Fresh {
    block: Block,
    txids: Vec<Txid>,
    undo: Vec<u8>,
}

impl ConnectedBlock for Fresh {
    fn block(&self) -> &Block {
        &self.block
    }
    fn txids(&self) -> &[Txid] {
        &self.txids
    }
    fn undo(&self) -> &[u8] {
        &self.undo
    }
}

impl Blocks {
    fn new(chain: &[TestBlock]) -> Self {
        Self {
            active: Mutex::new(chain.to_vec()),
            fresh: Mutex::default(),
            changed: Condvar::new(),
            is_stopping: AtomicBool::new(false),
            reads: AtomicUsize::new(0),
        }
    }

    fn set(&self, chain: &[TestBlock]) {
        *self.active.lock() = chain.to_vec();
        self.changed.notify_all();
    }

    fn find(&self, hash: &BlockHash) -> Option<TestBlock> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.active.lock().iter().find(|made| made.block().hash() == *hash).cloned()
    }
}

impl Chain for Blocks {
    fn encoding(&self) -> Encoding {
        Encoding::Legacy
    }

    fn tip(&self) -> Tip {
        let active = self.active.lock();
        let height = active.len() as u32 - 1;
        Tip { height, hash: active[height as usize].block().hash() }
    }

    fn wait(&self, seen: &Moment, timeout: Duration) -> Moment {
        let mut active = self.active.lock();
        let is_news = |active: &mut Vec<TestBlock>| {
            active[active.len() - 1].block().hash() != seen.tip.hash || self.is_stopping()
        };
        if !is_news(&mut active) {
            self.changed.wait_while_for(&mut active, |active| !is_news(active), timeout);
        }
        drop(active);
        Moment { tip: self.tip(), mempool: 0 }
    }

    fn wait_for_tip(&self, seen: &Tip, timeout: Duration) {
        self.wait(&Moment { tip: *seen, mempool: 0 }, timeout);
    }

    fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::SeqCst)
    }

    fn hash_at(&self, height: u32) -> Option<BlockHash> {
        self.active.lock().get(height as usize).map(|made| made.block().hash())
    }

    fn take_connected(&self, parent: &BlockHash) -> Option<Connected> {
        let mut fresh = self.fresh.lock();
        let is_next = |made: &TestBlock| made.block().header().prev_block == *parent;
        let made = fresh.iter().position(is_next).map(|at| fresh.remove(at))?;
        let block = made.block();
        let txids = block.txids(0..block.tx_count());
        Some(Box::new(Fresh { block, txids, undo: made.undo }))
    }

    fn block(&self, hash: &BlockHash) -> Result<Option<Vec<u8>>, ChainError> {
        Ok(self.find(hash).map(|made| made.raw))
    }

    fn block_part(&self, _: &BlockHash, _: u32, _: u32) -> Result<Option<Vec<u8>>, ChainError> {
        unreachable!("the follower reads whole blocks")
    }

    fn block_part_at_once(&self, _: &BlockHash, _: u32, _: u32) -> Option<Vec<u8>> {
        unreachable!("the follower reads whole blocks")
    }

    fn undo(&self, hash: &BlockHash) -> Result<Option<Vec<u8>>, ChainError> {
        Ok(self.find(hash).map(|made| made.undo))
    }

    fn mempool_since(&self, since: Option<u64>) -> Result<MempoolChanges, ChainError> {
        let moment = Moment { tip: self.tip(), mempool: 0 };
        Ok(MempoolChanges { moment, from_scratch: since.is_none(), changes: Vec::new() })
    }

    fn broadcast(&self, _: &[u8]) -> Result<Txid, Refusal> {
        unreachable!("the follower sends nothing")
    }

    fn test(&self, _: &[Vec<u8>]) -> Vec<TestVerdict> {
        unreachable!("the follower sends nothing")
    }

    fn relay(&self) -> Relay {
        unreachable!("the follower has no transactions")
    }

    fn relay_at_once(&self) -> Option<Relay> {
        unreachable!("the follower has no transactions")
    }
}

fn index(genesis: &TestBlock) -> Arc<Index> {
    let io: Arc<dyn Io> = Arc::new(SimIo::new());
    let mut config = IndexConfig::new("index", genesis.block().hash());
    config.memory_bytes_max = 5000;
    Arc::new(Index::open(config, io).unwrap())
}

#[test]
fn build_follows_reorgs() {
    for seed in 0..4 {
        let branches = branches(&mut Random(seed), 20, false);
        let chain = Blocks::new(&branches[0]);
        let index = index(&branches[0][0]);
        for branch in &branches {
            chain.set(branch);
            build(&index, &chain, &(), 2).unwrap();
            branch.last().unwrap().after.check(&index.view());
        }
    }
}

#[test]
fn uses_blocks_in_memory_and_ignores_stale_ones() {
    let branches = branches(&mut Random(3), 12, true);
    let chain = Blocks::new(&branches[0]);
    let index = index(&branches[0][0]);
    for branch in &branches {
        // All blocks ever created, unordered and including stale branches.
        *chain.fresh.lock() = branches.iter().flatten().cloned().collect();
        chain.set(branch);
        build(&index, &chain, &(), 2).unwrap();
        branch.last().unwrap().after.check(&index.view());
    }
    assert!(chain.reads.load(Ordering::Relaxed) < branches.iter().map(Vec::len).sum());
}

struct Recorder {
    updates: Mutex<Vec<(Tip, bool, Option<u32>)>>,
    changed: Condvar,
    watched: ScriptHash,
    touched: AtomicUsize,
}

impl Listener for Recorder {
    fn wants_mempool(&self) -> bool {
        true
    }

    fn is_watched(&self, script: &ScriptHash) -> bool {
        *script == self.watched
    }

    fn publish(&self, update: Update) {
        self.touched.fetch_add(update.touched.scripts.len(), Ordering::Relaxed);
        assert!(update.touched.scripts.iter().all(|script| *script == self.watched));
        let tip = update.view.tip().expect("published views have a tip");
        self.updates.lock().push((tip, update.mempool.is_some(), update.reorganised_to));
        self.changed.notify_all();
    }
}

#[test]
fn a_running_follower_reaches_every_tip_and_ends_with_the_node() {
    let branches = branches(&mut Random(8), 20, false);
    let last = branches.last().unwrap();
    let model = &last.last().unwrap().after;
    let (watched, _) = model.history.iter().max_by_key(|(_, entries)| entries.len()).unwrap();
    let chain = Arc::new(Blocks::new(&branches[0]));
    let index = index(&branches[0][0]);
    let recorder = Arc::new(Recorder {
        updates: Mutex::default(),
        changed: Condvar::new(),
        watched: *watched,
        touched: AtomicUsize::new(0),
    });
    let listener: Arc<dyn Listener> = Arc::clone(&recorder) as _;
    let node: Arc<dyn Chain> = Arc::clone(&chain) as _;
    let follower = Follower::start(Arc::clone(&index), node, listener, 2).unwrap();
    let mut reorganisations = 0;
    for branch in &branches {
        let before = chain.tip();
        chain.set(branch);
        let tip = chain.tip();
        if tip == before && index.tip().is_some() {
            continue;
        }
        let mut updates = recorder.updates.lock();
        while !updates.iter().any(|(at, has_mempool, _)| *at == tip && *has_mempool) {
            recorder.changed.wait(&mut updates);
        }
        reorganisations += updates.iter().filter(|update| update.2.is_some()).count();
        updates.clear();
    }
    assert!(reorganisations > 0);
    assert!(recorder.touched.load(Ordering::Relaxed) > 0);
    chain.is_stopping.store(true, Ordering::SeqCst);
    chain.changed.notify_all();
    follower.join();
    model.check(&index.view());
    // After the end everything is on disk.
    assert_eq!(index.usage().rows_in_memory, 0);
}
