//! Peers: the chain is taken from them and given to them.
//!
//! Every peer has two threads, one that reads and judges what it sends ([`intake`]) and one that writes to it ([`giver`]), with a
//! bounded queue between them ([`outbox`]). Blocks go from the archive to the socket a piece at a time. Who is asked for what is
//! decided for all peers together ([`sync`]).

mod addresses;
mod addrman;
mod bans;
mod beginnings;
mod bell;
mod bloom;
mod compact;
mod config;
mod dial;
mod dns_seeds;
mod eviction;
mod features;
#[cfg(fuzzing)]
pub(crate) mod fuzzing;
mod giver;
mod intake;
mod listen;
mod local;
mod messages;
mod names;
mod open;
mod outbox;
mod patience;
mod peers;
mod permissions;
mod rate;
mod seeds;
mod serve;
mod socks5;
mod sync;
mod totals;
mod transport;
mod txs;

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
use self::beginnings::Fetches;
#[cfg(fuzzing)]
pub(crate) use self::bloom::BloomFilter;
use self::compact::Compact;
pub(crate) use self::config::CORE_VERSION_NUMBER;
pub use self::config::{P2pConfig, P2pTimeouts, Proxies};
pub(crate) use self::dial::AddNodeError;
use self::dial::Dialled;
use self::listen::Listener;
use self::local::{LocalAddresses, Score};
pub(crate) use self::names::valid_ip;
pub use self::names::{Resolve, SystemResolver};
use self::peers::Arrival;
pub(crate) use self::peers::{Connection, Peer, Peers};
use self::permissions::{Implied, Permissions, Rule};
use self::rate::Rate;
pub use self::serve::{BlockArchive, ServeConfig, serve_blocks};
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

/// What all connections need.
struct Shared {
    config: P2pConfig,
    engine: Arc<Engine>,
    peers: Arc<Peers>,
    rate: Rate,
    magic: [u8; 4],
    encoding: Encoding,
    genesis: BlockHash,
    services: u64,
    /// Block filters, where they are given.
    filters: Option<Arc<FilterIndex>>,
    message_bytes_max: u32,
    block_bytes_max: u32,
    /// What peers may do by their address.
    whitelist: Vec<Rule>,
    sync: Sync,
    extra: Extra,
    txs: Txs,
    compact: Compact,
    dialled: Dialled,
    fetches: Fetches,
    local: LocalAddresses,
    bans: Bans,
    addresses: Addresses,
    /// Held while witnesses are taken off a block.
    stripping: Mutex<()>,
}

/// The peers of a running node.
pub(crate) struct P2pService {
    network: Network,
    /// The first address that is listened on.
    address: Option<SocketAddr>,
    threads: Vec<thread::JoinHandle<()>>,
}

/// Peers as RPC sees them.
#[derive(Clone)]
pub(crate) struct Network(Arc<Shared>);

/// Peers are strangers: other machines are let in on request only.
pub(crate) fn refuse_exposure(config: &P2pConfig) -> Result<(), NodeError> {
    let binds = config.all_binds()?;
    match binds.iter().find(|bind| !bind.address.ip().is_loopback()) {
        Some(bind) if !config.expose => Err(NodeError::P2pExposed { address: bind.address }),
        _ => Ok(()),
    }
}

impl Shared {
    /// What is offered to peers. Old blocks are not, as long as those below a snapshot are missing (Core `rpc/blockchain.cpp`,
    /// `loadtxoutset`).
    fn services(&self) -> u64 {
        let is_missing_old = self.engine.historical_chain().is_some();
        self.services & !(if is_missing_old { NODE_NETWORK } else { 0 })
    }

    /// What a peer of this connection must offer.
    fn expected_services(&self, peer: &Peer, offered: u64) -> u64 {
        if matches!(peer.connection, Connection::Inbound | Connection::Manual | Connection::Feeler)
        {
            return 0;
        }
        self.desirable_services(offered)
    }

