//! The index at one moment, and the questions that it answers.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use assay_wire::{BlockHash, OutPoint, Txid};

use super::files::Files;
use super::memory::MemoryRun;
use super::row::{Key, Keys, Row, Table, TxNumber};
use super::run::{Run, Visit};
use super::types::{
    BlockTxs, HistoryEntry, Limits, QueryError, ScriptHash, Spender, TxPosition, Unspent,
};
use crate::chain::Tip;

/// The index as it was at one moment: cheap to clone, unaffected by blocks that come later.
///
/// When the chain is reorganised below the view's tip, questions end with [`QueryError::Reorganised`]: take a new view.
#[derive(Clone)]
pub struct View {
    inner: Arc<Inner>,
}

struct Inner {
    keys: Keys,
    tip: Option<Tip>,
    tx_count: TxNumber,
    /// In the order of the chain.
    parts: Vec<Part>,
    files: Arc<Files>,
    epoch: Arc<AtomicU64>,
    epoch_seen: u64,
}

/// Rows of a range of transactions.
pub(crate) struct Part {
    pub(crate) source: Source,
    /// The transaction from which on its rows are void.
    pub(crate) end_tx: TxNumber,
}

/// Where rows are.
pub(crate) enum Source {
    Disk(Arc<Run>),
    Memory(Arc<MemoryRun>),
}

impl View {
    pub(crate) fn new(
        keys: Keys,
        (tip, tx_count): (Option<Tip>, TxNumber),
        parts: Vec<Part>,
        files: Arc<Files>,
        epoch: Arc<AtomicU64>,
    ) -> Self {
        let epoch_seen = epoch.load(Ordering::SeqCst);
        let inner = Inner { keys, tip, tx_count, parts, files, epoch, epoch_seen };
        Self { inner: Arc::new(inner) }
    }

    /// The highest block indexed; `None` before genesis is.
    pub fn tip(&self) -> Option<Tip> {
        self.inner.tip
    }

    /// Transactions indexed.
    pub fn tx_count(&self) -> u64 {
        self.inner.tx_count
    }

    /// The 80 bytes of the header at `height`.
    ///
    /// # Errors
    /// A file of the index cannot be read or is damaged, or the chain was reorganised.
    pub fn header(&self, height: u32) -> Result<Option<[u8; 80]>, QueryError> {
        if !self.has_height(height) {
            return Ok(None);
        }
        self.answer(|inner| Ok(Some(inner.files.heights(height, 1)?[0].header)))
    }

    /// Up to `count` headers from `start` on, one after the other.
    ///
    /// # Errors
    /// As [`View::header`].
    pub fn headers(&self, start: u32, count: usize) -> Result<Vec<u8>, QueryError> {
        let heights = self.inner.tip.map_or(0, |tip| tip.height + 1);
        let count = heights.saturating_sub(start).min(u32::try_from(count).unwrap_or(u32::MAX));
        if count == 0 {
            return Ok(Vec::new());
        }
        self.answer(|inner| {
            let records = inner.files.heights(start, count)?;
            Ok(records.iter().flat_map(|record| record.header).collect())
        })
    }

    /// Hash of the block at `height`.
    ///
    /// # Errors
    /// As [`View::header`].
    pub fn block_hash(&self, height: u32) -> Result<Option<BlockHash>, QueryError> {
        if !self.has_height(height) {
            return Ok(None);
        }
        self.answer(|inner| Ok(Some(inner.files.heights(height, 1)?[0].hash())))
    }

    /// Confirmed transactions that touch a script, from height `from` on, in the order of the chain.
    ///
    /// # Errors
    /// As [`View::header`]; and [`QueryError::TooLarge`].
    pub fn history(
        &self,
        script: &ScriptHash,
        from: u32,
        limits: Limits,
    ) -> Result<Vec<HistoryEntry>, QueryError> {
        if !self.has_height(from) {
            return Ok(Vec::new());
        }
        self.answer(|inner| {
            let first_tx = inner.files.first_tx(from).ok_or(QueryError::Reorganised)?;
            let mut txs: Vec<TxNumber> = Vec::new();
            let mut is_too_large = false;
            inner.rows(Table::Scripts, inner.keys.script(script), first_tx, &mut |row| {
                if txs.last() == Some(&row.tx()) {
                    return ControlFlow::Continue(());
                }
                if txs.len() >= limits.entries_max {
                    is_too_large = true;
                    return ControlFlow::Break(());
                }
                txs.push(row.tx());
                ControlFlow::Continue(())
            })?;
            if is_too_large {
                return Err(QueryError::TooLarge { max: limits.entries_max });
            }
            let txids = inner.txids(&txs)?;
            let entry = |(&tx, txid)| HistoryEntry { height: inner.files.height_of(tx), txid };
            Ok(txs.iter().zip(txids).map(entry).collect())
        })
    }

