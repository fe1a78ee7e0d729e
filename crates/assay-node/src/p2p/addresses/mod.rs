//! Address relay: addresses sent to peers, and filtering of received ones (Core `net_processing.cpp`).

mod receive;
mod relay;

pub(super) use self::relay::v1;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};

use assay_hash::SipHash24;
use assay_wire::p2p::{ADDRESSES_MAX, Host, NetworkKind, PeerAddress};

use super::addrman::{AddrMan, Wanted};
use super::peers::{Connection, Peer};
use super::txs::{Recent, exponential_us, random};
use super::{Network, Shared};

/// Address relay state shared by all peers.
pub(super) struct Addresses {
    pub(super) known: AddrMan,
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

#[expect(clippy::struct_excessive_bools, reason = "each says another thing of the peer")]
pub(crate) struct AddressRelay {
    pub(crate) is_enabled: bool,
    /// True if the peer understands `addrv2` (BIP155).
    pub(super) wants_v2: bool,
    /// True while a `getaddr` is unanswered.
    pub(super) was_asked: bool,
    has_asked: bool,
    /// Number of further addresses accepted now.
    tokens: f64,
    /// Time of the last refill, microseconds by the node's clock; 0 for never.
    counted_us: u64,
    pub(crate) processed: u64,
    pub(crate) rate_limited: u64,
    known: Recent,
    to_send: Vec<PeerAddress>,
    /// Next announcement, microseconds by the node's clock.
    next_us: u64,
    /// Next announcement of our own address; 0 before the first one.
    pub(super) next_own_us: u64,
}

impl Default for AddressRelay {
    fn default() -> Self {
        Self {
            is_enabled: false,
            wants_v2: false,
            was_asked: false,
            has_asked: false,
            tokens: 1.0,
            counted_us: 0,
            processed: 0,
            rate_limited: 0,
            known: Recent::new(KNOWN_MAX),
            to_send: Vec::new(),
            next_us: 0,
            next_own_us: 0,
        }
    }
}

impl AddressRelay {
    pub(super) fn fits(&self, address: &PeerAddress) -> bool {
        self.wants_v2 || address.endpoint.host.fits_v1()
    }

    pub(super) fn push(&mut self, address: &PeerAddress) {
        let endpoint = &address.endpoint;
        if !endpoint.host.is_valid() || self.known.contains(endpoint) || !self.fits(address) {
            return;
        }
        if self.to_send.len() < ADDRESSES_MAX {
            self.to_send.push(*address);
        } else {
            let place = random(ADDRESSES_MAX as u64) as usize;
            self.to_send[place] = *address;
        }
    }

    /// Allows all addresses to be sent again.
    pub(super) fn forget_known(&mut self) {
        self.known = Recent::new(KNOWN_MAX);
    }

    fn refill(&mut self, now_us: u64) {
        let passed_us = now_us.saturating_sub(self.counted_us);
        if self.counted_us != 0 && self.tokens < TOKENS_MAX {
            let added = passed_us as f64 / 1e6 * TOKENS_PER_S;
            self.tokens = (self.tokens + added).min(TOKENS_MAX);
        }
        self.counted_us = now_us;
    }
}

impl Addresses {
    pub(super) fn new(known: AddrMan, networks: Vec<NetworkKind>) -> Self {
        let word = || random(u64::MAX);
        let chooser = SipHash24::new(word(), word());
        Self { known, networks, chooser, answers: Mutex::default() }
    }

    /// Address group hashed with a secret key.
    pub(super) fn group_name(&self, host: &Host) -> u64 {
        self.chooser.hash(&host.group())
    }

    pub(super) fn reachable(&self) -> &[NetworkKind] {
        &self.networks
    }

    pub(super) fn can_reach(&self, host: &Host) -> bool {
        let network = host.network();
        matches!(network, NetworkKind::Unroutable | NetworkKind::Internal)
            || self.networks.contains(&network)
    }
}

impl Shared {
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
            tracing::debug!(
                target: "net", "Ignoring \"getaddr\" from {kind} connection. peer={id}"
            );
            return;
        }
        Self::start_address_relay(peer);
        let has_asked = peer.with_addresses(|relay| std::mem::replace(&mut relay.has_asked, true));
        if has_asked {
            tracing::debug!(target: "net", "Ignoring repeated \"getaddr\". peer={id}");
            return;
        }
        let answer = if peer.permissions.has(super::permissions::Permissions::ADDR) {
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
        let mut answers = self.addresses.answers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(addresses) = answers.get(way, now_us) {
            return addresses.to_vec();
        }
        let addresses = self.listed(&WANTED_BY_PEERS);
        let until_us = now_us + ANSWER_US + random(ANSWER_MORE_US);
        answers.put(way, Answer { until_us, addresses: addresses.clone() });
        addresses
    }

    /// Random known addresses without banned ones.
    fn listed(&self, wanted: &Wanted) -> Vec<PeerAddress> {
        let mut found = self.addresses.known.list(wanted);
        found.retain(|address| !self.is_banned(&address.endpoint.host));
        found
    }

    pub(super) fn is_banned(&self, host: &Host) -> bool {
        self.bans.has_banned_host(host) || self.bans.is_discouraged(host)
    }

    /// Records a successful outbound handshake and the peer's services.
    pub(super) fn address_is_good(&self, peer: &Peer) {
        if !peer.connection.is_inbound() {
            self.addresses.known.good(&peer.address);
        }
    }

    pub(super) fn address_offers(&self, peer: &Peer, services: u64) {
        if !peer.connection.is_inbound() {
            self.addresses.known.set_services(&peer.address, services);
        }
    }

    /// Updates the time of the address at disconnection, except for block-relay-only connections, which it would reveal.
    pub(super) fn address_left(&self, peer: &Peer) {
        let is_shown = matches!(
            peer.connection,
            Connection::FullRelay | Connection::Manual | Connection::AddrFetch | Connection::Feeler
        );
        if is_shown && peer.is_ready() {
            self.addresses.known.connected(&peer.address);
        }
    }
}

impl Network {
    pub(crate) fn known_addresses(&self) -> &AddrMan {
        &self.0.addresses.known
    }

    /// Random addresses, of one network if given; `count_max` 0 for all.
    pub(crate) fn list_addresses(
        &self,
        count_max: usize,
        network: Option<NetworkKind>,
    ) -> Vec<PeerAddress> {
        self.0.listed(&Wanted { count_max, percent_max: 0, network })
    }

    pub(crate) fn can_reach(&self, network: NetworkKind) -> bool {
        self.0.addresses.networks.contains(&network)
    }

    /// Interprets IPv6 addresses in `fc00::/8` as CJDNS if that network is reachable.
    pub(crate) fn host_of(&self, host: Host) -> Host {
        if self.can_reach(NetworkKind::Cjdns) { host.or_cjdns() } else { host }
    }
}

/// Core `net_processing.cpp`, `MAX_PCT_ADDR_TO_SEND`, `MAX_ADDR_TO_SEND`.
const WANTED_BY_PEERS: Wanted = Wanted { count_max: ADDRESSES_MAX, percent_max: 23, network: None };
/// Size of Core's filter of known addresses.
const KNOWN_MAX: usize = 5000;
/// Core `net_processing.cpp`, `MAX_ADDR_RATE_PER_SECOND`, `MAX_ADDR_PROCESSING_TOKEN_BUCKET`.
const TOKENS_PER_S: f64 = 0.1;
const TOKENS_MAX: f64 = ADDRESSES_MAX as f64;
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
