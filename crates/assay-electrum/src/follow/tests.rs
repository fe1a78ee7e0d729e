//! The follower on growing and reorganising chains, in large and small steps.

use std::sync::atomic::AtomicUsize;

use assay_store::io::{Io, SimIo};
use parking_lot::Condvar;

use super::*;
use crate::index::IndexConfig;
use crate::index::fixture::{Random, TestBlock, branches};
use crate::testing::{FakeChain, StoredBlock};

fn stored(chain: &[TestBlock]) -> impl Iterator<Item = StoredBlock> {
    chain.iter().map(|made| (made.raw.clone(), made.undo.clone()))
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
        let chain = FakeChain::default();
        let index = index(&branches[0][0]);
        for branch in &branches {
            chain.set(stored(branch));
            build(&index, &chain, &(), 2).unwrap();
            branch.last().unwrap().after.check(&index.view());
        }
    }
}

#[test]
fn uses_blocks_in_memory_and_ignores_stale_ones() {
    let branches = branches(&mut Random(3), 12, true);
    let chain = FakeChain::default();
    let index = index(&branches[0][0]);
    for branch in &branches {
        // All blocks ever created, unordered and including stale branches.
        *chain.fresh.lock() = branches.iter().flat_map(|branch| stored(branch)).collect();
        chain.set(stored(branch));
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
    let chain = Arc::new(FakeChain::default());
    chain.set(stored(&branches[0]));
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
        chain.set(stored(branch));
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
    chain.stop();
    follower.join();
    model.check(&index.view());
    // After the end everything is on disk.
    assert_eq!(index.usage().rows_in_memory, 0);
}
