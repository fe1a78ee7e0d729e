//! Keeps the mempool within its memory limit.

use assay_consensus::amount::format_money;
use assay_wire::Txid;

use super::context::Admission;
use super::linearize::Rate;
use super::pool::Mempool;
use super::rolling_fee::Ranking;

/// Clusters settled before an eviction: enough for the changes of one transaction.
const SETTLED_MAX: usize = 4;
/// Bitcoin Cash Node's `MEMPOOL_FULL_FEE_INCREMENT` (`txmempool.h`).
const CASH_FEE_STEP_SAT_PER_KVB: u64 = 1000;
impl Admission {
    /// Minimum fee rate because of the memory limit; 0 while there is room.
    pub(super) fn rolling_fee_sat_per_kvb(&self, pool: &mut Mempool) -> u64 {
        let usage = pool.usage_bytes();
        let bytes_max = self.config.mempool_bytes_max;
        pool.rolling_fee.at(
            self.config.clock.now_s(),
            usage,
            bytes_max,
            self.fee_step_sat_per_kvb(),
        )
    }

    /// Step between the fee rate of an evicted transaction and the new minimum.
    fn fee_step_sat_per_kvb(&self) -> u64 {
        if self.config.params.cash.is_some() {
            CASH_FEE_STEP_SAT_PER_KVB
        } else {
            self.config.policy.incremental_fee_sat_per_kvb
        }
    }

    /// True if the mempool exceeds its limit by so much that it cannot wait for the end of a list.
    pub(super) fn is_far_over_limit(&self, pool: &Mempool) -> bool {
        pool.usage_bytes() > self.config.mempool_bytes_max + self.config.mempool_bytes_max / 8
    }

    /// Removes expired transactions, then the last ones in mining order, until the rest fits (Core `LimitMempoolSize`).
    pub(super) fn limit(&self, pool: &mut Mempool) {
        let now_s = self.config.clock.now_s();
        expire(pool, now_s.saturating_sub(self.config.mempool_expiry_s));
        let bytes_max = self.config.mempool_bytes_max;
        if pool.usage_bytes() <= bytes_max {
            return;
        }
        let before = pool.len();
        let step = self.fee_step_sat_per_kvb();
        if let Some(graph) = &mut pool.graph {
            let cost = graph.settle_some(SETTLED_MAX);
            self.note_work(cost);
        }
        while pool.usage_bytes() > bytes_max
            && let Some((rate, worst)) = worst(pool)
        {
            pool.rolling_fee.evicted(rate.sat_per_kvb(), step);
            let gone = pool.with_descendants(worst);
            pool.remove_all(&gone);
        }
        tracing::debug!(
            "Removed {} txn, rolling minimum fee bumped to {} BTC/kvB",
            before - pool.len(),
            format_money(pool.rolling_fee.sat_per_kvb as i64)
        );
    }
}

/// The last transactions in mining order. Without clusters each transaction counts individually and is removed with its
/// descendants, as in Bitcoin Cash Node.
fn worst(pool: &mut Mempool) -> Option<(Rate, Vec<Txid>)> {
    if let Some(graph) = &pool.graph {
        return graph.worst();
    }
    if pool.ranking.is_none() {
        pool.ranking = Some(Ranking::of(pool.iter()));
    }
    let (rate, txid) = pool.ranking.as_ref()?.worst()?;
    Some((rate, vec![txid]))
}

/// Removes transactions older than `oldest_s`.
fn expire(pool: &mut Mempool, oldest_s: u64) {
    if pool.oldest_s >= oldest_s {
        return;
    }
    let old: Vec<Txid> =
        pool.iter().filter(|(_, entry)| entry.time < oldest_s).map(|(txid, _)| *txid).collect();
    let gone = pool.with_descendants(old);
    pool.remove_all(&gone);
    pool.oldest_s = pool.iter().map(|(_, entry)| entry.time).min().unwrap_or(u64::MAX);
}
