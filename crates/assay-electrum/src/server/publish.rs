//! What clients see, and how it changes: index and mempool together, at once.

use std::collections::HashSet;
use std::sync::Arc;

use assay_wire::{OutPoint, Transaction, Tx, Txid};
use parking_lot::{Mutex, RwLock, RwLockWriteGuard};

use super::confirmed::Confirmed;
use super::hub::{Hub, News};
use super::outpoints::Outpoints;
use super::watch::Watched;
use crate::chain::{self, MempoolChange, MempoolChanges, Tip};
use crate::follow::{Listener, Touched, Update};
use crate::index::{QueryError, ScriptHash};
use crate::mempool::{Affected, Batch, Mempool};

/// Transactions that come or go while readers are kept out: well below a millisecond of work unless they are huge.
const STEPS: usize = 128;

/// The confirmed part of what clients see.
pub(super) struct Moment {
    pub(super) view: Arc<dyn Confirmed>,
    pub(super) tip: Tip,
    /// Header of the tip.
    pub(super) header: [u8; 80],
    /// How often the chain was reorganised: what was computed under another number is void.
    pub(super) reorganisations: u64,
}

/// The present moment and the mempool that belongs to it.
#[derive(Default)]
pub(super) struct Published {
    state: RwLock<State>,
}

#[derive(Default)]
struct State {
    moment: Option<Arc<Moment>>,
    pool: Mempool,
}

impl Published {
    /// The present moment; `None` before the first.
    pub(super) fn moment(&self) -> Option<Arc<Moment>> {
        self.state.read().moment.clone()
    }

    /// Asks mempool and index about the same moment. `ask` keeps the next moment from coming: it should only collect what it needs
    /// of the mempool.
    pub(super) fn read<R>(&self, ask: impl FnOnce(&Arc<Moment>, &Mempool) -> R) -> Option<R> {
        let state = self.state.read();
        let moment = state.moment.as_ref()?;
        Some(ask(moment, &state.pool))
    }
}

/// Through which the thread that follows the chain tells the server what is new: it is the follower's [`Listener`].
///
/// One call of [`Publisher::publish`] is one change of what clients see. In between, nothing changes: a transaction that moves
/// from the mempool into a block is always in exactly one of them.
pub struct Publisher {
    published: Arc<Published>,
    hub: Arc<Hub>,
    /// What was told but is not seen yet. Also makes callers take turns, although there should only be one.
    pending: Mutex<Pending>,
}

#[derive(Default)]
struct Pending {
    from_scratch: bool,
    changes: Vec<MempoolChange>,
    scripts: HashSet<ScriptHash>,
    outpoints: HashSet<OutPoint>,
    reorganised: bool,
    /// What was new to us at the call before: blocks may be looked through for what is watched while others are added.
    new_scripts: Vec<ScriptHash>,
    new_outpoints: Vec<OutPoint>,
}

/// Collects what is watched of that which a change of the mempool affects.
struct Collector<'a> {
    watched: &'a Watched,
    outpoints: &'a Outpoints,
    news: &'a mut News,
    found: Vec<OutPoint>,
}

impl Affected for Collector<'_> {
    fn script(&mut self, script: &ScriptHash) {
        if self.watched.is_watched(script) {
            self.news.scripts.insert(*script);
        }
    }

    fn transaction(&mut self, txid: &Txid, tx: &Transaction) {
        self.outpoints.add_named(txid, &tx.view(), &mut self.found);
        self.news.outpoints.extend(self.found.drain(..));
    }
}

impl Publisher {
    pub(super) fn new(published: Arc<Published>, hub: Arc<Hub>) -> Self {
        Self { published, hub, pending: Mutex::default() }
    }

    /// The scripts that somebody wants to hear of.
    pub fn watched(&self) -> &Arc<Watched> {
        self.hub.watched()
    }

