//! Hostile clients. They run on their own thread, so that they do not delay the clock of the honest clients.

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use assay_report::stats::random::SplitMix64;
use mio::{Events, Interest, Poll, Token};
use rustls::ClientConfig;

use super::LoadOptions;
use super::dataset::Dataset;
use super::link::Link;
use super::protocol::Ask;
use super::results::HostileReport;
use super::source;

/// Time between two actions of a client.
const TICK: Duration = Duration::from_millis(10);
/// Delay before a disconnected client reconnects.
const RETRY: Duration = Duration::from_millis(100);
/// Maximum number of unsent bytes per client; bounds the generator's memory.
const UNSENT_MAX: usize = 64 * 1024;
/// Piece of the endless line.
const OVERSIZED_PIECE: usize = 16 * 1024;
/// Bytes of garbage per action.
const GARBAGE_PIECE: usize = 512;
/// Requests per action of clients that never read: each has a long response.
const DEAF_ASKS: u64 = 5;
/// Requests per action of flooding clients: 2,000 a second.
const FLOOD_ASKS: u64 = 20;
/// Brackets per line.
const NESTING: usize = 50_000;
/// Requests per batch.
const BATCH: u64 = 5_000;
/// Outpoints per batch, and batches of a connection: 5,000 subscriptions.
const OUTPOINTS: u64 = 250;
const OUTPOINT_BATCHES: u64 = 20;
/// Requests per action of clients that use up their budget, and the number of such ticks.
const BURN_ASKS: u64 = 5;
const BURN_TICKS: u64 = 30;
/// Ticks between two large lines.
const BIG_EVERY: u64 = 10;
/// Ticks between two bytes of slow senders.
const DRIP_EVERY: u64 = 100;

/// Attack of a hostile client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attack {
    /// Endless lines.
    Oversized,
    /// Random bytes.
    Garbage,
    /// Sends requests and never reads.
    Deaf,
    /// Two thousand requests a second.
    Flood,
    /// Half a line, byte by byte.
    HalfOpen,
    /// Connects, sends one request and disconnects.
    Churn,
    /// Lines full of brackets.
    Nesting,
    /// Oversized batches.
    Batch,
    /// Subscribes to thousands of nonexistent outputs, and disconnects. Every second client names one script for all of them.
    Outpoints,
    /// Sends many requests, disconnects before its budget is used up, and reconnects for a new one.
    Reconnect,
}

impl Attack {
    pub const ALL: [Self; 10] = [
        Self::Oversized,
        Self::Garbage,
        Self::Deaf,
        Self::Flood,
        Self::HalfOpen,
        Self::Churn,
        Self::Nesting,
        Self::Batch,
        Self::Outpoints,
        Self::Reconnect,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Oversized => "lines without an end",
            Self::Garbage => "random bytes",
            Self::Deaf => "asks, never reads",
            Self::Flood => "floods",
            Self::HalfOpen => "half a line, byte by byte",
            Self::Churn => "comes and goes",
            Self::Nesting => "deep nesting",
            Self::Batch => "long batches",
            Self::Outpoints => "outpoints, then leaves",
            Self::Reconnect => "asks much, reconnects",
        }
    }
}

#[derive(Debug)]
struct Hostile {
    kind: Attack,
    link: Option<Link>,
    is_open: bool,
    retry_at: Instant,
    asked: u64,
    /// Lines received over this connection.
    lines: u64,
}

/// Hostile clients to start, and the server that they attack.
#[derive(Debug)]
pub(crate) struct HostileOptions<'a> {
    pub(crate) load: &'a LoadOptions,
    pub(crate) count: usize,
    pub(crate) address: SocketAddr,
    /// True if clients have addresses of their own.
    pub(crate) has_sources: bool,
    pub(crate) tls: Option<Arc<ClientConfig>>,
    pub(crate) dataset: &'a Dataset,
}

/// All hostile clients of a pass.
#[derive(Debug)]
pub(crate) struct Hostiles<'a> {
    address: SocketAddr,
    /// True if clients have addresses of their own.
    has_sources: bool,
    tls: Option<Arc<ClientConfig>>,
    dataset: &'a Dataset,
    clients: Vec<Hostile>,
    reports: Vec<HostileReport>,
    rng: SplitMix64,
    poll: Poll,
    ticks: u64,
}

