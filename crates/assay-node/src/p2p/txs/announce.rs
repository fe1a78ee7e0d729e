//! Transaction announcements: destinations and timing.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use assay_engine::{RelayId, RelayTx, fee_at};
use assay_wire::p2p::{INVENTORY_MAX, Inventory, InventoryKind, Message};
use assay_wire::{Block, Txid, Wtxid};

use super::super::bloom::BloomFilter;
use super::super::peers::{Connection, Peer};
use super::super::permissions::Permissions;
use super::super::{Network, Shared};
use super::backlog::Backlog;
use super::recent::Recent;

pub(crate) struct Relay {
    /// True for wtxid relay (BIP339).
    pub(in super::super) names_wtxids: bool,
    pub(crate) is_wanted: bool,
    pub(super) known: Recent,
    to_send: Vec<Wtxid>,
    /// True after a mempool request (BIP35).
    wants_all: bool,
    /// Next announcement, microseconds by the node's clock; 0 before the handshake is complete.
    next_us: u64,
    /// Mempool sequence of the last announcement: the peer may fetch earlier entries.
    pub(super) announced_until: u64,
    /// Bloom filter, if set (BIP37).
    filter: Option<BloomFilter>,
    fee_filter_sent: Option<u64>,
    next_fee_filter_us: u64,
}

impl Default for Relay {
    fn default() -> Self {
        Self {
            names_wtxids: false,
            is_wanted: false,
            known: Recent::new(KNOWN_MAX),
            to_send: Vec::new(),
            wants_all: false,
            next_us: 0,
            announced_until: 0,
            filter: None,
            fee_filter_sent: None,
            next_fee_filter_us: 0,
        }
    }
}

/// Matches of a block's transactions with a filter.
pub(in super::super) struct Matches {
    pub(in super::super) txids: Vec<Txid>,
    pub(in super::super) matches: Vec<bool>,
}

#[derive(Default)]
pub(super) struct Timers {
    /// Next announcement to inbound peers: common to all, so that several connections reveal no more.
    inbound_us: u64,
    /// Next rebroadcast of unfetched transactions: real time, which only `mockscheduler` shifts, not the node's clock.
    rebroadcast: Option<Instant>,
    /// Cached minimum fee rate of the mempool, and its time.
    fee_rate: (u64, u64),
}

impl Relay {
    /// Relay id of an inventory entry; `None` if the peer uses the other kind of id.
    pub(super) fn name(&self, entry: &Inventory) -> Option<RelayId> {
        match entry.kind {
            InventoryKind::WTX if self.names_wtxids => Some(RelayId::Wtxid(Wtxid(entry.hash))),
            InventoryKind::TX if !self.names_wtxids => Some(RelayId::Txid(Txid(entry.hash))),
            InventoryKind::WITNESS_TX => Some(RelayId::Txid(Txid(entry.hash))),
            _ => None,
        }
    }

    fn entry(&self, tx: &RelayTx) -> Inventory {
        if self.names_wtxids {
            Inventory { kind: InventoryKind::WTX, hash: tx.wtxid.0 }
        } else {
            Inventory { kind: InventoryKind::TX, hash: tx.txid.0 }
        }
    }

    pub(crate) fn waiting(&self) -> usize {
        self.to_send.len()
    }

    /// Mempool sequence up to which it may fetch; starts at 1 as in Core.
    pub(crate) fn sequence(&self) -> u64 {
        self.announced_until + 1
    }

    /// Sets or clears the filter and enables relay.
    pub(in super::super) fn set_filter(&mut self, filter: Option<BloomFilter>) {
        self.filter = filter;
        self.is_wanted = true;
    }

    pub(in super::super) fn has_filter(&self) -> bool {
        self.filter.is_some()
    }

    /// Adds an element to the filter; `false` without a filter.
    pub(in super::super) fn add_to_filter(&mut self, data: &[u8]) -> bool {
        self.filter.as_mut().is_some_and(|filter| {
            filter.insert(data);
            true
        })
    }

    /// Matches each transaction of a block with the filter; `None` without one.
    pub(in super::super) fn filter_block(
        &mut self,
        block: &Block,
        is_cash: bool,
    ) -> Option<Matches> {
        let filter = self.filter.as_mut()?;
        let txids: Vec<Txid> = block.txs().map(|tx| tx.txid()).collect();
        let matches = block.txs().zip(&txids);
        let matches = matches.map(|(tx, txid)| filter.matches_and_updates(tx, txid, is_cash));
        let matches = matches.collect();
        Some(Matches { txids, matches })
    }

