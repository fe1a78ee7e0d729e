//! Outbound connections.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use assay_wire::p2p::{Endpoint, FrameHeader, Host, NetworkKind};

use super::peers::{Arrival, Connection, Peer};
use super::permissions::Permissions;
use super::rng::shuffle;
use super::wakeup::Wakeup;
use super::{P2p, dns, socks5};

#[derive(Default)]
pub(super) struct PermanentPeers {
    named: Mutex<BTreeMap<String, Named>>,
    /// Rung after an addition.
    added: Wakeup,
}

#[derive(Clone, Copy)]
struct Named {
    at: Instant,
    encrypted: bool,
}

impl PermanentPeers {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Named>> {
        self.named.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum AddNodeError {
    Known,
    Unknown,
}

/// Connects to configured and added permanent peers whenever they are disconnected.
pub(super) fn stay_connected(shared: &Arc<P2p>) -> io::Result<thread::JoinHandle<()>> {
    let shared = Arc::clone(shared);
    let named = shared.peers.config.connect.iter().flatten().chain(&shared.peers.config.add_nodes);
    for name in named {
        let named = Named { at: Instant::now(), encrypted: shared.peers.has_encryption() };
        shared.dialled.lock().insert(name.clone(), named);
    }
    thread::Builder::new().name("p2p-dial".to_owned()).spawn(move || {
        tracing::info!("addcon thread start");
        while !shared.engine.is_shutting_down() {
            let due = if shared.peers.is_active() { shared.due() } else { Vec::new() };
            for (name, encrypted) in due {
                // A peer that does not answer delays the others for seconds at most.
                match dial(&shared, &name, Connection::Manual, encrypted) {
                    Ok(()) => {
                        // After a loss, reconnect soon.
                        shared
                            .dialled
                            .lock()
                            .entry(name)
                            .and_modify(|named| named.at = Instant::now() + AGAIN_SOON);
                    }
                    Err(error) => {
                        net!("Connecting to {name} failed: {error}");
                    }
                }
            }
            shared.dialled.added.wait(LOOK);
        }
    })
}

impl P2p {
    /// Tries to connect once, for some seconds. As in Core, only the log reports the result.
    pub(crate) fn connect(self: &Arc<Self>, name: &str, connection: Connection, encrypted: bool) {
        if let Err(error) = dial(self, name, connection, encrypted) {
            net!("Connecting to {name} failed: {error}");
        }
    }

    pub(crate) fn add_permanent(&self, name: &str, encrypted: bool) -> Result<(), AddNodeError> {
        let port = self.engine.params().p2p_port;
        let numeric = |name: &str| dns::numeric(name, dns::default_port(name, port));
        let address = numeric(name);
        let mut named = self.dialled.lock();
        let is_same =
            |known: &String| known == name || address.is_some() && numeric(known) == address;
        if named.keys().any(is_same) {
            return Err(AddNodeError::Known);
        }
        named.insert(name.to_owned(), Named { at: Instant::now(), encrypted });
        self.dialled.added.ring();
        Ok(())
    }

    pub(crate) fn remove_permanent(&self, name: &str) -> Result<(), AddNodeError> {
        let removed = self.dialled.lock().remove(name);
        removed.map(drop).ok_or(AddNodeError::Unknown)
    }

    pub(crate) fn permanent(&self) -> Vec<String> {
        self.dialled.lock().keys().cloned().collect()
    }

    /// Names due for an attempt, and whether to start encrypted.
    fn due(&self) -> Vec<(String, bool)> {
        let connected: Vec<String> =
            self.peers.list().iter().filter_map(|peer| peer.name.clone()).collect();
        let now = Instant::now();
        let mut due = Vec::new();
        for (name, Named { at, encrypted }) in self.dialled.lock().iter_mut() {
            if connected.contains(name) {
                *at = now + AGAIN_SOON;
            } else if *at <= now {
                *at = now + AGAIN;
                due.push((name.clone(), *encrypted));
            }
        }
        due
    }
}

/// Reconnects in version 1 to an outbound peer that closed the connection after our key without a byte of its own:
/// it does not support the encrypted transport (Core `net.cpp`, `ShouldReconnectV1`).
pub(super) fn retry_without_encryption(shared: &Arc<P2p>, peer: &Peer) {
    let has_answered = peer.traffic.received_bytes.load(Ordering::Relaxed) > 0;
    let sent_bytes = peer.traffic.sent_bytes.load(Ordering::Relaxed);
    let Some(name) = peer.name.as_deref().filter(|_| peer.starts_encrypted && !has_answered) else {
        return;
    };
    if sent_bytes < FrameHeader::SIZE as u64 || shared.engine.is_shutting_down() {
        return;
    }
    net!("retrying with v1 transport protocol for peer={}", peer.id);
    shared.connect(name, peer.connection, false);
}

pub(super) fn dial_automatic(
    shared: &Arc<P2p>,
    endpoint: &Endpoint,
    connection: Connection,
) -> io::Result<()> {
    if !shared.may_open(&endpoint.host) {
        return Err(io::Error::other("on regtest only hosts on this machine are connected to"));
    }
    if shared.addresses.local.has(endpoint) {
        return Err(io::Error::other("it is this node itself"));
    }
    if shared.addresses.is_banned(&endpoint.host) {
        return Err(io::Error::other("it is banned or discouraged"));
    }
    dial(shared, &endpoint.to_string(), connection, shared.peers.has_encryption())
}

/// Makes an `addr-fetch` connection to a host name or DNS seed.
pub(super) fn dial_for_addresses(shared: &Arc<P2p>, name: &str) -> io::Result<()> {
    let default_port = dns::default_port(name, shared.engine.params().p2p_port);
    let is_far =
        dns::numeric(name, default_port).is_none_or(|endpoint| !shared.may_open(&endpoint.host));
    if is_far && shared.engine.params().name.ends_with("regtest") && !shared.has_name_proxy() {
        return Err(io::Error::other("on regtest only hosts on this machine are connected to"));
    }
    dial(shared, name, Connection::AddrFetch, shared.peers.has_encryption())
}

impl P2p {
    /// Proxy for a host; none for local addresses.
    pub(super) fn proxy_for(&self, host: &Host) -> Option<SocketAddr> {
        self.peers.config.proxies.of(host.network())
    }

