//! Serves metrics over HTTP.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, header};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::accept::accept;
use crate::server::metrics::Text;
use crate::server::schedule::retry::ACCEPT_PAUSE;
use crate::server::shared::Shared;

/// Time for a request for metrics, and how many at once.
const METRICS_TIME: Duration = Duration::from_secs(10);
const METRICS_MAX: usize = 8;

/// Answers `GET /metrics` until `stop`.
pub(in crate::server) async fn serve(
    listener: TcpListener,
    shared: Arc<Shared>,
    mut stop: watch::Receiver<bool>,
) {
    let mut tasks = JoinSet::new();
    let permits = Arc::new(Semaphore::new(METRICS_MAX));
    while let Some(accepted) = accept(&listener, &mut stop).await {
        while tasks.try_join_next().is_some() {}
        let Ok((stream, _)) = accepted else {
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let Ok(permit) = Arc::clone(&permits).try_acquire_owned() else { continue };
        let shared = Arc::clone(&shared);
        tasks.spawn(async move {
            let service = service_fn(move |request| {
                let response = answer(&request, &shared);
                async move { Ok::<_, Infallible>(response) }
            });
            let mut http = hyper::server::conn::http1::Builder::new();
            http.timer(TokioTimer::new()).keep_alive(false);
            // A client that did not wait for the response needs none.
            let _ =
                timeout(METRICS_TIME, http.serve_connection(TokioIo::new(stream), service)).await;
            drop(permit);
        });
    }
}

fn answer(request: &Request<Incoming>, shared: &Shared) -> Response<Full<Bytes>> {
    let (status, text) = match (request.method(), request.uri().path()) {
        (&Method::GET, "/metrics") => (StatusCode::OK, render(shared)),
        (&Method::GET, _) => (StatusCode::NOT_FOUND, "Metrics are at /metrics.\n".to_owned()),
        _ => (StatusCode::METHOD_NOT_ALLOWED, String::new()),
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    let kind = header::HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// All metrics in Prometheus' text format.
pub(in crate::server) fn render(shared: &Shared) -> String {
    let mut text = Text::new();
    shared.metrics.render(&mut text);
    render_state(shared, &mut text);
    text.into_string()
}

fn render_state(shared: &Shared, text: &mut Text) {
    let (high, normal) = shared.workers.waiting();
    let (headers, outpoints) = shared.subscriptions.counts();
    let pool = shared.published.read(|snapshot, pool| {
        (u64::from(snapshot.tip.height), pool.len() as u64, pool.fees().vsize())
    });
    let (height, txs, vsize) = pool.unwrap_or_default();
    let load = |counter: &AtomicUsize| counter.load(Ordering::Relaxed) as u64;
    for (name, help, value) in [
        ("clients", "Open connections.", shared.accounts.connections() as u64),
        (
            "subscriptions",
            "Subscriptions to scripts and outpoints.",
            load(&shared.subscriptions.count),
        ),
        ("header_subscriptions", "Clients that subscribed to headers.", headers as u64),
        (
            "watched_scripts",
            "Scripts that somebody subscribed to.",
            shared.subscriptions.watched().len() as u64,
        ),
        ("watched_outpoints", "Outpoints that somebody subscribed to.", outpoints as u64),
        ("queue_express", "Requests of light clients that wait for a worker.", high as u64),
        ("queue_ordinary", "Requests of other clients that wait for a worker.", normal as u64),
        (
            "notification_backlog",
            "Scripts and outpoints that changed and are still to be looked up.",
            load(&shared.subscriptions.backlog),
        ),
        ("accounts", "Addresses whose use is remembered.", shared.accounts.len() as u64),
        (
            "output_bytes",
            "Bytes that wait to be read by clients.",
            shared.send_memory.bytes() as u64,
        ),
        ("index_height", "Height of the highest block that clients see.", height),
        ("mempool_transactions", "Unconfirmed transactions.", txs),
        ("mempool_vbytes", "Their virtual size.", vsize),
    ] {
        text.head(name, "gauge", help);
        text.line(name, "", value);
    }
    let name = "lookups_total";
    text.head(name, "counter", "Scripts and outpoints looked up because something changed.");
    text.line(name, "", load(&shared.subscriptions.lookups));
    let name = "notifications_total";
    text.head(name, "counter", "Notifications queued.");
    text.line(name, "", load(&shared.subscriptions.notifications));
}
