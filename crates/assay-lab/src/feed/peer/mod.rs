//! A peer that serves a chain to one node over P2P: transactions, blocks and compact blocks. It connects to the node and so is
//! inbound for it.

mod talk;

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use self::talk::Talk;
pub(crate) use self::talk::{Sighting, Stamps};
use super::ready::Ready;
use crate::machine::clock::Clock;
use crate::results::SeenAs;
use crate::wire::{self, HEAD_BYTES, Hash, Magic, RawHeader};

#[derive(Debug, thiserror::Error)]
pub enum PeerError {
    #[error("cannot connect to {address} as a peer: {source}")]
    Connect { address: SocketAddr, source: io::Error },
    #[error("{address} has not shaken hands within {seconds} s; is it a node of this network?")]
    NoHandshake {
        address: SocketAddr,
        /// Time limit.
        seconds: u64,
    },
    #[error("the connection ended ({why}): the node stopped, or rejected what was sent")]
    Closed {
        /// Error of the operating system.
        why: String,
    },
    #[error("no progress in {seconds} s while {doing}")]
    Stuck {
        seconds: u64,
        /// Current operation.
        doing: &'static str,
    },
    #[error("block {height} of the chain cannot be read as a block")]
    NoBlock { height: u32 },
    #[error("the node has not connected the block: it answers with {found}")]
    NotConnected {
        /// Headers of the node above the previous block.
        found: String,
    },
    /// Neither RPC nor P2P is available.
    #[error("there is no connection over which it could be sent")]
    NoWay,
    #[error("interrupted")]
    Interrupted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Habits {
    pub(crate) magic: Magic,
    /// Bitcoin Cash: no witnesses, compact blocks of version 1.
    pub(crate) is_cash: bool,
    /// True for high-bandwidth compact blocks, false for low bandwidth, `None` for no compact blocks.
    pub(crate) compact: Option<bool>,
}

/// A connection; dropping it closes it.
pub(crate) struct Peer {
    pub(crate) link: Arc<Link>,
    thread: Option<JoinHandle<()>>,
}

/// Shared by both threads of a connection.
pub(crate) struct Link {
    writer: Mutex<TcpStream>,
    /// Closes the connection while another thread writes.
    stream: TcpStream,
    talk: Mutex<Talk>,
    changed: Condvar,
    habits: Habits,
    clock: Clock,
    nonces: AtomicU64,
}

/// Returns true to abort a wait.
pub(crate) type Stop<'a> = &'a dyn Fn() -> bool;

impl Peer {
    /// Connects and performs the handshake.
    pub(crate) fn connect(
        address: SocketAddr,
        habits: Habits,
        clock: Clock,
    ) -> Result<Self, PeerError> {
        let connect = |source| PeerError::Connect { address, source };
        let stream = TcpStream::connect_timeout(&address, CONNECT_TIMEOUT).map_err(connect)?;
        stream.set_nodelay(true).map_err(connect)?;
        // On a cut network a write would block forever.
        stream.set_write_timeout(Some(WRITE_TIMEOUT)).map_err(connect)?;
        let (reader, writer) = (stream.try_clone(), stream.try_clone());
        let link = Arc::new(Link {
            writer: Mutex::new(writer.map_err(connect)?),
            stream,
            talk: Mutex::new(Talk::default()),
            changed: Condvar::new(),
            habits,
            clock,
            nonces: AtomicU64::new(1),
        });
        let (of_thread, reader) = (Arc::clone(&link), reader.map_err(connect)?);
        let thread = thread::spawn(move || {
            let ended = of_thread.listen(reader);
            let mut talk = of_thread.lock();
            talk.closed = Some(ended.err().map_or_else(String::new, |error| error.to_string()));
            drop(talk);
            of_thread.changed.notify_all();
        });
        let peer = Self { link, thread: Some(thread) };
        let version = wire::version_payload(clock.start_unix_ms() | 1, AGENT);
        peer.link.send("version", &version)?;
        let seconds = CONNECT_TIMEOUT.as_secs();
        let shaken = peer.link.wait(CONNECT_TIMEOUT, "it shakes hands", &|| false, |talk| {
            talk.is_ready.then_some(())
        });
        match shaken {
            Err(PeerError::Stuck { .. } | PeerError::Closed { .. }) => {
                Err(PeerError::NoHandshake { address, seconds })
            }
            other => other.map(|()| peer),
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It may be closed already.
        let _ = self.link.stream.shutdown(Shutdown::Both);
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was already reported.
            let _ = thread.join();
        }
    }
}

impl Link {
    fn lock(&self) -> MutexGuard<'_, Talk> {
        self.talk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a message; returns the time of its first byte.
    pub(crate) fn send(&self, command: &str, payload: &[u8]) -> Result<f64, PeerError> {
        let head = wire::head(self.habits.magic, command, payload.len(), payload);
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let at_s = self.clock.now_s();
        // One write for a small message: two would make two packets.
        let written = if payload.len() <= SMALL_BYTES {
            writer.write_all(&[&head, payload].concat())
        } else {
            writer.write_all(&head).and_then(|()| writer.write_all(payload))
        };
        written.map_err(|error| PeerError::Closed { why: error.to_string() })?;
        Ok(at_s)
    }

