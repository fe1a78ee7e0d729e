//! Serves the chain to peers: a source of blocks for nodes that sync.
//!
//! Peers connect to us, never we to them. They get headers, blocks and news of blocks; nothing is taken from them, so there is
//! nothing to judge but their manners. Every peer has two threads, one that reads requests ([`intake`]) and one that answers them
//! ([`giver`]), with a bounded queue between them ([`outbox`]). Blocks go from the archive to the socket a piece at a time.

mod config;
mod giver;
mod intake;
mod outbox;
mod peers;
mod rate;

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::Duration;

use assay_engine::Engine;
use assay_wire::p2p::{LARGE_MESSAGE_BYTES_MAX, MESSAGE_BYTES_MAX};
use assay_wire::{BlockHash, Encoding};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::watch;

pub use self::config::{P2pConfig, P2pTimeouts};
pub(crate) use self::peers::{Peer, Peers};
use self::rate::Rate;
use crate::error::NodeError;

/// Core's `node/protocol_version.h`.
pub(crate) const PROTOCOL_VERSION: i32 = 70016;
/// Bitcoin Core 0.8 and those that came with it.
pub(crate) const PROTOCOL_MIN: i32 = 60002;

/// Names of service bits, lowest first (Core `protocol.h`; BCHN `protocol.h` for the sixth).
pub(crate) const SERVICES: [(u64, &str); 4] = [
    (NODE_NETWORK, "NETWORK"),
    (NODE_WITNESS, "WITNESS"),
    (NODE_BITCOIN_CASH, "BITCOIN_CASH"),
    (NODE_NETWORK_LIMITED, "NETWORK_LIMITED"),
];
const NODE_NETWORK: u64 = 1;
const NODE_WITNESS: u64 = 1 << 3;
const NODE_BITCOIN_CASH: u64 = 1 << 5;
const NODE_NETWORK_LIMITED: u64 = 1 << 10;

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
    message_bytes_max: u32,
    /// Held while witnesses are taken off a block.
    stripping: Mutex<()>,
}

/// The server of a running node.
pub(crate) struct P2pService {
    peers: Arc<Peers>,
    address: SocketAddr,
    services: u64,
    herald: thread::JoinHandle<()>,
}

/// Peers are strangers: other machines are let in on request only.
pub(crate) fn refuse_exposure(config: &P2pConfig) -> Result<(), NodeError> {
    if config.expose || config.bind.ip().is_loopback() {
        return Ok(());
    }
    Err(NodeError::P2pExposed { address: config.bind })
}

