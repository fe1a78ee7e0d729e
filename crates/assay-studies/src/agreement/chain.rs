//! The chain of a verdict comparison: coins for cases, and blocks of one transaction.

use assay_consensus::params::ChainParams;
use assay_wire::{Header, OutPoint, TxBuilder, Txid};

use crate::block_builder::{Coinbase, Tip};

/// Blocks before the first case: all soft forks with a height are active then, and all early coinbases are mature.
pub(super) const BASE: u32 = 1400;
const COINBASE_SAT: i64 = 5_000_000_000;
const WHOLE_SUBSIDY: u32 = 149;
/// Coinbase output afterwards: zero is valid at every height.
const LATE_SAT: i64 = 0;
const SPACING_S: u32 = 60;
const ANYONE: [u8; 1] = [0x51];
/// Exceeds the fee of every funding transaction.
const FEE_SAT: i64 = 1_000_000;

pub(super) struct Chain {
    pub(super) tip: Tip,
    /// Coins for funding, with their values.
    funds: Vec<(OutPoint, i64)>,
    serial: u64,
}

impl Chain {
    pub(super) fn new(params: &ChainParams) -> Self {
        Self { tip: Tip::genesis(params), funds: Vec::new(), serial: 0 }
    }

    pub(super) fn base_block(&mut self) -> Vec<u8> {
        let (raw, txid) = self.block(&[]);
        if self.tip.height < WHOLE_SUBSIDY {
            self.funds.push((OutPoint { txid, vout: 0 }, COINBASE_SAT));
        }
        raw
    }

    /// A block whose transaction creates these outputs, with their outpoints in order.
    pub(super) fn funding(&mut self, locks: &[(i64, Vec<u8>)]) -> (Vec<u8>, Txid) {
        let (prevout, value) = self.funds.pop().expect("funds come back as change");
        let mut tx = TxBuilder::new(2).spend(prevout, &[], u32::MAX);
        for (value, script) in locks {
            tx = tx.output(*value, script);
        }
        let change = value - locks.iter().map(|(value, _)| value).sum::<i64>() - FEE_SAT;
        let tx = tx.output(change, &ANYONE).build();
        let txid = tx.view().txid();
        self.funds.push((OutPoint { txid, vout: locks.len() as u32 }, change));
        (self.block(&[tx.bytes()]).0, txid)
    }

    /// A block of a coinbase and bytes that may be a transaction.
    pub(super) fn candidate(&mut self, tx: &[u8]) -> Vec<u8> {
        self.block(&[tx]).0
    }

    /// Appends a block that was found valid; a modified header may still be valid.
    pub(super) fn connect(&mut self, raw: &[u8]) {
        let header: &[u8; 80] = raw.first_chunk().expect("a valid block has a header");
        self.tip.height += 1;
        self.tip.hash = Header::parse(header).hash();
        // Independent of the block's time: the median of eleven does not follow a single block.
        self.tip.time += SPACING_S;
    }

    /// A block on the tip, with the txid of its coinbase.
    fn block(&mut self, txs: &[&[u8]]) -> (Vec<u8>, Txid) {
        let height = self.tip.height + 1;
        self.serial += 1;
        let claim = if height <= WHOLE_SUBSIDY { COINBASE_SAT } else { LATE_SAT };
        let tail = [&self.serial.to_le_bytes()[..], &[0; 40]].concat();
        let coinbase = Coinbase::new(height, &tail, (claim, &ANYONE), None);
        let txids = txs.iter().map(|tx| assay_hash::sha256d(tx));
        (self.tip.next(SPACING_S, &coinbase, txs, txids).1, coinbase.txid())
    }
}
