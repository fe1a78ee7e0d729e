//! Node lifecycle: start, serve, stop.

use std::fmt;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use assay_engine::{Engine, ImportError, defect};
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::config::{NodeConfig, Notify, RpcConfig};
use crate::electrum::IndexService;
use crate::error::NodeError;
use crate::http::{AuthError, Authenticator, CookieFile, Limits, OPEN_THREADS, Server};
use crate::indexes::{BlockIndexes, IndexFollowers};
use crate::lock::FolderLock;
use crate::log;
use crate::metrics::Metrics;
use crate::notify;
use crate::p2p::{self, P2pService};
use crate::rpc::{Rpc, ServedIndex};
use crate::zmq::ZmqSockets;

/// Runs a node until SIGTERM, SIGINT or the RPC method `stop`.
///
/// From here on a panic on any thread ends the process ([`defect::stop_on_panic`]), even a panic that could be
/// caught: a node in an inconsistent state must not continue. The next start recovers as after SIGKILL.
///
/// # Errors
/// The node could not start, or could not write all data at the end.
pub fn run(config: &NodeConfig) -> Result<(), NodeError> {
    run_with(config, |_| ())
}

/// [`run`] with an observer of the running node, dropped after the node has stopped.
///
/// # Errors
/// As [`run`].
pub fn run_with<W>(config: &NodeConfig, watch: impl FnOnce(&Node) -> W) -> Result<(), NodeError> {
    defect::log_to(|reason| tracing::error!("Stopped by a defect: {reason}"));
    defect::stop_on_panic();
    let node = Node::start(config)?;
    let watching = watch(&node);
    let ended = node.wait();
    drop(watching);
    defect::write_passes();
    ended
}

#[derive(Clone)]
pub struct PeerCount(Option<Arc<p2p::P2p>>);

impl PeerCount {
    pub fn get(&self) -> usize {
        self.0.as_ref().map_or(0, |network| network.peers.count())
    }
}

pub struct Node {
    runtime: Runtime,
    serving: JoinHandle<()>,
    engine: Arc<Engine>,
    index: Option<IndexService>,
    index_followers: IndexFollowers,
    p2p: Option<P2pService>,
    /// Threads that end once the engine is closed.
    threads: Vec<thread::JoinHandle<()>>,
    log_name: String,
    notify: Notify,
    addresses: Vec<SocketAddr>,
    metrics_address: Option<SocketAddr>,
    stop: watch::Sender<bool>,
    cookie: Option<CookieFile>,
    // Released last, in this order.
    _pid: PidFile,
    _blocks_lock: FolderLock,
    _lock: FolderLock,
}

#[derive(Debug, Clone)]
pub struct StopHandle {
    stop: watch::Sender<bool>,
}

impl StopHandle {
    /// Requests the stop; [`Node::wait`] returns when it is complete.
    pub fn stop(&self) {
        self.stop.send_replace(true);
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node").field("rpc_addresses", &self.addresses).finish_non_exhaustive()
    }
}

impl Node {
    /// Opens the chain and starts to serve. While the chain opens, RPC calls fail with the warm-up error.
    ///
    /// # Errors
    /// Any failure to start.
    pub fn start(config: &NodeConfig) -> Result<Self, NodeError> {
        Self::open(config).inspect_err(|error| tracing::error!("Error: {error}"))
    }

