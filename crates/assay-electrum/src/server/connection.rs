//! Bytes in and out.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::budget::Verdict;
use super::outbox::{Chunk, Ending, Outbox};
use super::session::Session;
use super::shared::{INPUT_UNIT, Shared};
use super::work::{self, Work};
use super::workers::Lane;

/// Bytes that are read at once, and how long a line may be without asking for room.
const READ: usize = 16 << 10;
/// Bytes that are written at once.
const WRITE: usize = 64 << 10;
/// A client with more than this waiting for it is not heard until it has read: less where room is short.
const OUTPUT_LOW: usize = 1 << 20;
const OUTPUT_LOW_SHORT: usize = 64 << 10;
/// In so many steps the time passes that a client has for reading. Where room is short, it has one step.
const STALL_STEPS: u32 = 10;
/// Lines that are answered in one go.
const GROUP_LINES_MAX: usize = 64;
/// Longer lines never go first.
const EXPRESS_LINE_MAX: usize = 64 << 10;
/// How long a line waits for room.
const ROOM_WAIT: Duration = Duration::from_secs(10);
/// How long what is queued may take to leave when the connection ends.
const FAREWELL: Duration = Duration::from_secs(5);

/// Serves a client until it leaves or has to; `deadline` is for its first request.
pub(super) async fn serve<S>(
    stream: S,
    session: Arc<Session>,
    shared: Arc<Shared>,
    deadline: Instant,
    mut stop: watch::Receiver<bool>,
) where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    let (reader, writer) = split(stream);
    let stall = shared.config.limits.write_stall;
    let writing = {
        let (outbox, shared) = (Arc::clone(&session.outbox), Arc::clone(&shared));
        tokio::spawn(async move { write(writer, &outbox, &shared, stall).await })
    };
    let stopped = async {
        // An error means that the server is gone.
        let _ = stop.wait_for(|stop| *stop).await;
        Ending::Stopping
    };
    let ending = tokio::select! {
        ending = read(reader, &session, &shared, deadline) => ending,
        ending = session.outbox.over() => ending,
        ending = stopped => ending,
    };
    session.outbox.close(ending);
    let ending = session.outbox.ending().unwrap_or(ending);
    session.leave(&shared);
    shared.metrics.ended(ending);
    let abort = writing.abort_handle();
    // Whoever has only said that there are no more questions still gets the answers.
    let is_heard = !matches!(ending, Ending::SlowReader | Ending::OutputFull);
    if !is_heard || timeout(FAREWELL, writing).await.is_err() {
        abort.abort();
    }
}

async fn read<R: AsyncRead + Unpin>(
    reader: R,
    session: &Arc<Session>,
    shared: &Arc<Shared>,
    deadline: Instant,
) -> Ending {
    let limits = &shared.config.limits;
    let max = limits.request_bytes_max;
    let mut lines = Lines::new(reader, max, Arc::clone(&shared.input));
    let mut deadline = Some(deadline);
    loop {
        let low = if shared.output.is_short() { OUTPUT_LOW_SHORT } else { OUTPUT_LOW };
        session.outbox.below(low).await;
        let until = deadline.unwrap_or_else(|| Instant::now() + limits.idle);
        let line = match timeout_at(until, lines.next()).await {
            Ok(Ok(Some(line))) => line,
            Ok(Ok(None)) => return Ending::Left,
            Ok(Err(Ending::Oversize)) => return work::oversize(session, max),
            Ok(Err(ending)) => return ending,
            Err(_) if deadline.is_some() => return Ending::NoRequest,
            Err(_) => return Ending::Idle,
        };
        deadline = None;
        let group = lines.group(line);
        for line in &group {
            shared.metrics.received(line.bytes.len() + 1);
        }
        if let Some(ending) = handle(group, session, shared).await {
            return ending;
        }
    }
}

