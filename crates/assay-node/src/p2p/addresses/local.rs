//! Own addresses and their announcement (Core `net.cpp`, `AddLocal`, `GetLocalAddrForPeer`).

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use assay_wire::p2p::{Endpoint, Host, Message, NetworkKind, PeerAddress};

use super::{AddrBook, Peer, exponential_us, random, v1};

/// Confidence by source (Core `net.h`): listening address or configured one, plus one per peer that connected to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::p2p) struct Score(i32);

impl Score {
    pub(in crate::p2p) const BOUND: Self = Self(2);
    pub(in crate::p2p) const NAMED: Self = Self(4);
}

pub(crate) struct LocalAddresses {
    /// Accept addresses other than configured ones (Core's `-discover`).
    discovers: bool,
    /// Announced port (Core `net.cpp`, `GetListenPort`).
    port: u16,
    scores: Mutex<BTreeMap<Endpoint, Score>>,
}

impl LocalAddresses {
    pub(in crate::p2p) fn new(discovers: bool, port: u16) -> Self {
        Self { discovers, port, scores: Mutex::default() }
    }

    pub(in crate::p2p) fn add(&self, endpoint: Endpoint, score: Score) {
        if !endpoint.host.is_routable() || (!self.discovers && score < Score::NAMED) {
            return;
        }
        let mut scores = self.lock();
        let known = scores.get(&endpoint).copied();
        if known.is_none_or(|known| score >= known) {
            let more = i32::from(known.is_some());
            scores.insert(endpoint, Score(score.0.saturating_add(more)));
        }
    }

    /// Raises the score of an address that a peer connected to.
    pub(in crate::p2p) fn seen(&self, endpoint: &Endpoint) {
        if let Some(score) = self.lock().get_mut(endpoint) {
            score.0 = score.0.saturating_add(1);
        }
    }

    pub(in crate::p2p) fn has(&self, endpoint: &Endpoint) -> bool {
        self.lock().contains_key(endpoint)
    }

    pub(crate) fn list(&self) -> Vec<(Endpoint, i32)> {
        self.lock().iter().map(|(endpoint, score)| (*endpoint, score.0)).collect()
    }

