//! Applies blocks to the coins: spends and creates coins, and reverts both.
//!
//! Bitcoin orders transactions by dependency, so coins move transaction by transaction. Bitcoin Cash orders them by txid: all
//! outputs are added first, then all inputs spent (BCHN: "outputs then inputs").

use std::collections::HashSet;

use assay_consensus::block::{BlockError, BlockRules, BlockTotals};
use assay_consensus::chain::Ancestors;
use assay_consensus::tx::{SpentCoin, TxError, check_coins, is_unspendable};
use assay_store::defect::{Point, point};
use assay_store::{
    CoinError, CoinRef, CoinStore, Located, UndoError, UndoWriter, decode_undo, prefetch_bytes,
};
use assay_wire::{Block, Coin, OutPoint, Tx, Txid};

use crate::prepared::Prepared;

#[derive(Debug)]
pub(crate) enum ApplyError {
    Rule(BlockError),
    /// The coins are in an inconsistent state.
    Coin(CoinError),
}

impl From<CoinError> for ApplyError {
    fn from(error: CoinError) -> Self {
        Self::Coin(error)
    }
}

impl From<BlockError> for ApplyError {
    fn from(error: BlockError) -> Self {
        Self::Rule(error)
    }
}

/// Coinbases of blocks without a mandatory height in the coinbase.
///
/// BIP30 forbids overwriting unspent outputs. A transaction can repeat an earlier one only if a coinbase among its ancestors was
/// repeated. As long as none was, it is sufficient to look up the outputs of the coinbase.
#[derive(Default)]
pub(crate) struct CoinbaseLog {
    seen: HashSet<Txid>,
    is_repeated: bool,
}

impl CoinbaseLog {
    /// Records the coinbase of a connected block.
    pub(crate) fn connect(&mut self, txid: Txid, has_height: bool) {
        if has_height {
            self.is_repeated |= self.seen.contains(&txid);
        } else {
            self.is_repeated |= !self.seen.insert(txid);
        }
    }

    /// Records an unknown coinbase: it counts as repeated, so that all outputs are looked up.
    pub(crate) fn note_gap(&mut self) {
        self.is_repeated = true;
    }

    /// Removes the coinbase of a disconnected block.
    pub(crate) fn disconnect(&mut self, txid: &Txid) {
        self.seen.remove(txid);
    }
}

/// The coins after a block of a chain, and its coinbases.
pub(crate) struct ChainCoins {
    pub(crate) store: CoinStore,
    pub(crate) coinbases: CoinbaseLog,
}

impl ChainCoins {
    /// Coins of a chain without known coinbases: as a part of BIP30, all outputs of its next blocks are looked up.
    pub(crate) fn with_unknown_coinbases(store: CoinStore) -> Self {
        let mut coinbases = CoinbaseLog::default();
        coinbases.note_gap();
        Self { store, coinbases }
    }
}

/// Number of coins prefetched ahead of use.
const LOOKAHEAD: usize = 16;

/// Transactions whose outputs are prefetched ahead of use: another core has read the block.
const TXS_AHEAD: usize = 2;

/// The prevouts of a block in order, located ahead of use.
struct Prevouts<'a> {
    /// Prevouts not located yet.
    rest: std::slice::Iter<'a, OutPoint>,
    /// Ring of located prevouts; shorter at the end of the block.
    ahead: [Option<Located>; LOOKAHEAD],
    next: usize,
}

impl<'a> Prevouts<'a> {
    fn new(prevouts: &'a [OutPoint]) -> Self {
        Self { rest: prevouts.iter(), ahead: [None; LOOKAHEAD], next: 0 }
    }

    /// The next prevout. Call this exactly once per input except the coinbase's.
    #[inline]
    fn next(&mut self, coins: &CoinStore) -> Option<Located> {
        if self.next == 0 && self.ahead[0].is_none() {
            for slot in &mut self.ahead {
                *slot = self.rest.next().map(|prevout| coins.locate(prevout));
            }
        }
        if let Some(soon) = &self.ahead[(self.next + LOOKAHEAD / 2) % LOOKAHEAD] {
            coins.warm(soon);
        }
        let refill = self.rest.next().map(|prevout| coins.locate(prevout));
        let at = std::mem::replace(&mut self.ahead[self.next], refill);
        self.next = (self.next + 1) % LOOKAHEAD;
        at
    }
}

pub(crate) struct Applier<'a> {
    prepared: &'a Prepared,
    rules: &'a BlockRules,
    read_threads: usize,
    undo: UndoWriter,
    /// Number of transactions whose outputs were added: a prefix.
    txs_added: usize,
    prevouts: Prevouts<'a>,
    outputs: Vec<Located>,
    totals: BlockTotals,
}

impl<'a> Applier<'a> {
    pub(crate) fn new(prepared: &'a Prepared, rules: &'a BlockRules, read_threads: usize) -> Self {
        let spent = prepared.spent_prevouts();
        Self {
            prepared,
            rules,
            read_threads,
            undo: UndoWriter::with_capacity(spent.len()),
            txs_added: 0,
            prevouts: Prevouts::new(spent),
            outputs: Vec::new(),
            totals: BlockTotals::default(),
        }
    }

