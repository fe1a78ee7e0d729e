//! Accepts connections and answers requests.
//!
//! The order of checks and the status codes are Bitcoin Core's (`httpserver.cpp`, `httprpc.cpp`): client address
//! (the connection is closed), HTTP method (405), path (404), credentials (401), then the body. Network I/O is
//! asynchronous. Calls run on worker threads in two lanes, so that calls that wait for a block do not block other
//! calls.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use assay_electrum::places::{Place, Places};
use http_body_util::Full;
use hyper::body::{Body, Bytes, Incoming};
use hyper::ext::ReasonPhrase;
use hyper::header::{self, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::Subnet;
use super::auth::Authenticator;
use super::body::{self, BodyError};
use super::open::{NO_STORE, OpenLane, Slot};
use super::penalty::Penalties;
use super::timeout_stream::TimeoutStream;
use crate::jsonrpc::body_decoder::Text;
use crate::jsonrpc::{CallContext, Handler, Plan, Reply};

#[derive(Debug, Clone)]
pub struct Limits {
    pub body_bytes_max: usize,
    /// Concurrent calls, excluding waiting calls.
    pub threads: usize,
    /// Requests that may queue for those threads; more are rejected.
    pub queue_max: usize,
    /// Calls that may wait for an event at once.
    pub waiters_max: usize,
    /// Open connections. An address may open another one only while it holds no more than are free.
    pub connections_max: usize,
    /// Timeout for silence between and within requests, and for unread responses.
    pub idle: Duration,
}

impl Default for Limits {
    /// Room for a 256 MB block in hexadecimal; otherwise Bitcoin Core's defaults (`httpserver.h`).
    fn default() -> Self {
        Self {
            body_bytes_max: 640 << 20,
            threads: 16,
            queue_max: 64,
            waiters_max: 64,
            connections_max: 256,
            idle: Duration::from_secs(30),
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("{}", unable_to_bind(*address, source))]
pub struct BindError {
    pub address: SocketAddr,
    pub source: io::Error,
}

/// Core's error text for a failed bind (`net.cpp`, `BindListenPort`).
pub(crate) fn unable_to_bind(address: SocketAddr, source: &io::Error) -> String {
    if source.kind() == io::ErrorKind::AddrInUse {
        return format!(
            "Unable to bind to {address} on this computer. Assay is probably already running."
        );
    }
    let text = source.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let code = source.raw_os_error().unwrap_or_default();
    format!("Unable to bind to {address} on this computer (bind returned error {text} ({code}))")
}

/// Listening sockets, served by [`Server::serve`].
#[derive(Debug)]
pub struct Server {
    listeners: Vec<TcpListener>,
    addresses: Vec<SocketAddr>,
}

impl Server {
    /// Binds all `addresses`.
    ///
    /// # Errors
    /// The first address that cannot be bound.
    pub async fn bind(addresses: &[SocketAddr]) -> Result<Self, BindError> {
        let mut listeners = Vec::new();
        let mut bound = Vec::new();
        for &address in addresses {
            let failed = |source| BindError { address, source };
            let listener = TcpListener::bind(address).await.map_err(failed)?;
            bound.push(listener.local_addr().map_err(failed)?);
            listeners.push(listener);
        }
        Ok(Self { listeners, addresses: bound })
    }

    /// Bound addresses, with port 0 resolved.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Serves until `shutdown` becomes true, then accepts no connections, ends waiting calls, and returns after the running ones.
    pub async fn serve<H: Handler>(
        self,
        handler: Arc<H>,
        authenticator: Authenticator,
        allowed: Vec<Subnet>,
        limits: Limits,
        mut shutdown: watch::Receiver<bool>,
    ) {
        let shared = Arc::new(Shared::new(handler, authenticator, allowed, limits));
        let mut listeners = JoinSet::new();
        for listener in self.listeners {
            listeners.spawn(accept(listener, Arc::clone(&shared), shutdown.clone()));
        }
        asked_to_stop(&mut shutdown).await;
        shared.stopping.store(true, Ordering::Relaxed);
        while listeners.join_next().await.is_some() {}
    }
}

async fn asked_to_stop(shutdown: &mut watch::Receiver<bool>) {
    // An error means that the sender was dropped: shut down as well.
    let _ = shutdown.wait_for(|stop| *stop).await;
}

struct Shared<H> {
    handler: Arc<H>,
    authenticator: Authenticator,
    allowed: Vec<Subnet>,
    limits: Limits,
    connections: Arc<Places>,
    work: Arc<Semaphore>,
    queued: AtomicUsize,
    waiters: Arc<Semaphore>,
    /// Memory for bodies in transit, in units of [`BODY_UNIT`]: two of the largest.
    bodies: Arc<Semaphore>,
    penalties: Penalties,
    open: OpenLane,
    stopping: Arc<AtomicBool>,
}

impl<H> Shared<H> {
    fn new(
        handler: Arc<H>,
        authenticator: Authenticator,
        allowed: Vec<Subnet>,
        limits: Limits,
    ) -> Self {
        Self {
            handler,
            authenticator,
            allowed,
            connections: Places::new(limits.connections_max),
            work: Arc::new(Semaphore::new(limits.threads.max(1))),
            queued: AtomicUsize::new(0),
            waiters: Arc::new(Semaphore::new(limits.waiters_max)),
            bodies: Arc::new(Semaphore::new(2 * body_units(limits.body_bytes_max))),
            penalties: Penalties::default(),
            open: OpenLane::new(limits.queue_max, limits.idle),
            stopping: Arc::default(),
            limits,
        }
    }

    /// Loopback is always allowed.
    fn admits(&self, peer: IpAddr) -> bool {
        peer.to_canonical().is_loopback() || self.allowed.iter().any(|range| range.contains(peer))
    }
}

async fn accept<H: Handler>(
    listener: TcpListener,
    shared: Arc<Shared<H>>,
    mut shutdown: watch::Receiver<bool>,
) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = asked_to_stop(&mut shutdown) => break,
        };
        // Remove finished tasks, or the set grows with every connection.
        while connections.try_join_next().is_some() {}
        match accepted {
            Ok((_, peer)) if !shared.admits(peer.ip()) => {
                tracing::debug!(target: "http", "Connection of {peer} ended: -rpcallowip does not allow it");
            }
            Ok((stream, peer)) => match shared.connections.take(peer.ip()) {
                Some(place) => {
                    let serving =
                        connection(stream, peer, Arc::clone(&shared), shutdown.clone(), place);
                    connections.spawn(serving);
                }
                None => turn_away(&stream, peer),
            },
            Err(error) => {
                // Probably out of file descriptors: an immediate retry would spin.
                tracing::warn!("Cannot accept an RPC connection: {error}");
                sleep(ACCEPT_RETRY).await;
            }
        }
    }
    drop(listener);
    let finish = async { while connections.join_next().await.is_some() {} };
    if timeout(DRAIN, finish).await.is_err() {
        tracing::warn!("Some RPC connections did not finish in time and are cut");
    }
}

