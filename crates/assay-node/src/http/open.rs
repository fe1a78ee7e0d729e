//! Requests that need no credentials, such as those of REST: a lane of their own.
//!
//! They run apart from the calls of JSON-RPC, so that many of them, or slow readers of large answers, delay no call. All
//! answers that have not been read yet share [`ANSWERS_BYTES_MAX`].

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

/// What runs at once, what waits, and how much is on its way to clients.
pub(super) struct OpenLane {
    work: Arc<Semaphore>,
    answers: Arc<Semaphore>,
    waiting: AtomicUsize,
    waiting_max: usize,
    patience: Duration,
}

impl OpenLane {
    /// At most `waiting_max` requests wait, and none of their parts may stall for longer than `patience`.
    pub(super) fn new(waiting_max: usize, patience: Duration) -> Self {
        Self {
            work: Arc::new(Semaphore::new(OPEN_THREADS)),
            answers: Arc::new(Semaphore::new(units(ANSWERS_BYTES_MAX))),
            waiting: AtomicUsize::new(0),
            waiting_max,
            patience,
        }
    }

    /// Reads the request and has it answered.
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
        // Kept until there is room for the answer: no more than so many answers wait for room.
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

/// A place in the queue, given back also when the client hangs up.
struct Slot<'a> {
    waiting: &'a AtomicUsize,
    position: usize,
}

impl<'a> Slot<'a> {
    fn take(waiting: &'a AtomicUsize) -> Self {
        Self { waiting, position: waiting.fetch_add(1, Ordering::Relaxed) + 1 }
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Contents that take their share of the room until they have been sent.
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

/// Of what may be another one tomorrow.
pub(super) const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
/// Requests without credentials that run at once.
pub(crate) const OPEN_THREADS: usize = 4;
/// Bytes of the largest body: those of REST have some hundred.
const BODY_BYTES_MAX: usize = 64 << 10;
/// Bytes of all answers on their way to clients; a single one may be larger.
const ANSWERS_BYTES_MAX: usize = 256 << 20;
const UNIT: usize = 64 << 10;
