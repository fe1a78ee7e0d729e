//! What a follower of the engine needs: an index of the chain, for one.

use std::sync::Arc;
use std::time::Duration;

use assay_wire::BlockHash;

use super::Engine;
use crate::chainstate::State;
use crate::error::EngineError;
use crate::events::Event;
use crate::mempool::MempoolDelta;
use crate::news::{ConnectedBlock, FreshBlock};
use crate::prepared::Prepared;
use crate::tree::NodeId;
use crate::types::Tip;

impl Engine {
    /// The tip, and the number of the last change of the mempool.
    ///
    /// Only an engine with [`Config::is_followed`](crate::Config::is_followed) counts changes.
    pub fn moment(&self) -> (Tip, u64) {
        self.chain.news.moment()
    }

    /// Waits until tip or mempool differ from what was seen, the time is over, or the engine closes.
    pub fn wait_for_news(&self, seen: (BlockHash, u64), timeout: Duration) -> (Tip, u64) {
        self.chain.news.wait_for_news(seen, timeout)
    }

    /// Whether the engine is closing.
    pub fn is_shutting_down(&self) -> bool {
        self.chain.news.is_closing()
    }

    /// The block that was connected on top of `parent`, if it is still in memory; each follower is given it once. It may have
    /// been disconnected since. Never waits for a block that is being connected. Followers are numbered from 0, that of
    /// [`Config::is_followed`](crate::Config::is_followed) first.
    pub fn take_connected(&self, follower: usize, parent: &BlockHash) -> Option<ConnectedBlock> {
        self.chain.news.take_connected(follower, parent)
    }

    /// A block to be passed on before its scripts have been verified: it builds on the tip (Core `validation.cpp`,
    /// `NewPoWValidBlock`).
    pub(super) fn fresh(
        &self,
        state: &State,
        id: NodeId,
        prepared: &Arc<Prepared>,
    ) -> Option<FreshBlock> {
        let node = state.tree.get(id);
        let builds_on_tip = node.parent == Some(state.tree.tip());
        (self.chain.config.has_peers && builds_on_tip && !self.is_initial_block_download())
            .then(|| FreshBlock::new(node.height, Arc::clone(prepared)))
    }

    /// Waits for a submitted block that builds on the tip, has its work and is being judged, and gives it to `pass_on` once;
    /// `false` when the engine closes. Those of peers are shown to who offers them ([`BlockOffer::on_fresh`](crate::BlockOffer)).
    /// One thread has to call this over and over with [`Config::has_peers`](crate::Config::has_peers), and none without.
    pub fn pass_fresh(&self, pass_on: impl FnOnce(FreshBlock)) -> bool {
        self.chain.news.pass_fresh(pass_on)
    }

    /// Waits until every submitted block so far has been passed on, which takes no verdict: who submitted it may know of it.
    pub fn wait_for_fresh(&self) {
        self.chain.news.wait_for_fresh();
    }

    /// What has happened in chain and mempool since the last call; waits for something up to `timeout`. `None` once the engine
    /// has closed and everything was taken, or without [`Config::has_events`](crate::Config::has_events).
    pub fn take_events(&self, timeout: Duration) -> Option<Vec<Event>> {
        self.chain.news.events()?.take(timeout)
    }

    /// What has happened in the mempool since change number `since`; `None` asks for everything.
    ///
    /// # Errors
    /// When a coin that a transaction spends cannot be read.
    pub fn mempool_since(&self, since: Option<u64>) -> Result<MempoolDelta, EngineError> {
        let state = self.lock();
        state.mempool.changes_since(since, state.tree.tip_facts(), &state.coins)
    }
}
