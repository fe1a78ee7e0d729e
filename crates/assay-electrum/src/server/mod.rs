//! Electrum protocol server over TCP and TLS.
//!
//! [`Server::start`] listens. The follower thread publishes new state through [`Publisher`]. Sockets are served by two small
//! asynchronous runtimes (`runtimes.rs`), requests that read from disk by a bounded number of threads ([`Config::workers`]), and
//! notifications by one more thread. No client can make any of them wait: responses and notifications go to a bounded queue that
//! only the client's own task drains.
//!
//! Methods, versions, limits and omissions: `docs/electrum.md`.

mod client_budget;
mod config;
mod connection;
mod line_reader;
mod merkle;
mod methods;
mod metrics;
mod params;
mod protocol;
mod publisher;
mod request;
mod request_task;
mod runtimes;
mod send_queue;
mod session;
mod snapshot;
mod socket;
mod status;
mod subscriptions;
mod thread_priority;
mod tls;
mod watched;
mod workers;

#[cfg(any(fuzzing, test))]
pub mod fuzzing;
#[cfg(test)]
mod tests;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use assay_store::defect::Whole;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::sync::watch as signal;
use tokio::task::JoinHandle as Task;

use crate::chain::Chain;
use crate::prometheus;

pub use config::{Certificate, Config, Host, Limits};
pub use publisher::Publisher;
pub use tls::TlsError;

use client_budget::{ABSENT_BYTES, ABSENT_MAX, Accounts};
use line_reader::LONG_LINE_UNIT;
use merkle::{BlockTrees, CACHE_BYTES_MAX, HeaderTree};
use metrics::Metrics;
use runtimes::{RuntimeHandles, Runtimes};
use send_queue::{ALWAYS_ALLOWED, SendMemory};
use snapshot::Published;
use subscriptions::{Removals, Subscriptions};
use workers::{Priority, Workers};

/// Upper bound of the node's other open files.
const OTHER_FILES: usize = 1024;
/// Timeout on shutdown for sending queued output.
const STOP_TIME: Duration = Duration::from_secs(10);

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address is reachable from other machines without [`Config::expose`].
    #[error("{address} can be reached from other machines; say so explicitly if that is wanted")]
    Exposed { address: SocketAddr },
    #[error("cannot listen on {address} for Electrum clients: {source}")]
    Bind { address: SocketAddr, source: io::Error },
    #[error("cannot serve TLS: {0}")]
    Tls(#[from] TlsError),
    #[error("cannot start a thread: {source}")]
    Thread { source: io::Error },
}

pub struct Server {
    shared: Arc<Shared>,
    publisher: Arc<Publisher>,
    addresses: Addresses,
    stop: signal::Sender<bool>,
    tasks: Vec<Task<()>>,
    /// Notification thread, and the thread that removes subscriptions of disconnected clients.
    subscription_threads: Vec<JoinHandle<()>>,
    runtimes: Runtimes,
}

/// The server without its sockets.
struct Shared {
    config: Config,
    chain: Arc<dyn Chain>,
    published: Arc<Published>,
    subscriptions: Arc<Subscriptions>,
    header_tree: HeaderTree,
    block_trees: BlockTrees,
    workers: Workers,
    runtimes: RuntimeHandles,
    metrics: Metrics,
    /// Memory for long lines, in units of [`LONG_LINE_UNIT`].
    long_lines: Arc<Semaphore>,
    send_memory: Arc<SendMemory>,
    accounts: Arc<Accounts>,
    /// Disconnected clients whose subscriptions are still being removed.
    removals: Removals,
    next_client: AtomicU64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum DisconnectReason {
    Left,
    Stopping,
    SlowReader,
    /// The send memory of all clients is exhausted, and this client's address uses the most.
    OutputFull,
    Oversize,
    Idle,
    /// Timeout of the first request.
    NoRequest,
    Refused,
    Version,
    Handshake,
    InputFull,
    Defect,
}

impl DisconnectReason {
    /// Labels of a metric, in the order of the reasons.
    const NAMES: [&str; Self::Defect as usize + 1] = [
        "left",
        "stopping",
        "slow-reader",
        "output-full",
        "oversize-line",
        "idle",
        "no-request",
        "too-many-refusals",
        "protocol-version",
        "tls-handshake",
        "input-full",
        "defect",
    ];
}

/// Bound addresses, with the actual ports for port 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Addresses {
    pub tcp: Vec<SocketAddr>,
    pub tls: Vec<SocketAddr>,
    pub metrics: Option<SocketAddr>,
}

