//! P2P network: downloads, serves and relays blocks and transactions.
//!
//! Each peer has two threads, a reader that handles messages ([`peer_reader`]) and a writer ([`peer_writer`]), with a bounded
//! queue between them ([`outbox`]). Blocks go from the archive to the socket in pieces. [`sync`] schedules
//! downloads over all peers.

/// Logs a detail in Core's category `net`.
macro_rules! net {
    ($($text:tt)+) => { tracing::debug!(target: "net", $($text)+) };
}

mod addresses;
mod addrman;
mod bans;
mod block_server;
mod bloom;
mod bootstrap;
mod compact;
mod config;
mod dial;
mod dns;
mod dns_seeds;
mod ended;
mod eviction;
mod faults;
mod features;
#[cfg(fuzzing)]
pub(crate) mod fuzzing;
mod listen;
mod messages;
mod network;
mod outbound;
mod outbox;
mod peer_reader;
mod peer_writer;
mod peers;
mod permissions;
mod recent;
mod rng;
mod seeds;
mod socks5;
mod sync;
mod timeouts;
mod totals;
mod transport;
mod txs;
mod upload_rate;
mod wakeup;

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use assay_electrum::FilterIndex;
use assay_engine::Engine;
use assay_wire::p2p::{Endpoint, Host, MESSAGE_BYTES_MAX};
use assay_wire::{BlockHash, Encoding};
use tokio::runtime::Runtime;
use tokio::sync::watch;

use self::addresses::{AddrBook, LocalAddresses, Score};
use self::addrman::{AddrMan, AddrManConfig};
pub(crate) use self::addrman::{Count, Entry, Wanted};
pub(crate) use self::bans::{Ban, Range};
pub use self::block_server::{BlockArchive, ServeConfig, serve_blocks};
#[cfg(fuzzing)]
pub(crate) use self::bloom::BloomFilter;
use self::bootstrap::Fetches;
use self::compact::Compact;
pub(crate) use self::config::CORE_VERSION_NUMBER;
pub use self::config::{P2pConfig, P2pTimeouts, Proxies};
pub(crate) use self::dial::AddNodeError;
use self::dial::PermanentPeers;
pub(crate) use self::dns::valid_ip;
pub use self::dns::{Resolve, SystemResolver};
use self::ended::Ended;
use self::listen::Listener;
use self::peers::Arrival;
pub(crate) use self::peers::{Connection, Peer, Peers};
use self::permissions::{Implied, Permissions, Rule};
use self::sync::BlockSync;
pub(crate) use self::totals::DAY_S;
pub(crate) use self::txs::OrphanInfo;
use self::txs::TxRelay;
use crate::error::NodeError;

/// Core's `node/protocol_version.h`.
pub(crate) const PROTOCOL_VERSION: i32 = 70017;
/// Core's `MIN_PEER_PROTO_VERSION`.
pub(crate) const PROTOCOL_MIN: i32 = 31800;

/// Names of service bits, lowest first (Core `protocol.h`; BCHN `protocol.h` for the sixth).
pub(crate) const SERVICES: [(u64, &str); 7] = [
    (NODE_NETWORK, "NETWORK"),
    (NODE_BLOOM, "BLOOM"),
    (NODE_WITNESS, "WITNESS"),
    (NODE_BITCOIN_CASH, "BITCOIN_CASH"),
    (NODE_COMPACT_FILTERS, "COMPACT_FILTERS"),
    (NODE_NETWORK_LIMITED, "NETWORK_LIMITED"),
    (NODE_P2P_V2, "P2P_V2"),
];
pub(crate) const NODE_NETWORK: u64 = 1;
pub(crate) const NODE_WITNESS: u64 = 1 << 3;
const NODE_BLOOM: u64 = 1 << 2;
const NODE_BITCOIN_CASH: u64 = 1 << 5;
const NODE_COMPACT_FILTERS: u64 = 1 << 6;
const NODE_NETWORK_LIMITED: u64 = 1 << 10;
const NODE_P2P_V2: u64 = 1 << 11;

/// Work of a thread of the network.
type Work = fn(&P2p);

