//! Expensive transactions: tangled clusters, replacements that fail late, blocks that split clusters.

use std::collections::HashSet;
use std::slice::from_ref;
use std::sync::atomic::{AtomicBool, Ordering};

use assay_wire::{OutPoint, Transaction, Txid};

use super::chain::accept;
use super::fixture::{Fixture, txid};
use super::mint::tx;

/// Value of each coin created here.
const VALUE: i64 = 100_000;

fn out(of: &Transaction, vout: u32) -> OutPoint {
    OutPoint { txid: txid(of), vout }
}

/// Confirmed coins of [`VALUE`] each.
fn coins(f: &mut Fixture, count: usize) -> Vec<OutPoint> {
    let fan = tx(&[(f.coinbase(1), u32::MAX)], &vec![VALUE; count], 0);
    f.mine(from_ref(&fan));
    (0..count as u32).map(|vout| out(&fan, vout)).collect()
}

fn spend(inputs: &[OutPoint], values: &[i64]) -> Transaction {
    let inputs: Vec<_> = inputs.iter().map(|outpoint| (*outpoint, u32::MAX)).collect();
    tx(&inputs, values, 0)
}

/// Half of the transactions spend coins, the others an output of each of those, at nearly equal fee rates. The last one spends
/// another coin too.
fn tangle(coins: &[OutPoint], half: usize, salt: i64) -> Vec<Transaction> {
    let mut all: Vec<Transaction> = coins[..half]
        .iter()
        .zip(0..)
        .map(|(coin, index)| {
            let each = (VALUE - 3000 - (index * 7 + salt) % 31) / half as i64;
            spend(&[*coin], &vec![each; half])
        })
        .collect();
    for child in 0..half as u32 {
        let parents = all[..half].iter().enumerate();
        let wanted = parents.filter(|(index, _)| (index * 5 + child as usize * 3) % 7 < 4);
        let mut inputs: Vec<OutPoint> = wanted.map(|(_, parent)| out(parent, child)).collect();
        let mut value = inputs.len() as i64 * ((VALUE - 3031) / half as i64);
        if child as usize == half - 1 {
            inputs.push(coins[half]);
            value += VALUE;
        }
        let fee = 100 * inputs.len() as i64 + i64::from(child) * 3 % 17;
        all.push(spend(&inputs, &[value - fee]));
    }
    all
}

fn raws(txs: &[Transaction]) -> Vec<Vec<u8>> {
    txs.iter().map(|tx| tx.bytes().to_vec()).collect()
}

#[test]
fn work_per_transaction_is_bounded_and_a_failed_replacement_costs_nothing_again() {
    let mut f = Fixture::new(|_| ());
    let coins = coins(&mut f, 33 * 10);
    let clusters: Vec<Vec<Transaction>> =
        coins.chunks(33).zip(0..).map(|(part, salt)| tangle(part, 32, salt)).collect();
    let mut most = 0;
    for tx in clusters.iter().flatten() {
        let (verdicts, work) = f.engine.mempool().submit_all_with_work(raws(from_ref(tx)), None);
        assert!(verdicts[0].is_ok(), "{verdicts:?}");
        most = most.max(work);
    }
    // One cluster changes, and its linearization ends soon after the limit.
    assert!((1..100_000).contains(&most), "{most}");
    let size = f.engine.mempool().info().size;
    assert_eq!(size, 640);

    // Pays for all that it replaces, at a lower rate.
    let baits: Vec<OutPoint> = coins.chunks(33).map(|part| part[32]).collect();
    let replacement = spend(&baits, &[(10 * VALUE - 60_000) / 1500; 1500]);
    let attempt = |raw: &Transaction| {
        let (verdicts, work) = f.engine.mempool().submit_all_with_work(raws(from_ref(raw)), None);
        (verdicts[0].as_ref().unwrap_err().reason.clone(), work)
    };
    let (reason, work) = attempt(&replacement);
    assert_eq!(reason, "replacement-failed");
    assert!((1..20 * 100_000).contains(&work), "{work}");
    assert_eq!(attempt(&replacement), (reason.clone(), 0), "it is known");
    // A cluster has changed, so the check is repeated.
    let block = f.mint.block_of(from_ref(&clusters[3][0]));
    accept(&f.engine, block);
    assert_eq!(f.engine.mempool().info().size, size - 1);
    let (again, work) = attempt(&replacement);
    assert!(again == reason && work > 0, "{again} {work}");
    assert_eq!(f.engine.mempool().info().size, size - 1);
    // One with a sufficient fee rate succeeds.
    let better = spend(&baits, &[10 * VALUE - 200_000]);
    f.offer(&better);
    assert_eq!(f.engine.mempool().info().size, size - 1 - 10 + 1);
}

