//! P2P network: downloads, serves and relays blocks and transactions.
//!
//! Each peer has two threads, a reader that handles messages ([`peer_reader`]) and a writer ([`peer_writer`]), with a bounded
//! queue between them ([`outbox`]). Blocks go from the archive to the socket in pieces. [`sync`] schedules
//! downloads over all peers.

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
mod eviction;
mod features;
#[cfg(fuzzing)]
pub(crate) mod fuzzing;
mod listen;
mod local;
mod messages;
mod outbound;
mod outbox;
mod peer_reader;
mod peer_writer;
mod peers;
mod permissions;
mod rate;
mod seeds;
mod socks5;
mod sync;
mod timeouts;
mod totals;
mod transport;
mod txs;
mod wakeup;

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use assay_electrum::FilterIndex;
use assay_engine::{Engine, HeaderPlace};
use assay_wire::p2p::{
    Command, Endpoint, Host, LARGE_MESSAGE_BYTES_MAX, MESSAGE_BYTES_MAX, Message,
};
use assay_wire::{BlockHash, Encoding};
use tokio::runtime::Runtime;
use tokio::sync::watch;

use self::addresses::Addresses;
use self::addrman::{AddrMan, AddrManConfig};
pub(crate) use self::addrman::{Count, Entry};
pub(crate) use self::bans::{Ban, Bans, Range};
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
use self::listen::Listener;
use self::local::{LocalAddresses, Score};
use self::peers::Arrival;
pub(crate) use self::peers::{Connection, Peer, Peers};
use self::permissions::{Implied, Permissions, Rule};
use self::rate::Rate;
use self::sync::{Extra, Sync};
pub(crate) use self::sync::{FetchError, SyncFacts};
pub(crate) use self::totals::{DAY_S, Totals};
pub(crate) use self::txs::OrphanInfo;
use self::txs::Txs;
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

struct Shared {
    config: P2pConfig,
    engine: Arc<Engine>,
    peers: Arc<Peers>,
    rate: Rate,
    magic: [u8; 4],
    encoding: Encoding,
    genesis: BlockHash,
    services: u64,
    filters: Option<Arc<FilterIndex>>,
    message_bytes_max: u32,
    block_bytes_max: u32,
    whitelist: Vec<Rule>,
    sync: Sync,
    extra: Extra,
    txs: Txs,
    compact: Compact,
    dialled: PermanentPeers,
    fetches: Fetches,
    local: LocalAddresses,
    bans: Bans,
    addresses: Addresses,
    /// Held while witnesses are removed from a block.
    stripping: Mutex<()>,
}

pub(crate) struct P2pService {
    network: Network,
    /// First listening address.
    address: Option<SocketAddr>,
    threads: Vec<thread::JoinHandle<()>>,
}

/// RPC interface to the network.
#[derive(Clone)]
pub(crate) struct Network(Arc<Shared>);

/// Rejects remote access without an explicit setting: P2P peers are untrusted.
pub(crate) fn reject_exposure(config: &P2pConfig) -> Result<(), NodeError> {
    let binds = config.all_binds()?;
    match binds.iter().find(|bind| !bind.address.ip().is_loopback()) {
        Some(bind) if !config.expose => Err(NodeError::P2pExposed { address: bind.address }),
        _ => Ok(()),
    }
}

impl Shared {
    /// Offered services; not full history while blocks below a snapshot are missing (Core `rpc/blockchain.cpp`, `loadtxoutset`).
    fn services(&self) -> u64 {
        let is_missing_old = self.engine.historical_chain().is_some();
        self.services & !(if is_missing_old { NODE_NETWORK } else { 0 })
    }

    /// Services required of a peer on this connection.
    fn expected_services(&self, peer: &Peer, offered: u64) -> u64 {
        if matches!(peer.connection, Connection::Inbound | Connection::Manual | Connection::Feeler)
        {
            return 0;
        }
        self.desirable_services(offered)
    }

    /// Services required of outbound peers, for a peer with `offered`.
    fn desirable_services(&self, offered: u64) -> u64 {
        let own = self.services() & NODE_WITNESS;
        // Near the tip the latest blocks suffice (Core `net_processing.cpp`, `GetDesirableServiceFlags`).
        let behind_s =
            self.engine.clock().now_s().saturating_sub(u64::from(self.engine.tip().time));
        let blocks = behind_s / u64::from(self.engine.params().pow.target_spacing_s.max(1));
        let is_enough = offered & NODE_NETWORK_LIMITED != 0 && blocks < LIMITED_BLOCKS;
        own | if is_enough { NODE_NETWORK_LIMITED } else { NODE_NETWORK }
    }

    /// Peer description for the log: its id, and its address only with `-logips` (Core `net.cpp`, `CNode::LogPeer`).
    fn shown(&self, peer: &Peer) -> String {
        let Peer { id, address, .. } = peer;
        if self.config.log_addresses {
            format!("peer={id}, peeraddr={address}")
        } else {
            format!("peer={id}")
        }
    }

