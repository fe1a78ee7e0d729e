//! Interface for followers of the engine, such as an index of the chain.

use std::sync::Arc;
use std::time::Duration;

use assay_wire::BlockHash;

use super::{Blocks, Engine};
use crate::chainstate::State;
use crate::events::Event;
use crate::notifier::{ConnectedBlock, FreshBlock};
use crate::prepared::Prepared;
use crate::tree::NodeId;
use crate::types::Tip;

impl Engine {
    /// Waits until tip or mempool differ from `seen`, the timeout expires, or the engine closes. Returns the tip, and the number of
    /// the last change of the mempool.
    ///
    /// Changes are counted only with [`Config::is_followed`](crate::Config::is_followed).
    pub fn wait_for_news(&self, seen: (BlockHash, u64), timeout: Duration) -> (Tip, u64) {
        self.chainstate.notifier.wait_for_news(seen, timeout)
    }

    /// True if the engine is closing.
    pub fn is_shutting_down(&self) -> bool {
        self.chainstate.notifier.is_closing()
    }

    /// Events of chain and mempool since the last call; waits up to `timeout` for the first. `None` once the engine has closed
    /// and all events were taken, or without [`Config::has_events`](crate::Config::has_events).
    pub fn take_events(&self, timeout: Duration) -> Option<Vec<Event>> {
        self.chainstate.notifier.events()?.take(timeout)
    }
}

impl Blocks<'_> {
    /// The block connected on top of `parent`, if it is still in memory; each follower receives it once. It may have been
    /// disconnected since. Never waits for a block being connected. Followers are numbered from 0; number 0 is that of
    /// [`Config::is_followed`](crate::Config::is_followed).
    pub fn take_connected(self, follower: usize, parent: &BlockHash) -> Option<ConnectedBlock> {
        self.0.chainstate.notifier.take_connected(follower, parent)
    }

    /// A block to relay before its scripts are verified: it builds on the tip (Core `validation.cpp`, `NewPoWValidBlock`).
    pub(super) fn fresh(
        self,
        state: &State,
        id: NodeId,
        prepared: &Arc<Prepared>,
    ) -> Option<FreshBlock> {
        let node = state.tree.get(id);
        let builds_on_tip = node.parent == Some(state.tree.tip());
        (self.0.config().has_peers && builds_on_tip && !self.0.chain().is_initial_block_download())
            .then(|| FreshBlock::new(node.height, Arc::clone(prepared)))
    }

    /// Waits for a submitted block that builds on the tip, has valid work and is being validated, and passes it to `pass_on`
    /// once; returns `false` when the engine closes. Blocks of peers go to [`BlockOffer::on_fresh`](crate::BlockOffer) instead.
    /// With [`Config::has_peers`](crate::Config::has_peers) one thread must call this in a loop, otherwise none.
    pub fn pass_fresh(self, pass_on: impl FnOnce(FreshBlock)) -> bool {
        self.0.chainstate.notifier.pass_fresh(pass_on)
    }

    /// Waits until every block submitted so far is relayed, which needs no verdict.
    pub fn wait_for_fresh(self) {
        self.0.chainstate.notifier.wait_for_fresh();
    }
}
