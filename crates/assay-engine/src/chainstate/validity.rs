//! Validates a block without storing it (Core `validation.cpp`, `TestBlockValidity`).

use std::sync::Arc;

use assay_consensus::block::{BlockError, BlockRules};
use assay_consensus::header::{check_header, contextual_check_header};
use assay_consensus::signet::check_signet_solution;
use assay_store::defect::{Point, point};

use super::tip::{KnownScripts, Parent, settle_alone};
use super::{Chainstate, State};
use crate::checker::ImmediateChecker;
use crate::connect::disconnect;
use crate::error::EngineError;
use crate::pipeline::Pipeline;
use crate::prepared::Prepared;

/// Optional checks of a trial block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrialChecks {
    /// Proof of work, and the solution on signets.
    pub work: bool,
    /// Merkle root of the header.
    pub merkle_root: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TrialError {
    #[error("inconclusive-not-best-prevblk")]
    NotOnTip,
    #[error(transparent)]
    Rule(#[from] BlockError),
}

impl Chainstate {
    /// Validates a block as if it were the next one. Coins move and move back; script results are cached.
    ///
    /// # Errors
    /// The engine fails; it then rejects further work, since the coins may be inconsistent.
    pub(crate) fn test_block(
        &self,
        state: &mut State,
        prepared: Prepared,
        checks: TrialChecks,
    ) -> Result<Result<(), TrialError>, EngineError> {
        state.check()?;
        if let Err(error) = self.check_before_coins(state, &prepared, checks) {
            return Ok(Err(error));
        }
        let outcome = self.connect_and_back(state, prepared);
        state.poison(outcome).map(|verdict| verdict.map_err(TrialError::Rule))
    }

    fn check_before_coins(
        &self,
        state: &State,
        prepared: &Prepared,
        checks: TrialChecks,
    ) -> Result<(), TrialError> {
        let Prepared { block, hash, txids, .. } = prepared;
        let (params, header) = (self.params(), block.header());
        if header.prev_block != state.tree.tip_node().hash {
            return Err(TrialError::NotOnTip);
        }
        if checks.work {
            check_header(params, header, hash).map_err(BlockError::from)?;
            check_signet_solution(params, block, txids, &mut ImmediateChecker)?;
        }
        self.pool.install(|| prepared.check_body_in_parallel(params, checks.merkle_root))?;
        let branch = state.tree.ancestors(state.tree.tip());
        let now_s = self.config.clock.now_s() as i64;
        contextual_check_header(params, &branch, header, now_s).map_err(BlockError::from)?;
        let rules = BlockRules::new(params, &branch, header, hash);
        prepared.check_context(&rules, Some(&self.pool))?;
        Ok(())
    }

    fn connect_and_back(
        &self,
        state: &mut State,
        prepared: Prepared,
    ) -> Result<Result<(), BlockError>, EngineError> {
        let prepared = Arc::new(prepared);
        let pipeline = Pipeline::new(Arc::clone(&self.verifier));
        let State { tree, coins, mempool, .. } = state;
        let (id, known) = (tree.tip(), KnownScripts::Of(mempool));
        let parent = Parent { tree, id, coins: &mut *coins };
        let connected = self.connect_on(parent, &pipeline, &prepared, &known);
        point(Point::Connect);
        // As in Core: the trial leaves nothing behind.
        match settle_alone(pipeline, connected, coins)? {
            Ok(undo) => {
                disconnect(&prepared, &undo, self.params().cash.is_some(), coins)?;
                Ok(Ok(()))
            }
            Err(error) => Ok(Err(error)),
        }
    }
}
