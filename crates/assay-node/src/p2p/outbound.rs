//! Automatic outbound connections to known addresses (Core `net.cpp`, `ThreadOpenConnections`).

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use assay_wire::encode::compact_size;
use assay_wire::p2p::{Endpoint, Host, NetworkKind, PeerAddress};

use super::addrman::{FileReader, replace_file, seal, write_address};
use super::bootstrap::Bootstrap;
use super::config::P2pConfig;
use super::dial::dial_automatic;
use super::dns::same_endpoint;
use super::peers::{Connection, Peer};
use super::rng::{exponential_us, random};
use super::sync::Extra;
use super::{NODE_NETWORK, NODE_NETWORK_LIMITED, P2p};

pub(super) fn open_connections(shared: &Arc<P2p>) -> io::Result<thread::JoinHandle<()>> {
    let shared = Arc::clone(shared);
    thread::Builder::new().name("p2p-open".to_owned()).spawn(move || {
        tracing::info!("opencon thread start");
        let now_us = shared.engine.clock().now_us();
        let anchors = shared.take_anchors();
        let mut plan = Plan::new(anchors, now_us);
        plan.bootstrap = Some(Bootstrap::new(&shared));
        while !shared.engine.is_shutting_down() {
            thread::sleep(LOOK);
            plan.step(&shared);
        }
    })
}

struct Plan {
    /// Block-relay-only peers at the last shutdown: an eclipse attack does not survive a restart for free.
    anchors: Vec<PeerAddress>,
    /// Next feeler connection, microseconds by the node's clock.
    next_feeler_us: u64,
    /// Next extra block-relay-only connection, if enabled.
    next_block_relay_us: u64,
    /// Next search for a network without a connection.
    next_network_us: u64,
    bootstrap: Option<Bootstrap>,
}

#[derive(Debug, Default)]
struct Connections {
    full_relay: usize,
    block_relay: usize,
    /// Address groups of automatic and manual peers on IPv4 and IPv6: one peer per group.
    groups: BTreeSet<Vec<u8>>,
    /// Networks of full-relay and manual peers.
    networks: BTreeSet<NetworkKind>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) full_relay: usize,
    pub(super) block_relay: usize,
}

impl Limits {
    /// Core `net.h`, `MAX_OUTBOUND_FULL_RELAY_CONNECTIONS`, `MAX_BLOCK_RELAY_ONLY_CONNECTIONS`.
    fn new(peers_max: usize) -> Self {
        let full_relay = peers_max.min(FULL_RELAY_MAX);
        Self { full_relay, block_relay: (peers_max - full_relay).min(2) }
    }
}

impl P2pConfig {
    pub(super) fn outbound_limits(&self) -> Limits {
        Limits::new(self.peers_max)
    }
}

impl Plan {
    fn new(anchors: Vec<PeerAddress>, now_us: u64) -> Self {
        Self {
            anchors,
            next_feeler_us: now_us + exponential_us(FEELER_US),
            next_block_relay_us: now_us + exponential_us(BLOCK_RELAY_US),
            next_network_us: now_us + exponential_us(NETWORK_US),
            bootstrap: None,
        }
    }

    fn step(&mut self, shared: &Arc<P2p>) {
        let made = shared.made();
        if let Some(bootstrap) = &mut self.bootstrap {
            bootstrap.step(shared, made.full_relay);
        }
        let limits = shared.peers.config.outbound_limits();
        if let Some(anchor) = self.next_anchor(shared, &made, limits) {
            let endpoint = anchor.endpoint;
            net!("Trying to make an anchor connection to {endpoint}");
            return shared.open(&anchor, Connection::BlockRelayOnly, false);
        }
        let now_us = shared.engine.clock().now_us();
        let (connection, only) = match self.next_kind(&made, limits, &shared.sync.extra, now_us) {
            Some(connection) => (connection, None),
            // At least one connection per network.
            None => match self.next_network(shared, &made, limits, now_us) {
                Some(network) => (Connection::FullRelay, Some(network)),
                None => return,
            },
        };
        shared.addresses.known.resolve_collisions();
        if let Some(address) = shared.next_address(connection, only, &made) {
            // Without some connections the fault may be local.
            let counts = made.groups.len() >= COUNTING_MIN;
            shared.open(&address, connection, counts);
        }
    }