/// The network. [`Peers`] is below all others, [`Compact`] below [`BlockSync`] and [`TxRelay`]; none of these knows another.
pub(crate) struct P2p {
    engine: Arc<Engine>,
    pub(crate) peers: Arc<Peers>,
    pub(crate) addresses: AddrBook,
    compact: Arc<Compact>,
    pub(crate) sync: BlockSync,
    pub(crate) txs: TxRelay,
    genesis: BlockHash,
    filters: Option<Arc<FilterIndex>>,
    whitelist: Vec<Rule>,
    dialled: PermanentPeers,
    fetches: Fetches,
    /// Held while witnesses are removed from a block.
    stripping: Mutex<()>,
}

pub(crate) struct P2pService {
    network: Arc<P2p>,
    /// First listening address.
    address: Option<SocketAddr>,
    threads: Vec<thread::JoinHandle<()>>,
}

/// Rejects remote access without an explicit setting: P2P peers are untrusted.
pub(crate) fn reject_exposure(config: &P2pConfig) -> Result<(), NodeError> {
    let binds = config.all_binds()?;
    match binds.iter().find(|bind| !bind.address.ip().is_loopback()) {
        Some(bind) if !config.expose => Err(NodeError::P2pExposed { address: bind.address }),
        _ => Ok(()),
    }
}

impl P2p {
    /// Sends due requests and announcements; waits for another thread that does, so that the next response follows them.
    fn round(&self, peer: &Peer) {
        let _one_at_a_time = peer.round.lock().unwrap_or_else(PoisonError::into_inner);
        if !peer.is_ready() || self.engine.is_shutting_down() {
            return;
        }
        self.peers.ping_if_due(peer);
        self.sync.round(peer);
        self.txs.relay(peer);
        self.addresses.announce_itself(peer);
        self.addresses.pass_on_addresses(peer);
    }

    /// Runs a round for all peers; disconnects stalling ones.
    fn round_of_all(&self) {
        for peer in self.peers.list() {
            self.round(&peer);
            self.sync.disconnect_if_stalling(&peer);
        }
    }
}

/// Own addresses: configured ones and listening ones.
fn own_addresses(
    config: &P2pConfig,
    default_port: u16,
    listeners: &[Listener],
) -> Result<LocalAddresses, NodeError> {
    let shown = listeners.iter().find(|listener| listener.is_shown());
    let port = shown.map_or(default_port, |listener| listener.bind.address.port());
    let local = LocalAddresses::new(config.discovers, port);
    for text in &config.external_addresses {
        let found = || {
            let (host, port) = dns::split(text, port);
            let found = config.resolver.look_up(host).ok()?;
            found.first().map(|ip| Endpoint { host: Host::from(*ip), port })
        };
        let endpoint = dns::numeric(text, port).or_else(found);
        let endpoint = endpoint.filter(|endpoint| endpoint.host.is_valid());
        let endpoint = endpoint.ok_or_else(|| NodeError::ExternalAddress { text: text.clone() })?;
        local.add(endpoint, Score::NAMED);
    }
    for listener in listeners.iter().filter(|listener| listener.is_shown()) {
        let endpoint = Endpoint::from(listener.bind.address);
        if config.networks.contains(&endpoint.host.network()) {
            local.add(endpoint, Score::BOUND);
        }
    }
    Ok(local)
}

