//! Removes the transactions confirmed by a block, and those that now conflict with it.
//!
//! Nearly all of the time is random access to two maps. For large blocks several threads process separate parts of the maps
//! ([`Shards`](super::shards::Shards)).

use std::collections::{HashMap, HashSet};
use std::iter::Peekable;

use assay_consensus::script::Flags;
use assay_wire::{OutPoint, Txid, Wtxid};
use rayon::ThreadPool;
use rayon::iter::{IndexedParallelIterator as _, IntoParallelIterator as _, ParallelIterator as _};
use rayon::slice::ParallelSliceMut as _;

use super::changes::Change;
use super::entry::Entry;
use super::pool::Mempool;
use super::shards::{Key as _, SHARDS};
use crate::prepared::Prepared;

/// Minimum number of transactions and inputs of a block for several threads.
const LARGE_BLOCK_ITEMS: usize = 2000;

/// A transaction of the block that was in the mempool.
struct Mined {
    tx_index: usize,
    wtxid: Wtxid,
    /// The transaction itself, if it is still needed.
    entry: Option<Entry>,
}

#[derive(Default)]
struct Taken {
    mined: Vec<Mined>,
    /// Other spenders of the block's inputs, each with the indices of the block's transaction and of its input.
    conflicts: Vec<(usize, usize, Txid)>,
    vsize_total: u64,
    usage_bytes: u64,
    fee_total_sat: i64,
}

impl Taken {
    fn add(&mut self, tx_index: usize, entry: Entry, keep: bool) {
        self.vsize_total += u64::from(entry.vsize);
        self.usage_bytes += u64::from(entry.usage_bytes);
        self.fee_total_sat += entry.fee_sat;
        let wtxid = entry.wtxid;
        self.mined.push(Mined { tx_index, wtxid, entry: keep.then_some(entry) });
    }

    fn join(&mut self, mut other: Self) {
        self.mined.append(&mut other.mined);
        self.conflicts.append(&mut other.conflicts);
        self.vsize_total += other.vsize_total;
        self.usage_bytes += other.usage_bytes;
        self.fee_total_sat += other.fee_total_sat;
    }
}

impl Mempool {
    /// For each transaction of a block, its signature checks if its scripts are known to pass under at least these flags; empty
    /// if none is known.
    pub(crate) fn known_of_block(
        &self,
        prepared: &Prepared,
        pool: &ThreadPool,
        flags: Flags,
    ) -> Vec<Option<u32>> {
        // Most blocks are connected without known results.
        if self.is_empty() && self.verdicts.is_empty() {
            return Vec::new();
        }
        let known = |tx_index: usize| {
            self.known_sigchecks(&prepared.txids[tx_index], &prepared.wtxid(tx_index), flags)
        };
        let places = 0..prepared.txids.len();
        if places.len() < LARGE_BLOCK_ITEMS {
            return places.map(known).collect();
        }
        pool.install(|| places.into_par_iter().map(known).collect())
    }

    /// Removes the transactions confirmed by a block and those that conflict with it, on the threads of `pool` if it is large.
    pub(crate) fn remove_confirmed(&mut self, prepared: &Prepared, pool: &ThreadPool, now_s: u64) {
        self.rolling_fee.block_connected(now_s);
        self.forget_fee_deltas(&prepared.txids);
        if self.is_empty() {
            return;
        }
        let Taken { mined, conflicts, vsize_total, usage_bytes, fee_total_sat } =
            self.take_mined(prepared, pool);
        self.vsize_total -= vsize_total;
        self.usage_bytes -= usage_bytes;
        self.fee_total_sat -= fee_total_sat;
        // In block order, as Core numbers them; each is removed once, and each cluster is rebuilt once.
        let mut gone = Vec::with_capacity(mined.len());
        let mut found: HashSet<Txid> = HashSet::new();
        let mut conflicts = conflicts.into_iter().peekable();
        for Mined { tx_index, wtxid, entry } in mined {
            self.remove_conflicts(&mut conflicts, tx_index, &mut found, &mut gone);
            let txid = prepared.txids[tx_index];
            self.forget(&txid, &wtxid, entry.as_ref(), Change::Mined);
            gone.push(txid);
        }
        self.remove_conflicts(&mut conflicts, usize::MAX, &mut found, &mut gone);
        self.unlink(&gone);
    }

    /// Removes the transactions that conflict with a block's transactions up to an index, with their descendants.
    fn remove_conflicts(
        &mut self,
        conflicts: &mut Peekable<impl Iterator<Item = (usize, usize, Txid)>>,
        before: usize,
        found: &mut HashSet<Txid>,
        gone: &mut Vec<Txid>,
    ) {
        while let Some((_, _, txid)) = conflicts.next_if(|(tx_index, ..)| *tx_index < before) {
            self.forget_fee_deltas(&[txid]);
            for txid in self.new_with_descendants([txid], found) {
                self.remove_entry(&txid, Change::Removed);
                gone.push(txid);
            }
        }
    }

