//! Unconfirmed transactions: which are admitted, which are kept.

mod admission;
mod ahead;
#[cfg(test)]
mod chunks;
mod cluster;
#[cfg(test)]
mod densest;
mod diagram;
mod disconnected;
mod file;
#[cfg(fuzzing)]
pub mod fuzzing;
mod graph;
mod limit;
mod linearize;
mod persist;
mod policy;
mod pool;
mod reorg;
mod replace;
mod trim;
mod turns;
mod verdicts;

pub(crate) use disconnected::DisconnectedTxs;
pub use file::{MempoolFileDamage, MempoolFileError};
pub use persist::MempoolLoad;
pub(crate) use pool::Pool;
pub(crate) use turns::Turns;
pub(crate) use verdicts::Verdicts;

use crate::connect::Prepared;
use crate::engine::{Engine, State};
use crate::types::{MempoolEntryInfo, MempoolInfo};
use std::collections::HashSet;

use assay_wire::Txid;

impl State {
    /// Takes out what a block has confirmed and what now conflicts with it.
    pub(crate) fn remove_confirmed(&mut self, prepared: &Prepared) {
        self.mempool.rolling_fee.block_connected();
        if self.mempool.is_empty() {
            return;
        }
        let mut gone: Vec<Txid> = Vec::new();
        let mut conflicts: HashSet<Txid> = HashSet::new();
        for (tx_index, txid) in prepared.txids.iter().enumerate().skip(1) {
            if self.mempool.get(txid).is_some() {
                gone.push(*txid);
                continue;
            }
            for input in prepared.block.tx(tx_index).inputs() {
                conflicts.extend(self.mempool.spender(&input.prevout));
            }
        }
        // Each goes once, and each cluster is made anew once, however much of it goes.
        gone.extend(self.mempool.with_descendants(conflicts));
        self.mempool.remove_all(&gone);
    }
}

impl Engine {
    /// State of the mempool.
    pub fn mempool_info(&self) -> MempoolInfo {
        let mut state = self.lock();
        let rolling = self.rolling_fee_sat_per_kvb(&mut state.mempool);
        MempoolInfo {
            min_fee_sat_per_kvb: rolling.max(self.config.min_relay_fee_sat_per_kvb),
            loaded: self.is_mempool_loaded(),
            size: state.mempool.len(),
            bytes: state.mempool.vsize_total(),
            usage: state.mempool.usage_bytes(),
            total_fee_sat: state.mempool.fee_total_sat(),
            max_bytes: self.config.mempool_bytes_max,
            min_relay_fee_sat_per_kvb: self.config.min_relay_fee_sat_per_kvb,
            cluster_count_max: self.config.cluster_count_max,
            cluster_vsize_max: self.config.cluster_vsize_max,
        }
    }

    /// The txids of all unconfirmed transactions, in no particular order.
    pub fn mempool_txids(&self) -> Vec<Txid> {
        self.lock().mempool.iter().map(|(txid, _)| *txid).collect()
    }

    /// All unconfirmed transactions, in no particular order.
    pub fn mempool_entries(&self) -> Vec<MempoolEntryInfo> {
        let state = self.lock();
        state.mempool.iter().map(|(txid, entry)| entry_info(&state.mempool, txid, entry)).collect()
    }

    /// One unconfirmed transaction.
    pub fn mempool_entry(&self, txid: &Txid) -> Option<MempoolEntryInfo> {
        let state = self.lock();
        let entry = state.mempool.get(txid)?;
        Some(entry_info(&state.mempool, txid, entry))
    }
}

fn entry_info(pool: &Pool, txid: &Txid, entry: &pool::Entry) -> MempoolEntryInfo {
    MempoolEntryInfo {
        txid: *txid,
        wtxid: entry.wtxid,
        vsize: entry.vsize,
        weight: entry.weight,
        fee_sat: entry.fee_sat,
        time: entry.time,
        height: entry.height,
        depends: pool.parents(entry),
        spent_by: pool.children(txid),
    }
}
