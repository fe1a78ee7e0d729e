//! Request lane without credentials, for REST.
//!
//! It is separate from JSON-RPC, so that many requests, or slow readers of large responses, do not delay calls. All
//! unread responses together are limited to [`ANSWERS_BYTES_MAX`].

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderValue};
use hyper::{Request, Response, StatusCode};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::jsonrpc::{CallContext, Handler, OpenReply, OpenRequest};

/// Semaphores for running requests, the queue, and response bytes in transit.
pub(super) struct OpenLane {
    work: Arc<Semaphore>,
    answers: Arc<Semaphore>,
    waiting: AtomicUsize,
    waiting_max: usize,
    patience: Duration,
}

impl OpenLane {
    /// At most `waiting_max` requests wait; each part of an exchange may stall for at most `patience`.
    pub(super) fn new(waiting_max: usize, patience: Duration) -> Self {
        Self {
            work: Arc::new(Semaphore::new(OPEN_THREADS)),
            answers: Arc::new(Semaphore::new(units(ANSWERS_BYTES_MAX))),
            waiting: AtomicUsize::new(0),
            waiting_max,
            patience,
        }
    }

    /// Reads a request, runs it and returns the response.
    pub(super) async fn exchange<H: Handler>(
        &self,
        handler: &Arc<H>,
        context: CallContext,
        request: Request<Incoming>,
    ) -> Response<Full<Bytes>> {
        match self.answer(handler, context, request).await {
            Ok(answer) => answer,
            Err((status, text)) => response(OpenReply::text(status, text), Bytes::from),
        }
    }

    async fn answer<H: Handler>(
        &self,
        handler: &Arc<H>,
        context: CallContext,
        request: Request<Incoming>,
    ) -> Result<Response<Full<Bytes>>, (StatusCode, &'static str)> {
        let target = request.uri().path_and_query().map(ToString::to_string).unwrap_or_default();
        let body = Limited::new(request.into_body(), BODY_BYTES_MAX).collect();
        let body = timeout(self.patience, body);
        let body = body.await.map_err(|_| (StatusCode::REQUEST_TIMEOUT, "Request body stalled"))?;
        let body = body.map_err(|_| (StatusCode::PAYLOAD_TOO_LARGE, "Request body too large"))?;
        let request = OpenRequest { target, body: body.to_bytes().to_vec() };
        // Held until the response has room, which limits the number of responses that wait.
        let _running = self.running().await?;
        let handler = Arc::clone(handler);
        let reply = tokio::task::spawn_blocking(move || handler.answer_open(&request, &context));
        let failed = (StatusCode::INTERNAL_SERVER_ERROR, "The request failed inside the node");
        let reply = reply.await.map_err(|_| failed)?;
        let room = units(reply.body.len()).min(units(ANSWERS_BYTES_MAX));
        let room = u32::try_from(room).unwrap_or(u32::MAX);
        let room = Arc::clone(&self.answers).acquire_many_owned(room);
        let busy = (StatusCode::SERVICE_UNAVAILABLE, "Too many large answers are being read");
        let room = timeout(self.patience, room).await.map_err(|_| busy)?.map_err(|_| busy)?;
        Ok(response(reply, |body| Bytes::from_owner(Held { body, _room: room })))
    }

    async fn running(&self) -> Result<OwnedSemaphorePermit, (StatusCode, &'static str)> {
        let busy = (StatusCode::SERVICE_UNAVAILABLE, "Work queue depth exceeded");
        let slot = Slot::take(&self.waiting);
        if slot.position > self.waiting_max + OPEN_THREADS {
            return Err(busy);
        }
        Arc::clone(&self.work).acquire_owned().await.map_err(|_| busy)
    }
}

/// Queue slot, released on drop, also when the client disconnects while it waits.
pub(super) struct Slot<'a> {
    waiting: &'a AtomicUsize,
    pub(super) position: usize,
}

impl<'a> Slot<'a> {
    pub(super) fn take(waiting: &'a AtomicUsize) -> Self {
        Self { waiting, position: waiting.fetch_add(1, Ordering::Relaxed) + 1 }
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Response body that holds its share of the room until it is sent.
struct Held {
    body: Vec<u8>,
    _room: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.body
    }
}

fn response(reply: OpenReply, contents: impl FnOnce(Vec<u8>) -> Bytes) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::new(contents(reply.body)));
    *answer.status_mut() = reply.status;
    let kind = HeaderValue::from_static(reply.content_type);
    answer.headers_mut().insert(header::CONTENT_TYPE, kind);
    let keep = HeaderValue::from_static("public, immutable, max-age=86400");
    let keep = if reply.is_immutable { keep } else { NO_STORE };
    answer.headers_mut().insert(header::CACHE_CONTROL, keep);
    answer
}

fn units(bytes: usize) -> usize {
    bytes.div_ceil(UNIT)
}

/// `Cache-Control` of responses that may change.
pub(super) const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
/// Concurrent requests without credentials.
pub(crate) const OPEN_THREADS: usize = 4;
/// Maximum body size; REST bodies have some hundred bytes.
const BODY_BYTES_MAX: usize = 64 << 10;
/// Maximum bytes of all responses in transit; a single response may exceed it.
const ANSWERS_BYTES_MAX: usize = 256 << 20;
const UNIT: usize = 64 << 10;
