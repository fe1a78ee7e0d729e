//! The thread that reads from a peer: takes messages apart and puts what is asked into the outbox.

use std::io::{self, Read};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use assay_engine::defect::{Point, point};
use assay_wire::ParseError;
use assay_wire::p2p::{Command, FrameError, FrameHeader, Locator, Message, PayloadHasher, Version};

use super::Shared;
use super::outbox::Request;
use super::peers::{Peer, unix_time_s};

/// Why a connection is over.
#[derive(Debug, thiserror::Error)]
pub(super) enum Ended {
    #[error("the peer has gone")]
    Gone,
    #[error("the node stops")]
    Stopping,
    #[error("{0}")]
    Io(io::Error),
    #[error("no handshake within {} s", patience.as_secs_f32())]
    NoHandshake { patience: Duration },
    #[error("no message within {} s", patience.as_secs_f32())]
    Idle { patience: Duration },
    #[error("it took nothing for {} s", patience.as_secs_f32())]
    Stalled { patience: Duration },
    #[error("byte {} of a message: {fault}", fault.offset())]
    Frame {
        #[from]
        fault: FrameError,
    },
    #[error("message {command}: {source}")]
    Payload { command: Command, source: ParseError },
    #[error("message {command} before the handshake")]
    Early { command: Command },
    #[error("it introduced itself twice")]
    Twice,
    #[error("protocol version {version} is older than {}", super::PROTOCOL_MIN)]
    Old { version: i32 },
}

impl Ended {
    /// Whether the peer did something wrong, and did not just leave.
    pub(super) fn is_fault(&self) -> bool {
        !matches!(self, Self::Gone | Self::Stopping | Self::Io(_))
    }
}

/// Reads until the connection is over.
pub(super) fn run(peer: &Peer, shared: &Shared) -> Ended {
    let mut intake = Intake { peer, shared, is_introduced: false, payload: Vec::new() };
    loop {
        if let Err(ended) = intake.message() {
            return ended;
        }
    }
}

struct Intake<'a> {
    peer: &'a Peer,
    shared: &'a Shared,
    /// Whether the peer's version has come.
    is_introduced: bool,
    payload: Vec<u8>,
}