/// Best effort: the socket buffer of a new connection accepts a short response at once.
fn turn_away(stream: &TcpStream, peer: SocketAddr) {
    tracing::warn!("Too many RPC connections; {peer} is turned away");
    let _ = stream.try_write(
        b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
    );
}

async fn connection<H: Handler>(
    stream: TcpStream,
    peer: SocketAddr,
    shared: Arc<Shared<H>>,
    mut shutdown: watch::Receiver<bool>,
    _place: Place,
) {
    let idle = shared.limits.idle;
    // Responses are small and clients wait for them: disable Nagle's algorithm.
    let _ = stream.set_nodelay(true);
    // Set once a right password has arrived over this connection.
    let is_known = AtomicBool::new(false);
    let service = service_fn(|request| {
        let (shared, is_known) = (Arc::clone(&shared), &is_known);
        async move { Ok::<_, Infallible>(named(exchange(&shared, peer, is_known, request).await)) }
    });
    let serving = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(idle)
        // Core's spelling: some clients match header names by case.
        .title_case_headers(true)
        .max_buf_size(READ_BUFFER)
        .max_headers(HEADERS_MAX)
        .serve_connection(TokioIo::new(TimeoutStream::new(stream, idle)), service);
    tokio::pin!(serving);
    let ended = tokio::select! {
        ended = &mut serving => ended,
        () = asked_to_stop(&mut shutdown) => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(target: "http", "Connection of {peer} ended: {error}");
    }
}

