//! DNS seeding when few addresses are known (Core `net.cpp`, `ThreadDNSAddressSeed`).

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use std::{io, thread};

use assay_wire::p2p::{Endpoint, Host, PeerAddress};

use super::P2p;
use super::peers::Connection;
use super::rng::{random, shuffle};
use super::seeds::{ASKED, ASSUMED, Seeds};

trait SeedEnv {
    /// Number of automatic full-relay peers that have completed the handshake.
    fn full_relay_count(&self) -> usize;
    fn known_count(&self) -> usize;
    fn is_active(&self) -> bool;
    fn now_s(&self) -> u64;
    /// `false` once the node stops.
    fn sleep(&self, time: Duration) -> bool;
    /// True if names go to a proxy: the node itself must not query DNS.
    fn has_name_proxy(&self) -> bool;
    fn look_up(&self, host: &str) -> Vec<IpAddr>;
    fn keep(&self, found: &[IpAddr], source: &Host);
    /// Makes an `addr-fetch` connection to a host name.
    fn fetch_from(&self, name: &str);
}

#[derive(Clone, Copy, Debug)]
struct SeedOptions {
    /// True if seed nodes are configured, which come first.
    has_seed_nodes: bool,
    /// Query DNS even when addresses are known.
    is_forced: bool,
}

pub(super) fn ask(shared: &Arc<P2p>) -> io::Result<Option<thread::JoinHandle<()>>> {
    let config = &shared.peers.config;
    if !config.asks_dns {
        tracing::info!("DNS seeding disabled");
        return Ok(None);
    }
    let wishes =
        SeedOptions { has_seed_nodes: !config.seed_nodes.is_empty(), is_forced: config.forces_dns };
    let params = shared.engine.params();
    let may_ask = !params.name.ends_with("regtest") || shared.has_name_proxy();
    let own: Vec<&str> = config.dns_seeds.iter().map(String::as_str).collect();
    let names = if own.is_empty() { Seeds::of(params).names } else { &own };
    let mut names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    names.retain(|_| may_ask);
    shuffle(&mut names);
    let shared = Arc::clone(shared);
    let builder = thread::Builder::new().name("p2p-dnsseed".to_owned());
    builder.spawn(move || run(&*shared, &names, wishes)).map(Some)
}

fn run(node: &impl SeedEnv, names: &[String], wishes: SeedOptions) {
    let mut peers = 0;
    if wishes.has_seed_nodes {
        let Some(count) = wait_for_seed_nodes(node) else { return };
        peers = count;
    }
    let mut right_now = if wishes.is_forced || node.known_count() == 0 { names.len() } else { 0 };
    if peers >= ENOUGH_PEERS && right_now == 0 {
        tracing::info!("Skipping DNS seeds. Enough peers have been found");
        return;
    }
    let wait = if node.known_count() >= MANY_KNOWN { DELAY_MANY } else { DELAY_FEW };
    let mut found = 0;
    for name in names {
        if right_now == 0 {
            right_now = AT_ONCE;
            if node.known_count() > 0 && !wait_for_peers(node, wait, found) {
                return;
            }
        }
        if !node.sleep(Duration::ZERO) || !wait_for_network(node) {
            return;
        }
        tracing::info!("Loading addresses from DNS seed {name}");
        found += ask_one(node, name);
        right_now -= 1;
    }
    tracing::info!("{found} addresses found from DNS seeds");
}

/// Gives the seed nodes half a minute. Returns the number of peers; `None` when the node stops.
fn wait_for_seed_nodes(node: &impl SeedEnv) -> Option<usize> {
    let patience_s = SEED_NODES.as_secs();
    tracing::info!(
        "-seednode enabled. Trying the provided seeds for {patience_s} seconds before defaulting to the dnsseeds."
    );
    let start_s = node.now_s();
    let mut peers = 0;
    while node.sleep(LOOK) {
        if node.now_s() > start_s + patience_s {
            tracing::info!(
                "Couldn't connect to enough peers via seed nodes. Handing fetch logic to the DNS seeds."
            );
            return Some(peers);
        }
        peers = node.full_relay_count();
        if peers >= ENOUGH_PEERS {
            tracing::info!("P2P peers available. Finished fetching data from seed nodes.");
            return Some(peers);
        }
    }
    None
}

