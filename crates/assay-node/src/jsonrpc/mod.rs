//! JSON-RPC 1.0, 1.1 and 2.0 as in Bitcoin Core (`httprpc.cpp`, `rpc/request.cpp`). [`Handler`] provides the
//! methods.

pub(crate) mod body_decoder;
pub(crate) mod error;
pub(crate) mod request;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hyper::StatusCode;

pub use assay_json::{Array, Json, Object};

pub use self::error::{Code, RpcError};
pub(crate) use self::request::unhex;
pub use self::request::{Params, Value};

use self::body_decoder::Text;
use self::request::{Body, Envelope, ReplyTo, Version};

/// Implementation of the methods.
///
/// A call has two steps, because arguments borrow from the request body, which can be large: [`Handler::prepare`]
/// copies the required data, the server frees the body, and [`Handler::execute`] does the work.
pub trait Handler: Send + Sync + 'static {
    /// Call with checked and owned arguments.
    type Job: Send + 'static;

    /// Looks up a method and checks its arguments.
    ///
    /// # Errors
    /// Unknown method, or wrong number or types of arguments.
    fn prepare(&self, method: &str, params: Params<'_>) -> Result<Self::Job, RpcError>;

    /// True if the job mostly waits for an event. Such jobs run in a separate lane.
    fn waits(&self, job: &Self::Job) -> bool;

    /// True if consecutive jobs of this kind should run as a group.
    fn groups(&self, job: &Self::Job) -> bool;

    /// Runs the job and appends the result to `out` as one JSON value. The caller discards partial output after an error.
    ///
    /// # Errors
    /// The error of the method.
    fn execute(
        &self,
        job: Self::Job,
        context: &CallContext,
        out: &mut Vec<u8>,
    ) -> Result<(), RpcError>;

    /// Runs consecutive jobs of a batch for which [`Handler::groups`] is true; returns their results in the same order.
    fn execute_group(
        &self,
        jobs: Vec<Self::Job>,
        context: &CallContext,
    ) -> Vec<Result<Vec<u8>, RpcError>>;

    /// True if requests to this path need no credentials, for any HTTP method (Core's REST).
    fn is_open(&self, _path: &str) -> bool {
        false
    }

    fn answer_open(&self, _request: &OpenRequest, _context: &CallContext) -> OpenReply {
        OpenReply::text(StatusCode::NOT_FOUND, "")
    }
}

/// REST request, which needs no credentials.
#[derive(Debug)]
pub struct OpenRequest {
    /// Path and query as sent.
    pub target: String,
    /// At most 64 KiB.
    pub body: Vec<u8>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct OpenReply {
    pub status: StatusCode,
    pub content_type: &'static str,
    /// The response never changes: sent with `Cache-Control: immutable`.
    pub is_immutable: bool,
    pub body: Vec<u8>,
}

impl OpenReply {
    pub fn text(status: StatusCode, text: impl Into<Vec<u8>>) -> Self {
        Self { status, content_type: "text/plain", is_immutable: false, body: text.into() }
    }
}

#[derive(Debug, Clone, Default)]
pub struct CallContext {
    gone: Arc<AtomicBool>,
    stopping: Arc<AtomicBool>,
}

impl CallContext {
    /// Context of one HTTP request; `stopping` is set at shutdown.
    pub(crate) fn new(stopping: Arc<AtomicBool>) -> Self {
        Self { gone: Arc::default(), stopping }
    }

    /// Marks the caller as disconnected when dropped.
    pub(crate) fn guard(&self) -> GoneGuard {
        GoneGuard(Arc::clone(&self.gone))
    }

