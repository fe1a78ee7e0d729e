//! Transaction announcements: destinations and timing.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use assay_engine::{RelayId, RelayTx, fee_at};
use assay_wire::Wtxid;
use assay_wire::p2p::{INVENTORY_MAX, Message};

use super::TxRelay;
use super::announce_rate::Backlog;
use crate::p2p::peers::{Connection, Peer, Relay};
use crate::p2p::permissions::Permissions;
use crate::p2p::rng::{exponential_us, random};

#[derive(Default)]
pub(super) struct Timers {
    /// Next announcement to inbound peers: common to all, so that several connections reveal no more.
    inbound_us: u64,
    /// Next rebroadcast of unfetched transactions: real time, which only `mockscheduler` shifts, not the node's clock.
    rebroadcast: Option<Instant>,
    /// Cached minimum fee rate of the mempool, and its time.
    fee_rate: (u64, u64),
}

/// Announcement queues for inbound and outbound peers.
pub(super) struct Backlogs {
    inbound: Backlog,
    outbound: Backlog,
}

impl Backlogs {
    /// For `per_s` transactions a second to inbound peers.
    pub(super) fn new(per_s: u32) -> Self {
        let factor = INBOUND_US as f64 / OUTBOUND_US as f64;
        Self { inbound: Backlog::new(per_s, 1.0), outbound: Backlog::new(per_s, factor) }
    }
}

impl TxRelay {
    pub(super) fn broadcast(&self, wtxid: Wtxid) {
        let mut backlogs = self.backlogs.lock().unwrap_or_else(PoisonError::into_inner);
        backlogs.inbound.push(wtxid);
        backlogs.outbound.push(wtxid);
        self.pass_on(&mut backlogs);
    }