impl P2pService {
    /// Starts to listen; serves blocks, transactions and, if configured, block filters until `stopping` becomes true.
    pub(crate) fn start(
        config: &P2pConfig,
        (engine, filters): (&Arc<Engine>, Option<Arc<FilterIndex>>),
        runtime: &Runtime,
        stopping: &watch::Receiver<bool>,
    ) -> Result<Self, NodeError> {
        let listeners = Listener::open_all(config, runtime)?;
        let address = listeners.first().map(|listener| listener.bind.address);
        let params = engine.params();
        let own = match params.encoding {
            Encoding::Segwit => NODE_WITNESS,
            Encoding::Legacy => NODE_BITCOIN_CASH,
        };
        let rules = config.whitelist.iter().map(|rule| rule.parse::<Rule>());
        let whitelist =
            rules.collect::<Result<_, _>>().map_err(|fault| NodeError::Whitelist { fault })?;
        let is_large = params.block_bytes_max() > u64::from(MESSAGE_BYTES_MAX);
        // A v2 packet may be too small for a large block.
        let encryption = if config.encrypted && !is_large { NODE_P2P_V2 } else { 0 };
        let has_all = if engine.config().prune.is_some() { 0 } else { NODE_NETWORK };
        let bloom = if config.bloom_filters { NODE_BLOOM } else { 0 };
        let filters = filters.filter(|_| config.serves_filters);
        let filtering = if filters.is_some() { NODE_COMPACT_FILTERS } else { 0 };
        let services = has_all | NODE_NETWORK_LIMITED | own | encryption | bloom | filtering;
        let addresses = AddrManConfig {
            magic: params.magic,
            is_deterministic: config.fixed_places,
            check_ratio: config.check_addresses,
        };
        let addresses = AddrMan::open(&engine.config().datadir, addresses, engine.clock().clone())
            .map_err(|fault| NodeError::Addresses(Box::new(fault)))?;
        let local = own_addresses(config, params.p2p_port, &listeners)?;
        let peers = Arc::new(Peers::new(config, engine, services));
        let compact = Arc::new(Compact::new(&peers));
        let shared = Arc::new(P2p {
            engine: Arc::clone(engine),
            addresses: AddrBook::new(&peers, addresses, local),
            sync: BlockSync::new(&peers, &compact),
            txs: TxRelay::new(&peers, &compact),
            peers,
            compact,
            genesis: params.genesis_hash,
            filters,
            whitelist,
            dialled: PermanentPeers::default(),
            fetches: Fetches::default(),
            stripping: Mutex::new(()),
        });
        let threads: [(&str, Work); 4] = [
            ("p2p-news", notify_tip),
            ("p2p-blocks", |shared| shared.compact.pass_on_submitted()),
            ("p2p-connect", |shared| shared.sync.connect_blocks(|| shared.round_of_all())),
            ("p2p-rounds", run_rounds),
        ];
        let spawn = |(name, run): (&str, Work)| {
            let shared = Arc::clone(&shared);
            let builder = thread::Builder::new().name(name.to_owned());
            builder.spawn(move || run(&shared)).map_err(NodeError::Runtime)
        };
        let mut threads = threads.into_iter().map(spawn).collect::<Result<Vec<_>, _>>()?;
        threads.push(dial::stay_connected(&shared).map_err(NodeError::Runtime)?);
        threads.extend(dns_seeds::ask(&shared).map_err(NodeError::Runtime)?);
        if config.opens {
            threads.push(outbound::open_connections(&shared).map_err(NodeError::Runtime)?);
        }
        for listener in listeners {
            runtime.spawn(listener.accept(Arc::clone(&shared), stopping.clone()));
        }
        tracing::info!("SetNetworkActive: {}", config.is_active);
        Ok(Self { network: shared, address, threads })
    }

    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    pub(crate) fn network(&self) -> &Arc<P2p> {
        &self.network
    }

    /// Closes all connections and waits until no thread reads blocks.
    pub(crate) fn stop_serving(&self) {
        let peers = &self.network.peers;
        if peers.config.opens {
            self.network.save_anchors();
        }
        peers.close();
        if !peers.wait_until_gone(GOODBYE) {
            tracing::warn!("Some connections of peers did not end in time");
        }
        self.network.addresses.known.save();
    }

    /// Waits for the remaining threads, which end when the engine closes.
    pub(crate) fn join(self) {
        for thread in self.threads {
            if thread.join().is_err() {
                tracing::error!("A thread for peers ended abnormally");
            }
        }
    }
}

/// Schedules requests ten times a second.
fn run_rounds(shared: &P2p) {
    let mut saved = Instant::now();
    while !shared.engine.is_shutting_down() {
        if saved.elapsed() >= SAVE_ADDRESSES {
            saved = Instant::now();
            shared.addresses.known.save();
        }
        shared.sync.wait_for_round(ROUND);
        shared.peers.disconnect_inactive();
        shared.txs.announce_local();
        shared.txs.pass_on_backlog();
        shared.sync.check_tip_if_due();
        shared.round_of_all();
        shared.txs.reconsider_all();
        shared.txs.rebroadcast_if_due();
    }
}

fn notify_tip(shared: &P2p) {
    let mut seen = shared.engine.chain().tip().hash;
    while !shared.engine.is_shutting_down() {
        let tip = shared.engine.chain().wait_for_tip_change(seen, None);
        if tip.hash != seen {
            seen = tip.hash;
            shared.sync.tip_has_moved();
            shared.txs.follow_chain();
            shared.peers.list().iter().for_each(|peer| peer.outbox.notify_tip());
        }
    }
}