    fn open(config: &NodeConfig) -> Result<Self, NodeError> {
        let dir = config.chain_dir();
        reject_contradictions(config)?;
        let dir_lock = FolderLock::make(&dir)?;
        // The blocks folder may be shared while the data directory is not.
        let blocks_lock = FolderLock::make(&config.blocks_dir())?;
        let log_path = open_log(config, &dir)?;
        announce(config, &dir);
        let pid = PidFile::create(dir.join(&config.pid_file))?;
        let limits = &config.rpc.limits;
        let runtime = runtime(limits).map_err(NodeError::Runtime)?;
        let (stop, stopping) = watch::channel(false);
        if config.handle_signals {
            handle_signals(&runtime, stop.clone()).map_err(NodeError::Runtime)?;
        }
        let mut authenticator = Authenticator::new();
        let cookie = credentials(&config.rpc, &dir, &mut authenticator)?;
        let server = bind_rpc(config, &runtime)?;
        let addresses = server.addresses().to_vec();
        let (metrics, metrics_address) = serve_metrics(config, &runtime, &stopping)?;
        let log_name = log_path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let rpc = methods(config, log_path, stop.clone());
        let peers_stopping = stopping.clone();
        let serving = runtime.spawn(server.serve(
            Arc::clone(&rpc),
            authenticator,
            config.rpc.allow.clone(),
            limits.clone(),
            stopping,
        ));
        let zmq = ZmqSockets::bind(&config.zmq, runtime.handle());
        let engine = Arc::new(open_engine(config, dir, zmq.is_some())?);
        metrics.set_engine(Arc::clone(&engine));
        let publish = |zmq| publish(zmq, &rpc, &engine);
        let publishing = zmq.map(publish).transpose().map_err(NodeError::Runtime)?;
        let mut threads = watch(config, &engine, &stop).map_err(NodeError::Runtime)?;
        threads.extend(publishing);
        let is_importing = engine.blocks().is_reindexing() || !config.load_blocks.is_empty();
        if is_importing {
            // This may take hours, during which RPC works and the node can be stopped; P2P starts later.
            rpc.set_engine(Arc::clone(&engine));
            import(config, &engine, &|| !*peers_stopping.borrow())?;
        }
        let tip = engine.chain().tip();
        let indexes = BlockIndexes::open(config)
            .and_then(|indexes| Ok((indexes.follow(config, &engine)?, indexes)));
        let (index_followers, indexes) = match indexes {
            Ok(indexes) => indexes,
            Err(error) => {
                if let Err(error) = engine.shutdown() {
                    tracing::error!("Could not write everything out: {error}");
                }
                join(threads);
                return Err(error);
            }
        };
        // RPC clients may connect peers as soon as calls are answered.
        let serve = |p2p| {
            P2pService::start(p2p, (&engine, indexes.filters.clone()), &runtime, &peers_stopping)
        };
        let p2p = config.p2p.as_ref().map(serve).transpose()?;
        if let Some(p2p) = &p2p {
            rpc.set_network(p2p.network().clone());
            metrics.set_network(p2p.network().clone());
        }
        rpc.set_block_indexes(indexes);
        if !is_importing {
            rpc.set_engine(Arc::clone(&engine));
        }
        tracing::info!("Loaded the chain: height={} best={}", tip.height, tip.hash);
        let load = || load_mempool(Arc::clone(&engine)).map_err(NodeError::Runtime);
        threads.extend(config.engine.persist_mempool.then(load).transpose()?);
        let index = start_index(config, &engine, &rpc)?;
        // Core's wording; scripts wait for this line.
        tracing::info!("init message: Done loading");
        notify::started(&config.notify);
        Ok(Self {
            runtime,
            serving,
            engine,
            index,
            index_followers,
            p2p,
            threads,
            log_name,
            notify: config.notify.clone(),
            addresses,
            metrics_address,
            stop,
            cookie,
            _pid: pid,
            _blocks_lock: blocks_lock,
            _lock: dir_lock,
        })
    }

    pub fn rpc_addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics_address
    }

    pub fn electrum_addresses(&self) -> assay_electrum::server::Addresses {
        self.index.as_ref().map(IndexService::addresses).unwrap_or_default()
    }

    pub fn p2p_address(&self) -> Option<SocketAddr> {
        self.p2p.as_ref().and_then(P2pService::address)
    }

    pub fn peer_count(&self) -> PeerCount {
        PeerCount(self.p2p.as_ref().map(|p2p| p2p.network().clone()))
    }

    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    pub fn stop_handle(&self) -> StopHandle {
        StopHandle { stop: self.stop.clone() }
    }

    /// Waits for a requested stop to complete: calls have finished, all data is written, and the lock and PID files are gone.
    ///
    /// # Errors
    /// Not all data could be written.
    pub fn wait(self) -> Result<(), NodeError> {
        let Self {
            runtime,
            serving,
            engine,
            mut index,
            index_followers,
            p2p,
            threads,
            log_name,
            notify,
            addresses: _,
            metrics_address: _,
            stop,
            cookie,
            _pid: pid,
            _blocks_lock: blocks_lock,
            _lock: lock,
        } = self;
        let served = runtime.block_on(async {
            let mut stopping = stop.subscribe();
            // Cannot fail: this function holds a sender.
            let _ = stopping.wait_for(|stop| *stop).await;
            tracing::info!("Shutdown: In progress...");
            // Commands may be slow and may still call the node.
            let commands = tokio::task::spawn_blocking(move || notify::stopping(&notify));
            let served = serving.await;
            let _ = commands.await;
            served
        });
        if let Err(error) = served {
            tracing::error!("The RPC server ended abnormally: {error}");
        }
        drop(cookie);
        if let Some(index) = &mut index {
            index.stop_serving();
        }
        if let Some(p2p) = &p2p {
            p2p.stop_serving();
        }
        let flushed = engine.shutdown();
        // Index threads see the closed engine; they still read archived blocks.
        if let Some(index) = index {
            index.join();
        }
        index_followers.join();
        if let Some(p2p) = p2p {
            p2p.join();
        }
        join(threads);
        // Calls that outlive the shutdown timeout continue on a closed engine and are abandoned.
        runtime.shutdown_background();
        let failure = engine.failure();
        drop(engine);
        drop(pid);
        match &flushed {
            Ok(()) => tracing::info!("Shutdown: done"),
            Err(error) => tracing::error!("Shutdown: could not write everything out: {error}"),
        }
        drop(blocks_lock);
        drop(lock);
        match failure {
            Some(cause) => Err(NodeError::Fatal { log: log_name, cause }),
            None => Ok(flushed?),
        }
    }
}