    /// Makes `view` and the mempool after `mempool` what clients see from now on, and has those told who watch what has changed.
    ///
    /// - `mempool`: the changes that lead to the moment of `view`, or `None` where those are not known yet: then what the new
    ///   blocks hold leaves the mempool, and the rest stays. A view without them that has lost blocks is not shown: what was in
    ///   those would be nowhere.
    /// - `touched`: scripts and outputs with transactions in blocks that were added since the last call; scripts that nobody watches
    ///   are ignored.
    /// - `reorganised`: whether blocks were taken away since the last call. Everything watched is looked at again then.
    ///
    /// Clients are told by another thread; this one goes on at once. A view without blocks changes nothing.
    ///
    /// # Errors
    /// When headers or txids of new blocks cannot be read. Nothing has changed then, and the next call makes up for it.
    pub fn publish(
        &self,
        view: impl Confirmed,
        mempool: Option<MempoolChanges>,
        touched: Touched,
        reorganised: bool,
    ) -> Result<(), QueryError> {
        let mut pending = self.pending.lock();
        let watched = self.watched();
        let scripts = touched.scripts.into_iter().filter(|script| watched.is_watched(script));
        pending.scripts.extend(scripts);
        pending.outpoints.extend(touched.outpoints);
        pending.reorganised |= reorganised;
        let is_whole = mempool.is_some();
        if let Some(mempool) = mempool {
            if mempool.from_scratch {
                pending.from_scratch = true;
                pending.changes.clear();
            }
            pending.changes.extend(mempool.changes);
        }
        let Some(tip) = view.tip() else { return Ok(()) };
        let before = self.published.moment();
        if !is_whole && pending.reorganised && before.is_some() {
            return Ok(());
        }
        let Some(header) = view.header(tip.height)? else { return Ok(()) };
        if !is_whole && let Some(before) = &before {
            let confirmed = self.confirmed(&view, before.tip.height + 1, tip.height)?;
            pending.changes.extend(confirmed.into_iter().map(MempoolChange::Removed));
        }
        let reorganisations = before.as_ref().map_or(0, |moment| moment.reorganisations);
        let pending = &mut *pending;
        let moment = Arc::new(Moment {
            view: Arc::new(view),
            tip,
            header,
            reorganisations: reorganisations + u64::from(pending.reorganised),
        });
        let mut news = News {
            tip: before.is_none_or(|before| before.tip != tip),
            all: std::mem::take(&mut pending.reorganised),
            scripts: std::mem::take(&mut pending.scripts),
            outpoints: std::mem::take(&mut pending.outpoints),
        };
        let batch = Batch::new(MempoolChanges {
            moment: chain::Moment { tip, mempool: 0 },
            from_scratch: std::mem::take(&mut pending.from_scratch),
            changes: std::mem::take(&mut pending.changes),
        });
        if batch.is_from_scratch() {
            news.all = true;
            self.replace(batch, moment);
        } else {
            self.change(batch, moment, &mut news);
        }
        // Whoever subscribed while blocks were looked through may have been missed there: look at them as well.
        news.scripts.extend(pending.new_scripts.drain(..));
        pending.new_scripts = watched.newcomers();
        news.scripts.extend(&pending.new_scripts);
        news.outpoints.extend(pending.new_outpoints.drain(..));
        pending.new_outpoints = self.hub.outpoints().newcomers();
        news.outpoints.extend(&pending.new_outpoints);
        self.hub.tell(news);
        Ok(())
    }

    /// The transactions of the mempool that blocks from height `from` to `to` hold.
    fn confirmed(
        &self,
        view: &impl Confirmed,
        from: u32,
        to: u32,
    ) -> Result<Vec<Txid>, QueryError> {
        let mut confirmed = Vec::new();
        for height in from..=to {
            if self.published.state.read().pool.is_empty() {
                break;
            }
            let Some(block) = view.block_txs(height)? else { break };
            let state = self.published.state.read();
            confirmed.extend(block.txids.into_iter().filter(|txid| state.pool.contains(txid)));
        }
        Ok(confirmed)
    }

    fn replace(&self, batch: Batch, moment: Arc<Moment>) {
        let epoch = self.published.state.read().pool.epoch();
        let pool = Mempool::rebuilt(batch, epoch);
        let mut state = self.published.state.write();
        state.moment = Some(moment);
        let old = std::mem::replace(&mut state.pool, pool);
        drop(state);
        // Freeing a large mempool takes its time: not while readers wait.
        drop(old);
    }

    fn change(&self, mut batch: Batch, moment: Arc<Moment>, news: &mut News) {
        let (watched, outpoints) = (self.watched(), self.hub.outpoints());
        let mut affected = Collector { watched, outpoints, news, found: Vec::new() };
        let mut more = !batch.is_empty();
        while more {
            let mut state = self.published.state.write();
            more = state.pool.stage(&mut batch, STEPS, &mut affected);
            RwLockWriteGuard::unlock_fair(state);
        }
        {
            let mut state = self.published.state.write();
            state.pool.turn();
            state.moment = Some(moment);
        }
        loop {
            let mut state = self.published.state.write();
            let more = state.pool.purge(STEPS);
            RwLockWriteGuard::unlock_fair(state);
            if !more {
                break;
            }
        }
    }
}

impl Listener for Publisher {
    fn wants_mempool(&self) -> bool {
        true
    }

    fn is_watched(&self, script: &ScriptHash) -> bool {
        self.watched().is_watched(script)
    }

    fn add_watched_outputs(&self, txid: &Txid, tx: &Tx<'_>, found: &mut Vec<OutPoint>) {
        self.hub.outpoints().add_named(txid, tx, found);
    }

    fn publish(&self, update: Update) {
        let Update { view, mempool, touched, reorganised_to } = update;
        let reorganised = reorganised_to.is_some();
        if let Err(error) = Self::publish(self, view, mempool, touched, reorganised) {
            tracing::error!("Electrum clients do not see the latest blocks: {error}");
        }
    }
}
