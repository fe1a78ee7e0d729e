//! What a client is being sent.

use std::collections::VecDeque;
use std::io;

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use super::outbox::{Chunk, Ending, Outbox};
use super::shared::Shared;

/// Bytes that are written at once.
const WRITE: usize = 64 << 10;
/// In so many steps the time passes that a client has for reading. Where room is short, it has one step.
const STALL_STEPS: u32 = 10;

/// Chunks taken from a client's outbox that have not left yet. Sending can be given up on at any moment and begun again.
#[derive(Debug, Default)]
pub(super) struct Sending {
    chunks: VecDeque<Chunk>,
    /// What is being written, and how much of it has been.
    piece: Option<Chunk>,
    written: usize,
    /// How much of that the outbox knows of.
    told: usize,
    /// Something was written that a layer below may hold back.
    is_held: bool,
}

impl Sending {
    /// Sends until nothing more will come, or the client does not take it.
    pub(super) async fn run<W: AsyncWrite + Unpin>(
        &mut self,
        writer: &mut W,
        outbox: &Outbox,
        shared: &Shared,
    ) {
        let stall = shared.config.limits.write_stall;
        loop {
            match self.step(writer, shared).await {
                Ok(true) => self.account(outbox, shared),
                Ok(false) => match outbox.take().await {
                    Some(chunks) => self.chunks = chunks.into(),
                    None => break,
                },
                Err(ending) => return outbox.close(ending),
            }
        }
        // The peer may be gone already.
        let _ = timeout(stall, writer.shutdown()).await;
    }

    /// Says what has left.
    fn account(&mut self, outbox: &Outbox, shared: &Shared) {
        let Some(piece) = &self.piece else { return };
        let count = self.written - self.told;
        shared.metrics.sent(count);
        outbox.sent(count);
        self.told = self.written;
        if self.written == piece.as_ref().len() {
            self.piece = None;
        }
    }

    /// Writes the next [`WRITE`] bytes; says whether there was anything.
    async fn step<W: AsyncWrite + Unpin>(
        &mut self,
        writer: &mut W,
        shared: &Shared,
    ) -> Result<bool, Ending> {
        if self.piece.is_none() {
            self.piece = next_piece(&mut self.chunks);
            (self.written, self.told) = (0, 0);
        }
        let Some(piece) = &self.piece else { return Ok(false) };
        let end = piece.as_ref().len().min((self.written / WRITE + 1) * WRITE);
        let all = &piece.as_ref()[..end];
        for step in 0..STALL_STEPS {
            let writing = write_to(writer, all, &mut self.written, &mut self.is_held);
            let pause = shared.config.limits.write_stall / STALL_STEPS;
            match timeout(pause, writing).await {
                Ok(Ok(())) => return Ok(true),
                Ok(Err(_)) => return Err(Ending::Left),
                Err(_) if step + 1 < STALL_STEPS && !shared.output.is_short() => {}
                Err(_) => break,
            }
        }
        Err(Ending::SlowReader)
    }
}

/// Writes what is missing of `all`. Nothing is lost or written twice when this is given up on.
async fn write_to<W: AsyncWrite + Unpin>(
    writer: &mut W,
    all: &[u8],
    written: &mut usize,
    is_held: &mut bool,
) -> io::Result<()> {
    while *written < all.len() {
        let count = writer.write(&all[*written..]).await?;
        if count == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        *written += count;
        *is_held = true;
    }
    writer.flush().await?;
    *is_held = false;
    Ok(())
}

/// What is to be written next: small chunks go together, in one packet or one TLS record.
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
