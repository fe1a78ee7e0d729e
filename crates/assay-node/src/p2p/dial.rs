//! Connections that this node makes.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use assay_wire::p2p::FrameHeader;

use super::peers::{Arrival, Connection, Peer};
use super::{Network, Shared};

/// Peers to stay connected to, by the names they were given.
#[derive(Default)]
pub(super) struct Dialled {
    named: Mutex<BTreeMap<String, Named>>,
}

/// One of them.
#[derive(Clone, Copy)]
struct Named {
    /// When it is tried next.
    at: Instant,
    /// Whether to start with the encrypted transport.
    encrypted: bool,
}

impl Dialled {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Named>> {
        self.named.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why a name is not taken or given up.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AddNodeError {
    Known,
    Unknown,
}

/// Connects to the peers that the settings name, and to those that are added later, whenever they are not connected.
pub(super) fn stay_connected(shared: &Arc<Shared>) -> io::Result<thread::JoinHandle<()>> {
    let shared = Arc::clone(shared);
    let named = shared.config.connect.iter().flatten().chain(&shared.config.add_nodes);
    for name in named {
        let named = Named { at: Instant::now(), encrypted: shared.has_encryption() };
        shared.dialled.lock().insert(name.clone(), named);
    }
    thread::Builder::new().name("p2p-dial".to_owned()).spawn(move || {
        while !shared.engine.is_shutting_down() {
            let due = if shared.peers.is_active() { shared.due() } else { Vec::new() };
            for (name, encrypted) in due {
                // A peer that does not answer keeps the others waiting for seconds, no longer.
                match dial(&shared, &name, Connection::Manual, encrypted) {
                    Ok(()) => {
                        // Should it break, it is made again soon.
                        shared
                            .dialled
                            .lock()
                            .entry(name)
                            .and_modify(|named| named.at = Instant::now() + AGAIN_SOON);
                    }
                    Err(error) => {
                        tracing::debug!(target: "net", "Connecting to {name} failed: {error}");
                    }
                }
            }
            thread::sleep(LOOK);
        }
    })
}

impl Shared {
    /// Names that are not connected and were not tried for a while, and whether to start encrypted.
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

impl Network {
    /// Tries once to connect to a peer, for some seconds. As with Core, the log alone says whether it worked.
    pub(crate) fn connect(&self, name: &str, connection: Connection, encrypted: bool) {
        if let Err(error) = dial(&self.0, name, connection, encrypted) {
            tracing::debug!(target: "net", "Connecting to {name} failed: {error}");
        }
    }

    /// Stays connected to a peer from now on.
    pub(crate) fn add(&self, name: &str, encrypted: bool) -> Result<(), AddNodeError> {
        match self.0.dialled.lock().entry(name.to_owned()) {
            Entry::Vacant(free) => {
                free.insert(Named { at: Instant::now(), encrypted });
                Ok(())
            }
            Entry::Occupied(_) => Err(AddNodeError::Known),
        }
    }

    /// Does so no longer.
    pub(crate) fn remove(&self, name: &str) -> Result<(), AddNodeError> {
        let removed = self.0.dialled.lock().remove(name);
        removed.map(drop).ok_or(AddNodeError::Unknown)
    }

    /// The peers to stay connected to.
    pub(crate) fn added(&self) -> Vec<String> {
        self.0.dialled.lock().keys().cloned().collect()
    }
}

/// Connects once more, in version 1, to a peer of ours that ended the connection after our key without a byte of its own: it
/// does not know the encrypted transport (Core `net.cpp`, `ShouldReconnectV1`).
pub(super) fn retry_without_encryption(shared: &Arc<Shared>, peer: &Peer) {
    let has_answered = peer.traffic.received_bytes.load(Ordering::Relaxed) > 0;
    let sent_bytes = peer.traffic.sent_bytes.load(Ordering::Relaxed);
    let Some(name) = peer.name.as_deref().filter(|_| peer.starts_encrypted && !has_answered) else {
        return;
    };
    if sent_bytes < FrameHeader::SIZE as u64 || shared.engine.is_shutting_down() {
        return;
    }
    tracing::debug!(target: "net", "retrying with v1 transport protocol for peer={}", peer.id);
    Network(Arc::clone(shared)).connect(name, peer.connection, false);
}

fn dial(
    shared: &Arc<Shared>,
    name: &str,
    connection: Connection,
    encrypted: bool,
) -> io::Result<()> {
    if !shared.peers.is_active() {
        return Err(io::Error::other("the network is switched off"));
    }
    let address = resolve(name, shared.engine.params().p2p_port)?;
    if shared
        .peers
        .list()
        .iter()
        .any(|peer| !peer.connection.is_inbound() && peer.address == address)
    {
        return Err(io::Error::other("it is connected already"));
    }
    let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    let name = Some(name.to_owned());
    let arrival =
        Arrival { stream, address, name, connection, is_onion: false, starts_encrypted: encrypted };
    super::enter(arrival, shared)
}

/// The first address of `host` or `host:port`.
fn resolve(name: &str, default_port: u16) -> io::Result<SocketAddr> {
    if let Ok(address) = name.parse::<SocketAddr>() {
        return Ok(address);
    }
    let with_port = name.rsplit_once(':').is_some_and(|(host, port)| {
        port.parse::<u16>().is_ok() && (!host.contains(':') || host.ends_with(']'))
    });
    let mut found = if with_port {
        name.to_socket_addrs()?
    } else {
        (name.trim_matches(['[', ']']), default_port).to_socket_addrs()?
    };
    found.next().ok_or_else(|| io::Error::other("the name has no address"))
}

/// Core's `-timeout`.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(100);
/// From try to try (Core `net.cpp`, `ThreadOpenAddedConnections`).
const AGAIN: Duration = Duration::from_mins(1);
const AGAIN_SOON: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_a_port_or_get_the_chains() {
        let resolved = |name: &str| resolve(name, 8333).map(|address| address.to_string()).ok();
        assert_eq!(resolved("127.0.0.1:5").as_deref(), Some("127.0.0.1:5"));
        assert_eq!(resolved("127.0.0.1").as_deref(), Some("127.0.0.1:8333"));
        assert_eq!(resolved("[::1]:7").as_deref(), Some("[::1]:7"));
        assert_eq!(resolved("::1").as_deref(), Some("[::1]:8333"));
        assert_eq!(resolved("127.0.0.1:99999"), None);
    }
}