    /// Satoshi that a script holds; costs one pass over its rows and no memory.
    ///
    /// # Errors
    /// As [`View::header`].
    pub fn balance(&self, script: &ScriptHash) -> Result<u64, QueryError> {
        self.answer(|inner| {
            let (mut paid, mut spent) = (0u64, 0u64);
            inner.rows(Table::Scripts, inner.keys.script(script), 0, &mut |row| {
                let sum = if row.is_spend() { &mut spent } else { &mut paid };
                *sum = sum.wrapping_add(row.satoshi());
                ControlFlow::Continue(())
            })?;
            // The sums of a script that is used again and again may go beyond 64 bits; their difference cannot.
            Ok(paid.wrapping_sub(spent))
        })
    }

    /// Confirmed unspent outputs of a script, in the order of the chain.
    ///
    /// Costs one pass over the script's rows, and memory for what is unspent on the way, up to four times the limit.
    ///
    /// # Errors
    /// As [`View::header`]; and [`QueryError::TooLarge`].
    pub fn unspent(&self, script: &ScriptHash, limits: Limits) -> Result<Vec<Unspent>, QueryError> {
        self.answer(|inner| {
            let outputs = inner.unspent_rows(inner.keys.script(script), limits)?;
            let txs: Vec<TxNumber> = outputs.iter().map(Row::tx).collect();
            let txids = inner.txids(&txs)?;
            let unspent = |(row, txid): (&Row, Txid)| Unspent {
                height: inner.files.height_of(row.tx()),
                txid,
                vout: row.n(),
                value: row.satoshi(),
            };
            Ok(outputs.iter().zip(txids).map(unspent).collect())
        })
    }

    /// Where a transaction is.
    ///
    /// # Errors
    /// As [`View::header`].
    pub fn position(&self, txid: &Txid) -> Result<Option<TxPosition>, QueryError> {
        self.answer(|inner| {
            let Some(tx) = inner.tx_number(txid)? else { return Ok(None) };
            inner.position(tx).map(Some)
        })
    }

    /// All txids of the block at `height`.
    ///
    /// # Errors
    /// As [`View::header`].
    pub fn block_txs(&self, height: u32) -> Result<Option<BlockTxs>, QueryError> {
        if !self.has_height(height) {
            return Ok(None);
        }
        self.answer(|inner| {
            let (first, end) = inner.tx_range(height)?;
            let records = inner.files.txs(first, end - first)?;
            let hash = inner.files.heights(height, 1)?[0].hash();
            Ok(Some(BlockTxs { hash, txids: records.iter().map(|record| record.txid).collect() }))
        })
    }

    /// The txid at a place of a block.
    ///
    /// # Errors
    /// As [`View::header`].
    pub fn txid_at(&self, height: u32, index: u32) -> Result<Option<Txid>, QueryError> {
        if !self.has_height(height) {
            return Ok(None);
        }
        self.answer(|inner| {
            let (first, end) = inner.tx_range(height)?;
            let tx = first + u64::from(index);
            if tx < end { Ok(Some(inner.files.txs(tx, 1)?[0].txid)) } else { Ok(None) }
        })
    }

    /// What spends an output.
    ///
    /// # Errors
    /// As [`View::header`].
    pub fn spender(&self, outpoint: &OutPoint) -> Result<Option<Spender>, QueryError> {
        self.answer(|inner| {
            let Some((tx, vin)) = inner.spender(outpoint)? else { return Ok(None) };
            let txid = inner.files.txs(tx, 1)?[0].txid;
            Ok(Some(Spender { height: inner.files.height_of(tx), txid, vin }))
        })
    }

    fn has_height(&self, height: u32) -> bool {
        self.inner.tip.is_some_and(|tip| height <= tip.height)
    }

    /// Files are shared with later views: what was read counts only when no reorganisation came in between, and what looks
    /// like damage may be one.
    fn answer<T>(
        &self,
        ask: impl FnOnce(&Inner) -> Result<T, QueryError>,
    ) -> Result<T, QueryError> {
        let answer = ask(&self.inner);
        let is_current = self.inner.epoch.load(Ordering::SeqCst) == self.inner.epoch_seen;
        if is_current { answer } else { Err(QueryError::Reorganised) }
    }
}

