//! Outputs that clients subscribed to, with the state of each.
//!
//! They are found by the transactions that a change names: what becomes of an output depends on the transaction that makes it and on
//! those that spend it, and on nothing else.

use std::collections::{BTreeMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use assay_wire::{OutPoint, Transaction, Tx, Txid};
use parking_lot::{Mutex, RwLock};

use super::protocol::error::{CallError, RpcError};
use super::protocol::json::Out;
use super::publish::Published;
use super::watch::{Subscribers, WEIGHT_UNKNOWN};
use crate::chain::Chain;

/// What has become of an output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct OutpointStatus {
    /// Height of the transaction that makes it: 0 or -1 in the mempool.
    pub(super) funder: Option<i64>,
    /// The transaction that spends it, with its height.
    pub(super) spender: Option<(Txid, i64)>,
}

impl OutpointStatus {
    pub(super) fn write(&self, out: &mut Out) {
        out.raw("{");
        if let Some(height) = self.funder {
            out.raw("\"funder_height\":").int(height);
            if let Some((txid, height)) = &self.spender {
                out.raw(",\"spender_txhash\":").hash(&txid.0);
                out.raw(",\"spender_height\":").int(*height);
            }
        }
        out.raw("}");
    }
}

/// An output that somebody subscribed to.
#[derive(Debug)]
pub(super) struct OutpointRecord {
    pub(super) outpoint: OutPoint,
    pub(super) state: Mutex<OutpointState>,
    /// Whether it is to be looked at.
    pub(super) waits: AtomicBool,
}

impl OutpointRecord {
    pub(super) fn new(outpoint: OutPoint) -> Self {
        Self { outpoint, state: Mutex::default(), waits: AtomicBool::new(false) }
    }

    /// Subscriptions of the address that has the fewest.
    pub(super) fn weight(&self) -> usize {
        self.state.try_lock().map_or(WEIGHT_UNKNOWN, |state| state.subscribers.weight())
    }
}

#[derive(Debug, Default)]
pub(super) struct OutpointState {
    /// What subscribers were told last.
    pub(super) status: Option<OutpointStatus>,
    pub(super) subscribers: Subscribers,
    /// Whether the record is no longer in the set.
    pub(super) dead: bool,
}

/// Locks that the set is spread over.
const SHARDS: usize = 64;

type Shard = BTreeMap<OutPoint, Arc<OutpointRecord>>;

/// The outputs that somebody subscribed to, sorted, so that those of one transaction are found together.
#[derive(Debug)]
pub(super) struct Outpoints {
    shards: Vec<RwLock<Shard>>,
    count: AtomicUsize,
    /// Those that came since [`Outpoints::newcomers`] was called last and have not gone again.
    newcomers: Mutex<HashSet<OutPoint>>,
    /// Keeps clients from choosing who shares a lock.
    hasher: RandomState,
}

impl Default for Outpoints {
    fn default() -> Self {
        Self {
            shards: (0..SHARDS).map(|_| RwLock::default()).collect(),
            count: AtomicUsize::new(0),
            newcomers: Mutex::default(),
            hasher: RandomState::new(),
        }
    }
}

