//! A JSON-RPC client for nodes: keep-alive, cookie authentication, prepared bodies, batches.
//!
//! Bodies are passed as slices and go through one small buffer of the HTTP library to the socket, so a 512 MB block is never
//! copied as a whole.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use ureq::Agent;

/// Longest accepted reply; `getrawmempool` of a million transactions takes about 70 MB.
const REPLY_BYTES_MAX: u64 = 1 << 30;
/// Buffer between a body and the socket: fits a core's cache, so copying is not measurable (docs/adr/0003-lab-libraries.md).
const SEND_BUFFER_BYTES: usize = 32 * 1024;

/// One keep-alive connection to a node.
#[derive(Debug)]
pub struct Client {
    agent: Agent,
    url: String,
    authorization: String,
    reply_bytes_max: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum RpcError {
    /// The connection failed, or the reply is not HTTP.
    #[error("{method}: {source}")]
    Transport {
        method: String,
        /// Error of the HTTP library.
        source: Box<ureq::Error>,
    },
    /// The HTTP layer rejected the request.
    #[error("{method}: HTTP status {status}{}", if matches!(status, 401 | 403) { ": the node does not take these credentials" } else { "" })]
    Status { method: String, status: u16 },
    #[error("{method}: error {code}: {message}")]
    Node { method: String, code: i64, message: String },
    #[error("{method}: unexpected reply")]
    Reply {
        method: String,
        /// Error of the JSON library.
        source: serde_json::Error,
    },
}

#[derive(Deserialize)]
struct ReplyObject<'a> {
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    error: Option<ErrorObject>,
}

#[derive(Deserialize)]
struct ErrorObject {
    code: i64,
    message: String,
}

impl Client {
    /// A client for `127.0.0.1:port`. `credentials` is `user:password`. It connects on first use.
    pub(crate) fn new(port: u16, credentials: &str) -> Self {
        Self::at(SocketAddr::from((Ipv4Addr::LOCALHOST, port)), credentials)
    }

    /// The same for any address.
    pub(crate) fn at(address: SocketAddr, credentials: &str) -> Self {
        Self::limited(address, credentials, None, REPLY_BYTES_MAX)
    }

    /// The same with limits of the time of a request and of the size of its reply.
    pub fn limited(
        address: SocketAddr,
        credentials: &str,
        timeout: Option<Duration>,
        reply_bytes_max: u64,
    ) -> Self {
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            // Ignore proxies of the environment.
            .proxy(None)
            .max_redirects(0)
            .output_buffer_size(SEND_BUFFER_BYTES)
            .max_idle_connections_per_host(1)
            .timeout_global(timeout)
            .build()
            .new_agent();
        Self {
            agent,
            url: format!("http://{address}/"),
            authorization: format!("Basic {}", STANDARD.encode(credentials)),
            reply_bytes_max,
        }
    }

    /// Address of the node.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Calls `method` with parameters as a JSON array.
    pub(crate) fn call<T: DeserializeOwned>(
        &self,
        method: &str,
        params: &str,
    ) -> Result<T, RpcError> {
        let body = format!(
            r#"{{"jsonrpc":"1.0","id":"assay-lab","method":"{method}","params":{params}}}"#
        );
        let reply = self.post(method, body.as_bytes(), None)?;
        read_result(method, &reply)
    }

    /// Calls methods with parameters as JSON arrays in one request; one answer each.
    ///
    /// # Errors
    /// When the node does not respond, or not to all.
    pub fn batch<'a>(
        &self,
        calls: impl ExactSizeIterator<Item = (&'a str, &'a str)> + Clone,
    ) -> Result<Vec<Answer>, RpcError> {
        let (count, method) = (calls.len(), calls.clone().next().map_or("", |(method, _)| method));
        let reply = self.post(method, batch_body(calls).as_bytes(), None)?;
        let answers = read_answers(method, &reply)?;
        if answers.len() != count {
            let source = serde::de::Error::custom("a batch reply of another length");
            return Err(RpcError::Reply { method: method.to_owned(), source });
        }
        Ok(answers)
    }

    /// Posts a prepared body and returns the whole reply.
    ///
    /// # Errors
    /// When the node does not respond, or not with JSON.
    pub fn post(
        &self,
        method: &str,
        body: &[u8],
        timeout: Option<Duration>,
    ) -> Result<Vec<u8>, RpcError> {
        let fail =
            |source| RpcError::Transport { method: method.to_owned(), source: Box::new(source) };
        let mut response = self
            .agent
            .post(&self.url)
            .config()
            .timeout_recv_response(timeout)
            .build()
            .header("Authorization", &self.authorization)
            .header("Content-Type", "application/json")
            .send(body)
            .map_err(fail)?;
        let status = response.status().as_u16();
        let reply = response
            .body_mut()
            .with_config()
            .limit(self.reply_bytes_max)
            .read_to_vec()
            .map_err(fail)?;
        // Nodes send JSON-RPC errors with status 500 and 404; 401, 403, 413 and 503 come from the HTTP layer without JSON.
        let has_json = reply.first().is_some_and(|byte| matches!(byte, b'{' | b'['));
        if status != 200 && !has_json {
            return Err(RpcError::Status { method: method.to_owned(), status });
        }
        Ok(reply)
    }
}

