//! Rate limit of transaction announcements to all peers together (Core `net_processing.cpp`, `InvToSendBucket`).
//!
//! Admitted transactions queue here before the per-peer timers. Bursts pass until a budget is used up, then the
//! best transactions pass at a steady rate. A flood thus spreads no faster than it is mined, and hides its order of
//! arrival.

use assay_engine::RelayTx;
use assay_wire::Wtxid;

/// Queue for all inbound or all outbound peers.
pub(super) struct Backlog {
    waiting: Vec<Wtxid>,
    count: Bucket,
    bytes: Bucket,
    /// Maximum overdraft of `count`: transactions are taken in batches of this size, since each batch sorts the queue.
    overdraft: f64,
}

struct Bucket {
    tokens: f64,
    per_s: f64,
    max: f64,
    /// Last refill, microseconds by the node's clock.
    filled_us: Option<u64>,
}

impl Backlog {
    /// For `per_s` transactions a second, times `factor`.
    pub(super) fn new(per_s: u32, factor: f64) -> Self {
        let per_s = f64::from(per_s);
        let bucket = |tokens, per_s, max| Bucket { tokens, per_s, max, filled_us: None };
        Self {
            waiting: Vec::new(),
            count: bucket(per_s * BURST_S, per_s * factor, per_s * BURST_S),
            bytes: bucket(BYTES_FIRST, BYTES_PER_S * factor, BYTES_MAX),
            overdraft: per_s * INBOUND_S,
        }
    }

    /// Queues a transaction, up to a limit.
    pub(super) fn push(&mut self, wtxid: Wtxid) {
        if self.waiting.len() < WAITING_MAX {
            self.waiting.push(wtxid);
        }
    }

    pub(super) fn clear(&mut self) {
        self.waiting = Vec::new();
    }

    /// Takes the transactions allowed now. `sort` returns those still in the mempool, best first.
    pub(super) fn take(
        &mut self,
        now_us: u64,
        sort: impl FnOnce(&[Wtxid]) -> Vec<RelayTx>,
    ) -> Vec<Wtxid> {
        self.count.fill(now_us);
        self.bytes.fill(now_us);
        if self.waiting.is_empty() || self.count.tokens <= 0.0 || self.bytes.tokens <= 0.0 {
            return Vec::new();
        }
        let txs = sort(&std::mem::take(&mut self.waiting));
        let mut taken = 0;
        while taken < txs.len()
            && self.count.tokens > -self.overdraft
            && self.bytes.tokens > -BYTES_OVERDRAFT
        {
            self.count.tokens -= 1.0;
            self.bytes.tokens -= f64::from(txs[taken].size);
            taken += 1;
        }
        let (now, later) = txs.split_at(taken);
        let wtxids = |txs: &[RelayTx]| txs.iter().map(|tx| tx.wtxid).collect();
        self.waiting = wtxids(later);
        wtxids(now)
    }
}

impl Bucket {
    fn fill(&mut self, now_us: u64) {
        let since_us = self.filled_us.map_or(0, |filled_us| now_us.saturating_sub(filled_us));
        self.filled_us = Some(now_us);
        if self.tokens < self.max {
            self.tokens = (self.tokens + self.per_s * since_us as f64 / 1e6).min(self.max);
        }
    }
}

/// Burst, as seconds of the steady rate.
const BURST_S: f64 = 30.0;
/// Announcement interval of inbound peers (Core's `INBOUND_INVENTORY_BROADCAST_INTERVAL`).
const INBOUND_S: f64 = 5.0;
/// Bytes: initial budget, maximum, rate per second, and overdraft.
const BYTES_FIRST: f64 = 12e6;
const BYTES_MAX: f64 = 50e6;
const BYTES_PER_S: f64 = 20e3;
const BYTES_OVERDRAFT: f64 = 50e3;
/// Not in Core, which also keeps transactions that have left the mempool.
const WAITING_MAX: usize = 100_000;

#[cfg(test)]
mod tests {
    use super::*;
    use assay_wire::Txid;

    fn wtxid(number: usize) -> Wtxid {
        let mut hash = [0; 32];
        hash[..8].copy_from_slice(&number.to_le_bytes());
        Wtxid(hash)
    }

    /// All are in the mempool, and the latest is the best.
    fn sort(wtxids: &[Wtxid], size: u32) -> Vec<RelayTx> {
        let tx = |wtxid: &Wtxid| RelayTx {
            txid: Txid(wtxid.0),
            wtxid: *wtxid,
            fee_sat: 0,
            vsize: size,
            size,
        };
        wtxids.iter().rev().map(tx).collect()
    }

    fn filled(per_s: u32, count: usize) -> Backlog {
        let mut backlog = Backlog::new(per_s, 1.0);
        (0..count).for_each(|number| backlog.push(wtxid(number)));
        backlog
    }

    const S: u64 = 1_000_000;

    #[test]
    fn bursts_then_steady_rate() {
        let mut backlog = filled(14, 5000);
        let mut take = |now_us| backlog.take(now_us, |all| sort(all, 200));
        let first = take(S);
        assert_eq!((first.len(), first[0]), (490, wtxid(4999)), "30 s and 5 s worth, best first");
        assert!(take(S).is_empty() && take(6 * S).is_empty(), "what was taken beyond is paid for");
        assert_eq!(take(6 * S + S / 10).len(), 72);
        let sum: usize = (0..600).map(|tenth| take(7 * S + tenth * S / 10).len()).sum();
        assert!((60 * 14 - 70..=60 * 14 + 70).contains(&sum), "{sum}");
    }

    #[test]
    fn large_transactions_exhaust_the_byte_budget() {
        let mut backlog = filled(14, 400);
        assert_eq!(backlog.take(S, |all| sort(all, 100_000)).len(), 121);
        assert!(backlog.take(3 * S, |all| sort(all, 100_000)).is_empty());
    }

    #[test]
    fn removed_transactions_are_free() {
        let mut backlog = filled(1, 1000);
        assert!(backlog.take(S, |_| Vec::new()).is_empty());
        assert!((backlog.count.tokens - 30.0).abs() < 1e-9 && backlog.waiting.is_empty());
        (0..WAITING_MAX + 5).for_each(|number| backlog.push(wtxid(number)));
        assert_eq!(backlog.waiting.len(), WAITING_MAX);
    }

    #[test]
    fn clock_jumps_keep_tokens() {
        let mut backlog = filled(14, 10);
        assert_eq!(backlog.take(3600 * S, |all| sort(all, 200)).len(), 10);
        (0..10).for_each(|number| backlog.push(wtxid(number)));
        assert_eq!(backlog.take(S, |all| sort(all, 200)).len(), 10);
    }
}
