//! Accepts headers and blocks: checks against their branch, and the archive.

use std::sync::Arc;

use assay_consensus::block::{BlockError, BlockRules};
use assay_consensus::header::{HeaderError, check_header, contextual_check_header};
use assay_wire::{BlockHash, Header};

use super::archive::{Archive, Archiving, Write};
use super::{Chainstate, State};
use crate::error::EngineError;
use crate::prepared::Prepared;
use crate::tree::NodeId;
use crate::types::SubmitOutcome;
use crate::work::Stage;
use rayon::ThreadPool;

pub(crate) enum AcceptError {
    Rule(BlockError),
    /// The block or header is known already.
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

impl<E: Into<EngineError>> From<E> for AcceptError {
    fn from(error: E) -> Self {
        Self::Engine(error.into())
    }
}

impl Chainstate {
    /// Finds a header in the tree or adds it, in memory only (Core `validation.cpp`, `AcceptBlockHeader`).
    pub(crate) fn accept_header(
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
        check_header(self.params(), header, hash).map_err(BlockError::from)?;
        let parent = state
            .tree
            .find(&header.prev_block)
            .ok_or(HeaderError::ParentUnknown { parent: header.prev_block })?;
        if state.tree.get(parent).is_failed() {
            return Err(HeaderError::ParentInvalid { parent: header.prev_block }.into());
        }
        let branch = state.tree.ancestors(parent);
        contextual_check_header(self.params(), &branch, header, self.config.clock.now_s() as i64)
            .map_err(BlockError::from)?;
        Ok(state.tree.insert(parent, *header))
    }

    /// Checks the block against its branch, archives it and adds it to the tree (Core `validation.cpp`, `AcceptBlock`), on the
    /// threads of `pool` or on this one. Calls `is_good` before the archive write.
    pub(crate) fn accept(
        &self,
        state: &mut State,
        prepared: &Arc<Prepared>,
        pool: Option<&ThreadPool>,
        archive: Archive,
        is_good: impl FnOnce(&State, NodeId),
    ) -> Result<NodeId, AcceptError> {
        let accept = || self.accept_untimed(state, prepared, pool, archive, is_good);
        self.work.time(Stage::Archive, accept)
    }

    fn accept_untimed(
        &self,
        state: &mut State,
        prepared: &Arc<Prepared>,
        pool: Option<&ThreadPool>,
        archive: Archive,
        is_good: impl FnOnce(&State, NodeId),
    ) -> Result<NodeId, AcceptError> {
        let Prepared { block, hash, .. } = &**prepared;
        let header = block.header();
        let id = self.accept_header(state, header, hash)?;
        let node = state.tree.get(id);
        if node.has_data() {
            let is_valid = node.was_connected();
            return Err(AcceptError::Known(if is_valid {
                SubmitOutcome::Duplicate
            } else {
                SubmitOutcome::DuplicateInconclusive
            }));
        }
        let parent = node.parent.expect("the genesis block has data");
        let (has_segwit, verdict) = {
            let branch = state.tree.ancestors(parent);
            let rules = BlockRules::new(self.params(), &branch, header, hash);
            (rules.segwit, prepared.check_context(&rules, pool))
        };
        if let Err(error) = verdict {
            // Other bytes with the same header may be valid, unless the header commits to the error.
            if error.is_mutation() {
                self.put_records(state, &[id])?;
            } else {
                self.mark_failed(state, id)?;
            }
            return Err(error.into());
        }
        is_good(state, id);
        let (pos, write) = match archive {
            Archive::Has(pos) => (pos, None),
            Archive::Now => (self.blocks.append_block(block.bytes())?, None),
            Archive::Meanwhile => {
                let pos = self.blocks.reserve_block(block.bytes())?;
                (pos, Some(Write::begin(&self.blocks, pos, prepared)))
            }
        };
        if !has_segwit {
            state.tree.set_without_witness(id);
        }
        let changed = state.tree.set_block(id, pos, block.tx_count() as u32);
        match write {
            Some(write) => state.archiving = Some(Archiving { write, changed }),
            None => self.put_records(state, &changed)?,
        }
        Ok(id)
    }
}
