//! Reorgs of a thousand blocks, with memory for many and for few coins, and with restarts on the way.

use std::path::Path;

use assay_engine::{BlockOffer, Engine, SubmitOutcome, Taken, UtxoStats};
use assay_store::{Store, StoreConfig};
use assay_wire::BlockHash;

use super::chain::{accept, inconclusive};
use super::mint::{Mint, open, params};

/// Blocks shared by both branches: the first coinbases are mature then.
const COMMON: u32 = 105;
const DEPTH: u32 = 1000;
const TXS_PER_BLOCK: usize = 4;
/// Memory for few coins, which are flushed about twenty times on the way.
const SMALL_CACHE_BYTES: usize = 512 << 10;
const LARGE_CACHE_BYTES: usize = 64 << 20;

/// Two branches above a common one. The left one is one block shorter, with two more blocks in reserve.
struct Fork {
    common: Vec<Vec<u8>>,
    left: Vec<Vec<u8>>,
    right: Vec<Vec<u8>>,
    left_more: Vec<Vec<u8>>,
    right_tip: BlockHash,
    left_tip: BlockHash,
}

impl Fork {
    fn new(depth: u32) -> Self {
        let mut trunk = Mint::new();
        let common = trunk.branch(COMMON, TXS_PER_BLOCK);
        let (mut a, mut b) = (trunk.clone(), trunk);
        (a.salt, b.salt) = (1, 2);
        let left = a.branch(depth, TXS_PER_BLOCK);
        // The right branch spends other coins first.
        let right = b.branch(depth + 1, TXS_PER_BLOCK - 1);
        let left_more = a.branch(2, TXS_PER_BLOCK);
        Self { common, left, right, left_more, right_tip: b.tip, left_tip: a.tip }
    }
}

/// The statistics that do not depend on the disk.
fn facts(stats: &UtxoStats) -> (u32, BlockHash, u64, u64, u64, Option<[u8; 32]>) {
    (
        stats.height,
        stats.hash,
        stats.txouts,
        stats.transactions,
        stats.total_amount_sat,
        stats.muhash,
    )
}

/// The coins after a run with only this branch.
fn straight(branch: &[&[Vec<u8>]]) -> UtxoStats {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path(), LARGE_CACHE_BYTES);
    for raw in branch.iter().copied().flatten() {
        accept(&engine, raw.clone());
    }
    engine.chain().utxo_stats(true).unwrap()
}

/// Switches branches back and forth; `reopen` may replace the engine between any two blocks.
fn there_and_back(
    fork: &Fork,
    dir: &Path,
    cache_bytes: usize,
    reopen: impl Fn(u32, Engine) -> Engine,
) {
    let mut engine = open(dir, cache_bytes);
    for raw in fork.common.iter().chain(&fork.left) {
        accept(&engine, raw.clone());
    }
    let left_tip = engine.chain().tip().hash;
    for (index, raw) in fork.right[..fork.left.len()].iter().enumerate() {
        inconclusive(&engine, raw);
        engine = reopen(index as u32, engine);
        assert_eq!(engine.chain().tip().hash, left_tip, "the first of equal branches stays");
    }
    accept(&engine, fork.right[fork.left.len()].clone());
    assert_eq!(engine.chain().tip().hash, fork.right_tip);
    let right = straight(&[&fork.common, &fork.right]);
    assert_eq!(facts(&engine.chain().utxo_stats(true).unwrap()), facts(&right));
    engine = reopen(DEPTH, engine);
    assert_eq!(facts(&engine.chain().utxo_stats(true).unwrap()), facts(&right));

    inconclusive(&engine, &fork.left_more[0]);
    engine = reopen(DEPTH + 1, engine);
    accept(&engine, fork.left_more[1].clone());
    assert_eq!(engine.chain().tip().hash, fork.left_tip);
    let left = straight(&[&fork.common, &fork.left, &fork.left_more]);
    assert_eq!(facts(&engine.chain().utxo_stats(true).unwrap()), facts(&left));
    engine = reopen(DEPTH + 2, engine);
    assert_eq!(engine.chain().tip().hash, fork.left_tip);
    assert_eq!(facts(&engine.chain().utxo_stats(true).unwrap()), facts(&left));
}

