//! Selection and timing of address announcements (Core `net_processing.cpp`, `RelayAddress`, `MaybeSendAddr`).

use assay_wire::p2p::{Message, NetAddress, PeerAddress, TimedAddress};

use super::{AddrBook, Connection, NetworkKind, Peer, exponential_us};

impl AddrBook {
    /// Relays an address to one or two peers. They stay the same for a day, so that repetition spreads it no further.
    pub(super) fn pass_on_address(&self, from: &Peer, address: &PeerAddress) {
        let host = address.endpoint.host;
        let is_reachable = self.can_reach(&host);
        if !is_reachable && matches!(host.network(), NetworkKind::Internal) {
            return;
        }
        let chooser = &self.chooser;
        let name = chooser.hash(&address.endpoint.key());
        // Each address changes its destinations at a different time of day.
        let day = self.engine.clock().now_s().wrapping_add(name) / DAY_S;
        let of_day = [name.to_le_bytes(), day.to_le_bytes()].concat();
        let count = if is_reachable || chooser.hash(&of_day) & 1 == 1 { 2 } else { 1 };
        let rank =
            |peer: &Peer| chooser.hash(&[&of_day, peer.id.to_le_bytes().as_slice()].concat());
        let mut peers = self.peers.list();
        peers.retain(|peer| {
            peer.id != from.id
                && peer.with_addresses(|relay| relay.is_enabled && relay.fits(address))
        });
        peers.sort_by_cached_key(|peer| std::cmp::Reverse(rank(peer)));
        for peer in peers.iter().take(count) {
            peer.with_addresses(|relay| relay.push(address));
        }
    }

    /// Sends queued addresses, every 30 seconds on average.
    pub(in crate::p2p) fn pass_on_addresses(&self, peer: &Peer) {
        let now_us = self.engine.clock().now_us();
        let age_us = now_us.saturating_sub(peer.connected_us);
        if peer.connection == Connection::AddrFetch && age_us > FETCH_PATIENCE_US {
            net!("addrfetch connection timeout, disconnecting peer={}", peer.id);
            return peer.close();
        }
        let (to_send, has_v2) = peer.with_addresses(|relay| {
            if !relay.is_enabled || now_us <= relay.next_us {
                return (Vec::new(), false);
            }
            relay.next_us = now_us + exponential_us(INTERVAL_US);
            (relay.take(), relay.wants_v2)
        });
        if to_send.is_empty() {
            return;
        }
        if has_v2 {
            peer.send(&Message::AddrV2(to_send.as_slice().into()));
        } else {
            let timed: Vec<TimedAddress> = to_send.iter().map(v1).collect();
            peer.send(&Message::Addr(timed.as_slice().into()));
        }
    }
}

pub(super) fn v1(address: &PeerAddress) -> TimedAddress {
    let PeerAddress { time, services, endpoint } = *address;
    let address = NetAddress { services, ip: endpoint.host.to_v1(), port: endpoint.port };
    TimedAddress { time, address }
}

/// Core `net_processing.cpp`, `ROTATE_ADDR_RELAY_DEST_INTERVAL`, `AVG_ADDRESS_BROADCAST_INTERVAL`.
const DAY_S: u64 = 24 * 3600;
const INTERVAL_US: u64 = 30_000_000;
const FETCH_PATIENCE_US: u64 = 10 * INTERVAL_US;
