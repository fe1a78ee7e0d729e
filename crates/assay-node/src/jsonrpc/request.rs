//! Parses request objects.
//!
//! The text is scanned once, and all results borrow from it. Fields are interpreted later, per request, so that one
//! invalid request does not affect the rest of a batch.

use std::borrow::Cow;
use std::fmt;

use memchr::memchr;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::body_decoder::Text;
use super::error::{Code, RpcError};

#[derive(Debug)]
pub(crate) enum Body<'a> {
    /// One request object, or another value in its place.
    Single(Envelope<'a>),
    Batch(Vec<Envelope<'a>>),
}

impl<'a> Body<'a> {
    /// Scans `text`.
    ///
    /// # Errors
    /// The text is not exactly one JSON object or array.
    pub(crate) fn parse(text: &'a [u8]) -> Result<Self, RpcError> {
        let malformed = |_| RpcError::new(Code::ParseError, "Parse error");
        let raw: &RawValue = serde_json::from_slice(text).map_err(malformed)?;
        match raw.get().as_bytes().first() {
            Some(b'[') => {
                let elements: Vec<&RawValue> =
                    serde_json::from_str(raw.get()).map_err(malformed)?;
                let envelopes = elements.into_iter().map(Envelope::parse).collect::<Result<_, _>>();
                envelopes.map(Body::Batch).map_err(malformed)
            }
            Some(b'{') => Envelope::parse(raw).map(Body::Single).map_err(malformed),
            _ => Err(RpcError::new(Code::ParseError, "Top-level object parse error")),
        }
    }
}

/// Request object with unchecked fields.
#[derive(Debug, Default)]
pub(crate) struct Envelope<'a> {
    is_object: bool,
    id: Option<&'a RawValue>,
    version: Option<&'a RawValue>,
    method: Option<&'a RawValue>,
    params: Option<&'a RawValue>,
}

/// Protocol version of the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Version {
    /// JSON-RPC 1.0 or 1.1: errors are HTTP errors; `result` and `error` are both present.
    #[default]
    Legacy,
    /// JSON-RPC 2.0: HTTP status 200, either `result` or `error`; a request without id is a notification.
    V2,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReplyTo {
    /// Id in the caller's notation; `None` if absent.
    pub(crate) id: Option<Box<str>>,
    pub(crate) version: Version,
}

impl ReplyTo {
    /// For requests without a readable id.
    pub(crate) fn unknown() -> Self {
        Self { id: Some("null".into()), version: Version::Legacy }
    }

    pub(crate) fn is_notification(&self) -> bool {
        self.id.is_none() && self.version == Version::V2
    }
}

#[derive(Debug)]
pub(crate) struct Request<'a> {
    pub(crate) method: Cow<'a, str>,
    pub(crate) params: Params<'a>,
}

/// Arguments: by position, by name, or absent.
#[derive(Debug)]
pub enum Params<'a> {
    None,
    Positional(Vec<Value<'a>>),
    /// Members in the order of the request.
    Named(Vec<(String, Value<'a>)>),
}

/// One argument: a JSON value inside the request text.
#[derive(Debug, Clone, Copy)]
pub struct Value<'a> {
    raw: &'a RawValue,
    text: &'a Text,
}

impl<'a> Value<'a> {
    /// Copies values into an array, to which their long strings move; null for `None`.
    pub(crate) fn array(values: impl IntoIterator<Item = Option<Self>>) -> Text {
        Text::array(values.into_iter().map(|value| value.map(|value| (value.raw, value.text))))
    }

    /// Elements of the array that is the whole text.
    pub(crate) fn all(text: &'a Text) -> Vec<Self> {
        let raws: Vec<&'a RawValue> =
            serde_json::from_slice(text.as_bytes()).expect("the text is an array of values");
        raws.into_iter().map(|raw| Self { raw, text }).collect()
    }

    /// JSON text. Long hexadecimal strings appear empty here; [`Value::hex`] and [`Value::string`] return their contents.
    pub fn json(self) -> &'a str {
        self.raw.get()
    }

    /// Type name as in `UniValue`.
    pub fn type_name(self) -> &'static str {
        match self.json().as_bytes().first() {
            Some(b'"') => "string",
            Some(b'{') => "object",
            Some(b'[') => "array",
            Some(b't' | b'f') => "bool",
            Some(b'n') => "null",
            _ => "number",
        }
    }

    pub fn is_null(self) -> bool {
        is_null(self.raw)
    }

    /// Text of a string; `None` for other values.
    pub fn string(self) -> Option<Cow<'a, str>> {
        match self.text.original(self.raw) {
            Cow::Borrowed(_) => unquote(self.raw),
            Cow::Owned(long) => Some(Cow::Owned(long.trim_matches('"').to_owned())),
        }
    }

    /// Bytes of a hexadecimal string; `None` for other values. A long string can be taken only once.
    pub fn hex(self) -> Option<Vec<u8>> {
        if let Some(bytes) = self.text.take(self.raw) {
            return Some(bytes);
        }
        unhex(unquote(self.raw)?.as_bytes())
    }

    /// Member of an object unless null; `None` also for other values.
    pub fn member(self, name: &str) -> Option<Self> {
        let members = Members::parse(self.raw).ok()?.0;
        // The last of two equal names wins, as in a map.
        let (_, raw) = members.into_iter().rev().find(|member| member.0 == name)?;
        Some(Self { raw, text: self.text }).filter(|value| !value.is_null())
    }

    /// Members of an object in order of appearance; `None` for other values.
    pub fn members(self) -> Option<Vec<(String, Self)>> {
        let members = Members::parse(self.raw).ok()?.0.into_iter();
        Some(members.map(|(name, raw)| (name, Self { raw, text: self.text })).collect())
    }

    /// Elements of an array; `None` for other values.
    pub fn elements(self) -> Option<Vec<Self>> {
        let list: Vec<&'a RawValue> = serde_json::from_str(self.json()).ok()?;
        Some(list.into_iter().map(|raw| Self { raw, text: self.text }).collect())
    }
}

