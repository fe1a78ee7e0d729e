//! Handles received addresses (Core `net_processing.cpp`, `ProcessAddrs`).

use assay_wire::p2p::{ADDRESSES_MAX, PeerAddress};

use super::{AddrBook, Connection, Peer, Permissions, shuffle};
use crate::p2p::{NODE_NETWORK, NODE_NETWORK_LIMITED};

impl AddrBook {
    /// True if a list of addresses is processed; an oversized one is misbehaviour.
    pub(in crate::p2p) fn accepts_addresses(
        &self,
        peer: &Peer,
        command: &str,
        count: usize,
    ) -> bool {
        if !Self::start_address_relay(peer) {
            let kind = peer.connection.name();
            net!("ignoring {command} message from {kind} peer={}", peer.id);
            return false;
        }
        if count > ADDRESSES_MAX {
            self.peers.misbehaving(peer, &format!("{command} message size = {count}"));
            return false;
        }
        true
    }

    /// Stores received addresses and relays some.
    pub(in crate::p2p) fn handle_addresses(
        &self,
        peer: &Peer,
        command: &str,
        mut came: Vec<PeerAddress>,
    ) {
        let count = came.len();
        if !self.accepts_addresses(peer, command, count) {
            return;
        }
        // The rate limit drops random addresses.
        shuffle(&mut came);
        let allowed = self.allowed(peer, came);
        let was_asked = peer.with_addresses(|relay| relay.was_asked);
        let is_small = !was_asked && count <= RELAYED_MAX;
        let (now_us, taken) = (self.engine.clock().now_us(), allowed.taken);
        let now_s = i64::try_from(now_us / 1_000_000).unwrap_or(i64::MAX);
        let mut kept = Vec::with_capacity(taken.len());
        let mut processed = 0;
        for mut address in taken {
            if address.services & (NODE_NETWORK | NODE_NETWORK_LIMITED) == 0 {
                continue;
            }
            let time_s = i64::from(address.time);
            if time_s <= LEAST_TIME_S || time_s > now_s + TEN_MINUTES_S {
                address.time = u32::try_from(now_s - OLD_S).unwrap_or_default();
            }
            let host = address.endpoint.host;
            peer.with_addresses(|relay| relay.known.insert(&address.endpoint));
            if self.is_banned(&host) {
                continue;
            }
            processed += 1;
            let is_fresh = i64::from(address.time) > now_s - TEN_MINUTES_S;
            if is_fresh && is_small && host.is_routable() {
                self.pass_on_address(peer, &address);
            }
            if self.can_reach(&host) {
                kept.push(address);
            }
        }
        peer.with_addresses(|relay| {
            relay.processed += processed;
            relay.rate_limited += allowed.rate_limited;
            relay.was_asked &= count >= ADDRESSES_MAX;
        });
        net!(
            "Received addr: {count} addresses ({processed} processed, {} rate-limited) from peer={}",
            allowed.rate_limited,
            peer.id
        );
        self.known.add(&kept, &peer.address.host, PENALTY_S);
        if peer.connection == Connection::AddrFetch && count > 1 {
            net!("addrfetch connection completed, disconnecting peer={}", peer.id);
            peer.close();
        }
    }

    fn allowed(&self, peer: &Peer, came: Vec<PeerAddress>) -> Allowed {
        let is_limited = !peer.permissions.has(Permissions::ADDR);
        let now_us = self.engine.clock().now_us();
        peer.with_addresses(|relay| {
            if relay.counted_us == 0 {
                relay.counted_us = peer.connected_us;
            }
            relay.refill(now_us);
            let mut allowed = Allowed { taken: Vec::with_capacity(came.len()), rate_limited: 0 };
            for address in came {
                if relay.tokens >= 1.0 {
                    relay.tokens -= 1.0;
                } else if is_limited {
                    allowed.rate_limited += 1;
                    continue;
                }
                allowed.taken.push(address);
            }
            allowed
        })
    }

    /// Sends `getaddr` to outbound peers, except block-relay-only ones.
    pub(in crate::p2p) fn ask_for_addresses(peer: &Peer) {
        if peer.connection.is_inbound() || !Self::start_address_relay(peer) {
            return;
        }
        peer.with_addresses(|relay| {
            relay.was_asked = true;
            relay.tokens += ADDRESSES_MAX as f64;
        });
        peer.send(&assay_wire::p2p::Message::GetAddr);
    }
}

struct Allowed {
    taken: Vec<PeerAddress>,
    rate_limited: u64,
}

/// Core `net_processing.cpp`, `ProcessAddrs`: longer lists are answers to `getaddr`.
const RELAYED_MAX: usize = 10;
const LEAST_TIME_S: i64 = 100_000_000;
const TEN_MINUTES_S: i64 = 600;
const OLD_S: i64 = 5 * 24 * 3600;
/// Age added to relayed addresses.
const PENALTY_S: i64 = 2 * 3600;
