//! Taking blocks in: checks that need no coins, the archive, and the choice of the active branch.

use assay_consensus::block::{self, BlockError, BlockRules};
use assay_consensus::header::{check_header, contextual_check_header};
use assay_consensus::signet::check_signet_solution;
use assay_wire::{Block, BlockHash, Tx, Wtxid};
use rayon::prelude::*;

use crate::checker::ImmediateChecker;
use crate::connect::{ConnectError, Prepared};
use crate::engine::{Engine, State, tip_of, unix_time_s};
use crate::log;
use crate::tree::NodeId;
use crate::types::{EngineError, SubmitOutcome};

/// Transactions that one thread hashes or checks at a time.
const TXS_PER_TASK: usize = 256;

/// Why a block did not get as far as being connected.
enum AcceptError {
    Rule(BlockError),
    Reason(&'static str),
    Engine(EngineError),
}

impl From<BlockError> for AcceptError {
    fn from(error: BlockError) -> Self {
        Self::Rule(error)
    }
}

impl From<EngineError> for AcceptError {
    fn from(error: EngineError) -> Self {
        Self::Engine(error)
    }
}

impl Engine {
    /// Judges a block and, when it is valid, keeps it.
    ///
    /// On return an accepted block survives the death of the process.
    pub fn submit_block(&self, raw: Vec<u8>) -> SubmitOutcome {
        let block = match Block::parse_prefix(raw, self.params.encoding) {
            Ok(block) => block,
            Err(error) => return SubmitOutcome::Undecodable(error),
        };
        let hash = block.hash();
        if let Some(outcome) = self.known(&hash) {
            return outcome;
        }
        let prepared = self.prepare(block, hash);
        // What the block says of itself comes first, as in Core's ProcessNewBlock: its reasons win over those of context.
        if let Err(error) = self.pool.install(|| self.check_block(&prepared)) {
            return rejected(&error);
        }
        let mut state = self.lock();
        if let Some(cause) = &state.poisoned {
            return SubmitOutcome::Failed(EngineError::Poisoned(cause.clone()));
        }
        let was_known = state.tree.find(&hash).is_some();
        let id = match self.accept(&mut state, &prepared) {
            Ok(id) => id,
            Err(AcceptError::Rule(error)) => return rejected(&error),
            Err(AcceptError::Reason(reason)) => {
                return SubmitOutcome::Rejected { reason: reason.to_owned(), debug: String::new() };
            }
            Err(AcceptError::Engine(error)) => return SubmitOutcome::Failed(error),
        };
        // A block that was lost may have been all that its descendants waited for.
        let best = if was_known { state.tree.best_candidate() } else { id };
        let work = |id| state.tree.get(id).chain_work;
        let target = if work(best) > work(id) { best } else { id };
        match self.activate(&mut state, target, (target == id).then_some(prepared)) {
            Ok(Some(error)) => rejected(&error),
            Ok(None) if state.tree.is_active(id) => SubmitOutcome::Accepted,
            Ok(None) => SubmitOutcome::Inconclusive,
            Err(error) => SubmitOutcome::Failed(error),
        }
    }

    fn known(&self, hash: &BlockHash) -> Option<SubmitOutcome> {
        let state = self.lock();
        let node = state.tree.get(state.tree.find(hash)?);
        if node.is_failed() {
            Some(SubmitOutcome::DuplicateInvalid)
        } else if node.block.is_none() && node.height > 0 {
            // A power cut may take the data of a block that the index knows: it is welcome again.
            None
        } else if node.is_valid() {
            Some(SubmitOutcome::Duplicate)
        } else {
            Some(SubmitOutcome::DuplicateInconclusive)
        }
    }

