//! Invalidating, reconsidering and preferring blocks; headers before blocks.

use std::path::Path;

use assay_engine::{ChainTipStatus, ControlError, Engine, SubmitOutcome};
use assay_wire::{BlockHash, Header};

use super::chain::{accept, hash, inconclusive};
use super::mint::{Mint, open};

const CACHE_BYTES: usize = 16 << 20;

fn header(raw: &[u8]) -> Header {
    Header::parse(raw.first_chunk().unwrap())
}

/// Hash, branch length and status of all branches.
fn tips(engine: &Engine) -> Vec<(BlockHash, u32, ChainTipStatus)> {
    engine.chain().tips().into_iter().map(|tip| (tip.hash, tip.branch_length, tip.status)).collect()
}

/// A chain of 110 blocks, and a branch of `length` blocks above height 105.
struct Branches {
    main: Vec<Vec<u8>>,
    side: Vec<Vec<u8>>,
}

impl Branches {
    fn new(length: u32) -> Self {
        let mut mint = Mint::new();
        let mut main = mint.branch(105, 2);
        let mut other = mint.clone();
        main.extend(mint.branch(5, 2));
        other.salt = 1;
        Self { main, side: other.branch(length, 1) }
    }

    fn open(&self, dir: &Path) -> Engine {
        let engine = open(dir, CACHE_BYTES);
        for raw in &self.main {
            accept(&engine, raw.clone());
        }
        for raw in &self.side {
            inconclusive(&engine, raw);
        }
        engine
    }

    fn main_hash(&self, height: usize) -> BlockHash {
        hash(&self.main[height - 1])
    }

    fn side_tip(&self) -> BlockHash {
        hash(self.side.last().unwrap())
    }
}

#[test]
fn an_invalidated_branch_stays_so_until_it_is_reconsidered() {
    use ChainTipStatus::{Active, Invalid, ValidFork, ValidHeaders};
    let branches = Branches::new(3);
    let dir = tempfile::tempdir().unwrap();
    let engine = branches.open(dir.path());
    let (main_tip, side_tip) = (branches.main_hash(110), branches.side_tip());
    assert_eq!(tips(&engine), [(main_tip, 0, Active), (side_tip, 3, ValidHeaders)]);
    let before = engine.chain().utxo_stats(true).unwrap();

    engine.chain().invalidate_block(&branches.main_hash(107)).unwrap();
    assert_eq!(engine.chain().tip().hash, side_tip);
    assert_eq!(tips(&engine), [(main_tip, 5, Invalid), (side_tip, 0, Active)]);
    // Its child is rejected.
    let next = engine.blocks().submit(branches.main[109].clone());
    assert!(matches!(next, SubmitOutcome::DuplicateInvalid), "{next:?}");

    // The side branch too: the part of the main branch below the invalid block is the best then.
    engine.chain().invalidate_block(&hash(&branches.side[0])).unwrap();
    assert_eq!(engine.chain().tip().hash, branches.main_hash(106));
    assert_eq!(
        tips(&engine),
        [(main_tip, 4, Invalid), (side_tip, 3, Invalid), (branches.main_hash(106), 0, Active)]
    );
    // Neither was flushed with the coins: a restart finds the old tip in them, and leaves it.
    drop(engine);
    let engine = open(dir.path(), CACHE_BYTES);
    assert_eq!(engine.chain().tip().hash, branches.main_hash(106));
    assert_eq!(tips(&engine).len(), 3);
    engine.shutdown().unwrap();
    drop(engine);
    let engine = open(dir.path(), CACHE_BYTES);
    assert_eq!(engine.chain().tip().hash, branches.main_hash(106));

    // A block in the middle clears the marks below and above it.
    engine.chain().reconsider_block(&branches.main_hash(109)).unwrap();
    assert_eq!(tips(&engine), [(main_tip, 0, Active), (side_tip, 3, Invalid)]);
    assert_eq!(engine.chain().utxo_stats(true).unwrap().muhash, before.muhash);
    engine.chain().reconsider_block(&side_tip).unwrap();
    assert_eq!(tips(&engine), [(main_tip, 0, Active), (side_tip, 3, ValidFork)]);
    drop(engine);
    let engine = open(dir.path(), CACHE_BYTES);
    assert_eq!(tips(&engine), [(main_tip, 0, Active), (side_tip, 3, ValidFork)]);
}