    /// Waits until `look` returns a value.
    pub(crate) fn wait<T>(
        &self,
        patience: Duration,
        doing: &'static str,
        stop: Stop<'_>,
        mut look: impl FnMut(&mut Talk) -> Option<T>,
    ) -> Result<T, PeerError> {
        let started = Instant::now();
        let mut talk = self.lock();
        loop {
            if let Some(found) = look(&mut talk) {
                return Ok(found);
            }
            if let Some(why) = &talk.closed {
                return Err(PeerError::Closed { why: why.clone() });
            }
            if stop() {
                return Err(PeerError::Interrupted);
            }
            if started.elapsed() > patience {
                return Err(PeerError::Stuck { seconds: patience.as_secs(), doing });
            }
            talk = self.changed.wait_timeout(talk, NAP).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Registers headers of the node's chain, which it may request again.
    pub(crate) fn has_blocks(&self, headers: &[RawHeader]) {
        let mut talk = self.lock();
        for header in headers {
            talk.add_header(*header);
        }
    }

    /// Fails if the connection is closed.
    pub(crate) fn check(&self, stop: Stop<'_>) -> Result<(), PeerError> {
        if let Some(why) = &self.lock().closed {
            return Err(PeerError::Closed { why: why.clone() });
        }
        if stop() { Err(PeerError::Interrupted) } else { Ok(()) }
    }

    /// Serves a block's transactions, and the block itself after its announcement.
    pub(crate) fn take_up(&self, block: &Arc<Ready>) {
        let mut talk = self.lock();
        talk.take_up(Arc::clone(block));
    }

    /// Timestamps of the block served last.
    pub(crate) fn stamps(&self) -> Stamps {
        self.lock().stamps.clone()
    }

    /// Starts to watch for the node's announcement of a block.
    pub(crate) fn look_for(&self, hash: Hash) {
        let mut talk = self.lock();
        (talk.looked_for, talk.sighting) = (Some(hash), None);
    }

    /// First announcement of the watched block.
    pub(crate) fn sighting(&self) -> Option<Sighting> {
        self.lock().sighting
    }

    /// Transactions announced but not requested, and total requested.
    pub(crate) fn txs_open(&self) -> (usize, usize) {
        let talk = self.lock();
        (talk.announced - talk.asked, talk.asked)
    }

    /// Announces transactions; the node requests the missing ones.
    pub(crate) fn announce_txs(&self, block: &Ready, places: &[usize]) -> Result<f64, PeerError> {
        let kind = if self.habits.is_cash { wire::INV_TX } else { wire::INV_WTX };
        let entries: Vec<_> = places.iter().map(|at| (kind, block.name(*at))).collect();
        self.lock().announce(places);
        self.send("inv", &wire::inventory(&entries))
    }

    /// Lets the node request the block from now on.
    pub(crate) fn open_block(&self, block: &Ready) {
        self.lock().open_block(block.header());
    }

    /// Waits until the node has processed everything sent: it responds in order.
    pub(crate) fn pong(&self, patience: Duration, stop: Stop<'_>) -> Result<f64, PeerError> {
        let nonce = self.nonces.fetch_add(1, Ordering::Relaxed);
        self.send("ping", &nonce.to_le_bytes())?;
        self.wait(patience, "it works through what was sent", stop, |talk| {
            talk.pong.filter(|(answered, _)| *answered >= nonce).map(|(_, at_s)| at_s)
        })
    }

    /// Hashes of the node's active chain above a block.
    pub(crate) fn headers_above(
        &self,
        before: &Hash,
        patience: Duration,
        stop: Stop<'_>,
    ) -> Result<Vec<Hash>, PeerError> {
        let mut payload = 70016_u32.to_le_bytes().to_vec();
        payload.push(1);
        payload.extend_from_slice(before);
        payload.extend_from_slice(&[0; 32]);
        self.lock().answer = None;
        self.send("getheaders", &payload)?;
        self.wait(patience, "it tells its headers", stop, |talk| talk.answer.take())
    }

    /// Reads messages until the connection closes.
    fn listen(&self, mut stream: TcpStream) -> Result<(), PeerError> {
        let closed = |error: io::Error| PeerError::Closed { why: error.to_string() };
        let mut payload = Vec::new();
        loop {
            let mut head = [0; HEAD_BYTES];
            stream.read_exact(&mut head).map_err(closed)?;
            let Some((command, length)) = wire::read_head_of(self.habits.magic, &head) else {
                return Err(PeerError::Closed { why: "its message is of another network".into() });
            };
            payload.resize(length, 0);
            stream.read_exact(&mut payload).map_err(closed)?;
            self.answer(&command, &payload)?;
            self.changed.notify_all();
        }
    }

    fn answer(&self, command: &str, payload: &[u8]) -> Result<(), PeerError> {
        let now_s = self.clock.now_s();
        match command {
            "version" => self.shake_hands()?,
            "verack" => self.lock().is_ready = true,
            "ping" => drop(self.send("pong", payload)?),
            "pong" => {
                if let Some(nonce) = payload.first_chunk() {
                    self.lock().pong = Some((u64::from_le_bytes(*nonce), now_s));
                }
            }
            "getheaders" => {
                let headers = self.lock().headers_for(payload);
                self.send("headers", &wire::headers_payload(&headers))?;
            }
            "getdata" => self.give(payload, now_s)?,
            "getblocktxn" => self.give_missing(payload, now_s)?,
            "headers" => {
                if let Some(hashes) = wire::read_headers(payload) {
                    let mut talk = self.lock();
                    talk.see(&hashes, SeenAs::Headers, now_s);
                    talk.answer = Some(hashes);
                }
            }
            "inv" => {
                let entries = wire::read_inventory(payload).unwrap_or_default();
                let blocks = entries.iter().filter(|(kind, _)| kind & 3 == wire::INV_BLOCK);
                let hashes: Vec<Hash> = blocks.map(|(_, hash)| *hash).collect();
                self.lock().see(&hashes, SeenAs::Inv, now_s);
            }
            "sendcmpct" => self.lock().is_chosen = payload.first() == Some(&1),
            "cmpctblock" => {
                if let Some(header) = payload.get(..wire::HEADER_BYTES) {
                    self.lock().see(&[wire::double_sha256(header)], SeenAs::Compact, now_s);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn shake_hands(&self) -> Result<(), PeerError> {
        if !self.habits.is_cash {
            self.send("wtxidrelay", &[])?;
        }
        self.send("verack", &[])?;
        self.send("sendheaders", &[])?;
        if let Some(is_unasked) = self.habits.compact {
            let version: u64 = if self.habits.is_cash { 1 } else { 2 };
            let mut payload = vec![u8::from(is_unasked)];
            payload.extend_from_slice(&version.to_le_bytes());
            self.send("sendcmpct", &payload)?;
        }
        Ok(())
    }

    /// Serves a `getdata`.
    fn give(&self, payload: &[u8], now_s: f64) -> Result<(), PeerError> {
        let Some(entries) = wire::read_inventory(payload) else { return Ok(()) };
        let mut unknown = Vec::new();
        for (kind, hash) in entries {
            let found = self.lock().block.clone();
            let Some(block) = found else { continue };
            match kind & !wire::WITNESS_FLAG {
                wire::INV_TX | wire::INV_WTX => {
                    if let Some(at) = block.find(&hash) {
                        self.lock().ask(at);
                        let sent_s = self.send("tx", block.tx(at))?;
                        self.lock().note_tx(at, sent_s);
                    } else {
                        unknown.push((kind, hash));
                    }
                }
                wire::INV_BLOCK if block.hash == hash && self.lock().is_open => {
                    self.lock().stamps.asked_at_s.get_or_insert(now_s);
                    let sent_s = self.send("block", &block.raw)?;
                    self.lock().stamps.block_at_s.get_or_insert(sent_s);
                }
                wire::INV_COMPACT_BLOCK if block.hash == hash && self.lock().is_open => {
                    self.lock().stamps.asked_at_s.get_or_insert(now_s);
                    let prefilled = self.lock().prefilled.clone();
                    let sent_s = self.send("cmpctblock", &block.compact(NONCE, &prefilled))?;
                    self.lock().stamps.compact_at_s.get_or_insert(sent_s);
                }
                _ => {}
            }
        }
        if unknown.is_empty() {
            return Ok(());
        }
        // Without a reply the node waits for a minute before it requests again.
        self.send("notfound", &wire::inventory(&unknown)).map(drop)
    }

    fn give_missing(&self, payload: &[u8], now_s: f64) -> Result<(), PeerError> {
        let Some(block) = self.lock().block.clone() else { return Ok(()) };
        let Some((hash, wanted)) = wire::compact::read_get_block_txn(payload, block.txs.len())
        else {
            return Ok(());
        };
        if hash != block.hash {
            return Ok(());
        }
        {
            let mut talk = self.lock();
            talk.stamps.missing_asked_at_s.get_or_insert(now_s);
            talk.stamps.missing = wanted.len() as u64;
            talk.stamps.missing_bytes = wanted.iter().map(|at| block.tx(*at).len() as u64).sum();
        }
        let missing = wire::compact::block_txn(&hash, &block.raw, &block.txs, &wanted);
        let sent_s = self.send("blocktxn", &missing)?;
        self.lock().stamps.missing_sent_at_s.get_or_insert(sent_s);
        Ok(())
    }

    /// True if the node selected this peer for unsolicited compact blocks; it ignores others (Core `net_processing.cpp`,
    /// CMPCTBLOCK).
    pub(crate) fn is_chosen(&self) -> bool {
        self.lock().is_chosen
    }

    /// Sends an unsolicited compact block.
    pub(crate) fn push_compact(
        &self,
        block: &Ready,
        prefilled: &[usize],
    ) -> Result<f64, PeerError> {
        let payload = block.compact(NONCE, prefilled);
        self.open_block(block);
        let sent_s = self.send("cmpctblock", &payload)?;
        self.lock().stamps.compact_at_s = Some(sent_s);
        Ok(sent_s)
    }

    /// Announces a block by its header; `prefilled` applies to a requested compact block.
    pub(crate) fn announce_block(
        &self,
        block: &Ready,
        prefilled: &[usize],
    ) -> Result<f64, PeerError> {
        prefilled.clone_into(&mut self.lock().prefilled);
        self.open_block(block);
        self.send("headers", &wire::headers_payload(&[block.header()]))
    }
}

const AGENT: &str = "/assay-emit:0.1/";
/// Nonce of compact blocks (BIP152); constant over runs.
const NONCE: u64 = 0x6173_7361_7920_656d;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
const WRITE_TIMEOUT: Duration = Duration::from_mins(2);
const NAP: Duration = Duration::from_millis(100);
const SMALL_BYTES: usize = 64 << 10;
