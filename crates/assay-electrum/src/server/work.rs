//! A line on its way to an answer, in steps short enough that other clients get their turn in between.

use std::collections::VecDeque;
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::OwnedSemaphorePermit;

use super::budget::units;
use super::methods::{self, table};
use super::outbox::Ending;
use super::protocol::error::CallError;
use super::protocol::request::{self, Message, Request};
use super::protocol::{Code, Out, RpcError};
use super::session::Session;
use super::shared::Shared;

/// After this much time a batch lets others go first.
const SLICE: Duration = Duration::from_millis(2);
/// Lines up to this length are looked at where they were received.
const LIGHT_LINE_MAX: usize = 4096;
/// What a line costs that is no request, besides what any costs.
const BAD_REQUEST_UNITS: f64 = 20.0;
/// How often a question is asked again when the chain is reorganised under it, and how long it waits for that in between.
const TRIES: u32 = 50;
const TRY_AGAIN: Duration = Duration::from_millis(20);

/// Goes on with the first of `works` and then the next, for a while; those that are done are taken out.
pub(super) fn step_all(works: &mut VecDeque<Work>, shared: &Shared, session: &Session) {
    let start = Instant::now();
    while let Some(work) = works.front_mut() {
        if work.step(shared, session) {
            works.pop_front();
            if session.ending().is_some() {
                return;
            }
        }
        if start.elapsed() >= SLICE {
            return;
        }
    }
}

/// A line with what has been answered of it.
pub(super) struct Work {
    line: Vec<u8>,
    /// Its share of the room for long lines.
    _room: Option<OwnedSemaphorePermit>,
    requests: Option<Requests>,
    next: usize,
    out: Out,
    /// Whether all requests get an error because the client has used too much.
    refused: bool,
}

struct Requests {
    items: Vec<Request>,
    batch: bool,
}

impl Work {
    pub(super) fn new(line: Vec<u8>, room: Option<OwnedSemaphorePermit>, refused: bool) -> Self {
        Self { line, _room: room, requests: None, next: 0, out: Out::new(), refused }
    }

    /// Whether all that is asked can be answered at once, without a worker.
    pub(super) fn is_light(&mut self, shared: &Shared, session: &Session) -> bool {
        if self.line.len() > LIGHT_LINE_MAX {
            return false;
        }
        let version = session.version();
        let requests = self.requests(shared);
        !requests.batch
            && requests.items.iter().all(|request| match &request.method {
                Ok(name) => table::lookup(name, version)
                    .is_none_or(|method| table::METHODS[method].kind.is_light()),
                Err(_) => true,
            })
    }

    /// Goes on for a while, and returns whether all is done and queued.
    pub(super) fn step(&mut self, shared: &Shared, session: &Session) -> bool {
        let start = Instant::now();
        let begun = (self.next, self.out.len());
        self.requests(shared);
        let Some(requests) = self.requests.take() else { return true };
        if self.next == 0 && Self::subscribes(&requests, session) {
            session.outbox.hold();
        }
        while let Some(request) = requests.items.get(self.next) {
            if self.next > begun.0 && start.elapsed() >= SLICE {
                break;
            }
            self.answer(shared, session, request, requests.batch);
            self.next += 1;
        }
        let written = self.out.len().saturating_sub(begun.1);
        let received = if begun.0 == 0 { self.line.len() } else { 0 };
        session.spend(units(self.next - begun.0, start.elapsed(), written + received));
        if self.next < requests.items.len() {
            self.requests = Some(requests);
            return false;
        }
        self.finish(session, &requests);
        true
    }

    fn requests(&mut self, shared: &Shared) -> &Requests {
        let line = &self.line;
        self.requests.get_or_insert_with(|| {
            match request::parse(line, shared.config.limits.batch_max) {
                Message::Single(request) => Requests { items: vec![request], batch: false },
                Message::Batch(items) => Requests { items, batch: true },
                Message::Bad(error) => {
                    let request = Request { id: None, method: Err(error), params: None };
                    Requests { items: vec![request], batch: false }
                }
            }
        })
    }

    fn subscribes(requests: &Requests, session: &Session) -> bool {
        let version = session.version();
        requests.items.iter().any(|request| {
            let name = request.method.as_ref().ok();
            name.and_then(|name| table::lookup(name, version))
                .is_some_and(|method| table::METHODS[method].kind.subscribes())
        })
    }

    fn answer(&mut self, shared: &Shared, session: &Session, request: &Request, batch: bool) {
        let error = match &request.method {
            // A notification: the only one with a meaning, `server.ping`, asks for nothing.
            Ok(_) if request.id.is_none() => return,
            Ok(name) => self.call(shared, session, request, name, batch).err(),
            Err(error) => {
                shared.metrics.bad_request();
                session.spend(BAD_REQUEST_UNITS);
                session.refuse(shared.config.limits.refusals_max);
                Some(error.clone())
            }
        };
        if let Some(error) = error {
            self.begin(request, batch);
            self.out.raw("\"error\":{\"code\":").int(error.code.number());
            self.out.raw(",\"message\":").string(&error.message).raw("}}");
        }
    }

    fn call(
        &mut self,
        shared: &Shared,
        session: &Session,
        request: &Request,
        name: &str,
        batch: bool,
    ) -> Result<(), RpcError> {
        let limits = &shared.config.limits;
        if self.refused {
            session.refuse(limits.refusals_max);
            shared.metrics.refused();
            return Err(RpcError::new(Code::Excessive, "excessive resource usage"));
        }
        session.accept();
        let Some(number) = table::lookup(name, session.version()) else {
            shared.metrics.bad_request();
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
        for _ in 0..TRIES {
            self.out.truncate(body);
            result =
                methods::answer(shared, session, &table::METHODS[number], params, &mut self.out);
            match result {
                Err(CallError::Again) => thread::sleep(TRY_AGAIN),
                _ => break,
            }
        }
        let result = result.map_err(|error| match error {
            CallError::Rpc(error) => error,
            CallError::Again => RpcError::bad("the chain was reorganised meanwhile"),
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

    fn begin(&mut self, request: &Request, batch: bool) {
        write_begin(&mut self.out, &self.line, request, batch);
    }

    fn finish(&mut self, session: &Session, requests: &Requests) {
        if self.out.len() > 0 {
            let mut out = std::mem::take(&mut self.out);
            if requests.batch {
                out.raw("]");
            }
            out.raw("\n");
            session.outbox.answer(out.into_bytes());
        }
        session.outbox.release();
        if let Some(ending) = session.ending() {
            session.outbox.close(ending);
        }
    }
}

/// Begins an answer up to its result or error.
fn write_begin(out: &mut Out, line: &[u8], request: &Request, batch: bool) {
    if batch {
        out.raw(if out.len() == 0 { "[" } else { "," });
    }
    out.raw("{\"jsonrpc\":\"2.0\",\"id\":");
    match &request.id {
        Some(id) => out.raw_bytes(&line[id.clone()]),
        None => out.raw("null"),
    };
    out.raw(",");
}

/// The answer to a line that is too long to be received.
pub(super) fn oversize(session: &Session, max: usize) -> Ending {
    let mut out = Out::new();
    out.raw("{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":").int(Code::Excessive.number());
    let message = format!("a request may have {max} bytes");
    out.raw(",\"message\":").string(&message).raw("}}\n");
    session.outbox.answer(out.into_bytes());
    Ending::Oversize
}