/// Waits for connections to known addresses; `false` if they suffice, or when the node stops.
fn wait_for_peers(node: &impl SeedEnv, wait: Duration, found: usize) -> bool {
    tracing::info!("Waiting {} seconds before querying DNS seeds.", wait.as_secs());
    let mut left = wait;
    while !left.is_zero() {
        let step = left.min(DELAY_FEW);
        if !node.sleep(step) {
            return false;
        }
        left -= step;
        if node.full_relay_count() >= ENOUGH_PEERS {
            if found > 0 {
                tracing::info!("{found} addresses found from DNS seeds");
                tracing::info!("P2P peers available. Finished DNS seeding.");
            } else {
                tracing::info!("P2P peers available. Skipped DNS seeding.");
            }
            return false;
        }
    }
    true
}

/// `false` when the node stops.
fn wait_for_network(node: &impl SeedEnv) -> bool {
    if node.is_active() {
        return true;
    }
    tracing::info!("Waiting for network to be reactivated before querying DNS seeds.");
    while node.sleep(Duration::from_secs(1)) {
        if node.is_active() {
            return true;
        }
    }
    false
}

/// Returns the number of addresses of a seed.
fn ask_one(node: &impl SeedEnv, name: &str) -> usize {
    if node.has_name_proxy() {
        node.fetch_from(name);
        return 0;
    }
    let host = format!("x{ASKED:x}.{name}");
    let mut found = node.look_up(&host);
    found.truncate(ADDRESSES_MAX);
    if found.is_empty() {
        // The seed may not support names with service bits.
        node.fetch_from(name);
    } else {
        node.keep(&found, &Host::of_name(&host));
    }
    found.len()
}

impl SeedEnv for P2p {
    fn full_relay_count(&self) -> usize {
        let is_one =
            |peer: &super::Peer| peer.connection == Connection::FullRelay && peer.is_ready();
        self.peers.list().iter().filter(|peer| is_one(peer)).count()
    }

    fn known_count(&self) -> usize {
        self.addresses.known.count(None).total()
    }

    fn is_active(&self) -> bool {
        self.peers.is_active()
    }

    fn now_s(&self) -> u64 {
        self.engine.clock().now_s()
    }

    fn sleep(&self, time: Duration) -> bool {
        let mut left = time;
        while !left.is_zero() && !self.engine.is_shutting_down() {
            let step = left.min(STEP);
            thread::sleep(step);
            left -= step;
        }
        !self.engine.is_shutting_down()
    }

    fn has_name_proxy(&self) -> bool {
        self.has_name_proxy()
    }

    fn look_up(&self, host: &str) -> Vec<IpAddr> {
        self.peers.config.resolver.look_up(host).unwrap_or_default()
    }

    fn keep(&self, found: &[IpAddr], source: &Host) {
        let now_s = self.engine.clock().now_s();
        let port = self.engine.params().p2p_port;
        let entry = |ip: &IpAddr| {
            let time = now_s.saturating_sub(AGE_MIN_S + random(AGE_MORE_S));
            PeerAddress {
                time: u32::try_from(time).unwrap_or(u32::MAX),
                services: ASSUMED,
                endpoint: Endpoint { host: Host::from(*ip), port },
            }
        };
        let entries: Vec<_> = found.iter().map(entry).collect();
        self.addresses.known.add(&entries, source, 0);
    }

    fn fetch_from(&self, name: &str) {
        self.fetch_addresses_from(name);
    }
}

