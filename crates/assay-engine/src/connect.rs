//! Connecting a block to the tip, and taking it off again.

use assay_consensus::block::{BlockError, BlockRules, ScriptFailure, check_coinbase_amount};
use assay_store::{BlockFileError, CoinError, IndexError, decode_undo};
use assay_wire::{Block, BlockHash, Coin, OutPoint, Txid, Wtxid};
use rayon::ThreadPool;

use crate::apply::{Applier, ApplyError, Moved, UnwindError, first_overwrite, unapply};
use crate::engine::{Engine, State};
use crate::scripts::{Cause, ScriptJob, ScriptQueue, TxFailure};
use crate::tree::NodeId;
use crate::types::EngineError;

/// A parsed block with the hashes that everything after parsing needs.
pub(crate) struct Prepared {
    pub(crate) block: Block,
    pub(crate) hash: BlockHash,
    pub(crate) txids: Vec<Txid>,
    /// Absent where no transaction has a witness: there they equal the txids.
    pub(crate) wtxids: Option<Vec<Wtxid>>,
}

impl Prepared {
    pub(crate) fn wtxid(&self, tx_index: usize) -> Wtxid {
        match &self.wtxids {
            Some(wtxids) => wtxids[tx_index],
            None => Wtxid(self.txids[tx_index].0),
        }
    }
}

/// Why a block was not connected.
#[derive(Debug)]
pub(crate) enum ConnectError {
    /// It breaks a rule; the coins are as before.
    Rule(BlockError),
    /// The engine failed; the coins are in doubt.
    Engine(EngineError),
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

impl Engine {
    /// Connects a block whose parent is the tip: coins, scripts, undo data, index, tip, mempool.
    ///
    /// Leaves everything as it was when the block breaks a rule.
    pub(crate) fn connect(
        &self,
        state: &mut State,
        id: NodeId,
        prepared: &Prepared,
    ) -> Result<(), ConnectError> {
        let node = state.tree.get(id);
        let was_valid = node.is_valid();
        let undo_known = node.undo;
        let parent = node.parent.expect("the genesis block is never connected");
        let block_pos = node.block.expect("a block is archived before it is connected");
        let header = *prepared.block.header();
        let rules = {
            let branch = state.tree.ancestors(parent);
            BlockRules::new(&self.params, &branch, &header, &prepared.hash)
        };
        state.coinbases.connect(prepared.txids[0], rules.height_in_coinbase);
        let undo = match self.move_and_verify(state, parent, prepared, &rules, was_valid) {
            Ok(undo) => undo,
            Err(error) => {
                state.coinbases.disconnect(&prepared.txids[0]);
                return Err(error);
            }
        };
        // A block spends the same coins whenever it is connected, so what was written before is as good. It is better:
        // it may have been synced, and the coins on disk may be on a branch that only it leads back from.
        if !was_valid || undo_known.is_none() {
            let undo_pos = self.blocks.append_undo(block_pos.file, &prepared.hash, &undo)?;
            state.tree.set_valid(id, undo_pos);
            self.index.put(&[state.tree.get(id).to_record()])?;
        }
        state.tree.extend_active(id);
        state.remove_confirmed(prepared);
        Ok(())
    }

    /// The part of [`Engine::connect`] that may find a broken rule; returns the encoded undo data.
    fn move_and_verify(
        &self,
        state: &mut State,
        parent: NodeId,
        prepared: &Prepared,
        rules: &BlockRules,
        was_valid: bool,
    ) -> Result<Vec<u8>, ConnectError> {
        let State { tree, coins, mempool, coinbases, .. } = state;
        let branch = tree.ancestors(parent);
        let job = ScriptJob::new(&prepared.block, rules, self.config.script_batch);
        let mut applier =
            Applier::new(&prepared.block, &prepared.txids, rules, self.config.read_threads);
        let mut sigchecks_known = 0;
        let moved = self.pool.in_place_scope(|scope| {
            let mut queue = ScriptQueue::new(scope, &job);
            let mut on_spend = |tx_index: usize, spent: &mut Vec<Coin>| {
                // The coinbase spends nothing; a block that has been validated before is not verified again.
                if tx_index == 0 || was_valid {
                    return;
                }
                let known = (!mempool.is_empty())
                    .then(|| mempool.get(&prepared.txids[tx_index]))
                    .flatten()
                    .filter(|entry| entry.verified.contains(rules.flags))
                    .filter(|entry| entry.wtxid == prepared.wtxid(tx_index));
                match known {
                    Some(entry) => sigchecks_known += u64::from(entry.sigchecks),
                    None => queue.push(tx_index, spent),
                }
            };
            let moved = applier.apply(coins, coinbases, &branch, &mut on_spend);
            queue.send();
            moved
        });
        let verdict = match moved {
            Ok(()) => verify_sums(prepared, rules, &applier, (job, &self.pool), sigchecks_known),
            Err(ApplyError::Rule(error)) => Err(error),
            Err(ApplyError::Coin(error)) => return Err(error.into()),
        };
        match verdict {
            Ok(()) => Ok(applier.into_undo()),
            Err(error) => {
                applier.unwind(coins).map_err(|cause| doubt(prepared.hash, cause))?;
                // A transaction that comes again fails for its inputs as well, but Core looks at its outputs first.
                let Prepared { block, txids, .. } = prepared;
                let overwrite = if rules.bip30 {
                    first_overwrite(block, txids, block.tx_count(), coins)?
                } else {
                    None
                };
                Err(ConnectError::Rule(overwrite.unwrap_or(error)))
            }
        }
    }

