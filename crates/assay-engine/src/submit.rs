//! Taking blocks and headers in: checks that need no coins, and the archive.

use std::ops::Range;

use assay_consensus::block::{self, BlockError, BlockRules};
use assay_consensus::header::{HeaderError, check_header, contextual_check_header};
use assay_consensus::signet::check_signet_solution;
use assay_store::defect::{Point, point};
use assay_wire::{Block, BlockHash, Header, Wtxid};
use rayon::prelude::*;

use crate::activate::poison;
use crate::checker::ImmediateChecker;
use crate::connect::Prepared;
use crate::engine::{Engine, State, unix_time_s};
use crate::tree::NodeId;
use crate::types::{EngineError, SubmitOutcome};

/// Transactions that one thread hashes or checks at a time.
const TXS_PER_TASK: usize = 256;

/// Why a block or header did not get as far as being connected.
enum AcceptError {
    Rule(BlockError),
    /// It is known already.
    Known(SubmitOutcome),
    Engine(EngineError),
}

impl From<BlockError> for AcceptError {
    fn from(error: BlockError) -> Self {
        Self::Rule(error)
    }
}

impl From<HeaderError> for AcceptError {
    fn from(error: HeaderError) -> Self {
        Self::Rule(error.into())
    }
}

impl From<EngineError> for AcceptError {
    fn from(error: EngineError) -> Self {
        Self::Engine(error)
    }
}

impl AcceptError {
    fn into_outcome(self, state: &mut State) -> SubmitOutcome {
        match self {
            Self::Rule(error) => rejected(&error),
            Self::Known(outcome) => outcome,
            // The index may lack what the tree has: what builds on it could be lost in a restart.
            Self::Engine(error) => match poison::<()>(state, Err(error)) {
                Ok(()) => unreachable!("an error stays one"),
                Err(error) => SubmitOutcome::Failed(error),
            },
        }
    }
}

impl Engine {
    /// Judges a block and, when it is valid, keeps it.
    ///
    /// On return an accepted block survives the death of the process.
    pub fn submit_block(&self, raw: Vec<u8>) -> SubmitOutcome {
        #[cfg(feature = "slowed")]
        crate::slowed::block_begins();
        let _turn = self.turns.block();
        let block = match Block::parse_prefix(raw, self.params.encoding) {
            Ok(block) => block,
            Err(error) => return SubmitOutcome::Undecodable(error),
        };
        let hash = block.hash();
        let prepared = self.prepare(block, hash);
        // What the block says of itself comes first, as in Core's ProcessNewBlock: its reasons win over those of context,
        // and nothing of it is remembered, since other bytes with the same header may be valid.
        if let Err(error) = self.pool.install(|| self.check_block(&prepared)) {
            return rejected(&error);
        }
        let mut state = self.lock();
        if let Some(cause) = &state.poisoned {
            return SubmitOutcome::Failed(EngineError::Poisoned(cause.clone()));
        }
        let id = match self.accept(&mut state, &prepared) {
            Ok(id) => id,
            Err(error) => return error.into_outcome(&mut state),
        };
        match self.activate(&mut state, Some((id, prepared))) {
            Ok(Some(Ok(()))) => SubmitOutcome::Accepted,
            Ok(Some(Err(error))) => rejected(&error),
            Ok(None) => SubmitOutcome::Inconclusive,
            Err(error) => SubmitOutcome::Failed(error),
        }
    }

    /// Judges a header and keeps it: its block may follow, in any order with those that build on it.
    ///
    /// [`SubmitOutcome::Duplicate`] for a header that is known and has not failed.
    pub fn submit_header(&self, header: &Header) -> SubmitOutcome {
        let hash = header.hash();
        let mut state = self.lock();
        if let Some(cause) = &state.poisoned {
            return SubmitOutcome::Failed(EngineError::Poisoned(cause.clone()));
        }
        if state.tree.find(&hash).is_some_and(|id| !state.tree.get(id).is_failed()) {
            return SubmitOutcome::Duplicate;
        }
        let accepted = self.accept_header(&mut state, header, &hash).and_then(|id| {
            self.put_records(&state, &[id])?;
            self.announce(&state);
            Ok(())
        });
        match accepted {
            Ok(()) => SubmitOutcome::Inconclusive,
            Err(error) => error.into_outcome(&mut state),
        }
    }

    /// Computes the hashes of all transactions on all cores.
    pub(crate) fn prepare(&self, block: Block, hash: BlockHash) -> Prepared {
        let ranges = task_ranges(block.tx_count());
        let (txids, wtxids) = self.pool.install(|| {
            let hash_range = |range: &Range<usize>| {
                point(Point::HashTask);
                block.txids(range.clone())
            };
            let txids: Vec<_> = ranges.par_iter().flat_map_iter(hash_range).collect();
            let has_witness = block.txs().any(|tx| tx.has_witness());
            let wtxids = has_witness.then(|| {
                ranges
                    .par_iter()
                    .flat_map_iter(|range| block.wtxids(range.clone(), &txids[range.clone()]))
                    .collect()
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

    /// Finds a header in the tree or adds it, in memory only (Core `validation.cpp`, `AcceptBlockHeader`).
    fn accept_header(
        &self,
        state: &mut State,
        header: &Header,
        hash: &BlockHash,
    ) -> Result<NodeId, AcceptError> {
        if let Some(id) = state.tree.find(hash) {
            if state.tree.get(id).is_failed() {
                return Err(AcceptError::Known(SubmitOutcome::DuplicateInvalid));
            }
            return Ok(id);
        }
        check_header(&self.params, header, hash).map_err(BlockError::from)?;
        let parent = state
            .tree
            .find(&header.prev_block)
            .ok_or(HeaderError::ParentUnknown { parent: header.prev_block })?;
        if state.tree.get(parent).is_failed() {
            return Err(HeaderError::ParentInvalid { parent: header.prev_block }.into());
        }
        let branch = state.tree.ancestors(parent);
        contextual_check_header(&self.params, &branch, header, unix_time_s() as i64)
            .map_err(BlockError::from)?;
        Ok(state.tree.insert(parent, *header))
    }

    /// Checks the block against the branch it builds on, archives it and adds it to the tree
    /// (Core `validation.cpp`, `AcceptBlock`).
    fn accept(&self, state: &mut State, prepared: &Prepared) -> Result<NodeId, AcceptError> {
        let Prepared { block, hash, .. } = prepared;
        let header = block.header();
        let id = self.accept_header(state, header, hash)?;
        let node = state.tree.get(id);
        if node.has_data() {
            let is_valid = node.is_valid();
            return Err(AcceptError::Known(if is_valid {
                SubmitOutcome::Duplicate
            } else {
                SubmitOutcome::DuplicateInconclusive
            }));
        }
        let parent = node.parent.expect("the genesis block has data");
        let verdict = {
            let branch = state.tree.ancestors(parent);
            let rules = BlockRules::new(&self.params, &branch, header, hash);
            self.pool.install(|| check_in_context(&rules, prepared))
        };
        if let Err(error) = verdict {
            // Other bytes with the same header may be valid, unless the header commits to what is wrong.
            if error.is_mutation() {
                self.put_records(state, &[id])?;
            } else {
                self.mark_failed(state, id)?;
            }
            return Err(error.into());
        }
        let pos = self.blocks.append_block(block.bytes()).map_err(EngineError::from)?;
        let changed = state.tree.set_block(id, pos, block.tx_count() as u32);
        self.put_records(state, &changed)?;
        Ok(id)
    }
}

/// Ranges of transactions for parallel tasks.
fn task_ranges(count: usize) -> Vec<Range<usize>> {
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
