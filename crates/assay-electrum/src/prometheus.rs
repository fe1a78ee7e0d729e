//! Metrics in Prometheus' text format, and their HTTP server.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, header};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::places::Places;

/// Metrics as text, with a common name prefix.
pub struct Text {
    prefix: &'static str,
    text: String,
}

impl Text {
    /// Empty; names begin with `prefix` and `_`.
    pub fn new(prefix: &'static str) -> Self {
        Self { prefix, text: String::with_capacity(16 << 10) }
    }

    pub fn into_string(self) -> String {
        self.text
    }

    /// Appends the header of a metric; `kind` is `counter`, `gauge` or `histogram`.
    pub fn head(&mut self, name: &str, kind: &str, help: &str) {
        let prefix = self.prefix;
        self.add(format_args!("# HELP {prefix}_{name} {help}\n# TYPE {prefix}_{name} {kind}\n"));
    }

    /// Appends one value; `labels` are in braces, or empty.
    pub fn line(&mut self, name: &str, labels: &str, value: impl std::fmt::Display) {
        let prefix = self.prefix;
        self.add(format_args!("{prefix}_{name}{labels} {value}\n"));
    }

    pub fn one(&mut self, name: &str, kind: &str, help: &str, value: impl std::fmt::Display) {
        self.head(name, kind, help);
        self.line(name, "", value);
    }

    fn add(&mut self, text: std::fmt::Arguments<'_>) {
        self.text.write_fmt(text).expect("a string takes everything");
    }
}

/// Renders the response text. May block on locks: it runs on a blocking thread.
pub type Render = Arc<dyn Fn() -> String + Send + Sync>;

/// Serves `GET /metrics` until `stop`.
pub async fn serve(listener: TcpListener, render: Render, mut stop: watch::Receiver<bool>) {
    let mut tasks = JoinSet::new();
    let places = Places::new(REQUESTS_MAX);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.wait_for(|stop| *stop) => return,
        };
        while tasks.try_join_next().is_some() {}
        let Ok((stream, peer)) = accepted else {
            // Probably out of file descriptors: an immediate retry would spin.
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let Some(place) = places.take(peer.ip()) else { continue };
        let render = Arc::clone(&render);
        tasks.spawn(async move {
            let service = service_fn(move |request| {
                let render = Arc::clone(&render);
                async move { Ok::<_, Infallible>(answer(&request, render).await) }
            });
            let mut http = hyper::server::conn::http1::Builder::new();
            http.timer(TokioTimer::new()).keep_alive(false).title_case_headers(true);
            // A failed write means that the client disconnected.
            let _ =
                timeout(REQUEST_TIME, http.serve_connection(TokioIo::new(stream), service)).await;
            drop(place);
        });
    }
}

async fn answer(request: &Request<Incoming>, render: Render) -> Response<Full<Bytes>> {
    let (status, text) = match (request.method(), request.uri().path()) {
        (&Method::GET, "/metrics") => match tokio::task::spawn_blocking(move || render()).await {
            Ok(text) => (StatusCode::OK, text),
            Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, String::new()),
        },
        (&Method::GET, _) => (StatusCode::NOT_FOUND, "Metrics are at /metrics.\n".to_owned()),
        _ => (StatusCode::METHOD_NOT_ALLOWED, String::new()),
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    let kind = header::HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// Timeout of a request, and maximum concurrent requests.
const REQUEST_TIME: Duration = Duration::from_secs(10);
const REQUESTS_MAX: usize = 16;
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_begin_alike() {
        let mut text = Text::new("assay_test");
        text.one("blocks_total", "counter", "Blocks connected.", 7);
        text.head("stage_seconds_total", "counter", "Time by stage.");
        text.line("stage_seconds_total", "{stage=\"coins\"}", 0.5);
        assert_eq!(
            text.into_string(),
            "# HELP assay_test_blocks_total Blocks connected.\n\
             # TYPE assay_test_blocks_total counter\n\
             assay_test_blocks_total 7\n\
             # HELP assay_test_stage_seconds_total Time by stage.\n\
             # TYPE assay_test_stage_seconds_total counter\n\
             assay_test_stage_seconds_total{stage=\"coins\"} 0.5\n"
        );
    }
}
