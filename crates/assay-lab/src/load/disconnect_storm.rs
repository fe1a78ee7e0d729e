//! Effect of disconnecting clients with many subscriptions on other clients.
//!
//! Honest clients send a thousand requests a second, one at a time, and some reconnect for every request, while three others
//! subscribe to outputs of one script and then disconnect. The longest latency of the honest clients shows if the server was
//! blocked.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use assay_report::record::{Outcome, Record, Unit, count};
use hdrhistogram::Histogram;

use super::recorder::{histogram, latency};
use super::{SYSTEM, run_first};
use crate::electrum::{Client, Reply};
use crate::machine::{Software, new_record};
use crate::progress::Interrupted;
use crate::swarm::source;

/// Subscriptions in flight.
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
    pub rounds: u32,
    pub software: Software,
    /// Command line that repeats the run.
    pub rerun: String,
}

const PHASES: [&str; 3] = ["quiet", "while they subscribe", "after they left"];
const QUIET: usize = 0;
const SUBSCRIBING: usize = 1;
const LEAVING: usize = 2;

/// Latencies of honest clients by phase.
type Latencies = [Histogram<u64>; PHASES.len()];

/// Runs the measurement.
///
/// # Errors
/// When the server cannot be reached, or closes an honest client's connection.
pub fn run(options: &LeavingOptions, stop: &AtomicBool) -> anyhow::Result<Record> {
    let address = super::resolve(&options.address)?;
    let mut record = new_record("leaving", &options.software, &options.rerun, Path::new("."));
    let leaving = format!(
        "{LEAVERS} with {} outpoint subscriptions of one script each",
        options.subscriptions
    );
    record.set("server", &options.address);
    record.set("clients that leave", leaving);
    record.set("honest clients", format!("{HONEST} with a request per millisecond"));
    record.set("honest clients that reconnect", format!("{HONEST_ANEW}, each 5 ms"));
    let server = options.address.as_str();
    let mut all: Latencies = std::array::from_fn(|_| histogram());
    for round in 0..options.rounds {
        if stop.load(Ordering::Relaxed) {
            return Err(Interrupted.into());
        }
        let (latencies, accepted) =
            one_round(address, options.subscriptions, round).context(SYSTEM)?;
        for (phase, latencies) in PHASES.iter().zip(&latencies) {
            let longest = Some(latencies.max() as f64 / 1e9);
            record.add((server, phase, Some(round)), &[("longest", Unit::Seconds, longest)]);
        }
        let accepted = count("accepted subscriptions", accepted);
        record.add((server, PHASES[SUBSCRIBING], Some(round)), &[accepted]);
        add(&mut all, &latencies).context(SYSTEM)?;
    }
    for (phase, latencies) in PHASES.iter().zip(&all) {
        record.add((server, phase, None), &latency(latencies));
    }
    let [quiet, _, leaving] =
        all.each_ref().map(|all| Unit::Seconds.format(all.max() as f64 / 1e9));
    record.headline =
        format!("Longest wait for a response: quiet {quiet}, {} {leaving}.", PHASES[LEAVING]);
    let responses = all.iter().map(Histogram::len).sum();
    record.check("honest clients have responses", Outcome::of(responses, None));
    Ok(record)
}

fn add(sums: &mut Latencies, more: &Latencies) -> io::Result<()> {
    let mut pairs = sums.iter_mut().zip(more);
    pairs.try_for_each(|(sum, more)| sum.add(more)).map_err(io::Error::other)
}

/// The clients connect, subscribe and disconnect. Returns the number of accepted subscriptions, too.
fn one_round(
    address: SocketAddr,
    subscriptions: usize,
    round: u32,
) -> io::Result<(Latencies, u64)> {
    let (phase, is_over) = (AtomicUsize::new(QUIET), AtomicBool::new(false));
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
        let mut all: Latencies = std::array::from_fn(|_| histogram());
        for thread in honest {
            add(&mut all, &thread.join().map_err(|_| io::Error::other("a client panicked"))??)?;
        }
        Ok((all, left?))
    })
}

fn connect(address: SocketAddr, source: Ipv4Addr) -> io::Result<Client> {
    let source = source::is_possible(address).then_some(source);
    let mut client = Client::over(source::dial_and_wait(address, source)?, ANSWER_MAX)?;
    // Outpoints are in protocol 1.7.
    ask(&mut client, "server.version", r#"["assay-load",["1.4","1.7"]]"#)?;
    Ok(client)
}

fn ask(client: &mut Client, method: &str, params: &str) -> io::Result<Reply> {
    client.send(method, params);
    client.flush().and_then(|()| client.receive()).map_err(io::Error::other)
}

/// Sends one request per period, alternating between a cheap one and one that reads subscriptions.
fn ask_regularly(
    address: SocketAddr,
    number: usize,
    phase: &AtomicUsize,
    is_over: &AtomicBool,
) -> io::Result<Latencies> {
    let is_anew = number >= HONEST;
    let period = if is_anew { PERIOD_ANEW } else { PERIOD };
    let mut client = connect(address, source::honest(number))?;
    let script = format!(r#"["51{number:04x}"]"#);
    let requests =
        [("server.banner", "[]"), ("blockchain.scriptpubkey.subscribe", script.as_str())];
    let mut latencies: Latencies = std::array::from_fn(|_| histogram());
    let mut due = Instant::now();
    for (count, (method, params)) in requests.iter().cycle().enumerate() {
        due = (due + period).max(Instant::now());
        thread::sleep(due.saturating_duration_since(Instant::now()));
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        // A request sent before the disconnect may be answered after it.
        let asked = Instant::now();
        if is_anew {
            // A new source address each time: a server may limit connections per address.
            client = connect(address, source::honest(number + count * HONEST_ANEW))?;
        }
        ask(&mut client, method, params)?;
        let phase = phase.load(Ordering::Relaxed);
        latencies[phase].saturating_record(asked.elapsed().as_nanos() as u64);
    }
    Ok(latencies)
}

/// Several clients subscribe to distinct outputs and disconnect together. Returns the number of subscriptions.
fn subscribe_and_leave(
    address: SocketAddr,
    subscriptions: usize,
    round: u32,
    phase: &AtomicUsize,
) -> io::Result<u64> {
    let mut accepted = 0;
    let mut clients = Vec::new();
    for leaver in 0..LEAVERS {
        let mut client = connect(address, source::hostile(leaver * 16))?;
        let first_txid = (u64::from(round) * LEAVERS as u64 + leaver as u64 + 1) << 32;
        for first in (0..subscriptions).step_by(BATCH) {
            let numbers = first..subscriptions.min(first + BATCH);
            for number in numbers.clone() {
                let txid = first_txid | number as u64;
                let params = format!(r#"["{txid:064x}",0,"6d616c6c6f7279"]"#);
                client.send("blockchain.outpoint.subscribe", &params);
            }
            client.flush().map_err(io::Error::other)?;
            for _ in numbers {
                let reply = client.receive().map_err(io::Error::other)?;
                accepted += u64::from(reply.result.is_ok());
            }
        }
        clients.push(client);
    }
    phase.store(LEAVING, Ordering::Relaxed);
    drop(clients);
    Ok(accepted)
}