async fn exchange<H: Handler>(
    shared: &Arc<Shared<H>>,
    peer: SocketAddr,
    is_known: &AtomicBool,
    request: Request<Incoming>,
) -> Answer {
    let user = match admit(shared, peer, is_known, &request).await {
        Ok(Caller::User(user)) => user,
        Ok(Caller::Anyone) => {
            let context = CallContext::new(Arc::clone(&shared.stopping));
            let _guard = context.guard();
            return shared.open.exchange(&shared.handler, context.clone(), request).await;
        }
        Err(rejection) => return dismiss(request, rejection),
    };
    let announced = request.body().size_hint().upper().and_then(|bytes| bytes.try_into().ok());
    let limit = shared.limits.body_bytes_max;
    if announced.is_some_and(|bytes: usize| bytes > limit) {
        let rejection = rejected_body(&BodyError::TooLarge { limit });
        return dismiss(request, rejection);
    }
    // A body of unknown length may reach the limit.
    let Some(room) = body_room(shared, announced.unwrap_or(limit)).await else {
        return dismiss(request, plain(StatusCode::SERVICE_UNAVAILABLE, "Too many large requests"));
    };
    let mut incoming = request.into_body();
    let length = announced.unwrap_or(0);
    let body = match body::read(&mut incoming, length, limit, shared.limits.idle).await {
        Ok(body) => body,
        Err(error) => {
            tokio::spawn(body::linger(incoming, LINGER));
            return closing(rejected_body(&error));
        }
    };
    let context = CallContext::new(Arc::clone(&shared.stopping));
    let _guard = context.guard();
    match run(shared, user, body, room, &context).await {
        Ok(Reply { status, body: Some(body) }) => {
            let mut answer = Response::new(Full::new(Bytes::from(body)));
            *answer.status_mut() = status;
            let json = HeaderValue::from_static("application/json");
            answer.headers_mut().insert(header::CONTENT_TYPE, json);
            answer
        }
        Ok(Reply { status, body: None }) => plain(status, ""),
        Err(answer) => answer,
    }
}

enum Caller {
    User(String),
    Anyone,
}

/// Checks that need no body; returns the caller.
async fn admit<H: Handler>(
    shared: &Shared<H>,
    peer: SocketAddr,
    is_known: &AtomicBool,
    request: &Request<Incoming>,
) -> Result<Caller, Answer> {
    if head_bytes(request) > HEAD_BYTES_MAX {
        return Err(plain(StatusCode::BAD_REQUEST, ""));
    }
    let known = [Method::GET, Method::POST, Method::HEAD, Method::PUT];
    if !known.contains(request.method()) {
        return Err(plain(StatusCode::METHOD_NOT_ALLOWED, ""));
    }
    if shared.handler.is_open(request.uri().path()) {
        return Ok(Caller::Anyone);
    }
    if request.uri().path_and_query().is_none_or(|path| path.as_str() != "/") {
        return Err(plain(StatusCode::NOT_FOUND, ""));
    }
    if request.method() != Method::POST {
        let text = "JSONRPC server handles only POST requests";
        return Err(plain(StatusCode::METHOD_NOT_ALLOWED, text));
    }
    let Some(credentials) = request.headers().get(header::AUTHORIZATION) else {
        return Err(unauthorized());
    };
    if !is_known.load(Ordering::Relaxed) {
        let wait = shared.penalties.wait(peer.ip(), Instant::now());
        // A sleep takes at least one millisecond.
        if !wait.is_zero() {
            sleep(wait).await;
        }
    }
    if let Some(user) = shared.authenticator.check(credentials.as_bytes()) {
        is_known.store(true, Ordering::Relaxed);
        return Ok(Caller::User(user));
    }
    tracing::warn!("Incorrect RPC password attempt from {peer}");
    is_known.store(false, Ordering::Relaxed);
    sleep(shared.penalties.add(peer.ip(), Instant::now())).await;
    Err(unauthorized())
}

/// Size of the request line and the headers, without their constant parts.
fn head_bytes(request: &Request<Incoming>) -> usize {
    let target = request.uri().path_and_query().map_or(0, |target| target.as_str().len());
    let headers = request.headers().iter();
    // Colon, space and line end.
    let headers = headers.map(|(name, value)| name.as_str().len() + value.len() + 4);
    target + headers.sum::<usize>()
}

/// Reserves memory for a body, with a timeout.
async fn body_room<H>(shared: &Shared<H>, bytes: usize) -> Option<OwnedSemaphorePermit> {
    let units = u32::try_from(body_units(bytes)).ok()?;
    let room = Arc::clone(&shared.bodies).acquire_many_owned(units);
    timeout(shared.limits.idle, room).await.ok()?.ok()
}

/// Parses the calls in `body`, frees it, and runs them in their lane.
async fn run<H: Handler>(
    shared: &Arc<Shared<H>>,
    user: String,
    body: Text,
    room: OwnedSemaphorePermit,
    context: &CallContext,
) -> Result<Reply, Answer> {
    let permit = work_permit(shared).await?;
    let (shared_there, worker_context) = (Arc::clone(shared), context.clone());
    let outcome = tokio::task::spawn_blocking(move || {
        let (handler, authenticator) = (&shared_there.handler, &shared_there.authenticator);
        let plan = Plan::new(&**handler, &body, &|method| authenticator.allows(&user, method));
        drop(body);
        drop(room);
        if plan.waits(&**handler) {
            return Err(plan);
        }
        let reply = plan.run(&**handler, &worker_context);
        drop(permit);
        Ok(reply)
    })
    .await
    .map_err(|_| internal_error())?;
    let plan = match outcome {
        Ok(reply) => return Ok(reply),
        Err(plan) => plan,
    };
    let Ok(permit) = Arc::clone(&shared.waiters).try_acquire_owned() else {
        tracing::warn!("Request rejected because too many calls wait already");
        return Err(plain(StatusCode::SERVICE_UNAVAILABLE, "Work queue depth exceeded"));
    };
    let (handler, context) = (Arc::clone(&shared.handler), context.clone());
    tokio::task::spawn_blocking(move || {
        let reply = plan.run(&*handler, &context);
        drop(permit);
        reply
    })
    .await
    .map_err(|_| internal_error())
}

