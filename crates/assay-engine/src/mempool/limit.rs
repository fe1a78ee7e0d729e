//! Memory limit of the mempool, and the minimum fee rate after evictions.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use assay_consensus::amount::format_money;
use assay_wire::Txid;

use super::admission::Admission;
use super::linearize::Rate;
use super::pool::{Entry, Mempool};

/// Clusters settled before an eviction: enough for the changes of one transaction.
const SETTLED_MAX: usize = 4;
/// Bitcoin Cash Node's `MEMPOOL_FULL_FEE_INCREMENT` (`txmempool.h`).
const CASH_FEE_STEP_SAT_PER_KVB: u64 = 1000;
/// Core's `ROLLING_FEE_HALFLIFE` (`txmempool.h`).
const HALFLIFE_S: f64 = 12.0 * 3600.0;

/// The rolling minimum fee rate after evictions (Core `txmempool.cpp`, `GetMinFee`). After the next block it halves every twelve
/// hours, faster if the mempool is far from full.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RollingFee {
    sat_per_kvb: f64,
    updated_s: u64,
    has_block_since: bool,
}

impl RollingFee {
    /// Records the eviction of a chunk with this fee rate.
    fn evicted(&mut self, sat_per_kvb: u64, step: u64) {
        // A transaction that pays no more than an evicted one should not enter.
        let rate = (sat_per_kvb + step) as f64;
        if rate > self.sat_per_kvb {
            self.sat_per_kvb = rate;
            self.has_block_since = false;
        }
    }

    pub(crate) fn block_connected(&mut self, now_s: u64) {
        if self.sat_per_kvb > 0.0 {
            self.updated_s = now_s;
            self.has_block_since = true;
        }
    }

    /// The current minimum, satoshi per 1,000 virtual bytes.
    fn at(&mut self, now_s: u64, usage_bytes: u64, bytes_max: u64, step: u64) -> u64 {
        if self.sat_per_kvb == 0.0 || !self.has_block_since {
            return self.sat_per_kvb.round() as u64;
        }
        if now_s > self.updated_s.saturating_add(10) {
            let haste = match usage_bytes {
                usage if usage < bytes_max / 4 => 4.0,
                usage if usage < bytes_max / 2 => 2.0,
                _ => 1.0,
            };
            let elapsed_s = (now_s - self.updated_s) as f64;
            self.sat_per_kvb /= (elapsed_s * haste / HALFLIFE_S).exp2();
            self.updated_s = now_s;
            if self.sat_per_kvb < step as f64 / 2.0 {
                self.sat_per_kvb = 0.0;
                return 0;
            }
        }
        (self.sat_per_kvb.round() as u64).max(step)
    }
}

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
        pool.ranking = Some(Ranking::of(pool));
    }
    let worst = pool.ranking.as_ref()?.places.first()?;
    Some((worst.rate, vec![worst.txid]))
}

/// Transactions by their own fee rates.
pub(super) struct Ranking {
    places: BTreeSet<Place>,
}

/// A transaction in the ranking; the lesser is evicted first.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Place {
    rate: Rate,
    txid: Txid,
}

impl Place {
    fn of(txid: Txid, entry: &Entry) -> Self {
        let weight = u64::from(entry.adjusted_weight);
        let rate = Rate { fee_sat: entry.modified_fee_sat(), weight };
        Self { rate, txid }
    }
}

impl Ord for Place {
    fn cmp(&self, other: &Self) -> Ordering {
        self.rate.cmp_rate(&other.rate).then_with(|| self.txid.cmp(&other.txid))
    }
}

impl PartialOrd for Place {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ranking {
    pub(super) fn of(pool: &Mempool) -> Self {
        Self { places: pool.iter().map(|(txid, entry)| Place::of(*txid, entry)).collect() }
    }

    #[cfg(test)]
    pub(super) fn is_of(&self, pool: &Mempool) -> bool {
        self.places == Self::of(pool).places
    }

    pub(super) fn insert(&mut self, txid: Txid, entry: &Entry) {
        self.places.insert(Place::of(txid, entry));
    }

    pub(super) fn remove(&mut self, txid: Txid, entry: &Entry) {
        self.places.remove(&Place::of(txid, entry));
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rolling_fee_falls_once_a_block_has_come() {
        let mut fee = RollingFee::default();
        assert_eq!(fee.at(1000, 90, 100, 100), 0);
        fee.evicted(1000, 100);
        fee.evicted(500, 100);
        assert_eq!(fee.at(1000, 90, 100, 100), 1100);
        assert_eq!(fee.at(1_000_000, 90, 100, 100), 1100, "no block yet");
        let now_s = 1_000_000;
        fee.block_connected(now_s);
        assert_eq!(fee.at(now_s + 10, 90, 100, 100), 1100);
        assert_eq!(fee.at(now_s + 12 * 3600, 90, 100, 100), 550);
        assert_eq!(
            fee.at(now_s + 24 * 3600, 40, 100, 100),
            138,
            "a quarter in twelve hours: there is room"
        );
        assert_eq!(fee.at(now_s + 26 * 3600, 10, 100, 100), 100, "the least step");
        assert_eq!(fee.at(now_s + 29 * 3600, 10, 100, 100), 0);
    }
}