impl Intake<'_> {
    fn message(&mut self) -> Result<(), Ended> {
        let deadline = Instant::now() + self.shared.config.timeouts.idle;
        let mut head = [0; FrameHeader::SIZE];
        self.fill(&mut head, deadline)?;
        let header = FrameHeader::parse(&head, self.shared.magic, self.shared.message_bytes_max)?;
        let command = header.command;
        let wanted = WANTED.iter().find(|(name, _)| *name == command.as_str());
        let Some((_, length_max)) = wanted else { return self.skip(&header, deadline) };
        if header.length > *length_max {
            let (length, length_max) = (header.length, *length_max);
            return Err(FrameError::TooLong { command, length, length_max }.into());
        }
        let mut payload = std::mem::take(&mut self.payload);
        // The memory grows with what comes, not with what is announced.
        while payload.len() < header.length as usize {
            let start = payload.len();
            payload.resize((start + PIECE).min(header.length as usize), 0);
            self.fill(&mut payload[start..], deadline)?;
        }
        header.check(&payload)?;
        self.peer.traffic.received(FrameHeader::SIZE + payload.len());
        let message = Message::parse(command, &payload);
        let message = message.map_err(|source| Ended::Payload { command, source })?;
        self.handle(&message)?;
        payload.clear();
        payload.shrink_to(PIECE);
        self.payload = payload;
        Ok(())
    }

    /// Reads what is of no use to us, in pieces.
    fn skip(&mut self, header: &FrameHeader, deadline: Instant) -> Result<(), Ended> {
        self.allow_before_handshake(header.command)?;
        let mut hasher = PayloadHasher::default();
        let mut left = header.length as usize;
        let mut piece = vec![0; left.min(PIECE)];
        while left > 0 {
            let length = left.min(PIECE);
            self.fill(&mut piece[..length], deadline)?;
            hasher.update(&piece[..length]);
            left -= length;
        }
        header.check_hash(&hasher.finish())?;
        self.peer.traffic.received(FrameHeader::SIZE + header.length as usize);
        Ok(())
    }

    fn allow_before_handshake(&self, command: Command) -> Result<(), Ended> {
        if self.is_introduced { Ok(()) } else { Err(Ended::Early { command }) }
    }

    fn fill(&self, out: &mut [u8], deadline: Instant) -> Result<(), Ended> {
        let timeouts = &self.shared.config.timeouts;
        let is_ready = self.peer.is_ready();
        let deadline = if is_ready { deadline } else { self.peer.connected + timeouts.handshake };
        let late = || {
            if is_ready {
                Ended::Idle { patience: timeouts.idle }
            } else {
                Ended::NoHandshake { patience: timeouts.handshake }
            }
        };
        let mut stream = self.peer.stream();
        let mut filled = 0;
        while filled < out.len() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(late());
            }
            stream.set_read_timeout(Some(left)).map_err(Ended::Io)?;
            match stream.read(&mut out[filled..]) {
                Ok(0) => return Err(Ended::Gone),
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_timeout(&error) => return Err(late()),
                Err(error) => return Err(Ended::Io(error)),
            }
        }
        Ok(())
    }

    fn handle(&mut self, message: &Message<'_>) -> Result<(), Ended> {
        point(Point::PeerMessage);
        if let Message::Version(version) = message {
            return self.introduce(version);
        }
        self.allow_before_handshake(message.command())?;
        if let Message::Verack = message {
            // Once; Core takes no notice of more.
            if !self.peer.is_ready.swap(true, Ordering::Relaxed) {
                self.put(Request::Ready)?;
            }
            return Ok(());
        }
        match message {
            Message::SendHeaders => self.peer.wants_headers.store(true, Ordering::Relaxed),
            Message::FeeFilter(rate) => {
                self.peer.with_facts(|facts| facts.min_fee_sat_per_kvb = *rate);
            }
            Message::Pong(nonce) => self.pong(*nonce),
            // Core answers none of these before `verack` either.
            _ if !self.peer.is_ready() => {}
            Message::Ping(nonce) => self.put(Request::Pong(*nonce))?,
            Message::GetHeaders(Locator { hashes, stop, .. }) => {
                self.put(Request::Headers { locator: hashes.iter().collect(), stop: *stop })?;
            }
            Message::GetBlocks(Locator { hashes, stop, .. }) => {
                self.put(Request::Hashes { locator: hashes.iter().collect(), stop: *stop })?;
            }
            Message::GetData(entries) => self.put(Request::Data(entries.iter().collect()))?,
            _ => {}
        }
        Ok(())
    }

    fn introduce(&mut self, version: &Version<'_>) -> Result<(), Ended> {
        if self.is_introduced {
            return Err(Ended::Twice);
        }
        if version.version < super::PROTOCOL_MIN {
            return Err(Ended::Old { version: version.version });
        }
        self.is_introduced = true;
        self.peer.with_facts(|facts| {
            facts.version = version.version;
            facts.services = version.services;
            facts.user_agent = printable(version.user_agent);
            facts.start_height = version.start_height;
            facts.time_offset_s = version.time.saturating_sub_unsigned(unix_time_s());
        });
        self.put(Request::Greet)
    }

    fn pong(&self, nonce: u64) {
        self.peer.with_facts(|facts| {
            let Some((_, since)) = facts.ping.take_if(|(sent, _)| *sent == nonce) else { return };
            let elapsed = since.elapsed();
            facts.ping_time = Some(elapsed);
            facts.ping_time_min = Some(facts.ping_time_min.map_or(elapsed, |min| min.min(elapsed)));
        });
    }

    fn put(&self, request: Request) -> Result<(), Ended> {
        // It is closed by the writer, which then has the reason, or because the node stops.
        if self.peer.outbox.put(request) { Ok(()) } else { Err(Ended::Stopping) }
    }
}

pub(super) fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// What a peer calls itself goes to logs and RPC: Core lets the same characters through (`util/strencodings.cpp`,
/// `SAFE_CHARS_DEFAULT`).
fn printable(user_agent: &[u8]) -> String {
    let is_safe = |byte: &u8| byte.is_ascii_alphanumeric() || b" .,;-_/:?@()".contains(byte);
    user_agent.iter().filter(|byte| is_safe(byte)).map(|byte| char::from(*byte)).collect()
}

/// Messages that are read, and how long they may be: a getdata of 50,000 entries is the longest.
const WANTED: &[(&str, u32)] = &[
    ("version", 1 << 12),
    ("verack", 1 << 12),
    ("ping", 1 << 12),
    ("pong", 1 << 12),
    ("sendheaders", 1 << 12),
    ("feefilter", 1 << 12),
    ("getheaders", 1 << 13),
    ("getblocks", 1 << 13),
    ("getdata", 1 << 21),
];
/// What is read at once.
const PIECE: usize = 64 << 10;
