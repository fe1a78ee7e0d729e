//! The common initial chain: coinbases that anyone can spend, then transactions that split them into coins.
//!
//! Its blocks signal the two deployments that btcd activates on regtest only by signalling; Bitcoin Core has them active from
//! genesis there.

use anyhow::bail;
use assay_hash::sha256d;
use assay_wire::{BlockHash, Header, OutPoint, Txid};

use super::{Coin, Signed, Wallet};
use crate::network::Node;
use crate::p2p::{GENESIS, synthetic};

/// Blocks with a coinbase alone. Three periods of 144 blocks activate a deployment (BIP9), and coinbases mature.
const PLAIN: u32 = 450;
/// Version bits of segregated witness and Taproot (BIP141, BIP341).
const VERSION: i32 = synthetic::BLOCK_VERSION | 1 << 1 | 1 << 2;
/// Outputs per split.
const COINS_EACH: usize = 500;
/// Splits per block.
const SPLITS_EACH: usize = 4;
const SPLIT_FEE: u64 = 1_000_000;
/// Blocks between halvings on regtest.
const HALVING: u32 = 150;

/// Blocks from height 1, and the coins that the last of them confirms.
pub(crate) struct Base {
    pub(crate) blocks: Vec<Vec<u8>>,
    /// Coins per wallet.
    pub(crate) coins: Vec<Vec<Coin>>,
}

impl Base {
    /// At least the given number of coins for each wallet; the last block has the time `now`.
    pub(crate) fn make(wallets: &[(&Wallet, usize)], now: u32) -> Self {
        let each = |(at, (_, coins)): (usize, &(&Wallet, usize))| {
            std::iter::repeat_n(at, coins.div_ceil(COINS_EACH).max(1))
        };
        let owners: Vec<usize> = wallets.iter().enumerate().flat_map(each).collect();
        // Coinbases of the first subsidy period suffice for all splits of a run.
        assert!(
            owners.len() < HALVING as usize,
            "a run takes fewer coins than the first coinbases give"
        );
        let tip = PLAIN + owners.len().div_ceil(SPLITS_EACH) as u32;
        let mut base = Self { blocks: Vec::new(), coins: vec![Vec::new(); wallets.len()] };
        let mut prev = GENESIS;
        let mut coinbases = Vec::new();
        for height in 1..=tip {
            let value = (50 * 100_000_000) >> (height / HALVING);
            let coinbase = synthetic::coinbase(height, value as i64);
            let outpoint = OutPoint { txid: Txid(sha256d(&coinbase)), vout: 0 };
            coinbases.push(Coin { outpoint, value });
            let first = height.saturating_sub(PLAIN + 1) as usize * SPLITS_EACH;
            let here =
                if height > PLAIN { first..owners.len().min(first + SPLITS_EACH) } else { 0..0 };
            let split =
                |at: usize| wallets[owners[at]].0.split(coinbases[at], COINS_EACH, SPLIT_FEE);
            let txs: Vec<Signed> = here.clone().map(split).collect();
            let txids = [outpoint.txid].into_iter().chain(txs.iter().map(|tx| tx.txid));
            let txids = txids.map(|txid| txid.0).collect();
            let raw = [&coinbase[..]].into_iter().chain(txs.iter().map(|tx| &tx.raw[..]));
            let block = synthetic::block(VERSION, prev, now - (tip - height), txids, raw);
            prev = hash_of(&block);
            base.blocks.push(block);
            for (at, tx) in here.zip(txs) {
                base.coins[owners[at]].extend(tx.outputs);
            }
        }
        base
    }

    /// Submits the blocks to a fresh node.
    pub(crate) fn give(&self, node: &Node) -> anyhow::Result<()> {
        for (height, block) in (1..).zip(&self.blocks) {
            let params = format!(r#"["{}"]"#, faster_hex::hex_string(block));
            let answer: Option<String> = node.call("submitblock", &params)?;
            if let Some(reason) = answer {
                bail!("block {height} was rejected: {reason}");
            }
        }
        Ok(())
    }

    /// The same with batched requests, which reduces scheduling delays on a busy machine.
    pub(crate) fn give_in_batches(&self, node: &Node) -> anyhow::Result<()> {
        let mut height = 0;
        for blocks in self.blocks.chunks(BLOCKS_OF_BATCH) {
            let hex = |block: &Vec<u8>| format!(r#"["{}"]"#, faster_hex::hex_string(block));
            let params: Vec<String> = blocks.iter().map(hex).collect();
            let calls = params.iter().map(|params| ("submitblock", params.as_str()));
            for answer in node.client().batch(calls)? {
                height += 1;
                let reason = match answer {
                    Ok(serde_json::Value::Null) => continue,
                    Ok(said) => said.as_str().unwrap_or_default().to_owned(),
                    Err((_, message)) => message,
                };
                bail!("block {height} was rejected: {reason}");
            }
        }
        Ok(())
    }
}

/// Blocks per request.
const BLOCKS_OF_BATCH: usize = 50;

fn hash_of(block: &[u8]) -> BlockHash {
    Header::parse(block.first_chunk().expect("a block begins with its header")).hash()
}

#[cfg(test)]
mod tests {
    use assay_report::stats::random::SplitMix64;

    use super::*;
    use crate::wallet::Kind;

    #[test]
    fn blocks_build_on_each_other() {
        let mut random = SplitMix64::new(1);
        let wallets = [Kind::P2wsh, Kind::P2tr].map(|kind| Wallet::new(kind, &mut random));
        let base = Base::make(&[(&wallets[0], 800), (&wallets[1], 400)], 2_000_000_000);
        assert_eq!(base.blocks.len(), 451);
        assert_eq!([base.coins[0].len(), base.coins[1].len()], [1_000, 500]);
        let mut prev = GENESIS;
        for block in &base.blocks {
            assert_eq!(block[4..36], prev.0);
            prev = hash_of(block);
        }
        assert_eq!(base.blocks[450][80], 4, "a coinbase and three splits");
    }
}
