//! Connected peers and their state, and what applies to every connection.

mod address_relay;
mod tx_relay;

use std::collections::BTreeMap;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use assay_electrum::address::customer;
use assay_engine::{Clock, Engine};
use assay_wire::p2p::{
    Command, Endpoint, Host, LARGE_MESSAGE_BYTES_MAX, MESSAGE_BYTES_MAX, Message, NetworkKind,
};
use assay_wire::{BlockHash, Encoding};

pub(super) use self::address_relay::AddressRelay;
pub(super) use self::tx_relay::{Matches, Relay};
use super::bans::Bans;
use super::config::P2pConfig;
use super::dns::valid_ip;
use super::ended::Ended;
use super::messages::Messages;
use super::outbox::{Outbox, with_room};
use super::permissions::Permissions;
use super::totals::Totals;
use super::upload_rate::Rate;
use super::{NODE_BLOOM, NODE_NETWORK, NODE_NETWORK_LIMITED, NODE_WITNESS};
use crate::bip324::Sealer;

/// Registry of connected peers, with what all connections share.
pub(crate) struct Peers {
    pub(super) engine: Arc<Engine>,
    pub(crate) config: P2pConfig,
    pub(crate) bans: Bans,
    pub(super) rate: Rate,
    pub(super) magic: [u8; 4],
    pub(super) encoding: Encoding,
    /// Offered while the node has all blocks.
    services: u64,
    pub(super) message_bytes_max: u32,
    pub(super) block_bytes_max: u32,
    totals: Arc<Totals>,
    connected: Mutex<Connected>,
    left: Condvar,
}

#[derive(Default)]
struct Connected {
    next_id: u64,
    peers: BTreeMap<u64, Arc<Peer>>,
    closing: bool,
    /// True if networking is disabled (Core's `-networkactive=0`).
    is_off: bool,
}

/// Direction and purpose of a connection (Core `node/connection_types.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Connection {
    Inbound,
    /// Configured or requested by the user.
    Manual,
    /// Blocks, transactions and addresses.
    FullRelay,
    /// Blocks only, which hides the topology.
    BlockRelayOnly,
    /// Short connection to test an address.
    Feeler,
    /// Short connection to fetch addresses.
    AddrFetch,
}

impl Connection {
    pub(crate) const ALL: [Self; 6] = [
        Self::Inbound,
        Self::Manual,
        Self::FullRelay,
        Self::BlockRelayOnly,
        Self::Feeler,
        Self::AddrFetch,
    ];

    /// Core's name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Inbound => "inbound",
            Self::Manual => "manual",
            Self::FullRelay => "outbound-full-relay",
            Self::BlockRelayOnly => "block-relay-only",
            Self::Feeler => "feeler",
            Self::AddrFetch => "addr-fetch",
        }
    }

    pub(crate) fn is_inbound(self) -> bool {
        self == Self::Inbound
    }
}

pub(super) enum Framing {
    V1,
    V2 { session: [u8; 32], sealer: Box<Mutex<Sealer>> },
}

pub(super) struct Arrival {
    pub(super) stream: TcpStream,
    pub(super) address: Endpoint,
    /// Name in the setting or call, if any.
    pub(super) name: Option<String>,
    pub(super) connection: Connection,
    pub(super) is_onion: bool,
    /// Start with the encrypted transport; outbound only.
    pub(super) starts_encrypted: bool,
}

impl Arrival {
    pub(super) fn inbound(stream: TcpStream, address: Endpoint, is_onion: bool) -> Self {
        let connection = Connection::Inbound;
        Self { stream, address, name: None, connection, is_onion, starts_encrypted: false }
    }
}

/// Limits and state determined before admission.
#[derive(Clone, Copy, Debug)]
pub(super) struct Admission {
    pub(super) inbound_max: usize,
    pub(super) is_discouraged: bool,
}