#[test]
fn a_block_removes_its_transactions_and_conflicts_from_many_clusters() {
    let mut f = Fixture::new(|_| ());
    let coins = coins(&mut f, 17 * 12);
    let clusters: Vec<Vec<Transaction>> =
        coins.chunks(17).zip(0..).map(|(part, salt)| tangle(part, 16, salt)).collect();
    let mut expected = HashSet::new();
    for tx in clusters.iter().flatten() {
        expected.insert(f.offer(tx));
    }
    // A few parents of some clusters, and for others a conflicting transaction.
    let mut block = Vec::new();
    for (index, cluster) in clusters.iter().enumerate() {
        let parent = &cluster[index % 16];
        if index % 3 == 0 {
            block.push(parent.clone());
            expected.remove(&txid(parent));
        } else if index % 3 == 1 {
            block.push(spend(&[coins[index * 17 + index % 16]], &[VALUE - 500]));
            // Its children go too.
            expected.remove(&txid(parent));
            for child in &cluster[16..] {
                if child.view().inputs().any(|input| input.prevout.txid == txid(parent)) {
                    expected.remove(&txid(child));
                }
            }
        }
    }
    f.mine(&block);
    assert_eq!(f.mempool(), expected);
    // The rest is consistent: everything can be confirmed.
    let mut left: Vec<Transaction> =
        clusters.iter().flatten().filter(|tx| expected.contains(&txid(tx))).cloned().collect();
    let rest = left.split_off(left.len() / 2);
    f.mine(&left);
    f.mine(&rest);
    let info = f.engine.mempool().info();
    assert_eq!((info.size, info.bytes, info.usage, info.total_fee_sat), (0, 0, 0, 0));
}

#[test]
fn blocks_and_submissions_from_many_threads_leave_one_consistent_state() {
    let mut f = Fixture::new(|config| config.mempool_bytes_max = 400_000);
    let coins = coins(&mut f, 17 * 20);
    let clusters: Vec<Vec<Transaction>> =
        coins.chunks(17).zip(0..).map(|(part, salt)| tangle(part, 16, salt)).collect();
    let blocks: Vec<Vec<u8>> = clusters.iter().map(|all| f.mint.block_of(&all[..8])).collect();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let (engine, clusters, is_over) = (&f.engine, &clusters, &is_over);
            scope.spawn(move || {
                for cluster in clusters.iter().cycle().skip(thread * 5) {
                    for part in raws(cluster).chunks(3) {
                        engine.mempool().submit_all(part.to_vec(), None);
                        engine.mempool().test_accept(part.to_vec(), None);
                    }
                    if is_over.load(Ordering::Acquire) {
                        return;
                    }
                }
            });
        }
        for block in blocks {
            accept(&f.engine, block);
        }
        is_over.store(true, Ordering::Release);
    });
    let info = f.engine.mempool().info();
    let entries = f.engine.mempool().entries();
    assert!(info.usage <= info.max_bytes);
    assert_eq!(info.size, entries.len());
    assert_eq!(info.bytes, entries.iter().map(|entry| u64::from(entry.vsize)).sum::<u64>());
    let txids: HashSet<Txid> = f.mempool();
    for entry in &entries {
        assert!(entry.depends.iter().all(|parent| txids.contains(parent)));
        let tx = f.engine.mempool().tx(&entry.txid).unwrap();
        for input in tx.view().inputs() {
            let is_there = txids.contains(&input.prevout.txid)
                || f.engine.chain().coin(&input.prevout, false).unwrap().is_some();
            assert!(is_there, "{:?}", input.prevout);
        }
    }
    // No stale result remains: all remaining transactions can be confirmed or are removed.
    for cluster in &clusters {
        f.mine(&cluster[8..]);
    }
    assert_eq!(f.engine.mempool().info().usage, 0);
}
