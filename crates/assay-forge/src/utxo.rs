//! The UTXO set at the tip: count, amount and MuHash as in `gettxoutsetinfo muhash`.

use std::ops::Range;

use assay_hash::MuHash3072;
use rayon::{ThreadPool, prelude::*};

use crate::{
    coins::{BlockCoins, Coins},
    lock::ScriptCache,
    summary::Progress,
};

pub(crate) struct UtxoSet {
    pub(crate) count: u64,
    pub(crate) amount: u64,
    /// In display order.
    pub(crate) muhash: [u8; 32],
}

/// Hashes all unspent outputs, on all threads.
pub(crate) fn summarise(
    coins: &Coins,
    locks: &ScriptCache,
    distinct: bool,
    threads: &ThreadPool,
    progress: &mut dyn Progress,
) -> UtxoSet {
    let total: u64 = coins.blocks().iter().map(BlockCoins::unspent_count).sum();
    let cuts: Vec<_> = coins
        .blocks()
        .iter()
        .flat_map(|block| cut(block).map(move |range| (block, range)))
        .collect();
    let mut set = Partial::new();
    for step in cuts.chunks(CUTS_PER_STEP) {
        let part = threads.install(|| {
            step.par_iter()
                .map(|(block, range)| Partial::of(block, range.clone(), locks, distinct))
                .reduce(Partial::new, Partial::join)
        });
        set = set.join(part);
        progress.utxo(set.count, total);
    }
    set.finish()
}

/// Splits a block into pieces of about [`CUT_OUTPUTS`] outputs.
fn cut(block: &BlockCoins) -> impl Iterator<Item = Range<u32>> + '_ {
    let mut start = 0;
    std::iter::from_fn(move || {
        let (first, mut outputs, mut end) = (start, 0, start);
        while end < block.tx_count() && outputs < CUT_OUTPUTS {
            outputs += block.outputs.count(end);
            end += 1;
        }
        start = end;
        (first < end).then_some(first..end)
    })
}

pub(crate) struct Partial {
    hash: MuHash3072,
    pub(crate) count: u64,
    amount: u64,
}

impl Partial {
    pub(crate) fn new() -> Self {
        Self { hash: MuHash3072::new(), count: 0, amount: 0 }
    }

    /// Adds output `vout` of `txid`, created at a height by a coinbase or not (Bitcoin Core, kernel/coinstats.cpp, `TxOutSer`).
    pub(crate) fn add(
        &mut self,
        (txid, vout): (&[u8; 32], u32),
        (height, is_coinbase): (u32, bool),
        amount: u64,
        script: &[u8],
    ) {
        let mut bytes = Vec::with_capacity(128);
        bytes.extend_from_slice(txid);
        bytes.extend_from_slice(&vout.to_le_bytes());
        bytes.extend_from_slice(&(height * 2 + u32::from(is_coinbase)).to_le_bytes());
        bytes.extend_from_slice(&amount.to_le_bytes());
        bytes.push(script.len() as u8);
        bytes.extend_from_slice(script);
        self.hash.insert(&bytes);
        self.count += 1;
        self.amount += amount;
    }

    pub(crate) fn finish(self) -> UtxoSet {
        let mut muhash = self.hash.finalize();
        muhash.reverse();
        UtxoSet { count: self.count, amount: self.amount, muhash }
    }

    fn of(block: &BlockCoins, txs: Range<u32>, locks: &ScriptCache, distinct: bool) -> Self {
        let mut part = Self::new();
        for tx in txs {
            let txid = &block.txids[tx as usize];
            for vout in 0..block.outputs.count(tx) {
                if block.is_spent(tx, vout) {
                    continue;
                }
                let key = block.outputs.key(distinct, tx, vout);
                let amount = block.outputs.amount(tx, vout);
                let made = (block.outputs.height, tx == 0);
                locks.with(block.outputs.kind(tx, vout), &key, |lock| {
                    part.add((txid, vout), made, amount, lock.script());
                });
            }
        }
        part
    }

    #[expect(clippy::needless_pass_by_value, reason = "the signature that `reduce` requires")]
    pub(crate) fn join(mut self, other: Self) -> Self {
        self.hash.combine(&other.hash);
        self.count += other.count;
        self.amount += other.amount;
        self
    }
}

const CUT_OUTPUTS: u32 = 1024;
const CUTS_PER_STEP: usize = 256;