pub(crate) struct Peer {
    pub(crate) id: u64,
    /// [`Host::NONE`] if only a proxy knows it.
    pub(crate) address: Endpoint,
    pub(crate) name: Option<String>,
    pub(crate) connection: Connection,
    pub(crate) permissions: Permissions,
    pub(crate) is_onion: bool,
    pub(super) is_discouraged: bool,
    pub(super) starts_encrypted: bool,
    pub(crate) bound: SocketAddr,
    /// Time of connection, microseconds by the node's clock.
    pub(crate) connected_us: u64,
    stream: TcpStream,
    /// Set once the transport version is known.
    pub(super) framing: OnceLock<Framing>,
    pub(super) outbox: Outbox,
    /// Held while due requests and announcements are sent.
    pub(super) round: Mutex<()>,
    /// Nonce of our `version`; detects connections to self.
    pub(super) nonce: AtomicU64,
    facts: Mutex<Facts>,
    pub(super) is_ready: AtomicBool,
    /// True if the peer prefers header announcements (BIP130).
    pub(super) wants_headers: AtomicBool,
    /// Tip height at the last block announcement to this peer, sent or skipped.
    pub(super) announced_height: AtomicU32,
    /// True for high-bandwidth compact block relay to the peer (BIP152).
    pub(crate) wants_compact: AtomicBool,
    known: Mutex<Known>,
    relay: Mutex<Relay>,
    addresses: Mutex<AddressRelay>,
    pub(crate) traffic: Traffic,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Known {
    /// Best block that it announced or was sent.
    pub(super) best: Option<BlockHash>,
    /// Best header that it was sent.
    pub(super) best_sent: Option<BlockHash>,
}

#[derive(Default)]
pub(crate) struct Traffic {
    clock: Clock,
    totals: Arc<Totals>,
    pub(crate) messages: Messages,
    pub(crate) sent_bytes: AtomicU64,
    pub(crate) received_bytes: AtomicU64,
    /// Seconds since 1970.
    pub(crate) sent_at_s: AtomicU64,
    pub(crate) received_at_s: AtomicU64,
    /// Last admitted transaction, seconds since 1970.
    pub(crate) tx_at_s: AtomicU64,
    /// Last useful block, seconds since 1970.
    pub(crate) block_at_s: AtomicU64,
}

/// Data of the peer's handshake, and ping times.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    pub(crate) version: i32,
    pub(crate) services: u64,
    pub(crate) user_agent: String,
    pub(crate) seen_as: Option<Endpoint>,
    pub(crate) start_height: i32,
    /// Clock offset of the peer, seconds; positive if ahead.
    pub(crate) time_offset_s: i64,
    /// Nonce and send time of the outstanding ping, microseconds by the node's clock.
    pub(super) ping: Option<(u64, u64)>,
    /// Last ping, microseconds by the node's clock.
    pub(super) pinged_us: u64,
    pub(crate) ping_time: Option<Duration>,
    pub(crate) ping_time_min: Option<Duration>,
    pub(crate) min_fee_sat_per_kvb: u64,
}

impl Facts {
    /// Age of the outstanding ping.
    pub(crate) fn ping_wait(&self, now_us: u64) -> Option<Duration> {
        self.ping.map(|(_, since)| Duration::from_micros(now_us.saturating_sub(since)))
    }
}

impl Peers {
    pub(super) fn new(config: &P2pConfig, engine: &Arc<Engine>, services: u64) -> Self {
        let (params, clock) = (engine.params(), engine.clock().clone());
        let bytes_max = params.block_bytes_max();
        let is_large = bytes_max > u64::from(MESSAGE_BYTES_MAX);
        let spacing_s = u64::from(params.pow.target_spacing_s);
        let totals = Totals::new(config.upload_target_bytes, bytes_max, spacing_s);
        let connected = Connected { is_off: !config.is_active, ..Connected::default() };
        Self {
            engine: Arc::clone(engine),
            config: config.clone(),
            bans: Bans::open(&engine.config().datadir, config.ban_s, clock),
            rate: Rate::new(config.rate),
            magic: params.magic,
            encoding: params.encoding,
            services,
            message_bytes_max: if is_large { LARGE_MESSAGE_BYTES_MAX } else { MESSAGE_BYTES_MAX },
            block_bytes_max: u32::try_from(bytes_max).unwrap_or(u32::MAX).max(MESSAGE_BYTES_MAX),
            totals: Arc::new(totals),
            connected: Mutex::new(connected),
            left: Condvar::new(),
        }
    }

    pub(crate) fn totals(&self) -> &Totals {
        &self.totals
    }

    pub(crate) fn is_active(&self) -> bool {
        !self.lock().is_off
    }

    /// Enables or disables networking; disabling ends all connections (Core `net.cpp`, `SetNetworkActive`).
    pub(crate) fn set_active(&self, is_active: bool) {
        tracing::info!("SetNetworkActive: {is_active}");
        let mut connected = self.lock();
        connected.is_off = !is_active;
        if !is_active {
            connected.peers.values().for_each(|peer| peer.close());
        }
    }

    /// Number of connected inbound peers, and of those that share an IPv4 address or IPv6 /64 with `host`.
    pub(super) fn count_inbound(&self, host: &Host) -> (usize, usize) {
        let (list, host) = (self.list(), valid_ip(host).map(customer));
        let inbound = || list.iter().filter(|peer| peer.connection.is_inbound());
        let same = inbound().filter(|peer| {
            !peer.is_onion && host.is_some() && valid_ip(&peer.address.host).map(customer) == host
        });
        (inbound().count(), same.count())
    }