    fn next_anchor(
        &mut self,
        shared: &P2p,
        made: &Connections,
        limits: Limits,
    ) -> Option<PeerAddress> {
        if made.block_relay >= limits.block_relay {
            return None;
        }
        while let Some(anchor) = self.anchors.pop() {
            let host = anchor.endpoint.host;
            if host.is_valid()
                && shared.addresses.can_reach(&host)
                && shared.offers_enough(anchor.services)
                && !made.groups.contains(&host.group())
            {
                return Some(anchor);
            }
        }
        None
    }

    /// Type of the next connection: full relay, then block-relay-only, an extra one of each on demand, and periodic feelers.
    fn next_kind(
        &mut self,
        made: &Connections,
        limits: Limits,
        extra: &Extra,
        now_us: u64,
    ) -> Option<Connection> {
        if made.full_relay < limits.full_relay {
            return Some(Connection::FullRelay);
        }
        if made.block_relay < limits.block_relay {
            return Some(Connection::BlockRelayOnly);
        }
        if extra.wants_full_relay() {
            return Some(Connection::FullRelay);
        }
        if now_us > self.next_block_relay_us && extra.wants_block_relay() {
            self.next_block_relay_us = now_us + exponential_us(BLOCK_RELAY_US);
            return Some(Connection::BlockRelayOnly);
        }
        let is_due = now_us > self.next_feeler_us;
        if is_due {
            self.next_feeler_us = now_us + exponential_us(FEELER_US);
        }
        is_due.then_some(Connection::Feeler)
    }

    /// Network without a connection but with known addresses; checked periodically, only when all slots are taken.
    fn next_network(
        &mut self,
        shared: &P2p,
        made: &Connections,
        limits: Limits,
        now_us: u64,
    ) -> Option<NetworkKind> {
        let is_due = now_us > self.next_network_us
            && made.full_relay == limits.full_relay
            && limits.full_relay == FULL_RELAY_MAX;
        if !is_due {
            return None;
        }
        let (known, reachable) = (&shared.addresses.known, shared.addresses.reachable());
        let lacking = reachable.iter().copied().filter(|network| {
            !made.networks.contains(network) && known.count(Some(*network)).total() > 0
        });
        let lacking: Vec<NetworkKind> = lacking.collect();
        let chosen = lacking.get(random(lacking.len().max(1) as u64) as usize).copied()?;
        self.next_network_us = now_us + exponential_us(NETWORK_US);
        Some(chosen)
    }
}

impl P2p {
    fn made(&self) -> Connections {
        let mut made = Connections::default();
        for peer in self.peers.list() {
            match peer.connection {
                Connection::FullRelay => made.full_relay += 1,
                Connection::BlockRelayOnly => made.block_relay += 1,
                Connection::Manual => {}
                Connection::Inbound | Connection::Feeler | Connection::AddrFetch => continue,
            }
            made.groups.insert(peer.address.host.group());
            if peer.connection != Connection::BlockRelayOnly {
                made.networks.insert(peer.network());
            }
        }
        made
    }

