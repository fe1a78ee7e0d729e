//! The mempool: unconfirmed transactions, their admission and eviction.
//!
//! [`Mempool`] is the set, [`Admission`] validates and changes it, over a [`View`] of the chain that the owner supplies.

mod admission;
mod candidate;
mod changes;
mod checks;
mod cluster;
mod confirmed;
mod context;
#[cfg(test)]
mod densest;
mod diagram;
mod disconnected;
mod entry;
mod ephemeral;
mod fault;
mod file;
#[cfg(fuzzing)]
pub mod fuzzing;
mod graph;
mod journal;
mod limit;
mod linearize;
mod lock_priority;
mod mining;
mod package;
mod package_form;
mod package_replace;
mod package_rules;
mod policy;
mod pool;
mod precheck;
mod reorg;
mod replace;
mod rolling_fee;
mod script_checks;
mod shards;
mod trim;
mod truc;
mod verdicts;

use assay_wire::Txid;

use crate::types::{MempoolEntryInfo, MempoolInfo};
pub(crate) use candidate::{Admitted, Candidate, trial_verdict};
pub(crate) use context::{AcceptOptions, Admission, View};
pub(crate) use disconnected::DisconnectedTxs;
pub(crate) use entry::Entry;
pub(crate) use ephemeral::has_dust;
pub use file::{MempoolFileDamage, MempoolFileError, MempoolImport, MempoolLoad};
pub(crate) use file::{Reader, Saved, write};
pub use journal::{MempoolDelta, UnconfirmedTx};
pub(crate) use linearize::ByRate;
pub(crate) use lock_priority::{LockPriority, PolicyTurn};
pub use mining::MiningChunk;
pub(crate) use package::{check_form, not_validated, trial_outcome};
pub use package_form::is_child_with_parents_tree;
pub(crate) use pool::Mempool;
pub(crate) use precheck::SETTLING_ROUNDS;

/// Height of the coins of unconfirmed transactions in Core (`MEMPOOL_HEIGHT`).
pub const UNCONFIRMED_HEIGHT: u32 = 0x7fff_ffff;

impl Admission {
    /// State of a mempool; `loaded`: its file has been read.
    pub(crate) fn info(&self, mempool: &mut Mempool, loaded: bool) -> MempoolInfo {
        let rolling = self.rolling_fee_sat_per_kvb(mempool);
        MempoolInfo {
            min_fee_sat_per_kvb: rolling.max(self.config.min_relay_fee_sat_per_kvb),
            loaded,
            unbroadcast: mempool.unbroadcast().len(),
            size: mempool.len(),
            bytes: mempool.vsize_total(),
            usage: mempool.usage_bytes(),
            total_fee_sat: mempool.fee_total_sat(),
            max_bytes: self.config.mempool_bytes_max,
            min_relay_fee_sat_per_kvb: self.config.min_relay_fee_sat_per_kvb,
            cluster_count_max: self.config.cluster_count_max,
            cluster_vsize_max: self.config.cluster_vsize_max,
        }
    }
}

impl Mempool {
    pub(crate) fn entry_info(&self, txid: &Txid) -> Option<MempoolEntryInfo> {
        let entry = self.get(txid)?;
        Some(MempoolEntryInfo {
            txid: *txid,
            wtxid: entry.wtxid,
            vsize: entry.vsize,
            weight: entry.weight,
            adjusted_weight: entry.adjusted_weight,
            fee_sat: entry.fee_sat,
            modified_fee_sat: entry.modified_fee_sat(),
            chunk: self.chunk_of(txid).map(|chunk| (chunk.fee_sat, chunk.weight)),
            time: entry.time,
            height: entry.height,
            depends: self.parents(entry),
            spent_by: self.children(txid),
            is_unbroadcast: self.unbroadcast().contains(txid),
        })
    }
}