impl Inner {
    /// Visits the rows of a key from a transaction on, in the order of the chain.
    fn rows(
        &self,
        table: Table,
        key: Key,
        first_tx: TxNumber,
        visit: &mut Visit<'_>,
    ) -> Result<(), QueryError> {
        for part in &self.parts {
            if part.end_tx <= first_tx {
                continue;
            }
            let range = (key.at(first_tx), key.at(part.end_tx));
            let flow = match &part.source {
                Source::Disk(run) => run.scan(table, range, visit)?,
                Source::Memory(run) => run.scan(table, range, visit),
            };
            if flow.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// The rows of a script's outputs that no input spends.
    ///
    /// Inputs are matched with outputs by tag. Where tags of several outputs agree and only some are spent, the table of
    /// spenders decides.
    fn unspent_rows(&self, key: Key, limits: Limits) -> Result<Vec<Row>, QueryError> {
        let mut open = OpenOutputs::default();
        let on_the_way_max = limits.entries_max.saturating_mul(4);
        let mut is_too_large = false;
        self.rows(Table::Scripts, key, 0, &mut |row| {
            open.add(row);
            is_too_large = open.len() > on_the_way_max;
            if is_too_large { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        let mut unspent = Vec::new();
        for (output, is_certain) in open.finish() {
            if is_certain || self.is_unspent(&output)? {
                unspent.push(output);
            }
        }
        if is_too_large || unspent.len() > limits.entries_max {
            return Err(QueryError::TooLarge { max: limits.entries_max });
        }
        unspent.sort_unstable();
        Ok(unspent)
    }

    fn is_unspent(&self, output: &Row) -> Result<bool, QueryError> {
        let txid = self.files.txs(output.tx(), 1)?[0].txid;
        Ok(self.spender(&OutPoint { txid, vout: output.n() })?.is_none())
    }

    fn spender(&self, outpoint: &OutPoint) -> Result<Option<(TxNumber, u32)>, QueryError> {
        let (key, _) = self.keys.outpoint(outpoint);
        let mut found = None;
        self.rows(Table::Spenders, key, 0, &mut |row| {
            found = Some((row.tx(), row.n()));
            ControlFlow::Continue(())
        })?;
        Ok(found)
    }

    /// The last transaction with this txid: two coinbases of 2010 came twice (BIP30).
    fn tx_number(&self, txid: &Txid) -> Result<Option<TxNumber>, QueryError> {
        let mut candidates = Vec::new();
        self.rows(Table::Txids, self.keys.txid(txid), 0, &mut |row| {
            candidates.push(row.tx());
            ControlFlow::Continue(())
        })?;
        while let Some(tx) = candidates.pop() {
            if self.files.txs(tx, 1)?[0].txid == *txid {
                return Ok(Some(tx));
            }
        }
        Ok(None)
    }

    fn position(&self, tx: TxNumber) -> Result<TxPosition, QueryError> {
        let height = self.files.height_of(tx);
        let (first, end) = self.tx_range(height)?;
        let block = self.files.heights(height, 1)?[0];
        let records = self.files.txs(tx, (end - tx).min(2))?;
        let offset = records[0].offset;
        let next = records.get(1).map_or(block.block_bytes, |next| next.offset);
        let (index, length) = ((tx - first) as u32, next.saturating_sub(offset));
        Ok(TxPosition { height, block: block.hash(), index, offset, length })
    }

    /// The transactions of a height of this view: from the first to before the second.
    fn tx_range(&self, height: u32) -> Result<(TxNumber, TxNumber), QueryError> {
        let first = self.files.first_tx(height).ok_or(QueryError::Reorganised)?;
        let is_tip = self.tip.is_some_and(|tip| tip.height == height);
        let end = if is_tip { Some(self.tx_count) } else { self.files.first_tx(height + 1) };
        let end = end.filter(|&end| end > first).ok_or(QueryError::Reorganised)?;
        Ok((first, end))
    }

    /// The txids of transactions in ascending order, neighbours read together.
    fn txids(&self, txs: &[TxNumber]) -> Result<Vec<Txid>, QueryError> {
        let mut txids = Vec::with_capacity(txs.len());
        for near in txs.chunk_by(|&a, &b| b - a <= NEAR_TXS) {
            for near in near.chunks(NEAR_TXS_MAX) {
                let (first, last) = (near[0], near[near.len() - 1]);
                let records = self.files.txs(first, last - first + 1)?;
                txids.extend(near.iter().map(|&tx| records[(tx - first) as usize].txid));
            }
        }
        Ok(txids)
    }
}

/// Outputs of one script while its rows go by.
#[derive(Default)]
struct OpenOutputs {
    /// By tag: outputs that may be unspent, and how many inputs have spent outputs of that tag.
    by_tag: HashMap<u32, (Vec<Row>, usize)>,
    len: usize,
}

impl OpenOutputs {
    fn len(&self) -> usize {
        self.len
    }

    fn add(&mut self, row: Row) {
        let (outputs, spends) = self.by_tag.entry(row.tag).or_default();
        if row.is_spend() {
            *spends += 1;
        } else {
            outputs.push(row);
            self.len += 1;
        }
        // In a block that is ordered by txid an input may come before the output that it spends.
        if outputs.len() == *spends {
            self.len -= outputs.len();
            self.by_tag.remove(&row.tag);
        }
    }

    /// What is left, each with whether it is unspent for certain.
    fn finish(self) -> impl Iterator<Item = (Row, bool)> {
        self.by_tag
            .into_values()
            .flat_map(|(outputs, spends)| outputs.into_iter().map(move |row| (row, spends == 0)))
    }
}

/// Transactions that are this near to one another are read at once.
const NEAR_TXS: u64 = 16;
const NEAR_TXS_MAX: usize = 4096;