    /// Address for a connection type, if found in a hundred tries.
    fn next_address(
        &self,
        connection: Connection,
        only: Option<NetworkKind>,
        made: &Connections,
    ) -> Option<PeerAddress> {
        let (known, is_feeler) = (&self.addresses.known, connection == Connection::Feeler);
        let networks = only.as_slice();
        let networks = if only.is_some() { networks } else { self.addresses.reachable() };
        let now_s = i64::try_from(self.engine.clock().now_s()).unwrap_or(i64::MAX);
        for tries in 1..=TRIES_MAX {
            let collision = if is_feeler { known.select_collision() } else { None };
            let collision = collision.filter(|(address, _)| {
                let is_connected = self.is_connected_to(&address.endpoint);
                if is_connected {
                    // The existing connection answers the test.
                    known.good(&address.endpoint);
                }
                !is_connected
            });
            let (address, tried_s) = collision.or_else(|| known.select(is_feeler, networks))?;
            let host = address.endpoint.host;
            if is_feeler || !made.groups.contains(&host.group()) {
                let was_tried_lately = now_s - tried_s < TRIED_LATELY_S && tries < LATE_TRIES_FROM;
                let offers = if is_feeler {
                    address.services & (NODE_NETWORK | NODE_NETWORK_LIMITED) != 0
                } else {
                    self.offers_enough(address.services)
                };
                // Lower ports belong to other services, which attackers could make nodes disturb.
                let is_likely = address.endpoint.port >= PORT_MIN || tries >= PORT_TRIES_FROM;
                if !was_tried_lately && offers && is_likely && self.addresses.can_reach(&host) {
                    return Some(address);
                }
            }
        }
        None
    }

    fn is_connected_to(&self, endpoint: &Endpoint) -> bool {
        self.peers.list().iter().any(|peer| same_endpoint(&peer.address, endpoint))
    }

    fn open(self: &Arc<Self>, address: &PeerAddress, connection: Connection, counts: bool) {
        let endpoint = address.endpoint;
        self.addresses.known.attempt(&endpoint, counts);
        if let Err(error) = dial_automatic(self, &endpoint, connection) {
            net!("Connecting to {endpoint} failed: {error}");
        }
    }

    /// Reads and removes the anchors file: if an anchor crashes the node, it is not tried again.
    fn take_anchors(&self) -> Vec<PeerAddress> {
        let path = self.anchors_path();
        let read = std::fs::read(&path).ok();
        let read = read.and_then(|bytes| parse_anchors(&bytes, self.peers.magic));
        let mut anchors = read.unwrap_or_default();
        if path.exists()
            && let Err(error) = std::fs::remove_file(&path)
        {
            tracing::warn!("Cannot remove {}: {error}", path.display());
        }
        anchors.truncate(ANCHORS_MAX);
        tracing::info!("{} block-relay-only anchors will be tried for connections.", anchors.len());
        anchors
    }

    pub(super) fn save_anchors(&self) {
        let peers = self.peers.list();
        let chosen = peers.iter().filter(|peer| peer.connection == Connection::BlockRelayOnly);
        let chosen: Vec<_> = chosen.take(ANCHORS_MAX).collect();
        let count = chosen.len();
        tracing::info!(
            "DumpAnchors: Flush {count} outbound block-relay-only peer addresses to anchors.dat"
        );
        let anchor = |peer: &Arc<Peer>| {
            let services = peer.facts().services;
            PeerAddress { time: NO_TIME, services, endpoint: peer.address }
        };
        let anchors: Vec<_> = chosen.into_iter().map(anchor).collect();
        let path = self.anchors_path();
        if let Err(error) = replace_file(&path, &anchors_file(&anchors, self.peers.magic)) {
            tracing::error!("Cannot write {}: {error}", path.display());
        }
    }

    fn anchors_path(&self) -> PathBuf {
        self.engine.config().datadir.join("anchors.dat")
    }

    fn offers_enough(&self, services: u64) -> bool {
        let wanted = self.peers.desirable_services(services);
        services & wanted == wanted
    }

    /// True if a host may be connected automatically; on regtest a local one, or by proxy, as test addresses are synthetic.
    pub(super) fn may_open(&self, host: &Host) -> bool {
        is_in_reach(self.engine.params().name, host) || self.proxy_for(host).is_some()
    }
}

/// True if a node of this chain may connect to the host: on regtest, only local hosts.
fn is_in_reach(chain: &str, host: &Host) -> bool {
    !chain.ends_with("regtest") || host.is_local()
}