#[test]
fn a_thousand_blocks_and_back() {
    let fork = Fork::new(DEPTH);
    let dir = tempfile::tempdir().unwrap();
    there_and_back(&fork, dir.path(), LARGE_CACHE_BYTES, |_, engine| engine);
}

#[test]
fn a_thousand_blocks_and_back_with_memory_for_few_coins() {
    let fork = Fork::new(DEPTH);
    let dir = tempfile::tempdir().unwrap();
    there_and_back(&fork, dir.path(), SMALL_CACHE_BYTES, |_, engine| engine);
    // The engine is gone without a shutdown: its last flush is on the way back.
    let config = StoreConfig::new(dir.path(), params().disk_magic);
    let marker = Store::open(&config).unwrap().coins.tip().unwrap();
    assert!((COMMON + 1..=COMMON + DEPTH + 2).contains(&marker.height), "{marker:?}");
}

#[test]
fn the_engine_may_be_dropped_anywhere_on_the_way() {
    let fork = Fork::new(30);
    let dir = tempfile::tempdir().unwrap();
    let again = |_, engine: Engine| {
        drop(engine);
        open(dir.path(), SMALL_CACHE_BYTES)
    };
    there_and_back(&fork, dir.path(), SMALL_CACHE_BYTES, again);
}

#[test]
fn a_branch_that_fails_near_its_end_is_left_again() {
    let mut fork = Fork::new(200);
    // Its last block spends a coin twice.
    let mut cheat = Mint::new();
    cheat.branch(COMMON, TXS_PER_BLOCK);
    cheat.salt = 2;
    cheat.branch(200, TXS_PER_BLOCK - 1);
    let spend = cheat.spend().unwrap();
    let first = spend.view().input(0).prevout;
    let again = super::mint::tx(&[(first, u32::MAX)], &[1000], 0);
    fork.right[200] = cheat.block_of(&[spend, again]);

    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path(), SMALL_CACHE_BYTES);
    for raw in fork.common.iter().chain(&fork.left) {
        accept(&engine, raw.clone());
    }
    for raw in &fork.right[..200] {
        inconclusive(&engine, raw);
    }
    assert_eq!(
        super::chain::reason(&engine, fork.right[200].clone()),
        "bad-txns-inputs-missingorspent"
    );
    let left = straight(&[&fork.common, &fork.left]);
    assert_eq!(facts(&engine.chain().utxo_stats(true).unwrap()), facts(&left));
    let outcome = engine.blocks().submit(fork.right[200].clone());
    assert!(matches!(outcome, SubmitOutcome::DuplicateInvalid), "{outcome:?}");
    drop(engine);
    let engine = open(dir.path(), SMALL_CACHE_BYTES);
    assert_eq!(facts(&engine.chain().utxo_stats(true).unwrap()), facts(&left));
    let outcome = engine.blocks().submit(fork.right[200].clone());
    assert!(matches!(outcome, SubmitOutcome::DuplicateInvalid), "{outcome:?}");
}

#[test]
fn the_published_tip_never_loses_work() {
    let fork = Fork::new(30);
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path(), SMALL_CACHE_BYTES);
    for raw in fork.common.iter().chain(&fork.left) {
        accept(&engine, raw.clone());
    }
    for raw in &fork.right {
        let taken = engine.blocks().take(BlockOffer::requested(raw.clone()));
        assert!(matches!(taken, Taken::Kept(_)), "{taken:?}");
    }
    let left = engine.chain().tip();
    let look = || {
        // Headers of any peer publish the tip.
        engine.blocks().take_headers(&[]).unwrap();
        assert!(engine.chain().tip().height >= left.height, "{:?}", engine.chain().tip());
        false
    };
    let report = engine.blocks().connect(look).unwrap();
    assert!(report.is_done && report.faults.is_empty(), "{report:?}");
    assert_eq!(engine.chain().tip().hash, fork.right_tip);
}