/// Has lines answered. Those that a client sends meanwhile wait in its socket.
async fn handle(group: Vec<Line>, session: &Arc<Session>, shared: &Arc<Shared>) -> Option<Ending> {
    let verdict = match session.verdict(shared.config.limits.throttle_max) {
        Verdict::Wait(time) => {
            shared.metrics.throttled();
            sleep(time).await;
            Verdict::Ordinary
        }
        verdict => verdict,
    };
    let is_long = group.iter().any(|line| line.bytes.len() > EXPRESS_LINE_MAX);
    let mut works = VecDeque::new();
    for line in group {
        if line.bytes.iter().all(u8::is_ascii_whitespace) {
            // Some clients keep a connection alive with empty lines.
            session.spend(1.0);
        } else {
            works.push_back(Work::new(line.bytes, line.room, verdict == Verdict::Refuse));
        }
    }
    if let [work] = works.make_contiguous()
        && verdict == Verdict::Express
        && work.is_light(shared, session)
    {
        while !work.step(shared, session) {}
        return session.ending();
    }
    loop {
        // A batch may have used up what was left in the meantime.
        let is_express = session.verdict(Duration::ZERO) == Verdict::Express && !is_long;
        let lane = if is_express { Lane::Express } else { Lane::Ordinary };
        let (session_, shared_) = (Arc::clone(session), Arc::clone(shared));
        let slice = move || {
            work::step_all(&mut works, &shared_, &session_);
            works
        };
        match shared.workers.run(lane, slice).await {
            Some(rest) if rest.is_empty() || session.ending().is_some() => return session.ending(),
            Some(rest) => works = rest,
            None => return Some(Ending::Defect),
        }
    }
}

/// A line without its end.
struct Line {
    bytes: Vec<u8>,
    room: Option<OwnedSemaphorePermit>,
}

/// Cuts what is read into lines.
struct Lines<R> {
    reader: R,
    buffer: Vec<u8>,
    /// Where the next line begins.
    start: usize,
    /// Up to where there is no end of it.
    searched: usize,
    max: usize,
    input: Arc<Semaphore>,
    room: Option<OwnedSemaphorePermit>,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    fn new(reader: R, max: usize, input: Arc<Semaphore>) -> Self {
        Self { reader, buffer: Vec::new(), start: 0, searched: 0, max, input, room: None }
    }

    /// The next line; `None` at the end. It may be given up on and called again.
    async fn next(&mut self) -> Result<Option<Line>, Ending> {
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.buffer[self.searched..]) {
                let end = self.searched + at;
                if end - self.start > self.max {
                    return Err(Ending::Oversize);
                }
                return Ok(Some(self.cut(end)));
            }
            self.searched = self.buffer.len();
            if self.buffer.len() - self.start > self.max {
                return Err(Ending::Oversize);
            }
            self.make_room().await?;
            match self.reader.read_buf(&mut self.buffer).await {
                Ok(0) | Err(_) => return Ok(None),
                Ok(_) => {}
            }
        }
    }

    /// A line with those after it that have been received, as far as they are short: they are answered in one go.
    fn group(&mut self, first: Line) -> Vec<Line> {
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

async fn write<W: AsyncWrite + Unpin>(
    mut writer: W,
    outbox: &Outbox,
    shared: &Shared,
    stall: Duration,
) {
    while let Some(chunks) = outbox.take().await {
        let mut waiting = Vec::new();
        for chunk in &chunks {
            // Small pieces go together: one packet, one TLS record.
            if waiting.len() + chunk.as_ref().len() <= WRITE {
                waiting.extend_from_slice(chunk.as_ref());
                continue;
            }
            let pieces = [waiting.as_slice(), chunk.as_ref()];
            if !write_pieces(&mut writer, pieces, outbox, shared, stall).await {
                return;
            }
            waiting.clear();
        }
        drop::<Vec<Chunk>>(chunks);
        let pieces = [waiting.as_slice(), &[]];
        if !write_pieces(&mut writer, pieces, outbox, shared, stall).await {
            return;
        }
    }
    // The peer may be gone already.
    let _ = timeout(stall, writer.shutdown()).await;
}

/// Writes `parts`; says whether the client still takes them.
async fn write_pieces<W: AsyncWrite + Unpin>(
    writer: &mut W,
    parts: [&[u8]; 2],
    outbox: &Outbox,
    shared: &Shared,
    stall: Duration,
) -> bool {
    for part in parts {
        for piece in part.chunks(WRITE) {
            let mut written = pin!(async {
                writer.write_all(piece).await?;
                writer.flush().await
            });
            let mut steps = 0;
            let result = loop {
                match timeout(stall / STALL_STEPS, written.as_mut()).await {
                    Ok(result) => break Some(result),
                    Err(_) if steps + 1 >= STALL_STEPS || shared.output.is_short() => break None,
                    Err(_) => steps += 1,
                }
            };
            match result {
                Some(Ok(())) => {}
                Some(Err(_)) => {
                    outbox.close(Ending::Left);
                    return false;
                }
                None => {
                    outbox.close(Ending::SlowReader);
                    return false;
                }
            }
            shared.metrics.sent(piece.len());
            outbox.sent(piece.len());
        }
    }
    true
}