    /// True if the client disconnected or the server stops. Waiting calls poll it several times a second.
    pub fn interrupted(&self) -> bool {
        self.gone.load(Ordering::Relaxed) || self.stopping.load(Ordering::Relaxed)
    }
}

/// Lives as long as the HTTP exchange.
#[derive(Debug)]
pub(crate) struct GoneGuard(Arc<AtomicBool>);

impl Drop for GoneGuard {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    /// JSON text and a line feed; `None` for notifications.
    pub(crate) body: Option<Vec<u8>>,
}

/// Jobs of a request body. It owns its data, so the body can be freed before [`Plan::run`].
#[derive(Debug)]
pub(crate) enum Plan<J> {
    Unreadable(RpcError),
    /// The body calls a method that the user may not call.
    Forbidden,
    Single(Step<J>),
    Batch(Vec<Step<J>>),
}

#[derive(Debug)]
pub(crate) struct Step<J> {
    reply_to: ReplyTo,
    job: Result<J, RequestError>,
}

/// Reason for which a request does not run. The variants differ only in the HTTP status under JSON-RPC 2.0.
#[derive(Debug)]
enum RequestError {
    Malformed(RpcError),
    /// Unknown method, or wrong number or types of arguments.
    InvalidCall(RpcError),
}

impl<J> Plan<J> {
    /// Parses a request body of a user whose permitted methods `allows` defines.
    pub(crate) fn new<H: Handler<Job = J>>(
        handler: &H,
        body: &Text,
        allows: &dyn Fn(&str) -> bool,
    ) -> Self {
        let step = |envelope| Step::new(handler, envelope, body, allows);
        match Body::parse(body.as_bytes()) {
            Err(error) => Self::Unreadable(error),
            Ok(Body::Single(envelope)) => step(envelope).map_or(Self::Forbidden, Self::Single),
            Ok(Body::Batch(envelopes)) => {
                let steps: Option<Vec<_>> = envelopes.into_iter().map(step).collect();
                steps.map_or(Self::Forbidden, Self::Batch)
            }
        }
    }

    pub(crate) fn waits<H: Handler<Job = J>>(&self, handler: &H) -> bool {
        let waits = |step: &Step<J>| step.job.as_ref().is_ok_and(|job| handler.waits(job));
        match self {
            Self::Unreadable(_) | Self::Forbidden => false,
            Self::Single(step) => waits(step),
            Self::Batch(steps) => steps.iter().any(waits),
        }
    }

