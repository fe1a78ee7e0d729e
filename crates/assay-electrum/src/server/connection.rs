//! Life cycle of a client connection: accepts it, reads its lines and dispatches them until it ends.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, split};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_rustls::TlsAcceptor;

use super::client_budget::{Admission, ConnectionSlot};
use super::line_reader::{Line, LineReader, Read};
use super::request_task::{self, RequestTask};
use super::send_queue::Writer;
use super::session::Session;
use super::socket::{Socket, Stream};
use super::workers::Priority;
use super::{DisconnectReason, Shared};

/// Pause after a failed accept, probably for lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Accepts clients until `stop`, then waits until all clients are disconnected.
pub(super) async fn accept(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    shared: Arc<Shared>,
    mut stop: watch::Receiver<bool>,
) {
    let mut tasks = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.wait_for(|stop| *stop) => break,
        };
        // Otherwise the set would keep every past connection.
        while tasks.try_join_next().is_some() {}
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!("Cannot accept an Electrum connection: {error}");
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        match shared.accounts.connect(peer.ip()) {
            Ok(slot) => {
                shared.metrics.accepted.add(1);
                let (shared, tls, stop) = (Arc::clone(&shared), tls.clone(), stop.clone());
                tasks.spawn(welcome((stream, peer), Arc::new(slot), shared, tls, stop));
            }
            Err(error) => {
                shared.metrics.turned_away.add(1);
                tracing::debug!("Turned {peer} away: {error}");
            }
        }
    }
    while tasks.join_next().await.is_some() {}
}

/// Performs the TLS handshake, if any, and serves the client.
async fn welcome(
    (stream, peer): (TcpStream, SocketAddr),
    slot: Arc<ConnectionSlot>,
    shared: Arc<Shared>,
    tls: Option<TlsAcceptor>,
    stop: watch::Receiver<bool>,
) {
    let deadline = Instant::now() + shared.config.limits.first_request;
    // Responses are small and clients wait for each: Nagle's algorithm would only add latency.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!("Cannot set TCP_NODELAY for {peer}: {error}");
    }
    let stream = Socket::new(stream);
    let session = Arc::new(Session::new(&shared, peer, Arc::clone(&slot)));
    let Some(tls) = tls else {
        serve(stream, session, shared, deadline, stop).await;
        drop(slot);
        return;
    };
    let handshake = async {
        let _turn = slot.account().handshakes.acquire().await;
        tls.accept(stream).await
    };
    match timeout_at(deadline, handshake).await {
        Ok(Ok(stream)) => serve(stream, session, shared, deadline, stop).await,
        Ok(Err(error)) => {
            tracing::debug!("No TLS with {peer}: {error}");
            shared.metrics.ended(DisconnectReason::Handshake);
        }
        Err(_) => shared.metrics.ended(DisconnectReason::NoRequest),
    }
    drop(slot);
}

/// Reading pauses while more than this is queued for the client. The limit is lower while send memory is half used.
const OUTPUT_LOW: usize = 1 << 20;
const OUTPUT_LOW_HALF_USED: usize = 64 << 10;
/// Longer lines never get priority.
const HIGH_PRIORITY_LINE_MAX: usize = 64 << 10;
/// Time budget for one client's lines on a socket thread.
const HERE_MAX: Duration = Duration::from_micros(200);
/// Timeout for sending queued output when the connection ends.
const DRAIN_TIME: Duration = Duration::from_secs(5);

/// Serves a client until the connection ends; `deadline` applies to its first request.
///
/// The socket is registered with the runtime for the client's priority ([`super::runtimes`]).
async fn serve<S: Stream>(
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
    let lines = LineReader::new(limits.request_bytes_max, Arc::clone(&shared.long_lines));
    let deadline = Some(deadline);
    let (of_session, of_shared) = (Arc::clone(&session), Arc::clone(&shared));
    let writer = Writer::new(limits.write_stall);
    let mut client =
        Client { session: of_session, shared: of_shared, deadline, stop, lines, writer };
    let mut priority = Priority::Normal;
    loop {
        match shared.runtimes.of(priority).spawn(client.run(stream, priority)).await {
            Ok(Some(moved)) => (client, stream) = moved,
            Ok(None) => return,
            Err(_) => {
                // The task panicked or was cancelled: a bug, or process shutdown.
                session.send_queue.close(DisconnectReason::Defect);
                session.end(&shared);
                return shared.metrics.ended(DisconnectReason::Defect);
            }
        }
        priority = priority.other();
    }
}

/// A client without its socket.
struct Client {
    session: Arc<Session>,
    shared: Arc<Shared>,
    /// Of the first request.
    deadline: Option<Instant>,
    stop: watch::Receiver<bool>,
    lines: LineReader,
    writer: Writer,
}

/// Reason for a runtime to stop serving a client.
enum Exit {
    /// The client moves to the other runtime.
    Move,
    Disconnect(DisconnectReason),
}