async fn work_permit<H>(shared: &Shared<H>) -> Result<OwnedSemaphorePermit, Answer> {
    if let Ok(permit) = Arc::clone(&shared.work).try_acquire_owned() {
        return Ok(permit);
    }
    let queued = Slot::take(&shared.queued);
    if queued.position > shared.limits.queue_max {
        tracing::warn!("Request rejected because the RPC work queue is full");
        return Err(plain(StatusCode::SERVICE_UNAVAILABLE, "Work queue depth exceeded"));
    }
    Arc::clone(&shared.work).acquire_owned().await.map_err(|_| internal_error())
}

type Answer = Response<Full<Bytes>>;

fn plain(status: StatusCode, text: &'static str) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from_static(text.as_bytes())));
    *answer.status_mut() = status;
    if status != StatusCode::NO_CONTENT {
        let kind = HeaderValue::from_static("text/plain; charset=utf-8");
        answer.headers_mut().insert(header::CONTENT_TYPE, kind);
    }
    // Core omits the body for these.
    let (unauthorized, forbidden) = (StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN);
    if ![StatusCode::NO_CONTENT, unauthorized, forbidden].contains(&status) {
        answer.headers_mut().insert(header::CACHE_CONTROL, NO_STORE);
    }
    answer
}

/// Sets Core's reason phrase where it differs from the HTTP standard (`rpc/protocol.h`).
fn named(mut answer: Answer) -> Answer {
    if answer.status() == StatusCode::PAYLOAD_TOO_LARGE {
        answer.extensions_mut().insert(ReasonPhrase::from_static(b"Content too large"));
    }
    answer
}

fn unauthorized() -> Answer {
    let mut answer = plain(StatusCode::UNAUTHORIZED, "");
    let realm = HeaderValue::from_static("Basic realm=\"jsonrpc\"");
    answer.headers_mut().insert(header::WWW_AUTHENTICATE, realm);
    answer
}

fn internal_error() -> Answer {
    closing(plain(
        StatusCode::INTERNAL_SERVER_ERROR,
        "The call failed inside the node; see its log",
    ))
}

fn rejected_body(error: &BodyError) -> Answer {
    let status = match error {
        BodyError::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        BodyError::Stalled { .. } => StatusCode::REQUEST_TIMEOUT,
        BodyError::NoMemory { .. } => StatusCode::SERVICE_UNAVAILABLE,
        BodyError::Transport(_) => StatusCode::BAD_REQUEST,
    };
    tracing::warn!("RPC request rejected: {error}");
    let mut answer = Response::new(Full::new(Bytes::from(format!("{error}\n"))));
    *answer.status_mut() = status;
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    answer.headers_mut().insert(header::CONTENT_TYPE, kind);
    answer
}

fn closing(mut answer: Answer) -> Answer {
    answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    answer
}

/// Responds without the body of the request. A small rest is read and discarded, so that the connection stays usable. Of a large
/// one only as much is read as arrives within [`LINGER`]; a client that waits for `100 Continue` does not get it.
fn dismiss(request: Request<Incoming>, answer: Answer) -> Answer {
    let rest = request.body().size_hint().upper();
    if rest == Some(0) {
        return answer;
    }
    if !request.headers().contains_key(header::EXPECT) {
        tokio::spawn(body::linger(request.into_body(), LINGER));
    }
    if rest.is_some_and(|bytes| bytes <= SMALL_REST) { answer } else { closing(answer) }
}

fn body_units(bytes: usize) -> usize {
    bytes.div_ceil(BODY_UNIT)
}

const ACCEPT_RETRY: Duration = Duration::from_millis(100);
/// Time for running calls to finish at shutdown. Block connection always finishes.
const DRAIN: Duration = Duration::from_mins(5);
const LINGER: Duration = Duration::from_secs(2);
const SMALL_REST: u64 = 64 << 10;
const BODY_UNIT: usize = 64 << 10;
/// Core's `MAX_HEADERS_SIZE` (`httpserver.h`).
const HEAD_BYTES_MAX: usize = 8192;
/// As many short headers as that allows; hyper allocates for each in advance.
const HEADERS_MAX: usize = 512;
/// Blocks arrive in few large reads.
const READ_BUFFER: usize = 1 << 20;
