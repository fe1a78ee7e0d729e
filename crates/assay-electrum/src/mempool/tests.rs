//! The mempool against a list of transactions.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use assay_wire::{OutPoint, Txid};
use proptest::prelude::*;

use super::*;
use crate::chain::{MempoolChange, MempoolTx};
use crate::index::ScriptHash;
use crate::testing::{changes, out, tx, unconfirmed};

const A: &[u8] = b"script a";
const B: &[u8] = b"script b";

fn confirmed(n: u8) -> OutPoint {
    OutPoint { txid: Txid([n; 32]), vout: 0 }
}

fn added(list: &[&MempoolTx]) -> Vec<MempoolChange> {
    list.iter().map(|tx| MempoolChange::Added((*tx).clone())).collect()
}

/// Applies at once the steps of a publisher; returns the touched scripts.
fn apply(pool: &mut Mempool, list: Vec<MempoolChange>) -> HashSet<ScriptHash> {
    let mut batch = Batch::new(changes(false, list));
    let mut touched = HashSet::new();
    while pool.stage(&mut batch, 2, &mut |script: &ScriptHash| {
        touched.insert(*script);
    }) {}
    pool.turn();
    while pool.purge(1) {}
    touched
}

fn history(pool: &Mempool, script: &[u8]) -> Vec<(Txid, i32)> {
    let history = pool.history(&ScriptHash::of(script), 100).unwrap().sorted();
    history.iter().map(|entry| (entry.txid, entry.height())).collect()
}

fn outputs(pool: &Mempool, script: &[u8]) -> ScriptMempool {
    let script = ScriptHash::of(script);
    ScriptMempool::new(&script, &pool.touching(&script, 50_000).unwrap())
}

#[test]
fn parents_in_the_mempool_make_the_height_minus_one() {
    let mut pool = Mempool::default();
    let parent = tx(&[confirmed(1)], &[(900, A), (50, B)], 1);
    let child = tx(&[out(&parent, 0)], &[(800, A)], 2);
    let parent_in = unconfirmed(&parent, &[(1000, A)], 50);
    let child_in = unconfirmed(&child, &[(900, A)], 100);
    apply(&mut pool, added(&[&parent_in, &child_in]));
    let (p, c) = (parent.view().txid(), child.view().txid());
    assert_eq!(history(&pool, A), [(p, 0), (c, -1)]);
    assert_eq!(history(&pool, B), [(p, 0)]);
    assert_eq!(pool.balance_delta(&ScriptHash::of(A)), -200);
    let outputs = outputs(&pool, A);
    assert_eq!(outputs.created, [Created { outpoint: out(&child, 0), value: 800 }]);
    assert_eq!(outputs.spent, HashSet::from([confirmed(1), out(&parent, 0)]));
    assert_eq!(pool.spender(&out(&parent, 0)).unwrap().txid, c);
    // The parent is confirmed: the child's scripts are touched although the child is not.
    let touched = apply(&mut pool, vec![MempoolChange::Removed(p)]);
    assert!(touched.contains(&ScriptHash::of(A)) && touched.contains(&ScriptHash::of(B)));
    assert_eq!(history(&pool, A), [(c, 0)]);
    assert_eq!(history(&pool, B), []);
    // A reorganisation brings the parent back.
    let touched = apply(&mut pool, added(&[&parent_in]));
    assert!(touched.contains(&ScriptHash::of(A)));
    assert_eq!(history(&pool, A), [(p, 0), (c, -1)]);
    assert_eq!(pool.history(&ScriptHash::of(A), 1), Err(TooMany { max: 1 }));
}

#[test]
fn the_order_is_that_of_the_specification() {
    // Heights 0 before -1, then by txid as printed.
    let mut pool = Mempool::default();
    let roots: Vec<_> = (0..20).map(|n| tx(&[confirmed(n)], &[(10, A)], n.into())).collect();
    let children: Vec<_> = roots.iter().map(|root| tx(&[out(root, 0)], &[(9, A)], 0)).collect();
    let all: Vec<_> =
        roots.iter().chain(&children).map(|tx| unconfirmed(tx, &[(10, A)], 1)).collect();
    apply(&mut pool, added(&all.iter().collect::<Vec<_>>()));
    let printed = |list: &[assay_wire::Transaction], height: i32| {
        let mut list: Vec<_> =
            list.iter().map(|tx| (tx.view().txid().to_string(), height)).collect();
        list.sort();
        list
    };
    let expected = [printed(&roots, 0), printed(&children, -1)].concat();
    let got: Vec<_> =
        history(&pool, A).iter().map(|(txid, height)| (txid.to_string(), *height)).collect();
    assert_eq!(got, expected);
}