impl Client {
    /// Serves the client with `priority`; returns it to be moved to the other runtime.
    async fn run<S: Stream>(mut self, mut stream: S, priority: Priority) -> Option<(Self, S)> {
        let joined = stream.socket().join();
        let (mut reader, mut sink) = split(stream);
        let session = Arc::clone(&self.session);
        let is_over = {
            let Self { shared, deadline, stop, lines, writer, .. } = &mut self;
            let count_sent = |bytes: usize| shared.metrics.sent.add(bytes as u64);
            let mut writing = pin!(writer.run(&mut sink, &session.send_queue, count_sent));
            let mut all_is_written = false;
            let exit = if joined.is_err() {
                Exit::Disconnect(DisconnectReason::Left)
            } else {
                tokio::select! {
                    // Finished responses are written before the task sleeps.
                    biased;
                    exit = read((&mut reader, lines), priority, &session, shared, deadline) => exit,
                    reason = session.send_queue.wait_closed() => Exit::Disconnect(reason),
                    () = &mut writing => {
                        all_is_written = true;
                        Exit::Disconnect(DisconnectReason::Left)
                    }
                    // An error means that the server is gone.
                    _ = stop.wait_for(|stop| *stop) => Exit::Disconnect(DisconnectReason::Stopping),
                }
            };
            if let Exit::Disconnect(reason) = exit {
                // A client that only closed its sending side still gets its responses.
                if end(reason, &session, shared) && !all_is_written {
                    let _ = timeout(DRAIN_TIME, writing).await;
                }
                true
            } else {
                false
            }
        };
        if is_over {
            return None;
        }
        let mut stream = reader.unsplit(sink);
        // If this fails, the socket is closed there.
        let _ = stream.socket().part();
        Some((self, stream))
    }
}

/// Ends a connection; returns true if queued output must still be sent.
fn end(reason: DisconnectReason, session: &Session, shared: &Shared) -> bool {
    session.send_queue.close(reason);
    let reason = session.send_queue.closed().unwrap_or(reason);
    session.end(shared);
    shared.metrics.ended(reason);
    !matches!(reason, DisconnectReason::SlowReader | DisconnectReason::OutputFull)
}

/// Reads and processes lines until the connection ends or moves.
async fn read<R: AsyncRead + Unpin>(
    (reader, lines): (&mut R, &mut LineReader),
    priority: Priority,
    session: &Arc<Session>,
    shared: &Arc<Shared>,
    deadline: &mut Option<Instant>,
) -> Exit {
    let limits = &shared.config.limits;
    let end = Exit::Disconnect;
    loop {
        let is_light = priority == Priority::High;
        if is_light && session.account().admit(Duration::ZERO) != Admission::Now(Priority::High) {
            return Exit::Move;
        }
        let low = if shared.send_memory.is_half_used() { OUTPUT_LOW_HALF_USED } else { OUTPUT_LOW };
        session.send_queue.wait_below(low).await;
        let now = Instant::now();
        let until = deadline.unwrap_or_else(|| now + limits.idle);
        let may_move = !is_light && !lines.is_long();
        let wait = if may_move { until.min(now + session.account().light_in()) } else { until };
        let line = match timeout_at(wait, lines.next(reader, is_light)).await {
            Ok(Ok(Read::Line(line))) => line,
            Ok(Ok(Read::Long)) => return Exit::Move,
            Ok(Ok(Read::End)) => return end(DisconnectReason::Left),
            Ok(Err(DisconnectReason::Oversize)) => {
                return end(request_task::oversize(session, limits.request_bytes_max));
            }
            Ok(Err(reason)) => return end(reason),
            Err(_) if wait < until && lines.is_long() => continue,
            Err(_) if wait < until => return Exit::Move,
            Err(_) if deadline.is_some() => return end(DisconnectReason::NoRequest),
            Err(_) => return end(DisconnectReason::Idle),
        };
        *deadline = None;
        let group = lines.group(line);
        for line in &group {
            shared.metrics.received.add(line.bytes.len() as u64 + 1);
        }
        if let Some(reason) = answer(group, session, shared).await {
            return end(reason);
        }
    }
}

/// Processes lines. Lines that arrive meanwhile stay in the socket buffer.
async fn answer(
    group: Vec<Line>,
    session: &Arc<Session>,
    shared: &Arc<Shared>,
) -> Option<DisconnectReason> {
    let admission = match session.account().admit(shared.config.limits.throttle_max) {
        Admission::Delay(time) => {
            shared.metrics.throttled.add(1);
            sleep(time).await;
            Admission::Now(Priority::Normal)
        }
        admission => admission,
    };
    let is_long = group.iter().any(|line| line.bytes.len() > HIGH_PRIORITY_LINE_MAX);
    let mut tasks = VecDeque::new();
    for line in group {
        if line.bytes.iter().all(u8::is_ascii_whitespace) {
            // Some clients use empty lines as keep-alive.
            session.account().spend(1.0);
        } else {
            tasks.push_back(RequestTask::new(
                line.bytes,
                line.memory,
                admission == Admission::Reject,
            ));
        }
    }
    if admission == Admission::Now(Priority::High) && answer_here(&mut tasks, shared, session) {
        return session.disconnect();
    }
    loop {
        // A batch may have consumed the remaining budget meanwhile.
        let is_high =
            session.account().admit(Duration::ZERO) == Admission::Now(Priority::High) && !is_long;
        let priority = if is_high { Priority::High } else { Priority::Normal };
        let (session_, shared_) = (Arc::clone(session), Arc::clone(shared));
        let slice = move || {
            request_task::run_slice(&mut tasks, &shared_, &session_);
            tasks
        };
        match shared.workers.run(priority, slice).await {
            Some(rest) if rest.is_empty() || session.disconnect().is_some() => {
                return session.disconnect();
            }
            Some(rest) => tasks = rest,
            None => return Some(DisconnectReason::Defect),
        }
    }
}

/// Processes lines on this thread while they are short and do not block; returns true if none is left or the connection must end.
fn answer_here(tasks: &mut VecDeque<RequestTask>, shared: &Shared, session: &Session) -> bool {
    let start = std::time::Instant::now();
    while let Some(task) = tasks.front_mut() {
        if start.elapsed() >= HERE_MAX || !task.try_here(shared, session) {
            return false;
        }
        tasks.pop_front();
        if session.disconnect().is_some() {
            return true;
        }
    }
    true
}
