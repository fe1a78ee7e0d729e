//! Who is connected, and what is known of them.

use std::collections::BTreeMap;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use assay_electrum::address::customer;

use super::outbox::Outbox;

/// All connections.
#[derive(Default)]
pub(crate) struct Peers {
    connected: Mutex<Connected>,
    left: Condvar,
}

#[derive(Default)]
struct Connected {
    next_id: u64,
    peers: BTreeMap<u64, Arc<Peer>>,
    closing: bool,
}

/// One connection.
pub(crate) struct Peer {
    pub(crate) id: u64,
    pub(crate) address: SocketAddr,
    pub(crate) bound: SocketAddr,
    pub(crate) connected_at_s: u64,
    pub(super) connected: Instant,
    stream: TcpStream,
    pub(super) outbox: Outbox,
    facts: Mutex<Facts>,
    /// Whether the handshake is over.
    pub(super) is_ready: AtomicBool,
    /// Whether the peer wants to hear of blocks by their headers (BIP130).
    pub(super) wants_headers: AtomicBool,
    pub(crate) traffic: Traffic,
}

/// What has gone over a connection.
#[derive(Default)]
pub(crate) struct Traffic {
    pub(crate) sent_bytes: AtomicU64,
    pub(crate) received_bytes: AtomicU64,
    /// Seconds since 1970.
    pub(crate) sent_at_s: AtomicU64,
    pub(crate) received_at_s: AtomicU64,
    pub(crate) blocks_sent: AtomicU64,
}

/// What a peer has told of itself, and how quick it is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    pub(crate) version: i32,
    pub(crate) services: u64,
    pub(crate) user_agent: String,
    pub(crate) start_height: i32,
    /// Seconds that its clock is ahead of ours.
    pub(crate) time_offset_s: i64,
    /// The ping that is under way.
    pub(super) ping: Option<(u64, Instant)>,
    pub(crate) ping_time: Option<Duration>,
    pub(crate) ping_time_min: Option<Duration>,
    pub(crate) min_fee_sat_per_kvb: u64,
}

impl Facts {
    /// How long the ping under way has been waited for.
    pub(crate) fn ping_wait(&self) -> Option<Duration> {
        self.ping.map(|(_, since)| since.elapsed())
    }
}

impl Peers {
    /// Takes a connection in, unless there are `max` already, or `per_address_max` of the same IPv4 address or /64 of IPv6.
    pub(super) fn enter(
        &self,
        stream: TcpStream,
        address: SocketAddr,
        max: usize,
        per_address_max: usize,
    ) -> Option<Arc<Peer>> {
        let bound = stream.local_addr().ok()?;
        let mut connected = self.lock();
        if connected.closing || connected.peers.len() >= max {
            return None;
        }
        let host = customer(address.ip());
        let is_same = |peer: &&Arc<Peer>| customer(peer.address.ip()) == host;
        if connected.peers.values().filter(is_same).count() >= per_address_max {
            return None;
        }
        let id = connected.next_id;
        connected.next_id += 1;
        let peer = Arc::new(Peer {
            id,
            address,
            bound,
            connected_at_s: unix_time_s(),
            connected: Instant::now(),
            stream,
            outbox: Outbox::default(),
            facts: Mutex::default(),
            is_ready: AtomicBool::new(false),
            wants_headers: AtomicBool::new(false),
            traffic: Traffic::default(),
        });
        connected.peers.insert(id, Arc::clone(&peer));
        Some(peer)
    }

    pub(super) fn leave(&self, peer: &Peer) {
        self.lock().peers.remove(&peer.id);
        self.left.notify_all();
    }

    /// All of them, in the order they came.
    pub(crate) fn list(&self) -> Vec<Arc<Peer>> {
        self.lock().peers.values().cloned().collect()
    }

    pub(crate) fn count(&self) -> usize {
        self.lock().peers.len()
    }

    /// Ends all connections and takes no more.
    pub(super) fn close(&self) {
        let mut connected = self.lock();
        connected.closing = true;
        connected.peers.values().for_each(|peer| peer.close());
    }

    /// Waits for the last one to leave; `false` when the time was over before.
    pub(super) fn wait_until_gone(&self, timeout: Duration) -> bool {
        let connected = self.lock();
        let is_busy = |connected: &mut Connected| !connected.peers.is_empty();
        let waited = self.left.wait_timeout_while(connected, timeout, is_busy);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    fn lock(&self) -> MutexGuard<'_, Connected> {
        self.connected.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Peer {
    pub(super) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Ends the connection; both its threads notice.
    pub(super) fn close(&self) {
        self.outbox.close();
        // It may have ended by itself.
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    pub(crate) fn facts(&self) -> Facts {
        self.with_facts(|facts| facts.clone())
    }

    pub(super) fn with_facts<T>(&self, with: impl FnOnce(&mut Facts) -> T) -> T {
        with(&mut self.facts.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether it has introduced itself.
    pub(crate) fn is_ready(&self) -> bool {
        self.is_ready.load(Ordering::Relaxed)
    }
}

impl Traffic {
    pub(super) fn sent(&self, bytes: usize) {
        self.sent_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.sent_at_s.store(unix_time_s(), Ordering::Relaxed);
    }

    pub(super) fn received(&self, bytes: usize) {
        self.received_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.received_at_s.store(unix_time_s(), Ordering::Relaxed);
    }
}

pub(super) fn unix_time_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs())
}