    /// Computes the hashes of all transactions on all cores.
    pub(crate) fn prepare(&self, block: Block, hash: BlockHash) -> Prepared {
        let count = block.tx_count();
        let (txids, wtxids) = self.pool.install(|| {
            let txids: Vec<_> = (0..count)
                .into_par_iter()
                .with_min_len(TXS_PER_TASK)
                .map(|index| block.tx(index).txid())
                .collect();
            let has_witness = block.txs().any(|tx| tx.has_witness());
            let wtxids = has_witness.then(|| {
                let wtxid = |index: usize| {
                    let tx: Tx<'_> = block.tx(index);
                    if tx.has_witness() { tx.wtxid() } else { Wtxid(txids[index].0) }
                };
                (0..count).into_par_iter().with_min_len(TXS_PER_TASK).map(wtxid).collect()
            });
            (txids, wtxids)
        });
        Prepared { block, hash, txids, wtxids }
    }

    /// Everything that can be told from the block alone, in Core's order (`validation.cpp`, `CheckBlock`).
    fn check_block(&self, prepared: &Prepared) -> Result<(), BlockError> {
        let Prepared { block, hash, txids, .. } = prepared;
        check_header(&self.params, block.header(), hash)?;
        check_signet_solution(&self.params, block, txids, &mut ImmediateChecker)?;
        block::check_merkle_root(block.header(), txids)?;
        block::check_shape(&self.params, block)?;
        let sigops: Vec<Result<u64, BlockError>> = task_ranges(block.tx_count())
            .into_par_iter()
            .map(|range| block::check_transactions(block, txids, range))
            .collect();
        // In order, so that of several broken rules the one in the lowest transaction is reported.
        let total = sigops.into_iter().sum::<Result<u64, _>>()?;
        block::check_legacy_sigops(&self.params, total)
    }

    /// Checks the block against the branch it builds on, archives it and adds it to the tree
    /// (Core `validation.cpp`, `AcceptBlock`).
    fn accept(&self, state: &mut State, prepared: &Prepared) -> Result<NodeId, AcceptError> {
        let Prepared { block, hash, .. } = prepared;
        let header = block.header();
        let known = state.tree.find(hash);
        if known.is_some_and(|id| state.tree.get(id).block.is_some()) {
            return Err(AcceptError::Reason("duplicate"));
        }
        let parent =
            state.tree.find(&header.prev_block).ok_or(AcceptError::Reason("prev-blk-not-found"))?;
        if state.tree.is_on_failed_branch(parent) {
            return Err(AcceptError::Reason("bad-prevblk"));
        }
        let verdict = {
            let branch = state.tree.ancestors(parent);
            contextual_check_header(&self.params, &branch, header, unix_time_s() as i64)
                .map_err(BlockError::from)?;
            let rules = BlockRules::new(&self.params, &branch, header, hash);
            self.pool.install(|| check_in_context(&rules, prepared))
        };
        if let Err(error) = verdict {
            // Other bytes with the same header may be valid, unless the header commits to what is wrong.
            if !error.is_mutation() && !error.is_temporary() {
                let id = known
                    .unwrap_or_else(|| state.tree.insert(parent, *header, block.tx_count() as u32));
                state.tree.set_failed(id);
                self.put_record(state, id)?;
            }
            return Err(error.into());
        }
        let pos = self.blocks.append_block(block.bytes()).map_err(EngineError::from)?;
        let id =
            known.unwrap_or_else(|| state.tree.insert(parent, *header, block.tx_count() as u32));
        state.tree.set_block(id, pos);
        self.put_record(state, id)?;
        Ok(id)
    }

    /// Writes down what the tree says of a block. When that fails, the engine stops: blocks on top of one that the index
    /// does not know would be lost with it.
    fn put_record(&self, state: &mut State, id: NodeId) -> Result<(), EngineError> {
        let written = self.index.put(&[state.tree.get(id).to_record()]).map_err(EngineError::from);
        if let Err(error) = &written {
            state.poisoned = Some(error.to_string());
            tracing::error!("the engine stops: {error}");
        }
        written
    }

