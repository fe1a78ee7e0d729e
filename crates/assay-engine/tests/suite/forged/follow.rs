//! Followers of the engine: connected blocks, and changes of the mempool.

use std::collections::HashMap;
use std::slice::from_ref;
use std::thread;
use std::time::Duration;

use assay_engine::{Config, Engine, MempoolDelta, UNCONFIRMED_HEIGHT, UnconfirmedTx};
use assay_wire::{BlockHash, Txid};

use super::chain::{Forged, accept};
use super::fixture::{Fixture, child, txid};
use super::mint::tx;

/// A follower's copy of the mempool.
#[derive(Default)]
struct Followed {
    sequence: Option<u64>,
    txs: HashMap<Txid, UnconfirmedTx>,
}

impl Followed {
    /// Applies the changes, and compares the result with the mempool.
    fn catch_up(&mut self, engine: &Engine) -> MempoolDelta {
        let delta = engine.mempool().changes_since(self.sequence).unwrap();
        assert_eq!(delta.tip, engine.chain().tip());
        if delta.from_scratch {
            self.txs.clear();
        }
        for txid in &delta.removed {
            self.txs.remove(txid);
        }
        for tx in &delta.added {
            assert_eq!(tx.spent.len(), tx.tx.view().input_count());
            self.txs.insert(tx.txid, tx.clone());
        }
        self.sequence = Some(delta.sequence);
        let mut expected = engine.mempool().txids();
        let mut found: Vec<_> = self.txs.keys().copied().collect();
        expected.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, expected);
        for (txid, tx) in &self.txs {
            let entry = engine.mempool().entry(txid).unwrap();
            assert_eq!((entry.fee_sat, entry.vsize), (tx.fee_sat, tx.vsize));
            let spent: i64 = tx.spent.iter().map(|coin| coin.value).sum();
            let paid: i64 = tx.tx.view().outputs().map(|output| output.value).sum();
            assert_eq!(spent - paid, tx.fee_sat);
        }
        delta
    }
}

#[test]
fn every_block_is_handed_over_once_with_its_undo_data() {
    for recipe in ["bch-scaling", "bitcoin-scaling"] {
        let forged = Forged::new(recipe, 21, None);
        let datadir = tempfile::tempdir().unwrap();
        let mut config = Config::new(datadir.path(), forged.params());
        config.is_followed = true;
        let engine = Engine::open(config).unwrap();
        let mut followed = Followed::default();
        let mut at = engine.chain().tip().hash;
        for height in 1..=forged.height() {
            for verdict in engine.mempool().submit_all(forged.seen(height, 0.5), None) {
                verdict.unwrap();
            }
            followed.catch_up(&engine);
            accept(&engine, forged.block(height));
            // Sometimes several are taken together.
            if height % 3 == 0 || height == forged.height() {
                while let Some(block) = engine.blocks().take_connected(0, &at) {
                    at = block.block().hash();
                    assert_eq!(block.txids(), block.block().txids(0..block.block().tx_count()));
                    let undo = engine.blocks().read_undo(&at).unwrap();
                    assert_eq!(undo.as_deref(), Some(block.undo()));
                    let (offset, whole) = (80, block.block().bytes());
                    let part = engine.blocks().read_part(&at, offset, 5).unwrap();
                    assert_eq!(part.as_deref(), Some(&whole[80..85]));
                }
                assert_eq!(at, engine.chain().tip().hash);
            }
            followed.catch_up(&engine);
        }
        assert!(engine.blocks().take_connected(0, &at).is_none());
        forged.check_tip(&engine);
    }
}

#[test]
fn the_mempool_can_be_followed_through_reorganisations() {
    let mut f = Fixture::new(|config| config.is_followed = true);
    let mut followed = Followed::default();
    assert!(followed.catch_up(&f.engine).from_scratch);
    let parent = tx(&[(f.coinbase(1), u32::MAX)], &[90_000_000], 0);
    let next = child(&parent, 80_000_000);
    let last = child(&next, 70_000_000);
    f.offer(&parent);
    f.offer(&next);
    let delta = followed.catch_up(&f.engine);
    assert!(!delta.from_scratch && delta.removed.is_empty());
    let heights: Vec<u32> = delta.added.iter().map(|tx| tx.spent[0].height).collect();
    assert_eq!(heights, [1, UNCONFIRMED_HEIGHT]);
    let lower = f.mine(from_ref(&parent));
    let delta = followed.catch_up(&f.engine);
    assert_eq!((delta.removed, delta.added.len()), (vec![txid(&parent)], 0));
    f.mine(from_ref(&next));
    f.offer(&last);
    followed.catch_up(&f.engine);
    f.engine.chain().invalidate_block(&lower).unwrap();
    assert_eq!(followed.catch_up(&f.engine).added.len(), 2);
    f.engine.chain().reconsider_block(&lower).unwrap();
    assert_eq!(followed.catch_up(&f.engine).removed.len(), 2);
    // A trial leaves no trace.
    f.engine.mempool().test_accept(vec![child(&last, 60_000_000).bytes().to_vec()], None);
    assert!(followed.catch_up(&f.engine).added.is_empty());
}