/// Core `net.cpp`, `SEED_OUTBOUND_CONNECTION_THRESHOLD`.
pub(super) const ENOUGH_PEERS: usize = 2;
/// `SEEDNODE_TIMEOUT`.
const SEED_NODES: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(500);
const STEP: Duration = Duration::from_millis(100);
/// `DNSSEEDS_TO_QUERY_AT_ONCE`.
const AT_ONCE: usize = 3;
/// `DNSSEEDS_DELAY_PEER_THRESHOLD`.
const MANY_KNOWN: usize = 1000;
/// `DNSSEEDS_DELAY_FEW_PEERS`, `DNSSEEDS_DELAY_MANY_PEERS`.
const DELAY_FEW: Duration = Duration::from_secs(11);
const DELAY_MANY: Duration = Duration::from_mins(5);
/// Per seed, so that none fills the tables alone.
const ADDRESSES_MAX: usize = 32;
/// Addresses count as seen three to seven days ago.
const AGE_MIN_S: u64 = 3 * 24 * 3600;
const AGE_MORE_S: u64 = 4 * 24 * 3600;

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    /// Node whose clock advances during sleeps.
    #[derive(Default)]
    struct Synthetic {
        now: Cell<Duration>,
        stops_at: Option<Duration>,
        known: Cell<usize>,
        /// Time from which it has peers.
        peers_at: Option<Duration>,
        active_at: Duration,
        has_proxy: bool,
        answers: usize,
        done: RefCell<Vec<(u64, String)>>,
    }

    impl Synthetic {
        fn note(&self, text: String) {
            self.done.borrow_mut().push((self.now.get().as_secs(), text));
        }

        /// Actions with their times.
        fn runs(&self, count: usize, has_seed_nodes: bool, is_forced: bool) -> Vec<(u64, String)> {
            let names: Vec<String> = (0..count).map(|number| format!("s{number}.")).collect();
            run(self, &names, SeedOptions { has_seed_nodes, is_forced });
            self.done.take()
        }
    }

    impl SeedEnv for Synthetic {
        fn full_relay_count(&self) -> usize {
            if self.peers_at.is_some_and(|at| self.now.get() >= at) { 2 } else { 1 }
        }

        fn known_count(&self) -> usize {
            self.known.get()
        }

        fn is_active(&self) -> bool {
            self.now.get() >= self.active_at
        }

        fn now_s(&self) -> u64 {
            self.now.get().as_secs()
        }

        fn sleep(&self, time: Duration) -> bool {
            self.now.set(self.now.get() + time);
            self.stops_at.is_none_or(|at| self.now.get() < at)
        }

        fn has_name_proxy(&self) -> bool {
            self.has_proxy
        }

        fn look_up(&self, host: &str) -> Vec<IpAddr> {
            self.note(host.to_owned());
            vec![[9, 9, 9, 9].into(); self.answers]
        }

        fn keep(&self, found: &[IpAddr], _: &Host) {
            self.known.set(self.known.get() + found.len());
        }

        fn fetch_from(&self, name: &str) {
            self.note(format!("fetch {name}"));
        }
    }

    fn texts(done: &[(u64, String)]) -> Vec<String> {
        done.iter().map(|(at, text)| format!("{at} {text}")).collect()
    }

    #[test]
    fn queries_all_seeds_without_known_addresses() {
        let node = Synthetic { answers: 40, ..Synthetic::default() };
        assert_eq!(texts(&node.runs(2, false, false)), ["0 x9.s0.", "0 x9.s1."]);
        assert_eq!(node.known.get(), 64, "32 of each");
    }

    #[test]
    fn known_addresses_are_tried_first() {
        let node = Synthetic { answers: 1, known: Cell::new(5), ..Synthetic::default() };
        let asked = node.runs(4, false, false);
        assert_eq!(
            texts(&asked),
            ["11 x9.s0.", "11 x9.s1.", "11 x9.s2.", "22 x9.s3."],
            "three at once, and then it is waited again"
        );
        let node = Synthetic { answers: 1, known: Cell::new(1000), ..Synthetic::default() };
        assert_eq!(texts(&node.runs(1, false, false)), ["300 x9.s0."]);
        let node = Synthetic {
            known: Cell::new(1000),
            peers_at: Some(Duration::from_secs(20)),
            ..Synthetic::default()
        };
        assert_eq!(texts(&node.runs(4, false, false)), [""; 0]);
        assert_eq!(node.now_s(), 22, "peers are noticed every 11 s");
    }

    #[test]
    fn unresolved_and_proxied_seeds_are_fetched_from() {
        let node = Synthetic::default();
        assert_eq!(texts(&node.runs(1, false, false)), ["0 x9.s0.", "0 fetch s0."]);
        let node = Synthetic { has_proxy: true, ..Synthetic::default() };
        assert_eq!(texts(&node.runs(1, false, false)), ["0 fetch s0."]);
    }

    #[test]
    fn seed_nodes_get_30_seconds() {
        let node = Synthetic { answers: 1, ..Synthetic::default() };
        assert_eq!(texts(&node.runs(1, true, false)), ["31 x9.s0."]);
        let peers_at = Some(Duration::from_secs(3));
        let found =
            || Synthetic { answers: 1, known: Cell::new(9), peers_at, ..Synthetic::default() };
        assert_eq!(texts(&found().runs(1, true, false)), [""; 0]);
        assert_eq!(texts(&found().runs(1, true, true)), ["3 x9.s0."]);
    }

    #[test]
    fn no_queries_while_inactive_or_stopping() {
        let active_at = Duration::from_secs(7);
        let node = Synthetic { answers: 1, active_at, ..Synthetic::default() };
        assert_eq!(texts(&node.runs(1, false, false)), ["7 x9.s0."]);
        for (known, has_seed_nodes) in [(0, true), (5, false)] {
            let stops_at = Some(Duration::from_secs(2));
            let node = Synthetic { known: Cell::new(known), stops_at, ..Synthetic::default() };
            assert!(node.runs(1, has_seed_nodes, false).is_empty());
        }
    }
}