    /// Removes a block's transactions from one map, and its inputs from the other: both in block order.
    fn take_mined(&mut self, prepared: &Prepared, pool: &ThreadPool) -> Taken {
        // The ranking is rarely present, and then needs the whole entry.
        let keep = self.ranking.is_some();
        let (entries, spends) = (self.entries.parts_mut(), self.spends.parts_mut());
        let items = prepared.txids.len() + prepared.block.input_count();
        if items < LARGE_BLOCK_ITEMS {
            return take((0, entries, spends), prepared, keep);
        }
        let each = SHARDS.div_ceil(pool.current_num_threads());
        let parts: Vec<Taken> = pool.install(|| {
            entries
                .par_chunks_mut(each)
                .zip(spends.par_chunks_mut(each))
                .enumerate()
                .map(|(n, (entries, spends))| take((n * each, entries, spends), prepared, keep))
                .collect()
        });
        let mut all = Taken::default();
        for part in parts {
            all.join(part);
        }
        all.mined.sort_unstable_by_key(|mined| mined.tx_index);
        all.conflicts.sort_unstable();
        all
    }
}

/// Some parts of both maps, and the index of the first.
type Parts<'a> = (usize, &'a mut [HashMap<Txid, Entry>], &'a mut [HashMap<OutPoint, Txid>]);

/// Removes a block's items from these parts.
fn take((first, entries, spends): Parts<'_>, prepared: &Prepared, keep: bool) -> Taken {
    let mut taken = Taken::default();
    for (tx_index, txid) in prepared.txids.iter().enumerate().skip(1) {
        let part = txid.shard().checked_sub(first).and_then(|n| entries.get_mut(n));
        if let Some(entry) = part.and_then(|part| part.remove(txid)) {
            taken.add(tx_index, entry, keep);
        }
        for (at, input) in prepared.block.tx(tx_index).inputs().enumerate() {
            let shard = input.prevout.shard();
            let part = shard.checked_sub(first).and_then(|n| spends.get_mut(n));
            match part.and_then(|part| part.remove(&input.prevout)) {
                Some(spender) if spender != *txid => taken.conflicts.push((tx_index, at, spender)),
                _ => {}
            }
        }
    }
    taken
}

#[cfg(test)]
mod tests {
    use assay_consensus::params::ChainParams;
    use assay_testkit::chain::TxBuilder;
    use assay_testkit::random::Random;
    use assay_wire::{Block, Encoding, Transaction};

    use super::*;
    use crate::mempool::rolling_fee::Ranking;

    /// A transaction of two empty outputs; only its inputs matter.
    fn tx(prevouts: &[OutPoint], salt: u32) -> Vec<u8> {
        let tx = prevouts
            .iter()
            .fold(TxBuilder::new(2), |tx, prevout| tx.spend(*prevout, &[], u32::MAX));
        tx.output(1, &[]).output(2, &[]).lock_time(salt).bytes()
    }

    fn entry(tx: Transaction) -> Entry {
        let (size, sigchecks) = (tx.bytes().len() as u32, u32::from(tx.bytes()[5]));
        let of_size = Entry::for_test(tx, 10 * i64::from(size), size);
        Entry { sigchecks, usage_bytes: size, ..of_size }
    }

    /// Transactions for a mempool, parents first, and a block of most of them and of conflicting ones.
    fn case(random: &mut Random, encoding: Encoding) -> (Vec<Transaction>, Prepared) {
        let mut free: Vec<OutPoint> = Vec::new();
        let (mut txs, mut in_block) = (Vec::new(), Vec::new());
        let mut raw_block = vec![tx(&[OutPoint { txid: Txid([0; 32]), vout: u32::MAX }], 0)];
        for salt in 0..1500 {
            if salt % 40 == 0 {
                // Clusters have a limit.
                let txid = Txid([(salt / 40) as u8; 32]);
                free = (0..100).map(|vout| OutPoint { txid, vout }).collect();
            }
            let spent: Vec<OutPoint> =
                (0..=random.below(3)).map(|_| free.swap_remove(random.below(free.len()))).collect();
            let raw = tx(&spent, salt);
            let parsed = Transaction::parse(raw.clone(), encoding).unwrap();
            let txid = parsed.view().txid();
            free.extend((0..2).map(|vout| OutPoint { txid, vout }));
            txs.push(parsed);
            // A child of a transaction outside of the block is not in the block either.
            let is_confirmed =
                |parent: &Txid| parent.0 == [parent.0[0]; 32] || in_block.contains(parent);
            let may_be = spent.iter().all(|prevout| is_confirmed(&prevout.txid));
            match random.below(10) {
                0..8 if may_be => {
                    in_block.push(txid);
                    raw_block.push(raw);
                }
                8 if may_be => raw_block.push(tx(&spent, salt + 10_000)),
                _ => {}
            }
        }
        let mut raw = ChainParams::by_name("bch-regtest").unwrap().genesis_block()[..80].to_vec();
        raw.push(253);
        raw.extend_from_slice(&(raw_block.len() as u16).to_le_bytes());
        raw.extend(raw_block.into_iter().flatten());
        let block = Block::parse(raw, encoding).unwrap();
        let hash = block.hash();
        (txs, Prepared::new(block, hash))
    }

