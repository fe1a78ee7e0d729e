//! REST requests, which need no credentials, and their responses.

use hyper::StatusCode;

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
