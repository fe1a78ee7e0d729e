//! Queries of the chain: tip, blocks, coins, figures.

use std::time::Duration;

use assay_consensus::params::ChainParams;
use assay_store::{CoinRef, CoinSnapshot};
use assay_wire::{BlockHash, Coin, OutPoint};

use super::Chain;
use crate::error::EngineError;
use crate::mempool::UNCONFIRMED_HEIGHT;
use crate::stats::{serialized_hash, snapshot_stats};
use crate::tree::{BlockTree, NodeId};
use crate::types::{BlockEntry, Tip, UtxoStats, big_endian};

impl Chain<'_> {
    /// The tip; never waits for a block being connected.
    pub fn tip(self) -> Tip {
        self.0.chainstate.notifier.tip()
    }

    /// Height of the valid header with the most work; never waits either.
    pub fn header_height(self) -> u32 {
        self.0.chainstate.notifier.header_height()
    }

    /// Waits until `is_reached` accepts the tip, the timeout expires, or the engine closes; returns the current tip.
    pub fn wait_for(self, timeout: Option<Duration>, is_reached: impl Fn(&Tip) -> bool) -> Tip {
        self.0.chainstate.notifier.wait_for(timeout, is_reached)
    }

    /// Waits for a tip other than `from`.
    pub fn wait_for_tip_change(self, from: BlockHash, timeout: Option<Duration>) -> Tip {
        self.wait_for(timeout, |tip| tip.hash != from)
    }

    /// True during IBD: no tip since the start had the minimum chain work and was at most a day old (Core `validation.cpp`,
    /// `IsInitialBlockDownload`).
    pub fn is_initial_block_download(self) -> bool {
        self.0.chainstate.notifier.download().goes_on(&self.tip())
    }

    /// True if the tip has less than the chain's minimum work, so that it may be on a branch of no other node.
    pub fn has_little_work(self) -> bool {
        self.0.chainstate.notifier.download().has_little_work(&self.tip())
    }

    /// Hash of the active block at `height`.
    pub fn hash_at(self, height: u32) -> Option<BlockHash> {
        let state = self.0.lock_tree();
        state.tree.active_at(height).map(|id| state.tree.get(id).hash)
    }

    pub fn entry(self, hash: &BlockHash) -> Option<BlockEntry> {
        let state = self.0.lock_tree();
        state.tree.find(hash).map(|id| block_entry(&state.tree, id, self.0.params()))
    }

    /// An unspent output and the tip it was looked up at. With `include_mempool`, outputs of unconfirmed transactions are
    /// included, and outputs spent by them are not.
    ///
    /// # Errors
    /// The coins cannot be read.
    pub fn coin(
        self,
        outpoint: &OutPoint,
        include_mempool: bool,
    ) -> Result<Option<(Coin, Tip)>, EngineError> {
        let state = self.0.lock();
        self.check_coins()?;
        let tip = state.tree.tip_facts();
        if include_mempool {
            if state.mempool.spender(outpoint).is_some() {
                return Ok(None);
            }
            if let Some(coin) = state.mempool.output(outpoint, UNCONFIRMED_HEIGHT) {
                return Ok(Some((coin, tip)));
            }
        }
        Ok(state.coins.store.get(outpoint)?.map(|coin| (coin, tip)))
    }

    /// Statistics of the current UTXO set, with its `MuHash` on request (Core `kernel/coinstats.cpp`).
    ///
    /// # Errors
    /// Coins cannot be read.
    pub fn utxo_stats(self, with_muhash: bool) -> Result<UtxoStats, EngineError> {
        let (snapshot, Tip { height, hash, .. }) = self.snapshot()?;
        Ok(snapshot_stats(&snapshot, &self.0.chainstate.pool, height, hash, with_muhash)?)
    }

    /// [`Chain::utxo_stats`] with the hash over all coins in order, which keeps one thread busy for long.
    ///
    /// # Errors
    /// Coins cannot be read.
    pub fn utxo_stats_serialized(self) -> Result<UtxoStats, EngineError> {
        let (snapshot, Tip { height, hash, .. }) = self.snapshot()?;
        let stats = snapshot_stats(&snapshot, &self.0.chainstate.pool, height, hash, false)?;
        Ok(UtxoStats { hash_serialized: Some(serialized_hash(&snapshot)?), ..stats })
    }

    /// Visits every coin, in the order of outpoints as stored, while the engine continues. Before each of many parts `goes_on`
    /// receives the progress in per cent; false stops. Returns the tip of the coins, and true if all were visited.
    ///
    /// # Errors
    /// Coins cannot be read.
    pub fn scan_coins(
        self,
        mut goes_on: impl FnMut(u32) -> bool,
        mut visit: impl FnMut(&OutPoint, CoinRef<'_>),
    ) -> Result<(Tip, bool), EngineError> {
        const PARTS: u32 = 1024;
        let (snapshot, tip) = self.snapshot()?;
        for part in 0..PARTS {
            if !goes_on(part * 100 / PARTS) {
                return Ok((tip, false));
            }
            snapshot.for_each_in_shard(part, PARTS, &mut visit)?;
        }
        Ok((tip, true))
    }

    /// Fails after an engine failure, when the coins may belong to no block. The caller must hold the lock.
    fn check_coins(self) -> Result<(), EngineError> {
        self.0.failure().map_or(Ok(()), |cause| Err(EngineError::Poisoned(cause)))
    }

    /// The current coins and their tip.
    pub(super) fn snapshot(self) -> Result<(CoinSnapshot, Tip), EngineError> {
        let mut state = self.0.lock();
        self.check_coins()?;
        // A snapshot copies the changes. A large number is flushed first; Core always flushes.
        if state.flushes.is_due_for_snapshot(&state.coins.store) {
            self.0.chainstate.flush(&mut state)?;
        }
        Ok((state.coins.store.snapshot()?, state.tree.tip_facts()))
    }
}

fn block_entry(tree: &BlockTree, id: NodeId, params: &ChainParams) -> BlockEntry {
    let node = tree.get(id);
    let in_active_chain = tree.is_active(id);
    let next = in_active_chain.then(|| tree.active_at(node.height + 1)).flatten();
    let size = match node.block {
        Some(pos) => pos.size,
        None if node.height == 0 => params.genesis_block().len() as u32,
        None => 0,
    };
    BlockEntry {
        header: node.header,
        hash: node.hash,
        height: node.height,
        chain_work: big_endian(node.chain_work),
        tx_count: node.tx_count,
        chain_txs: node.chain_tx_count,
        in_active_chain,
        next: next.map(|id| tree.get(id).hash),
        median_time: node.median_time,
        has_data: size > 0,
        is_pruned: node.is_pruned(),
        size,
    }
}
