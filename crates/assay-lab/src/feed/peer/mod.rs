//! A peer that serves a chain to one node over P2P: transactions, blocks and compact blocks. It connects to the node and so is
//! inbound for it.

mod talk;

use std::io::{self, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use assay_wire::p2p::{
    BlockTxsRequest, FrameHeader, Inventory, InventoryKind, Items, MESSAGE_BYTES_MAX, Message,
};
use assay_wire::{BlockHash, Header};

use self::talk::Talk;
use super::ready::Ready;
use crate::machine::clock::Clock;
use crate::p2p::{self, Magic};
use crate::results::SeenAs;

#[derive(Debug, thiserror::Error)]
pub(crate) enum PeerError {
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
    #[error("interrupted")]
    Interrupted,
    #[error("{0}")]
    Other(String),
}

impl PeerError {
    /// Neither RPC nor P2P is available.
    pub(crate) fn no_way() -> Self {
        Self::Other("there is no connection over which it could be sent".to_owned())
    }
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
        let connect = |error: io::Error| {
            PeerError::Other(format!("cannot connect to {address} as a peer: {error}"))
        };
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
        peer.link.send(&p2p::version(clock.start_unix_ms() | 1, AGENT))?;
        let seconds = CONNECT_TIMEOUT.as_secs();
        let shaken = peer.link.wait(CONNECT_TIMEOUT, "it shakes hands", &|| false, |talk| {
            talk.is_ready.then_some(())
        });
        match shaken {
            Err(PeerError::Stuck { .. } | PeerError::Closed { .. }) => {
                Err(PeerError::Other(format!(
                    "{address} has not shaken hands within {seconds} s; is it a node of this network?"
                )))
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
    pub(crate) fn lock(&self) -> MutexGuard<'_, Talk> {
        self.talk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a message; returns the time of its first byte.
    pub(crate) fn send(&self, message: &Message<'_>) -> Result<f64, PeerError> {
        let payload = message.payload();
        let head = FrameHeader::of(self.habits.magic, message.command(), &payload).to_bytes();
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let at_s = self.clock.now_s();
        // One write for a small message: two would make two packets.
        let written = if payload.len() <= SMALL_BYTES {
            writer.write_all(&[&head[..], &payload].concat())
        } else {
            writer.write_all(&head).and_then(|()| writer.write_all(&payload))
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

    /// Fails if the connection is closed.
    pub(crate) fn check(&self, stop: Stop<'_>) -> Result<(), PeerError> {
        if let Some(why) = &self.lock().closed {
            return Err(PeerError::Closed { why: why.clone() });
        }
        if stop() { Err(PeerError::Interrupted) } else { Ok(()) }
    }

    /// Announces transactions; the node requests the missing ones.
    pub(crate) fn announce_txs(&self, block: &Ready, places: &[usize]) -> Result<f64, PeerError> {
        let kind = if self.habits.is_cash { InventoryKind::TX } else { InventoryKind::WTX };
        let entry = |at: &usize| Inventory { kind, hash: block.name(*at) };
        let entries: Vec<Inventory> = places.iter().map(entry).collect();
        self.lock().announce(places);
        self.send(&Message::Inv(entries[..].into()))
    }

    /// Waits until the node has processed everything sent: it responds in order.
    pub(crate) fn pong(&self, patience: Duration, stop: Stop<'_>) -> Result<f64, PeerError> {
        let nonce = self.nonces.fetch_add(1, Ordering::Relaxed);
        self.send(&Message::Ping(nonce))?;
        self.wait(patience, "it works through what was sent", stop, |talk| {
            talk.pong.filter(|(answered, _)| *answered >= nonce).map(|(_, at_s)| at_s)
        })
    }

    /// Hashes of the node's active chain above a block.
    pub(crate) fn headers_above(
        &self,
        before: &BlockHash,
        patience: Duration,
        stop: Stop<'_>,
    ) -> Result<Vec<BlockHash>, PeerError> {
        self.lock().answer = None;
        self.send(&p2p::get_headers(before))?;
        self.wait(patience, "it tells its headers", stop, |talk| talk.answer.take())
    }

    /// Reads messages until the connection closes.
    fn listen(&self, mut stream: TcpStream) -> Result<(), PeerError> {
        let mut payload = Vec::new();
        loop {
            let header = p2p::read(&mut stream, self.habits.magic, MESSAGE_BYTES_MAX, &mut payload)
                .map_err(|error: io::Error| PeerError::Closed { why: error.to_string() })?;
            // A malformed message is not answered.
            if let Ok(message) = Message::parse(header.command, &payload) {
                self.answer(&message)?;
            }
            self.changed.notify_all();
        }
    }

    fn answer(&self, message: &Message<'_>) -> Result<(), PeerError> {
        let now_s = self.clock.now_s();
        match *message {
            Message::Version(_) => self.shake_hands()?,
            Message::Verack => self.lock().is_ready = true,
            Message::Ping(nonce) => drop(self.send(&Message::Pong(nonce))?),
            Message::Pong(nonce) => self.lock().pong = Some((nonce, now_s)),
            Message::GetHeaders(locator) => {
                let headers = self.lock().headers_for(&locator);
                self.send(&Message::Headers(headers[..].into()))?;
            }
            Message::GetData(entries) => self.give(entries, now_s)?,
            Message::GetBlockTxs(payload) => self.give_missing(payload, now_s)?,
            Message::Headers(headers) => {
                let hashes: Vec<BlockHash> = headers.iter().map(|header| header.hash()).collect();
                let mut talk = self.lock();
                talk.see(&hashes, SeenAs::Headers, now_s);
                talk.answer = Some(hashes);
            }
            Message::Inv(entries) => {
                let is_block = |entry: &Inventory| entry.kind.base() == InventoryKind::BLOCK;
                let blocks = entries.iter().filter(is_block);
                let hashes: Vec<BlockHash> = blocks.map(|entry| BlockHash(entry.hash)).collect();
                self.lock().see(&hashes, SeenAs::Inv, now_s);
            }
            Message::SendCompact { announce, .. } => self.lock().is_chosen = announce == 1,
            Message::CompactBlock(payload) => {
                if let Some(header) = payload.first_chunk() {
                    let hash = Header::parse(header).hash();
                    self.lock().see(&[hash], SeenAs::Compact, now_s);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn shake_hands(&self) -> Result<(), PeerError> {
        if !self.habits.is_cash {
            self.send(&Message::WtxidRelay)?;
        }
        self.send(&Message::Verack)?;
        self.send(&Message::SendHeaders)?;
        if let Some(is_unasked) = self.habits.compact {
            let (announce, version) =
                (u8::from(is_unasked), if self.habits.is_cash { 1 } else { 2 });
            self.send(&Message::SendCompact { announce, version })?;
        }
        Ok(())
    }

    /// Serves a `getdata`.
    fn give(&self, entries: Items<'_, Inventory>, now_s: f64) -> Result<(), PeerError> {
        let mut unknown = Vec::new();
        for entry in entries.iter() {
            let found = self.lock().block.clone();
            let Some(block) = found else { continue };
            let is_open = || block.hash.0 == entry.hash && self.lock().is_open;
            match entry.kind.base() {
                InventoryKind::TX | InventoryKind::WTX => {
                    if let Some(at) = block.find(&entry.hash) {
                        self.lock().ask(at);
                        let sent_s = self.send(&Message::Tx(block.tx(at)))?;
                        self.lock().note_tx(at, sent_s);
                    } else {
                        unknown.push(entry);
                    }
                }
                InventoryKind::BLOCK if is_open() => {
                    self.lock().stamps.relay.asked_at_s.get_or_insert(now_s);
                    let sent_s = self.send(&Message::Block(block.bytes()))?;
                    self.lock().stamps.relay.block_at_s.get_or_insert(sent_s);
                }
                InventoryKind::COMPACT_BLOCK if is_open() => {
                    self.lock().stamps.relay.asked_at_s.get_or_insert(now_s);
                    let prefilled = self.lock().prefilled.clone();
                    let payload = block.compact(NONCE, &prefilled);
                    let sent_s = self.send(&Message::CompactBlock(&payload))?;
                    self.lock().stamps.relay.compact_at_s.get_or_insert(sent_s);
                }
                _ => {}
            }
        }
        if unknown.is_empty() {
            return Ok(());
        }
        // Without a reply the node waits for a minute before it requests again.
        self.send(&Message::NotFound(unknown[..].into())).map(drop)
    }

    fn give_missing(&self, payload: &[u8], now_s: f64) -> Result<(), PeerError> {
        let Some(block) = self.lock().block.clone() else { return Ok(()) };
        let count = block.tx_count();
        let is_inside = |index: &u32| (*index as usize) < count;
        let request = match BlockTxsRequest::parse(payload, count) {
            Ok(request) if request.block == block.hash => request,
            _ => return Ok(()),
        };
        if !request.indexes.iter().all(is_inside) {
            return Ok(());
        }
        let missing = block.missing(&request.indexes);
        {
            let mut talk = self.lock();
            talk.stamps.relay.missing_asked_at_s.get_or_insert(now_s);
            talk.stamps.relay.missing = request.indexes.len() as u64;
            let length = |index: &u32| block.tx(*index as usize).len() as u64;
            talk.stamps.relay.missing_bytes = request.indexes.iter().map(length).sum();
        }
        let sent_s = self.send(&Message::BlockTxs(&missing))?;
        self.lock().stamps.relay.missing_sent_at_s.get_or_insert(sent_s);
        Ok(())
    }

    /// Sends an unsolicited compact block.
    pub(crate) fn push_compact(
        &self,
        block: &Ready,
        prefilled: &[usize],
    ) -> Result<f64, PeerError> {
        let payload = block.compact(NONCE, prefilled);
        self.lock().open_block(block.header());
        let sent_s = self.send(&Message::CompactBlock(&payload))?;
        self.lock().stamps.relay.compact_at_s = Some(sent_s);
        Ok(sent_s)
    }

    /// Announces a block by its header; `prefilled` applies to a requested compact block.
    pub(crate) fn announce_block(
        &self,
        block: &Ready,
        prefilled: &[usize],
    ) -> Result<f64, PeerError> {
        prefilled.clone_into(&mut self.lock().prefilled);
        self.lock().open_block(block.header());
        self.send(&Message::Headers([block.header()][..].into()))
    }
}

const AGENT: &str = "/assay-emit:0.1/";
/// Nonce of compact blocks (BIP152); constant over runs.
const NONCE: u64 = 0x6173_7361_7920_656d;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
const WRITE_TIMEOUT: Duration = Duration::from_mins(2);
const NAP: Duration = Duration::from_millis(100);
const SMALL_BYTES: usize = 64 << 10;