    /// The reference: removes them one by one, as Core does (`CTxMemPool::removeForBlock`).
    fn remove_one_by_one(mempool: &mut Mempool, prepared: &Prepared) {
        for (tx_index, txid) in prepared.txids.iter().enumerate().skip(1) {
            if mempool.get(txid).is_some() {
                mempool.remove_entry(txid, Change::Mined);
                mempool.unlink(&[*txid]);
                continue;
            }
            for input in prepared.block.tx(tx_index).inputs() {
                let Some(conflict) = mempool.spender(&input.prevout).copied() else { continue };
                mempool.forget_fee_deltas(&[conflict]);
                mempool.remove_with_descendants(&conflict);
            }
        }
        mempool.forget_fee_deltas(&prepared.txids);
    }

    /// Transactions, spent outputs, sums, fee deltas and the number of changes.
    type Facts = (Vec<Txid>, usize, [u64; 3], Vec<(Txid, i64)>, u64);

    fn facts(mempool: &mut Mempool) -> Facts {
        let mut left: Vec<Txid> = mempool.iter().map(|(txid, _)| *txid).collect();
        left.sort();
        let sums =
            [mempool.vsize_total(), mempool.usage_bytes(), mempool.fee_total_sat().cast_unsigned()];
        let deltas = mempool.fee_deltas_sat().iter().map(|(txid, delta)| (*txid, *delta)).collect();
        mempool.settle_changes();
        (left, mempool.spends.iter().count(), sums, deltas, mempool.change_count())
    }

    #[test]
    fn a_verdict_is_known_by_txid_wtxid_and_flags() {
        let encoding = ChainParams::by_name("bch-regtest").unwrap().encoding;
        let prevout = OutPoint { txid: Txid([1; 32]), vout: 0 };
        let [one, other] = [1, 2].map(|salt| Transaction::parse(tx(&[prevout], salt), encoding));
        let (one, other) = (one.unwrap(), other.unwrap());
        let (txid, wtxid) = (one.view().txid(), one.view().wtxid());
        let flags = Flags::BCH_MAY_2022;
        let mut mempool = Mempool::new(false, None, None);
        mempool.insert(txid, Entry { verified: flags, sigchecks: 4, ..entry(one) });
        assert_eq!(mempool.known_sigchecks(&txid, &wtxid, flags), Some(4));
        assert_eq!(mempool.known_sigchecks(&other.view().txid(), &wtxid, flags), None);
        assert_eq!(mempool.known_sigchecks(&txid, &other.view().wtxid(), flags), None);
        assert_eq!(mempool.known_sigchecks(&txid, &wtxid, Flags::BCH_STANDARD), None);
        assert_eq!(mempool.known_sigchecks(&txid, &wtxid, Flags::BCH_MAY_2020), None);
    }

    #[test]
    fn removal_on_threads_matches_sequential_removal() {
        let params = ChainParams::by_name("bch-regtest").unwrap();
        let mut random = Random(7);
        for round in 0..12 {
            let (txs, prepared) = case(&mut random, params.encoding);
            assert!(prepared.txids.len() + prepared.block.input_count() >= LARGE_BLOCK_ITEMS);
            let fill = || {
                let mut mempool = Mempool::new(round % 3 == 0, None, None);
                for (n, tx) in txs.iter().enumerate() {
                    let entry = entry(tx.clone());
                    let txid = tx.view().txid();
                    mempool.insert(txid, entry);
                    if n % 50 == 0 {
                        mempool.prioritise(txid, 5);
                    }
                }
                if round % 3 == 1 {
                    mempool.ranking = Some(Ranking::of(mempool.iter()));
                }
                mempool.settle_changes();
                mempool
            };
            let mut expected = fill();
            remove_one_by_one(&mut expected, &prepared);
            let expected = facts(&mut expected);
            assert!(!expected.0.is_empty() && expected.0.len() < txs.len() / 2);
            for threads in 1..=3 {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let mut mempool = fill();
                let known = mempool.known_of_block(&prepared, &pool, Flags::NONE);
                for (txid, known) in prepared.txids.iter().zip(known) {
                    assert_eq!(known, mempool.get(txid).map(|entry| entry.sigchecks));
                }
                mempool.remove_confirmed(&prepared, &pool, 0);
                let is_of = |ranking: &Ranking| *ranking == Ranking::of(mempool.iter());
                assert!(mempool.ranking.as_ref().is_none_or(is_of));
                assert_eq!(facts(&mut mempool), expected, "round {round}, {threads} threads");
            }
        }
    }
}
