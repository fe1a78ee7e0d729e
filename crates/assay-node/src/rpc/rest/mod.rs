//! REST: blocks, transactions, coins and the mempool over HTTP without credentials (Core `rest.cpp`).
//!
//! Paths, parameters, status codes and texts are Core's.

mod blocks;
mod coins;
mod filters;
mod pool;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::str::FromStr;

use assay_json::push_hex;
use hyper::StatusCode;

use super::{Node, Rpc, WARM_UP};
use crate::jsonrpc::{CallContext, OpenReply, OpenRequest, RpcError};

pub(super) fn has(path: &str) -> bool {
    ROUTES.iter().any(|(prefix, ..)| path.starts_with(prefix))
}

pub(super) fn answer(rpc: &Rpc, request: &OpenRequest, context: &CallContext) -> OpenReply {
    let target = request.target.as_str();
    let route = ROUTES
        .iter()
        .find_map(|(prefix, lasting, run)| Some((target.strip_prefix(prefix)?, lasting, run)));
    let Some((part, lasting, run)) = route else {
        return OpenReply::text(StatusCode::NOT_FOUND, "");
    };
    tracing::debug!(target: "http", "REST request of {} bytes of path", target.len());
    let Some(engine) = rpc.engine.get() else {
        let text = format!("Service temporarily unavailable: {WARM_UP}\r\n");
        return OpenReply::text(StatusCode::SERVICE_UNAVAILABLE, text);
    };
    let node = Node { rpc, engine, context };
    let request = Request::new(part, &request.body);
    match run(&node, &request) {
        Ok(content) => content.into_reply(lasting.covers(&request)),
        Err(failure) => OpenReply::text(failure.status, format!("{}\r\n", failure.text)),
    }
}

struct Request<'a> {
    /// Without query and known format suffix.
    path: &'a str,
    format: Option<Format>,
    query: &'a str,
    body: &'a [u8],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Bin,
    Hex,
    Json,
}

impl<'a> Request<'a> {
    /// As Core: the path ends at the last `?` (`ParseDataFormat`), the query starts at the first (`GetQueryParameterFromUri`).
    fn new(part: &'a str, body: &'a [u8]) -> Self {
        let path = part.rsplit_once('?').map_or(part, |(path, _)| path);
        let query = part.split_once('?').map_or("", |(_, query)| query);
        let query = query.split_once('#').map_or(query, |(query, _)| query);
        let (path, format) = match path.rsplit_once('.') {
            Some((stem, "bin")) => (stem, Some(Format::Bin)),
            Some((stem, "hex")) => (stem, Some(Format::Hex)),
            Some((stem, "json")) => (stem, Some(Format::Json)),
            Some((stem, "")) => (stem, None),
            _ => (path, None),
        };
        Self { path, format, query, body }
    }

    /// Value of a parameter, possibly empty.
    fn parameter(&self, name: &str) -> Option<Cow<'a, str>> {
        self.query.split('&').find_map(|one| {
            let (key, value) = one.split_once('=').unwrap_or((one, ""));
            (decoded(key) == name).then(|| decoded(value))
        })
    }

    fn content(&self, bytes: impl FnOnce() -> Vec<u8>, json: impl FnOnce(&mut Vec<u8>)) -> Answer {
        match self.format {
            Some(Format::Bin) => Ok(Content::Bytes(bytes())),
            Some(Format::Hex) => Ok(Content::hex(&bytes())),
            Some(Format::Json) => self.json(|out| {
                json(out);
                Ok(())
            }),
            None => Err(no_format(".bin, .hex, .json")),
        }
    }

    fn json(&self, json: impl FnOnce(&mut Vec<u8>) -> Result<(), Failure>) -> Answer {
        if self.format != Some(Format::Json) {
            return Err(no_format("json"));
        }
        let mut out = Vec::new();
        json(&mut out)?;
        out.push(b'\n');
        Ok(Content::Json(out))
    }

    /// Number of requested headers: `count`, or from an older form of the path.
    fn count(&self, given: Option<&str>) -> Result<usize, Failure> {
        let text = given.map(Cow::Borrowed).or_else(|| self.parameter("count"));
        let text = text.unwrap_or(Cow::Borrowed("5"));
        let count = integral(&text).filter(|count| (1..=HEADERS_MAX).contains(count));
        count.ok_or_else(|| {
            bad(format!(
                "Header count is invalid or out of acceptable range (1-{HEADERS_MAX}): {text}"
            ))
        })
    }
}