#[test]
fn changes_wake_a_waiting_follower() {
    let f = Fixture::new(|config| config.is_followed = true);
    let offer = tx(&[(f.coinbase(1), u32::MAX)], &[90_000_000], 0);
    let long = Duration::from_mins(10);
    let (tip, sequence) = f.engine.wait_for_news((BlockHash::ZERO, 0), long);
    let engine = &f.engine;
    thread::scope(|scope| {
        let waiting = scope.spawn(|| engine.wait_for_news((tip.hash, sequence), long));
        engine.mempool().submit(offer.bytes().to_vec(), None).unwrap();
        assert_eq!(waiting.join().unwrap(), (tip, sequence + 1));
        // A past change ends the wait at once.
        assert_eq!(engine.wait_for_news((tip.hash, sequence), long), (tip, sequence + 1));
        let waiting = scope.spawn(|| engine.wait_for_news((tip.hash, sequence + 1), long));
        engine.shutdown().unwrap();
        waiting.join().unwrap();
        assert!(engine.is_shutting_down());
    });
}

#[test]
fn the_chain_can_be_served() {
    let forged = Forged::new("bch-scaling", 21, Some(12));
    let datadir = tempfile::tempdir().unwrap();
    let engine = Engine::open(Config::new(datadir.path(), forged.params())).unwrap();
    for height in 1..=12 {
        accept(&engine, forged.block(height));
    }
    let hash = |height| engine.chain().hash_at(height).unwrap();
    let (unknown, none) = (BlockHash([9; 32]), BlockHash::ZERO);
    let heights = |locator: &[BlockHash], stop, max| -> Vec<u32> {
        let found = engine.chain().headers_after(locator, &stop, max).unwrap();
        assert!(found.iter().all(|(hash, header)| header.hash() == *hash));
        found.iter().map(|(hash, _)| engine.chain().entry(hash).unwrap().height).collect()
    };
    assert_eq!(heights(&[hash(9)], none, 2000), [10, 11, 12]);
    assert_eq!(heights(&[unknown, hash(4), hash(0)], hash(6), 2000), [5, 6]);
    assert_eq!(heights(&[unknown], none, 3), [1, 2, 3]);
    assert_eq!(heights(&[], hash(7), 2000), [7]);
    assert!(engine.chain().headers_after(&[], &unknown, 2000).is_none());
    assert!(heights(&[hash(12)], none, 2000).is_empty());
    for height in [0, 1, 12] {
        let block = engine.blocks().archived(&hash(height)).unwrap();
        assert_eq!((block.height(), *block.hash()), (height, hash(height)));
        let whole = engine.blocks().read(&hash(height)).unwrap().unwrap();
        assert_eq!(block.size() as usize, whole.len());
        let mut part = [0; 11];
        engine.blocks().read_archived(&block, 70, &mut part).unwrap();
        assert_eq!(part, whole[70..81]);
        assert!(engine.blocks().read_archived(&block, block.size() - 10, &mut part).is_err());
        assert!(engine.blocks().read_archived(&block, u32::MAX, &mut part).is_err());
    }
    // The headers after a stale block start at its fork point; an invalid block is not served.
    let (tip, below) = (hash(12), hash(11));
    engine.chain().invalidate_block(&below).unwrap();
    assert!(engine.blocks().archived(&tip).is_none() && engine.blocks().archived(&below).is_none());
    assert_eq!(engine.chain().headers_since(&tip, 9), Some(Vec::new()));
    assert_eq!(engine.chain().headers_since(&hash(8), 9).unwrap().len(), 2);
    assert!(engine.chain().headers_since(&unknown, 9).is_none());
}