/// Members of an object in order of appearance, with repeated names.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'a> Members<'a> {
    fn parse(raw: &'a RawValue) -> serde_json::Result<Self> {
        serde_json::from_str(raw.get())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;
        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(MembersVisitor)
    }
}

impl<'a> Envelope<'a> {
    /// Reads the fields of an object; of two equal names the first wins, as in Bitcoin Core.
    fn parse(raw: &'a RawValue) -> serde_json::Result<Self> {
        if !raw.get().starts_with('{') {
            return Ok(Self::default());
        }
        let members = Members::parse(raw)?.0;
        let field = |name| members.iter().find(|member| member.0 == name).map(|member| member.1);
        let [id, version, method, params] = ["id", "jsonrpc", "method", "params"].map(field);
        Ok(Self { is_object: true, id, version, method, params })
    }

    /// Checks the fields in Bitcoin Core's order (`JSONRPCRequest::parse`), so that of several faults the same one is reported.
    ///
    /// A batch element that is not an object gets a null id. Core repeats the previous id, which answers a request twice.
    pub(crate) fn check(self, text: &'a Text) -> (ReplyTo, Result<Request<'a>, RpcError>) {
        let mut reply_to = ReplyTo::unknown();
        if !self.is_object {
            return (reply_to, Err(invalid("Invalid Request object")));
        }
        reply_to.id = self.id.map(|id| text.original(id).into());
        match self.version.filter(|version| !is_null(version)) {
            None => {}
            Some(version) => match unquote(version) {
                None => return (reply_to, Err(invalid("jsonrpc field must be a string"))),
                Some(version) => match &*version {
                    "1.0" => {}
                    "2.0" => reply_to.version = Version::V2,
                    _ => return (reply_to, Err(invalid("JSON-RPC version not supported"))),
                },
            },
        }
        let request = match self.method.filter(|method| !is_null(method)) {
            None => Err(invalid("Missing method")),
            Some(method) => match (unquote(method), params(self.params, text)) {
                (None, _) => Err(invalid("Method must be a string")),
                (_, None) => Err(invalid("Params must be an array or object")),
                (Some(method), Some(params)) => Ok(Request { method, params }),
            },
        };
        (reply_to, request)
    }
}

/// Arguments in `raw`; `None` for a value that is neither array nor object.
fn params<'a>(raw: Option<&'a RawValue>, text: &'a Text) -> Option<Params<'a>> {
    let Some(raw) = raw.filter(|raw| !is_null(raw)) else { return Some(Params::None) };
    let value = Value { raw, text };
    let positional = value.elements().map(Params::Positional);
    positional.or_else(|| value.members().map(Params::Named))
}

/// Bytes of hexadecimal digits of either case.
pub(crate) fn unhex(digits: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = vec![0; digits.len() / 2];
    let is_even = digits.len().is_multiple_of(2);
    (is_even && faster_hex::hex_decode(digits, &mut bytes).is_ok()).then_some(bytes)
}