    /// Takes the tip off: coins back as they were before it.
    pub(crate) fn disconnect_tip(&self, state: &mut State) -> Result<Prepared, EngineError> {
        let id = state.tree.tip();
        let prepared = self.load(state, id)?;
        let node = state.tree.get(id);
        let (hash, height) = (node.hash, node.height);
        let missing = EngineError::MissingData { hash, height, what: "undo data" };
        let undo_pos = node.undo.ok_or(missing)?;
        let undo = self.blocks.read_undo(undo_pos, &hash)?;
        let spent = decode_undo(&undo).map_err(|source| EngineError::Undo { hash, source })?;
        let outputs = prepared.block.txs().zip(&prepared.txids).flat_map(|(tx, &txid)| {
            (0..tx.output_count() as u32).map(move |vout| OutPoint { txid, vout })
        });
        state.coins.load(outputs, self.config.read_threads)?;
        let moved = Moved { txs_added: prepared.block.tx_count(), spent };
        let outputs_first = self.params.cash.is_some();
        unapply(&prepared.block, &prepared.txids, outputs_first, moved, &mut state.coins).map_err(
            |cause| match doubt(hash, cause) {
                ConnectError::Engine(error) => error,
                ConnectError::Rule(_) => unreachable!("taking back breaks no rule"),
            },
        )?;
        state.coinbases.disconnect(&prepared.txids[0]);
        state.tree.shrink_active();
        Ok(prepared)
    }

    /// Reads an archived block and computes its hashes.
    pub(crate) fn load(&self, state: &State, id: NodeId) -> Result<Prepared, EngineError> {
        let node = state.tree.get(id);
        let (hash, height) = (node.hash, node.height);
        let missing = EngineError::MissingData { hash, height, what: "block" };
        let raw = self.blocks.read_block(node.block.ok_or(missing)?)?;
        let block = Block::parse(raw, self.params.encoding)
            .map_err(|source| EngineError::StoredBlock { hash, source })?;
        Ok(self.prepare(block, hash))
    }
}

/// Amounts, then scripts: the order in which Core reports them (`validation.cpp`, `ConnectBlock`).
pub(crate) fn verify_sums(
    prepared: &Prepared,
    rules: &BlockRules,
    applier: &Applier<'_>,
    (job, pool): (ScriptJob<'_>, &ThreadPool),
    sigchecks_known: u64,
) -> Result<(), BlockError> {
    let scripts = job.finish(pool);
    check_coinbase_amount(rules, &prepared.block, applier.totals().fees)?;
    match scripts {
        Ok(sigchecks) => rules.check_block_sigchecks(sigchecks + sigchecks_known),
        Err(failure) => Err(script_error(prepared, failure)),
    }
}

fn script_error(prepared: &Prepared, failure: TxFailure) -> BlockError {
    let tx_index = failure.tx_index as usize;
    let txid = prepared.txids[tx_index];
    match failure.cause {
        Cause::SigChecks(source) => BlockError::Tx { tx_index, txid, source },
        Cause::Script { input, error } => {
            let input = input as usize;
            let prevout = prepared.block.tx(tx_index).input(input).prevout;
            let wtxid = prepared.wtxid(tx_index);
            BlockError::Script {
                tx_index,
                source: Box::new(ScriptFailure { txid, wtxid, input, prevout, error }),
            }
        }
    }
}

/// A failure to take coins back leaves memory in doubt.
pub(crate) fn doubt(hash: BlockHash, cause: UnwindError) -> ConnectError {
    ConnectError::Engine(match cause {
        UnwindError::Coin(error) => error.into(),
        UnwindError::Undo(source) => EngineError::Undo { hash, source },
        UnwindError::Mismatch => EngineError::UndoMismatch { hash },
    })
}
