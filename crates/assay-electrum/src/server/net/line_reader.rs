//! Cuts what a client sends into lines.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::server::disconnect::DisconnectReason;

/// Unit in which memory for long lines is counted, bytes.
pub(in crate::server) const LONG_LINE_UNIT: usize = 1024;
/// Bytes that are read at once, and the length of a line that needs no share of the memory for long
/// lines.
const READ: usize = 16 << 10;
/// Lines that are answered in one go.
const GROUP_LINES_MAX: usize = 64;
/// How long a line waits for such memory.
const MEMORY_WAIT: Duration = Duration::from_secs(10);

/// A line without its end.
#[derive(Debug)]
pub(in crate::server) struct Line {
    pub(in crate::server) bytes: Vec<u8>,
    /// Its share of the memory for long lines.
    pub(in crate::server) memory: Option<OwnedSemaphorePermit>,
}

/// What was read.
#[derive(Debug)]
pub(in crate::server) enum Read {
    /// A line.
    Line(Line),
    /// A line that is not at its end and already long.
    Long,
    /// The client sends no more.
    End,
}

/// Cuts what is read into lines.
#[derive(Debug)]
pub(in crate::server) struct LineReader {
    buffer: Vec<u8>,
    /// Where the next line begins.
    start: usize,
    /// Up to where there is no end of it.
    searched: usize,
    max: usize,
    /// Memory for long lines that all clients share, in units of [`LONG_LINE_UNIT`].
    long_lines: Arc<Semaphore>,
    memory: Option<OwnedSemaphorePermit>,
}

impl LineReader {
    pub(in crate::server) fn new(max: usize, long_lines: Arc<Semaphore>) -> Self {
        Self { buffer: Vec::new(), start: 0, searched: 0, max, long_lines, memory: None }
    }

    /// Whether what has been received of the next line is long.
    pub(in crate::server) fn is_long(&self) -> bool {
        self.buffer.len() - self.start > READ
    }

    /// The next line, or that it is long where `stop_at_long` is set. It may be cancelled and
    /// called again.
    pub(in crate::server) async fn next(
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

    /// A line with those after it that have been received, as far as they are short: they are
    /// answered in one go.
    pub(in crate::server) fn group(&mut self, first: Line) -> Vec<Line> {
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

    /// Makes space for more bytes in the buffer; long lines of all clients share a limit.
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