    pub(crate) fn run<H: Handler<Job = J>>(self, handler: &H, context: &CallContext) -> Reply {
        match self {
            Self::Unreadable(error) => error_reply(&ReplyTo::unknown(), &error),
            Self::Forbidden => Reply { status: StatusCode::FORBIDDEN, body: None },
            Self::Single(step) => run_single(step, handler, context),
            Self::Batch(steps) => run_batch(steps, handler, context),
        }
    }
}

impl<J> Step<J> {
    /// `None` if the user may not call the method.
    fn new<H: Handler<Job = J>>(
        handler: &H,
        envelope: Envelope<'_>,
        text: &Text,
        allows: &dyn Fn(&str) -> bool,
    ) -> Option<Self> {
        let (reply_to, request) = envelope.check(text);
        let job = match request {
            Err(error) => Err(RequestError::Malformed(error)),
            Ok(request) if !allows(&request.method) => {
                tracing::warn!("An RPC user is not allowed to call method {}", request.method);
                return None;
            }
            Ok(request) => {
                handler.prepare(&request.method, request.params).map_err(RequestError::InvalidCall)
            }
        };
        Some(Self { reply_to, job })
    }
}

fn run_single<H: Handler>(step: Step<H::Job>, handler: &H, context: &CallContext) -> Reply {
    let Step { reply_to, job } = step;
    let mut out = Vec::new();
    let failure = match job {
        Err(RequestError::Malformed(error)) => return error_reply(&reply_to, &error),
        Err(RequestError::InvalidCall(error)) => Some(error),
        Ok(job) => {
            begin_result(&reply_to, &mut out);
            handler.execute(job, context, &mut out).err()
        }
    };
    if reply_to.is_notification() {
        return Reply { status: StatusCode::NO_CONTENT, body: None };
    }
    match failure {
        None => {
            end_result(&reply_to, &mut out);
            out.push(b'\n');
            Reply { status: StatusCode::OK, body: Some(out) }
        }
        Some(error) if reply_to.version == Version::Legacy => error_reply(&reply_to, &error),
        Some(error) => Reply { status: StatusCode::OK, ..error_reply(&reply_to, &error) },
    }
}

fn run_batch<H: Handler>(steps: Vec<Step<H::Job>>, handler: &H, context: &CallContext) -> Reply {
    let asked = !steps.is_empty();
    let mut out = vec![b'['];
    let mut steps = steps.into_iter().peekable();
    while let Some(step) = steps.next() {
        match step.job {
            Err(RequestError::Malformed(error) | RequestError::InvalidCall(error)) => {
                push_answer(&step.reply_to, Err(&error), &mut out);
            }
            Ok(job) if handler.groups(&job) => {
                let mut callers = vec![step.reply_to];
                let mut jobs = vec![job];
                let same = |next: &Step<H::Job>| next.job.as_ref().is_ok_and(|j| handler.groups(j));
                while let Some(next) = steps.next_if(same) {
                    callers.push(next.reply_to);
                    jobs.extend(next.job.ok());
                }
                let results = handler.execute_group(jobs, context);
                debug_assert_eq!(results.len(), callers.len());
                for (reply_to, result) in callers.iter().zip(&results) {
                    push_answer(reply_to, result.as_deref(), &mut out);
                }
            }
            Ok(job) => {
                let start = out.len();
                begin_element(&mut out);
                begin_result(&step.reply_to, &mut out);
                let result = handler.execute(job, context, &mut out);
                if result.is_ok() && !step.reply_to.is_notification() {
                    end_result(&step.reply_to, &mut out);
                    continue;
                }
                out.truncate(start);
                if let Err(error) = result {
                    push_answer(&step.reply_to, Err(&error), &mut out);
                }
            }
        }
    }
    if out.len() == 1 && asked {
        return Reply { status: StatusCode::NO_CONTENT, body: None };
    }
    out.extend_from_slice(b"]\n");
    Reply { status: StatusCode::OK, body: Some(out) }
}

fn begin_element(out: &mut Vec<u8>) {
    if out.len() > 1 {
        out.push(b',');
    }
}

/// Appends the response to one batch element, unless it was a notification.
fn push_answer(reply_to: &ReplyTo, result: Result<&[u8], &RpcError>, out: &mut Vec<u8>) {
    if reply_to.is_notification() {
        return;
    }
    begin_element(out);
    match result {
        Ok(json) => {
            begin_result(reply_to, out);
            out.extend_from_slice(json);
            end_result(reply_to, out);
        }
        Err(error) => push_error(reply_to, error, out),
    }
}

fn begin_result(reply_to: &ReplyTo, out: &mut Vec<u8>) {
    out.extend_from_slice(match reply_to.version {
        Version::Legacy => b"{\"result\":",
        Version::V2 => b"{\"jsonrpc\":\"2.0\",\"result\":",
    });
}

fn end_result(reply_to: &ReplyTo, out: &mut Vec<u8>) {
    if reply_to.version == Version::Legacy {
        out.extend_from_slice(b",\"error\":null");
    }
    push_id(reply_to, out);
}

fn push_id(reply_to: &ReplyTo, out: &mut Vec<u8>) {
    if let Some(id) = &reply_to.id {
        out.extend_from_slice(b",\"id\":");
        out.extend_from_slice(id.as_bytes());
    }
    out.push(b'}');
}

fn push_error(reply_to: &ReplyTo, error: &RpcError, out: &mut Vec<u8>) {
    out.extend_from_slice(match reply_to.version {
        Version::Legacy => b"{\"result\":null,\"error\":",
        Version::V2 => b"{\"jsonrpc\":\"2.0\",\"error\":",
    });
    let mut object = Json::new(out).object();
    object.key("code").int(error.code.number());
    object.key("message").string(&error.message);
    object.end();
    push_id(reply_to, out);
}

/// HTTP response of an error, with the status codes of `JSONErrorReply`.
fn error_reply(reply_to: &ReplyTo, error: &RpcError) -> Reply {
    let status = match error.code {
        Code::InvalidRequest => StatusCode::BAD_REQUEST,
        Code::MethodNotFound => StatusCode::NOT_FOUND,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    let mut body = Vec::new();
    push_error(reply_to, error, &mut body);
    body.push(b'\n');
    Reply { status, body: Some(body) }
}