#[test]
fn genesis_and_unknown_blocks() {
    let branches = Branches::new(1);
    let dir = tempfile::tempdir().unwrap();
    let engine = branches.open(dir.path());
    let tip = engine.chain().tip();
    engine.chain().invalidate_block(&engine.chain().hash_at(0).unwrap()).unwrap();
    engine.chain().reconsider_block(&engine.chain().hash_at(0).unwrap()).unwrap();
    engine.chain().precious_block(&engine.chain().hash_at(0).unwrap()).unwrap();
    assert_eq!(engine.chain().tip(), tip);
    let unknown = BlockHash([7; 32]);
    for outcome in [
        engine.chain().invalidate_block(&unknown),
        engine.chain().reconsider_block(&unknown),
        engine.chain().precious_block(&unknown),
    ] {
        assert!(matches!(outcome, Err(ControlError::UnknownBlock { hash }) if hash == unknown));
    }
    // All the way down, and up again.
    engine.chain().invalidate_block(&branches.main_hash(1)).unwrap();
    assert_eq!(engine.chain().tip().height, 0);
    assert_eq!(engine.chain().utxo_stats(true).unwrap().txouts, 0);
    engine.chain().reconsider_block(&branches.main_hash(1)).unwrap();
    assert_eq!(engine.chain().tip(), tip);
    engine.shutdown().unwrap();
    assert!(matches!(engine.chain().invalidate_block(&tip.hash), Err(ControlError::Engine(_))));
}

#[test]
fn of_equal_branches_the_preferred_one_is_active() {
    let branches = Branches::new(5);
    let dir = tempfile::tempdir().unwrap();
    let engine = branches.open(dir.path());
    let (main_tip, side_tip) = (branches.main_hash(110), branches.side_tip());
    assert_eq!(engine.chain().tip().hash, main_tip);
    for want in [side_tip, main_tip, side_tip] {
        engine.chain().precious_block(&want).unwrap();
        assert_eq!(engine.chain().tip().hash, want);
    }
    // Less work is never preferred.
    engine.chain().precious_block(&branches.main_hash(109)).unwrap();
    assert_eq!(engine.chain().tip().hash, side_tip);
    // A clean restart keeps the tip, but not the preference.
    engine.shutdown().unwrap();
    drop(engine);
    let engine = open(dir.path(), CACHE_BYTES);
    assert_eq!(engine.chain().tip().hash, side_tip);
}

#[test]
fn headers_may_come_first_and_blocks_in_any_order() {
    use ChainTipStatus::{Active, HeadersOnly};
    let mut mint = Mint::new();
    let blocks = mint.branch(6, 0);
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path(), CACHE_BYTES);
    let genesis = engine.chain().tip().hash;
    let outcome = engine.blocks().submit_header(&header(&blocks[1]));
    assert!(
        matches!(&outcome, SubmitOutcome::Rejected { reason, .. } if reason == "prev-blk-not-found"),
        "{outcome:?}"
    );
    for raw in &blocks {
        let outcome = engine.blocks().submit_header(&header(raw));
        assert!(matches!(outcome, SubmitOutcome::Inconclusive), "{outcome:?}");
    }
    assert!(matches!(engine.blocks().submit_header(&header(&blocks[0])), SubmitOutcome::Duplicate));
    assert_eq!((engine.chain().tip().height, engine.chain().header_height()), (0, 6));
    assert_eq!(tips(&engine), [(hash(&blocks[5]), 6, HeadersOnly), (genesis, 0, Active)]);
    for index in [5, 2, 3] {
        inconclusive(&engine, &blocks[index]);
    }
    drop(engine);
    let engine = open(dir.path(), CACHE_BYTES);
    assert_eq!((engine.chain().tip().height, engine.chain().header_height()), (0, 6));
    accept(&engine, blocks[0].clone());
    assert_eq!(engine.chain().tip().height, 1);
    let again = engine.blocks().submit(blocks[2].clone());
    assert!(matches!(again, SubmitOutcome::DuplicateInconclusive), "{again:?}");
    accept(&engine, blocks[1].clone());
    assert_eq!(engine.chain().tip().height, 4);
    accept(&engine, blocks[4].clone());
    assert_eq!(engine.chain().tip().height, 6);
    drop(engine);
    assert_eq!(open(dir.path(), CACHE_BYTES).chain().tip().height, 6);
}

#[test]
fn ten_thousand_bad_blocks_are_cheap() {
    let mut mint = Mint::new();
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path(), CACHE_BYTES);
    for raw in mint.branch(105, 1) {
        accept(&engine, raw);
    }
    let mut cheat = mint.clone();
    let spend = cheat.spend().unwrap();
    let missing = assay_wire::OutPoint { txid: assay_wire::Txid([9; 32]), vout: 0 };
    let bad = super::mint::tx(&[(missing, u32::MAX)], &[1000], 0);
    let params = super::mint::params();
    let mut raw = cheat.block_of(&[spend, bad]);
    let start = std::time::Instant::now();
    for count in 0..10_000u32 {
        // Another time, another block.
        let time = header(&raw).time + 1;
        raw[68..72].copy_from_slice(&time.to_le_bytes());
        super::chain::repair(&mut raw, &params);
        let outcome = engine.blocks().submit(raw.clone());
        assert!(matches!(outcome, SubmitOutcome::Rejected { .. }), "{count}: {outcome:?}");
    }
    println!("10,000 invalid blocks in {} ms", start.elapsed().as_millis());
    accept(&engine, mint.block(1));
    assert_eq!(engine.chain().tips().len(), 10_001);
}