impl Server {
    /// Binds the configured addresses and serves them. Until the first publication, requests about the chain get an error.
    pub fn start(config: Config, chain: Arc<dyn Chain>) -> Result<Self, StartError> {
        check_exposure(&config)?;
        raise_file_limit(config.limits.connections_max);
        let acceptor = if config.tls.is_empty() { None } else { Some(tls::acceptor(&config)?) };
        let failed = |source| StartError::Thread { source };
        let (runtimes, handles) = Runtimes::start().map_err(failed)?;
        // A client is not light before its first request; metrics are for the operator.
        let (light, others) =
            (handles.of(Priority::High).clone(), handles.of(Priority::Normal).clone());
        let (tcp, tls, metrics) = (config.tcp.clone(), config.tls.clone(), config.metrics);
        let shared = Arc::new(share(config, chain, handles)?);
        let (stop, stopping) = signal::channel(false);
        let mut server = Self {
            publisher: Arc::new(Publisher::new(
                Arc::clone(&shared.published),
                Arc::clone(&shared.subscriptions),
            )),
            shared,
            addresses: Addresses::default(),
            stop,
            tasks: Vec::new(),
            subscription_threads: Vec::new(),
            runtimes,
        };
        let plain = tcp.into_iter().map(|address| (address, None));
        let tls = tls.into_iter().map(|address| (address, acceptor.clone()));
        for (address, acceptor) in plain.chain(tls) {
            let (listener, bound) = others.block_on(bind(address))?;
            match acceptor {
                None => server.addresses.tcp.push(bound),
                Some(_) => server.addresses.tls.push(bound),
            }
            let shared = Arc::clone(&server.shared);
            let serving = connection::accept(listener, acceptor, shared, stopping.clone());
            server.tasks.push(others.spawn(serving));
        }
        if let Some(address) = metrics {
            let (listener, bound) = others.block_on(bind(address))?;
            server.addresses.metrics = Some(bound);
            let shared = Arc::clone(&server.shared);
            let render = Arc::new(move || metrics::render(&shared));
            let serving = prometheus::serve(listener, render, stopping);
            server.tasks.push(light.spawn(serving));
        }
        let notifying = |shared: &Shared| shared.subscriptions.run();
        let removing = |shared: &Shared| shared.removals.run(&shared.subscriptions);
        let threads = [("electrum-notify", notifying as fn(&Shared)), ("electrum-leave", removing)];
        for (name, run) in threads {
            let shared = Arc::clone(&server.shared);
            let work = move || {
                // A panic may leave shared state inconsistent.
                let _whole = Whole::begin("subscriptions of Electrum clients");
                run(&shared);
            };
            let thread = thread::Builder::new().name(name.to_owned()).spawn(work);
            server.subscription_threads.push(thread.map_err(failed)?);
        }
        Ok(server)
    }

    pub fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    pub fn publisher(&self) -> Arc<Publisher> {
        Arc::clone(&self.publisher)
    }

    pub fn metrics(&self) -> String {
        metrics::render(&self.shared)
    }

    /// Stops accepting clients, sends queued output, and ends.
    pub fn stop(self) {
        drop(self);
    }

    fn shut_down(&mut self) {
        let Some(network) = self.runtimes.take() else { return };
        // There is no receiver if no address is served.
        let _ = self.stop.send(true);
        self.shared.subscriptions.stop();
        let tasks = std::mem::take(&mut self.tasks);
        network.block_on(async {
            let all = async {
                for task in tasks {
                    // The panic handler reported a panic already.
                    let _ = task.await;
                }
            };
            if tokio::time::timeout(STOP_TIME, all).await.is_err() {
                tracing::warn!("Some Electrum clients did not take their last answers");
            }
        });
        self.shared.workers.stop();
        self.shared.removals.stop();
        for thread in self.subscription_threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("A thread that serves subscriptions has failed; this is a defect");
            }
        }
        self.runtimes.stop(STOP_TIME);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shut_down();
    }
}

