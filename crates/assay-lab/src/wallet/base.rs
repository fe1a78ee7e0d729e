//! The common initial chain: coinbases that anyone can spend, then transactions that split them into coins.
//!
//! Its blocks signal the two deployments that btcd activates on regtest only by signalling; Bitcoin Core has them active from
//! genesis there.

use super::{Coin, Signed, Wallet};
use crate::network::{NetworkError, Node};
use crate::process::rpc::read_answers;
use crate::wire::{self, Hash};

/// Blocks with a coinbase alone. Three periods of 144 blocks activate a deployment (BIP9), and coinbases mature.
const PLAIN: u32 = 450;
/// Version bits of segregated witness and Taproot (BIP141, BIP341).
const VERSION: u32 = 0x2000_0000 | 1 << 1 | 1 << 2;
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
        let mut prev = wire::GENESIS;
        let mut coinbases = Vec::new();
        for height in 1..=tip {
            let amount = (50 * 100_000_000) >> (height / HALVING);
            let coinbase = wire::coinbase(height, amount);
            let txid = wire::double_sha256(&coinbase);
            coinbases.push(Coin { txid, vout: 0, value: amount });
            let first = height.saturating_sub(PLAIN + 1) as usize * SPLITS_EACH;
            let here =
                if height > PLAIN { first..owners.len().min(first + SPLITS_EACH) } else { 0..0 };
            let split =
                |at: usize| wallets[owners[at]].0.split(coinbases[at], COINS_EACH, SPLIT_FEE);
            let txs: Vec<Signed> = here.clone().map(split).collect();
            let block = block(&prev, now - (tip - height), &coinbase, &txs);
            prev = wire::double_sha256(&block[..wire::HEADER_BYTES]);
            base.blocks.push(block);
            for (at, tx) in here.zip(txs) {
                base.coins[owners[at]].extend(tx.outputs);
            }
        }
        base
    }

    /// Submits the blocks to a fresh node.
    pub(crate) fn give(&self, node: &Node) -> Result<(), NetworkError> {
        for (height, block) in (1..).zip(&self.blocks) {
            let params = format!(r#"["{}"]"#, faster_hex::hex_string(block));
            let answer: Option<String> = node.call("submitblock", &params)?;
            if let Some(reason) = answer {
                return Err(NetworkError::Rejected { height, reason });
            }
        }
        Ok(())
    }
}

impl Base {
    /// The same with batched requests, which reduces scheduling delays on a busy machine.
    pub(crate) fn give_in_batches(&self, node: &Node) -> Result<(), NetworkError> {
        let method = "submitblock";
        let call = |block: &Vec<u8>| {
            let hex = faster_hex::hex_string(block);
            format!(r#"{{"jsonrpc":"1.0","id":0,"method":"{method}","params":["{hex}"]}}"#)
        };
        let mut height = 0;
        for blocks in self.blocks.chunks(BLOCKS_OF_BATCH) {
            let calls: Vec<String> = blocks.iter().map(call).collect();
            let reply = node.post(method, format!("[{}]", calls.join(",")).as_bytes())?;
            for answer in read_answers(method, &reply)? {
                height += 1;
                let reason = match answer {
                    Ok(serde_json::Value::Null) => continue,
                    Ok(said) => said.as_str().unwrap_or_default().to_owned(),
                    Err((_, message)) => message,
                };
                return Err(NetworkError::Rejected { height, reason });
            }
        }
        Ok(())
    }
}

/// Blocks per request.
const BLOCKS_OF_BATCH: usize = 50;

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
    use crate::wallet::Kind;

    #[test]
    fn blocks_build_on_each_other() {
        let mut random = SplitMix64::new(1);
        let wallets = [Kind::P2wsh, Kind::P2tr].map(|kind| Wallet::new(kind, &mut random));
        let base = Base::make(&[(&wallets[0], 800), (&wallets[1], 400)], 2_000_000_000);
        assert_eq!(base.blocks.len(), 451);
        assert_eq!([base.coins[0].len(), base.coins[1].len()], [1_000, 500]);
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