    /// Fees and signature operations of the applied transactions.
    pub(crate) fn totals(&self) -> BlockTotals {
        self.totals
    }

    /// Moves the coins of the whole block and checks every rule that needs them, except scripts.
    ///
    /// `on_spend` receives each transaction with its spent coins, in block order, and may drain them.
    pub(crate) fn apply<A: Ancestors>(
        &mut self,
        ChainCoins { store: coins, coinbases }: &mut ChainCoins,
        ancestors: &A,
        on_spend: &mut dyn FnMut(usize, &mut Vec<Coin>),
    ) -> Result<(), ApplyError> {
        if self.rules.bip30 {
            self.check_overwrites(coins, coinbases)?;
        }
        let mut spent = Vec::new();
        let count = self.prepared.block.tx_count();
        if self.rules.cash.is_some() {
            for tx_index in 0..count {
                self.add_outputs(coins, tx_index)?;
            }
            // Coins still unknown can only be on disk.
            coins.load(self.block_prevouts(), self.read_threads)?;
            for tx_index in 0..count {
                self.spend_inputs(coins, tx_index, ancestors, &mut spent)?;
                on_spend(tx_index, &mut spent);
                point(Point::MoveCoins);
            }
        } else {
            self.load_from_disk(coins)?;
            for tx_index in 0..count {
                self.spend_inputs(coins, tx_index, ancestors, &mut spent)?;
                on_spend(tx_index, &mut spent);
                point(Point::MoveCoins);
                self.add_outputs(coins, tx_index)?;
            }
        }
        Ok(())
    }

    fn block_prevouts(&self) -> impl Iterator<Item = OutPoint> + use<'a> {
        self.prepared.spent_prevouts().iter().copied()
    }

    /// Reads in parallel the coins that are neither in the cache nor created by the block itself.
    fn load_from_disk(&self, coins: &mut CoinStore) -> Result<(), CoinError> {
        let mut unknown = coins.unknown(self.block_prevouts());
        if unknown.is_empty() {
            return Ok(());
        }
        let own: HashSet<&Txid> = self.prepared.txids.iter().collect();
        unknown.retain(|outpoint| !own.contains(&outpoint.txid));
        coins.load(unknown, self.read_threads)?;
        Ok(())
    }

    fn check_overwrites(&self, coins: &CoinStore, log: &CoinbaseLog) -> Result<(), ApplyError> {
        let Prepared { block, txids, .. } = self.prepared;
        let txs_to_check = if log.is_repeated { block.tx_count() } else { 1 };
        match first_overwrite(block, txids, txs_to_check, coins)? {
            Some(error) => Err(error.into()),
            None => Ok(()),
        }
    }

    fn add_outputs(&mut self, coins: &mut CoinStore, tx_index: usize) -> Result<(), ApplyError> {
        let tx = self.prepared.block.tx(tx_index);
        let txid = self.prepared.txids[tx_index];
        self.outputs.clear();
        self.outputs.extend(
            (0..tx.output_count() as u32).map(|vout| coins.locate(&OutPoint { txid, vout })),
        );
        // Only the two blocks of 2010 that repeated an unspent coinbase are exempt from BIP30.
        let overwrite = tx_index == 0 && !self.rules.bip30;
        for (vout, output) in tx.outputs().enumerate() {
            if is_unspendable(output.script_pubkey) {
                continue;
            }
            let at = &self.outputs[vout];
            let coin = CoinRef {
                value: output.value,
                height: self.rules.height,
                coinbase: tx_index == 0,
                script_pubkey: output.script_pubkey,
            };
            match coins.add_at(at, coin, overwrite) {
                Ok(()) => {}
                Err(CoinError::Exists { outpoint }) => {
                    // Remove the outputs of this transaction that were added.
                    for vout in 0..vout as u32 {
                        coins.spend(&OutPoint { txid, vout })?;
                    }
                    return Err(BlockError::OverwritesUnspent { tx_index, outpoint }.into());
                }
                Err(error) => return Err(error.into()),
            }
        }
        self.txs_added = tx_index + 1;
        Ok(())
    }

    fn spend_inputs<A: Ancestors>(
        &mut self,
        coins: &mut CoinStore,
        tx_index: usize,
        ancestors: &A,
        spent: &mut Vec<Coin>,
    ) -> Result<(), ApplyError> {
        spent.clear();
        let Prepared { block, .. } = self.prepared;
        let tx = block.tx(tx_index);
        if tx_index + TXS_AHEAD < block.tx_count() {
            prefetch_bytes(block.tx(tx_index + TXS_AHEAD).outputs_raw());
        }
        if tx_index > 0 {
            for _ in 0..tx.input_count() {
                let at = self.prevouts.next(coins).expect("one outpoint for every input");
                let undo = &mut self.undo;
                let take = |coin: CoinRef<'_>| {
                    undo.push(coin);
                    spent.push(coin.to_coin());
                };
                if coins.spend_with(&at, take)?.is_none() {
                    let mut source = TxError::MissingOrSpent { prevout: *at.outpoint() };
                    if self.rules.cash.is_some() {
                        // BCHN checks input by input: an error in an earlier coin comes first.
                        let before = spent.iter().map(SpentCoin::from);
                        source = check_coins(before, self.rules.height).err().unwrap_or(source);
                    }
                    return Err(self.tx_error(tx_index, source));
                }
            }
        }
        let median_time_past_at = |height| ancestors.median_time_past_at(height);
        let spend = self
            .rules
            .check_spends_knowing(
                (tx, self.prepared.facts[tx_index]),
                spent.iter().map(SpentCoin::from),
                median_time_past_at,
            )
            .map_err(|source| self.tx_error(tx_index, source))?;
        self.totals.add(tx_index, spend)?;
        Ok(())
    }

    fn tx_error(&self, tx_index: usize, source: TxError) -> ApplyError {
        let txid = self.prepared.txids[tx_index];
        BlockError::Tx { tx_index, txid, source }.into()
    }

    /// The spent coins, encoded for the undo file.
    pub(crate) fn into_undo(self) -> Vec<u8> {
        self.undo.finish()
    }

    /// Reverts everything that has moved.
    pub(crate) fn unwind(self, coins: &mut CoinStore) -> Result<(), UnwindError> {
        let moved = Moved {
            txs_added: self.txs_added,
            spent: decode_undo(&self.undo.finish()).map_err(UnwindError::Undo)?,
        };
        let Prepared { block, txids, .. } = self.prepared;
        unapply(block, txids, self.rules.cash.is_some(), moved, coins)
    }
}

