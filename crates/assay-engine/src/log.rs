//! The progress log line that monitoring tools parse.

use assay_consensus::uint256::U256;
use assay_store::{CoinStore, CoinUsage, FlushStats};

use crate::clock::iso_time;
use crate::tree::{BlockTree, NodeId};
use crate::types::{Tip, big_endian};

/// Logs the new tip as Core does (`validation.cpp`, `UpdateTipLog`), under the target `updatetip`.
pub(crate) fn update_tip(
    tree: &BlockTree,
    coins: &CoinStore,
    (genesis_time, now_s): (u32, u64),
    warning: &str,
) {
    let tip = tree.tip_facts();
    let version = tree.tip_node().header.version;
    tracing::info!(
        target: "updatetip",
        "UpdateTip: new best={} height={} version=0x{:08x} log2_work={:.6} tx={} date='{}' progress={:.6} cache={:.1}MiB({}txo){}",
        tip.hash,
        tip.height,
        version,
        log2(tip.chain_work),
        tip.chain_txs,
        iso_time(u64::from(tip.time)),
        progress(&tip, genesis_time, now_s),
        mib(coins.cache_bytes() as u64),
        coins.cached_coins(),
        if warning.is_empty() { String::new() } else { format!(" warning='{warning}'") },
    );
}

/// Logs a failed branch as Core does (`validation.cpp`, `InvalidChainFound`).
pub(crate) fn invalid_chain_found(tree: &BlockTree, id: NodeId) {
    for (what, at) in [("invalid block", id), ("current best", tree.tip())] {
        let node = tree.get(at);
        tracing::info!(
            "InvalidChainFound: {what}={} height={} log2_work={:.6} date={}",
            node.hash,
            node.height,
            log2(big_endian(node.chain_work)),
            iso_time(u64::from(node.header.time)),
        );
    }
}

/// Logs a flush, with the usage and the limit of the coins' memory. The laboratory parses this line.
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

/// Logs the eviction of coins that are on disk.
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
    // A double has fewer than the 64 bits from the highest set one downwards.
    let shift = bits.saturating_sub(64);
    let top = U256::from_le_bytes(&little_endian) >> shift;
    (top.low_u64() as f64).log2() + f64::from(shift)
}

/// Connected share of all transactions up to now, if the chain keeps its average growth since genesis.
fn progress(tip: &Tip, genesis_time: u32, now_s: u64) -> f64 {
    let so_far_s = f64::from(tip.time.saturating_sub(genesis_time)).max(1.0);
    let to_come_s = now_s.saturating_sub(u64::from(tip.time)) as f64;
    so_far_s / (so_far_s + to_come_s)
}

#[cfg(test)]
mod tests {
    use super::*;

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