    /// Registers a connection. Enforces the inbound limit, which includes peers being disconnected.
    pub(super) fn enter(
        &self,
        arrival: Arrival,
        permissions: Permissions,
        admission: Admission,
    ) -> Option<Arc<Peer>> {
        let Arrival { stream, address, name, connection, is_onion, starts_encrypted } = arrival;
        let bound = stream.local_addr().ok()?;
        let mut connected = self.lock();
        if connected.closing || connected.is_off {
            return None;
        }
        if connection.is_inbound() {
            let inbound = || connected.peers.values().filter(|peer| peer.connection.is_inbound());
            let open = inbound().filter(|peer| !peer.outbox.is_closed()).count();
            if open >= admission.inbound_max || inbound().count() >= 2 * admission.inbound_max {
                return None;
            }
        }
        let id = connected.next_id;
        connected.next_id += 1;
        let peer = Arc::new(Peer {
            id,
            address,
            name,
            connection,
            permissions,
            is_onion,
            is_discouraged: admission.is_discouraged,
            starts_encrypted,
            bound,
            connected_us: self.engine.clock().now_us(),
            stream,
            framing: OnceLock::new(),
            outbox: Outbox::default(),
            round: Mutex::default(),
            nonce: AtomicU64::new(0),
            facts: Mutex::default(),
            is_ready: AtomicBool::new(false),
            wants_headers: AtomicBool::new(false),
            announced_height: AtomicU32::new(0),
            wants_compact: AtomicBool::new(false),
            known: Mutex::default(),
            relay: Mutex::default(),
            addresses: Mutex::default(),
            traffic: Traffic {
                clock: self.engine.clock().clone(),
                totals: Arc::clone(&self.totals),
                ..Traffic::default()
            },
        });
        connected.peers.insert(id, Arc::clone(&peer));
        Some(peer)
    }

    pub(super) fn leave(&self, peer: &Peer) {
        self.lock().peers.remove(&peer.id);
        self.left.notify_all();
    }

    /// All peers in order of connection, without those being disconnected.
    pub(crate) fn list(&self) -> Vec<Arc<Peer>> {
        let connected = self.lock();
        let staying = connected.peers.values().filter(|peer| !peer.outbox.is_closed());
        staying.cloned().collect()
    }

    pub(crate) fn count(&self) -> usize {
        self.list().len()
    }

    pub(crate) fn find(&self, id: u64) -> Option<Arc<Peer>> {
        self.lock().peers.get(&id).cloned()
    }

    /// Ends all connections and rejects new ones.
    pub(super) fn close(&self) {
        let mut connected = self.lock();
        connected.closing = true;
        connected.peers.values().for_each(|peer| peer.close());
    }

