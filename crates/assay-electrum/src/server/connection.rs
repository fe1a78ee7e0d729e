//! A client from its connection to its end.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, split};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::budget::Verdict;
use super::lines::{Line, Lines, Read};
use super::outbox::Ending;
use super::sending::Sending;
use super::session::Session;
use super::shared::Shared;
use super::socket::Stream;
use super::work::{self, Work};
use super::workers::Lane;

/// A client with more than this waiting for it is not heard until it has read: less where room is short.
const OUTPUT_LOW: usize = 1 << 20;
const OUTPUT_LOW_SHORT: usize = 64 << 10;
/// Longer lines never go first.
const EXPRESS_LINE_MAX: usize = 64 << 10;
/// How long what is queued may take to leave when the connection ends.
const FAREWELL: Duration = Duration::from_secs(5);

/// Serves a client until it leaves or has to; `deadline` is for its first request.
///
/// The client's socket is with the threads of the lane that its behaviour has earned it ([`super::networks`]).
pub(super) async fn serve<S: Stream>(
    mut stream: S,
    session: Arc<Session>,
    shared: Arc<Shared>,
    deadline: Instant,
    stop: watch::Receiver<bool>,
) {
    if stream.socket().part().is_err() {
        return;
    }
    let limits = &shared.config.limits;
    let lines = Lines::new(limits.request_bytes_max, Arc::clone(&shared.input));
    let deadline = Some(deadline);
    let (of_session, of_shared) = (Arc::clone(&session), Arc::clone(&shared));
    let sending = Sending::default();
    let mut client =
        Client { session: of_session, shared: of_shared, deadline, stop, lines, sending };
    let mut lane = Lane::Ordinary;
    loop {
        match shared.networks.of(lane).spawn(client.stay(stream, lane)).await {
            Ok(Some(parted)) => (client, stream) = parted,
            Ok(None) => return,
            Err(_) => {
                // Only a defect of ours, or the end of the process, ends it so.
                session.outbox.close(Ending::Defect);
                session.leave(&shared);
                return shared.metrics.ended(Ending::Defect);
            }
        }
        lane = lane.other();
    }
}

/// A client without its socket.
struct Client {
    session: Arc<Session>,
    shared: Arc<Shared>,
    /// For the first request.
    deadline: Option<Instant>,
    stop: watch::Receiver<bool>,
    lines: Lines,
    sending: Sending,
}

/// Why a client is heard no more where it is.
enum Parting {
    /// It goes to the other threads.
    Lane,
    /// It is over.
    End(Ending),
}

impl Client {
    /// Serves the client among those of `lane`; returns it when it belongs to the others.
    async fn stay<S: Stream>(mut self, mut stream: S, lane: Lane) -> Option<(Self, S)> {
        let joined = stream.socket().join();
        let (mut reader, mut writer) = split(stream);
        let session = Arc::clone(&self.session);
        let is_over = {
            let Self { shared, deadline, stop, lines, sending, .. } = &mut self;
            let mut writing = pin!(sending.run(&mut writer, &session.outbox, shared));
            let mut all_is_written = false;
            let parting = if joined.is_err() {
                Parting::End(Ending::Left)
            } else {
                tokio::select! {
                    parting = hear((&mut reader, lines), lane, &session, shared, deadline) => parting,
                    ending = session.outbox.over() => Parting::End(ending),
                    () = &mut writing => {
                        all_is_written = true;
                        Parting::End(Ending::Left)
                    }
                    // An error means that the server is gone.
                    _ = stop.wait_for(|stop| *stop) => Parting::End(Ending::Stopping),
                }
            };
            if let Parting::End(ending) = parting {
                // Whoever has only said that there are no more questions still gets the answers.
                if end(ending, &session, shared) && !all_is_written {
                    let _ = timeout(FAREWELL, writing).await;
                }
                true
            } else {
                false
            }
        };
        if is_over {
            return None;
        }
        let mut stream = reader.unsplit(writer);
        // A socket that cannot go to others has ended.
        let _ = stream.socket().part();
        Some((self, stream))
    }
}

/// Ends a client; says whether it is still to be sent what waits for it.
fn end(ending: Ending, session: &Session, shared: &Shared) -> bool {
    session.outbox.close(ending);
    let ending = session.outbox.ending().unwrap_or(ending);
    session.leave(shared);
    shared.metrics.ended(ending);
    !matches!(ending, Ending::SlowReader | Ending::OutputFull)
}

/// Reads and answers until the client leaves, has to, or belongs to the other lane.
async fn hear<R: AsyncRead + Unpin>(
    (reader, lines): (&mut R, &mut Lines),
    lane: Lane,
    session: &Arc<Session>,
    shared: &Arc<Shared>,
    deadline: &mut Option<Instant>,
) -> Parting {
    let limits = &shared.config.limits;
    let end = Parting::End;
    loop {
        let is_modest = lane == Lane::Express;
        if is_modest && session.verdict(Duration::ZERO) != Verdict::Express {
            return Parting::Lane;
        }
        let low = if shared.output.is_short() { OUTPUT_LOW_SHORT } else { OUTPUT_LOW };
        session.outbox.below(low).await;
        let now = Instant::now();
        let until = deadline.unwrap_or_else(|| now + limits.idle);
        let may_go = !is_modest && !lines.is_long();
        let wait = if may_go { until.min(now + session.modest_in()) } else { until };
        let line = match timeout_at(wait, lines.next(reader, is_modest)).await {
            Ok(Ok(Read::Line(line))) => line,
            Ok(Ok(Read::Long)) => return Parting::Lane,
            Ok(Ok(Read::End)) => return end(Ending::Left),
            Ok(Err(Ending::Oversize)) => {
                return end(work::oversize(session, limits.request_bytes_max));
            }
            Ok(Err(ending)) => return end(ending),
            Err(_) if wait < until && lines.is_long() => continue,
            Err(_) if wait < until => return Parting::Lane,
            Err(_) if deadline.is_some() => return end(Ending::NoRequest),
            Err(_) => return end(Ending::Idle),
        };
        *deadline = None;
        let group = lines.group(line);
        for line in &group {
            shared.metrics.received(line.bytes.len() + 1);
        }
        if let Some(ending) = handle(group, session, shared).await {
            return end(ending);
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