#[test]
fn changes_are_atomic() {
    let mut pool = Mempool::default();
    let first = tx(&[confirmed(1)], &[(10, A)], 1);
    let second = tx(&[confirmed(1)], &[(9, B)], 2);
    let (first_in, second_in) =
        (unconfirmed(&first, &[(11, A)], 1), unconfirmed(&second, &[(11, A)], 2));
    apply(&mut pool, added(&[&first_in]));
    // The second replaces the first: while staged, both are present and one is visible.
    let mut replaced = added(&[&second_in]);
    replaced.insert(0, MempoolChange::Removed(first_in.txid));
    let mut batch = Batch::new(changes(false, replaced));
    while pool.stage(&mut batch, 1, &mut |_: &ScriptHash| {}) {
        assert_eq!(pool.spender(&confirmed(1)).unwrap().txid, first_in.txid);
        assert_eq!(pool.balance_delta(&ScriptHash::of(A)), -1);
    }
    assert_eq!(history(&pool, A), [(first_in.txid, 0)]);
    assert_eq!(history(&pool, B), []);
    assert_eq!(pool.spender(&confirmed(1)).unwrap().txid, first_in.txid);
    assert!(pool.transaction(&second_in.txid).is_none());
    pool.turn();
    assert_eq!(pool.balance_delta(&ScriptHash::of(A)), -11);
    assert_eq!(pool.balance_delta(&ScriptHash::of(B)), 9);
    assert_eq!(history(&pool, A), [(second_in.txid, 0)]);
    assert_eq!(pool.spender(&confirmed(1)).unwrap().txid, second_in.txid);
    assert!(pool.transaction(&first_in.txid).is_none());
    while pool.purge(1) {}
    assert_eq!(pool.spender(&confirmed(1)).unwrap().txid, second_in.txid);
    assert_eq!((pool.len(), pool.recent(5).len()), (1, 1));
}

#[test]
fn transaction_added_and_removed_in_a_batch_is_absent() {
    let mut pool = Mempool::default();
    let gone = unconfirmed(&tx(&[confirmed(1)], &[(10, A)], 1), &[(11, A)], 1);
    let mut list = added(&[&gone]);
    list.push(MempoolChange::Removed(gone.txid));
    assert_eq!(apply(&mut pool, list), HashSet::new());
    assert!(pool.is_empty());
    apply(&mut pool, added(&[&gone]));
    // Removed and added again is present.
    let mut list = vec![MempoolChange::Removed(gone.txid)];
    list.extend(added(&[&gone]));
    apply(&mut pool, list);
    assert_eq!(pool.len(), 1);
    assert_eq!(pool.spender(&confirmed(1)).unwrap().txid, gone.txid);
}

#[test]
fn unspendable_outputs_are_not_indexed() {
    const DATA: &[u8] = b"\x6a data";
    let mut pool = Mempool::default();
    let paid = unconfirmed(&tx(&[confirmed(1)], &[(0, DATA), (10, A)], 1), &[(11, A)], 1);
    let touched = apply(&mut pool, added(&[&paid]));
    assert_eq!(touched, HashSet::from([ScriptHash::of(A)]));
    assert_eq!(history(&pool, DATA), []);
}

#[test]
fn the_histogram_is_that_of_electrumx() {
    let mut fees = FeeHistogram::default();
    for (rate, vsize) in [(50, 60_000), (40, 60_000), (30, 300_000), (20, 10_000), (1, 150_000)] {
        fees.add(i64::from(vsize) * rate, vsize);
    }
    // 50 and 40 fill the first bin; 30 is a bin of its own; 20 joins 1.
    assert_eq!(fees.compact(), [(400, 120_000), (300, 300_000), (10, 160_000)]);
    assert_eq!(fees.estimate(1, 200_000, 100), Some(30_100));
    assert_eq!(fees.estimate(2, 200_000, 100), Some(30_100));
    assert_eq!(fees.estimate(10, 1_000_000, 100), Some(100));
    assert_eq!(FeeHistogram::default().estimate(1, 1_000_000, 100), None);
    fees.remove(60_000 * 50, 60_000);
    assert_eq!(fees.vsize(), 520_000);
    assert_eq!(FeeHistogram::default().compact(), []);
}

