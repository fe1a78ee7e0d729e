//! Splits a client's byte stream into lines.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::DisconnectReason;

/// Unit of the memory limit for long lines, bytes.
pub(super) const LONG_LINE_UNIT: usize = 1024;
/// Read buffer size, and maximum length of a line that needs no permit of long-line memory.
const READ: usize = 16 << 10;
/// Lines processed as a group.
const GROUP_LINES_MAX: usize = 64;
const MEMORY_WAIT: Duration = Duration::from_secs(10);

/// A line without its terminator.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) bytes: Vec<u8>,
    /// Permit of long-line memory.
    pub(super) memory: Option<OwnedSemaphorePermit>,
}

#[derive(Debug)]
pub(super) enum Read {
    Line(Line),
    /// A partial line that is already long.
    Long,
    End,
}

#[derive(Debug)]
pub(super) struct LineReader {
    buffer: Vec<u8>,
    start: usize,
    /// End of the bytes searched for a terminator.
    searched: usize,
    max: usize,
    /// Memory for long lines of all clients, in units of [`LONG_LINE_UNIT`].
    long_lines: Arc<Semaphore>,
    memory: Option<OwnedSemaphorePermit>,
}

impl LineReader {
    pub(super) fn new(max: usize, long_lines: Arc<Semaphore>) -> Self {
        Self { buffer: Vec::new(), start: 0, searched: 0, max, long_lines, memory: None }
    }

    /// True if the partial line is long.
    pub(super) fn is_long(&self) -> bool {
        self.buffer.len() - self.start > READ
    }

    /// The next line, or [`Read::Long`] if `stop_at_long` is set. Cancel safe.
    pub(super) async fn next(
        &mut self,
        reader: &mut (impl AsyncRead + Unpin),
        stop_at_long: bool,
    ) -> Result<Read, DisconnectReason> {
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.buffer[self.searched..]) {
                let end = self.searched + at;
                if end - self.start > self.max {
                    return Err(DisconnectReason::Oversize);
                }
                return Ok(Read::Line(self.cut(end)));
            }
            self.searched = self.buffer.len();
            if self.buffer.len() - self.start > self.max {
                return Err(DisconnectReason::Oversize);
            }
            if stop_at_long && self.is_long() {
                return Ok(Read::Long);
            }
            self.reserve().await?;
            match reader.read_buf(&mut self.buffer).await {
                Ok(0) | Err(_) => return Ok(Read::End),
                Ok(_) => {}
            }
        }
    }

    /// A line and the short lines received after it, to be processed as a group.
    pub(super) fn group(&mut self, first: Line) -> Vec<Line> {
        let mut bytes = first.bytes.len();
        let mut group = vec![first];
        while group.len() < GROUP_LINES_MAX && bytes < READ {
            let Some(at) = memchr::memchr(b'\n', &self.buffer[self.searched..]) else { break };
            let line = self.cut(self.searched + at);
            bytes += line.bytes.len();
            group.push(line);
        }
        group
    }

    fn cut(&mut self, end: usize) -> Line {
        let whole = self.start == 0 && end + 1 == self.buffer.len();
        let bytes = if whole {
            let mut bytes = std::mem::take(&mut self.buffer);
            bytes.pop();
            (self.start, self.searched) = (0, 0);
            bytes
        } else {
            let bytes = self.buffer[self.start..end].to_vec();
            (self.start, self.searched) = (end + 1, end + 1);
            bytes
        };
        Line { bytes, memory: self.memory.take() }
    }

    /// Grows the buffer; long lines of all clients share a limit.
    async fn reserve(&mut self) -> Result<(), DisconnectReason> {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.searched -= self.start;
            self.start = 0;
        }
        if self.buffer.capacity() > self.buffer.len() {
            return Ok(());
        }
        let length = self.buffer.len();
        let wanted = if length < READ { READ / 4 } else { READ.max(length / 4) };
        if length + wanted > READ {
            let units = wanted.div_ceil(LONG_LINE_UNIT) as u32;
            let asked = Arc::clone(&self.long_lines).acquire_many_owned(units);
            let Ok(Ok(more)) = timeout(MEMORY_WAIT, asked).await else {
                return Err(DisconnectReason::InputFull);
            };
            match &mut self.memory {
                Some(memory) => memory.merge(more),
                none => *none = Some(more),
            }
        }
        self.buffer.reserve_exact(wanted);
        Ok(())
    }
}