    /// What a peer that we choose must offer, when it offers `offered`.
    fn desirable_services(&self, offered: u64) -> u64 {
        let own = self.services() & NODE_WITNESS;
        // Near the tip the latest blocks are enough (Core `net_processing.cpp`, `GetDesirableServiceFlags`).
        let behind_s =
            self.engine.clock().now_s().saturating_sub(u64::from(self.engine.tip().time));
        let blocks = behind_s / u64::from(self.engine.params().pow.target_spacing_s.max(1));
        let is_enough = offered & NODE_NETWORK_LIMITED != 0 && blocks < LIMITED_BLOCKS;
        own | if is_enough { NODE_NETWORK_LIMITED } else { NODE_NETWORK }
    }

    /// A peer as the log names it: by its number, and by its address only where `-logips` allows that (Core `net.cpp`,
    /// `CNode::LogPeer`).
    fn shown(&self, peer: &Peer) -> String {
        let Peer { id, address, .. } = peer;
        if self.config.log_addresses {
            format!("peer={id}, peeraddr={address}")
        } else {
            format!("peer={id}")
        }
    }

    /// Logs why a connection is over. Others decide how often they connect to us, so their ends are details.
    fn log_end(&self, peer: &Peer, reason: &intake::Ended) {
        let shown = self.shown(peer);
        if peer.connection.is_inbound() {
            tracing::debug!(target: "net", "{reason}, disconnecting {shown}");
        } else if reason.is_fault() {
            tracing::warn!("{reason}, disconnecting {shown}");
        } else {
            tracing::info!("{reason}, disconnecting {shown}");
        }
    }

    /// Whether a nonce is one that this node sent.
    fn is_itself(&self, nonce: u64) -> bool {
        let sent = |peer: &Arc<Peer>| {
            !peer.connection.is_inbound() && peer.nonce.load(Ordering::Relaxed) == nonce
        };
        self.peers.list().iter().any(sent)
    }
}

/// The addresses of ours that are named, and those that are listened on.
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
            let (host, port) = names::split(text, port);
            let found = config.resolver.look_up(host).ok()?;
            found.first().map(|ip| Endpoint { host: Host::from(*ip), port })
        };
        let endpoint = names::numeric(text, port).or_else(found);
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
    /// Listens, and serves until `stopping` becomes true: blocks and transactions of the engine, and block filters where these
    /// are to be given.
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
        // A packet may be too short for a large block.
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
            dialled: Dialled::default(),
            fetches: Fetches::default(),
            local,
            bans: Bans::open(&engine.config().datadir, config.ban_s, engine.clock().clone()),
            stripping: Mutex::new(()),
        });
        let threads = [
            ("p2p-news", tell_news as fn(&Shared)),
            ("p2p-blocks", compact::pass_on),
            ("p2p-connect", sync::connect_blocks),
            ("p2p-rounds", go_rounds),
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
            threads.push(open::open_connections(&shared).map_err(NodeError::Runtime)?);
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

    /// Ends all connections and waits until nobody reads blocks any more.
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

    /// Waits for the last threads, which end when the engine closes.
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

    /// Whether connections are encrypted with peers that can.
    pub(crate) fn has_encryption(&self) -> bool {
        self.0.has_encryption()
    }

    pub(crate) fn peers(&self) -> &Peers {
        &self.0.peers
    }

    /// Switches the network on or off (Core `net.cpp`, `SetNetworkActive`).
    pub(crate) fn set_active(&self, is_active: bool) {
        tracing::info!("SetNetworkActive: {is_active}");
        self.0.peers.set_active(is_active);
    }

    pub(crate) fn bans(&self) -> &Bans {
        &self.0.bans
    }

    /// Asks a peer for a block, whatever others were asked for it.
    pub(crate) fn fetch_block(&self, id: u64, block: &HeaderPlace) -> Result<(), FetchError> {
        self.0.fetch_block(id, block)
    }

    /// Our own addresses, and how much each is believed.
    pub(crate) fn own_addresses(&self) -> Vec<(Endpoint, i32)> {
        self.0.local.list()
    }

    /// Sends a message of any kind to a peer; `false` where there is no such peer.
    pub(crate) fn send_message(&self, id: u64, command: Command, payload: &[u8]) -> bool {
        let peer = self.0.peers.find(id);
        if let Some(peer) = &peer {
            peer.send(&Message::Other { command, payload });
        }
        peer.is_some()
    }

    /// What a peer is asked for.
    pub(crate) fn sync_facts(&self, id: u64) -> SyncFacts {
        self.0.sync_facts(id)
    }
}

