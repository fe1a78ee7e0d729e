//! Parser of request lines: one request or a batch.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::error::Category;
use serde_json::value::RawValue;

use super::protocol::{Code, RpcError};

/// Maximum length of a method name. Longer ones are dropped.
const METHOD_BYTES_MAX: usize = 64;
const ID_BYTES_MAX: usize = 256;
/// Maximum batch that is parsed; the limit for clients is lower.
const BATCH_MAX: usize = 10_000;

/// The requests of a line. A malformed line is a single request, and a malformed item of a batch one of its requests, with its error.
pub(super) struct Requests {
    pub(super) items: Vec<Request>,
    pub(super) batch: bool,
}

/// A request. Fields are byte ranges of the line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    /// Echoed in the response; `None` for notifications, which get no response.
    pub(super) id: Option<Range<usize>>,
    pub(super) method: Result<String, RpcError>,
    pub(super) params: Option<Range<usize>>,
}

impl Request {
    fn bad(error: RpcError) -> Self {
        Self { id: None, method: Err(error), params: None }
    }
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
}

/// Parsed items of a batch, and their total number.
struct Items<'a> {
    items: Vec<&'a RawValue>,
    count: usize,
}

impl<'de> Deserialize<'de> for Items<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Items<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array of requests")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Items<'de>, A::Error> {
                let mut found = Items { items: Vec::new(), count: 0 };
                while found.count < BATCH_MAX {
                    let Some(item) = seq.next_element()? else { return Ok(found) };
                    found.items.push(item);
                    found.count += 1;
                }
                while seq.next_element::<IgnoredAny>()?.is_some() {
                    found.count += 1;
                }
                Ok(found)
            }
        }
        deserializer.deserialize_seq(Collect)
    }
}

/// Parses `line`; a batch may have `batch_max` requests.
pub(super) fn parse(line: &[u8], batch_max: usize) -> Requests {
    let single = |request| Requests { items: vec![request], batch: false };
    let first = line.iter().find(|byte| !byte.is_ascii_whitespace());
    if first != Some(&b'[') {
        return single(match serde_json::from_slice::<&RawValue>(line) {
            Ok(raw) => request(line, raw),
            Err(error) => Request::bad(refusal(&error)),
        });
    }
    let found: Items<'_> = match serde_json::from_slice(line) {
        Ok(found) => found,
        Err(error) => return single(Request::bad(refusal(&error))),
    };
    let invalid =
        |message: String| single(Request::bad(RpcError::new(Code::InvalidRequest, message)));
    if found.count == 0 {
        return invalid("the batch is empty".to_owned());
    }
    if found.count > batch_max.min(BATCH_MAX) {
        return invalid(format!(
            "{} requests in a batch; up to {batch_max} are allowed",
            found.count
        ));
    }
    let items = found.items.into_iter().map(|raw| request(line, raw)).collect();
    Requests { items, batch: true }
}

fn request(line: &[u8], raw: &RawValue) -> Request {
    let wrong = |message: &str| Request::bad(RpcError::new(Code::InvalidRequest, message));
    let envelope: Envelope<'_> = match serde_json::from_str(raw.get()) {
        Ok(envelope) if raw.get().starts_with('{') => envelope,
        Ok(_) => return wrong("a request is an object"),
        Err(error) => return Request::bad(refusal(&error)),
    };
    // The derived code reads `"id": null` as absent; JSON-RPC 2.0 discourages it, and treating it as a notification is safe.
    let id = match envelope.id {
        Some(id) if is_id(id.get()) => Some(place(line, id.get())),
        Some(_) => return wrong("the id must be a short string, a number or null"),
        None => None,
    };
    let method = match envelope.method {
        Some(method) if method.len() <= METHOD_BYTES_MAX => Ok(method.into_owned()),
        Some(_) => Err(RpcError::new(Code::MethodNotFound, "unknown method")),
        None => Err(RpcError::new(Code::InvalidRequest, "the method is missing")),
    };
    Request { id, method, params: envelope.params.map(|params| place(line, params.get())) }
}

