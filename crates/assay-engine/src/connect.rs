//! Connects a block to the coins, and disconnects it.

use std::sync::Arc;

use assay_consensus::block::{BlockError, BlockRules, check_coinbase_amount};
use assay_consensus::chain::Ancestors;
use assay_store::{CoinError, CoinStore, decode_undo};
use assay_wire::{BlockHash, Coin, OutPoint};

use crate::apply::{Applier, ApplyError, ChainCoins, Moved, UnwindError, first_overwrite, unapply};
use crate::error::EngineError;
use crate::prepared::Prepared;
use crate::scripts::{BlockScripts, Lookahead, ScriptQueue};

#[derive(Debug)]
pub(crate) enum ConnectError {
    /// The block breaks a rule; the coins are unchanged.
    Rule(BlockError),
    /// The engine failed; the coins are inconsistent.
    Engine(EngineError),
}

impl<E: Into<EngineError>> From<E> for ConnectError {
    fn from(error: E) -> Self {
        Self::Engine(error.into())
    }
}

/// A block whose coins have moved.
pub(crate) struct Connected {
    /// Its scripts, being verified.
    pub(crate) scripts: Arc<BlockScripts>,
    /// The spent coins, encoded.
    pub(crate) undo: Vec<u8>,
}

/// Moves the coins of the block of `queue`, whose parent is their current block. `verify` receives each transaction with its
/// spent coins once, to hand them to the queue: in block order, except for spends of the block's own outputs ([`Lookahead`]).
///
/// If the block breaks a rule, everything is left unchanged; the scripts are not verified yet.
pub(crate) fn connect<A: Ancestors>(
    mut queue: ScriptQueue<'_>,
    coins: &mut ChainCoins,
    ancestors: &A,
    read_threads: usize,
    mut verify: impl FnMut(&mut ScriptQueue<'_>, usize, &mut Vec<Coin>),
) -> Result<Connected, ConnectError> {
    let (prepared, rules) = queue.block();
    coins.coinbases.connect(prepared.txids[0], rules.height_in_coinbase);
    let ahead = Lookahead::hand_over(&mut queue, &mut verify);
    let mut applier = Applier::new(&prepared, &rules, read_threads);
    let applied = applier.apply(coins, ancestors, &mut |tx_index, spent| {
        if !ahead.has(tx_index) {
            verify(&mut queue, tx_index, spent);
        }
    });
    let moved = finish_coins(applier, applied, &prepared, &rules, &mut coins.store);
    // Also for a rejected block: its scripts in the queue hold a reference to it.
    let scripts = queue.finish();
    match moved {
        Ok(undo) => {
            coins.store.move_to(&prepared.block.header().prev_block, &prepared.hash);
            Ok(Connected { scripts, undo })
        }
        Err(error) => {
            scripts.give_up();
            coins.coinbases.disconnect(&prepared.txids[0]);
            Err(error)
        }
    }
}

/// The encoded undo data of a block that breaks no rule of coins and amounts. Otherwise its coins are reverted.
///
/// The amount checks come last, before scripts, in Core's order (`validation.cpp`, `ConnectBlock`).
fn finish_coins(
    applier: Applier<'_>,
    applied: Result<(), ApplyError>,
    prepared: &Prepared,
    rules: &BlockRules,
    coins: &mut CoinStore,
) -> Result<Vec<u8>, ConnectError> {
    let verdict = match applied {
        Ok(()) => check_coinbase_amount(rules, &prepared.block, applier.totals().fees),
        Err(ApplyError::Rule(error)) => Err(error),
        Err(ApplyError::Coin(error)) => return Err(error.into()),
    };
    let Err(error) = verdict else { return Ok(applier.into_undo()) };
    applier.unwind(coins).map_err(|cause| doubt(prepared.hash, cause))?;
    Err(ConnectError::Rule(overwrite_or(error, prepared, rules, coins)?))
}

/// The error to report for a block reverted because of `error`: a repeated transaction also fails for its inputs, but Core checks
/// its outputs first.
pub(crate) fn overwrite_or(
    error: BlockError,
    prepared: &Prepared,
    rules: &BlockRules,
    coins: &CoinStore,
) -> Result<BlockError, CoinError> {
    let Prepared { block, txids, .. } = prepared;
    let overwrite =
        if rules.bip30 { first_overwrite(block, txids, block.tx_count(), coins)? } else { None };
    Ok(overwrite.unwrap_or(error))
}

/// Disconnects the current block of the coins: restores its spent coins from the undo data and removes its outputs.
///
/// `outputs_first` is the order in which coins moved (Bitcoin Cash).
pub(crate) fn disconnect(
    prepared: &Prepared,
    undo: &[u8],
    outputs_first: bool,
    coins: &mut ChainCoins,
) -> Result<(), EngineError> {
    let Prepared { block, hash, txids, .. } = prepared;
    let unapplied = decode_undo(undo).map_err(UnwindError::Undo).and_then(|spent| {
        let moved = Moved { txs_added: block.tx_count(), spent };
        unapply(block, txids, outputs_first, moved, &mut coins.store)
    });
    unapplied.map_err(|cause| doubt(*hash, cause))?;
    coins.store.move_to(hash, &block.header().prev_block);
    coins.coinbases.disconnect(&txids[0]);
    Ok(())
}

/// Reads in parallel the outputs of a block to be disconnected that only the disk has.
pub(crate) fn load_outputs(
    prepared: &Prepared,
    coins: &mut CoinStore,
    read_threads: usize,
) -> Result<(), CoinError> {
    let outputs = prepared.block.txs().zip(&prepared.txids).flat_map(|(tx, &txid)| {
        (0..tx.output_count() as u32).map(move |vout| OutPoint { txid, vout })
    });
    coins.load(outputs, read_threads)?;
    Ok(())
}

/// After a failed revert the state in memory is inconsistent.
fn doubt(hash: BlockHash, cause: UnwindError) -> EngineError {
    match cause {
        UnwindError::Coin(error) => error.into(),
        UnwindError::Undo(source) => EngineError::Undo { hash, source },
        UnwindError::Mismatch => EngineError::UndoMismatch { hash },
    }
}