    /// Makes the branch with the most work active, starting from a candidate that has just become available.
    ///
    /// Returns the rule that the candidate itself breaks, when it does. `prepared` spares reading it again.
    ///
    /// # Errors
    /// When the engine fails; it then refuses to go on, since memory may not agree with the disk.
    pub(crate) fn activate(
        &self,
        state: &mut State,
        candidate: NodeId,
        prepared: Option<Prepared>,
    ) -> Result<Option<BlockError>, EngineError> {
        let outcome = self.activate_branch(state, candidate, prepared);
        if let Err(error) = &outcome {
            state.poisoned = Some(error.to_string());
            tracing::error!("the engine stops: {error}");
        }
        outcome
    }

    fn activate_branch(
        &self,
        state: &mut State,
        candidate: NodeId,
        mut prepared: Option<Prepared>,
    ) -> Result<Option<BlockError>, EngineError> {
        let mut broken_rule = None;
        let mut disconnected = Vec::new();
        let mut target = candidate;
        if !state.tree.is_connectable(target) {
            // A power cut took a block below it.
            target = state.tree.tip();
        }
        while state.tree.get(target).chain_work > state.tree.tip_node().chain_work {
            let mut branch = state.tree.branch_above_active(target);
            let fork = branch.last().and_then(|lowest| state.tree.get(*lowest).parent);
            while Some(state.tree.tip()) != fork {
                disconnected.push(self.disconnect_tip(state)?);
                self.keep_within_limits(state)?;
            }
            let mut has_failed = false;
            while let Some(id) = branch.pop() {
                let block = match prepared.take_if(|_| id == candidate) {
                    Some(block) => block,
                    None => self.load(state, id)?,
                };
                match self.connect(state, id, &block) {
                    Ok(()) => self.connected(state)?,
                    Err(ConnectError::Rule(error)) => {
                        let node = state.tree.get(id);
                        let (hash, height) = (node.hash, node.height);
                        let reason = error.reject_reason();
                        tracing::warn!(
                            "invalid block {hash} at height {height}: {reason}: {error}"
                        );
                        state.tree.set_failed(id);
                        self.index.put(&[state.tree.get(id).to_record()])?;
                        if id == candidate {
                            broken_rule = Some(error);
                        }
                        has_failed = true;
                        break;
                    }
                    Err(ConnectError::Engine(error)) => return Err(error),
                }
            }
            if !has_failed {
                break;
            }
            // A branch left behind may be the best again.
            target = state.tree.best_candidate();
        }
        if !disconnected.is_empty() {
            self.readmit(state, &disconnected);
        }
        self.announce(state);
        Ok(broken_rule)
    }

    /// What follows every block that was connected.
    fn connected(&self, state: &mut State) -> Result<(), EngineError> {
        log::update_tip(&tip_of(&state.tree), state, &self.params);
        self.keep_within_limits(state)
    }
}

/// Ranges of transactions for parallel tasks.
fn task_ranges(count: usize) -> Vec<std::ops::Range<usize>> {
    (0..count).step_by(TXS_PER_TASK).map(|start| start..(start + TXS_PER_TASK).min(count)).collect()
}

/// Core `validation.cpp`, `ContextualCheckBlock`.
fn check_in_context(rules: &BlockRules, prepared: &Prepared) -> Result<(), BlockError> {
    let Prepared { block, txids, .. } = prepared;
    let verdicts: Vec<Result<(), BlockError>> = task_ranges(block.tx_count())
        .into_par_iter()
        .map(|range| block::check_order_and_locks(rules, block, txids, range))
        .collect();
    verdicts.into_iter().collect::<Result<(), _>>()?;
    block::check_coinbase_height(rules, block)?;
    let own_wtxids;
    let wtxids: &[Wtxid] = match &prepared.wtxids {
        Some(wtxids) => wtxids,
        None if block::needs_wtxids(rules, block) => {
            own_wtxids = txids.iter().map(|txid| Wtxid(txid.0)).collect::<Vec<_>>();
            &own_wtxids
        }
        None => &[],
    };
    block::check_witnesses(rules, block, wtxids)?;
    block::check_weight(rules, block)
}

fn rejected(error: &BlockError) -> SubmitOutcome {
    SubmitOutcome::Rejected {
        reason: error.reject_reason().into_owned(),
        debug: error.debug_message().into_owned(),
    }
}