    /// Moves transactions from the queues to the peers within the rate limits.
    pub(in crate::p2p) fn pass_on_backlog(&self) {
        self.pass_on(&mut self.backlogs.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn pass_on(&self, Backlogs { inbound, outbound }: &mut Backlogs) {
        let now_us = self.engine.clock().now_us();
        let sort = |wtxids: &[Wtxid]| self.engine.mempool().relay_order(wtxids).0;
        let (for_inbound, for_outbound) = (inbound.take(now_us, sort), outbound.take(now_us, sort));
        if for_inbound.is_empty() && for_outbound.is_empty() {
            return;
        }
        let (mut has_inbound, mut has_outbound) = (false, false);
        for peer in self.peers.list() {
            let (wtxids, has_any) = if peer.connection.is_inbound() {
                (&for_inbound, &mut has_inbound)
            } else {
                (&for_outbound, &mut has_outbound)
            };
            peer.with_relay(|relay| {
                // A peer in its handshake must not learn the arrival time.
                if relay.next_us > 0 {
                    *has_any = true;
                    let room = TO_SEND_MAX.saturating_sub(relay.to_send.len());
                    let wanted = wtxids.iter().take(room).filter(|_| relay.is_wanted);
                    relay.to_send.extend(wanted);
                }
            });
        }
        // Later peers get later transactions only.
        if !has_inbound {
            inbound.clear();
        }
        if !has_outbound {
            outbound.clear();
        }
    }

    /// Sends due requests and announcements to a peer.
    pub(in crate::p2p) fn relay(&self, peer: &Peer) {
        if matches!(peer.connection, Connection::BlockRelayOnly | Connection::Feeler) {
            return;
        }
        self.announce_txs(peer);
        let entries = self.due_requests(peer);
        for entries in entries.chunks(ASKED_AT_ONCE) {
            peer.send(&Message::GetData(entries.into()));
        }
        self.send_fee_filter(peer);
    }

    fn announce_txs(&self, peer: &Peer) {
        let now_us = self.engine.clock().now_us();
        let next_us = peer.with_relay(|relay| relay.next_us);
        let is_due = next_us < now_us;
        if !is_due && !peer.permissions.has(Permissions::NO_BAN) {
            return;
        }
        if is_due {
            let next_us = self.next_announcement_us(peer, now_us);
            peer.with_relay(|relay| relay.next_us = next_us);
        }
        let (waiting, wants_all) = peer.with_relay(|relay| {
            if !relay.is_wanted {
                relay.to_send.clear();
            }
            (std::mem::take(&mut relay.to_send), std::mem::take(&mut relay.wants_all))
        });
        if waiting.is_empty() && !wants_all {
            return;
        }
        let (txs, moment) = if wants_all {
            self.engine.mempool().relay_order_of_all()
        } else {
            self.engine.mempool().relay_order(&waiting)
        };
        let least = peer.with_facts(|facts| facts.min_fee_sat_per_kvb);
        let entries = peer.with_relay(|relay| {
            relay.announced_until = moment;
            let mut entries = Vec::new();
            for tx in txs.iter().filter(|tx| pays(tx, least)) {
                let entry = relay.entry(tx);
                if (wants_all || !relay.known.contains(&entry.hash)) && self.matches(relay, tx) {
                    relay.known.insert(&entry.hash);
                    entries.push(entry);
                }
            }
            entries
        });
        for entries in entries.chunks(INVENTORY_MAX) {
            peer.send(&Message::Inv(entries.into()));
        }
    }

    /// True if a transaction matches the peer's filter.
    fn matches(&self, relay: &mut Relay, tx: &RelayTx) -> bool {
        let Some(filter) = &mut relay.filter else { return true };
        // It has left the mempool since.
        let found = self.engine.mempool().transaction_before(&RelayId::Wtxid(tx.wtxid), u64::MAX);
        let is_cash = self.engine.params().cash.is_some();
        found.is_some_and(|found| filter.matches_and_updates(found.view(), &tx.txid, is_cash))
    }

    /// Time of the next announcement after `now_us`.
    fn next_announcement_us(&self, peer: &Peer, now_us: u64) -> u64 {
        if !peer.connection.is_inbound() {
            return now_us + exponential_us(OUTBOUND_US);
        }
        let mut timers = self.timers.lock().unwrap_or_else(PoisonError::into_inner);
        if timers.inbound_us < now_us {
            timers.inbound_us = now_us + exponential_us(INBOUND_US);
        }
        timers.inbound_us
    }

    /// Sends `feefilter` when due (BIP133).
    fn send_fee_filter(&self, peer: &Peer) {
        let is_old = peer.with_facts(|facts| facts.version) < FEE_FILTER_VERSION;
        if self.peers.config.blocks_only || is_old || peer.permissions.has(Permissions::FORCE_RELAY)
        {
            return;
        }
        let now_us = self.engine.clock().now_us();
        let is_syncing = self.engine.chain().is_initial_block_download();
        let current = if is_syncing { MONEY_MAX } else { self.fee_rate_min(now_us) };
        let (sent, next_us) =
            peer.with_relay(|relay| (relay.fee_filter_sent, relay.next_fee_filter_us));
        // IBD is over: lift the filter.
        let is_overdue = !is_syncing && sent.is_some_and(|sent| sent == rounded(MONEY_MAX));
        if now_us > next_us || is_overdue {
            let rate = rounded(current).max(self.engine.config().min_relay_fee_sat_per_kvb);
            peer.with_relay(|relay| {
                relay.fee_filter_sent = Some(rate);
                relay.next_fee_filter_us = now_us + exponential_us(FEE_FILTER_US);
            });
            if sent != Some(rate) {
                peer.send(&Message::FeeFilter(rate));
            }
        } else if now_us + FEE_FILTER_SOON_US < next_us
            && sent.is_some_and(|sent| current < sent / 4 * 3 || current / 4 > sent / 3)
        {
            let soon_us = now_us + random(FEE_FILTER_SOON_US);
            peer.with_relay(|relay| relay.next_fee_filter_us = soon_us);
        }
    }

    /// Minimum fee rate of the mempool if above the relay minimum, otherwise 0; cached for a second.
    fn fee_rate_min(&self, now_us: u64) -> u64 {
        let mut timers = self.timers.lock().unwrap_or_else(PoisonError::into_inner);
        let (rate, at_us) = timers.fee_rate;
        if at_us != 0 && now_us.abs_diff(at_us) < 1_000_000 {
            return rate;
        }
        let info = self.engine.mempool().info();
        // Only a rate above the relay minimum needs protection.
        let is_more = info.min_fee_sat_per_kvb > info.min_relay_fee_sat_per_kvb;
        let rate = if is_more { info.min_fee_sat_per_kvb } else { 0 };
        timers.fee_rate = (rate, now_us);
        rate
    }

    /// Rebroadcasts unfetched local transactions every ten to fifteen minutes.
    pub(in crate::p2p) fn rebroadcast_if_due(&self) {
        let now = Instant::now();
        let mut timers = self.timers.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = timers.rebroadcast.is_some_and(|due| due <= now);
        if timers.rebroadcast.is_none() || is_due {
            let chance = Duration::from_micros(random(REBROADCAST.as_micros() as u64 / 2));
            timers.rebroadcast = Some(now + REBROADCAST + chance);
        }
        drop(timers);
        if is_due {
            self.rebroadcast();
        }
    }

    /// Rebroadcasts what is due as if `seconds` had passed.
    pub(in crate::p2p) fn let_pass(&self, seconds: u64) {
        {
            let mut timers = self.timers.lock().unwrap_or_else(PoisonError::into_inner);
            let earlier = |due: Instant| due.checked_sub(Duration::from_secs(seconds));
            timers.rebroadcast = timers.rebroadcast.and_then(earlier);
        }
        self.rebroadcast_if_due();
    }

    fn rebroadcast(&self) {
        let waiting = self.engine.mempool().unbroadcast();
        for (_, wtxid) in waiting {
            self.broadcast(wtxid);
        }
    }

    /// Queues new local transactions for all peers.
    pub(crate) fn announce_local(&self) {
        self.engine.mempool().take_handed_in().into_iter().for_each(|wtxid| self.broadcast(wtxid));
    }
}

/// True if a transaction pays at least `least` satoshis per 1,000 virtual bytes.
fn pays(tx: &RelayTx, least: u64) -> bool {
    tx.fee_sat >= fee_at(least, u64::from(tx.vsize), false)
}

/// Obfuscates a fee rate: randomly one of the adjacent steps of a 10% scale (Core `policy/fees.cpp`, `FeeFilterRounder`).
fn rounded(rate: u64) -> u64 {
    if rate == 0 {
        return 0;
    }
    let mut below = 0;
    let mut above = FEE_RATE_STEP_FIRST;
    while (above as u64) < rate && above * FEE_RATE_STEP <= FEE_RATE_BUCKETS_MAX as f64 {
        below = above as u64;
        above *= FEE_RATE_STEP;
    }
    let is_beyond = (above as u64) < rate;
    if is_beyond || random(3) == 0 { above as u64 } else { below }
}

/// Queue limit per peer; the queue is sent every few seconds.
const TO_SEND_MAX: usize = 100_000;
/// Entries per `getdata` (Core `MAX_GETDATA_SZ`).
const ASKED_AT_ONCE: usize = 1000;
/// Core `net_processing.cpp`, `INBOUND_INVENTORY_BROADCAST_INTERVAL`, `OUTBOUND_INVENTORY_BROADCAST_INTERVAL`.
const INBOUND_US: u64 = 5_000_000;
const OUTBOUND_US: u64 = 2_000_000;
/// Core `AVG_FEEFILTER_BROADCAST_INTERVAL`, `MAX_FEEFILTER_CHANGE_DELAY`.
const FEE_FILTER_US: u64 = 600_000_000;
const FEE_FILTER_SOON_US: u64 = 300_000_000;
const FEE_FILTER_VERSION: i32 = 70013;
/// Core `ReattemptInitialBroadcast`; plus up to half as much at random.
const REBROADCAST: Duration = Duration::from_mins(10);
const MONEY_MAX: u64 = 2_100_000_000_000_000;
/// Core `policy/fees.cpp`: `MAX_FILTER_FEERATE`, `FEE_FILTER_SPACING`, and half the default of `-incrementalrelayfee`.
const FEE_RATE_BUCKETS_MAX: u64 = 10_000_000;
const FEE_RATE_STEP: f64 = 1.1;
const FEE_RATE_STEP_FIRST: f64 = 50.0;
