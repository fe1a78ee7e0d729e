//! Address relay: addresses sent to peers, and filtering of received ones (Core `net_processing.cpp`).

mod local;
mod receive;
mod relay;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use assay_engine::Engine;
use assay_hash::SipHash24;
use assay_wire::p2p::{ADDRESSES_MAX, Host, NetworkKind, PeerAddress};

pub(super) use self::local::{LocalAddresses, Score};
use self::relay::v1;
use super::addrman::{AddrMan, Wanted};
use super::peers::{Connection, Peer, Peers};
use super::permissions::Permissions;
use super::rng::{exponential_us, random, shuffle};

/// Known addresses, our own, and their relay.
pub(crate) struct AddrBook {
    engine: Arc<Engine>,
    peers: Arc<Peers>,
    pub(crate) known: AddrMan,
    pub(crate) local: LocalAddresses,
    networks: Vec<NetworkKind>,
    /// Selects the peers to which an address is relayed.
    chooser: SipHash24,
    /// Cached responses to `getaddr` by network and local address, so that repeated requests reveal no more.
    answers: Mutex<Answers>,
}

#[derive(Default)]
struct Answers(BTreeMap<(NetworkKind, SocketAddr), Answer>);

struct Answer {
    until_us: u64,
    addresses: Vec<PeerAddress>,
}

impl Answers {
    fn get(&self, way: (NetworkKind, SocketAddr), now_us: u64) -> Option<&[PeerAddress]> {
        let answer = self.0.get(&way).filter(|answer| now_us <= answer.until_us)?;
        Some(&answer.addresses)
    }

    fn put(&mut self, way: (NetworkKind, SocketAddr), answer: Answer) {
        // Limited to the number of local addresses and ports; a network may assign many addresses to this machine.
        if self.0.len() >= ANSWERS_MAX {
            self.0.clear();
        }
        self.0.insert(way, answer);
    }
}

impl AddrBook {
    pub(super) fn new(peers: &Arc<Peers>, known: AddrMan, local: LocalAddresses) -> Self {
        let word = || random(u64::MAX);
        Self {
            engine: Arc::clone(&peers.engine),
            peers: Arc::clone(peers),
            known,
            local,
            networks: peers.config.networks.clone(),
            chooser: SipHash24::new(word(), word()),
            answers: Mutex::default(),
        }
    }

    /// Address group hashed with a secret key.
    pub(super) fn group_name(&self, host: &Host) -> u64 {
        self.chooser.hash(&host.group())
    }

    pub(crate) fn reachable(&self) -> &[NetworkKind] {
        &self.networks
    }

    pub(super) fn can_reach(&self, host: &Host) -> bool {
        let network = host.network();
        matches!(network, NetworkKind::Unroutable | NetworkKind::Internal)
            || self.networks.contains(&network)
    }

    /// Enables address relay, except on block-relay-only connections, which it would reveal.
    fn start_address_relay(peer: &Peer) -> bool {
        let is_right = !matches!(peer.connection, Connection::BlockRelayOnly | Connection::Feeler);
        if is_right {
            peer.with_addresses(|relay| relay.is_enabled = true);
        }
        is_right
    }

    /// Answers the first `getaddr` of a peer from a cache shared for a day by all peers of the same network and local address.
    pub(super) fn handle_getaddr(&self, peer: &Peer) {
        let id = peer.id;
        if !peer.connection.is_inbound() {
            // Against fingerprinting by addresses that were sent to the node earlier.
            let kind = peer.connection.name();
            net!("Ignoring \"getaddr\" from {kind} connection. peer={id}");
            return;
        }
        Self::start_address_relay(peer);
        let has_asked = peer.with_addresses(|relay| std::mem::replace(&mut relay.has_asked, true));
        if has_asked {
            net!("Ignoring repeated \"getaddr\". peer={id}");
            return;
        }
        let answer = if peer.permissions.has(Permissions::ADDR) {
            self.listed(&WANTED_BY_PEERS)
        } else {
            self.answer_for(peer)
        };
        peer.with_addresses(|relay| {
            relay.to_send.clear();
            for address in &answer {
                relay.push(address);
            }
        });
    }

    fn answer_for(&self, peer: &Peer) -> Vec<PeerAddress> {
        let now_us = self.engine.clock().now_us();
        let way = (peer.network(), peer.bound);
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(addresses) = answers.get(way, now_us) {
            return addresses.to_vec();
        }
        let addresses = self.listed(&WANTED_BY_PEERS);
        let until_us = now_us + ANSWER_US + random(ANSWER_MORE_US);
        answers.put(way, Answer { until_us, addresses: addresses.clone() });
        addresses
    }

    /// Random known addresses without banned ones.
    pub(crate) fn listed(&self, wanted: &Wanted) -> Vec<PeerAddress> {
        let mut found = self.known.list(wanted);
        found.retain(|address| !self.is_banned(&address.endpoint.host));
        found
    }

    pub(super) fn is_banned(&self, host: &Host) -> bool {
        self.peers.bans.has_banned_host(host) || self.peers.bans.is_discouraged(host)
    }

    /// Records a successful outbound handshake and the peer's services.
    pub(super) fn address_is_good(&self, peer: &Peer) {
        if !peer.connection.is_inbound() {
            self.known.good(&peer.address);
        }
    }

    pub(super) fn address_offers(&self, peer: &Peer, services: u64) {
        if !peer.connection.is_inbound() {
            self.known.set_services(&peer.address, services);
        }
    }

    /// Updates the time of the address at disconnection, except for block-relay-only connections, which it would reveal.
    pub(super) fn address_left(&self, peer: &Peer) {
        let is_shown = matches!(
            peer.connection,
            Connection::FullRelay | Connection::Manual | Connection::AddrFetch | Connection::Feeler
        );
        if is_shown && peer.is_ready() {
            self.known.connected(&peer.address);
        }
    }
}

/// Core `net_processing.cpp`, `MAX_PCT_ADDR_TO_SEND`, `MAX_ADDR_TO_SEND`.
const WANTED_BY_PEERS: Wanted = Wanted { count_max: ADDRESSES_MAX, percent_max: 23, network: None };
/// Lifetime of a cached response: 21 to 27 hours (Core `net.cpp`, `GetAddresses`).
const ANSWER_US: u64 = 21 * 3_600_000_000;
const ANSWER_MORE_US: u64 = 6 * 3_600_000_000;
const ANSWERS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_cached_per_network_and_address() {
        let bound = |text: &str| text.parse::<SocketAddr>().unwrap();
        let way = (NetworkKind::Ipv4, bound("127.0.0.1:18444"));
        let mut answers = Answers::default();
        answers.put(way, Answer { until_us: 100, addresses: Vec::new() });
        assert!(answers.get(way, 100).is_some());
        assert!(answers.get(way, 101).is_none(), "its time is over");
        for other in [
            (NetworkKind::Ipv6, way.1),
            (NetworkKind::Ipv4, bound("127.0.0.1:18445")),
            (NetworkKind::Ipv4, bound("127.0.0.2:18444")),
        ] {
            assert!(answers.get(other, 100).is_none(), "{other:?}");
        }
        for port in 0..ANSWERS_MAX as u16 {
            let way = (NetworkKind::Ipv4, SocketAddr::from(([127, 0, 0, 3], port)));
            answers.put(way, Answer { until_us: 100, addresses: Vec::new() });
            assert!(answers.get(way, 100).is_some() && answers.0.len() <= ANSWERS_MAX);
        }
    }
}
