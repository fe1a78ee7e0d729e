//! Effect of disconnecting clients with many subscriptions on other clients.
//!
//! Honest clients send a thousand requests a second, one at a time, and some reconnect for every request, while three others
//! subscribe to outputs of one script and then disconnect. The longest latency of the honest clients shows if the server was
//! blocked.

use std::fmt::Write as _;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::recorder::{enter, histogram, latency};
use super::results::Latency;
use super::source::{self, Source};
use super::{LoadError, run_first};

/// Subscriptions per batch.
const BATCH: usize = 500;
/// Clients that disconnect together; a server that removes subscriptions on its socket threads has no more such threads.
const LEAVERS: usize = 3;
/// Time between two requests of an honest client.
const PERIOD: Duration = Duration::from_millis(1);
/// Measured time before and after the disconnects.
const WATCH: Duration = Duration::from_secs(2);
/// Time limit for a response, and for the server to read a batch.
const ANSWER_MAX: Duration = Duration::from_mins(5);
/// Time between two connections of reconnecting clients.
const PERIOD_ANEW: Duration = Duration::from_millis(5);
/// Honest clients with a persistent connection, and those that reconnect for every request: a server may serve them differently.
const HONEST: usize = 4;
const HONEST_ANEW: usize = 2;

#[derive(Debug, Clone)]
pub struct LeavingOptions {
    /// `host:port` of the server.
    pub address: String,
    /// Subscriptions of each disconnecting client.
    pub subscriptions: usize,
    pub rounds: usize,
}

/// Latencies of honest clients over all rounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LeavingReport {
    /// Subscriptions of each disconnecting client.
    pub subscriptions: usize,
    pub rounds: usize,
    /// Subscriptions that the server accepted in the first round.
    pub accepted: u64,
    /// Latencies without load.
    pub quiet: Option<Latency>,
    /// Latencies during subscription.
    pub subscribing: Option<Latency>,
    /// Latencies in the two seconds after the disconnect.
    pub leaving: Option<Latency>,
    /// Maximum of each round without load, milliseconds.
    pub quiet_max_ms: Vec<f64>,
    /// Maximum of each round after the disconnect, milliseconds.
    pub leaving_max_ms: Vec<f64>,
}

impl LeavingReport {
    /// Text for a terminal.
    pub fn text(&self) -> String {
        let mut text = format!(
            "{LEAVERS} clients with {} outpoint subscriptions each of one script ({} accepted) left {} times; {HONEST} honest clients asked once a \
             millisecond each, {HONEST_ANEW} connected anew every 5 ms\n",
            self.subscriptions, self.accepted, self.rounds
        );
        for (name, latency) in [
            ("quiet", self.quiet),
            ("while they subscribed", self.subscribing),
            ("after they left", self.leaving),
        ] {
            // Writing to a string does not fail.
            let _ = match latency {
                Some(l) => writeln!(
                    text,
                    "{name:<21} {:>7} answers, ms: p50 {:.3}, p99 {:.3}, p99.9 {:.3}, longest {:.3}",
                    l.count, l.p50_ms, l.p99_ms, l.p999_ms, l.max_ms
                ),
                None => writeln!(text, "{name:<21} no answers"),
            };
        }
        let list = |values: &[f64]| {
            values.iter().map(|value| format!("{value:.1}")).collect::<Vec<_>>().join(" ")
        };
        let _ = writeln!(
            text,
            "longest of each round, ms: quiet {}; after they left {}",
            list(&self.quiet_max_ms),
            list(&self.leaving_max_ms)
        );
        text
    }
}

/// Phases of a round; [`SUBSCRIBING`] and so on.
const QUIET: u8 = 0;
const SUBSCRIBING: u8 = 1;
const LEAVING: u8 = 2;

/// Latencies of one honest client by phase, and the maximum of each round.
type Record = [Histogram<u64>; 3];

/// Runs the measurement.
///
/// # Errors
/// When the server cannot be reached, or closes an honest client's connection.
pub fn run(options: &LeavingOptions, stop: &AtomicBool) -> Result<LeavingReport, LoadError> {
    let address = super::resolve(&options.address)?;
    let mut all: Record = std::array::from_fn(|_| histogram());
    let mut report = LeavingReport {
        subscriptions: options.subscriptions,
        rounds: options.rounds,
        accepted: 0,
        quiet: None,
        subscribing: None,
        leaving: None,
        quiet_max_ms: Vec::new(),
        leaving_max_ms: Vec::new(),
    };
    for round in 0..options.rounds {
        if stop.load(Ordering::Relaxed) {
            return Err(LoadError::Stopped);
        }
        let (record, accepted) = one_round(address, options.subscriptions, round)
            .map_err(|source| LoadError::System { source })?;
        if round == 0 {
            report.accepted = accepted;
        }
        report.quiet_max_ms.push(record[usize::from(QUIET)].max() as f64 / 1e6);
        report.leaving_max_ms.push(record[usize::from(LEAVING)].max() as f64 / 1e6);
        for (sum, more) in all.iter_mut().zip(record) {
            sum.add(more).map_err(|error| LoadError::System { source: io::Error::other(error) })?;
        }
    }
    [report.quiet, report.subscribing, report.leaving] = all.each_ref().map(latency);
    Ok(report)
}

