//! Many clients of one server: connections, source addresses, and hostile clients on one thread.

pub(crate) mod link;
pub(crate) mod source;

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use assay_report::record::{Figure, bytes, count};
use rustls::ClientConfig;

use self::link::Link;

/// Time between two actions of a client.
const TICK: Duration = Duration::from_millis(10);

/// Attacks of one protocol.
pub(crate) trait Hostile {
    type Attack: Copy;

    /// Delay before a client whose connection was closed reconnects.
    const RETRY: Duration;
    /// Number of unsent bytes of a client above which it does not act; bounds the memory.
    const UNSENT_MAX: usize;

    fn name(attack: Self::Attack) -> &'static str;

    /// True if its clients never read.
    fn is_deaf(attack: Self::Attack) -> bool;

    /// Consumes the input; returns the number of responses, and of errors among them.
    fn read(link: &mut Link) -> [u64; 2];

    /// Writes the messages of one turn.
    fn act(&mut self, turn: Turn<Self::Attack>, out: &mut Vec<u8>) -> Deed;
}

/// Turn of a client.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Turn<A> {
    pub(crate) attack: A,
    /// Number of the client.
    pub(crate) client: usize,
    /// Number of the turn since it connected.
    pub(crate) tick: u64,
    /// Responses since it connected.
    pub(crate) responses: u64,
}

/// Result of a turn.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Deed {
    /// Messages written, if they are counted.
    pub(crate) messages: u64,
    /// Disconnects now, and reconnects after this time.
    pub(crate) leaves: Option<Duration>,
}

/// Results of one attack.
#[derive(Debug, Clone, Default)]
pub(crate) struct AttackReport {
    pub(crate) attack: String,
    clients: u64,
    /// Established connections.
    connections: u64,
    /// Connection attempts rejected, or closed before a byte was sent.
    not_let_in: u64,
    /// Connections that the other side closed.
    disconnected: u64,
    /// Connections open at the end.
    open: u64,
    messages: u64,
    responses: u64,
    /// Responses that are errors.
    errors: u64,
    bytes_sent: u64,
    bytes_received: u64,
}

impl AttackReport {
    /// Figures; those that not every protocol counts have no value if they are zero.
    pub(crate) fn figures(&self) -> [Figure<'static>; 10] {
        let counted = |metric, number: u64| {
            let (metric, unit, value) = count(metric, number);
            (metric, unit, value.filter(|_| number > 0))
        };
        [
            count("clients", self.clients),
            count("connections", self.connections),
            count("not let in", self.not_let_in),
            count("disconnected", self.disconnected),
            count("open at the end", self.open),
            counted("messages", self.messages),
            counted("responses", self.responses),
            counted("errors", self.errors),
            bytes("sent", self.bytes_sent),
            bytes("received", self.bytes_received),
        ]
    }

    /// Adds the figures of another run.
    pub(crate) fn add(&mut self, other: &Self) {
        self.connections += other.connections;
        self.not_let_in += other.not_let_in;
        self.disconnected += other.disconnected;
        self.open += other.open;
        self.messages += other.messages;
        self.responses += other.responses;
        self.errors += other.errors;
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
    }
}

#[derive(Debug)]
struct Client {
    /// Index of its attack.
    attack: usize,
    link: Option<Link>,
    is_open: bool,
    retry_at: Instant,
    tick: u64,
    responses: u64,
}

/// Server of the clients.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) tls: Option<Arc<ClientConfig>>,
    /// True if clients have source addresses of their own.
    pub(crate) has_sources: bool,
}

impl Server {
    /// Starts to connect, from `source` if clients have addresses of their own.
    pub(crate) fn link(&self, source: Ipv4Addr) -> io::Result<Link> {
        let source = self.has_sources.then_some(source);
        Link::connect(self.address, source, self.tls.as_ref())
    }
}