impl Outpoints {
    /// Number of outputs.
    pub(super) fn len(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    fn shard(&self, txid: &Txid) -> &RwLock<Shard> {
        &self.shards[self.hasher.hash_one(txid) as usize % SHARDS]
    }

    pub(super) fn get(&self, outpoint: &OutPoint) -> Option<Arc<OutpointRecord>> {
        self.shard(&outpoint.txid).read().get(outpoint).map(Arc::clone)
    }

    /// The record of an output, made if there is none. It may die before it is locked: then ask again.
    pub(super) fn enter(&self, outpoint: &OutPoint) -> Arc<OutpointRecord> {
        let mut shard = self.shard(&outpoint.txid).write();
        if let Some(record) = shard.get(outpoint) {
            return Arc::clone(record);
        }
        let record = Arc::new(OutpointRecord::new(*outpoint));
        // Counted before it is in the set, so that nobody who sees none overlooks it.
        self.count.fetch_add(1, Ordering::Release);
        self.newcomers.lock().insert(*outpoint);
        shard.insert(*outpoint, Arc::clone(&record));
        record
    }

    /// Takes a record out that nobody needs any more; `state` is what it is locked with.
    pub(super) fn remove_unused(&self, record: &OutpointRecord, state: &mut OutpointState) {
        if state.subscribers.is_empty() && !state.dead {
            state.dead = true;
            let outpoint = &record.outpoint;
            let mut shard = self.shard(&outpoint.txid).write();
            shard.remove(outpoint);
            // Under the same lock: whoever enters it anew is a newcomer again.
            self.newcomers.lock().remove(outpoint);
            self.count.fetch_sub(1, Ordering::Release);
        }
    }

    /// Appends the outputs of the set that a transaction makes or spends. Cheap where there are none.
    pub(super) fn add_named(&self, txid: &Txid, tx: &Tx<'_>, found: &mut Vec<OutPoint>) {
        if self.len() == 0 {
            return;
        }
        let outputs = tx.output_count() as u32;
        if let Some(last) = outputs.checked_sub(1) {
            // No other output of it will ever exist, so there is no news of one.
            let made = OutPoint { txid: *txid, vout: 0 }..=OutPoint { txid: *txid, vout: last };
            found.extend(self.shard(txid).read().range(made).map(|(outpoint, _)| *outpoint));
        }
        let spent = tx.inputs().map(|input| input.prevout);
        found
            .extend(spent.filter(|prevout| self.shard(&prevout.txid).read().contains_key(prevout)));
    }

    /// Looks at an output again with the next change.
    pub(super) fn try_later(&self, outpoint: &OutPoint) {
        self.newcomers.lock().insert(*outpoint);
    }

    /// The outputs that came since the last call.
    pub(super) fn newcomers(&self) -> Vec<OutPoint> {
        std::mem::take(&mut *self.newcomers.lock()).into_iter().collect()
    }

    /// Every output, a part at a time.
    pub(super) fn all(&self) -> impl Iterator<Item = Vec<Arc<OutpointRecord>>> {
        self.shards.iter().map(|shard| shard.read().values().map(Arc::clone).collect())
    }
}

/// Looks an output up.
pub(super) fn find(
    published: &Published,
    chain: &dyn Chain,
    outpoint: &OutPoint,
) -> Result<OutpointStatus, CallError> {
    let read = published.read(|moment, pool| {
        let funding = pool.transaction(&outpoint.txid);
        let funder = funding.and_then(|tx| Some((tx, pool.unconfirmed(&outpoint.txid)?.height())));
        let spender = pool.spender(outpoint).map(|spender| (spender.txid, spender.height()));
        (Arc::clone(moment), funder, spender)
    });
    let Some((moment, funder, spender)) = read else {
        return Ok(OutpointStatus::default());
    };
    let nothing = OutpointStatus::default();
    let (height, tx) = if let Some((tx, height)) = funder {
        (i64::from(height), tx)
    } else {
        let Some(position) = moment.view.position(&outpoint.txid)? else { return Ok(nothing) };
        (i64::from(position.height), Arc::new(confirmed_transaction(chain, &position)?))
    };
    if outpoint.vout as usize >= tx.view().output_count() {
        return Ok(nothing);
    }
    let spender = match spender {
        Some((txid, height)) => Some((txid, i64::from(height))),
        None if height <= 0 => None,
        None => {
            let confirmed = moment.view.spender(outpoint)?;
            confirmed.map(|spender| (spender.txid, i64::from(spender.height)))
        }
    };
    Ok(OutpointStatus { funder: Some(height), spender })
}

/// Bytes of a confirmed transaction.
pub(super) fn confirmed_bytes(
    chain: &dyn Chain,
    position: &crate::index::TxPosition,
) -> Result<Vec<u8>, CallError> {
    let bytes = chain.block_part(&position.block, position.offset, position.length)?;
    bytes.ok_or_else(|| RpcError::daemon("the block of this transaction is not stored").into())
}

fn confirmed_transaction(
    chain: &dyn Chain,
    position: &crate::index::TxPosition,
) -> Result<Transaction, CallError> {
    let bytes = confirmed_bytes(chain, position)?;
    Transaction::parse(bytes, chain.encoding()).map_err(|error| {
        tracing::error!("A stored transaction cannot be read: {error}");
        RpcError::daemon("a stored transaction cannot be read").into()
    })
}