/// Registers a connection and starts its threads; `given` are the permissions of the listening address.
fn enter(arrival: Arrival, given: Permissions, shared: &Arc<P2p>) -> io::Result<()> {
    let Arrival { stream, address, connection, is_onion, .. } = &arrival;
    let (address, connection) = (*address, *connection);
    stream.set_nonblocking(false)?;
    // Low latency: responses are awaited, and blocks are written in large pieces.
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(shared.peers.config.timeouts.stall))?;
    let known = valid_ip(&address.host).filter(|_| !is_onion);
    let implied = Implied {
        relay: shared.peers.config.whitelist_relay,
        force_relay: shared.peers.config.whitelist_force_relay,
    };
    // Automatic connections have no permissions.
    let has_rules = matches!(connection, Connection::Inbound | Connection::Manual);
    let rules = if has_rules { shared.whitelist.as_slice() } else { &[] };
    let permissions =
        permissions::permissions(given, rules, known, connection.is_inbound(), implied);
    let Some(admission) = shared.admit(&arrival, permissions) else { return Ok(()) };
    let Some(peer) = shared.peers.enter(arrival, permissions, admission) else {
        net!("connection from {address} dropped: too many connections");
        return Ok(());
    };
    net!("Added connection {}", shared.peers.shown(&peer));
    let (id, shares) = (peer.id, Arc::clone(shared));
    let serving = Arc::clone(&peer);
    let builder = thread::Builder::new().name(format!("peer-{id}")).stack_size(STACK_BYTES);
    let spawned = builder.spawn(move || {
        serve(&serving, &shares);
        dial::retry_without_encryption(&shares, &serving);
    });
    spawned.map(drop).inspect_err(|_| shared.peers.leave(&peer))
}

fn serve(peer: &Arc<Peer>, shared: &P2p) {
    let _leaving = Leaving { peer, shared };
    if peer.connection.is_inbound() && !peer.permissions.has(Permissions::NO_BAN) {
        lower_priority();
    }
    let ended = OnceLock::new();
    let end = |reason: Ended| {
        // The first reason is the cause, and is logged while the peer is still listed; closing also ends the other thread.
        if ended.set(()).is_ok() {
            shared.peers.log_end(peer, &reason);
        }
        peer.close();
    };
    thread::scope(|scope| {
        let builder = thread::Builder::new().name(format!("give-{}", peer.id));
        let giving = builder.stack_size(STACK_BYTES);
        let spawned = giving.spawn_scoped(scope, || end(peer_writer::run(peer, shared)));
        match spawned {
            Ok(_) => end(peer_reader::run(peer, shared)),
            Err(error) => end(Ended::Io(error)),
        }
    });
}

/// Lowers the priority of this thread and its children: inbound peers must not delay validation and outbound peers.
fn lower_priority() {
    #[cfg(target_os = "linux")]
    {
        // On Linux this affects only the thread; elsewhere it would affect the whole process.
        let thread = rustix::thread::gettid();
        if let Err(error) = rustix::process::setpriority_process(Some(thread), INBOUND_NICE) {
            tracing::debug!("The priority of a thread stays as it is: {error}");
        }
    }
}

/// Removes a peer when its threads end for any reason.
struct Leaving<'a> {
    peer: &'a Peer,
    shared: &'a P2p,
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.shared.addresses.address_left(self.peer);
        self.shared.sync.left(self.peer);
        self.shared.txs.left(self.peer);
        self.shared.peers.leave(self.peer);
        net!("Cleared nodestate for peer={}", self.peer.id);
    }
}

/// A third of the CPU share of other threads under full load (`sched(7)`).
#[cfg(target_os = "linux")]
const INBOUND_NICE: i32 = 5;
/// Time for peer threads to finish the read of a block piece.
const GOODBYE: Duration = Duration::from_secs(10);
/// Stack size: blocks and transactions are validated on these threads.
const STACK_BYTES: usize = 2 << 20;
/// Core `net.cpp`, `DUMP_PEERS_INTERVAL`.
const SAVE_ADDRESSES: Duration = Duration::from_mins(15);
const ROUND: Duration = Duration::from_millis(100);