impl P2pService {
    /// Listens, and serves until `stopping` becomes true.
    pub(crate) fn start(
        config: &P2pConfig,
        engine: &Arc<Engine>,
        runtime: &Runtime,
        stopping: watch::Receiver<bool>,
    ) -> Result<Self, NodeError> {
        let failed = |source| NodeError::P2pBind { address: config.bind, source };
        let listener = runtime.block_on(TcpListener::bind(config.bind)).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let params = engine.params();
        let own = match params.encoding {
            Encoding::Segwit => NODE_WITNESS,
            Encoding::Legacy => NODE_BITCOIN_CASH,
        };
        let services = NODE_NETWORK | NODE_NETWORK_LIMITED | own;
        let is_large = params.block_bytes_max() > u64::from(MESSAGE_BYTES_MAX);
        let shared = Arc::new(Shared {
            config: config.clone(),
            engine: Arc::clone(engine),
            peers: Arc::default(),
            rate: Rate::new(config.rate),
            magic: params.magic,
            encoding: params.encoding,
            genesis: params.genesis_hash,
            services,
            message_bytes_max: if is_large { LARGE_MESSAGE_BYTES_MAX } else { MESSAGE_BYTES_MAX },
            stripping: Mutex::new(()),
        });
        let peers = Arc::clone(&shared.peers);
        let herald = {
            let shared = Arc::clone(&shared);
            let builder = thread::Builder::new().name("p2p-news".to_owned());
            builder.spawn(move || tell_news(&shared)).map_err(NodeError::Runtime)?
        };
        runtime.spawn(accept(listener, shared, stopping));
        tracing::info!("Serving blocks to peers on {address}");
        Ok(Self { peers, address, services, herald })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn services(&self) -> u64 {
        self.services
    }

    pub(crate) fn peers(&self) -> &Arc<Peers> {
        &self.peers
    }

    /// Ends all connections and waits until nobody reads blocks any more.
    pub(crate) fn stop_serving(&self) {
        self.peers.close();
        if !self.peers.wait_until_gone(GOODBYE) {
            tracing::warn!("Some connections of peers did not end in time");
        }
    }

    /// Waits for the last thread, which ends when the engine closes.
    pub(crate) fn join(self) {
        if self.herald.join().is_err() {
            tracing::error!("Telling peers of new blocks ended abnormally");
        }
    }
}

/// Tells every peer of every new tip.
fn tell_news(shared: &Shared) {
    let mut seen = shared.engine.tip().hash;
    while !shared.engine.is_shutting_down() {
        let tip = shared.engine.wait_for_tip_change(seen, None);
        if tip.hash != seen {
            seen = tip.hash;
            shared.peers.list().iter().for_each(|peer| peer.outbox.tell_news());
        }
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>, mut stopping: watch::Receiver<bool>) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopping.wait_for(|stop| *stop) => return,
        };
        let entered = match accepted {
            Ok((stream, address)) => enter(stream, address, &shared),
            Err(error) => Err(error),
        };
        if let Err(error) = entered {
            // Out of descriptors or threads, most likely: retrying at once would only spin.
            tracing::warn!("Cannot accept a peer: {error}");
            tokio::time::sleep(ACCEPT_RETRY).await;
        }
    }
}

fn enter(
    stream: tokio::net::TcpStream,
    address: SocketAddr,
    shared: &Arc<Shared>,
) -> io::Result<()> {
    let stream: TcpStream = stream.into_std()?;
    stream.set_nonblocking(false)?;
    // Answers are awaited, and blocks are written in large pieces.
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(shared.config.timeouts.stall))?;
    let (max, per_address_max) = (shared.config.peers_max, shared.config.peers_per_address_max());
    let Some(peer) = shared.peers.enter(stream, address, max, per_address_max) else {
        tracing::info!("Too many peers, in all or from one address: {address} is turned away");
        return Ok(());
    };
    let (id, connection) = (peer.id, Arc::clone(shared));
    let serving = Arc::clone(&peer);
    let builder = thread::Builder::new().name(format!("peer-{id}")).stack_size(STACK_BYTES);
    let spawned = builder.spawn(move || serve(&serving, &connection));
    spawned.map(drop).inspect_err(|_| shared.peers.leave(&peer))
}

/// The life of a connection.
fn serve(peer: &Arc<Peer>, shared: &Shared) {
    let _leaving = Leaving { peer, shared };
    let ended = OnceLock::new();
    let end = |reason| {
        // The first one is the cause; closing makes the other thread end as well.
        let _ = ended.set(reason);
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
    let (id, address) = (peer.id, peer.address);
    match ended.get() {
        Some(reason) if reason.is_fault() => {
            tracing::warn!("Disconnecting peer {id} ({address}): {reason}");
        }
        Some(reason) => tracing::info!("Peer {id} ({address}) disconnected: {reason}"),
        None => {}
    }
}

/// Strikes a peer off whatever happens to its threads.
struct Leaving<'a> {
    peer: &'a Peer,
    shared: &'a Shared,
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.shared.peers.leave(self.peer);
    }
}

const ACCEPT_RETRY: Duration = Duration::from_millis(100);
/// A peer's thread may be in the middle of reading a piece of a block.
const GOODBYE: Duration = Duration::from_secs(10);
/// Nothing is on the stack but a few headers.
const STACK_BYTES: usize = 256 << 10;