/// Text of a JSON string, borrowed unless it contains escapes; `None` for other values.
fn unquote(value: &RawValue) -> Option<Cow<'_, str>> {
    let inner = value.get().strip_prefix('"')?.strip_suffix('"')?;
    if memchr(b'\\', inner.as_bytes()).is_some() {
        return serde_json::from_str::<String>(value.get()).ok().map(Cow::Owned);
    }
    Some(Cow::Borrowed(inner))
}

fn is_null(value: &RawValue) -> bool {
    value.get() == "null"
}

fn invalid(message: &'static str) -> RpcError {
    RpcError::new(Code::InvalidRequest, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn single(text: &str) -> (ReplyTo, Result<String, String>) {
        let Ok(Body::Single(envelope)) = Body::parse(text.as_bytes()) else {
            panic!("not a single request: {text}");
        };
        let source = Text::from(text.as_bytes());
        let (reply_to, request) = envelope.check(&source);
        (reply_to, request.map(|r| r.method.into_owned()).map_err(|e| e.message.into_owned()))
    }

    #[test]
    fn fields_are_checked_in_core_order() {
        for (text, expected) in [
            (r#"{"method":"a"}"#, Ok("a")),
            (r#"{"method":"a\u0062"}"#, Ok("ab")),
            (r#"{"method":"a","method":"b"}"#, Ok("a")),
            (r#"{"method":"a","params":null}"#, Ok("a")),
            (r#"{"method":"a","jsonrpc":null}"#, Ok("a")),
            (r#"{"method":"a","jsonrpc":"1.0"}"#, Ok("a")),
            (r#"{"method":"a","jsonrpc":"1.1"}"#, Err("JSON-RPC version not supported")),
            (r#"{"jsonrpc":2}"#, Err("jsonrpc field must be a string")),
            (r"{}", Err("Missing method")),
            (r#"{"method":null}"#, Err("Missing method")),
            (r#"{"method":["a"]}"#, Err("Method must be a string")),
            (r#"{"method":"a","params":"x"}"#, Err("Params must be an array or object")),
            (r#"{"method":"a","params":-1}"#, Err("Params must be an array or object")),
        ] {
            let expected = expected.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(single(text).1, expected, "{text}");
        }
    }

    #[test]
    fn ids_are_echoed_as_written() {
        for (text, id) in [
            (r#"{"id":7}"#, Some("7")),
            (r#"{"id":"x\"y"}"#, Some(r#""x\"y""#)),
            (r#"{"id":null}"#, Some("null")),
            (r#"{"id":{"a":[1]}}"#, Some(r#"{"a":[1]}"#)),
            (r#"{"method":"a"}"#, None),
        ] {
            assert_eq!(single(text).0.id.as_deref(), id, "{text}");
        }
        assert!(single(r#"{"jsonrpc":"2.0","method":"a"}"#).0.is_notification());
        assert!(!single(r#"{"jsonrpc":"2.0","method":"a","id":null}"#).0.is_notification());
        assert!(!single(r#"{"method":"a"}"#).0.is_notification());
    }

    #[test]
    fn rejects_invalid_bodies() {
        for (text, message) in [
            ("", "Parse error"),
            ("{", "Parse error"),
            ("{} x", "Parse error"),
            ("[1,]", "Parse error"),
            ("{\"method\":\"\u{1}\"}", "Parse error"),
            ("nonsense", "Parse error"),
            ("null", "Top-level object parse error"),
            ("17", "Top-level object parse error"),
            (" \"text\" ", "Top-level object parse error"),
        ] {
            assert_eq!(Body::parse(text.as_bytes()).unwrap_err().message, message, "{text}");
        }
        assert!(Body::parse(b"{\"method\":\"\xff\"}").is_err());
    }

    #[test]
    fn invalid_batch_elements_fail_alone() {
        let text = br#"[{"method":"a","id":1}, 5, null, "x", [], true, 1.5, {"id":2}]"#;
        let Ok(Body::Batch(elements)) = Body::parse(text) else { panic!("a batch") };
        let source = Text::from(&text[..]);
        let checked: Vec<_> = elements.into_iter().map(|e| e.check(&source).1.is_ok()).collect();
        assert_eq!(checked, [true, false, false, false, false, false, false, false]);
        assert!(matches!(Body::parse(b" [ ] "), Ok(Body::Batch(list)) if list.is_empty()));
    }

    #[test]
    fn deep_nesting_does_not_overflow_the_stack() {
        let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
        let text = format!(r#"{{"method":"a","params":[{deep}]}}"#);
        assert!(matches!(Body::parse(text.as_bytes()), Ok(Body::Single(_)) | Err(_)));
        assert!(Body::parse(deep.as_bytes()).is_ok());
    }
}
