//! Validates a block without storing it (Core `validation.cpp`, `TestBlockValidity`).

use std::sync::Arc;

use assay_consensus::block::{BlockError, BlockRules};
use assay_consensus::header::{check_header, contextual_check_header};
use assay_consensus::signet::check_signet_solution;

use super::{Chainstate, State};
use crate::checker::ImmediateChecker;
use crate::connect::{ConnectError, disconnect};
use crate::error::EngineError;
use crate::pipeline::{InFlight, Passed, Pipeline};
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
        let (tip, prepared) = (state.tree.tip(), Arc::new(prepared));
        let mut pipeline = Pipeline::new(Arc::clone(&self.verifier));
        let mut passed = Vec::new();
        match self.connect_on(state, &pipeline, (tip, false), &prepared) {
            Ok(block) => pipeline.push(InFlight { block, note: () }),
            Err(ConnectError::Rule(error)) => {
                // As in Core: the trial leaves nothing behind.
                let Ok(()) = pipeline.drain(|block| passed.push(block)) else {
                    unreachable!("no block is in the pipeline")
                };
                return Ok(Err(error));
            }
            Err(ConnectError::Engine(error)) => return Err(error),
        }
        let coins = (&mut state.coins, &mut state.coinbases);
        if let Err(refuted) = pipeline.drain(|block| passed.push(block)) {
            return refuted.unwind(coins.0, coins.1).map(|((), error)| Err(error));
        }
        let is_cash = self.params().cash.is_some();
        for Passed { undo, .. } in passed {
            disconnect(&prepared, &undo, is_cash, (&mut *coins.0, &mut *coins.1))?;
        }
        Ok(Ok(()))
    }
}