/// Hostile clients.
pub(crate) struct Swarm<H: Hostile> {
    hostile: H,
    server: Server,
    attacks: Vec<H::Attack>,
    clients: Vec<Client>,
    reports: Vec<AttackReport>,
}

impl<H: Hostile> Swarm<H> {
    /// `clients` with these attacks in equal parts.
    pub(crate) fn new(hostile: H, server: Server, clients: usize, attacks: &[H::Attack]) -> Self {
        let now = Instant::now();
        let client = |index: usize| Client {
            attack: index % attacks.len(),
            link: None,
            is_open: false,
            // They connect one after the other, over a second.
            retry_at: now + Duration::from_secs(1) * index as u32 / clients.max(1) as u32,
            tick: 0,
            responses: 0,
        };
        let clients: Vec<Client> = (0..clients).map(client).collect();
        let report = |(index, attack): (usize, &H::Attack)| AttackReport {
            attack: H::name(*attack).to_owned(),
            clients: clients.iter().filter(|client| client.attack == index).count() as u64,
            ..AttackReport::default()
        };
        let reports = attacks.iter().enumerate().map(report).collect();
        Self { hostile, server, attacks: attacks.to_vec(), clients, reports }
    }

    /// Runs the attacks until stopped; returns their results.
    pub(crate) fn run(mut self, stop: &AtomicBool) -> Vec<AttackReport> {
        while !stop.load(Ordering::Relaxed) {
            let started = Instant::now();
            for index in 0..self.clients.len() {
                self.tick(index);
            }
            thread::sleep(TICK.saturating_sub(started.elapsed()));
        }
        for index in 0..self.clients.len() {
            let client = &self.clients[index];
            self.reports[client.attack].open += u64::from(client.link.is_some() && client.is_open);
            self.leave(index, H::RETRY);
        }
        self.reports
    }

    fn tick(&mut self, index: usize) {
        let client = &mut self.clients[index];
        let outcome = if client.link.is_some() {
            self.work(index)
        } else if client.retry_at <= Instant::now() {
            (client.is_open, client.tick, client.responses) = (false, 0, 0);
            self.server.link(source::hostile(index)).map(|link| client.link = Some(link))
        } else {
            Ok(())
        };
        if outcome.is_err() {
            let client = &self.clients[index];
            let report = &mut self.reports[client.attack];
            if client.is_open {
                report.disconnected += 1;
            } else {
                report.not_let_in += 1;
            }
            self.leave(index, H::RETRY);
        }
    }

    fn leave(&mut self, index: usize, delay: Duration) {
        let client = &mut self.clients[index];
        client.is_open = false;
        client.retry_at = Instant::now() + delay;
        if let Some(link) = client.link.take() {
            let report = &mut self.reports[client.attack];
            report.bytes_sent += link.bytes_out;
            report.bytes_received += link.bytes_in;
        }
    }

    /// Reads, acts and writes without blocking.
    fn work(&mut self, index: usize) -> io::Result<()> {
        let client = &mut self.clients[index];
        let Some(link) = &mut client.link else { return Ok(()) };
        let (attack, report) = (self.attacks[client.attack], &mut self.reports[client.attack]);
        if !client.is_open {
            if !link.is_open()? {
                return Ok(());
            }
            client.is_open = true;
            report.connections += 1;
        }
        if !H::is_deaf(attack) {
            let is_open = link.fill()?;
            let [responses, errors] = H::read(link);
            client.responses += responses;
            report.responses += responses;
            report.errors += errors;
            if !is_open {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
        if link.unsent() <= H::UNSENT_MAX {
            let Client { tick, responses, .. } = *client;
            let turn = Turn { attack, client: index, tick, responses };
            client.tick += 1;
            let deed = link.compose(|out| self.hostile.act(turn, out));
            report.messages += deed.messages;
            if let Some(delay) = deed.leaves {
                self.leave(index, delay);
                return Ok(());
            }
        }
        link.flush()
    }
}
