//! Checks the last blocks of the chain again, at the start and on request (Core `validation.cpp`, `CVerifyDB`).
//!
//! Coins move in a scratch store over a snapshot, so the engine continues meanwhile and nothing is changed.

use std::sync::Arc;

use assay_consensus::block::{BlockError, BlockRules, check_block};
use assay_consensus::tx::is_unspendable;
use assay_store::{CoinError, CoinRef, decode_undo};
use assay_wire::{Block, Coin, OutPoint};

use super::{Chain, Engine};
use crate::apply::ChainCoins;
use crate::chainstate::{KnownScripts, Parent, settle_alone};
use crate::config::ChainCheck;
use crate::error::{EngineError, OpenError};
use crate::pipeline::Pipeline;
use crate::prepared::Prepared;
use crate::scripts::Verifier;
use crate::tree::{Node, NodeId};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checked {
    Sound,
    /// No error, but some blocks are pruned.
    Pruned,
    /// No error, but the memory for coins was too small for levels 3 and 4.
    Shallow,
    Corrupted,
    Interrupted,
}

/// Reason for an incomplete check of a block.
enum Fault {
    /// The block is wrong; details are in the log.
    Corrupted,
    /// The block was pruned meanwhile.
    Pruned,
}

struct Check<'a> {
    engine: &'a Engine,
    level: u32,
    tip_height: u32,
    /// Coins below the checked blocks.
    coins: ChainCoins,
    /// True if the coins are not disconnected any further.
    is_shallow: bool,
    good_txs: usize,
    /// Height of a snapshot's base: blocks up to it were not connected with the current coins.
    unvalidated_to: Option<u32>,
    /// The lowest block with unexpected coins.
    unclean: Option<u32>,
}

impl Chain<'_> {
    /// Checks the last blocks of the active chain. Calls `goes_on` before each.
    ///
    /// # Errors
    /// Coins cannot be read.
    pub fn check(
        self,
        check: ChainCheck,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<Checked, EngineError> {
        let (snapshot, tip) = self.snapshot()?;
        if tip.height == 0 {
            return Ok(Checked::Sound);
        }
        let count = if check.blocks == 0 { tip.height } else { check.blocks.min(tip.height) };
        let level = check.level.min(4);
        tracing::info!("Verifying last {count} blocks at level {level}");
        let coins = snapshot.into_scratch(self.0.config().cache_bytes_max)?;
        let mut check = Check {
            engine: self.0,
            level,
            tip_height: tip.height,
            // Earlier coinbases are not read again.
            coins: ChainCoins::with_unknown_coinbases(coins),
            is_shallow: false,
            good_txs: 0,
            unvalidated_to: self.historical().map(|chain| chain.base.height),
            unclean: None,
        };
        let Some(ids) = self.last_blocks(&tip.hash, count) else {
            return Ok(Checked::Interrupted);
        };
        let checked = check.run(&ids, goes_on)?;
        if !matches!(checked, Checked::Corrupted | Checked::Interrupted) {
            tracing::info!("Verification: checked last {count} blocks at level {level}");
            if level >= 3 && !check.is_shallow {
                let txs = check.good_txs;
                tracing::info!(
                    "Verification: no coin database inconsistencies ({txs} transactions)"
                );
            }
        }
        Ok(checked)
    }

    pub(super) fn check_at_start(self) -> Result<(), OpenError> {
        let Some(check) = self.0.config().check else { return Ok(()) };
        match self.check(check, &|| true)? {
            Checked::Corrupted => Err(OpenError::Corrupted),
            Checked::Shallow if check.must_be_whole => Err(OpenError::ShallowCheck),
            _ => Ok(()),
        }
    }

    /// Validates a block over the coins of its parent, and applies it to them if it is valid.
    pub(super) fn connect_over(
        self,
        node: &Node,
        prepared: Prepared,
        coins: &mut ChainCoins,
    ) -> Result<Result<(), BlockError>, EngineError> {
        let chain = &self.0.chainstate;
        let pool = Some(&*chain.pool);
        if let Err(error) = prepared.check_itself(chain.params(), pool) {
            return Ok(Err(error));
        }
        let prepared = Arc::new(prepared);
        let verifier = Verifier::new(Arc::clone(&chain.pool), chain.config.script_batch);
        let pipeline = Pipeline::new(verifier);
        let connected = {
            let state = self.0.lock_tree();
            let (tree, id) = (&state.tree, node.parent.unwrap_or(NodeId::GENESIS));
            let (branch, header) = (tree.ancestors(id), prepared.block.header());
            let rules = BlockRules::new(chain.params(), &branch, header, &prepared.hash);
            if let Err(error) = prepared.check_context(&rules, pool) {
                return Ok(Err(error));
            }
            let parent = Parent { tree, id, coins: &mut *coins };
            chain.connect_on(parent, &pipeline, &prepared, &KnownScripts::None)
        };
        settle_alone(pipeline, connected, coins).map(|verdict| verdict.map(|_| ()))
    }

    /// A block on disk, if it is the expected one.
    pub(super) fn read_prepared(self, node: &Node) -> Option<Prepared> {
        let chain = &self.0.chainstate;
        let raw = chain.blocks.read_block(node.block?).ok()?;
        let block = Block::parse(raw, chain.params().encoding).ok()?;
        let hash = block.hash();
        (hash == node.hash).then(|| Prepared::in_parallel(block, hash, &chain.pool))
    }

    /// Reads a block's spent coins from its undo data.
    pub(super) fn spent_by(self, node: &Node) -> Option<Vec<Coin>> {
        let undo = self.0.chainstate.blocks.read_undo(node.undo?, &node.hash).ok()?;
        decode_undo(&undo).ok()
    }

    /// The last blocks of the branch that ends in `tip`, highest first.
    fn last_blocks(self, tip: &assay_wire::BlockHash, count: u32) -> Option<Vec<NodeId>> {
        let state = self.0.lock_tree();
        let tree = &state.tree;
        let first = tree.find(tip)?;
        let chain = std::iter::successors(Some(first), |id| tree.get(*id).parent);
        Some(chain.take(count as usize).collect())
    }
}