#[test]
fn a_long_chain_of_transactions_costs_no_more_than_lone_ones() {
    let mut pool = Mempool::default();
    let mut previous = confirmed(1);
    let mut list = Vec::new();
    for n in 0..44_000 {
        let next = tx(&[previous], &[(1000, A)], n);
        previous = out(&next, 0);
        list.push(unconfirmed(&next, &[(1000, A)], 0));
    }
    let start = Instant::now();
    apply(&mut pool, added(&list.iter().collect::<Vec<_>>()));
    let script = ScriptHash::of(A);
    assert_eq!(pool.history(&script, 50_000).unwrap().sorted().len(), 44_000);
    assert_eq!(outputs(&pool, A).created.len(), 1);
    apply(&mut pool, list.iter().map(|tx| MempoolChange::Removed(tx.txid)).collect());
    assert!(pool.is_empty());
    // Takes a second on the slowest machine; walking ancestors would take minutes.
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

/// Reference result for a script, from a list of transactions.
fn model(list: &[MempoolTx], script: &[u8]) -> (HashSet<(Txid, i32)>, i64) {
    let known: HashSet<Txid> = list.iter().map(|tx| tx.txid).collect();
    let mut history = HashSet::new();
    let mut balance = 0;
    for tx in list {
        let paid: i64 =
            tx.tx.view().outputs().filter(|o| o.script_pubkey == script).map(|o| o.value).sum();
        let spent = tx.spent.iter().filter(|coin| *coin.script_pubkey == *script);
        let touches =
            tx.tx.view().outputs().any(|o| o.script_pubkey == script) || spent.clone().count() > 0;
        balance += paid - spent.map(|coin| coin.value).sum::<i64>();
        if touches {
            let chained = tx.tx.view().inputs().any(|i| known.contains(&i.prevout.txid));
            history.insert((tx.txid, -i32::from(chained)));
        }
    }
    (history, balance)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Random additions and removals, a few at a time, in steps of any size.
    #[test]
    fn mempool_matches_list_model(steps in prop::collection::vec((0u8..3, any::<u16>()), 1..120)) {
        let scripts: Vec<Vec<u8>> = (0..4u8).map(|n| vec![n; 3]).collect();
        let mut pool = Mempool::default();
        let mut list: Vec<MempoolTx> = Vec::new();
        let mut pending = Vec::new();
        for (tag, (what, random)) in steps.into_iter().enumerate() {
            let pick = |count: usize, shift: u32| (usize::from(random) >> shift) % count.max(1);
            match what {
                0 | 1 => {
                    let (paid, own) = (&scripts[pick(4, 0)], &scripts[pick(4, 2)]);
                    let input = match list.get(pick(list.len(), 4)) {
                        Some(parent) if what == 1 => OutPoint { txid: parent.txid, vout: tag as u32 },
                        _ => confirmed(random as u8),
                    };
                    let made = tx(&[input], &[(100, paid), (7, own)], tag as u32);
                    let made = unconfirmed(&made, &[(150, own)], 43);
                    pending.push(MempoolChange::Added(made.clone()));
                    list.push(made);
                }
                _ if !list.is_empty() => {
                    let gone = list.remove(pick(list.len(), 0));
                    pending.push(MempoolChange::Removed(gone.txid));
                }
                _ => {}
            }
            if random % 3 == 0 {
                apply(&mut pool, std::mem::take(&mut pending));
                for script in &scripts {
                    let (expected, balance) = model(&list, script);
                    let got: HashSet<_> = history(&pool, script).into_iter().collect();
                    prop_assert_eq!(got, expected);
                    prop_assert_eq!(pool.balance_delta(&ScriptHash::of(script)), balance);
                }
            }
        }
    }
}
