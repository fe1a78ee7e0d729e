//! Rows of a block, computed from the block and its spent coins alone.

use assay_store::{UndoError, UndoReader};
use assay_wire::{Block, BlockHash, OutPoint, Tx, Txid};

use super::files::TxRecord;
use super::row::{Keys, N_MAX, Row, Table, Tables};
use super::types::ScriptHash;

/// The rows of one block, with transactions numbered from 0.
pub struct BlockRows {
    pub(crate) hash: BlockHash,
    pub(crate) prev_block: BlockHash,
    pub(crate) header: [u8; 80],
    pub(crate) block_bytes: u32,
    pub(crate) txs: Vec<TxRecord>,
    pub(crate) tables: Tables,
    pub(crate) counts: Counts,
}

impl BlockRows {
    pub fn counts(&self) -> Counts {
        self.counts
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counts {
    pub blocks: u64,
    /// With coinbases.
    pub txs: u64,
    /// Without those of coinbases.
    pub inputs: u64,
    /// With unspendable ones.
    pub outputs: u64,
    /// Serialised size of the blocks.
    pub bytes: u64,
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.blocks += other.blocks;
        self.txs += other.txs;
        self.inputs += other.inputs;
        self.outputs += other.outputs;
        self.bytes += other.bytes;
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrepareError {
    #[error("undo data of block {hash}: {source}")]
    Undo { hash: BlockHash, source: UndoError },
    #[error("the undo data of block {hash} does not have one coin for each input")]
    Mismatch { hash: BlockHash },
    #[error("transaction {txid} has {N_MAX} inputs or outputs or more")]
    TooMany { txid: Txid },
}

/// Tables that an index fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    All,
    /// Transactions alone: needs no undo data, and scripts have no history.
    Txids,
}

/// Computes the rows of a block; appends the script of every output and of every spent output to `touched`.
pub(crate) fn prepare(
    (keys, scope): (&Keys, Scope),
    block: &Block,
    txids: &[Txid],
    undo: Option<&[u8]>,
    touched: &mut dyn FnMut(&ScriptHash),
) -> Result<BlockRows, PrepareError> {
    let hash = block.hash();
    let (is_all, bytes) = (scope == Scope::All, block.bytes().len());
    let undo_error = |source| PrepareError::Undo { hash, source };
    let undo = undo.filter(|_| is_all).map(UndoReader::new);
    let mut spent = undo.transpose().map_err(undo_error)?;
    let (inputs, outputs) = match scope {
        Scope::All => (block.input_count(), block.output_count()),
        Scope::Txids => (0, 0),
    };
    let mut tables: Tables = [
        Vec::with_capacity(inputs + outputs),
        Vec::with_capacity(inputs),
        Vec::with_capacity(txids.len()),
    ];
    let mut txs = Vec::with_capacity(txids.len());
    for (number, (tx, txid)) in (0..).zip(block.txs().zip(txids)) {
        txs.push(TxRecord { txid: *txid, offset: tx.offset() as u32 });
        tables[Table::Txids as usize].push(Row::new(keys.txid(txid), number, 0, 0, 0));
        if !is_all {
            continue;
        }
        if tx.input_count().max(tx.output_count()) >= N_MAX as usize {
            return Err(PrepareError::TooMany { txid: *txid });
        }
        if number > 0 {
            for (vin, input) in tx.inputs().enumerate() {
                let coin = spent.as_mut().and_then(Iterator::next);
                let coin = coin.ok_or(PrepareError::Mismatch { hash })?.map_err(undo_error)?;
                let script = ScriptHash::of(&coin.script_pubkey);
                touched(&script);
                let (outpoint, tag) = keys.outpoint(&input.prevout);
                let value = (coin.value as u64) << 1 | 1;
                let key = keys.script(&script);
                tables[Table::Scripts as usize].push(Row::new(key, number, vin as u32, value, tag));
                tables[Table::Spenders as usize].push(Row::new(outpoint, number, vin as u32, 0, 0));
            }
        }
        add_outputs(keys, (tx, *txid, number), &mut tables[Table::Scripts as usize], touched);
    }
    if let Some(left) = spent.and_then(|mut spent| spent.next()) {
        left.map_err(undo_error)?;
        return Err(PrepareError::Mismatch { hash });
    }
    for rows in &mut tables {
        rows.sort_unstable();
    }
    let counts = Counts {
        blocks: 1,
        txs: txs.len() as u64,
        inputs: tables[Table::Spenders as usize].len() as u64,
        outputs: outputs as u64,
        bytes: bytes as u64,
    };
    let (prev_block, header) = (block.header().prev_block, block.header().to_bytes());
    Ok(BlockRows { hash, prev_block, header, block_bytes: bytes as u32, txs, tables, counts })
}

fn add_outputs(
    keys: &Keys,
    (tx, txid, number): (Tx<'_>, Txid, u64),
    scripts: &mut Vec<Row>,
    touched: &mut dyn FnMut(&ScriptHash),
) {
    for (vout, output) in (0..).zip(tx.outputs()) {
        if is_unspendable(output.script_pubkey) {
            continue;
        }
        let script = ScriptHash::of(output.script_pubkey);
        touched(&script);
        let (_, tag) = keys.outpoint(&OutPoint { txid, vout });
        scripts.push(Row::new(keys.script(&script), number, vout, (output.value as u64) << 1, tag));
    }
}

/// Unspendable outputs are in no history, as in `ElectrumX`. Same rule as Core's for coins (`script/script.h`, `IsUnspendable`).
pub(crate) fn is_unspendable(script_pubkey: &[u8]) -> bool {
    const OP_RETURN: u8 = 0x6a;
    const SCRIPT_BYTES_MAX: usize = 10_000;
    script_pubkey.first() == Some(&OP_RETURN) || script_pubkey.len() > SCRIPT_BYTES_MAX
}