impl Check<'_> {
    fn run(&mut self, ids: &[NodeId], goes_on: &dyn Fn() -> bool) -> Result<Checked, EngineError> {
        let mut done = 0;
        let mut is_pruned = false;
        for (index, &id) in ids.iter().enumerate() {
            if !goes_on() {
                return Ok(Checked::Interrupted);
            }
            show_progress(index, ids.len(), if self.level >= 4 { 50 } else { 100 });
            let node = self.node(id);
            let is_below = self.unvalidated_to.is_some_and(|base| node.height <= base);
            let may_lack = self.engine.chainstate.config.prune.is_some() || is_below;
            if node.block.is_none() && may_lack || is_below {
                tracing::info!(
                    "Block verification stopping at height {} (no data). This could be due to pruning or use of an assumeutxo \
                     snapshot.",
                    node.height
                );
                is_pruned = true;
                break;
            }
            match self.look_at(&node)? {
                Ok(()) => {}
                Err(Fault::Corrupted) => return Ok(Checked::Corrupted),
                Err(Fault::Pruned) => {
                    is_pruned = true;
                    break;
                }
            }
            done = index + 1;
        }
        if let Some(height) = self.unclean {
            let (blocks, txs) = (self.tip_height - height + 1, self.good_txs);
            tracing::error!(
                "Verification error: coin database inconsistencies found (last {blocks} blocks, {txs} good transactions before \
                 that)"
            );
            return Ok(Checked::Corrupted);
        }
        if self.is_shallow {
            tracing::warn!(
                "Skipped verification of level >=3 (insufficient database cache size). Consider increasing -dbcache."
            );
            return Ok(Checked::Shallow);
        }
        if self.level >= 4 {
            for (index, &id) in ids[..done].iter().rev().enumerate() {
                if !goes_on() {
                    return Ok(Checked::Interrupted);
                }
                show_progress(done + index, 2 * done, 100);
                match self.connect_again(id)? {
                    Ok(()) => {}
                    Err(Fault::Corrupted) => return Ok(Checked::Corrupted),
                    // The blocks above it depend on its coins.
                    Err(Fault::Pruned) => return Ok(Checked::Pruned),
                }
            }
        }
        Ok(if is_pruned { Checked::Pruned } else { Checked::Sound })
    }

    /// Logs that the block at `height` is wrong.
    fn fault(&self, what: &str, height: u32, block: &Node) -> Fault {
        let state = self.engine.lock_tree();
        if state.tree.find(&block.hash).is_some_and(|id| !state.tree.get(id).has_data()) {
            return Fault::Pruned;
        }
        tracing::error!("Verification error: {what} at {height}, hash={}", block.hash);
        Fault::Corrupted
    }

    fn node(&self, id: NodeId) -> Node {
        self.engine.lock_tree().tree.get(id).clone()
    }

    /// Levels 0 to 3 for one block.
    fn look_at(&mut self, node: &Node) -> Result<Result<(), Fault>, EngineError> {
        let height = node.height;
        let Some(prepared) = self.engine.chain().read_prepared(node) else {
            return Ok(Err(self.fault("ReadBlock failed", height, node)));
        };
        let params = self.engine.params();
        if self.level >= 1
            && let Err(error) = check_block(params, &prepared.block, &prepared.txids)
        {
            let (hash, reason) = (node.hash, error.reject_reason());
            tracing::error!(
                "Verification error: found bad block at {height}, hash={hash} ({reason})"
            );
            return Ok(Err(Fault::Corrupted));
        }
        if self.level < 2 {
            return Ok(Ok(()));
        }
        let Some(spent) = self.engine.chain().spent_by(node) else {
            return Ok(Err(self.fault("found bad undo data", height, node)));
        };
        if self.level >= 3 && !self.is_shallow {
            let used =
                self.coins.store.cache_bytes() + self.engine.lock_tree().coins.store.cache_bytes();
            if used > self.engine.chainstate.config.cache_bytes_max {
                self.is_shallow = true;
                return Ok(Ok(()));
            }
            match self.disconnect(node, &prepared, spent)? {
                None => {
                    let what = "irrecoverable inconsistency in block data";
                    return Ok(Err(self.fault(what, height, node)));
                }
                Some(true) => self.good_txs += prepared.block.tx_count(),
                Some(false) => {
                    self.good_txs = 0;
                    self.unclean = Some(height);
                }
            }
        }
        Ok(Ok(()))
    }

    /// Disconnects a block from the coins. Returns true if all coins were as expected; `None` if the undo data do not match the
    /// block (Core `validation.cpp`, `DisconnectBlock`).
    fn disconnect(
        &mut self,
        node: &Node,
        prepared: &Prepared,
        mut spent: Vec<Coin>,
    ) -> Result<Option<bool>, CoinError> {
        let Prepared { block, txids, .. } = prepared;
        let inputs: usize = block.txs().skip(1).map(|tx| tx.input_count()).sum();
        if spent.len() != inputs {
            return Ok(None);
        }
        let is_cash = self.engine.params().cash.is_some();
        let mut is_clean = true;
        for index in (0..block.tx_count()).rev() {
            if !is_cash {
                is_clean &= self.remove_outputs(node, prepared, index)?;
            }
            for input in (0..block.tx(index).input_count()).rev().filter(|_| index > 0) {
                let Some(coin) = spent.pop() else { return Ok(None) };
                let prevout = block.tx(index).input(input).prevout;
                is_clean &= !self.coins.store.have(&prevout)?;
                self.coins.store.add(prevout, CoinRef::from(&coin), true)?;
            }
        }
        for index in (0..txids.len()).rev().filter(|_| is_cash) {
            is_clean &= self.remove_outputs(node, prepared, index)?;
        }
        Ok(Some(is_clean))
    }

    /// Removes the outputs of a transaction; returns true if they were as the block created them.
    fn remove_outputs(
        &mut self,
        node: &Node,
        prepared: &Prepared,
        index: usize,
    ) -> Result<bool, CoinError> {
        let mut is_clean = true;
        // Later coinbases overwrote those of these blocks.
        let is_exempt = index == 0 && OVERWRITTEN.contains(&node.height);
        for (vout, output) in (0..).zip(prepared.block.tx(index).outputs()) {
            if is_unspendable(output.script_pubkey) {
                continue;
            }
            let outpoint = OutPoint { txid: prepared.txids[index], vout };
            let coin = self.coins.store.spend(&outpoint)?;
            let is_same = coin.is_some_and(|coin| {
                coin.value == output.value
                    && coin.script_pubkey[..] == *output.script_pubkey
                    && coin.height == node.height
                    && coin.coinbase == (index == 0)
            });
            is_clean &= is_same || is_exempt;
        }
        Ok(is_clean)
    }

    /// Level 4 for one block.
    fn connect_again(&mut self, id: NodeId) -> Result<Result<(), Fault>, EngineError> {
        let node = self.node(id);
        let Some(prepared) = self.engine.chain().read_prepared(&node) else {
            return Ok(Err(self.fault("ReadBlock failed", node.height, &node)));
        };
        let connected = self.engine.chain().connect_over(&node, prepared, &mut self.coins)?;
        let Err(error) = connected else { return Ok(Ok(())) };
        tracing::error!(
            "Verification error: found unconnectable block at {}, hash={} ({})",
            node.height,
            node.hash,
            error.reject_reason()
        );
        Ok(Err(Fault::Corrupted))
    }
}

/// Logs the progress at every tenth, as Core does.
fn show_progress(index: usize, count: usize, of: usize) {
    let percent = |index: usize| index * of / count.max(1);
    if index == 0 || percent(index) / 10 != percent(index - 1) / 10 {
        tracing::info!("Verification progress: {}%", percent(index));
    }
}

/// Heights of the blocks of the main chain whose coinbases were overwritten (Core `validation.cpp`, `IsBIP30Unspendable`).
pub(super) const OVERWRITTEN: [u32; 2] = [91_722, 91_812];