fn is_id(text: &str) -> bool {
    let number = |byte: u8| byte == b'-' || byte.is_ascii_digit();
    text.len() <= ID_BYTES_MAX
        && text.bytes().next().is_some_and(|first| first == b'"' || number(first))
}

/// Byte range of `part`, a slice of `line`.
fn place(line: &[u8], part: &str) -> Range<usize> {
    let start = part.as_ptr() as usize - line.as_ptr() as usize;
    start..start + part.len()
}

fn refusal(error: &serde_json::Error) -> RpcError {
    match error.classify() {
        Category::Data => RpcError::new(Code::InvalidRequest, "this is not a JSON-RPC request"),
        Category::Syntax | Category::Eof | Category::Io => {
            RpcError::new(Code::Parse, "this is not JSON")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn single(line: &[u8]) -> Request {
        let mut requests = parse(line, 3);
        assert!(!requests.batch && requests.items.len() == 1, "{line:?} is a batch");
        requests.items.remove(0)
    }

    fn code(line: &str) -> Code {
        single(line.as_bytes()).method.expect_err(line).code
    }

    #[test]
    fn parses_requests() {
        let line = r#" {"jsonrpc": "2.0", "method":"server.ping", "id": "a", "params": [1, {}], "x": [] } "#;
        let request = single(line.as_bytes());
        assert_eq!(request.method.unwrap(), "server.ping");
        assert_eq!(&line[request.id.unwrap()], "\"a\"");
        assert_eq!(&line[request.params.unwrap()], "[1, {}]");
        let request = single(br#"{"method":"a\u0062","id":-1.5}"#);
        assert_eq!(request.method.unwrap(), "ab");
        assert_eq!(request.params, None);
        assert_eq!(single(br#"{"method":"a"}"#).id, None);
        assert_eq!(single(br#"{"method":"a","id":null}"#).id, None);
    }

    #[test]
    fn distinguishes_bad_requests_from_bad_json() {
        for line in [
            "",
            " ",
            "{",
            "nonsense",
            "{}}",
            "[",
            "[1",
            "\u{0}",
            "{\"a\":01}",
            "{\"method\":\"\\x\"}",
        ] {
            assert_eq!(code(line), Code::Parse, "{line}");
        }
        let nested = "[".repeat(1000);
        assert_eq!(code(&nested), Code::Parse);
        for line in [
            "1",
            "null",
            "\"x\"",
            "{}",
            "[]",
            r#"{"method":1,"id":1}"#,
            r#"{"method":"a","id":[]}"#,
            r#"{"method":"a","id":true}"#,
            r#"{"method":"a","method":"b"}"#,
            "[1,2,3,4]",
            r#"{"id":1}"#,
        ] {
            assert_eq!(code(line), Code::InvalidRequest, "{line}");
        }
        let long_id = format!(r#"{{"method":"a","id":"{}"}}"#, "i".repeat(300));
        assert_eq!(code(&long_id), Code::InvalidRequest);
        let long_name = format!(r#"{{"method":"{}","id":1}}"#, "m".repeat(300));
        assert_eq!(code(&long_name), Code::MethodNotFound);
        assert_eq!(single(b"\xff\xfe").method.unwrap_err().code, Code::Parse);
    }

    #[test]
    fn batches_keep_their_order_and_their_errors() {
        let requests = parse(br#"[{"method":"a","id":1}, 2, {"method":"b"}]"#, 3);
        assert!(requests.batch);
        let requests = requests.items;
        assert_eq!(requests.len(), 3);
        assert_eq!(requests[0].method.as_deref().unwrap(), "a");
        assert_eq!(requests[1].method.as_ref().unwrap_err().code, Code::InvalidRequest);
        assert_eq!(requests[2].id, None);
        let endless = format!("[{}0]", "0,".repeat(20_000));
        assert_eq!(code(&endless), Code::InvalidRequest);
    }
}