    /// Logs the reason of a disconnection, for inbound peers at debug level because they control its frequency.
    fn log_end(&self, peer: &Peer, reason: &peer_reader::Ended) {
        let shown = self.shown(peer);
        if peer.connection.is_inbound() {
            tracing::debug!(target: "net", "{reason}, disconnecting {shown}");
        } else if reason.is_fault() {
            tracing::warn!("{reason}, disconnecting {shown}");
        } else {
            tracing::info!("{reason}, disconnecting {shown}");
        }
    }

    fn is_itself(&self, nonce: u64) -> bool {
        let sent = |peer: &Arc<Peer>| {
            !peer.connection.is_inbound() && peer.nonce.load(Ordering::Relaxed) == nonce
        };
        self.peers.list().iter().any(sent)
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
        let spacing_s = u64::from(params.pow.target_spacing_s);
        let totals = Totals::new(config.upload_target_bytes, params.block_bytes_max(), spacing_s);
        let addresses = AddrManConfig {
            magic: params.magic,
            is_deterministic: config.fixed_places,
            check_ratio: config.check_addresses,
        };
        let addresses = AddrMan::open(&engine.config().datadir, addresses, engine.clock().clone())
            .map_err(|fault| NodeError::Addresses(Box::new(fault)))?;
        let local = own_addresses(config, params.p2p_port, &listeners)?;
        let shared = Arc::new(Shared {
            addresses: Addresses::new(addresses, config.networks.clone()),
            config: config.clone(),
            engine: Arc::clone(engine),
            peers: Arc::new(Peers::new(engine.clock().clone(), Arc::new(totals), config.is_active)),
            rate: Rate::new(config.rate),
            magic: params.magic,
            encoding: params.encoding,
            genesis: params.genesis_hash,
            services,
            filters,
            message_bytes_max: if is_large { LARGE_MESSAGE_BYTES_MAX } else { MESSAGE_BYTES_MAX },
            block_bytes_max: u32::try_from(params.block_bytes_max())
                .unwrap_or(u32::MAX)
                .max(MESSAGE_BYTES_MAX),
            whitelist,
            sync: Sync::default(),
            extra: Extra::default(),
            txs: Txs::new(engine.tip().hash, config.txs_per_s),
            compact: Compact::default(),
            dialled: PermanentPeers::default(),
            fetches: Fetches::default(),
            local,
            bans: Bans::open(&engine.config().datadir, config.ban_s, engine.clock().clone()),
            stripping: Mutex::new(()),
        });
        let threads = [
            ("p2p-news", notify_tip as fn(&Shared)),
            ("p2p-blocks", compact::pass_on),
            ("p2p-connect", sync::connect_blocks),
            ("p2p-rounds", run_rounds),
        ];
        let spawn = |(name, run): (&str, fn(&Shared))| {
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
        Ok(Self { network: Network(shared), address, threads })
    }

    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    pub(crate) fn network(&self) -> &Network {
        &self.network
    }

    /// Closes all connections and waits until no thread reads blocks.
    pub(crate) fn stop_serving(&self) {
        let peers = &self.network.0.peers;
        if self.network.0.config.opens {
            self.network.0.save_anchors();
        }
        peers.close();
        if !peers.wait_until_gone(GOODBYE) {
            tracing::warn!("Some connections of peers did not end in time");
        }
        self.network.0.addresses.known.save();
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

impl Network {
    /// Lowest announced tip height over all ready peers; `None` without peers.
    pub(crate) fn least_announced(&self) -> Option<u32> {
        let peers = self.0.peers.list().into_iter().filter(|peer| peer.is_ready());
        peers.map(|peer| peer.announced_height.load(Ordering::Relaxed)).min()
    }

    pub(crate) fn services(&self) -> u64 {
        self.0.services()
    }

    pub(crate) fn has_encryption(&self) -> bool {
        self.0.has_encryption()
    }

    pub(crate) fn peers(&self) -> &Peers {
        &self.0.peers
    }

    /// Enables or disables networking (Core `net.cpp`, `SetNetworkActive`).
    pub(crate) fn set_active(&self, is_active: bool) {
        tracing::info!("SetNetworkActive: {is_active}");
        self.0.peers.set_active(is_active);
    }

    pub(crate) fn bans(&self) -> &Bans {
        &self.0.bans
    }

    /// Requests a block from a peer, independent of other requests.
    pub(crate) fn fetch_block(&self, id: u64, block: &HeaderPlace) -> Result<(), FetchError> {
        self.0.fetch_block(id, block)
    }

    pub(crate) fn own_addresses(&self) -> Vec<(Endpoint, i32)> {
        self.0.local.list()
    }

    /// Sends an arbitrary message; `false` for an unknown peer.
    pub(crate) fn send_message(&self, id: u64, command: Command, payload: &[u8]) -> bool {
        let peer = self.0.peers.find(id);
        if let Some(peer) = &peer {
            peer.send(&Message::Other { command, payload });
        }
        peer.is_some()
    }

    pub(crate) fn sync_facts(&self, id: u64) -> SyncFacts {
        self.0.sync_facts(id)
    }
}

/// Schedules requests ten times a second.
fn run_rounds(shared: &Shared) {
    let mut saved = Instant::now();
    while !shared.engine.is_shutting_down() {
        if saved.elapsed() >= SAVE_ADDRESSES {
            saved = Instant::now();
            shared.addresses.known.save();
        }
        shared.sync.wait_for_round(ROUND);
        shared.disconnect_inactive();
        shared.announce_local();
        shared.pass_on_backlog();
        shared.check_tip_if_due();
        shared.round_of_all();
        shared.reconsider_all();
        shared.rebroadcast_if_due();
    }
}

fn notify_tip(shared: &Shared) {
    let mut seen = shared.engine.tip().hash;
    while !shared.engine.is_shutting_down() {
        let tip = shared.engine.wait_for_tip_change(seen, None);
        if tip.hash != seen {
            seen = tip.hash;
            shared.tip_has_moved();
            shared.follow_chain();
            shared.peers.list().iter().for_each(|peer| peer.outbox.notify_tip());
        }
    }
}

/// Registers a connection and starts its threads; `given` are the permissions of the listening address.
fn enter(arrival: Arrival, given: Permissions, shared: &Arc<Shared>) -> io::Result<()> {
    let Arrival { stream, address, connection, is_onion, .. } = &arrival;
    let (address, connection) = (*address, *connection);
    stream.set_nonblocking(false)?;
    // Low latency: responses are awaited, and blocks are written in large pieces.
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(shared.config.timeouts.stall))?;
    let known = valid_ip(&address.host).filter(|_| !is_onion);
    let implied = Implied {
        relay: shared.config.whitelist_relay,
        force_relay: shared.config.whitelist_force_relay,
    };
    // Automatic connections have no permissions.
    let has_rules = matches!(connection, Connection::Inbound | Connection::Manual);
    let rules = if has_rules { shared.whitelist.as_slice() } else { &[] };
    let permissions =
        permissions::permissions(given, rules, known, connection.is_inbound(), implied);
    let Some(admission) = shared.admit(&arrival, permissions) else { return Ok(()) };
    let Some(peer) = shared.peers.enter(arrival, permissions, admission) else {
        tracing::debug!(target: "net", "connection from {address} dropped: too many connections");
        return Ok(());
    };
    tracing::debug!(target: "net", "Added connection {}", shared.shown(&peer));
    let (id, shares) = (peer.id, Arc::clone(shared));
    let serving = Arc::clone(&peer);
    let builder = thread::Builder::new().name(format!("peer-{id}")).stack_size(STACK_BYTES);
    let spawned = builder.spawn(move || {
        serve(&serving, &shares);
        dial::retry_without_encryption(&shares, &serving);
    });
    spawned.map(drop).inspect_err(|_| shared.peers.leave(&peer))
}

fn serve(peer: &Arc<Peer>, shared: &Shared) {
    let _leaving = Leaving { peer, shared };
    if peer.connection.is_inbound() && !peer.permissions.has(Permissions::NO_BAN) {
        lower_priority();
    }
    let ended = OnceLock::new();
    let end = |reason: peer_reader::Ended| {
        // The first reason is the cause, and is logged while the peer is still listed; closing also ends the other thread.
        if ended.set(()).is_ok() {
            shared.log_end(peer, &reason);
        }
        peer.close();
    };
    thread::scope(|scope| {
        let builder = thread::Builder::new().name(format!("give-{}", peer.id));
        let giving = builder.stack_size(STACK_BYTES);
        let spawned = giving.spawn_scoped(scope, || end(peer_writer::run(peer, shared)));
        match spawned {
            Ok(_) => end(peer_reader::run(peer, shared)),
            Err(error) => end(peer_reader::Ended::Io(error)),
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
    shared: &'a Shared,
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.shared.address_left(self.peer);
        self.shared.sync_left(self.peer);
        self.shared.txs_left(self.peer);
        self.shared.peers.leave(self.peer);
        tracing::debug!(target: "net", "Cleared nodestate for peer={}", self.peer.id);
    }
}

/// A third of the CPU share of other threads under full load (`sched(7)`).
#[cfg(target_os = "linux")]
const INBOUND_NICE: i32 = 5;
/// Time for peer threads to finish the read of a block piece.
const GOODBYE: Duration = Duration::from_secs(10);
/// Stack size: blocks and transactions are validated on these threads.
const STACK_BYTES: usize = 2 << 20;
/// Core `net_processing.cpp`, `NODE_NETWORK_LIMITED_ALLOW_CONN_BLOCKS`.
const LIMITED_BLOCKS: u64 = 144;
/// Core `net.cpp`, `DUMP_PEERS_INTERVAL`.
const SAVE_ADDRESSES: Duration = Duration::from_mins(15);
const ROUND: Duration = Duration::from_millis(100);
