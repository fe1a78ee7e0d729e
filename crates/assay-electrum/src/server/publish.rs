//! What clients see, and how it changes: index and mempool together, at once.

use std::sync::Arc;

use parking_lot::{Mutex, RwLock, RwLockWriteGuard};

use super::confirmed::Confirmed;
use super::hub::{Hub, News};
use super::watch::Watched;
use crate::chain::{MempoolChanges, Tip};
use crate::index::{QueryError, ScriptHash};
use crate::mempool::{Batch, Mempool};

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

/// Through which the thread that follows the chain tells the server what is new.
///
/// One call of [`Publisher::publish`] is one change of what clients see. In between, nothing changes: a transaction that moves
/// from the mempool into a block is always in exactly one of them.
///
/// The follower's round: wait for a new [`crate::chain::Moment`]; index up to its tip, noting which scripts the blocks touch of those that
/// [`Publisher::watched`] names (of blocks that were unwound as well); fetch [`crate::Chain::mempool_since`]; when the changes lead to the very
/// tip that was indexed, publish both.
pub struct Publisher {
    published: Arc<Published>,
    hub: Arc<Hub>,
    /// One at a time, although there should only be one caller.
    turn: Mutex<()>,
}

impl Publisher {
    pub(super) fn new(published: Arc<Published>, hub: Arc<Hub>) -> Self {
        Self { published, hub, turn: Mutex::new(()) }
    }

    /// The scripts that somebody wants to hear of.
    pub fn watched(&self) -> &Arc<Watched> {
        self.hub.watched()
    }

    /// Makes `view` and the mempool after `changes` what clients see from now on, and has those told who watch what has changed.
    ///
    /// - `touched`: scripts with transactions in blocks that were added since the last call; those that nobody watches are ignored.
    /// - `reorganised`: whether blocks were taken away since the last call. Everything watched is looked at again then.
    ///
    /// Clients are told by another thread; this one goes on at once. A view without blocks changes nothing.
    ///
    /// # Errors
    /// When the header of the tip cannot be read. Nothing has changed then, but the changes of the mempool are lost: the next call needs a
    /// mempool from scratch.
    pub fn publish(
        &self,
        view: impl Confirmed,
        changes: MempoolChanges,
        touched: impl IntoIterator<Item = ScriptHash>,
        reorganised: bool,
    ) -> Result<(), QueryError> {
        let _turn = self.turn.lock();
        let Some(tip) = view.tip() else { return Ok(()) };
        let Some(header) = view.header(tip.height)? else { return Ok(()) };
        let before = self.published.moment();
        let reorganisations = before.as_ref().map_or(0, |moment| moment.reorganisations);
        let moment = Arc::new(Moment {
            view: Arc::new(view),
            tip,
            header,
            reorganisations: reorganisations + u64::from(reorganised),
        });
        let watched = self.watched();
        let mut news = News {
            tip: before.is_none_or(|before| before.tip != tip),
            all: reorganised,
            scripts: touched.into_iter().filter(|script| watched.is_watched(script)).collect(),
        };
        let batch = Batch::new(changes);
        if batch.is_from_scratch() {
            news.all = true;
            self.replace(batch, moment);
        } else {
            self.change(batch, moment, &mut news);
        }
        // Whoever subscribed while blocks were indexed may have been missed there: look at them as well.
        news.scripts.extend(watched.newcomers());
        self.hub.tell(news);
        Ok(())
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
        let watched = self.watched();
        let mut touched = |script: &ScriptHash| {
            if watched.is_watched(script) {
                news.scripts.insert(*script);
            }
        };
        let mut more = !batch.is_empty();
        while more {
            let mut state = self.published.state.write();
            more = state.pool.stage(&mut batch, STEPS, &mut touched);
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
