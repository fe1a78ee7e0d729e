//! Chain sync of an index: disconnects to the fork, then connects block by block.

use assay_wire::{Block, BlockHash, Txid};
use rayon::prelude::*;

use super::{COMMIT_INTERVAL, FollowError};
use crate::chain::{Chain, Tip};
use crate::index::UpdateError;

pub trait Follows: Send + Sync {
    /// The contribution of one block, computed from that block alone by several threads in parallel.
    type Made: Send;

    /// Name in log messages.
    fn name(&self) -> &'static str;

    /// True if a block's undo data is needed too.
    fn needs_undo(&self) -> bool;

    fn tip(&self) -> Option<Tip>;

    /// Hash of the indexed block at `height`.
    fn hash_at(&self, height: u32) -> Result<Option<BlockHash>, FollowError>;

    fn make(
        &self,
        block: &Block,
        txids: &[Txid],
        undo: Option<&[u8]>,
    ) -> Result<Self::Made, FollowError>;

    fn connect(&self, made: Self::Made) -> Result<(), FollowError>;

    fn rewind(&self, height: u32) -> Result<(), FollowError>;

    /// Commits all changes; on return they survive a power cut.
    fn commit(&self) -> Result<(), FollowError>;

    fn advanced(&self) {}

    /// Called when the index has the tip of the node; false if a block arrived meanwhile, which must be indexed first.
    fn caught_up(&self) -> Result<bool, FollowError> {
        Ok(true)
    }

    /// Waits for more to do; `before` was the tip of the node before the index caught up.
    fn wait(&self, chain: &dyn Chain, before: &Tip) {
        // The mempool number may differ each time; the cost is one extra check per wake-up.
        chain.wait_for_tip(self.tip().as_ref().unwrap_or(before), COMMIT_INTERVAL);
    }
}

pub(super) struct ChainSync<'a, F> {
    pub(super) target: &'a F,
    pub(super) chain: &'a dyn Chain,
    pub(super) pool: &'a rayon::ThreadPool,
}

impl<F: Follows> ChainSync<'_, F> {
    pub(super) fn catch_up(&self) -> Result<(), FollowError> {
        let (target, chain) = (self.target, self.chain);
        while !chain.is_stopping() {
            // Freshly connected blocks first: taking them does not wait for the node, which may be connecting the next block.
            if let Some(tip) = target.tip()
                && let Some(block) = chain.take_connected(&tip.hash)
            {
                let made = target.make(block.block(), block.txids(), Some(block.undo()))?;
                drop(block);
                target.connect(made)?;
                target.advanced();
                continue;
            }
            let tip = chain.tip();
            let Some(ours) = target.tip() else {
                let Some(genesis) = chain.hash_at(0) else { return Ok(()) };
                self.extend(&[genesis])?;
                continue;
            };
            if ours == tip {
                return Ok(());
            }
            if chain.hash_at(ours.height) != Some(ours.hash) {
                self.disconnect_to_fork(ours)?;
                continue;
            }
            let heights = ours.height + 1..=tip.height.min(ours.height + HEIGHTS_AT_ONCE);
            let hashes: Vec<_> = heights.map_while(|height| chain.hash_at(height)).collect();
            if hashes.is_empty() {
                return Ok(());
            }
            self.extend(&hashes)?;
        }
        Ok(())
    }

    /// Disconnects blocks down to the fork with the active chain.
    fn disconnect_to_fork(&self, ours: Tip) -> Result<(), FollowError> {
        for height in (0..ours.height).rev() {
            let hash = self.target.hash_at(height)?;
            if hash.is_some() && hash == self.chain.hash_at(height) {
                let name = self.target.name();
                tracing::info!("{name}: back from height {} to {height}", ours.height);
                return self.target.rewind(height);
            }
        }
        Err(FollowError::NoCommonBlock)
    }

    /// Connects archived blocks; the contributions of the next blocks are computed in parallel.
    fn extend(&self, hashes: &[BlockHash]) -> Result<(), FollowError> {
        let mut made: Vec<Result<F::Made, FollowError>> = Vec::new();
        let mut rest = hashes;
        loop {
            let (now, later) = rest.split_at(rest.len().min(BLOCKS_AT_ONCE));
            let before = std::mem::take(&mut made);
            let make = || now.par_iter().map(|hash| self.load(hash)).collect();
            let connect = || before.into_iter().try_for_each(|made| self.target.connect(made?));
            let connected;
            (made, connected) = self.pool.install(|| rayon::join(make, connect));
            connected?;
            self.target.advanced();
            rest = later;
            if made.is_empty() || self.chain.is_stopping() {
                return Ok(());
            }
        }
    }

    /// Reads an archived block and computes its contribution.
    fn load(&self, hash: &BlockHash) -> Result<F::Made, FollowError> {
        let missing = |what| FollowError::Missing { hash: *hash, what };
        let raw = self.chain.block(hash)?.ok_or_else(|| missing("data"))?;
        let block = Block::parse(raw, self.chain.encoding())
            .map_err(|source| UpdateError::Block { hash: *hash, source })?;
        let txids = block.txids(0..block.tx_count());
        let needs_undo = self.target.needs_undo();
        let undo = if needs_undo { self.chain.undo(hash)? } else { None };
        if undo.is_none() && block.tx_count() > 1 && needs_undo {
            return Err(missing("undo data"));
        }
        self.target.make(&block, &txids, undo.as_deref())
    }
}

/// Blocks processed in parallel: few, since a block may have 256 MB.
const BLOCKS_AT_ONCE: usize = 4;
const HEIGHTS_AT_ONCE: u32 = 4096;
