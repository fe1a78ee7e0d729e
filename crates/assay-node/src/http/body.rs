//! Reads request bodies with limits on size and time.

use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::time::timeout;

use crate::jsonrpc::body_decoder::{BodyDecoder, Text};

#[derive(Debug, thiserror::Error)]
pub(crate) enum BodyError {
    #[error("request body is larger than the limit of {limit} bytes")]
    TooLarge { limit: usize },
    #[error("request body stalled for {} seconds", idle.as_secs())]
    Stalled { idle: Duration },
    #[error("no memory for a request body of {bytes} bytes")]
    NoMemory { bytes: usize },
    #[error("request body broke off: {0}")]
    Transport(#[from] hyper::Error),
}

/// Reads `body` of `announced` bytes (0 if unknown) and decodes block data during the transfer.
///
/// # Errors
/// The body exceeds `limit`, nothing arrives for `idle`, memory is short, or the connection breaks.
pub(crate) async fn read(
    body: &mut Incoming,
    announced: usize,
    limit: usize,
    idle: Duration,
) -> Result<Text, BodyError> {
    let mut decoder = BodyDecoder::new(announced.min(limit));
    loop {
        let frame = timeout(idle, body.frame()).await.map_err(|_| BodyError::Stalled { idle })?;
        let Some(frame) = frame else { return Ok(decoder.finish()) };
        let Ok(data) = frame?.into_data() else { continue };
        if data.len() > limit - decoder.taken() {
            return Err(BodyError::TooLarge { limit });
        }
        decoder.push(&data).map_err(|_| BodyError::NoMemory { bytes: decoder.taken() })?;
    }
}

/// Discards the rest of a request after an error response, for at most `period`. Closing at once would reset the connection, and
/// a client that writes the whole request before it reads would see the reset instead of the response.
pub(crate) async fn linger(mut body: Incoming, period: Duration) {
    let drain = async { while let Some(Ok(_)) = body.frame().await {} };
    // Completion and timeout are equivalent here.
    let _ = timeout(period, drain).await;
}
