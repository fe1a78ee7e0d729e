//! The chain that a node needs before a worst block: coinbases that anyone can spend, and
//! transactions that create the outputs for the block.

use assay_consensus::sigops::count_sigops;
use assay_consensus::subsidy::block_subsidy;
use assay_wire::{BlockHash, OutPoint, Transaction, TxBuilder, Txid, Wtxid, encode};

use crate::block_builder::{Coinbase, Tip};
use crate::chain;

pub(crate) const BLOCK_WEIGHT: u32 = 4_000_000;

/// Maximum sigop cost of a block (BIP-0141).
pub(crate) const SIGOP_COST_MAX: u32 = 80_000;

/// Time of a block, before its height is added.
const TIME: u32 = 1_700_000_000;

pub(super) const VALUE: i64 = 2;

const MATURITY: usize = 100;

/// Maximum number of outputs of a transaction.
const OUTPUTS_MAX: usize = 20_000;

/// Weight reserved for header, coinbase and the rest of the transaction.
const ROOM: usize = 10_000;

/// Outputs of one script. Each transaction fills a block of its own; none depends on the total number of outputs.
pub(super) struct Preparation<'s> {
    script_pubkey: &'s [u8],
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

    pub(super) fn outpoint(&mut self, number: usize) -> OutPoint {
        let index = number / self.outputs;
        while self.txids.len() <= index {
            let next = self.transaction(self.txids.len());
            self.txids.push(next.view().txid());
        }
        OutPoint { txid: self.txids[index], vout: (number % self.outputs) as u32 }
    }

    /// Spends the coinbase of the block with this index.
    fn transaction(&self, index: usize) -> Transaction {
        let prevout = OutPoint { txid: coinbase(index as u32 + 1).txid(), vout: 0 };
        let tx = TxBuilder::new(2).spend(prevout, &[], u32::MAX);
        (0..self.outputs).fold(tx, |tx, _| tx.output(VALUE, self.script_pubkey)).build()
    }

    /// A chain above regtest's genesis: coinbases, `outputs` outputs, and a block of these transactions.
    pub(super) fn chain<'c>(
        &'c self,
        outputs: usize,
        last: &'c [Transaction],
    ) -> impl Iterator<Item = Vec<u8>> + use<'c, 's> {
        let transactions = outputs.div_ceil(self.outputs);
        let before = transactions.max(MATURITY);
        let mut tip = Tip { time: TIME, ..Tip::genesis(&chain("regtest")) };
        (1..=before + transactions + 1).map(move |height| {
            let (next, raw) = if height > before + transactions {
                block_on(tip, last)
            } else {
                let tx = (height > before).then(|| self.transaction(height - before - 1));
                tip.next_of(1, &coinbase(height as u32), tx.as_slice())
            };
            tip = next;
            raw
        })
    }
}

/// A coinbase that anyone can spend.
fn coinbase(height: u32) -> Coinbase {
    let subsidy = block_subsidy(&chain("regtest"), height);
    // A coinbase script has at least two bytes.
    Coinbase::new(height, &[0], (subsidy, &[0x51]), None)
}

fn block_on(tip: Tip, txs: &[Transaction]) -> (Tip, Vec<u8>) {
    let wtxids = txs.iter().map(|tx| tx.view().wtxid());
    let wtxids: Vec<Wtxid> = std::iter::once(Wtxid::default()).chain(wtxids).collect();
    let coinbase = Coinbase::new(tip.height + 1, &[], (0, &[0x51]), Some(&wtxids));
    tip.next_of(1, &coinbase, txs)
}

/// A block of these transactions at a height, on no other block.
pub(super) fn alone(txs: &[Transaction], height: u32) -> Vec<u8> {
    let hash = BlockHash::default();
    block_on(Tip { height: height - 1, hash, time: TIME + height - 1 }, txs).1
}