/// Body of a request with several calls.
pub(crate) fn batch_body<'a>(calls: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let calls = calls.map(|(method, params)| {
        format!(r#"{{"jsonrpc":"1.0","id":0,"method":"{method}","params":{params}}}"#)
    });
    format!("[{}]", calls.collect::<Vec<_>>().join(","))
}

/// The result of a reply; an error object becomes [`RpcError::Node`].
pub(crate) fn read_result<T: DeserializeOwned>(method: &str, reply: &[u8]) -> Result<T, RpcError> {
    let unexpected = |source| RpcError::Reply { method: method.to_owned(), source };
    let object: ReplyObject<'_> = serde_json::from_slice(reply).map_err(unexpected)?;
    if let Some(error) = object.error {
        return Err(RpcError::Node {
            method: method.to_owned(),
            code: error.code,
            message: error.message,
        });
    }
    let result = object.result.map_or("null", RawValue::get);
    serde_json::from_str(result).map_err(unexpected)
}

/// Iterates over the replies of a batch; `each` receives index, code and message of every error. Returns the number of entries.
pub(crate) fn read_batch(
    method: &str,
    reply: &[u8],
    mut each: impl FnMut(usize, i64, &str),
) -> Result<usize, RpcError> {
    let entries = entries(method, reply)?;
    for (place, entry) in entries.iter().enumerate() {
        if let Some(error) = &entry.error {
            each(place, error.code, &error.message);
        }
    }
    Ok(entries.len())
}

fn entries<'a>(method: &str, reply: &'a [u8]) -> Result<Vec<ReplyObject<'a>>, RpcError> {
    if reply.first() == Some(&b'{') {
        // A single object is an error about the batch itself; without one it is no list, which the parser rejects.
        read_result::<serde::de::IgnoredAny>(method, reply)?;
    }
    let unexpected = |source| RpcError::Reply { method: method.to_owned(), source };
    serde_json::from_slice(reply).map_err(unexpected)
}

/// A result, or code and message of an error.
pub type Answer = Result<serde_json::Value, (i64, String)>;

pub(crate) fn read_answers(method: &str, reply: &[u8]) -> Result<Vec<Answer>, RpcError> {
    let unexpected = |source| RpcError::Reply { method: method.to_owned(), source };
    entries(method, reply)?
        .into_iter()
        .map(|entry| {
            if let Some(error) = entry.error {
                return Ok(Err((error.code, error.message)));
            }
            let result = entry.result.map_or("null", RawValue::get);
            serde_json::from_str(result).map(Ok).map_err(unexpected)
        })
        .collect()
}

impl RpcError {
    /// True if the node itself responded.
    pub(crate) const fn is_answer(&self) -> bool {
        !matches!(self, Self::Transport { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies() {
        let reply = br#"{"result":5,"error":null,"id":1}"#;
        assert_eq!(read_result::<u32>("m", reply).expect("a number"), 5);
        let reply = br#"{"jsonrpc":"2.0","result":5,"id":1}"#;
        assert_eq!(read_result::<u32>("m", reply).expect("a number"), 5);
        let reply = br#"{"result":null,"error":{"code":-8,"message":"no"},"id":1}"#;
        let error = read_result::<u32>("m", reply).expect_err("an error");
        assert_eq!(error.to_string(), "m: error -8: no");
        assert!(matches!(read_result::<u32>("m", b"<html>"), Err(RpcError::Reply { .. })));
        assert!(read_result::<Option<String>>("m", br#"{"result":null}"#).expect("null").is_none());
    }

    #[test]
    fn batches() {
        let reply = br#"[{"result":"a","error":null,"id":0},
            {"result":null,"error":{"code":-26,"message":"dust"},"id":1}]"#;
        let mut errors = Vec::new();
        let count =
            read_batch("m", reply, |at, code, what| errors.push(format!("{at}: {code} {what}")));
        assert_eq!(count.expect("a batch"), 2);
        assert_eq!(errors, ["1: -26 dust"]);
        let answers = read_answers("m", reply).expect("a batch");
        assert_eq!(answers[0], Ok(serde_json::Value::from("a")));
        assert_eq!(answers[1], Err((-26, "dust".to_owned())));
        let whole = br#"{"result":null,"error":{"code":-32600,"message":"too big"},"id":null}"#;
        let error = read_batch("m", whole, |_, _, _| ()).expect_err("an error");
        assert_eq!(error.to_string(), "m: error -32600: too big");
    }
}