/// The first unspent output, before the block, of the first `txs_to_check` transactions (BIP30).
///
/// In a valid block only a coinbase can have one, see [`CoinbaseLog`]. In a block that breaks another rule any transaction can,
/// and Core, which checks all of them first, then reports this rule.
pub(crate) fn first_overwrite(
    block: &Block,
    txids: &[Txid],
    txs_to_check: usize,
    coins: &CoinStore,
) -> Result<Option<BlockError>, CoinError> {
    for (tx_index, txid) in txids.iter().enumerate().take(txs_to_check) {
        for vout in 0..block.tx(tx_index).output_count() as u32 {
            let outpoint = OutPoint { txid: *txid, vout };
            if coins.have(&outpoint)? {
                return Ok(Some(BlockError::OverwritesUnspent { tx_index, outpoint }));
            }
        }
    }
    Ok(None)
}

#[derive(Debug)]
pub(crate) enum UnwindError {
    Coin(CoinError),
    Undo(UndoError),
    /// The number of coins in the undo data does not match the block.
    Mismatch,
}

impl From<CoinError> for UnwindError {
    fn from(error: CoinError) -> Self {
        Self::Coin(error)
    }
}

/// Applied part of a block.
pub(crate) struct Moved {
    /// Transactions whose outputs were added.
    pub(crate) txs_added: usize,
    /// Spent coins in input order; possibly fewer than the block spends.
    pub(crate) spent: Vec<Coin>,
}

/// Reverts [`Applier::apply`], completely or in part.
pub(crate) fn unapply(
    block: &Block,
    txids: &[Txid],
    outputs_first: bool,
    moved: Moved,
    coins: &mut CoinStore,
) -> Result<(), UnwindError> {
    let Moved { txs_added, mut spent } = moved;
    // For each transaction, the end of its coins in `spent`.
    let mut ends = Vec::with_capacity(block.tx_count());
    let mut end = 0;
    for (tx_index, tx) in block.txs().enumerate() {
        end += if tx_index == 0 { 0 } else { tx.input_count() };
        ends.push(end);
    }
    if spent.len() > end {
        return Err(UnwindError::Mismatch);
    }
    for tx_index in (0..block.tx_count()).rev() {
        if !outputs_first && tx_index < txs_added {
            remove_outputs(block.tx(tx_index), txids[tx_index], coins)?;
        }
        let first = if tx_index == 0 { 0 } else { ends[tx_index - 1] };
        let tx = block.tx(tx_index);
        while spent.len() > first {
            let Some(coin) = spent.pop() else { break };
            let prevout = tx.input(spent.len() - first).prevout;
            coins.add(prevout, CoinRef::from(&coin), true)?;
        }
    }
    if outputs_first {
        for tx_index in (0..txs_added).rev() {
            remove_outputs(block.tx(tx_index), txids[tx_index], coins)?;
        }
    }
    Ok(())
}

fn remove_outputs(tx: Tx<'_>, txid: Txid, coins: &mut CoinStore) -> Result<(), CoinError> {
    for (vout, output) in tx.outputs().enumerate() {
        if !is_unspendable(output.script_pubkey) {
            coins.spend(&OutPoint { txid, vout: vout as u32 })?;
        }
    }
    Ok(())
}
