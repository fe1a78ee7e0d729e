//! The chain that a node needs before a worst block: coinbases that anyone can spend, and
//! transactions that create the outputs for the block.

use crate::block_builder::{self, Coinbase};
use assay_consensus::params::ChainParams;
use assay_consensus::sigops::count_sigops;
use assay_consensus::subsidy::block_subsidy;
use assay_hash::sha256d;
use assay_wire::{Block, BlockHash, Encoding, OutPoint, TxBuilder, Txid, Wtxid, encode};

/// Maximum weight of a block.
pub(crate) const BLOCK_WEIGHT: u32 = 4_000_000;

/// Maximum sigop cost of a block (BIP-0141).
pub(crate) const SIGOP_COST_MAX: u32 = 80_000;

/// Time of a block, before its height is added.
const TIME: u32 = 1_700_000_000;

/// Value of each output, in satoshi.
pub(super) const VALUE: i64 = 2;

/// Maturity of a coinbase, in blocks.
const MATURITY: usize = 100;

/// Maximum number of outputs of a transaction.
const OUTPUTS_MAX: usize = 20_000;

/// Weight reserved for header, coinbase and the rest of the transaction.
const ROOM: usize = 10_000;

/// Outputs of one script. Each transaction fills a block of its own; none depends on the total number of outputs.
pub(super) struct Preparation<'s> {
    script_pubkey: &'s [u8],
    /// Outputs per transaction.
    outputs: usize,
    txids: Vec<Txid>,
}

impl<'s> Preparation<'s> {
    pub(super) fn new(script_pubkey: &'s [u8]) -> Self {
        let length = script_pubkey.len();
        let each = 8 + encode::compact_size_len(length as u64) + length;
        let by_weight = (BLOCK_WEIGHT as usize - ROOM) / (4 * each);
        let sigops = count_sigops(script_pubkey, false);
        let by_sigops = (u64::from(SIGOP_COST_MAX) / (4 * sigops).max(1)) as usize;
        let outputs = by_weight.min(by_sigops).clamp(1, OUTPUTS_MAX);
        Self { script_pubkey, outputs, txids: Vec::new() }
    }

    /// Outpoint of the output with this number.
    pub(super) fn outpoint(&mut self, number: usize) -> OutPoint {
        let index = number / self.outputs;
        while self.txids.len() <= index {
            let next = self.transaction(self.txids.len());
            self.txids.push(Txid(sha256d(&next)));
        }
        OutPoint { txid: self.txids[index], vout: (number % self.outputs) as u32 }
    }

    /// Spends the coinbase of the block with this index.
    fn transaction(&self, index: usize) -> Vec<u8> {
        let coinbase = coinbase(index as u32 + 1);
        let prevout = OutPoint { txid: coinbase.txid(), vout: 0 };
        let tx = TxBuilder::new(2).spend(prevout, &[], u32::MAX);
        (0..self.outputs).fold(tx, |tx, _| tx.output(VALUE, self.script_pubkey)).bytes()
    }

    /// A chain above regtest's genesis: coinbases, `outputs` outputs, and a block of these transactions without and with witness.
    pub(super) fn chain<'c>(
        &'c self,
        outputs: usize,
        last: &'c [(Vec<u8>, Vec<u8>)],
    ) -> impl Iterator<Item = Vec<u8>> + use<'c, 's> {
        let transactions = outputs.div_ceil(self.outputs);
        let before = transactions.max(MATURITY);
        let mut prev_block = genesis();
        (1..=before + transactions + 1).map(move |height| {
            let txs: Vec<Vec<u8>> = (height > before)
                .then(|| height - before - 1)
                .map(|index| self.transaction(index))
                .into_iter()
                .collect();
            let raw = if height > before + transactions {
                assemble(last, height as u32, prev_block)
            } else {
                plain_block(height as u32, prev_block, &txs)
            };
            prev_block = BlockHash(sha256d(&raw[..80]));
            raw
        })
    }
}

/// A coinbase that anyone can spend.
fn coinbase(height: u32) -> Coinbase {
    let subsidy = block_subsidy(&regtest(), height);
    // A coinbase script has at least two bytes.
    Coinbase::new(height, &[0], (subsidy, &[0x51]), None)
}

/// A block without witnesses.
fn plain_block(height: u32, prev_block: BlockHash, txs: &[Vec<u8>]) -> Vec<u8> {
    let txids = txs.iter().map(|tx| sha256d(tx));
    block_builder::assemble((prev_block, TIME + height), &coinbase(height), txs, txids).1
}

fn regtest() -> ChainParams {
    ChainParams::by_name("regtest").expect("regtest is a chain")
}

fn genesis() -> BlockHash {
    let raw = regtest().genesis_block();
    Block::parse(raw, Encoding::Segwit).expect("a block").hash()
}

/// Assembles a block of these transactions at a height.
pub(super) fn assemble(txs: &[(Vec<u8>, Vec<u8>)], height: u32, prev_block: BlockHash) -> Vec<u8> {
    let wtxids: Vec<Wtxid> = std::iter::once(Wtxid::default())
        .chain(txs.iter().map(|(_, full)| Wtxid(sha256d(full))))
        .collect();
    let coinbase = Coinbase::new(height, &[], (0, &[0x51]), Some(&wtxids));
    let full: Vec<&[u8]> = txs.iter().map(|(_, full)| &full[..]).collect();
    let txids = txs.iter().map(|(base, _)| sha256d(base));
    block_builder::assemble((prev_block, TIME + height), &coinbase, &full, txids).1
}