    pub(in super::super) fn want_all(&mut self) {
        self.wants_all = true;
    }
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

impl Shared {
    pub(super) fn broadcast(&self, wtxid: Wtxid) {
        let mut backlogs = self.txs.backlogs.lock().unwrap_or_else(PoisonError::into_inner);
        backlogs.inbound.push(wtxid);
        backlogs.outbound.push(wtxid);
        self.pass_on(&mut backlogs);
    }

    /// Moves transactions from the queues to the peers within the rate limits.
    pub(in super::super) fn pass_on_backlog(&self) {
        self.pass_on(&mut self.txs.backlogs.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn pass_on(&self, Backlogs { inbound, outbound }: &mut Backlogs) {
        let now_us = self.engine.clock().now_us();
        let sort = |wtxids: &[Wtxid]| self.engine.relay_order(wtxids).0;
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
    pub(in super::super) fn relay(&self, peer: &Peer) {
        if matches!(peer.connection, Connection::BlockRelayOnly | Connection::Feeler) {
            return;
        }
        self.announce_txs(peer);
        let entries = self.txs_to_ask(peer);
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
            self.engine.relay_order_of_all()
        } else {
            self.engine.relay_order(&waiting)
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
        let found = self.engine.transaction_before(&RelayId::Wtxid(tx.wtxid), u64::MAX);
        let is_cash = self.engine.params().cash.is_some();
        found.is_some_and(|found| filter.matches_and_updates(found.view(), &tx.txid, is_cash))
    }

    /// Time of the next announcement after `now_us`.
    fn next_announcement_us(&self, peer: &Peer, now_us: u64) -> u64 {
        if !peer.connection.is_inbound() {
            return now_us + exponential_us(OUTBOUND_US);
        }
        let mut timers = self.txs.timers.lock().unwrap_or_else(PoisonError::into_inner);
        if timers.inbound_us < now_us {
            timers.inbound_us = now_us + exponential_us(INBOUND_US);
        }
        timers.inbound_us
    }

    /// Sends `feefilter` when due (BIP133).
    fn send_fee_filter(&self, peer: &Peer) {
        let is_old = peer.with_facts(|facts| facts.version) < FEE_FILTER_VERSION;
        if self.config.blocks_only || is_old || peer.permissions.has(Permissions::FORCE_RELAY) {
            return;
        }
        let now_us = self.engine.clock().now_us();
        let is_syncing = self.engine.is_initial_block_download();
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
        let mut timers = self.txs.timers.lock().unwrap_or_else(PoisonError::into_inner);
        let (rate, at_us) = timers.fee_rate;
        if at_us != 0 && now_us.abs_diff(at_us) < 1_000_000 {
            return rate;
        }
        let info = self.engine.mempool_info();
        // Only a rate above the relay minimum needs protection.
        let is_more = info.min_fee_sat_per_kvb > info.min_relay_fee_sat_per_kvb;
        let rate = if is_more { info.min_fee_sat_per_kvb } else { 0 };
        timers.fee_rate = (rate, now_us);
        rate
    }

    /// Rebroadcasts unfetched local transactions every ten to fifteen minutes.
    pub(in super::super) fn rebroadcast_if_due(&self) {
        let now = Instant::now();
        let mut timers = self.txs.timers.lock().unwrap_or_else(PoisonError::into_inner);
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

    fn rebroadcast(&self) {
        self.engine.unbroadcast().into_iter().for_each(|(_, wtxid)| self.broadcast(wtxid));
    }

    /// Queues new local transactions for all peers.
    pub(in super::super) fn announce_local(&self) {
        self.engine.take_handed_in().into_iter().for_each(|wtxid| self.broadcast(wtxid));
    }
}

impl Network {
    pub(crate) fn announce_local(&self) {
        self.0.announce_local();
    }

    pub(crate) fn let_pass(&self, seconds: u64) {
        {
            let mut timers = self.0.txs.timers.lock().unwrap_or_else(PoisonError::into_inner);
            let earlier = |due: Instant| due.checked_sub(Duration::from_secs(seconds));
            timers.rebroadcast = timers.rebroadcast.and_then(earlier);
        }
        self.0.rebroadcast_if_due();
        self.check_tip_after(seconds);
    }

    pub(crate) fn takes_transactions(&self) -> bool {
        !self.0.config.blocks_only
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

/// Exponentially distributed time, so that announcements show no pattern.
pub(in crate::p2p) fn exponential_us(mean_us: u64) -> u64 {
    let uniform = (random(1 << 52) + 1) as f64 / (1u64 << 52) as f64;
    (-uniform.ln() * mean_us as f64) as u64
}

pub(in crate::p2p) fn random(bound: u64) -> u64 {
    // Without randomness, only privacy is lost.
    getrandom::u64().unwrap_or(0) % bound.max(1)
}

/// Size of the filter of known transactions (Core `m_tx_inventory_known_filter`).
const KNOWN_MAX: usize = 50_000;
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