impl<'a> Hostiles<'a> {
    pub(crate) fn new(options: HostileOptions<'a>) -> io::Result<Self> {
        let HostileOptions { load, count, address, has_sources, tls, dataset } = options;
        let now = Instant::now();
        let attacks = match load.attacks.as_slice() {
            [] => Attack::ALL.as_slice(),
            some => some,
        };
        let client = |index: usize| Hostile {
            kind: attacks[index % attacks.len()],
            link: None,
            is_open: false,
            // They connect one after the other, over a second.
            retry_at: now + Duration::from_secs(1) * index as u32 / count.max(1) as u32,
            asked: 0,
            lines: 0,
        };
        let clients: Vec<Hostile> = (0..count).map(client).collect();
        let report = |kind: Attack| HostileReport {
            kind: kind.name().to_owned(),
            clients: clients.iter().filter(|client| client.kind == kind).count(),
            ..HostileReport::default()
        };
        Ok(Self {
            address,
            has_sources,
            tls,
            dataset,
            reports: Attack::ALL.into_iter().map(report).collect(),
            clients,
            rng: SplitMix64::new(load.seed ^ 0x686f_7374),
            poll: Poll::new()?,
            ticks: 0,
        })
    }

    /// Runs the attacks until stopped.
    pub(crate) fn run(mut self, stop: &AtomicBool) -> io::Result<Vec<HostileReport>> {
        let mut events = Events::with_capacity(1024);
        let mut next = Instant::now();
        while !stop.load(Ordering::Relaxed) {
            next += TICK;
            self.tick();
            loop {
                let left = next.saturating_duration_since(Instant::now());
                match self.poll.poll(&mut events, Some(left)) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    other => other?,
                }
                for event in &events {
                    self.on_event(event.token().0, event.is_readable());
                }
                if Instant::now() >= next || stop.load(Ordering::Relaxed) {
                    break;
                }
            }
            // Missed ticks are skipped.
            next = next.max(Instant::now().checked_sub(TICK).unwrap_or(next));
        }
        // Byte counts of open connections are not in the reports yet.
        for index in 0..self.clients.len() {
            self.leave(index);
        }
        Ok(self.reports.into_iter().filter(|report| report.clients > 0).collect())
    }

    fn tick(&mut self) {
        self.ticks += 1;
        for index in 0..self.clients.len() {
            let client = &self.clients[index];
            if client.link.is_none() {
                if client.retry_at <= Instant::now() {
                    self.connect(index);
                }
            } else if client.is_open {
                self.act(index);
                let outcome = self.clients[index].link.as_mut().map_or(Ok(()), Link::flush);
                if outcome.is_err() {
                    self.thrown_out(index);
                }
            }
        }
    }

    fn report(&mut self, index: usize) -> &mut HostileReport {
        let kind = self.clients[index].kind;
        &mut self.reports[kind as usize]
    }

    fn connect(&mut self, index: usize) {
        let interest = match self.clients[index].kind {
            // These clients never read.
            Attack::Deaf => Interest::WRITABLE,
            _ => Interest::READABLE | Interest::WRITABLE,
        };
        let source = self.has_sources.then(|| source::hostile(index));
        let linked = Link::connect(self.address, source, self.tls.as_ref());
        let connected = linked.and_then(|mut link| {
            self.poll.registry().register(&mut link.tcp, Token(index), interest)?;
            Ok(link)
        });
        let client = &mut self.clients[index];
        client.is_open = false;
        (client.asked, client.lines) = (0, 0);
        if let Ok(link) = connected {
            client.link = Some(link);
        } else {
            client.retry_at = Instant::now() + RETRY;
            self.report(index).refused += 1;
        }
    }

    fn thrown_out(&mut self, index: usize) {
        if self.clients[index].is_open {
            self.report(index).thrown_out += 1;
        } else {
            self.report(index).refused += 1;
        }
        self.leave(index);
    }

    fn leave(&mut self, index: usize) {
        let client = &mut self.clients[index];
        client.retry_at = Instant::now() + RETRY;
        client.is_open = false;
        if let Some(link) = client.link.take() {
            let report = self.report(index);
            report.bytes_in += link.bytes_in;
            report.bytes_out += link.bytes_out;
        }
    }

    fn on_event(&mut self, index: usize, is_readable: bool) {
        let client = &mut self.clients[index];
        let Some(link) = &mut client.link else { return };
        let outcome = (|| -> io::Result<(bool, u64, u64)> {
            let mut is_first = false;
            if !client.is_open {
                if !link.is_open()? {
                    return Ok((false, 0, 0));
                }
                client.is_open = true;
                is_first = true;
            }
            let (mut lines, mut errors) = (0, 0);
            if is_readable && client.kind != Attack::Deaf {
                let is_open = link.fill()?;
                while let Some(place) = link.next_line() {
                    lines += 1;
                    let line = link.line(place);
                    errors += u64::from(memchr::memmem::find(line, b"\"error\":{").is_some());
                }
                if !is_open {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
            link.flush()?;
            client.lines += lines;
            Ok((is_first, lines, errors))
        })();
        match outcome {
            Ok((is_first, lines, errors)) => {
                let report = self.report(index);
                report.connections += u64::from(is_first);
                report.lines += lines;
                report.errors += errors;
            }
            Err(_) => self.thrown_out(index),
        }
    }

    /// One action of one client.
    fn act(&mut self, index: usize) {
        let (ticks, dataset) = (self.ticks + index as u64, self.dataset);
        let client = &mut self.clients[index];
        let Some(link) = &mut client.link else { return };
        if link.unsent() > UNSENT_MAX {
            return;
        }
        let asked = client.asked;
        client.asked += 1;
        match client.kind {
            Attack::Outpoints if asked < OUTPOINT_BATCHES => {
                // Unique by time and client, so that no two subscribe to the same outpoint.
                let first = (self.rng.next() & !0xffff) | (asked * OUTPOINTS);
                let hint = index.is_multiple_of(2);
                link.compose(|out| write_outpoints(asked == 0, first, hint, out));
            }
            // The first line is the response to the version request.
            Attack::Outpoints if client.lines > OUTPOINT_BATCHES => self.leave(index),
            Attack::Reconnect if asked < BURN_TICKS => {
                ask_for_much(link, dataset, asked * BURN_ASKS..(asked + 1) * BURN_ASKS);
            }
            Attack::Reconnect => {
                self.leave(index);
                self.clients[index].retry_at = Instant::now();
            }
            Attack::Oversized => link.send(&[b'a'; OVERSIZED_PIECE]),
            Attack::Garbage => {
                let mut bytes = [0; GARBAGE_PIECE];
                for word in bytes.chunks_exact_mut(8) {
                    word.copy_from_slice(&self.rng.next().to_le_bytes());
                }
                bytes[GARBAGE_PIECE - 1] = b'\n';
                link.send(&bytes);
            }
            Attack::Deaf => {
                ask_for_much(link, dataset, asked * DEAF_ASKS..(asked + 1) * DEAF_ASKS);
            }
            Attack::Flood => {
                for id in 0..FLOOD_ASKS {
                    send_ask(link, dataset, asked * FLOOD_ASKS + id, Ask::Ping);
                }
            }
            Attack::HalfOpen if asked == 0 => {
                link.send(br#"{"jsonrpc":"2.0","id":1,"method":"server."#);
            }
            Attack::HalfOpen if ticks.is_multiple_of(DRIP_EVERY) => link.send(b"p"),
            Attack::Churn if asked == 0 => send_ask(link, dataset, 0, Ask::Version),
            Attack::Churn => self.leave(index),
            Attack::Nesting if ticks.is_multiple_of(BIG_EVERY) => {
                link.compose(|out| {
                    out.resize(out.len() + NESTING, b'[');
                    out.push(b'\n');
                });
            }
            Attack::Batch if ticks.is_multiple_of(BIG_EVERY) => {
                link.compose(|out| write_pings(dataset, out));
            }
            Attack::HalfOpen | Attack::Nesting | Attack::Batch | Attack::Outpoints => {}
        }
    }
}

/// Writes a batch of subscriptions to outputs of nonexistent transactions; the first is preceded by a request for protocol 1.7.
fn write_outpoints(is_first: bool, first: u64, has_hint: bool, out: &mut Vec<u8>) {
    // Writing to memory does not fail.
    if is_first {
        let _ = writeln!(
            out,
            r#"{{"jsonrpc":"2.0","id":0,"method":"server.version","params":["assay-load",["1.4","1.7"]]}}"#
        );
    }
    let hint = if has_hint { r#","6d616c6c6f7279""# } else { "" };
    for id in 0..OUTPOINTS {
        out.push(if id == 0 { b'[' } else { b',' });
        let txid = first.wrapping_add(id);
        let _ = write!(
            out,
            r#"{{"jsonrpc":"2.0","id":{id},"method":"blockchain.outpoint.subscribe","params":["{txid:064x}",0{hint}]}}"#
        );
    }
    out.extend_from_slice(b"]\n");
}

/// Sends requests with long responses.
fn ask_for_much(link: &mut Link, dataset: &Dataset, ids: Range<u64>) {
    for id in ids {
        let ask = match dataset.heavy.as_slice() {
            [] => Ask::Headers { start: 0, count: 2016 },
            heavy => Ask::History(heavy[id as usize % heavy.len()]),
        };
        send_ask(link, dataset, id, ask);
    }
}

/// Writes an oversized batch.
fn write_pings(dataset: &Dataset, out: &mut Vec<u8>) {
    for id in 0..BATCH {
        out.push(if id == 0 { b'[' } else { b',' });
        Ask::Ping.write(id, dataset, out);
    }
    out.extend_from_slice(b"]\n");
}

fn send_ask(link: &mut Link, dataset: &Dataset, id: u64, ask: Ask) {
    link.compose(|out| {
        ask.write(id, dataset, out);
        out.push(b'\n');
    });
}
