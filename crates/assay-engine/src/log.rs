//! The line that every tool in the field reads progress from.

use assay_consensus::params::ChainParams;
use assay_consensus::uint256::U256;
use assay_store::{CoinUsage, FlushStats};

use crate::engine::{State, unix_time_s};
use crate::tree::NodeId;
use crate::types::{Tip, big_endian};

/// Logs the new tip as Core does (`validation.cpp`, `UpdateTipLog`), under the target `updatetip`.
pub(crate) fn update_tip(tip: &Tip, state: &State, params: &ChainParams) {
    let version = state.tree.tip_node().header.version;
    let genesis_time = params.genesis.time;
    tracing::info!(
        target: "updatetip",
        "UpdateTip: new best={} height={} version=0x{:08x} log2_work={:.6} tx={} date='{}' progress={:.6} cache={:.1}MiB({}txo)",
        tip.hash,
        tip.height,
        version,
        log2(tip.chain_work),
        tip.chain_txs,
        iso_time(u64::from(tip.time)),
        progress(tip, genesis_time),
        mib(state.coins.cache_bytes() as u64),
        state.coins.cached_coins(),
    );
}

/// Logs a branch that failed as Core does (`validation.cpp`, `InvalidChainFound`).
pub(crate) fn invalid_chain_found(state: &State, id: NodeId) {
    for (what, at) in [("invalid block", id), ("current best", state.tree.tip())] {
        let node = state.tree.get(at);
        tracing::info!(
            "InvalidChainFound: {what}={} height={} log2_work={:.6} date={}",
            node.hash,
            node.height,
            log2(big_endian(node.chain_work)),
            iso_time(u64::from(node.header.time)),
        );
    }
}

/// Logs a flush, with what the coins took and may take. The laboratory reads this line.
pub(crate) fn flushed(height: u32, stats: &FlushStats, usage: &CoinUsage) {
    tracing::info!(
        target: "coins",
        "Flushed coins: height={height} written={} deleted={} bytes={:.1}MiB cache={:.1}MiB limit={:.1}MiB kept={}txo evicted={}txo disk={:.1}MiB(~{}txo) in {:.3}s",
        stats.added,
        stats.deleted,
        mib(stats.bytes),
        mib(stats.cache_bytes),
        mib(usage.bytes_max as u64),
        stats.kept,
        stats.evicted,
        mib(usage.bytes_on_disk),
        usage.coins_on_disk,
        stats.elapsed_ns as f64 / 1e9,
    );
}

/// Logs that coins went from the cache which the disk has.
pub(crate) fn evicted(coins: u64, usage: &CoinUsage) {
    tracing::info!(
        target: "coins",
        "Evicted {coins} unchanged coins: cache={:.1}MiB({}txo, {} changed) limit={:.1}MiB",
        mib(usage.bytes as u64),
        usage.coins,
        usage.dirty,
        mib(usage.bytes_max as u64),
    );
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// Binary logarithm of a big-endian number.
fn log2(big_endian: [u8; 32]) -> f64 {
    let mut little_endian = big_endian;
    little_endian.reverse();
    let bits = U256::from_le_bytes(&little_endian).bits();
    if bits == 0 {
        return 0.0;
    }
    // The 64 bits from the highest set one downwards are more than a double can hold.
    let shift = bits.saturating_sub(64);
    let top = U256::from_le_bytes(&little_endian) >> shift;
    (top.low_u64() as f64).log2() + f64::from(shift)
}

/// Share of all transactions up to now that are connected, if the chain goes on growing as it has on average since genesis.
fn progress(tip: &Tip, genesis_time: u32) -> f64 {
    let so_far_s = f64::from(tip.time.saturating_sub(genesis_time)).max(1.0);
    let to_come_s = unix_time_s().saturating_sub(u64::from(tip.time)) as f64;
    so_far_s / (so_far_s + to_come_s)
}

/// `1970-01-01T00:00:00Z` form of seconds since 1970 (days to civil date as in H. Hinnant, "chrono-Compatible Low-Level
/// Date Algorithms").
pub fn iso_time(unix_s: u64) -> String {
    let (days, second) = (unix_s / 86_400, unix_s % 86_400);
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_index = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_index + 2) / 5 + 1;
    let month = if month_index < 10 { month_index + 3 } else { month_index - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_print_as_core_prints_them() {
        assert_eq!(iso_time(0), "1970-01-01T00:00:00Z");
        assert_eq!(iso_time(1_296_688_602), "2011-02-02T23:16:42Z");
        assert_eq!(iso_time(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(iso_time(4_102_444_799), "2099-12-31T23:59:59Z");
    }

    #[test]
    fn work_is_printed_as_a_logarithm() {
        let mut work = [0u8; 32];
        work[31] = 2;
        assert!((log2(work) - 1.0).abs() < 1e-12);
        work[0] = 1;
        assert!((log2(work) - 248.0).abs() < 1e-9);
        assert!(log2([0; 32]).abs() < 1e-12);
    }
}
