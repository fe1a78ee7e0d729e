//! Lines out of bytes.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::outbox::Ending;
use super::shared::INPUT_UNIT;

/// Bytes that are read at once, and how long a line may be without asking for room.
const READ: usize = 16 << 10;
/// Lines that are answered in one go.
const GROUP_LINES_MAX: usize = 64;
/// How long a line waits for room.
const ROOM_WAIT: Duration = Duration::from_secs(10);

/// A line without its end.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) bytes: Vec<u8>,
    /// Its share of the room for long lines.
    pub(super) room: Option<OwnedSemaphorePermit>,
}

/// What reading comes to.
#[derive(Debug)]
pub(super) enum Read {
    /// A line.
    Line(Line),
    /// A line that is not at its end and already long.
    Long,
    /// The client will say nothing more.
    End,
}

/// Cuts what is read into lines.
#[derive(Debug)]
pub(super) struct Lines {
    buffer: Vec<u8>,
    /// Where the next line begins.
    start: usize,
    /// Up to where there is no end of it.
    searched: usize,
    max: usize,
    input: Arc<Semaphore>,
    room: Option<OwnedSemaphorePermit>,
}

impl Lines {
    pub(super) fn new(max: usize, input: Arc<Semaphore>) -> Self {
        Self { buffer: Vec::new(), start: 0, searched: 0, max, input, room: None }
    }

    /// Whether what has been received of the next line is long.
    pub(super) fn is_long(&self) -> bool {
        self.buffer.len() - self.start > READ
    }

    /// The next line, or that it is long where `stop_at_long` is set. It may be given up on and called again.
    pub(super) async fn next(
        &mut self,
        reader: &mut (impl AsyncRead + Unpin),
        stop_at_long: bool,
    ) -> Result<Read, Ending> {
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.buffer[self.searched..]) {
                let end = self.searched + at;
                if end - self.start > self.max {
                    return Err(Ending::Oversize);
                }
                return Ok(Read::Line(self.cut(end)));
            }
            self.searched = self.buffer.len();
            if self.buffer.len() - self.start > self.max {
                return Err(Ending::Oversize);
            }
            if stop_at_long && self.is_long() {
                return Ok(Read::Long);
            }
            self.make_room().await?;
            match reader.read_buf(&mut self.buffer).await {
                Ok(0) | Err(_) => return Ok(Read::End),
                Ok(_) => {}
            }
        }
    }

    /// A line with those after it that have been received, as far as they are short: they are answered in one go.
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
        Line { bytes, room: self.room.take() }
    }

    /// Has room for more bytes, which long lines of all clients share.
    async fn make_room(&mut self) -> Result<(), Ending> {
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
            let units = wanted.div_ceil(INPUT_UNIT) as u32;
            let asked = Arc::clone(&self.input).acquire_many_owned(units);
            let Ok(Ok(more)) = timeout(ROOM_WAIT, asked).await else {
                return Err(Ending::InputFull);
            };
            match &mut self.room {
                Some(room) => room.merge(more),
                none => *none = Some(more),
            }
        }
        self.buffer.reserve_exact(wanted);
        Ok(())
    }
}
