//! Moving coins: what a block spends goes out, what it creates comes in, and all of it can be taken back.
//!
//! Bitcoin orders transactions by dependency, so coins move transaction by transaction. Bitcoin Cash orders them by txid:
//! all outputs come in first, then all inputs go out (BCHN calls it "outputs then inputs").

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

/// Why coins could not be moved.
#[derive(Debug)]
pub(crate) enum ApplyError {
    /// The block breaks a rule.
    Rule(BlockError),
    /// The coins are out of order.
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

/// Coinbases of blocks that did not have to begin with their height.
///
/// BIP30 forbids overwriting unspent outputs. A transaction can only repeat an earlier one when a coinbase that it descends
/// from was repeated, so as long as no coinbase was, looking for its outputs is enough and all others need no search.
#[derive(Default)]
pub(crate) struct CoinbaseLog {
    seen: HashSet<Txid>,
    is_repeated: bool,
}

impl CoinbaseLog {
    /// Notes the coinbase of a block that is being connected.
    pub(crate) fn connect(&mut self, txid: Txid, has_height: bool) {
        if has_height {
            self.is_repeated |= self.seen.contains(&txid);
        } else {
            self.is_repeated |= !self.seen.insert(txid);
        }
    }

    /// A coinbase is not known: it counts as repeated, so that all outputs are looked for.
    pub(crate) fn note_gap(&mut self) {
        self.is_repeated = true;
    }

    /// Forgets the coinbase of a block that was disconnected.
    pub(crate) fn disconnect(&mut self, txid: &Txid) {
        self.seen.remove(txid);
    }
}

/// How many coins are asked for ahead of their use, so that the CPU fetches them meanwhile.
const LOOKAHEAD: usize = 16;

/// Transactions whose outputs are asked for ahead of their use likewise: other cores have read the block.
const TXS_AHEAD: usize = 2;

/// The outpoints that a block spends, in order, located some way ahead of their use.
struct Prevouts<'a> {
    /// Those that are not located yet.
    rest: std::slice::Iter<'a, OutPoint>,
    /// A ring of those that are; as many as there are left at its end.
    ahead: [Option<Located>; LOOKAHEAD],
    next: usize,
}

impl<'a> Prevouts<'a> {
    fn new(prevouts: &'a [OutPoint]) -> Self {
        Self { rest: prevouts.iter(), ahead: [None; LOOKAHEAD], next: 0 }
    }

    /// The next outpoint; it must be asked for once for every input but the coinbase's.
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

/// Coins on the move for one block.
pub(crate) struct Applier<'a> {
    prepared: &'a Prepared,
    rules: &'a BlockRules,
    read_threads: usize,
    undo: UndoWriter,
    /// Transactions whose outputs have come in: a prefix.
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

    /// Fees and signature operations of what has been applied.
    pub(crate) fn totals(&self) -> BlockTotals {
        self.totals
    }

    /// Moves the coins of the whole block and checks every rule that needs them, scripts apart.
    ///
    /// `on_spend` gets each transaction with the coins it spends, in block order, and may drain them.
    pub(crate) fn apply<A: Ancestors>(
        &mut self,
        coins: &mut CoinStore,
        log: &CoinbaseLog,
        ancestors: &A,
        on_spend: &mut dyn FnMut(usize, &mut Vec<Coin>),
    ) -> Result<(), ApplyError> {
        if self.rules.bip30 {
            self.check_overwrites(coins, log)?;
        }
        let mut spent = Vec::new();
        let count = self.prepared.block.tx_count();
        if self.rules.cash.is_some() {
            for tx_index in 0..count {
                self.add_outputs(coins, tx_index)?;
            }
            // What is still unknown now can only be on disk.
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

    /// All outpoints that the block spends.
    fn block_prevouts(&self) -> impl Iterator<Item = OutPoint> + use<'a> {
        self.prepared.spent_prevouts().iter().copied()
    }

    /// Reads the coins that the cache lacks and that the block does not create itself, many at once: one after the other
    /// they would be waited for one after the other.
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
        // Only the two blocks of 2010 that repeated an unspent coinbase are exempt from BIP30 and may overwrite.
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
                    // Take back the outputs of this transaction that did come in.
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
                        // BCHN judges input by input: what is wrong with a coin before this one comes first.
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

    /// Takes back whatever has moved.
    pub(crate) fn unwind(self, coins: &mut CoinStore) -> Result<(), UnwindError> {
        let moved = Moved {
            txs_added: self.txs_added,
            spent: decode_undo(&self.undo.finish()).map_err(UnwindError::Undo)?,
        };
        let Prepared { block, txids, .. } = self.prepared;
        unapply(block, txids, self.rules.cash.is_some(), moved, coins)
    }
}

/// The first output of the first `txs_to_check` transactions that is unspent before the block (BIP30).
///
/// In a valid block only a coinbase can have one, see [`CoinbaseLog`]. In a block that breaks another rule any transaction can,
/// and Core, which looks at all of them before anything else, reports this rule then.
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

/// Why coins could not be put back.
#[derive(Debug)]
pub(crate) enum UnwindError {
    Coin(CoinError),
    /// The undo data is damaged.
    Undo(UndoError),
    /// The undo data does not fit the block: it has too few or too many coins.
    Mismatch,
}

impl From<CoinError> for UnwindError {
    fn from(error: CoinError) -> Self {
        Self::Coin(error)
    }
}

/// How far a block has been applied.
pub(crate) struct Moved {
    /// Transactions whose outputs came in.
    pub(crate) txs_added: usize,
    /// Coins that went out, in input order; possibly fewer than the block spends.
    pub(crate) spent: Vec<Coin>,
}

/// Reverses [`Applier::apply`], whole or in part.
pub(crate) fn unapply(
    block: &Block,
    txids: &[Txid],
    outputs_first: bool,
    moved: Moved,
    coins: &mut CoinStore,
) -> Result<(), UnwindError> {
    let Moved { txs_added, mut spent } = moved;
    // Index, in `spent`, one past the last coin of each transaction.
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
