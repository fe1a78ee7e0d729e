//! Minimum fee rate after evictions, and the eviction order without clusters.

use std::collections::BTreeSet;

use assay_wire::Txid;

use super::entry::Entry;
use super::linearize::{ByRate, Rate};

/// Core's `ROLLING_FEE_HALFLIFE` (`txmempool.h`).
const HALFLIFE_S: f64 = 12.0 * 3600.0;

/// The rolling minimum fee rate after evictions (Core `txmempool.cpp`, `GetMinFee`). After the next block it halves every twelve
/// hours, faster if the mempool is far from full.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RollingFee {
    pub(super) sat_per_kvb: f64,
    updated_s: u64,
    has_block_since: bool,
}

impl RollingFee {
    /// Records the eviction of a chunk with this fee rate.
    pub(super) fn evicted(&mut self, sat_per_kvb: u64, step: u64) {
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
    pub(super) fn at(&mut self, now_s: u64, usage_bytes: u64, bytes_max: u64, step: u64) -> u64 {
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

/// Transactions by their own fee rates; the first is evicted first.
#[derive(PartialEq)]
pub(super) struct Ranking {
    places: BTreeSet<(ByRate, Txid)>,
}

fn place(txid: Txid, entry: &Entry) -> (ByRate, Txid) {
    (ByRate::new(entry.modified_fee_sat(), u64::from(entry.adjusted_weight)), txid)
}

impl Ranking {
    pub(super) fn of<'a>(entries: impl Iterator<Item = (&'a Txid, &'a Entry)>) -> Self {
        Self { places: entries.map(|(txid, entry)| place(*txid, entry)).collect() }
    }

    /// The transaction to be evicted first.
    pub(super) fn worst(&self) -> Option<(Rate, Txid)> {
        self.places.first().map(|(rate, txid)| (rate.rate(), *txid))
    }

    pub(super) fn insert(&mut self, txid: Txid, entry: &Entry) {
        self.places.insert(place(txid, entry));
    }

    pub(super) fn remove(&mut self, txid: Txid, entry: &Entry) {
        self.places.remove(&place(txid, entry));
    }
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
