//! Snapshots of the index, and their queries.

use std::collections::HashMap;
use std::ops::{ControlFlow, Deref};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use assay_wire::{BlockHash, OutPoint, Txid};

use super::cache::{Reader, Reads};
use super::files::{Extent, Files, HeightRecord, TxReader};
use super::memory::MemoryRun;
use super::row::{Key, Keys, Row, Table, TxNumber};
use super::run::{Run, Visit};
use super::types::{BlockTxs, HistoryEntry, QueryError, ScriptHash, Spender, TxPosition, Unspent};
use crate::chain::Tip;

/// A snapshot of the index: cheap to clone, unaffected by later blocks.
///
/// After a reorg below the view's tip, queries fail with [`QueryError::Reorganised`]; use a new view.
#[derive(Clone)]
pub struct View {
    inner: Arc<Inner>,
    reads: Reads,
}

struct Inner {
    keys: Keys,
    tip: Option<Tip>,
    tx_count: TxNumber,
    /// In chain order.
    parts: Vec<Part>,
    files: Arc<Files>,
    epoch: Arc<AtomicU64>,
    epoch_seen: u64,
}

pub(crate) struct Part {
    pub(crate) source: Source,
    /// Rows from this transaction on are void.
    pub(crate) end_tx: TxNumber,
}

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
        Self { inner: Arc::new(inner), reads: Reads::Any }
    }

    /// The same view without blocking: [`QueryError::NotAtOnce`] for disk reads or more than a tenth of a millisecond.
    #[must_use]
    pub fn at_once(&self) -> Self {
        Self { inner: Arc::clone(&self.inner), reads: Reads::AtOnce }
    }

    /// Highest indexed block; `None` in an empty index.
    pub fn tip(&self) -> Option<Tip> {
        self.inner.tip
    }

    /// The 80 bytes of the header at `height`.
    pub fn header(&self, height: u32) -> Result<Option<[u8; 80]>, QueryError> {
        self.answer_at(height, |question| Ok(question.height(height)?.header))
    }

    /// Up to `count` headers from `start` on, concatenated.
    pub fn headers(&self, start: u32, count: usize) -> Result<Vec<u8>, QueryError> {
        let heights = self.inner.tip.map_or(0, |tip| tip.height + 1);
        let count = heights.saturating_sub(start).min(u32::try_from(count).unwrap_or(u32::MAX));
        if count == 0 {
            return Ok(Vec::new());
        }
        self.answer(|question| {
            if question.reads == Reads::Any {
                let records = question.files.heights(start, count)?;
                return Ok(records.iter().flat_map(|record| record.header).collect());
            }
            let mut headers = Vec::with_capacity(count as usize * 80);
            for height in start..start + count {
                headers.extend_from_slice(&question.height(height)?.header);
            }
            Ok(headers)
        })
    }

    pub fn block_hash(&self, height: u32) -> Result<Option<BlockHash>, QueryError> {
        self.answer_at(height, |question| Ok(question.height(height)?.hash()))
    }

    /// Confirmed transactions that touch a script, from height `from` on, in chain order: at most `entries_max`.
    pub fn history(
        &self,
        script: &ScriptHash,
        from: u32,
        entries_max: usize,
    ) -> Result<Vec<HistoryEntry>, QueryError> {
        let mut entries = Vec::new();
        self.visit_history(script, from, entries_max, &mut |entry| {
            entries.push(entry);
            ControlFlow::Continue(())
        })?;
        Ok(entries)
    }

    /// Visits the entries of [`View::history`] in constant memory. `visit` may end it. Discard the entries after an error.
    /// The size limit is checked before more than a small part was visited.
    pub fn visit_history(
        &self,
        script: &ScriptHash,
        from: u32,
        entries_max: usize,
        visit: &mut dyn FnMut(HistoryEntry) -> ControlFlow<()>,
    ) -> Result<(), QueryError> {
        if !self.has_height(from) {
            return Ok(());
        }
        self.answer(|question| {
            let first_tx = question.files.first_tx(from).ok_or(QueryError::Reorganised)?;
            let key = question.keys.script(script);
            let mut history = History::new(question, entries_max, visit);
            let mut failed = None;
            question.rows(Table::Scripts, key, first_tx, &mut |row| {
                let added =
                    history.add(row.tx(), || question.count_txs(key, first_tx, entries_max));
                added.unwrap_or_else(|error| {
                    failed = Some(error);
                    ControlFlow::Break(())
                })
            })?;
            failed.map_or(Ok(()), Err)?;
            history.flush().map(drop)
        })
    }

    /// Confirmed balance of a script in satoshi; one pass over its rows, constant memory.
    pub fn balance(&self, script: &ScriptHash) -> Result<u64, QueryError> {
        self.answer(|question| {
            let (mut paid, mut spent) = (0u64, 0u64);
            question.rows(Table::Scripts, question.keys.script(script), 0, &mut |row| {
                let sum = if row.is_spend() { &mut spent } else { &mut paid };
                *sum = sum.wrapping_add(row.satoshi());
                ControlFlow::Continue(())
            })?;
            // The sums of a heavily used script may overflow 64 bits; their difference cannot.
            Ok(paid.wrapping_sub(spent))
        })
    }

    /// Confirmed unspent outputs of a script, in chain order.
    ///
    /// One pass over the script's rows; memory for outputs unspent so far, up to four times the limit.
    pub fn unspent(
        &self,
        script: &ScriptHash,
        entries_max: usize,
    ) -> Result<Vec<Unspent>, QueryError> {
        self.answer(|question| {
            let outputs = question.unspent_rows(question.keys.script(script), entries_max)?;
            let mut entries = Entries::new(question);
            let unspent = |row: Row| -> Result<Unspent, QueryError> {
                let HistoryEntry { height, txid } = entries.of(row.tx())?;
                Ok(Unspent { height, txid, vout: row.n(), value: row.satoshi() })
            };
            outputs.into_iter().map(unspent).collect()
        })
    }

    pub fn position(&self, txid: &Txid) -> Result<Option<TxPosition>, QueryError> {
        self.answer(|question| {
            let Some(tx) = question.tx_number(txid)? else { return Ok(None) };
            question.position(tx).map(Some)
        })
    }

    /// All txids of the block at `height`.
    /// Always [`QueryError::NotAtOnce`] on a non-blocking view.
    pub fn block_txs(&self, height: u32) -> Result<Option<BlockTxs>, QueryError> {
        self.answer_at(height, |question| {
            if question.reads == Reads::AtOnce {
                return Err(QueryError::NotAtOnce);
            }
            let (first, end) = question.tx_range(height)?;
            let records = question.files.txs(first, end - first)?;
            let hash = question.height(height)?.hash();
            Ok(BlockTxs { hash, txids: records.iter().map(|record| record.txid).collect() })
        })
    }

    /// The txid at a position in a block.
    pub fn txid_at(&self, height: u32, index: u32) -> Result<Option<Txid>, QueryError> {
        let txid = self.answer_at(height, |question| {
            let (first, end) = question.tx_range(height)?;
            let tx = first + u64::from(index);
            if tx < end { question.txs().txid(tx).map(Some) } else { Ok(None) }
        });
        txid.map(Option::flatten)
    }

    pub fn spender(&self, outpoint: &OutPoint) -> Result<Option<Spender>, QueryError> {
        self.answer(|question| {
            let Some((tx, vin)) = question.spender(outpoint)? else { return Ok(None) };
            let HistoryEntry { height, txid } = Entries::new(question).of(tx)?;
            Ok(Some(Spender { height, txid, vin }))
        })
    }

    fn has_height(&self, height: u32) -> bool {
        self.inner.tip.is_some_and(|tip| height <= tip.height)
    }

    /// [`View::answer`] if the view has `height`.
    fn answer_at<T>(
        &self,
        height: u32,
        ask: impl FnOnce(&Question<'_>) -> Result<T, QueryError>,
    ) -> Result<Option<T>, QueryError> {
        if self.has_height(height) { self.answer(ask).map(Some) } else { Ok(None) }
    }

    /// Files are shared with later views: results are valid only without a reorg meanwhile; apparent damage may be one.
    fn answer<T>(
        &self,
        ask: impl FnOnce(&Question<'_>) -> Result<T, QueryError>,
    ) -> Result<T, QueryError> {
        let inner = &*self.inner;
        let reader = Reader::new(&inner.files.cache, self.reads);
        let answer = ask(&Question { inner, reads: self.reads, reader });
        let is_current = inner.epoch.load(Ordering::SeqCst) == inner.epoch_seen;
        if is_current { answer } else { Err(QueryError::Reorganised) }
    }
}

struct Question<'a> {
    inner: &'a Inner,
    reads: Reads,
    reader: Reader<'a>,
}