#[derive(Debug)]
enum Content {
    Bytes(Vec<u8>),
    Text(Vec<u8>),
    Json(Vec<u8>),
}

impl Content {
    fn hex(bytes: &[u8]) -> Self {
        let mut text = Vec::new();
        push_hex(&mut text, bytes);
        text.push(b'\n');
        Self::Text(text)
    }

    fn into_reply(self, is_immutable: bool) -> OpenReply {
        let (content_type, body) = match self {
            Self::Bytes(body) => ("application/octet-stream", body),
            Self::Text(body) => ("text/plain", body),
            Self::Json(body) => ("application/json", body),
        };
        OpenReply { status: StatusCode::OK, content_type, is_immutable, body }
    }
}

#[derive(Debug)]
struct Failure {
    status: StatusCode,
    text: Cow<'static, str>,
}

impl From<RpcError> for Failure {
    fn from(error: RpcError) -> Self {
        Self { status: StatusCode::INTERNAL_SERVER_ERROR, text: error.message }
    }
}

type Answer = Result<Content, Failure>;

fn bad(text: impl Into<Cow<'static, str>>) -> Failure {
    Failure { status: StatusCode::BAD_REQUEST, text: text.into() }
}

fn missing(text: impl Into<Cow<'static, str>>) -> Failure {
    Failure { status: StatusCode::NOT_FOUND, text: text.into() }
}

fn no_format(known: &str) -> Failure {
    missing(format!("output format not found (available: {known})"))
}

/// Hash in display order.
fn hash<T: FromStr>(text: &str) -> Result<T, Failure> {
    text.parse().map_err(|_| bad(format!("Invalid hash: {text}")))
}

/// Decimal integer; no sign but a minus (Core's `ToIntegral`).
fn integral<T: FromStr>(text: &str) -> Option<T> {
    if text.starts_with('+') { None } else { text.parse().ok() }
}

/// Percent-decoding (RFC 3986); invalid sequences stay.
fn decoded(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let digits = text.get(at + 1..at + 3).filter(|_| byte == b'%');
        let digits = digits.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let code = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        out.push(code.unwrap_or(byte));
        at += if code.is_some() { 3 } else { 1 };
    }
    Cow::Owned(String::from_utf8_lossy(&out).into_owned())
}

type Route = fn(&Node<'_>, &Request<'_>) -> Answer;

/// Immutability of responses of a route.
#[derive(Debug, Clone, Copy)]
enum Lasting {
    None,
    /// Not JSON, which also depends on later blocks.
    Bytes,
    /// For a block given by hash, not for the tip.
    Named,
}

impl Lasting {
    fn covers(self, request: &Request<'_>) -> bool {
        match self {
            Self::None => false,
            Self::Bytes => matches!(request.format, Some(Format::Bin | Format::Hex)),
            Self::Named => !request.path.is_empty(),
        }
    }
}

/// In order of matching.
const ROUTES: &[(&str, Lasting, Route)] = &[
    ("/rest/tx/", Lasting::None, pool::tx),
    ("/rest/block/notxdetails/", Lasting::Bytes, blocks::without_details),
    ("/rest/block/", Lasting::Bytes, blocks::block),
    ("/rest/blockpart/", Lasting::Bytes, blocks::part),
    ("/rest/blockfilter/", Lasting::Named, filters::filter),
    ("/rest/blockfilterheaders/", Lasting::None, filters::headers),
    ("/rest/chaininfo", Lasting::None, blocks::chain_info),
    ("/rest/mempool/", Lasting::None, pool::mempool),
    ("/rest/headers/", Lasting::None, blocks::headers),
    ("/rest/getutxos", Lasting::None, coins::coins),
    ("/rest/deploymentinfo/", Lasting::Named, blocks::deployments),
    ("/rest/deploymentinfo", Lasting::Named, blocks::deployments),
    ("/rest/blockhashbyheight/", Lasting::None, blocks::hash_by_height),
    ("/rest/spenttxouts/", Lasting::Named, blocks::spent),
];

/// Core's `MAX_REST_HEADERS_RESULTS`.
const HEADERS_MAX: usize = 2000;
