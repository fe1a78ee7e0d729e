//! A test chain of lists: blocks of synthetic transactions, with index queries answered by linear scans.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use assay_testkit::chain::{TxBuilder, block_bytes};
use assay_wire::{Block, BlockHash, Coin, Encoding, Header, OutPoint, Script, Transaction, Txid};
use parking_lot::Mutex;

use crate::chain::{
    Chain, ChainError, Connected, MempoolChange, MempoolChanges, MempoolTx, Moment, Refusal, Relay,
    TestVerdict, Tip,
};
use crate::index::{
    BlockTxs, HistoryEntry, Limits, QueryError, ScriptHash, Spender, TxPosition, Unspent,
};
use crate::server::Confirmed;

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
    MempoolChanges { moment: Moment { tip, mempool: 0 }, from_scratch, changes }
}

#[derive(Debug)]
pub(crate) struct LedgerBlock {
    pub(crate) bytes: Vec<u8>,
    pub(crate) header: Header,
    pub(crate) hash: BlockHash,
    pub(crate) txs: Vec<Transaction>,
}

impl LedgerBlock {
    pub(crate) fn new(prev_block: BlockHash, txs: Vec<Transaction>, nonce: u32) -> Self {
        let header = Header {
            version: 1,
            prev_block,
            merkle_root: [0; 32],
            time: 1_700_000_000,
            bits: 1,
            nonce,
        };
        let bytes = block_bytes(header, &txs);
        let header = Header::parse(bytes[..80].as_array().expect("a header"));
        Self { bytes, header, hash: header.hash(), txs }
    }

    pub(crate) fn txids(&self) -> Vec<Txid> {
        self.txs.iter().map(|tx| tx.view().txid()).collect()
    }
}

/// A list of blocks with the queries of an index. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) blocks: Arc<Vec<Arc<LedgerBlock>>>,
}

impl Ledger {
    fn outputs(&self) -> HashMap<OutPoint, (ScriptHash, u64)> {
        let mut outputs = HashMap::new();
        for tx in self.blocks.iter().flat_map(|block| &block.txs) {
            let txid = tx.view().txid();
            for (vout, output) in tx.view().outputs().enumerate() {
                let outpoint = OutPoint { txid, vout: vout as u32 };
                let script = ScriptHash::of(output.script_pubkey);
                outputs.insert(outpoint, (script, output.value as u64));
            }
        }
        outputs
    }

    pub(crate) fn history(
        &self,
        script: &ScriptHash,
        from: u32,
        limits: Limits,
    ) -> Result<Vec<HistoryEntry>, QueryError> {
        let outputs = self.outputs();
        let mut history = Vec::new();
        for (height, block) in self.blocks.iter().enumerate().skip(from as usize) {
            for tx in &block.txs {
                let view = tx.view();
                let pays = view.outputs().any(|o| ScriptHash::of(o.script_pubkey) == *script);
                let spends = view
                    .inputs()
                    .any(|i| outputs.get(&i.prevout).is_some_and(|(owner, _)| owner == script));
                if pays || spends {
                    history.push(HistoryEntry { height: height as u32, txid: view.txid() });
                }
            }
        }
        Self::limited(history, limits)
    }

    fn limited<T>(list: Vec<T>, limits: Limits) -> Result<Vec<T>, QueryError> {
        if list.len() > limits.entries_max {
            Err(QueryError::TooLarge { max: limits.entries_max })
        } else {
            Ok(list)
        }
    }
}

impl Confirmed for Ledger {
    fn at_once(&self) -> Arc<dyn Confirmed> {
        Arc::new(self.clone())
    }

    fn tip(&self) -> Option<Tip> {
        let height = u32::try_from(self.blocks.len()).unwrap().checked_sub(1)?;
        Some(Tip { height, hash: self.blocks[height as usize].hash })
    }

    fn header(&self, height: u32) -> Result<Option<[u8; 80]>, QueryError> {
        Ok(self.blocks.get(height as usize).map(|block| block.header.to_bytes()))
    }

    fn headers(&self, start: u32, count: usize) -> Result<Vec<u8>, QueryError> {
        let blocks = self.blocks.iter().skip(start as usize).take(count);
        Ok(blocks.flat_map(|block| block.header.to_bytes()).collect())
    }

    fn block_hash(&self, height: u32) -> Result<Option<BlockHash>, QueryError> {
        Ok(self.blocks.get(height as usize).map(|block| block.hash))
    }

    fn visit_history(
        &self,
        script: &ScriptHash,
        from: u32,
        limits: Limits,
        visit: &mut dyn FnMut(HistoryEntry) -> ControlFlow<()>,
    ) -> Result<(), QueryError> {
        let _ = self.history(script, from, limits)?.into_iter().try_for_each(visit);
        Ok(())
    }

    fn balance(&self, script: &ScriptHash) -> Result<u64, QueryError> {
        let unspent = self.unspent(script, Limits { entries_max: usize::MAX })?;
        Ok(unspent.iter().map(|output| output.value).sum())
    }