fn runtime(limits: &Limits) -> io::Result<Runtime> {
    Builder::new_multi_thread()
        .worker_threads(IO_THREADS)
        .max_blocking_threads(limits.threads.max(1) + limits.waiters_max + OPEN_THREADS)
        .thread_name("rpc")
        .enable_all()
        .build()
}

/// Waits for threads to end.
fn join(threads: Vec<thread::JoinHandle<()>>) {
    for thread in threads {
        let name = thread.thread().name().unwrap_or_default().to_owned();
        if thread.join().is_err() {
            tracing::error!("The thread {name} ended abnormally");
        }
    }
}

/// Starts the threads that follow the engine.
fn watch(
    config: &NodeConfig,
    engine: &Arc<Engine>,
    stop: &watch::Sender<bool>,
) -> io::Result<Vec<thread::JoinHandle<()>>> {
    let mut threads = vec![notify::watch_failure(engine, stop.clone())?];
    threads.push(validate_historical(engine)?);
    threads.extend(notify::watch_tip(config, engine, stop.clone())?);
    threads.extend(notify::watch_alerts(config, engine)?);
    Ok(threads)
}

fn validate_historical(engine: &Arc<Engine>) -> io::Result<thread::JoinHandle<()>> {
    let engine = Arc::clone(engine);
    thread::Builder::new().name("historical".to_owned()).spawn(move || {
        if let Err(error) = engine.chain().validate_historical() {
            tracing::error!("Blocks below the snapshot cannot be validated: {error}");
        }
    })
}

/// Stops the node on signals. Install the handlers before the node becomes visible.
fn handle_signals(runtime: &Runtime, stop: watch::Sender<bool>) -> io::Result<()> {
    let _context = runtime.enter();
    runtime.spawn(stop_on_signals(stop)?);
    Ok(())
}

fn open_engine(config: &NodeConfig, path: PathBuf, has_events: bool) -> Result<Engine, NodeError> {
    let mut config = config.engine_config();
    config.has_events = has_events;
    Engine::open(config).map_err(|source| NodeError::Open { path, source })
}

fn bind_rpc(config: &NodeConfig, runtime: &Runtime) -> Result<Server, NodeError> {
    let server = runtime.block_on(Server::bind(&config.rpc.bind))?;
    for address in server.addresses() {
        tracing::info!("Binding RPC on address {} port {}", address.ip(), address.port());
    }
    Ok(server)
}

/// RPC methods, without a chain yet.
fn methods(config: &NodeConfig, log_path: PathBuf, stop: watch::Sender<bool>) -> Arc<Rpc> {
    let rpc = Rpc::new(Arc::clone(&config.engine.params), config.user_agent(), log_path, stop);
    Arc::new(rpc.with_deprecated(config.rpc.deprecated.clone()).with_rest(config.rpc.rest))
}

/// Starts the script or transaction index if configured.
fn start_index(
    config: &NodeConfig,
    engine: &Arc<Engine>,
    rpc: &Rpc,
) -> Result<Option<IndexService>, NodeError> {
    let index = IndexService::start(config, engine)?;
    if let Some(index) = &index {
        let index = Arc::clone(index.index());
        rpc.set_index(ServedIndex { index, is_tx_index: config.tx_index });
    }
    Ok(index)
}

fn serve_metrics(
    config: &NodeConfig,
    runtime: &Runtime,
    stopping: &watch::Receiver<bool>,
) -> Result<(Arc<Metrics>, Option<SocketAddr>), NodeError> {
    let metrics = Metrics::new(config.engine.params.name);
    let serve = |address| metrics.serve(address, runtime, stopping.clone());
    let address = config.metrics.map(serve).transpose()?;
    Ok((metrics, address))
}

/// Starts the ZeroMQ publisher and registers its topics with RPC.
fn publish(zmq: ZmqSockets, rpc: &Rpc, engine: &Arc<Engine>) -> io::Result<thread::JoinHandle<()>> {
    rpc.set_zmq(zmq.publications().to_vec());
    zmq.publish(engine)
}

fn load_mempool(engine: Arc<Engine>) -> io::Result<thread::JoinHandle<()>> {
    thread::Builder::new().name("mempool".to_owned()).spawn(move || {
        if let Err(error) = engine.mempool().load() {
            tracing::warn!("Starting with an empty mempool: {error}");
        }
    })
}