/// The clients connect, subscribe and disconnect.
fn one_round(address: SocketAddr, subscriptions: usize, round: usize) -> io::Result<(Record, u64)> {
    let (phase, is_over) = (AtomicU8::new(QUIET), AtomicBool::new(false));
    thread::scope(|scope| {
        let honest: Vec<_> = (0..HONEST + HONEST_ANEW)
            .map(|number| {
                let (phase, is_over) = (&phase, &is_over);
                scope.spawn(move || {
                    // Low load, but it must run as soon as a response arrives.
                    run_first();
                    ask_regularly(address, number, phase, is_over)
                })
            })
            .collect();
        thread::sleep(WATCH);
        phase.store(SUBSCRIBING, Ordering::Relaxed);
        let left = subscribe_and_leave(address, subscriptions, round, &phase);
        if left.is_ok() {
            thread::sleep(WATCH);
        }
        is_over.store(true, Ordering::Relaxed);
        let mut all: Record = std::array::from_fn(|_| histogram());
        for thread in honest {
            let record = thread.join().map_err(|_| io::Error::other("a client panicked"))??;
            for (sum, more) in all.iter_mut().zip(record) {
                sum.add(more).map_err(io::Error::other)?;
            }
        }
        Ok((all, left?))
    })
}

/// A connection that waits for each response.
struct Line {
    stream: BufReader<TcpStream>,
    answer: Vec<u8>,
}

impl Line {
    fn connect(address: SocketAddr, source: std::net::Ipv4Addr) -> io::Result<Self> {
        let source: Source = source::is_possible(address).then_some(source);
        let stream = source::dial_and_wait(address, source)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(ANSWER_MAX))?;
        let mut line = Self { stream: BufReader::new(stream), answer: Vec::new() };
        line.ask(
            br#"{"jsonrpc":"2.0","id":0,"method":"server.version","params":["assay-load",["1.4","1.7"]]}"#,
        )?;
        Ok(line)
    }

    fn ask(&mut self, question: &[u8]) -> io::Result<&[u8]> {
        let mut line = question.to_vec();
        line.push(b'\n');
        self.stream.get_mut().write_all(&line)?;
        self.answer.clear();
        if self.stream.read_until(b'\n', &mut self.answer)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(&self.answer)
    }
}

/// Sends one request per period, alternating between a cheap one and one that reads subscriptions.
fn ask_regularly(
    address: SocketAddr,
    number: usize,
    phase: &AtomicU8,
    is_over: &AtomicBool,
) -> io::Result<Record> {
    let is_anew = number >= HONEST;
    let period = if is_anew { PERIOD_ANEW } else { PERIOD };
    let mut line = Line::connect(address, source::honest(number))?;
    let subscribe = format!(
        r#"{{"jsonrpc":"2.0","id":2,"method":"blockchain.scriptpubkey.subscribe","params":["51{number:04x}"]}}"#
    );
    let questions: [&[u8]; 2] =
        [br#"{"jsonrpc":"2.0","id":1,"method":"server.banner","params":[]}"#, subscribe.as_bytes()];
    let mut record: Record = std::array::from_fn(|_| histogram());
    let mut due = Instant::now();
    for (count, question) in questions.iter().cycle().enumerate() {
        due = (due + period).max(Instant::now());
        thread::sleep(due.saturating_duration_since(Instant::now()));
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        // A request sent before the disconnect may be answered after it.
        let asked = Instant::now();
        if is_anew {
            // A new source address each time: a server may limit connections per address.
            let source = source::honest(number + count * HONEST_ANEW);
            line = Line::connect(address, source)?;
        }
        line.ask(question)?;
        let phase = phase.load(Ordering::Relaxed);
        enter(&mut record[usize::from(phase)], asked.elapsed().as_nanos() as u64);
    }
    Ok(record)
}

/// Several clients subscribe to distinct outputs and disconnect together. Returns the number of subscriptions.
fn subscribe_and_leave(
    address: SocketAddr,
    subscriptions: usize,
    round: usize,
    phase: &AtomicU8,
) -> io::Result<u64> {
    let mut accepted = 0;
    let mut lines = Vec::new();
    for leaver in 0..LEAVERS {
        let mut line = Line::connect(address, source::hostile(leaver * 16))?;
        for first in (0..subscriptions).step_by(BATCH) {
            let numbers = first..subscriptions.min(first + BATCH);
            let answer = line.ask(batch((round * LEAVERS + leaver) as u64, numbers).as_bytes())?;
            accepted += memchr::memmem::find_iter(answer, b"\"result\":{").count() as u64;
        }
        lines.push(line);
    }
    phase.store(LEAVING, Ordering::Relaxed);
    drop(lines);
    Ok(accepted)
}

/// Subscriptions to outputs of one script; `client` makes them distinct from those of others.
fn batch(client: u64, numbers: Range<usize>) -> String {
    let mut batch = String::new();
    for number in numbers {
        // Writing to a string does not fail.
        let _ = write!(
            batch,
            r#"{}{{"jsonrpc":"2.0","id":{number},"method":"blockchain.outpoint.subscribe","params":["{:064x}",0,"6d616c6c6f7279"]}}"#,
            if batch.is_empty() { '[' } else { ',' },
            (client + 1) << 32 | number as u64,
        );
    }
    batch.push(']');
    batch
}
