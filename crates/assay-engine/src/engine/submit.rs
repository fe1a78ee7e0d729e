//! Submission of blocks and headers.

use std::sync::Arc;

use assay_consensus::block::BlockError;
use assay_wire::{Block, Header};

use super::Blocks;
use crate::chainstate::{AcceptError, Archive, State};
use crate::prepared::Prepared;
use crate::types::SubmitOutcome;
use crate::work::Stage;

impl Blocks<'_> {
    /// Validates a block and, if it is valid, stores it.
    ///
    /// On return an accepted block survives the death of the process.
    pub fn submit(self, raw: Vec<u8>) -> SubmitOutcome {
        #[cfg(feature = "slowed")]
        crate::test_slowdown::block_begins();
        let _turn = self.0.turns.block();
        let block = match Block::parse_prefix(raw, self.0.params().encoding) {
            Ok(block) => block,
            Err(error) => return SubmitOutcome::Undecodable(error),
        };
        let hash = block.hash();
        // Checks of the block itself come first, as in Core's ProcessNewBlock: their reasons take precedence over contextual
        // ones. Their failure is not stored, since other bytes with the same header may be valid.
        let pool = Some(&*self.0.chainstate.pool);
        let checked = self.0.chainstate.work.time(Stage::Check, || {
            let prepared = Prepared::in_parallel(block, hash, &self.0.chainstate.pool);
            prepared.check_itself(self.0.params(), pool).map(|()| prepared)
        });
        let prepared = match checked {
            Ok(prepared) => prepared,
            Err(error) => return rejected(&error),
        };
        let prepared = Arc::new(prepared);
        let mut state = self.0.lock();
        if let Err(error) = state.check() {
            return SubmitOutcome::Failed(error);
        }
        let show = |state: &State, id| {
            if let Some(fresh) = self.fresh(state, id, &prepared) {
                self.0.chainstate.notifier.show_fresh(fresh);
            }
        };
        let id =
            match self.0.chainstate.accept(&mut state, &prepared, pool, Archive::Meanwhile, show) {
                Ok(id) => id,
                Err(error) => return not_accepted(&mut state, error),
            };
        self.0.historical.wake();
        match self.0.chainstate.activate(&mut state, Some((id, prepared))) {
            Ok(Some(Ok(()))) => SubmitOutcome::Accepted,
            Ok(Some(Err(error))) => rejected(&error),
            Ok(None) => SubmitOutcome::Inconclusive,
            Err(error) => SubmitOutcome::Failed(error),
        }
    }

    /// Checks a header and stores it. Its block may follow, in any order with its descendants.
    ///
    /// [`SubmitOutcome::Duplicate`] for a known header that has not failed.
    pub fn submit_header(self, header: &Header) -> SubmitOutcome {
        let hash = header.hash();
        let mut state = self.0.lock();
        if let Err(error) = state.check() {
            return SubmitOutcome::Failed(error);
        }
        if state.tree.find(&hash).is_some_and(|id| !state.tree.get(id).is_failed()) {
            return SubmitOutcome::Duplicate;
        }
        let accepted = self.0.chainstate.accept_header(&mut state, header, &hash).and_then(|id| {
            self.0.chainstate.put_records(&state, &[id])?;
            self.0.chainstate.notifier.announce(&state.tree);
            Ok(())
        });
        match accepted {
            Ok(()) => SubmitOutcome::Inconclusive,
            Err(error) => not_accepted(&mut state, error),
        }
    }
}

fn not_accepted(state: &mut State, error: AcceptError) -> SubmitOutcome {
    match error {
        AcceptError::Rule(error) => rejected(&error),
        AcceptError::Known(outcome) => outcome,
        // The index may lack blocks of the tree, and their descendants could be lost in a restart.
        AcceptError::Engine(error) => SubmitOutcome::Failed(state.fail(error)),
    }
}

fn rejected(error: &BlockError) -> SubmitOutcome {
    SubmitOutcome::Rejected {
        reason: error.reject_reason().into_owned(),
        debug: error.debug_message().into_owned(),
    }
}
