//! Connecting a block to the coins, and disconnecting it.

use std::sync::Arc;

use assay_consensus::block::{BlockError, BlockRules, check_coinbase_amount};
use assay_consensus::chain::Ancestors;
use assay_store::{BlockFileError, CoinError, CoinStore, IndexError, decode_undo};
use assay_wire::{BlockHash, Coin, OutPoint};

use crate::apply::{
    Applier, ApplyError, CoinbaseLog, Moved, UnwindError, first_overwrite, unapply,
};
use crate::error::EngineError;
use crate::prepared::Prepared;
use crate::scripts::{Ahead, BlockScripts, ScriptQueue};

/// Why a block was not connected.
#[derive(Debug)]
pub(crate) enum ConnectError {
    /// It breaks a rule; the coins are as before.
    Rule(BlockError),
    /// The engine failed; the coins are in doubt.
    Engine(EngineError),
}

impl From<EngineError> for ConnectError {
    fn from(error: EngineError) -> Self {
        Self::Engine(error)
    }
}

impl From<CoinError> for ConnectError {
    fn from(error: CoinError) -> Self {
        Self::Engine(error.into())
    }
}

impl From<BlockFileError> for ConnectError {
    fn from(error: BlockFileError) -> Self {
        Self::Engine(error.into())
    }
}

impl From<IndexError> for ConnectError {
    fn from(error: IndexError) -> Self {
        Self::Engine(error.into())
    }
}

/// A block whose coins have moved.
pub(crate) struct Connected {
    /// Its scripts, which are being verified.
    pub(crate) scripts: Arc<BlockScripts>,
    /// The coins it spent, encoded.
    pub(crate) undo: Vec<u8>,
}

/// Moves the coins of the block that `queue` was made for, whose parent is the block they are at. `verify` gets each
/// transaction with the coins it spends once, to hand them to the queue: in block order, but for what spends its own block ([`Ahead`]).
///
/// Leaves everything as it was when the block breaks a rule; that its scripts are good is not known yet.
pub(crate) fn connect<A: Ancestors>(
    mut queue: ScriptQueue<'_>,
    (coins, coinbases, ancestors): (&mut CoinStore, &mut CoinbaseLog, &A),
    read_threads: usize,
    mut verify: impl FnMut(&mut ScriptQueue<'_>, usize, &mut Vec<Coin>),
) -> Result<Connected, ConnectError> {
    let (prepared, rules) = queue.block();
    coinbases.connect(prepared.txids[0], rules.height_in_coinbase);
    let ahead = Ahead::hand_over(&mut queue, &mut verify);
    let moved = move_coins(
        (&prepared, &rules, read_threads),
        (coins, coinbases, ancestors),
        &mut |tx_index, spent| {
            if !ahead.has(tx_index) {
                verify(&mut queue, tx_index, spent);
            }
        },
    );
    // Also when the block is rejected: what was handed over holds on to it.
    let scripts = queue.finish();
    match moved {
        Ok(undo) => {
            coins.move_to(&prepared.block.header().prev_block, &prepared.hash);
            Ok(Connected { scripts, undo })
        }
        Err(error) => {
            scripts.give_up();
            coinbases.disconnect(&prepared.txids[0]);
            Err(error)
        }
    }
}

/// Moves the coins of a block and checks every rule that needs them, scripts apart: gives the encoded undo data.
///
/// Amounts come last and before scripts, as Core reports them (`validation.cpp`, `ConnectBlock`). When a rule is broken the
/// coins are as before.
fn move_coins<A: Ancestors>(
    (prepared, rules, read_threads): (&Prepared, &BlockRules, usize),
    (coins, coinbases, ancestors): (&mut CoinStore, &CoinbaseLog, &A),
    on_spend: &mut dyn FnMut(usize, &mut Vec<Coin>),
) -> Result<Vec<u8>, ConnectError> {
    let mut applier = Applier::new(prepared, rules, read_threads);
    let verdict = match applier.apply(coins, coinbases, ancestors, on_spend) {
        Ok(()) => check_coinbase_amount(rules, &prepared.block, applier.totals().fees),
        Err(ApplyError::Rule(error)) => Err(error),
        Err(ApplyError::Coin(error)) => return Err(error.into()),
    };
    let Err(error) = verdict else { return Ok(applier.into_undo()) };
    applier.unwind(coins).map_err(|cause| doubt(prepared.hash, cause))?;
    Err(ConnectError::Rule(overwrite_or(error, prepared, rules, coins)?))
}

/// What is to be reported of a block that has been taken back because of `error`: a transaction that comes again fails for
/// its inputs as well, but Core looks at its outputs first.
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

/// Takes the block off that the coins are at: what it spent comes back by its undo data, what it created goes.
///
/// `outputs_first` says in which order coins moved (Bitcoin Cash).
pub(crate) fn disconnect(
    prepared: &Prepared,
    undo: &[u8],
    outputs_first: bool,
    (coins, coinbases): (&mut CoinStore, &mut CoinbaseLog),
) -> Result<(), EngineError> {
    let Prepared { block, hash, txids, .. } = prepared;
    let unapplied = decode_undo(undo).map_err(UnwindError::Undo).and_then(|spent| {
        let moved = Moved { txs_added: block.tx_count(), spent };
        unapply(block, txids, outputs_first, moved, &mut *coins)
    });
    unapplied.map_err(|cause| doubt(*hash, cause))?;
    coins.move_to(hash, &block.header().prev_block);
    coinbases.disconnect(&txids[0]);
    Ok(())
}

/// Reads the outputs of a block that is to be disconnected, many at once: those that only the disk has.
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

/// A failure to take coins back leaves memory in doubt.
fn doubt(hash: BlockHash, cause: UnwindError) -> EngineError {
    match cause {
        UnwindError::Coin(error) => error.into(),
        UnwindError::Undo(source) => EngineError::Undo { hash, source },
        UnwindError::Mismatch => EngineError::UndoMismatch { hash },
    }
}
