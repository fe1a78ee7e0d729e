//! Published state: index and mempool of the same time.

use std::sync::Arc;
use std::time::Duration;

use assay_wire::{Transaction, Txid};
use parking_lot::{Condvar, Mutex, RwLock, RwLockWriteGuard};

use super::protocol::{CallError, Out, RpcError};
use crate::chain::{Chain, Tip};
use crate::index::{TxPosition, View};
use crate::mempool::{Affected, Batch, Mempool};

/// Mempool changes per write lock: well below a millisecond of work unless transactions are huge.
const STEPS: usize = 128;

/// Confirmed part of the published state.
pub(super) struct Snapshot {
    pub(super) view: View,
    pub(super) tip: Tip,
    pub(super) header: [u8; 80],
    /// Number of reorgs: values computed under another number are invalid.
    pub(super) reorganisations: u64,
}

#[derive(Default)]
pub(super) struct Published {
    state: RwLock<State>,
    /// Number of the last published change of the node's mempool.
    mempool: Mutex<u64>,
    mempool_moved: Condvar,
}

#[derive(Default)]
struct State {
    snapshot: Option<Arc<Snapshot>>,
    /// The same for threads that must not block.
    at_once: Option<Arc<Snapshot>>,
    pool: Mempool,
}

impl State {
    fn set_snapshot(&mut self, snapshot: Arc<Snapshot>, at_once: Arc<Snapshot>) {
        (self.snapshot, self.at_once) = (Some(snapshot), Some(at_once));
    }
}

impl Snapshot {
    /// The same with a non-blocking view ([`crate::index::QueryError::NotAtOnce`]).
    fn at_once(&self) -> Self {
        Self { view: self.view.at_once(), ..*self }
    }
}

impl Published {
    /// `None` before the first publication.
    pub(super) fn snapshot(&self) -> Option<Arc<Snapshot>> {
        self.state.read().snapshot.clone()
    }

    /// Reads mempool and index of the same state. `read` blocks the next publication, so it should only collect data.
    pub(super) fn read<R>(&self, read: impl FnOnce(&Arc<Snapshot>, &Mempool) -> R) -> Option<R> {
        let state = self.state.read();
        let snapshot = state.snapshot.as_ref()?;
        Some(read(snapshot, &state.pool))
    }

    /// [`Published::read`] with a non-blocking view; `None` also if the lock is held.
    pub(super) fn read_at_once<R>(
        &self,
        read: impl FnOnce(&Arc<Snapshot>, &Mempool) -> R,
    ) -> Option<R> {
        let state = self.state.try_read()?;
        let snapshot = state.at_once.as_ref()?;
        Some(read(snapshot, &state.pool))
    }

    /// Publishes the number of the last mempool change.
    pub(super) fn set_mempool(&self, number: u64) {
        *self.mempool.lock() = number;
        self.mempool_moved.notify_all();
    }

    /// Waits until the mempool change `number` is published, or for `timeout`.
    pub(super) fn wait_for_mempool(&self, number: u64, timeout: Duration) {
        let mut seen = self.mempool.lock();
        self.mempool_moved.wait_while_for(&mut seen, |seen| *seen < number, timeout);
    }

    pub(super) fn pool_is_empty(&self) -> bool {
        self.state.read().pool.is_empty()
    }

    /// The `txids` that are in the mempool.
    pub(super) fn in_pool(&self, txids: Vec<Txid>) -> impl Iterator<Item = Txid> {
        let state = self.state.read();
        txids.into_iter().filter(move |txid| state.pool.contains(txid))
    }

    /// Publishes `snapshot` with the mempool of `batch` alone.
    pub(super) fn replace(&self, batch: Batch, snapshot: Arc<Snapshot>) {
        let epoch = self.state.read().pool.epoch();
        let pool = Mempool::rebuilt(batch, epoch);
        let at_once = Arc::new(snapshot.at_once());
        let mut state = self.state.write();
        state.set_snapshot(snapshot, at_once);
        let old = std::mem::replace(&mut state.pool, pool);
        drop(state);
        // Freeing a large mempool is slow: do it after releasing the lock.
        drop(old);
    }

    /// Publishes `snapshot` with the current mempool changed by `batch`; reports affected items to `affected`.
    pub(super) fn change(
        &self,
        mut batch: Batch,
        snapshot: Arc<Snapshot>,
        affected: &mut dyn Affected,
    ) {
        let mut more = !batch.is_empty();
        while more {
            let mut state = self.state.write();
            more = state.pool.stage(&mut batch, STEPS, affected);
            RwLockWriteGuard::unlock_fair(state);
        }
        {
            let at_once = Arc::new(snapshot.at_once());
            let mut state = self.state.write();
            state.pool.turn();
            state.set_snapshot(snapshot, at_once);
        }
        loop {
            let mut state = self.state.write();
            let more = state.pool.purge(STEPS);
            RwLockWriteGuard::unlock_fair(state);
            if !more {
                break;
            }
        }
    }
}

/// Writes the tip in the format of `blockchain.headers.subscribe`.
pub(super) fn write_tip(out: &mut Out, snapshot: &Snapshot) {
    out.raw("{\"height\":").int(snapshot.tip.height);
    out.raw(",\"hex\":").hex(&snapshot.header).raw("}");
}

pub(super) fn confirmed_bytes(
    chain: &dyn Chain,
    position: &TxPosition,
) -> Result<Vec<u8>, CallError> {
    let bytes = chain.block_part(&position.block, position.offset, position.length)?;
    bytes.ok_or_else(|| RpcError::daemon("the block of this transaction is not stored").into())
}

pub(super) fn confirmed_transaction(
    chain: &dyn Chain,
    position: &TxPosition,
) -> Result<Transaction, CallError> {
    let bytes = confirmed_bytes(chain, position)?;
    Transaction::parse(bytes, chain.encoding()).map_err(|error| {
        tracing::error!("A stored transaction cannot be read: {error}");
        RpcError::daemon("a stored transaction cannot be read").into()
    })
}
