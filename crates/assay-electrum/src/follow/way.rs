//! Along a chain: back to where it parted, then forward block by block, for whatever is built.

use assay_wire::{Block, BlockHash, Txid};
use rayon::prelude::*;

use super::FollowError;
use crate::chain::{Chain, Tip};
use crate::index::UpdateError;

/// Something that is built along a chain, block by block.
pub trait Follows: Send + Sync {
    /// What one block contributes: all that can be computed from it alone, by several threads at once.
    type Made: Send;

    /// What it is called in the log.
    fn name(&self) -> &'static str;

    /// Whether a block is not enough, and the coins that it spent are needed too.
    fn needs_undo(&self) -> bool;

    /// The block it has reached.
    fn tip(&self) -> Option<Tip>;

    /// The block it has at this height.
    ///
    /// # Errors
    /// When it cannot be read.
    fn hash_at(&self, height: u32) -> Result<Option<BlockHash>, FollowError>;

    /// Computes what a block contributes.
    ///
    /// # Errors
    /// When block and undo data do not belong together.
    fn make(
        &self,
        block: &Block,
        txids: &[Txid],
        undo: Option<&[u8]>,
    ) -> Result<Self::Made, FollowError>;

    /// Adds the block after the tip.
    ///
    /// # Errors
    /// When it does not follow the tip, or cannot be written.
    fn connect(&self, made: Self::Made) -> Result<(), FollowError>;

    /// Takes all blocks above `height` back.
    ///
    /// # Errors
    /// When that cannot be written.
    fn rewind(&self, height: u32) -> Result<(), FollowError>;

    /// Writes everything out, so that it survives a power cut.
    ///
    /// # Errors
    /// When the disk refuses.
    fn commit(&self) -> Result<(), FollowError>;

    /// Some blocks were added.
    fn advanced(&self) {}
}

/// What is built, and the chain it follows.
pub(super) struct Way<'a, F> {
    pub(super) target: &'a F,
    pub(super) chain: &'a dyn Chain,
    pub(super) pool: &'a rayon::ThreadPool,
}

impl<F: Follows> Way<'_, F> {
    /// Gets to the tip.
    pub(super) fn catch_up(&self) -> Result<(), FollowError> {
        let (target, chain) = (self.target, self.chain);
        while !chain.is_stopping() {
            // What has just been connected comes first: no question to the node is needed, which may be at the next block.
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
                self.step_back(ours)?;
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

    /// Goes back to the highest block that the active chain has too.
    fn step_back(&self, ours: Tip) -> Result<(), FollowError> {
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

    /// Adds archived blocks: while some are added, what the next contribute is computed.
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

    /// Reads an archived block and computes what it contributes.
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

/// Blocks that are worked on at once: few, since a block may have 256 MB.
const BLOCKS_AT_ONCE: usize = 4;
/// Heights that are asked for at once.
const HEIGHTS_AT_ONCE: u32 = 4096;
