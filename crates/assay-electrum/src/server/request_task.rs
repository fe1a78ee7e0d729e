//! Processes a request line in steps short enough to serve other clients in between.

use std::collections::VecDeque;
use std::thread;
use std::time::{Duration, Instant};

use assay_store::defect::Whole;
use tokio::sync::OwnedSemaphorePermit;

use super::client_budget::units;
use super::methods::{self, METHODS, Pace, Place, lookup};
use super::protocol::{CallError, Code, Out, RpcError};
use super::request::{self, Request, Requests};
use super::session::Session;
use super::workers::SLICE;
use super::{DisconnectReason, Shared};

/// Attempts per request that reorgs interrupt, and the pause between them.
const REQUEST_TRIES: u32 = 50;
const REQUEST_PAUSE: Duration = Duration::from_millis(20);

/// Maximum length of lines processed on the receiving thread.
const IMMEDIATE_LINE_MAX: usize = 4096;
/// Extra cost of a malformed request.
const BAD_REQUEST_UNITS: f64 = 20.0;

/// Runs the tasks in order for one time slice and removes the finished ones.
pub(super) fn run_slice(tasks: &mut VecDeque<RequestTask>, shared: &Shared, session: &Session) {
    let start = Instant::now();
    while let Some(task) = tasks.front_mut() {
        if task.step(shared, session, Pace::Any) {
            tasks.pop_front();
            if session.disconnect().is_some() {
                return;
            }
        }
        if start.elapsed() >= SLICE {
            return;
        }
    }
}

/// A request line and its partial response.
pub(super) struct RequestTask {
    line: Vec<u8>,
    /// Permit for the memory of long lines.
    _memory: Option<OwnedSemaphorePermit>,
    requests: Option<Requests>,
    next: usize,
    out: Out,
    /// True if all requests get an error because the client exceeded its rate limit.
    rejected: bool,
}

impl RequestTask {
    pub(super) fn new(line: Vec<u8>, memory: Option<OwnedSemaphorePermit>, rejected: bool) -> Self {
        Self { line, _memory: memory, requests: None, next: 0, out: Out::new(), rejected }
    }

    /// Processes a short request that does not block on the receiving thread; otherwise returns false and changes nothing.
    pub(super) fn try_here(&mut self, shared: &Shared, session: &Session) -> bool {
        if self.line.len() > IMMEDIATE_LINE_MAX {
            return false;
        }
        let version = session.version();
        let requests = self.requests(shared);
        let [request] = &requests.items[..] else { return false };
        let method = request.method.as_ref().ok().and_then(|name| lookup(name, version));
        let place = method.map_or(Place::Here, |method| METHODS[method].place);
        if requests.batch || place == Place::Worker {
            return false;
        }
        // A panic may leave shared state inconsistent.
        let whole = Whole::begin("what the Electrum server shares");
        let pace = if place == Place::HereIfAtOnce { Pace::AtOnce } else { Pace::Any };
        let is_answered = self.step(shared, session, pace);
        drop(whole);
        is_answered
    }

    /// Processes requests for one time slice; returns true once the whole response is queued.
    fn step(&mut self, shared: &Shared, session: &Session, pace: Pace) -> bool {
        let start = Instant::now();
        let begun = (self.next, self.out.len());
        self.requests(shared);
        let Some(requests) = self.requests.take() else { return true };
        if self.next == 0 && Self::subscribes(&requests, session) {
            session.send_queue.hold_notifications();
        }
        while let Some(request) = requests.items.get(self.next) {
            if self.next > begun.0 && start.elapsed() >= SLICE {
                break;
            }
            if !self.answer((shared, session), pace, request, requests.batch) {
                session.account().spend(units(0, start.elapsed(), 0));
                self.requests = Some(requests);
                return false;
            }
            self.next += 1;
        }
        let written = self.out.len().saturating_sub(begun.1);
        let received = if begun.0 == 0 { self.line.len() } else { 0 };
        session.account().spend(units(self.next - begun.0, start.elapsed(), written + received));
        if self.next < requests.items.len() {
            self.requests = Some(requests);
            return false;
        }
        self.finish(session, &requests);
        true
    }

    fn requests(&mut self, shared: &Shared) -> &Requests {
        let (line, limits) = (&self.line, &shared.config.limits);
        self.requests.get_or_insert_with(|| request::parse(line, limits.batch_max))
    }

    fn subscribes(requests: &Requests, session: &Session) -> bool {
        let version = session.version();
        requests.items.iter().any(|request| {
            let name = request.method.as_ref().ok();
            name.and_then(|name| lookup(name, version))
                .is_some_and(|method| METHODS[method].subscribes)
        })
    }

