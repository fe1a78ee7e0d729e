//! Taking a request body off the wire, bounded in size and time.

use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::time::timeout;

use crate::jsonrpc::intake::{Intake, Text};

/// Why a body could not be taken.
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

/// Reads `body`, which announced `announced` bytes or 0, decoding block data on the way.
///
/// # Errors
/// The body turns out to be larger than `limit`, nothing arrives for `idle`, memory is short, or
/// the connection breaks.
pub(crate) async fn read(
    body: &mut Incoming,
    announced: usize,
    limit: usize,
    idle: Duration,
) -> Result<Text, BodyError> {
    let mut intake = Intake::new(announced.min(limit));
    loop {
        let frame = timeout(idle, body.frame()).await.map_err(|_| BodyError::Stalled { idle })?;
        let Some(frame) = frame else { return Ok(intake.finish()) };
        let Ok(data) = frame?.into_data() else { continue };
        if data.len() > limit - intake.taken() {
            return Err(BodyError::TooLarge { limit });
        }
        intake.push(&data).map_err(|_| BodyError::NoMemory { bytes: intake.taken() })?;
    }
}

/// Reads and forgets what a client still sends after its request has been answered with an error,
/// for at most `period`. Closing at once would reset the connection, and a client that writes
/// everything before it reads would see the reset instead of the answer.
pub(crate) async fn linger(mut body: Incoming, period: Duration) {
    let drain = async { while let Some(Ok(_)) = body.frame().await {} };
    // Whether the client finished or the period ended makes no difference.
    let _ = timeout(period, drain).await;
}