    /// True if names are resolved by a proxy. A local DNS query would then leak the destination.
    pub(super) fn has_name_proxy(&self) -> bool {
        self.peers.config.proxies.name.is_some()
    }

    fn connect_to(&self, endpoint: &Endpoint) -> io::Result<TcpStream> {
        if let Some(proxy) = self.proxy_for(&endpoint.host) {
            tracing::debug!(target: "proxy", "Using proxy: {proxy} to connect to {endpoint}");
            return self.connect_through(proxy, &endpoint.host.to_string(), endpoint.port);
        }
        let unreachable = || io::Error::other("hosts of its network cannot be connected to");
        let address = endpoint.socket().ok_or_else(unreachable)?;
        TcpStream::connect_timeout(&address, PATIENCE)
    }

    fn connect_through(&self, proxy: SocketAddr, host: &str, port: u16) -> io::Result<TcpStream> {
        let way = socks5::ProxyOptions {
            proxy,
            isolates: self.peers.config.isolates_streams,
            patience: PATIENCE,
            is_stopping: &|| self.engine.is_shutting_down(),
        };
        socks5::connect(&way, host, port)
    }

    /// Addresses of a name in random order; none if a proxy resolves it.
    fn addresses_of(&self, name: &str, default_port: u16) -> io::Result<Vec<Endpoint>> {
        if let Some(endpoint) = dns::numeric(name, default_port) {
            return Ok(vec![endpoint]);
        }
        let is_key = [".onion", ".i2p"].iter().any(|end| dns::split(name, 0).0.ends_with(end));
        if self.has_name_proxy() && !is_key {
            return Ok(Vec::new());
        }
        let (host, port) = dns::split(name, default_port);
        let found = if is_key { Vec::new() } else { self.peers.config.resolver.look_up(host)? };
        let mut found: Vec<Endpoint> =
            found.into_iter().map(|ip| Endpoint { host: ip.into(), port }).collect();
        if found.is_empty() {
            return Err(io::Error::other("the name has no address"));
        }
        shuffle(&mut found);
        Ok(found)
    }

    /// Connects to a host name (Core `net.cpp`, `ConnectNode`); returns the address if resolved locally.
    fn connect_by_name(&self, name: &str) -> io::Result<(TcpStream, Endpoint)> {
        let default_port = dns::default_port(name, self.engine.params().p2p_port);
        let addresses = self.addresses_of(name, default_port)?;
        if let (Some(proxy), []) = (self.peers.config.proxies.name, addresses.as_slice()) {
            let (host, port) = dns::split(name, default_port);
            let stream = self.connect_through(proxy, host, port)?;
            return Ok((stream, Endpoint { host: Host::NONE, port: 0 }));
        }
        let peers = self.peers.list();
        let mut failed = io::Error::other("the name has no address");
        let hosts = addresses.into_iter().map(|Endpoint { host, port }| Endpoint {
            host: if self.addresses.reachable().contains(&NetworkKind::Cjdns) {
                host.or_cjdns()
            } else {
                host
            },
            port,
        });
        let addresses: Vec<Endpoint> = hosts.collect();
        let is_at =
            |peer: &Peer| addresses.iter().any(|one| dns::same_endpoint(one, &peer.address));
        if peers.iter().any(|peer| is_at(peer)) {
            return Err(io::Error::other("it is connected already"));
        }
        for endpoint in addresses {
            match self.connect_to(&endpoint) {
                Ok(stream) => return Ok((stream, endpoint)),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }
}

fn dial(shared: &Arc<P2p>, name: &str, connection: Connection, encrypted: bool) -> io::Result<()> {
    if !shared.peers.is_active() {
        return Err(io::Error::other("the network is switched off"));
    }
    if shared.peers.list().iter().any(|peer| peer.name.as_deref() == Some(name)) {
        return Err(io::Error::other("it is connected already"));
    }
    let (transport, kind) = (if encrypted { "v2" } else { "v1" }, connection.name());
    net!("trying {transport} connection ({kind}) to {name}");
    let (stream, address) = shared.connect_by_name(name)?;
    let name = Some(name.to_owned());
    let is_onion = false;
    let starts_encrypted = encrypted;
    let arrival = Arrival { stream, address, name, connection, is_onion, starts_encrypted };
    super::enter(arrival, Permissions::default(), shared)
}

/// Core's `-timeout`.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(100);
/// Retry interval (Core `net.cpp`, `ThreadOpenAddedConnections`).
const AGAIN: Duration = Duration::from_mins(1);
const AGAIN_SOON: Duration = Duration::from_secs(1);
