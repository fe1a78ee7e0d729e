//! Connecting a block to the tip, and taking it off again.

use std::sync::Arc;

use assay_consensus::block::{BlockError, BlockRules, check_coinbase_amount};
use assay_consensus::chain::Ancestors;
use assay_store::defect::{Point, point};
use assay_store::{BlockFileError, CoinError, CoinStore, IndexError, decode_undo};
use assay_wire::{Block, BlockHash, Coin, OutPoint, Txid, Wtxid};

use crate::apply::{
    Applier, ApplyError, CoinbaseLog, Moved, UnwindError, first_overwrite, unapply,
};
use crate::deferred::{Place, is_exact};
use crate::engine::{Engine, State, unix_time_s};
use crate::pipeline::InFlight;
use crate::scripts::{BlockScripts, ScriptQueue};
use crate::tree::{BlockTree, NodeId};
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

impl Engine {
    /// Moves the coins of a block whose parent is the block they are at, and hands its scripts over.
    ///
    /// Leaves everything as it was when the block breaks a rule; that its scripts are good is not known yet.
    pub(crate) fn move_coins(
        &self,
        state: &mut State,
        id: NodeId,
        prepared: &Arc<Prepared>,
    ) -> Result<InFlight<NodeId>, ConnectError> {
        let node = state.tree.get(id);
        let was_valid = node.is_valid();
        let parent = node.parent.expect("the genesis block is never connected");
        let State { tree, coins, mempool, verdicts, coinbases, .. } = state;
        let branch = tree.ancestors(parent);
        let rules = BlockRules::new(&self.params, &branch, prepared.block.header(), &prepared.hash);
        coinbases.connect(prepared.txids[0], rules.height_in_coinbase);
        let mut queue = ScriptQueue::new(&self.verifier, Arc::clone(prepared), rules);
        if self.is_exact(tree, id, prepared) {
            queue.verify_at_once();
        }
        let mut on_spend = |tx_index: usize, spent: &mut Vec<Coin>| {
            // The coinbase spends nothing; a block that has been validated before is not verified again.
            if tx_index == 0 || was_valid {
                return;
            }
            let wtxid = prepared.wtxid(tx_index);
            let known = (!mempool.is_empty())
                .then(|| mempool.get(&prepared.txids[tx_index]))
                .flatten()
                .filter(|entry| entry.verified.contains(rules.flags) && entry.wtxid == wtxid)
                .map(|entry| entry.sigchecks)
                .or_else(|| verdicts.get(&wtxid, rules.flags));
            match known {
                Some(sigchecks) => queue.add_known(sigchecks),
                None => queue.push(tx_index, spent),
            }
        };
        let moved = move_block(
            (prepared, &rules, self.config.read_threads),
            (coins, coinbases, &branch),
            &mut on_spend,
        );
        // Also when the block is refused: what was handed over holds on to it.
        let scripts = queue.finish();
        point(Point::Connect);
        match moved {
            Ok(undo) => Ok(InFlight { scripts, undo, note: id }),
            Err(error) => {
                coinbases.disconnect(&prepared.txids[0]);
                Err(error)
            }
        }
    }

    /// Whether libsecp256k1 alone decides about the signatures of a block.
    fn is_exact(&self, tree: &BlockTree, id: NodeId, prepared: &Prepared) -> bool {
        let place = Place {
            height: tree.get(id).height,
            best_height: tree.get(tree.best_header()).height,
            time_s: prepared.block.header().time,
            now_s: unix_time_s(),
        };
        is_exact(self.config.exact_near_tip, &place, || {
            prepared.block.txs().map(|tx| tx.input_count()).sum()
        })
    }

    /// Makes a block the tip whose scripts have all passed.
    pub(crate) fn land(
        &self,
        state: &mut State,
        block: InFlight<NodeId>,
    ) -> Result<Arc<BlockScripts>, EngineError> {
        let InFlight { scripts, undo, note: id } = block;
        let node = state.tree.get(id);
        // A block spends the same coins whenever it is connected, so what was written before is as good. It is better:
        // it may have been synced, and the coins on disk may be on a branch that only it leads back from.
        if !node.is_valid() || node.undo.is_none() {
            let undo_pos = self.blocks.append_undo(&scripts.prepared.hash, &undo)?;
            state.tree.set_valid(id, undo_pos);
            self.index.put(&[state.tree.get(id).to_record()])?;
        }
        state.tree.extend_active(id);
        point(Point::Connected);
        self.hand_over(state.tree.get(id).height, &scripts.prepared, undo);
        state.remove_confirmed(&scripts.prepared);
        Ok(scripts)
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
        unapply(&prepared.block, &prepared.txids, outputs_first, moved, &mut state.coins)
            .map_err(|cause| doubt(hash, cause))?;
        point(Point::Disconnect);
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

/// Moves the coins of a block and checks every rule that needs them, scripts apart: gives the encoded undo data.
///
/// Amounts come last and before scripts, as Core reports them (`validation.cpp`, `ConnectBlock`). When a rule is broken the
/// coins are as before.
pub(crate) fn move_block<A: Ancestors>(
    (prepared, rules, read_threads): (&Prepared, &BlockRules, usize),
    (coins, coinbases, ancestors): (&mut CoinStore, &CoinbaseLog, &A),
    on_spend: &mut dyn FnMut(usize, &mut Vec<Coin>),
) -> Result<Vec<u8>, ConnectError> {
    let Prepared { block, txids, .. } = prepared;
    let mut applier = Applier::new(block, txids, rules, read_threads);
    let verdict = match applier.apply(coins, coinbases, ancestors, on_spend) {
        Ok(()) => check_coinbase_amount(rules, block, applier.totals().fees),
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

/// A failure to take coins back leaves memory in doubt.
pub(crate) fn doubt(hash: BlockHash, cause: UnwindError) -> EngineError {
    match cause {
        UnwindError::Coin(error) => error.into(),
        UnwindError::Undo(source) => EngineError::Undo { hash, source },
        UnwindError::Mismatch => EngineError::UndoMismatch { hash },
    }
}
