//! The UTXO set at a block of the active chain, for a file (Core `rpc/blockchain.cpp`, `dumptxoutset`).
//!
//! Earlier states are computed in memory over a snapshot: the engine continues meanwhile, and nothing is changed.

use std::io::{self, Write};

use assay_store::{CoinSnapshot, KeyForms, SnapshotHeader};
use assay_wire::BlockHash;

use super::Chain;
use crate::apply::ChainCoins;
use crate::connect::disconnect;
use crate::error::EngineError;
use crate::snapshot_file::{WriteCoinsError, write_coins};
use crate::stats::{serialized_hash, snapshot_stats};
use crate::tree::{Node, NodeId};
use crate::types::Tip;

/// The UTXO set is unavailable or could not be written.
#[derive(Debug, thiserror::Error)]
pub enum DumpError {
    #[error("Block is not in main chain")]
    NotActive,
    #[error(
        "Could not roll back to requested height since necessary block data is already pruned."
    )]
    Pruned,
    #[error("Failed to read block at height {height}")]
    Read { height: u32 },
    /// The undo data of a block above it cannot be read.
    #[error("Failed to roll back block at height {height}")]
    RollBack { height: u32 },
    /// The changes since take more memory than the limit of the coins.
    #[error("Not enough memory to roll back beyond height {height}. Consider increasing -dbcache.")]
    Memory { height: u32 },
    #[error("interrupted")]
    Interrupted,
    #[error("cannot write the coins: {0}")]
    Write(#[from] io::Error),
    #[error(transparent)]
    Engine(#[from] EngineError),
}

pub struct CoinsAt {
    pub block: Tip,
    pub count: u64,
    /// Hash over all coins in order (Core's `hash_serialized_3`).
    pub hash: [u8; 32],
    snapshot: CoinSnapshot,
    magic: [u8; 4],
}

impl Chain<'_> {
    /// The UTXO set at a block of the active chain. Calls `goes_on` periodically; false stops.
    ///
    /// # Errors
    /// The coins cannot be read, or the engine fails.
    pub fn coins_at(
        self,
        block: &BlockHash,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<CoinsAt, DumpError> {
        let (mut snapshot, tip) = self.snapshot()?;
        let (base, above) = self.blocks_above(block, &tip)?;
        if !above.is_empty() {
            snapshot = self.roll_back(snapshot, &above, goes_on)?;
        }
        let pool = &self.0.chainstate.pool;
        let stats = snapshot_stats(&snapshot, pool, base.height, base.hash, false);
        let stats = stats.map_err(EngineError::from)?;
        let hash = serialized_hash(&snapshot).map_err(EngineError::from)?;
        let magic = self.0.params().magic;
        Ok(CoinsAt { block: base, count: stats.txouts, hash, snapshot, magic })
    }

    /// A block, and the blocks above it up to `tip`, highest first.
    fn blocks_above(self, block: &BlockHash, tip: &Tip) -> Result<(Tip, Vec<Node>), DumpError> {
        let state = self.0.lock_tree();
        let tree = &state.tree;
        let ids = tree.find(block).zip(tree.find(&tip.hash));
        let (base, top) = ids.ok_or(DumpError::NotActive)?;
        if tree.ancestor_at(top, tree.get(base).height) != base {
            return Err(DumpError::NotActive);
        }
        let above: Vec<NodeId> = tree.path(base, top);
        let above: Vec<Node> = above.into_iter().map(|id| tree.get(id).clone()).collect();
        if above.iter().any(Node::is_pruned) {
            return Err(DumpError::Pruned);
        }
        Ok((tree.facts(base), above))
    }

    fn roll_back(
        self,
        snapshot: CoinSnapshot,
        above: &[Node],
        goes_on: &dyn Fn() -> bool,
    ) -> Result<CoinSnapshot, DumpError> {
        let bytes_max = self.0.config().cache_bytes_max;
        let coins = snapshot.into_scratch(bytes_max).map_err(EngineError::from)?;
        let mut coins = ChainCoins::with_unknown_coinbases(coins);
        for node in above {
            if !goes_on() {
                return Err(DumpError::Interrupted);
            }
            if coins.store.cache_bytes() > bytes_max {
                return Err(DumpError::Memory { height: node.height });
            }
            self.take_back(node, &mut coins)?;
        }
        Ok(coins.store.snapshot().map_err(EngineError::from)?)
    }

    pub(super) fn take_back(self, node: &Node, coins: &mut ChainCoins) -> Result<(), DumpError> {
        let (height, chain) = (node.height, &self.0.chainstate);
        let prepared = self.read_prepared(node).ok_or(DumpError::Read { height })?;
        let undo = node.undo.and_then(|pos| chain.blocks.read_undo(pos, &node.hash).ok());
        let undo = undo.ok_or(DumpError::RollBack { height })?;
        let is_cash = chain.params().cash.is_some();
        disconnect(&prepared, &undo, is_cash, coins).map_err(|error| {
            tracing::error!("cannot roll back block {}: {error}", node.hash);
            DumpError::RollBack { height }
        })
    }
}

impl CoinsAt {
    /// Writes the coins in Core's format. Calls `goes_on` periodically; false stops.
    ///
    /// # Errors
    /// The coins cannot be read or written, or the caller stopped.
    pub fn write<W: Write>(
        &self,
        out: W,
        keys: KeyForms,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<W, DumpError> {
        let header = SnapshotHeader { magic: self.magic, base: self.block.hash, coins: self.count };
        write_coins(&self.snapshot, &header, (out, keys), goes_on).map_err(|error| match error {
            WriteCoinsError::Read(error) => EngineError::from(error).into(),
            WriteCoinsError::Write(error) => error.into(),
            WriteCoinsError::Interrupted => DumpError::Interrupted,
        })
    }
}