    fn unspent(&self, script: &ScriptHash, limits: Limits) -> Result<Vec<Unspent>, QueryError> {
        let txs = || self.blocks.iter().flat_map(|block| &block.txs);
        let spent: Vec<OutPoint> =
            txs().flat_map(|tx| tx.view().inputs().map(|input| input.prevout)).collect();
        let mut unspent = Vec::new();
        for (height, block) in self.blocks.iter().enumerate() {
            for tx in &block.txs {
                let txid = tx.view().txid();
                for (vout, output) in tx.view().outputs().enumerate() {
                    let outpoint = OutPoint { txid, vout: vout as u32 };
                    if ScriptHash::of(output.script_pubkey) == *script && !spent.contains(&outpoint)
                    {
                        unspent.push(Unspent {
                            height: height as u32,
                            txid,
                            vout: vout as u32,
                            value: output.value as u64,
                        });
                    }
                }
            }
        }
        Self::limited(unspent, limits)
    }

    fn position(&self, txid: &Txid) -> Result<Option<TxPosition>, QueryError> {
        for (height, block) in self.blocks.iter().enumerate() {
            let mut offset = 81;
            for (index, tx) in block.txs.iter().enumerate() {
                let length = tx.bytes().len() as u32;
                if tx.view().txid() == *txid {
                    return Ok(Some(TxPosition {
                        height: height as u32,
                        block: block.hash,
                        index: index as u32,
                        offset,
                        length,
                    }));
                }
                offset += length;
            }
        }
        Ok(None)
    }

    fn block_txs(&self, height: u32) -> Result<Option<BlockTxs>, QueryError> {
        let block = self.blocks.get(height as usize);
        Ok(block.map(|block| BlockTxs { hash: block.hash, txids: block.txids() }))
    }

    fn txid_at(&self, height: u32, index: u32) -> Result<Option<Txid>, QueryError> {
        let block = self.blocks.get(height as usize);
        Ok(block.and_then(|block| block.txids().get(index as usize).copied()))
    }

    fn spender(&self, outpoint: &OutPoint) -> Result<Option<Spender>, QueryError> {
        for (height, block) in self.blocks.iter().enumerate() {
            for tx in &block.txs {
                let found = tx.view().inputs().position(|input| input.prevout == *outpoint);
                if let Some(vin) = found {
                    let txid = tx.view().txid();
                    return Ok(Some(Spender { height: height as u32, txid, vin: vin as u32 }));
                }
            }
        }
        Ok(None)
    }
}

#[derive(Debug, Default)]
pub(crate) struct FakeChain {
    pub(crate) blocks: Mutex<HashMap<BlockHash, Arc<LedgerBlock>>>,
    pub(crate) sent: Mutex<Vec<Txid>>,
}

impl FakeChain {
    /// Admits every well-formed transaction, unless it spends the null outpoint.
    fn verdict(raw: &[u8]) -> Result<Transaction, Refusal> {
        let refusal = |reason: &str, debug: &str| Refusal {
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

impl Chain for FakeChain {
    fn encoding(&self) -> Encoding {
        Encoding::Segwit
    }

    fn tip(&self) -> Tip {
        Tip { height: 0, hash: BlockHash::ZERO }
    }

    fn wait(&self, seen: &Moment, _timeout: Duration) -> Moment {
        *seen
    }

    fn wait_for_tip(&self, _seen: &Tip, _timeout: Duration) {}

    fn is_stopping(&self) -> bool {
        false
    }

    fn hash_at(&self, _height: u32) -> Option<BlockHash> {
        None
    }

    fn take_connected(&self, _hash: &BlockHash) -> Option<Connected> {
        None
    }

    fn block(&self, hash: &BlockHash) -> Result<Option<Vec<u8>>, ChainError> {
        Ok(self.blocks.lock().get(hash).map(|block| block.bytes.clone()))
    }

    fn block_part(
        &self,
        hash: &BlockHash,
        offset: u32,
        length: u32,
    ) -> Result<Option<Vec<u8>>, ChainError> {
        let part = offset as usize..(offset + length) as usize;
        Ok(self.blocks.lock().get(hash).map(|block| block.bytes[part].to_vec()))
    }

    fn block_part_at_once(&self, hash: &BlockHash, offset: u32, length: u32) -> Option<Vec<u8>> {
        self.block_part(hash, offset, length).ok().flatten()
    }

    fn undo(&self, _hash: &BlockHash) -> Result<Option<Vec<u8>>, ChainError> {
        Ok(None)
    }

    fn mempool_since(&self, _since: Option<u64>) -> Result<MempoolChanges, ChainError> {
        Ok(changes(true, Vec::new()))
    }

    fn broadcast(&self, raw: &[u8]) -> Result<Txid, Refusal> {
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

#[test]
fn the_parser_reads_the_made_blocks() {
    let block = LedgerBlock::new(BlockHash::ZERO, vec![coinbase(&[(50, b"a")], 1)], 0);
    let parsed = Block::parse(block.bytes.clone(), Encoding::Segwit).unwrap();
    assert_eq!(parsed.hash(), block.hash);
    assert_eq!(parsed.tx(0).txid(), block.txids()[0]);
}