/// Looks ten times a second at what to ask of whom.
fn go_rounds(shared: &Shared) {
    let mut saved = Instant::now();
    while !shared.engine.is_shutting_down() {
        if saved.elapsed() >= SAVE_ADDRESSES {
            saved = Instant::now();
            shared.addresses.known.save();
        }
        shared.sync.wait_for_round(ROUND);
        shared.leave_the_silent();
        shared.announce_handed_in();
        shared.pass_on_backlog();
        shared.check_tip_if_due();
        shared.round_of_all();
        shared.reconsider_all();
        shared.rebroadcast_if_due();
    }
}

/// Tells every peer of every new tip.
fn tell_news(shared: &Shared) {
    let mut seen = shared.engine.tip().hash;
    while !shared.engine.is_shutting_down() {
        let tip = shared.engine.wait_for_tip_change(seen, None);
        if tip.hash != seen {
            seen = tip.hash;
            shared.tip_has_moved();
            shared.follow_chain();
            shared.peers.list().iter().for_each(|peer| peer.outbox.tell_news());
        }
    }
}

/// Takes a connection in and gives it its threads; `given` are permissions by the address that the peer connected to.
fn enter(arrival: Arrival, given: Permissions, shared: &Arc<Shared>) -> io::Result<()> {
    let Arrival { stream, address, connection, is_onion, .. } = &arrival;
    let (address, connection) = (*address, *connection);
    stream.set_nonblocking(false)?;
    // Answers are awaited, and blocks are written in large pieces.
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(shared.config.timeouts.stall))?;
    let known = valid_ip(&address.host).filter(|_| !is_onion);
    let implied = Implied {
        relay: shared.config.whitelist_relay,
        force_relay: shared.config.whitelist_force_relay,
    };
    // Those that this node chooses by itself have no privileges.
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

/// The life of a connection.
fn serve(peer: &Arc<Peer>, shared: &Shared) {
    let _leaving = Leaving { peer, shared };
    if peer.connection.is_inbound() && !peer.permissions.has(Permissions::NO_BAN) {
        come_second();
    }
    let ended = OnceLock::new();
    let end = |reason: intake::Ended| {
        // The first one is the cause, and is logged while the peer is still listed; closing makes the other thread end as well.
        if ended.set(()).is_ok() {
            shared.log_end(peer, &reason);
        }
        peer.close();
    };
    thread::scope(|scope| {
        let builder = thread::Builder::new().name(format!("give-{}", peer.id));
        let giving = builder.stack_size(STACK_BYTES);
        let spawned = giving.spawn_scoped(scope, || end(giver::run(peer, shared)));
        match spawned {
            Ok(_) => end(intake::run(peer, shared)),
            Err(error) => end(intake::Ended::Io(error)),
        }
    });
}

/// Lowers the priority of the calling thread and of those that it starts: anybody may connect, and what such peers make this node
/// compute must not keep validation and the peers that it chose waiting.
fn come_second() {
    #[cfg(target_os = "linux")]
    {
        // On Linux this is the thread's own; elsewhere it would be the whole process's.
        let thread = rustix::thread::gettid();
        if let Err(error) = rustix::process::setpriority_process(Some(thread), INBOUND_NICE) {
            tracing::debug!("The priority of a thread stays as it is: {error}");
        }
    }
}

/// Strikes a peer off whatever happens to its threads.
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

/// A third of the share of a core that other threads have when all cores are busy (`sched(7)`).
#[cfg(target_os = "linux")]
const INBOUND_NICE: i32 = 5;
/// A peer's thread may be in the middle of reading a piece of a block.
const GOODBYE: Duration = Duration::from_secs(10);
/// Blocks and transactions are judged on it.
const STACK_BYTES: usize = 2 << 20;
/// Core `net_processing.cpp`, `NODE_NETWORK_LIMITED_ALLOW_CONN_BLOCKS`.
const LIMITED_BLOCKS: u64 = 144;
/// Core `net.cpp`, `DUMP_PEERS_INTERVAL`.
const SAVE_ADDRESSES: Duration = Duration::from_mins(15);
const ROUND: Duration = Duration::from_millis(100);
