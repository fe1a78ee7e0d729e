//! Rows of blocks and of transactions.

use std::ops::Range;

use assay_store::BlockPlace;
use assay_wire::{Block, BlockHash, Encoding, Tx, Txid};

use crate::counts::Counts;
use crate::kind::OutputKind;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockRow {
    pub height: u32,
    pub hash: BlockHash,
    /// Time in the header, seconds since 1970.
    pub time: u32,
    pub version: i32,
    /// Target in compact form.
    pub bits: u32,
    /// Position of the copy that was read.
    pub place: BlockPlace,
    pub counts: Counts,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TxRow {
    pub height: u32,
    /// Index in the block; 0 is the coinbase.
    pub index: u32,
    pub txid: Txid,
    pub version: i32,
    pub lock_time: u32,
    pub is_coinbase: bool,
    pub is_segwit: bool,
    /// Inputs; 0 for a coinbase, which spends nothing.
    pub inputs: u32,
    /// Inputs with a witness; 0 for a coinbase.
    pub segwit_inputs: u32,
    pub outputs: u32,
    /// Serialised bytes, with witnesses.
    pub bytes: u32,
    pub stripped_bytes: u32,
    /// Sum of the outputs, in satoshi.
    pub output_value: i128,
}

impl TxRow {
    /// BIP141 weight.
    pub fn weight(&self) -> u64 {
        u64::from(self.stripped_bytes) * 3 + u64::from(self.bytes)
    }
}

/// Row of a block; a transaction with more than `many_inputs` inputs has many.
pub(crate) fn block_row(
    block: &Block,
    (height, hash, place): (u32, BlockHash, BlockPlace),
    encoding: Encoding,
    many_inputs: u32,
) -> BlockRow {
    let header = block.header();
    let mut counts = Counts {
        blocks: 1,
        bytes: block.bytes().len() as u64,
        stripped_bytes: block.stripped_size() as u64,
        weight: block.weight() as u64,
        txs: block.tx_count() as u64,
        outputs: block.output_count() as u64,
        ..Counts::default()
    };
    for (index, tx) in block.txs().enumerate() {
        let mut value = 0i128;
        for output in tx.outputs() {
            let kind = &mut counts.by_kind[OutputKind::of(output.script_pubkey, encoding) as usize];
            kind.outputs += 1;
            kind.value += i128::from(output.value);
            value += i128::from(output.value);
        }
        counts.output_value += value;
        if index == 0 {
            counts.coinbase_value += value;
            continue;
        }
        let inputs = tx.input_count() as u64;
        counts.inputs += inputs;
        counts.largest_tx_inputs = counts.largest_tx_inputs.max(inputs);
        let has_many = u64::from(inputs > u64::from(many_inputs));
        if tx.has_witness() {
            counts.segwit_txs += 1;
            counts.segwit_inputs += u64::from(segwit_inputs(tx));
            counts.many_input_segwit_txs += has_many;
        } else {
            counts.many_input_legacy_txs += has_many;
        }
    }
    let (time, version, bits) = (header.time, header.version, header.bits);
    BlockRow { height, hash, time, version, bits, place, counts }
}

/// Rows of the transactions in `range`; `txids` covers the whole block.
pub(crate) fn tx_rows(
    block: &Block,
    height: u32,
    range: Range<usize>,
    txids: &[Txid],
) -> Vec<TxRow> {
    let row = |index: usize| {
        let tx = block.tx(index);
        let is_coinbase = index == 0;
        TxRow {
            height,
            index: index as u32,
            txid: txids[index],
            version: tx.version(),
            lock_time: tx.lock_time(),
            is_coinbase,
            is_segwit: tx.has_witness(),
            inputs: if is_coinbase { 0 } else { tx.input_count() as u32 },
            segwit_inputs: if is_coinbase { 0 } else { segwit_inputs(tx) },
            outputs: tx.output_count() as u32,
            bytes: tx.total_size() as u32,
            stripped_bytes: tx.stripped_size() as u32,
            output_value: tx.outputs().map(|output| i128::from(output.value)).sum(),
        }
    };
    range.map(row).collect()
}

fn segwit_inputs(tx: Tx<'_>) -> u32 {
    if !tx.has_witness() {
        return 0;
    }
    (0..tx.input_count()).filter(|index| !tx.witness(*index).is_empty()).count() as u32
}
