//! A test chain of synthetic blocks and transactions.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use assay_testkit::chain::{TxBuilder, block_bytes, header_on};
use assay_wire::{Block, BlockHash, Coin, Encoding, Header, OutPoint, Script, Transaction, Txid};
use parking_lot::{Condvar, Mutex};

use crate::chain::{
    Chain, ChainError, Connected, ConnectedBlock, MempoolChange, MempoolChanges, MempoolTx, Relay,
    RelayError, SnapshotId, TestVerdict, Tip,
};

/// A transaction that spends `inputs` and pays `outputs`; `tag` makes it unique.
pub(crate) fn tx(inputs: &[OutPoint], outputs: &[(i64, &[u8])], tag: u32) -> Transaction {
    let tag = tag.to_le_bytes();
    let spend = |tx: TxBuilder, input: &OutPoint| tx.spend(*input, &tag, u32::MAX);
    let tx = inputs.iter().fold(TxBuilder::new(2), spend);
    outputs.iter().fold(tx, |tx, (value, script)| tx.output(*value, script)).build()
}

pub(crate) fn coinbase(outputs: &[(i64, &[u8])], tag: u32) -> Transaction {
    tx(&[OutPoint::NULL], outputs, tag)
}

pub(crate) fn out(tx: &Transaction, vout: u32) -> OutPoint {
    OutPoint { txid: tx.view().txid(), vout }
}

/// The mempool entry of a transaction that spends coins `spent`.
pub(crate) fn unconfirmed(tx: &Transaction, spent: &[(i64, &[u8])], fee_sat: i64) -> MempoolTx {
    let coin = |(value, script): &(i64, &[u8])| Coin {
        value: *value,
        height: 1,
        coinbase: false,
        script_pubkey: Script::from(*script),
    };
    MempoolTx {
        txid: tx.view().txid(),
        tx: Arc::new(tx.clone()),
        spent: spent.iter().map(coin).collect(),
        fee_sat,
        vsize: tx.view().total_size() as u32,
    }
}

/// Changes with an arbitrary final state.
pub(crate) fn changes(from_scratch: bool, changes: Vec<MempoolChange>) -> MempoolChanges {
    let tip = Tip { height: 0, hash: BlockHash::ZERO };
    MempoolChanges { moment: SnapshotId { tip, mempool: 0 }, from_scratch, changes }
}

pub(crate) struct FakeBlock {
    pub(crate) bytes: Vec<u8>,
    pub(crate) header: Header,
    pub(crate) hash: BlockHash,
    pub(crate) txs: Vec<Transaction>,
}

impl FakeBlock {
    pub(crate) fn new(prev_block: BlockHash, txs: Vec<Transaction>, nonce: u32) -> Self {
        let header = Header { nonce, ..header_on(prev_block, 1_700_000_000) };
        let bytes = block_bytes(header, &txs);
        let header = Header::parse(bytes[..80].as_array().expect("a header"));
        Self { bytes, header, hash: header.hash(), txs }
    }

    pub(crate) fn txids(&self) -> Vec<Txid> {
        self.txs.iter().map(|tx| tx.view().txid()).collect()
    }
}

/// A raw block and its undo data.
pub(crate) type StoredBlock = (Vec<u8>, Vec<u8>);

/// A node of lists, without a mempool.
#[derive(Default)]
pub(crate) struct FakeChain {
    pub(crate) blocks: Mutex<HashMap<BlockHash, StoredBlock>>,
    active: Mutex<Vec<BlockHash>>,
    pub(crate) fresh: Mutex<Vec<StoredBlock>>,
    changed: Condvar,
    is_stopping: AtomicBool,
    /// Blocks and undo data read.
    pub(crate) reads: AtomicUsize,
    pub(crate) sent: Mutex<Vec<Txid>>,
}

impl FakeChain {
    /// Stores the blocks of a chain alone, and activates it.
    pub(crate) fn set(&self, chain: impl IntoIterator<Item = StoredBlock>) {
        let (mut blocks, mut active) = (self.blocks.lock(), self.active.lock());
        blocks.clear();
        active.clear();
        for stored in chain {
            let hash = parse(&stored).hash();
            active.push(hash);
            blocks.insert(hash, stored);
        }
        self.changed.notify_all();
    }

    pub(crate) fn stop(&self) {
        self.is_stopping.store(true, Ordering::SeqCst);
        let _active = self.active.lock();
        self.changed.notify_all();
    }

    fn stored(&self, hash: &BlockHash) -> Option<StoredBlock> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.blocks.lock().get(hash).cloned()
    }

    /// Admits every well-formed transaction, unless it spends the null outpoint.
    fn verdict(raw: &[u8]) -> Result<Transaction, RelayError> {
        let refusal = |reason: &str, debug: &str| RelayError {
            reason: reason.to_owned(),
            debug: debug.to_owned(),
        };
        let tx = Transaction::parse(raw, Encoding::Segwit)
            .map_err(|_| refusal("TX decode failed", "Make sure the tx has at least one input."))?;
        if tx.view().inputs().any(|input| input.prevout.is_null()) {
            return Err(refusal("coinbase", ""));
        }
        Ok(tx)
    }
}

