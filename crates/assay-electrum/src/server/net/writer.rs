//! Writes a client's send queue to its socket.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use super::send_queue::{Chunk, SendQueue};
use crate::server::disconnect::DisconnectReason;
use crate::server::metrics::Metrics;

const WRITE: usize = 64 << 10;
/// Number of steps of the read timeout. While send memory is half used, only one step is granted.
const STALL_STEPS: u32 = 10;

/// Chunks taken from a client's queue but not sent yet. Writing is cancel safe.
#[derive(Debug)]
pub(in crate::server) struct Writer {
    /// Timeout for a client to read [`WRITE`] bytes.
    stall: Duration,
    chunks: VecDeque<Chunk>,
    /// Current chunk, and the number of its bytes written.
    piece: Option<Chunk>,
    written: usize,
    /// Bytes of it reported to the queue.
    reported: usize,
}

impl Writer {
    pub(in crate::server) fn new(stall: Duration) -> Self {
        Self { stall, chunks: VecDeque::new(), piece: None, written: 0, reported: 0 }
    }

    /// Writes until the connection must end and the queue is empty, or the client does not read.
    pub(in crate::server) async fn run<W: AsyncWrite + Unpin>(
        &mut self,
        socket: &mut W,
        queue: &SendQueue,
        metrics: &Metrics,
    ) {
        loop {
            match self.step(socket, queue).await {
                Ok(true) => self.report(queue, metrics),
                Ok(false) => match queue.take().await {
                    Some(chunks) => self.chunks = chunks.into(),
                    None => break,
                },
                Err(reason) => return queue.close(reason),
            }
        }
        // The peer may be gone already.
        let _ = timeout(self.stall, socket.shutdown()).await;
    }

    fn report(&mut self, queue: &SendQueue, metrics: &Metrics) {
        let Some(piece) = &self.piece else { return };
        let count = self.written - self.reported;
        metrics.sent(count);
        queue.sent(count);
        self.reported = self.written;
        if self.written == piece.as_ref().len() {
            self.piece = None;
        }
    }

    /// Writes the next [`WRITE`] bytes; returns true if there were any.
    async fn step<W: AsyncWrite + Unpin>(
        &mut self,
        socket: &mut W,
        queue: &SendQueue,
    ) -> Result<bool, DisconnectReason> {
        if self.piece.is_none() {
            self.piece = next_piece(&mut self.chunks);
            (self.written, self.reported) = (0, 0);
        }
        let Some(piece) = &self.piece else { return Ok(false) };
        let end = piece.as_ref().len().min((self.written / WRITE + 1) * WRITE);
        let all = &piece.as_ref()[..end];
        for step in 0..STALL_STEPS {
            let writing = write_to(socket, all, &mut self.written);
            match timeout(self.stall / STALL_STEPS, writing).await {
                Ok(Ok(())) => return Ok(true),
                Ok(Err(_)) => return Err(DisconnectReason::Left),
                Err(_) if step + 1 < STALL_STEPS && !queue.memory().is_half_used() => {}
                Err(_) => break,
            }
        }
        Err(DisconnectReason::SlowReader)
    }
}

/// Writes the rest of `all`. Cancel safe: no byte is lost or written twice.
async fn write_to<W: AsyncWrite + Unpin>(
    socket: &mut W,
    all: &[u8],
    written: &mut usize,
) -> io::Result<()> {
    while *written < all.len() {
        let count = socket.write(&all[*written..]).await?;
        if count == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        *written += count;
    }
    socket.flush().await
}

/// The next output: small chunks are joined into one packet or TLS record.
fn next_piece(chunks: &mut VecDeque<Chunk>) -> Option<Chunk> {
    let first = chunks.pop_front()?;
    let fits = |bytes: usize, chunk: &Chunk| bytes + chunk.as_ref().len() <= WRITE;
    if !chunks.front().is_some_and(|second| fits(first.as_ref().len(), second)) {
        return Some(first);
    }
    let mut together = first.as_ref().to_vec();
    while let Some(chunk) = chunks.pop_front_if(|chunk| fits(together.len(), chunk)) {
        together.extend_from_slice(chunk.as_ref());
    }
    Some(Chunk::Own(together))
}