    /// Waits for the last peer to leave; `false` on timeout.
    pub(super) fn wait_until_gone(&self, timeout: Duration) -> bool {
        let connected = self.lock();
        let is_busy = |connected: &mut Connected| !connected.peers.is_empty();
        let waited = self.left.wait_timeout_while(connected, timeout, is_busy);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// Offered services; not full history while blocks below a snapshot are missing (Core `rpc/blockchain.cpp`, `loadtxoutset`).
    pub(crate) fn services(&self) -> u64 {
        let is_missing_old = self.engine.chain().historical().is_some();
        self.services & !(if is_missing_old { NODE_NETWORK } else { 0 })
    }

    /// Services required of a peer on this connection.
    pub(super) fn expected_services(&self, peer: &Peer, offered: u64) -> u64 {
        if matches!(peer.connection, Connection::Inbound | Connection::Manual | Connection::Feeler)
        {
            return 0;
        }
        self.desirable_services(offered)
    }

    /// Services required of outbound peers, for a peer with `offered`.
    pub(super) fn desirable_services(&self, offered: u64) -> u64 {
        let own = self.services() & NODE_WITNESS;
        // Near the tip the latest blocks suffice (Core `net_processing.cpp`, `GetDesirableServiceFlags`).
        let (now_s, tip) = (self.engine.clock().now_s(), self.engine.chain().tip());
        let behind_s = now_s.saturating_sub(u64::from(tip.time));
        let blocks = behind_s / u64::from(self.engine.params().pow.target_spacing_s.max(1));
        let is_enough = offered & NODE_NETWORK_LIMITED != 0 && blocks < LIMITED_BLOCKS;
        own | if is_enough { NODE_NETWORK_LIMITED } else { NODE_NETWORK }
    }

    /// Peer description for the log: its id, and its address only with `-logips` (Core `net.cpp`, `CNode::LogPeer`).
    pub(super) fn shown(&self, peer: &Peer) -> String {
        let Peer { id, address, .. } = peer;
        if self.config.log_addresses {
            format!("peer={id}, peeraddr={address}")
        } else {
            format!("peer={id}")
        }
    }

    /// Logs the reason of a disconnection, for inbound peers at debug level because they control its frequency.
    pub(super) fn log_end(&self, peer: &Peer, reason: &Ended) {
        let shown = self.shown(peer);
        if peer.connection.is_inbound() {
            net!("{reason}, disconnecting {shown}");
        } else if reason.is_fault() {
            tracing::warn!("{reason}, disconnecting {shown}");
        } else {
            tracing::info!("{reason}, disconnecting {shown}");
        }
    }

    /// True for a nonce of our own `version` messages: the connection is to this node.
    pub(super) fn is_itself(&self, nonce: u64) -> bool {
        let sent = |peer: &Arc<Peer>| {
            !peer.connection.is_inbound() && peer.nonce.load(Ordering::Relaxed) == nonce
        };
        self.list().iter().any(sent)
    }

    pub(super) fn offers_bloom(&self, peer: &Peer) -> bool {
        self.services() & NODE_BLOOM != 0 || peer.permissions.has(Permissions::BLOOM_FILTER)
    }

    /// True if a peer may not send or announce transactions.
    pub(super) fn rejects_txs_of(&self, peer: &Peer) -> bool {
        matches!(peer.connection, Connection::BlockRelayOnly | Connection::Feeler)
            || (self.config.blocks_only && !peer.permissions.has(Permissions::RELAY))
    }

    fn lock(&self) -> MutexGuard<'_, Connected> {
        self.connected.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Peer {
    pub(crate) fn network(&self) -> NetworkKind {
        if self.is_onion { NetworkKind::Onion } else { self.address.host.network_class() }
    }

    /// Configured name, or address.
    pub(crate) fn shown_address(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.address.to_string())
    }

    pub(super) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    pub(super) fn with_known<T>(&self, with: impl FnOnce(&mut Known) -> T) -> T {
        with(&mut self.known.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// True if this is the peer's best known block. Also `false` if the answer needs a lookup.
    pub(super) fn knows_up_to(&self, block: &BlockHash) -> bool {
        let Known { best, best_sent } = self.with_known(|known| *known);
        let mut known = [best, best_sent].into_iter().flatten().peekable();
        known.peek().is_some() && known.all(|best| best == *block)
    }

    pub(crate) fn with_relay<T>(&self, with: impl FnOnce(&mut Relay) -> T) -> T {
        with(&mut self.relay.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn with_addresses<T>(&self, with: impl FnOnce(&mut AddressRelay) -> T) -> T {
        with(&mut self.addresses.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn send(&self, message: &Message<'_>) {
        self.outbox.send(message.command(), with_room(message));
    }

    /// Ends the connection; both its threads notice.
    pub(crate) fn close(&self) {
        self.outbox.close();
        // It may be closed already.
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    pub(crate) fn facts(&self) -> Facts {
        self.with_facts(|facts| facts.clone())
    }

    pub(super) fn with_facts<T>(&self, with: impl FnOnce(&mut Facts) -> T) -> T {
        with(&mut self.facts.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// True if the peer has requested transaction relay so far.
    pub(super) fn relays_txs(&self) -> bool {
        self.with_relay(|relay| relay.is_wanted)
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.is_ready.load(Ordering::Relaxed)
    }
}

impl Traffic {
    /// Counts a sent message of this many bytes, header included.
    pub(super) fn sent_message(&self, command: Command, bytes: usize) {
        self.messages.count(false, command, bytes);
        self.totals.messages().count(false, command, bytes);
    }

    pub(super) fn received_message(&self, command: Command, bytes: usize) {
        self.messages.count(true, command, bytes);
        self.totals.messages().count(true, command, bytes);
    }

    pub(super) fn note_block(&self, now_s: u64) {
        self.block_at_s.store(now_s, Ordering::Relaxed);
    }

    pub(super) fn sent(&self, bytes: usize) {
        let now_s = self.clock.now_s();
        self.sent_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.sent_at_s.store(now_s, Ordering::Relaxed);
        self.totals.sent(bytes as u64, now_s);
    }

    pub(super) fn received(&self, bytes: usize) {
        self.received_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.received_at_s.store(self.clock.now_s(), Ordering::Relaxed);
        self.totals.received(bytes as u64);
    }
}

/// The user agent appears in logs and RPC: keeps the same characters as Core (`util/strencodings.cpp`, `SAFE_CHARS_DEFAULT`).
pub(super) fn printable(user_agent: &[u8]) -> String {
    let is_safe = |byte: &u8| byte.is_ascii_alphanumeric() || b" .,;-_/:?@()".contains(byte);
    user_agent.iter().filter(|byte| is_safe(byte)).map(|byte| char::from(*byte)).collect()
}

/// Core `net_processing.cpp`, `NODE_NETWORK_LIMITED_ALLOW_CONN_BLOCKS`.
const LIMITED_BLOCKS: u64 = 144;
