//! Block templates, trial validation of blocks, and data for miners.

use assay_consensus::chain::Ancestors;
use assay_consensus::pow::next_work_required;
use assay_consensus::subsidy::block_subsidy;
use assay_wire::{Block, BlockHash};

use super::Mining;
use crate::chainstate::{State, TrialChecks, TrialError, signals_after};
use crate::error::EngineError;
use crate::mining::{
    Assembled, BlockTemplate, LastTemplate, Selection, TemplateOptions, TemplateTx, assemble,
};
use crate::prepared::Prepared;
use crate::tree::NodeId;

#[derive(Debug, thiserror::Error)]
pub enum TemplateError {
    #[error("TestBlockValidity failed: {0}")]
    Invalid(TrialError),
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl Mining<'_> {
    /// A validated template of the next block, complete except for its work.
    ///
    /// # Errors
    /// The block would not be valid, because of the transactions or the clock, or the engine fails.
    pub fn template(self, options: &TemplateOptions) -> Result<BlockTemplate, TemplateError> {
        let mut state = self.0.lock();
        state.check()?;
        let template = self.assemble_template(&mut state, options);
        let checks = TrialChecks { work: false, merkle_root: false };
        let raw = template.block(&template.header);
        let block = Block::parse(raw, self.0.params().encoding)
            .expect("a template is laid out as blocks are");
        let hash = block.hash();
        let prepared = Prepared::in_parallel(block, hash, &self.0.chainstate.pool);
        self.0
            .chainstate
            .test_block(&mut state, prepared, checks)?
            .map_err(TemplateError::Invalid)?;
        Ok(template)
    }

    fn assemble_template(self, state: &mut State, options: &TemplateOptions) -> BlockTemplate {
        let (params, config) = (self.0.params(), &self.0.config().mining);
        let State { tree, mempool, .. } = state;
        let branch = tree.ancestors(tree.tip());
        let height = branch.tip_height() + 1;
        let cutoff_s = i64::from(branch.median_time_past_at(height - 1));
        let assembled = match &options.selection {
            Selection::Mempool => assemble(mempool, params, config, (height, cutoff_s)),
            Selection::These(txs) => {
                let txs = txs.iter().map(|tx| TemplateTx {
                    tx: std::sync::Arc::clone(tx),
                    txid: tx.view().txid(),
                    wtxid: tx.view().wtxid(),
                    fee_sat: 0,
                    sigop_cost: 0,
                });
                Assembled { txs: txs.collect(), ..Assembled::empty(config) }
            }
        };
        let Assembled { txs, weight, sigops, fees_sat } = assembled;
        tracing::info!(
            "CreateNewBlock(): block weight: {weight} txs: {} fees: {fees_sat} sigops {sigops}",
            txs.len()
        );
        if matches!(options.selection, Selection::Mempool) {
            *self.0.last_template.lock() = Some(LastTemplate { weight, txs: txs.len() });
        }
        let signalled = signals_after(tree, tree.tip(), &params.deployments);
        let version = config.version.unwrap_or(signalled);
        let now_s = self.0.config().clock.now_s();
        BlockTemplate::new(
            (params, &branch, now_s),
            version,
            (block_subsidy(params, height) + fees_sat, &options.coinbase_script),
            txs,
            mempool.updates(),
        )
    }

    /// Updates the time of a template, and the target if it depends on the time; has no effect once another block is the tip.
    pub fn refresh(self, template: &mut BlockTemplate) {
        let state = self.0.lock();
        if state.tree.tip_node().hash == template.header.prev_block {
            let branch = state.tree.ancestors(state.tree.tip());
            template.refresh(self.0.params(), &branch, self.0.config().clock.now_s());
        }
    }

    /// Validates a block as if it were the next one, without storing it.
    ///
    /// # Errors
    /// The engine fails.
    pub fn test_block(
        self,
        block: Block,
        checks: TrialChecks,
    ) -> Result<Result<(), TrialError>, EngineError> {
        let hash = block.hash();
        let prepared = Prepared::in_parallel(block, hash, &self.0.chainstate.pool);
        self.0.chainstate.test_block(&mut self.0.lock(), prepared, checks)
    }

    /// Result of a proposal of a known block (BIP22).
    pub fn block_status(self, hash: &BlockHash) -> Option<&'static str> {
        let state = self.0.lock();
        let node = state.tree.get(state.tree.find(hash)?);
        Some(if node.is_failed() {
            "duplicate-invalid"
        } else if node.was_connected() {
            "duplicate"
        } else {
            "duplicate-inconclusive"
        })
    }

    /// Figures of the last template made from the mempool.
    pub fn last_template(self) -> Option<LastTemplate> {
        *self.0.last_template.lock()
    }

    /// The target of a block mined now, in compact form.
    pub fn next_bits(self) -> u32 {
        let state = self.0.lock();
        let branch = state.tree.ancestors(state.tree.tip());
        let params = self.0.params();
        let earliest = branch.median_time_past_at(branch.tip_height()).saturating_add(1);
        let now = u32::try_from(self.0.config().clock.now_s()).unwrap_or(u32::MAX);
        next_work_required(params, &branch, now.max(earliest))
    }

    /// Estimated hashes per second of the active chain, over the `lookup` blocks up to the one at `height`; `None` for those
    /// since the last change of the target (Core `rpc/mining.cpp`, `GetNetworkHashPS`).
    pub fn network_hash_rate(self, lookup: Option<u32>, height: u32) -> f64 {
        let state = self.0.lock();
        let tree = &state.tree;
        let Some(last) = tree.active_at(height).filter(|_| height > 0) else { return 0.0 };
        let interval = self.0.params().pow.retarget_interval();
        let lookup = lookup.unwrap_or(height % interval + 1).min(height);
        let times = (height - lookup..=height)
            .filter_map(|at| tree.active_at(at).map(|id| tree.get(id).header.time));
        let (low, high) =
            times.fold((u32::MAX, 0), |(low, high), time| (low.min(time), high.max(time)));
        let first = tree.active_at(height - lookup).unwrap_or(NodeId::GENESIS);
        if low >= high {
            return 0.0;
        }
        let work = tree.get(last).chain_work.wrapping_sub(tree.get(first).chain_work);
        let words = work.to_le_bytes();
        let words = words
            .chunks_exact(4)
            .map(|word| f64::from(u32::from_le_bytes(word.try_into().unwrap_or_default())));
        let scale = |(sum, factor), word| (sum + factor * word, factor * 4_294_967_296.0);
        let (work, _) = words.fold((0.0, 1.0), scale);
        work / f64::from(high - low)
    }
}
