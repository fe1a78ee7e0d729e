//! All hostile peers on one thread.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use assay_report::record::Unit;
use assay_report::stats::random::SplitMix64;
use mio::net::TcpStream;

use super::attack::{Attack, Tip, act};
use crate::load::source;

/// Time between two actions of a peer.
const TICK: Duration = Duration::from_millis(10);
/// Delay before a disconnected peer reconnects.
const RETRY: Duration = Duration::from_millis(200);
/// Maximum number of unsent bytes per peer.
const UNSENT_MAX: usize = 4 << 20;
/// Bytes read per tick.
const READ_BYTES: usize = 64 << 10;

#[derive(Debug, Clone, Default)]
pub(super) struct AttackReport {
    pub(super) attack: String,
    pub(super) peers: usize,
    /// Established connections.
    pub(super) connections: u64,
    /// Connection attempts rejected, or closed before a byte was sent.
    pub(super) not_let_in: u64,
    /// Connections that the node closed.
    pub(super) disconnected: u64,
    /// Connections open at the end.
    pub(super) open: u64,
    pub(super) messages: u64,
    pub(super) bytes_sent: u64,
    pub(super) bytes_received: u64,
}

impl AttackReport {
    pub(super) fn figures(&self) -> [(&'static str, Unit, Option<f64>); 8] {
        let count = |name, value: u64| (name, Unit::Count, Some(value as f64));
        let bytes = |name, value: u64| (name, Unit::Bytes, Some(value as f64));
        [
            count("peers", self.peers as u64),
            count("connections", self.connections),
            count("not let in", self.not_let_in),
            count("disconnected", self.disconnected),
            count("open at the end", self.open),
            count("messages", self.messages),
            bytes("sent", self.bytes_sent),
            bytes("received", self.bytes_received),
        ]
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.connections += other.connections;
        self.not_let_in += other.not_let_in;
        self.disconnected += other.disconnected;
        self.open += other.open;
        self.messages += other.messages;
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
    }
}

struct Peer {
    attack: usize,
    stream: Option<TcpStream>,
    is_open: bool,
    retry_at: Instant,
    tick: u64,
    out: Vec<u8>,
}

/// The running peers; dropping it stops them.
pub(crate) struct Swarm {
    stop: Arc<AtomicBool>,
    tip: Arc<Mutex<Tip>>,
    thread: Option<JoinHandle<Vec<AttackReport>>>,
}

impl Swarm {
    /// Starts `count` peers with these attacks in equal parts.
    pub(crate) fn start(
        address: SocketAddr,
        (count, attacks): (usize, &[Attack]),
        tip: Tip,
        seed: u64,
    ) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let tip = Arc::new(Mutex::new(tip));
        let (stopped, shown) = (Arc::clone(&stop), Arc::clone(&tip));
        let attacks = attacks.to_vec();
        let thread = thread::spawn(move || {
            let mut work = Work::new(address, count, attacks, seed);
            while !stopped.load(Ordering::Relaxed) {
                let started = Instant::now();
                let tip = *shown.lock().unwrap_or_else(PoisonError::into_inner);
                work.tick(&tip);
                thread::sleep(TICK.saturating_sub(started.elapsed()));
            }
            work.finish()
        });
        Self { stop, tip, thread: Some(thread) }
    }

    /// Sets the tip that the peers build on.
    pub(crate) fn show_tip(&self, tip: Tip) {
        *self.tip.lock().unwrap_or_else(PoisonError::into_inner) = tip;
    }

