//! The mempool after disconnected blocks.

use std::collections::HashSet;
use std::slice::from_ref;

use assay_wire::{OutPoint, Txid};

use super::chain::accept;
use super::fixture::{Fixture, child, txid};
use super::mint::tx;

#[test]
fn parents_return_and_children_stay() {
    let mut f = Fixture::new(|_| ());
    let parent = tx(&[(f.coinbase(1), u32::MAX)], &[90_000_000], 0);
    let next = child(&parent, 80_000_000);
    let last = child(&next, 70_000_000);
    f.offer(&parent);
    let lower = f.mine(from_ref(&parent));
    f.mine(from_ref(&next));
    f.offer(&last);
    assert_eq!(f.mempool(), HashSet::from([txid(&last)]));
    f.engine.chain().invalidate_block(&lower).unwrap();
    assert_eq!(f.engine.chain().tip().height, 105);
    assert_eq!(f.mempool(), HashSet::from([&parent, &next, &last].map(txid)));
    let entry = f.engine.mempool().entry(&txid(&next)).unwrap();
    assert_eq!((entry.depends, entry.spent_by), (vec![txid(&parent)], vec![txid(&last)]));
    f.engine.chain().reconsider_block(&lower).unwrap();
    assert_eq!(f.mempool(), HashSet::from([txid(&last)]));
}

#[test]
fn transactions_invalid_at_a_lower_tip_are_removed_with_descendants() {
    let mut f = Fixture::new(|_| ());
    let tip = f.mine(&[]);
    // The next height is 107: the coinbase of 7 is just mature, a lock time of 106 has just passed, and a relative lock on a
    // block five below the tip is just satisfied.
    let young = tx(&[(f.coinbase(7), u32::MAX)], &[90_000_000], 0);
    let young_child = child(&young, 80_000_000);
    let locked = tx(&[(f.coinbase(1), 0)], &[90_000_000], 106);
    let buried = tx(&[(f.coinbase(2), 105)], &[90_000_000], 0);
    let lasting = tx(&[(f.coinbase(3), u32::MAX)], &[90_000_000], 106);
    let all = [&young, &young_child, &locked, &buried, &lasting];
    for tx in all {
        f.offer(tx);
    }
    f.engine.chain().invalidate_block(&tip).unwrap();
    assert_eq!(f.mempool(), HashSet::from([txid(&lasting)]));
}

#[test]
fn a_branch_that_confirms_something_else_wins() {
    let mut f = Fixture::new(|_| ());
    let mut other = f.mint.clone();
    other.salt = 1;
    let (coin, free) = (f.coinbase(1), f.coinbase(2));
    let loser = tx(&[(coin, u32::MAX)], &[90_000_000], 0);
    let loser_child = child(&loser, 80_000_000);
    let winner = tx(&[(coin, u32::MAX)], &[91_000_000], 0);
    let neutral = tx(&[(free, u32::MAX)], &[90_000_000], 0);
    f.mine(&[loser, neutral.clone()]);
    f.offer(&loser_child);
    let first = other.block_of(&[winner]);
    f.engine.blocks().submit(first);
    accept(&f.engine, other.block_of(&[]));
    assert_eq!(f.mempool(), HashSet::from([txid(&neutral)]));
}

#[test]
fn of_a_deep_invalidation_only_the_last_ten_blocks_return() {
    let mut f = Fixture::new(|_| ());
    let mut txs = Vec::new();
    let mut lowest = None;
    for height in 1..=12 {
        let tx = tx(&[(f.coinbase(height), u32::MAX)], &[90_000_000], 0);
        let hash = f.mine(from_ref(&tx));
        lowest.get_or_insert(hash);
        txs.push(tx);
    }
    let orphan = child(&txs[0], 80_000_000);
    f.offer(&orphan);
    f.engine.chain().invalidate_block(&lowest.unwrap()).unwrap();
    assert_eq!(f.engine.chain().tip().height, 105);
    // Of the blocks 106 to 117, 108 and up return; the coinbases of 7 and up are immature for the next block.
    let expected: HashSet<Txid> = txs[2..6].iter().map(txid).collect();
    assert_eq!(f.mempool(), expected);
}

#[test]
fn without_room_the_last_confirmed_are_dropped() {
    let mut f = Fixture::new(|config| config.disconnected_bytes_max = 3000);
    let txs: Vec<_> =
        (1..=6).map(|height| tx(&[(f.coinbase(height), u32::MAX)], &[90_000_000], 0)).collect();
    let block = f.mine(&txs);
    let orphan = child(&txs[5], 80_000_000);
    let kept = child(&txs[0], 80_000_000);
    f.offer(&orphan);
    f.offer(&kept);
    f.engine.chain().invalidate_block(&block).unwrap();
    let mempool = f.mempool();
    let returned = txs.iter().take_while(|tx| mempool.contains(&txid(tx))).count();
    assert!((2..6).contains(&returned), "{returned}");
    assert_eq!(mempool.len(), returned + 1);
    assert!(mempool.contains(&txid(&kept)) && !mempool.contains(&txid(&orphan)));
}

#[test]
fn clusters_that_grow_together_are_cut_back() {
    let mut f = Fixture::new(|config| config.cluster_count_max = Some(4));
    // One transaction with three outputs, confirmed; two children each in the mempool make three clusters of two.
    let parent = tx(&[(f.coinbase(1), u32::MAX)], &[30_000_000, 30_000_000, 30_000_000], 0);
    let block = f.mine(from_ref(&parent));
    let mut all = vec![parent.clone()];
    for vout in 0..3 {
        let out = OutPoint { txid: txid(&parent), vout };
        let first = tx(&[(out, u32::MAX)], &[29_000_000 - i64::from(vout) * 10_000], 0);
        let second = child(&first, 20_000_000);
        f.offer(&first);
        f.offer(&second);
        all.extend([first, second]);
    }
    f.engine.chain().invalidate_block(&block).unwrap();
    let mempool = f.mempool();
    assert_eq!(mempool.len(), 4);
    assert!(mempool.contains(&txid(&parent)), "it pays most, and all others need it");
}