fn parse((raw, _): &StoredBlock) -> Block {
    Block::parse(raw.clone(), Encoding::Segwit).unwrap()
}

fn tip_of(active: &[BlockHash]) -> Tip {
    let hash = active.last().copied().unwrap_or(BlockHash::ZERO);
    Tip { height: active.len().saturating_sub(1) as u32, hash }
}

struct Fresh {
    block: Block,
    txids: Vec<Txid>,
    undo: Vec<u8>,
}

impl ConnectedBlock for Fresh {
    fn block(&self) -> &Block {
        &self.block
    }
    fn txids(&self) -> &[Txid] {
        &self.txids
    }
    fn undo(&self) -> &[u8] {
        &self.undo
    }
}

impl Chain for FakeChain {
    fn encoding(&self) -> Encoding {
        Encoding::Segwit
    }

    fn tip(&self) -> Tip {
        tip_of(&self.active.lock())
    }

    fn wait(&self, seen: &SnapshotId, timeout: Duration) -> SnapshotId {
        let mut active = self.active.lock();
        let is_same =
            |active: &mut Vec<BlockHash>| tip_of(active) == seen.tip && !self.is_stopping();
        self.changed.wait_while_for(&mut active, is_same, timeout);
        SnapshotId { tip: tip_of(&active), mempool: 0 }
    }

    fn wait_for_tip(&self, seen: &Tip, timeout: Duration) {
        self.wait(&SnapshotId { tip: *seen, mempool: 0 }, timeout);
    }

    fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::SeqCst)
    }

    fn hash_at(&self, height: u32) -> Option<BlockHash> {
        self.active.lock().get(height as usize).copied()
    }

    fn take_connected(&self, parent: &BlockHash) -> Option<Connected> {
        let mut fresh = self.fresh.lock();
        let is_next = |stored: &StoredBlock| parse(stored).header().prev_block == *parent;
        let stored = fresh.iter().position(is_next).map(|at| fresh.remove(at))?;
        let block = parse(&stored);
        let txids = block.txids(0..block.tx_count());
        Some(Box::new(Fresh { block, txids, undo: stored.1 }))
    }

    fn block(&self, hash: &BlockHash) -> Result<Option<Vec<u8>>, ChainError> {
        Ok(self.stored(hash).map(|(raw, _)| raw))
    }

    fn block_part(
        &self,
        hash: &BlockHash,
        offset: u32,
        length: u32,
    ) -> Result<Option<Vec<u8>>, ChainError> {
        let part = offset as usize..(offset + length) as usize;
        Ok(self.stored(hash).map(|(raw, _)| raw[part].to_vec()))
    }

    fn block_part_at_once(&self, hash: &BlockHash, offset: u32, length: u32) -> Option<Vec<u8>> {
        self.block_part(hash, offset, length).ok().flatten()
    }

    fn undo(&self, hash: &BlockHash) -> Result<Option<Vec<u8>>, ChainError> {
        Ok(self.stored(hash).map(|(_, undo)| undo))
    }

    fn mempool_since(&self, since: Option<u64>) -> Result<MempoolChanges, ChainError> {
        let moment = SnapshotId { tip: self.tip(), mempool: 0 };
        Ok(MempoolChanges { moment, from_scratch: since.is_none(), changes: Vec::new() })
    }

    fn broadcast(&self, raw: &[u8]) -> Result<Txid, RelayError> {
        let txid = Self::verdict(raw)?.view().txid();
        self.sent.lock().push(txid);
        Ok(txid)
    }

    fn test(&self, raws: &[Vec<u8>]) -> Vec<TestVerdict> {
        let verdict = |raw: &Vec<u8>| {
            let tx = Transaction::parse(raw.as_slice(), Encoding::Segwit).ok();
            TestVerdict {
                txid: tx.as_ref().map(|tx| tx.view().txid()),
                wtxid: tx.as_ref().map(|tx| tx.view().wtxid()),
                vsize: raw.len() as u32,
                fee_sat: 1000,
                refusal: Self::verdict(raw).err(),
            }
        };
        raws.iter().map(verdict).collect()
    }

    fn relay(&self) -> Relay {
        Relay {
            min_relay_fee_sat_per_kvb: 100,
            mempool_min_fee_sat_per_kvb: 1_234,
            incremental_relay_fee_sat_per_kvb: 100,
        }
    }

    fn relay_at_once(&self) -> Option<Relay> {
        Some(self.relay())
    }
}