fn share(
    config: Config,
    chain: Arc<dyn Chain>,
    runtimes: RuntimeHandles,
) -> Result<Shared, StartError> {
    let published = Arc::new(Published::default());
    let limits = &config.limits;
    let subscriptions =
        Subscriptions::new(Arc::clone(&published), Arc::clone(&chain), limits.entries_max);
    let workers = Workers::start(config.workers).map_err(|source| StartError::Thread { source })?;
    Ok(Shared {
        chain,
        published,
        subscriptions: Arc::new(subscriptions),
        header_tree: HeaderTree::default(),
        block_trees: BlockTrees::default(),
        workers,
        runtimes,
        metrics: Metrics::default(),
        long_lines: Arc::new(Semaphore::new(limits.request_bytes_total_max / LONG_LINE_UNIT)),
        send_memory: Arc::new(SendMemory::new(limits.output_bytes_total_max)),
        accounts: Arc::new(Accounts::new(&config)),
        removals: Removals::default(),
        next_client: AtomicU64::new(0),
        config,
    })
}

/// Electrum has no authentication: exposure to other machines must be enabled explicitly.
fn check_exposure(config: &Config) -> Result<(), StartError> {
    let all = config.tcp.iter().chain(&config.tls).chain(&config.metrics);
    match all.into_iter().find(|address| !address.ip().to_canonical().is_loopback()) {
        Some(&address) if !config.expose => Err(StartError::Exposed { address }),
        _ => Ok(()),
    }
}

/// Every connection is an open file: raises the limit of the process as far as permitted, and logs a warning if it is too low.
fn raise_file_limit(connections_max: usize) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let wanted = (connections_max + OTHER_FILES) as u64;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= wanted) {
        return;
    }
    let current = Some(limit.maximum.map_or(wanted, |maximum| maximum.min(wanted)));
    let raised = setrlimit(Resource::Nofile, Rlimit { current, maximum: limit.maximum });
    if raised.is_err() || current < Some(wanted) {
        tracing::warn!(
            "The system allows this process fewer than the {wanted} open files that {connections_max} Electrum \
             clients may need"
        );
    }
}

async fn bind(address: SocketAddr) -> Result<(TcpListener, SocketAddr), StartError> {
    let failed = |source| StartError::Bind { address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    Ok((listener, bound))
}

/// Buffers of a light connection: read buffer, a few responses, session, and TLS state.
const IDLE_CONNECTION_BYTES: usize = (64 << 10) + ALWAYS_ALLOWED;
/// A subscription: entries in the client's map, the script's list and the set of watched scripts, with spare capacity.
const SUBSCRIPTION_BYTES: usize = 768;
/// Memory of a worker per entry of a response: the entry itself and its slot in a list or set.
const ENTRY_BYTES: usize = 128;

impl Limits {
    /// Maximum memory that clients can use with `workers` threads, bytes; without index and mempool, which do not depend on them.
    pub fn memory_bytes_max(&self, workers: usize) -> usize {
        // Workers, and one more for light clients, hold one partial response each, and twice its size while a buffer grows.
        let answer = 2 * self.response_bytes_max + ENTRY_BYTES * self.entries_max;
        let parts = [
            self.connections_max.saturating_mul(IDLE_CONNECTION_BYTES),
            self.request_bytes_total_max,
            self.output_bytes_total_max,
            self.subscriptions_total_max.saturating_mul(SUBSCRIPTION_BYTES),
            (workers + 1).saturating_mul(answer),
            CACHE_BYTES_MAX,
            ABSENT_MAX * ABSENT_BYTES,
        ];
        parts.into_iter().fold(0, usize::saturating_add)
    }
}