impl Deref for Question<'_> {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        self.inner
    }
}

impl Question<'_> {
    /// Visits the rows of a key from a transaction on, in chain order.
    fn rows(
        &self,
        table: Table,
        key: Key,
        first_tx: TxNumber,
        visit: &mut Visit<'_>,
    ) -> Result<(), QueryError> {
        let mut left = self.reader.rows_max();
        let visit: &mut Visit<'_> = &mut |row| {
            let Some(fewer) = left.checked_sub(1) else { return ControlFlow::Break(()) };
            left = fewer;
            visit(row)
        };
        for part in &self.parts {
            if part.end_tx <= first_tx {
                continue;
            }
            let range = (key.at(first_tx), key.at(part.end_tx));
            let flow = match &part.source {
                Source::Disk(run) => run.scan(&self.reader, table, range, visit)?,
                Source::Memory(run) => run.scan(table, range, visit),
            };
            if flow.is_break() {
                break;
            }
        }
        if left == 0 { Err(QueryError::NotAtOnce) } else { Ok(()) }
    }

    fn txs(&self) -> TxReader<'_> {
        self.files.tx_reader(&self.reader, self.extent())
    }

    fn height(&self, height: u32) -> Result<HeightRecord, QueryError> {
        self.files.height(&self.reader, self.extent(), height)
    }

    fn extent(&self) -> Extent {
        let heights = self.tip.map_or(0, |tip| u64::from(tip.height) + 1);
        Extent { epoch: self.epoch_seen, heights, txs: self.tx_count }
    }

    /// Fails if a script has more transactions from `first_tx` on than the limit.
    fn count_txs(
        &self,
        key: Key,
        first_tx: TxNumber,
        entries_max: usize,
    ) -> Result<(), QueryError> {
        let (mut count, mut last) = (0, None);
        self.rows(Table::Scripts, key, first_tx, &mut |row| {
            count += usize::from(last != Some(row.tx()));
            last = Some(row.tx());
            if count > entries_max { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        if count > entries_max { Err(QueryError::TooLarge { max: entries_max }) } else { Ok(()) }
    }

    /// The rows of a script's unspent outputs.
    ///
    /// Inputs match outputs by tag. If tags of several outputs collide and only some are spent, the table of spenders decides.
    fn unspent_rows(&self, key: Key, entries_max: usize) -> Result<Vec<Row>, QueryError> {
        let mut open = OpenOutputs::default();
        let on_the_way_max = entries_max.saturating_mul(4);
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
        if is_too_large || unspent.len() > entries_max {
            return Err(QueryError::TooLarge { max: entries_max });
        }
        unspent.sort_unstable();
        Ok(unspent)
    }

    fn is_unspent(&self, output: &Row) -> Result<bool, QueryError> {
        let txid = self.txs().txid(output.tx())?;
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

    /// The last transaction with this txid: two coinbases of 2010 are duplicates (BIP30).
    fn tx_number(&self, txid: &Txid) -> Result<Option<TxNumber>, QueryError> {
        let mut candidates = Vec::new();
        self.rows(Table::Txids, self.keys.txid(txid), 0, &mut |row| {
            candidates.push(row.tx());
            ControlFlow::Continue(())
        })?;
        let mut txs = self.txs();
        while let Some(tx) = candidates.pop() {
            if txs.txid(tx)? == *txid {
                return Ok(Some(tx));
            }
        }
        Ok(None)
    }

    fn position(&self, tx: TxNumber) -> Result<TxPosition, QueryError> {
        let (height, _) = self.files.height_of(tx);
        let (first, end) = self.tx_range(height)?;
        let block = self.height(height)?;
        let mut txs = self.txs();
        let offset = txs.record(tx)?.offset;
        let next = if tx + 1 < end { txs.record(tx + 1)?.offset } else { block.block_bytes };
        let (index, length) = ((tx - first) as u32, next.saturating_sub(offset));
        Ok(TxPosition { height, block: block.hash(), index, offset, length })
    }

    /// Transaction numbers of a height in this view, as a half-open range.
    fn tx_range(&self, height: u32) -> Result<(TxNumber, TxNumber), QueryError> {
        let first = self.files.first_tx(height).ok_or(QueryError::Reorganised)?;
        let is_tip = self.tip.is_some_and(|tip| tip.height == height);
        let end = if is_tip { Some(self.tx_count) } else { self.files.first_tx(height + 1) };
        let end = end.filter(|&end| end > first).ok_or(QueryError::Reorganised)?;
        Ok((first, end))
    }
}

/// Resolves transaction numbers in ascending order to heights and txids.
struct Entries<'a> {
    files: &'a Files,
    txs: TxReader<'a>,
    /// Height of the last transaction, and the end of that height.
    height: (u32, TxNumber),
}

impl<'a> Entries<'a> {
    fn new(question: &'a Question<'_>) -> Self {
        Self { files: &question.inner.files, txs: question.txs(), height: (0, 0) }
    }

    fn of(&mut self, tx: TxNumber) -> Result<HistoryEntry, QueryError> {
        if tx >= self.height.1 {
            self.height = self.files.height_of(tx);
        }
        Ok(HistoryEntry { height: self.height.0, txid: self.txs.txid(tx)? })
    }
}

/// A history in progress: transactions are collected in chunks, and the rows of a chunk are read before its txids.
struct History<'a> {
    entries: Entries<'a>,
    entries_max: usize,
    piece: Vec<TxNumber>,
    /// True after the first chunk: the history is within the limit then.
    is_counted: bool,
    visit: &'a mut dyn FnMut(HistoryEntry) -> ControlFlow<()>,
}

impl<'a> History<'a> {
    fn new(
        question: &'a Question<'_>,
        entries_max: usize,
        visit: &'a mut dyn FnMut(HistoryEntry) -> ControlFlow<()>,
    ) -> Self {
        let entries = Entries::new(question);
        Self { entries, entries_max, piece: Vec::new(), is_counted: false, visit }
    }

    /// Adds a transaction, which may repeat the last one. Before the first of several chunks is visited, `count` checks the rest
    /// against the limit, so that an oversized history costs little.
    fn add(
        &mut self,
        tx: TxNumber,
        count: impl FnOnce() -> Result<(), QueryError>,
    ) -> Result<ControlFlow<()>, QueryError> {
        if self.piece.last() == Some(&tx) {
            return Ok(ControlFlow::Continue(()));
        }
        if !self.is_counted && self.piece.len() >= self.entries_max {
            return Err(QueryError::TooLarge { max: self.entries_max });
        }
        if self.piece.len() == PIECE_TXS {
            if !self.is_counted {
                count()?;
                self.is_counted = true;
            }
            if self.flush()?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        self.piece.push(tx);
        Ok(ControlFlow::Continue(()))
    }

    /// Visits the chunk. Draining leaves it empty.
    fn flush(&mut self) -> Result<ControlFlow<()>, QueryError> {
        for tx in self.piece.drain(..) {
            if (self.visit)(self.entries.of(tx)?).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// Outputs of one script during the scan of its rows.
#[derive(Default)]
struct OpenOutputs {
    /// By tag: outputs that may be unspent, and the number of inputs that spent outputs of that tag.
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
        // In a block ordered by txid an input may precede the output that it spends.
        if outputs.len() == *spends {
            self.len -= outputs.len();
            self.by_tag.remove(&row.tag);
        }
    }

    /// The remaining outputs, each with a flag that is true if certainly unspent.
    fn finish(self) -> impl Iterator<Item = (Row, bool)> {
        self.by_tag
            .into_values()
            .flat_map(|(outputs, spends)| outputs.into_iter().map(move |row| (row, spends == 0)))
    }
}

/// Transactions of a history whose txids are read in one batch.
const PIECE_TXS: usize = if cfg!(test) { 16 } else { 4096 };
