//! The chain that all nodes begin with: coinbases that anyone can spend, then transactions that make coins of them.
//!
//! Its blocks signal the two deployments that btcd activates on regtest only after blocks have asked for it; Bitcoin Core has them
//! from the beginning there.

use super::coins::{Coin, Purse, Signed};
use crate::wire::{self, Hash};

/// Blocks with a coinbase alone. Three periods of 144 blocks activate a deployment (BIP9), and coinbases mature.
const PLAIN: u32 = 450;
/// Version bits of segregated witness and Taproot (BIP141, BIP341).
const VERSION: u32 = 0x2000_0000 | 1 << 1 | 1 << 2;
/// Coins of one split.
const COINS_EACH: usize = 500;
/// Splits in one block.
const SPLITS_EACH: usize = 4;
const SPLIT_FEE: u64 = 1_000_000;
/// Blocks from one halving of the subsidy to the next on regtest.
const HALVING: u32 = 150;

/// Blocks from height 1, and the coins that the last of them confirm.
pub(super) struct Base {
    pub(super) blocks: Vec<Vec<u8>>,
    pub(super) coins: Vec<Coin>,
}

impl Base {
    /// At least so many coins; the last block is of the time `now`.
    pub(super) fn make(purse: &Purse, coins: usize, now: u32) -> Self {
        let splits = coins.div_ceil(COINS_EACH).max(1);
        // Coinbases of the first subsidy are enough for all splits a run can need.
        assert!(splits < HALVING as usize, "a run takes fewer coins than the first coinbases give");
        let tip = PLAIN + splits.div_ceil(SPLITS_EACH) as u32;
        let mut base = Self { blocks: Vec::new(), coins: Vec::new() };
        let mut prev = wire::GENESIS;
        let mut coinbases = Vec::new();
        for height in 1..=tip {
            let amount = (50 * 100_000_000) >> (height / HALVING);
            let coinbase = wire::coinbase(height, amount);
            let txid = wire::double_sha256(&coinbase);
            coinbases.push(Coin { txid, vout: 0, value: amount });
            let first = height.saturating_sub(PLAIN + 1) as usize * SPLITS_EACH;
            let here = if height > PLAIN { first..splits.min(first + SPLITS_EACH) } else { 0..0 };
            let txs: Vec<Signed> =
                here.map(|at| purse.split(coinbases[at], COINS_EACH, SPLIT_FEE)).collect();
            let block = block(&prev, now - (tip - height), &coinbase, &txs);
            prev = wire::double_sha256(&block[..wire::HEADER_BYTES]);
            base.blocks.push(block);
            base.coins.extend(txs.into_iter().flat_map(|tx| tx.outputs));
        }
        base
    }
}

fn block(prev: &Hash, time: u32, coinbase: &[u8], txs: &[Signed]) -> Vec<u8> {
    let mut ids = vec![wire::double_sha256(coinbase)];
    ids.extend(txs.iter().map(|tx| tx.txid));
    let mut block = wire::header_of_version(VERSION, prev, &merkle_root(ids), time, true).to_vec();
    wire::put_count(&mut block, txs.len() + 1);
    block.extend_from_slice(coinbase);
    for tx in txs {
        block.extend_from_slice(&tx.raw);
    }
    block
}

fn merkle_root(mut level: Vec<Hash>) -> Hash {
    while level.len() > 1 {
        let pair = |pair: &[Hash]| {
            wire::double_sha256(&[pair[0], *pair.last().expect("chunks are not empty")].concat())
        };
        level = level.chunks(2).map(pair).collect();
    }
    level[0]
}

#[cfg(test)]
mod tests {
    use assay_report::stats::random::SplitMix64;

    use super::*;

    #[test]
    fn blocks_build_on_each_other() {
        let purse = Purse::new(&mut SplitMix64::new(1));
        let base = Base::make(&purse, 1_200, 2_000_000_000);
        assert_eq!((base.blocks.len(), base.coins.len()), (451, 1_500));
        let mut prev = wire::GENESIS;
        for block in &base.blocks {
            assert_eq!(block[4..36], prev);
            prev = wire::double_sha256(&block[..80]);
        }
        assert_eq!(base.blocks[450][80], 4, "a coinbase and three splits");
    }

    #[test]
    fn an_odd_hash_is_paired_with_itself() {
        let (a, b, c) = ([1; 32], [2; 32], [3; 32]);
        let pair = |a: Hash, b: Hash| wire::double_sha256(&[a, b].concat());
        assert_eq!(merkle_root(vec![a]), a);
        assert_eq!(merkle_root(vec![a, b, c]), pair(pair(a, b), pair(c, c)));
    }
}
