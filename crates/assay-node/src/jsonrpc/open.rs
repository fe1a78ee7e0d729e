//! Requests outside of JSON-RPC that need no credentials, and their answers.

use hyper::StatusCode;

#[derive(Debug)]
pub struct OpenRequest {
    /// Path and query as they were sent.
    pub target: String,
    /// At most 64 KiB.
    pub body: Vec<u8>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct OpenReply {
    pub status: StatusCode,
    /// Kind of contents (`Content-Type`).
    pub content_type: &'static str,
    /// Response never changes: sent with `Cache-Control: immutable`.
    pub is_immutable: bool,
    pub body: Vec<u8>,
}

impl OpenReply {
    /// A short text.
    pub fn text(status: StatusCode, text: impl Into<Vec<u8>>) -> Self {
        Self { status, content_type: "text/plain", is_immutable: false, body: text.into() }
    }
}