    /// Own address that is best reachable from a peer on `network` at `from`. Tor and I2P addresses are announced
    /// only on their network, and only they.
    fn best_for(&self, network: NetworkKind, from: &Host) -> Option<(Endpoint, Score)> {
        let is_private = |network| matches!(network, NetworkKind::Onion | NetworkKind::I2p);
        let scores = self.lock();
        let shown = scores.iter().filter(|(endpoint, _)| {
            let own = endpoint.host.network();
            own == network || !(is_private(own) || is_private(network))
        });
        let mut best: Option<(u8, Score, Endpoint)> = None;
        for (endpoint, score) in shown {
            let rank = (reachability(&endpoint.host, from), *score);
            if best.is_none_or(|(reach, score, _)| rank > (reach, score)) {
                best = Some((rank.0, rank.1, *endpoint));
            }
        }
        best.map(|(_, score, endpoint)| (endpoint, score))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Endpoint, Score>> {
        self.scores.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reachability of `own` from `theirs`, higher is better (Core `netaddress.cpp`, `GetReachabilityFrom`).
fn reachability(own: &Host, theirs: &Host) -> u8 {
    use NetworkKind::{Cjdns, I2p, Ipv4, Ipv6, Onion};
    if !own.is_routable() {
        return 0;
    }
    let is_teredo = |host: &Host| matches!(host, Host::V6([0x20, 0x01, 0, 0, ..]));
    let ours = own.network();
    if is_teredo(theirs) || theirs.network() == NetworkKind::Unroutable {
        return match ours {
            _ if is_teredo(own) => TEREDO,
            Ipv6 => WEAK,
            Ipv4 => V4,
            Onion if !is_teredo(theirs) => PRIVATE,
            _ => DEFAULT,
        };
    }
    match (theirs.network(), ours) {
        (Ipv6, _) if is_teredo(own) => TEREDO,
        // Tunnelled IPv4.
        (Ipv6, Ipv6) if own.linked_v4().is_some() => WEAK,
        (Ipv6, Ipv6) => STRONG,
        (Ipv4 | Ipv6 | Onion, Ipv4) => V4,
        (Onion, Onion) | (I2p, I2p) | (Cjdns, Cjdns) => PRIVATE,
        _ => DEFAULT,
    }
}

impl AddrBook {
    /// Announces our own address to a peer, immediately and then once a day on average.
    pub(in crate::p2p) fn announce_itself(&self, peer: &Peer) {
        let now_us = self.engine.clock().now_us();
        let is_due = peer.with_addresses(|relay| relay.is_enabled && relay.next_own_us < now_us);
        if !is_due || !self.peers.config.listens || self.engine.chain().is_initial_block_download()
        {
            return;
        }
        let own = self.own_address_for(peer);
        let time = u32::try_from(now_us / 1_000_000).unwrap_or(u32::MAX);
        let services = self.peers.services();
        let next_us = now_us + exponential_us(INTERVAL_US);
        let first = peer.with_addresses(|relay| {
            let is_first = relay.next_own_us == 0;
            if !is_first {
                // Otherwise it would be skipped as known.
                relay.forget_known();
            }
            relay.next_own_us = next_us;
            let address = PeerAddress { time, services, endpoint: own? };
            if is_first {
                return relay.fits(&address).then_some((address, relay.wants_v2));
            }
            relay.push(&address);
            None
        });
        // In a message of its own: the peer's rate limit admits one address initially.
        match first {
            Some((address, true)) => peer.send(&Message::AddrV2([address].as_slice().into())),
            Some((address, false)) => peer.send(&Message::Addr([v1(&address)].as_slice().into())),
            None => {}
        }
    }

    fn own_address_for(&self, peer: &Peer) -> Option<Endpoint> {
        let best = self.local.best_for(peer.network(), &peer.address.host);
        let unknown = Endpoint { host: Host::NONE, port: self.local.port };
        let (mut own, score) = best.unwrap_or((unknown, Score(0)));
        // The address seen by the peer may be better than ours.
        if let Some(seen) = peer.facts().seen_as
            && self.local.discovers
            && peer.address.host.is_routable()
            && seen.host.is_routable()
            && self.reachable().contains(&seen.host.network())
        {
            let odds = if score > Score::NAMED { 8 } else { 2 };
            if !own.host.is_routable() || random(odds) == 0 {
                // On outbound connections the peer cannot see our listening port.
                let port = if peer.connection.is_inbound() { seen.port } else { own.port };
                own = Endpoint { host: seen.host, port };
            }
        }
        if !own.host.is_routable() {
            return None;
        }
        net!("Advertising address {own} to peer={}", peer.id);
        Some(own)
    }
}

/// Reachability, from bad to good (Core `netaddress.cpp`, `Reachability`).
const DEFAULT: u8 = 1;
const TEREDO: u8 = 2;
const WEAK: u8 = 3;
const V4: u8 = 4;
const STRONG: u8 = 5;
const PRIVATE: u8 = 6;
/// Core `net_processing.cpp`, `AVG_LOCAL_ADDRESS_BROADCAST_INTERVAL`.
const INTERVAL_US: u64 = 24 * 3_600_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn host(text: &str) -> Host {
        Host::parse(text).unwrap().or_cjdns()
    }

    const ONION: &str = "pg6mmjiyjmcrsslvykfwnntlaru7p5svn6y2ymmju6nubxndf4pscryd.onion";

    #[test]
    fn selects_the_best_address_per_network() {
        let local = LocalAddresses::new(true, 8333);
        let all = ["1.2.3.4", "2a01::1", "2002:102:304::1", ONION, "fc00::1"];
        for text in all {
            local.add(Endpoint { host: host(text), port: 1 }, Score::BOUND);
        }
        local.add(Endpoint { host: host("10.0.0.1"), port: 1 }, Score::NAMED);
        assert_eq!(local.list().len(), 5, "what nobody can reach is not ours to name");
        for (peer, expected) in
            [("9.9.9.9", "1.2.3.4"), ("2b00::1", "2a01::1"), (ONION, ONION), ("fc00::2", "fc00::1")]
        {
            let from = host(peer);
            let (best, _) = local.best_for(from.network(), &from).unwrap();
            assert_eq!(best.host, host(expected), "{peer}");
        }
    }

    #[test]
    fn tor_addresses_stay_on_tor() {
        let local = LocalAddresses::new(false, 8333);
        local.add(Endpoint { host: host("1.2.3.4"), port: 1 }, Score::BOUND);
        assert!(local.list().is_empty(), "nothing is discovered");
        local.add(Endpoint { host: host(ONION), port: 1 }, Score::NAMED);
        assert!(local.best_for(NetworkKind::Ipv4, &host("9.9.9.9")).is_none());
        assert!(local.best_for(NetworkKind::Onion, &host("127.0.0.1")).is_some());
    }

    #[test]
    fn inbound_connections_raise_the_score() {
        let local = LocalAddresses::new(true, 8333);
        let [one, other] = [1, 2].map(|port| Endpoint { host: host("1.2.3.4"), port });
        local.add(one, Score::NAMED);
        local.add(other, Score::NAMED);
        local.seen(&other);
        local.seen(&Endpoint { port: 9, ..one });
        let best = local.best_for(NetworkKind::Ipv4, &host("9.9.9.9")).unwrap();
        assert_eq!(best, (other, Score(5)));
        local.add(one, Score::NAMED);
        assert_eq!(local.list(), [(one, 5), (other, 5)]);
        assert!(local.has(&one));
    }
}