    /// Stops the peers and returns their results.
    pub(super) fn finish(mut self) -> Vec<AttackReport> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

impl Drop for Swarm {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

struct Work {
    address: SocketAddr,
    attacks: Vec<Attack>,
    peers: Vec<Peer>,
    reports: Vec<AttackReport>,
    random: SplitMix64,
    input: Vec<u8>,
}

impl Work {
    fn new(address: SocketAddr, count: usize, attacks: Vec<Attack>, seed: u64) -> Self {
        let now = Instant::now();
        let peer = |index: usize| Peer {
            attack: index % attacks.len(),
            stream: None,
            is_open: false,
            // They connect one after the other, over a second.
            retry_at: now + Duration::from_secs(1) * index as u32 / count.max(1) as u32,
            tick: 0,
            out: Vec::new(),
        };
        let peers: Vec<Peer> = (0..count).map(peer).collect();
        let report = |(index, attack): (usize, &Attack)| AttackReport {
            attack: attack.name().to_owned(),
            peers: peers.iter().filter(|peer| peer.attack == index).count(),
            ..AttackReport::default()
        };
        let reports = attacks.iter().enumerate().map(report).collect();
        Self {
            address,
            peers,
            reports,
            attacks,
            random: SplitMix64::new(seed),
            input: vec![0; READ_BYTES],
        }
    }

    fn tick(&mut self, tip: &Tip) {
        for index in 0..self.peers.len() {
            let peer = &mut self.peers[index];
            if peer.stream.is_none() {
                if peer.retry_at <= Instant::now() {
                    self.connect(index);
                }
            } else if self.work(index, tip).is_err() {
                self.disconnected(index);
            }
        }
    }

    fn connect(&mut self, index: usize) {
        let source = source::is_possible(self.address).then(|| source::hostile(index));
        let peer = &mut self.peers[index];
        (peer.is_open, peer.tick) = (false, 0);
        peer.out.clear();
        match source::dial(self.address, source) {
            Ok(stream) => peer.stream = Some(stream),
            Err(_) => self.disconnected(index),
        }
    }

    fn disconnected(&mut self, index: usize) {
        let peer = &mut self.peers[index];
        let report = &mut self.reports[peer.attack];
        if peer.is_open {
            report.disconnected += 1;
        } else {
            report.not_let_in += 1;
        }
        peer.stream = None;
        peer.retry_at = Instant::now() + RETRY;
    }

    /// Reads, acts and writes without blocking.
    fn work(&mut self, index: usize, tip: &Tip) -> io::Result<()> {
        let peer = &mut self.peers[index];
        let Some(stream) = &mut peer.stream else { return Ok(()) };
        let (attack, report) = (self.attacks[peer.attack], &mut self.reports[peer.attack]);
        if !peer.is_open {
            if let Some(error) = stream.take_error()? {
                return Err(error);
            }
            match stream.peer_addr() {
                Ok(_) => peer.is_open = true,
                Err(error) if error.kind() == ErrorKind::NotConnected => return Ok(()),
                Err(error) => return Err(error),
            }
            report.connections += 1;
        }
        if !attack.is_deaf() {
            report.bytes_received += discard(stream, &mut self.input)?;
        }
        if peer.out.len() < UNSENT_MAX {
            let before = peer.out.len();
            let deed = act(attack, peer.tick, tip, &mut self.random, &mut peer.out);
            peer.tick += 1;
            report.messages += deed.messages;
            report.bytes_sent += (peer.out.len() - before) as u64;
            if deed.leaves {
                peer.stream = None;
                peer.retry_at = Instant::now();
                return Ok(());
            }
        }
        write_some(stream, &mut peer.out)
    }

    fn finish(mut self) -> Vec<AttackReport> {
        for peer in &self.peers {
            self.reports[peer.attack].open += u64::from(peer.stream.is_some() && peer.is_open);
        }
        self.reports
    }
}

/// Reads and discards; an error if the other side has closed.
fn discard(stream: &mut TcpStream, input: &mut [u8]) -> io::Result<u64> {
    match stream.read(input) {
        Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
        Ok(count) => Ok(count as u64),
        Err(error) if is_not_now(&error) => Ok(0),
        Err(error) => Err(error),
    }
}

fn write_some(stream: &mut TcpStream, out: &mut Vec<u8>) -> io::Result<()> {
    let mut at = 0;
    let outcome = loop {
        if at == out.len() {
            break Ok(());
        }
        match stream.write(&out[at..]) {
            Ok(0) => break Err(ErrorKind::WriteZero.into()),
            Ok(count) => at += count,
            Err(error) if is_not_now(&error) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    out.drain(..at);
    outcome
}

fn is_not_now(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