    /// Writes the response to a request; `false` if that would block.
    fn answer(
        &mut self,
        (shared, session): (&Shared, &Session),
        pace: Pace,
        request: &Request,
        batch: bool,
    ) -> bool {
        let error = match &request.method {
            // A notification: the only meaningful one, `server.ping`, needs no action.
            Ok(_) if request.id.is_none() => return true,
            Ok(name) => match self.call((shared, session), pace, request, name, batch) {
                // A worker checks it in full.
                Err(_) if pace == Pace::AtOnce => return false,
                result => result.err(),
            },
            Err(error) => {
                shared.metrics.bad_requests.add(1);
                session.account().spend(BAD_REQUEST_UNITS);
                session.count_rejection(shared.config.limits.refusals_max);
                Some(error.clone())
            }
        };
        if let Some(error) = error {
            write_begin(&mut self.out, &self.line, request, batch);
            self.out.raw("\"error\":{\"code\":").int(error.code.number());
            self.out.raw(",\"message\":").string(&error.message).raw("}}");
        }
        true
    }

    fn call(
        &mut self,
        (shared, session): (&Shared, &Session),
        pace: Pace,
        request: &Request,
        name: &str,
        batch: bool,
    ) -> Result<(), RpcError> {
        let limits = &shared.config.limits;
        if self.rejected {
            session.count_rejection(limits.refusals_max);
            shared.metrics.refused.add(1);
            return Err(RpcError::new(Code::Excessive, "excessive resource usage"));
        }
        session.clear_rejections();
        let Some(number) = lookup(name, session.version()) else {
            shared.metrics.bad_requests.add(1);
            return Err(RpcError::new(Code::MethodNotFound, "unknown method"));
        };
        let left = limits.response_bytes_max.saturating_sub(self.out.len());
        if left == 0 {
            return Err(RpcError::new(Code::Excessive, "the batch's answers are too large"));
        }
        let params =
            request.params.clone().and_then(|range| std::str::from_utf8(&self.line[range]).ok());
        let start = Instant::now();
        let before = self.out.len();
        write_begin(&mut self.out, &self.line, request, batch);
        self.out.raw("\"result\":");
        let body = self.out.len();
        let mut result = Ok(());
        for _ in 0..REQUEST_TRIES {
            self.out.truncate(body);
            let method = &METHODS[number];
            result = methods::answer((shared, session), pace, method, params, &mut self.out);
            match result {
                Err(CallError::Again) if pace == Pace::Any => thread::sleep(REQUEST_PAUSE),
                _ => break,
            }
        }
        if pace == Pace::AtOnce && result.is_err() {
            self.out.truncate(before);
            return Err(RpcError::new(Code::Internal, "the answer takes longer than at once"));
        }
        let result = result.map_err(|error| match error {
            CallError::Rpc(error) => error,
            CallError::Again => RpcError::bad("the chain was reorganised meanwhile"),
            CallError::NotAtOnce => RpcError::new(Code::Internal, error.to_string()),
        });
        let result = match result {
            Ok(()) if batch && self.out.len() - before > left => {
                Err(RpcError::new(Code::Excessive, "the batch's answers are too large"))
            }
            result => result,
        };
        shared.metrics.request(number, start.elapsed(), result.is_ok());
        match result {
            Ok(()) => {
                self.out.raw("}");
                Ok(())
            }
            Err(error) => {
                self.out.truncate(before);
                Err(error)
            }
        }
    }

    fn finish(&mut self, session: &Session, requests: &Requests) {
        if !self.out.is_empty() {
            let mut out = std::mem::take(&mut self.out);
            if requests.batch {
                out.raw("]");
            }
            out.raw("\n");
            session.send_queue.respond(out.into_bytes());
        }
        session.send_queue.release_notifications();
        if let Some(reason) = session.disconnect() {
            session.send_queue.close(reason);
        }
    }
}

/// Writes a response up to its result or error.
fn write_begin(out: &mut Out, line: &[u8], request: &Request, batch: bool) {
    if batch {
        out.raw(if out.is_empty() { "[" } else { "," });
    }
    out.raw("{\"jsonrpc\":\"2.0\",\"id\":");
    match &request.id {
        Some(id) => out.raw_bytes(&line[id.clone()]),
        None => out.raw("null"),
    };
    out.raw(",");
}

pub(super) fn oversize(session: &Session, max: usize) -> DisconnectReason {
    let mut out = Out::new();
    out.raw("{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":").int(Code::Excessive.number());
    let message = format!("a request may have {max} bytes");
    out.raw(",\"message\":").string(&message).raw("}}\n");
    session.send_queue.respond(out.into_bytes());
    DisconnectReason::Oversize
}