pub(super) fn parse_anchors(bytes: &[u8], magic: [u8; 4]) -> Option<Vec<PeerAddress>> {
    let mut reader = FileReader::open(bytes, magic).ok()?;
    // Core writes two; neither program writes more than 252.
    let count = reader.byte().ok().filter(|count| *count < 253)?;
    let anchors = (0..count).map(|_| reader.address(true).ok());
    let anchors = anchors.collect::<Option<Vec<_>>>()?;
    reader.close().ok()?;
    Some(anchors)
}

pub(super) fn anchors_file(anchors: &[PeerAddress], magic: [u8; 4]) -> Vec<u8> {
    let mut bytes = magic.to_vec();
    compact_size(&mut bytes, anchors.len() as u64);
    for anchor in anchors {
        write_address(anchor, &mut bytes);
    }
    seal(bytes)
}

const LOOK: Duration = Duration::from_millis(500);
/// Core `net.cpp`, `FEELER_INTERVAL`.
const FEELER_US: u64 = 120_000_000;
/// `EXTRA_BLOCK_RELAY_ONLY_PEER_INTERVAL`, `EXTRA_NETWORK_PEER_INTERVAL`.
const BLOCK_RELAY_US: u64 = 300_000_000;
const NETWORK_US: u64 = 300_000_000;
/// Core `net.h`, `MAX_OUTBOUND_FULL_RELAY_CONNECTIONS`.
const FULL_RELAY_MAX: usize = 8;
/// Core `net.cpp`, `MAX_BLOCK_RELAY_ONLY_ANCHORS`.
const ANCHORS_MAX: usize = 2;
const TRIES_MAX: usize = 100;
const LATE_TRIES_FROM: usize = 30;
const TRIED_LATELY_S: i64 = 600;
/// Core has a list of ports (`netbase.cpp`, `IsBadPort`); nearly all are below this one.
const PORT_MIN: u16 = 1024;
const PORT_TRIES_FROM: usize = 50;
const COUNTING_MIN: usize = 2;
/// Core `protocol.h`, `CAddress::TIME_INIT`: anchors have no time.
const NO_TIME: u32 = 100_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regtest_connects_to_local_hosts_only() {
        let hosts =
            ["127.0.0.1", "127.3.2.1", "::1", "8.8.8.8", "10.0.0.1", "2001:4860::1", "fe80::1"];
        let hosts = hosts.map(|text| Host::parse(text).unwrap());
        for chain in ["regtest", "bch-regtest"] {
            let is_left = hosts.map(|host| !is_in_reach(chain, &host));
            assert_eq!(is_left, [false, false, false, true, true, true, true]);
        }
        assert!(hosts.iter().all(|host| is_in_reach("main", host)));
    }

    #[test]
    fn full_relay_precedes_block_relay() {
        let limits = Limits::new(125);
        let mut plan = Plan { next_feeler_us: 10, ..Plan::new(Vec::new(), 0) };
        let mut kind = |full_relay, block_relay, now_us| {
            let made = Connections { full_relay, block_relay, ..Connections::default() };
            plan.next_kind(&made, limits, &Extra::default(), now_us)
        };
        assert_eq!(kind(0, 0, 0), Some(Connection::FullRelay));
        assert_eq!(kind(7, 2, 99), Some(Connection::FullRelay));
        assert_eq!(kind(8, 1, 99), Some(Connection::BlockRelayOnly));
        assert_eq!(kind(8, 2, 10), None);
        assert_eq!(kind(8, 2, 11), Some(Connection::Feeler));
        assert_eq!(kind(8, 2, 11), None, "the next one comes minutes later");
    }

    #[test]
    fn small_limits_are_full_relay() {
        let limits = |peers_max| {
            let Limits { full_relay, block_relay } = Limits::new(peers_max);
            (full_relay, block_relay)
        };
        assert_eq!(
            [0, 5, 8, 9, 10, 125].map(limits),
            [(0, 0), (5, 0), (8, 0), (8, 1), (8, 2), (8, 2)]
        );
    }
}