/// Opens the log if configured; returns its path.
fn open_log(config: &NodeConfig, dir: &Path) -> Result<PathBuf, NodeError> {
    let Some(log) = &config.log else { return Ok(dir.join(log::FILE_NAME)) };
    let path = log.path(dir);
    log::install(log, &path)?;
    Ok(path)
}

/// Imports block files until done or stopped.
fn import(
    config: &NodeConfig,
    engine: &Engine,
    goes_on: &dyn Fn() -> bool,
) -> Result<(), NodeError> {
    // Core's log lines; scripts wait for them.
    tracing::info!("initload thread start");
    if engine.blocks().is_reindexing() {
        engine.blocks().reindex(goes_on)?;
    }
    for path in &config.load_blocks {
        if !goes_on() {
            break;
        }
        // As in Core, a missing file does not stop the node.
        match engine.blocks().load(path, goes_on) {
            Ok(taken) => tracing::info!("{} blocks from {}", taken.blocks, path.display()),
            Err(ImportError::Files(error)) => tracing::warn!("Could not open blocks file: {error}"),
            Err(error) => return Err(error.into()),
        }
    }
    tracing::info!("initload thread exit");
    Ok(())
}

/// Rejects settings that exclude each other and servers exposed to other machines without an explicit setting.
fn reject_contradictions(config: &NodeConfig) -> Result<(), NodeError> {
    reject_exposure(&config.rpc)?;
    if config.engine.prune.is_some() && (config.index.is_some() || config.tx_index) {
        return Err(NodeError::PruneWithIndex);
    }
    config.p2p.as_ref().map_or(Ok(()), p2p::reject_exposure)
}

/// The server has no TLS and at most a password: remote access requires an explicit setting.
fn reject_exposure(rpc: &RpcConfig) -> Result<(), NodeError> {
    let exposed = rpc.bind.iter().find(|address| !address.ip().is_loopback());
    match exposed {
        Some(&address) if rpc.allow.is_empty() => Err(NodeError::Exposed { address }),
        _ => Ok(()),
    }
}

fn announce(config: &NodeConfig, dir: &Path) {
    tracing::info!("Assay version v{}", env!("CARGO_PKG_VERSION"));
    let engine = &config.engine;
    tracing::info!("Chain {}, data directory {}", engine.params.name, dir.display());
    let cache_mib = engine.cache_bytes_max >> 20;
    tracing::info!("Script verification uses {} threads", engine.threads);
    tracing::info!("Using up to {cache_mib} MiB for coins in memory");
}

/// Sets up users as in Bitcoin Core: a plaintext password replaces the cookie, hashed ones do not.
fn credentials(
    rpc: &RpcConfig,
    dir: &Path,
    authenticator: &mut Authenticator,
) -> Result<Option<CookieFile>, NodeError> {
    authenticator.set_whitelist(rpc.whitelist.clone());
    for entry in &rpc.auth {
        authenticator.add_entry(entry.clone());
    }
    for text in &rpc.auth_texts {
        authenticator.add_entry(text.parse().map_err(AuthError::from)?);
    }
    if rpc.bind.is_empty() {
        return Ok(None);
    }
    if let Some((user, password)) = &rpc.password {
        tracing::info!("Using rpcuser/rpcpassword authentication.");
        authenticator.add_password(user, password)?;
        return Ok(None);
    }
    let Some(path) = &rpc.cookie_file else { return Ok(None) };
    let cookie = CookieFile::create(&dir.join(path), rpc.cookie_mode, authenticator)?;
    tracing::info!("Using random cookie authentication, {}", cookie.path().display());
    Ok(Some(cookie))
}

fn stop_on_signals(stop: watch::Sender<bool>) -> io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hangup = signal(SignalKind::hangup())?;
    Ok(async move {
        loop {
            let name = tokio::select! {
                Some(()) = terminate.recv() => "SIGTERM",
                Some(()) = interrupt.recv() => "SIGINT",
                Some(()) = hangup.recv() => {
                    log::reopen();
                    continue;
                }
                else => return,
            };
            tracing::info!("Received {name}");
            stop.send_replace(true);
        }
    })
}

/// PID file for scripts; removed on drop.
#[derive(Debug)]
struct PidFile {
    path: PathBuf,
}

impl PidFile {
    fn create(path: PathBuf) -> Result<Self, NodeError> {
        match fs::write(&path, format!("{}\n", std::process::id())) {
            Ok(()) => Ok(Self { path }),
            Err(source) => Err(NodeError::Marker { path, source }),
        }
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!("Unable to remove {}: {error}", self.path.display());
        }
    }
}

/// They only move bytes.
const IO_THREADS: usize = 2;
