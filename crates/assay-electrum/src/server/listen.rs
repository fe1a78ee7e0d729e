//! Sockets that clients connect to.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, header};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_rustls::TlsAcceptor;

use super::connection;
use super::metrics;
use super::outbox::Ending;
use super::session::Session;
use super::shared::{Connection, Shared};
use super::socket::Socket;

/// TLS handshakes at once: they cost more than anything else that a stranger can ask for.
const HANDSHAKES_MAX: usize = 32;
/// Pause after a failure to accept, most likely for want of file descriptors.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);
/// Time for a request for metrics, and how many at once.
const METRICS_TIME: Duration = Duration::from_secs(10);
const METRICS_MAX: usize = 8;

/// Accepts clients until `stop`; then waits until those that are connected have left.
pub(super) async fn clients(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    shared: Arc<Shared>,
    mut stop: watch::Receiver<bool>,
) {
    let handshakes = Arc::new(Semaphore::new(HANDSHAKES_MAX));
    let mut tasks = JoinSet::new();
    while let Some(accepted) = accept(&listener, &mut stop).await {
        // Reap what has ended, or the set grows with every connection ever made.
        while tasks.try_join_next().is_some() {}
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!("Cannot accept an Electrum connection: {error}");
                sleep(ACCEPT_RETRY).await;
                continue;
            }
        };
        match shared.connect(peer.ip()) {
            Ok(place) => {
                shared.metrics.accepted();
                let client = Client { stream, peer, place: Arc::new(place), stop: stop.clone() };
                let (shared, tls) = (Arc::clone(&shared), tls.clone());
                tasks.spawn(client.serve(shared, tls, Arc::clone(&handshakes)));
            }
            Err(full) => {
                shared.metrics.turned_away();
                tracing::debug!("Turned {peer} away: {full:?}");
            }
        }
    }
    while tasks.join_next().await.is_some() {}
}

async fn accept(
    listener: &TcpListener,
    stop: &mut watch::Receiver<bool>,
) -> Option<io::Result<(TcpStream, SocketAddr)>> {
    tokio::select! {
        accepted = listener.accept() => Some(accepted),
        _ = stop.wait_for(|stop| *stop) => None,
    }
}

struct Client {
    stream: TcpStream,
    peer: SocketAddr,
    place: Arc<Connection>,
    stop: watch::Receiver<bool>,
}

impl Client {
    async fn serve(
        self,
        shared: Arc<Shared>,
        tls: Option<TlsAcceptor>,
        handshakes: Arc<Semaphore>,
    ) {
        let Self { stream, peer, place, stop } = self;
        let deadline = Instant::now() + shared.config.limits.first_request;
        // Answers are small and each is awaited: waiting for more to send would only delay them.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!("Cannot set TCP_NODELAY for {peer}: {error}");
        }
        let stream = Socket::new(stream);
        let session = Arc::new(Session::new(&shared, peer, Arc::clone(&place)));
        let Some(tls) = tls else {
            connection::serve(stream, session, shared, deadline, stop).await;
            drop(place);
            return;
        };
        let handshake = async {
            let _turn = handshakes.acquire().await;
            tls.accept(stream).await
        };
        match timeout_at(deadline, handshake).await {
            Ok(Ok(stream)) => connection::serve(stream, session, shared, deadline, stop).await,
            Ok(Err(error)) => {
                tracing::debug!("No TLS with {peer}: {error}");
                shared.metrics.ended(Ending::Handshake);
            }
            Err(_) => shared.metrics.ended(Ending::NoRequest),
        }
        drop(place);
    }
}

/// Answers `GET /metrics` until `stop`.
pub(super) async fn metrics(
    listener: TcpListener,
    shared: Arc<Shared>,
    mut stop: watch::Receiver<bool>,
) {
    let mut tasks = JoinSet::new();
    let places = Arc::new(Semaphore::new(METRICS_MAX));
    while let Some(accepted) = accept(&listener, &mut stop).await {
        while tasks.try_join_next().is_some() {}
        let Ok((stream, _)) = accepted else {
            sleep(ACCEPT_RETRY).await;
            continue;
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else { continue };
        let shared = Arc::clone(&shared);
        tasks.spawn(async move {
            let service = service_fn(move |request| {
                let response = answer(&request, &shared);
                async move { Ok::<_, Infallible>(response) }
            });
            let mut http = hyper::server::conn::http1::Builder::new();
            http.timer(TokioTimer::new()).keep_alive(false);
            // Whoever asked and did not wait for the answer needs none.
            let _ =
                timeout(METRICS_TIME, http.serve_connection(TokioIo::new(stream), service)).await;
            drop(place);
        });
    }
}

fn answer(request: &Request<Incoming>, shared: &Shared) -> Response<Full<Bytes>> {
    let (status, text) = match (request.method(), request.uri().path()) {
        (&Method::GET, "/metrics") => (StatusCode::OK, metrics::render(shared)),
        (&Method::GET, _) => (StatusCode::NOT_FOUND, "Metrics are at /metrics.\n".to_owned()),
        _ => (StatusCode::METHOD_NOT_ALLOWED, String::new()),
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    let kind = header::HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}
