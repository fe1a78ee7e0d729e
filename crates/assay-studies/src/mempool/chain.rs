//! A regtest chain whose transactions need no signatures, so that coins are cheap to create and policy dominates the cost.

use assay_consensus::params::ChainParams;
use assay_wire::{OutPoint, Transaction, TxBuilder};

use crate::block_builder::{Coinbase, Tip};

/// Pays to the hash of the script `OP_1`, which relay policy accepts.
const P2SH_TRUE: [u8; 23] = [
    0xa9, 20, 0xda, 0x17, 0x45, 0xe9, 0xb5, 0x49, 0xbd, 0x0b, 0xfa, 0x1a, 0x56, 0x99, 0x71, 0xc7,
    0x7e, 0xba, 0x30, 0xcd, 0x5a, 0x4b, 0x87,
];
const MATURITY: u32 = 100;
/// Coinbase output, below the allowed maximum.
const COINBASE_SAT: i64 = 5_000_000_000;
const FAN_OUT: usize = 2000;
pub(super) const COIN_SAT: i64 = 2_400_000;
const FANS_PER_BLOCK: usize = 12;
/// Fee of a transaction of the measured blocks.
const FEE_SAT: i64 = 1000;

pub(super) type CoinOf = (OutPoint, i64);

/// A block, and the tip that it becomes.
pub(super) type MintedBlock = (Tip, Vec<u8>);

/// Forges one branch, block by block.
pub(super) struct Mint {
    tip: Tip,
}

impl Mint {
    /// A chain with at least `count` coins of [`COIN_SAT`] each: its blocks, and the coins.
    pub(super) fn new(params: &ChainParams, count: usize) -> (Self, Vec<MintedBlock>, Vec<CoinOf>) {
        let mut mint = Self { tip: Tip::genesis(params) };
        let fans = count.div_ceil(FAN_OUT);
        let mut blocks = Vec::new();
        let mut coinbases = Vec::new();
        for _ in 0..MATURITY as usize + fans {
            let (block, outpoint) = mint.block(&[], COINBASE_SAT);
            blocks.push(block);
            coinbases.push(outpoint);
        }
        let mut coins = Vec::with_capacity(fans * FAN_OUT);
        for group in coinbases[..fans].chunks(FANS_PER_BLOCK) {
            let txs: Vec<Transaction> =
                group.iter().map(|coinbase| tx(&[*coinbase], &[COIN_SAT; FAN_OUT])).collect();
            for tx in &txs {
                let txid = tx.view().txid();
                let outpoint = |vout| OutPoint { txid, vout };
                coins.extend((0..FAN_OUT as u32).map(|vout| (outpoint(vout), COIN_SAT)));
            }
            blocks.push(mint.block(&txs, 0).0);
        }
        (mint, blocks, coins)
    }

    /// Next block, which moves every one of `coins` to a new output.
    pub(super) fn moving(&mut self, coins: &mut [CoinOf]) -> MintedBlock {
        let mut txs = Vec::with_capacity(coins.len());
        for (outpoint, value) in coins {
            *value -= FEE_SAT;
            let tx = tx(&[*outpoint], &[*value]);
            *outpoint = OutPoint { txid: tx.view().txid(), vout: 0 };
            txs.push(tx);
        }
        self.block(&txs, 0).0
    }

    fn block(&mut self, txs: &[Transaction], claim: i64) -> (MintedBlock, OutPoint) {
        let coinbase = Coinbase::new(self.tip.height + 1, &[1, 0], (claim, &P2SH_TRUE), None);
        let outpoint = OutPoint { txid: coinbase.txid(), vout: 0 };
        let block = self.tip.next_of(60, &coinbase, txs);
        self.tip = block.0;
        (block, outpoint)
    }
}

/// A final transaction that spends such outputs and creates others.
pub(super) fn tx(inputs: &[OutPoint], values: &[i64]) -> Transaction {
    let mut tx = TxBuilder::new(2);
    for outpoint in inputs {
        tx = tx.spend(*outpoint, &[1, 0x51], u32::MAX);
    }
    for value in values {
        tx = tx.output(*value, &P2SH_TRUE);
    }
    tx.build()
}
