//! Block server: serves headers and blocks to peers from an archive, without an engine. It validates nothing,
//! accepts nothing, and answers only sync requests.
//!
//! Each peer has one thread, which reads a request and writes the response. Further requests wait in the socket.

use std::collections::HashMap;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use assay_engine::{Block, ChainParams};
use assay_wire::p2p::{
    FrameHeader, HEADERS_MAX, Inventory, InventoryKind, Locator, MESSAGE_BYTES_MAX, Message,
    NetAddress, Version,
};
use assay_wire::{BlockHash, Encoding, Header};

use super::peer_writer::{HASHES_MAX, entry_of, put_stripped};
use super::rng::nonce;
use super::upload_rate::Rate;
use super::{NODE_BITCOIN_CASH, NODE_NETWORK, NODE_WITNESS, PROTOCOL_VERSION};

/// Blocks of one chain by height.
pub trait BlockArchive: Send + Sync {
    fn tip(&self) -> u32;
    /// Hash of the block at a height from 1 to the tip.
    fn hash(&self, height: u32) -> BlockHash;
    /// # Errors
    /// Read failure.
    fn header(&self, height: u32) -> io::Result<[u8; Header::SIZE]>;
    /// Replaces `raw` with the block.
    ///
    /// # Errors
    /// Read failure.
    fn read(&self, height: u32, raw: &mut Vec<u8>) -> io::Result<()>;
}

#[derive(Clone, Debug)]
pub struct ServeConfig {
    pub address: SocketAddr,
    pub params: Arc<ChainParams>,
    /// Upload limit for all peers together; `None` for no limit.
    pub bytes_per_s: Option<u64>,
}

/// Serves `archive` until `stop`; calls `is_up` with the address once it listens.
///
/// # Errors
/// Failure to listen on the address.
pub fn serve_blocks(
    archive: Arc<dyn BlockArchive>,
    config: &ServeConfig,
    stop: &Arc<AtomicBool>,
    is_up: impl FnOnce(SocketAddr),
) -> io::Result<()> {
    let listener = TcpListener::bind(config.address)?;
    listener.set_nonblocking(true)?;
    let own = (config.params.genesis_hash, 0);
    let blocks = (1..=archive.tip()).map(|height| (archive.hash(height), height));
    let shared = Arc::new(Shared {
        heights: std::iter::once(own).chain(blocks).collect(),
        archive,
        params: Arc::clone(&config.params),
        rate: Rate::new(config.bytes_per_s),
        peers: AtomicUsize::new(0),
        stop: Arc::clone(stop),
    });
    is_up(listener.local_addr()?);
    while !stop.load(Ordering::Relaxed) {
        match listener.accept() {
            Ok((stream, address)) => shared.enter(stream, address),
            // No connection pending, or out of file descriptors: an immediate retry would spin.
            Err(_) => thread::sleep(PAUSE),
        }
    }
    Ok(())
}

struct Shared {
    archive: Arc<dyn BlockArchive>,
    heights: HashMap<BlockHash, u32>,
    params: Arc<ChainParams>,
    rate: Rate,
    peers: AtomicUsize,
    stop: Arc<AtomicBool>,
}

impl Shared {
    fn enter(self: &Arc<Self>, stream: TcpStream, address: SocketAddr) {
        if self.peers.fetch_add(1, Ordering::Relaxed) >= PEERS_MAX {
            self.peers.fetch_sub(1, Ordering::Relaxed);
            tracing::warn!("Peer {address} is turned away: {PEERS_MAX} are connected");
            return;
        }
        let shared = Arc::clone(self);
        thread::spawn(move || {
            let mut session = Session {
                stream,
                shared: &shared,
                resume_after: None,
                raw: Vec::new(),
                out: Vec::new(),
            };
            let ended = session.go_on();
            shared.peers.fetch_sub(1, Ordering::Relaxed);
            match ended {
                Err(error) if !is_farewell(&error) => tracing::warn!("Peer {address}: {error}"),
                _ => tracing::info!("Peer {address} is gone"),
            }
        });
    }

    /// At most `count` heights above the first known hash of `locator` (Core's `FindForkInGlobalIndex`), up to `stop`.
    fn above(&self, locator: &Locator<'_>, count: usize) -> std::ops::RangeInclusive<u32> {
        let stop = self.heights.get(&locator.stop).copied();
        // Without a locator, `stop` names a single header (Core `net_processing.cpp`, GETHEADERS).
        if locator.hashes.is_empty()
            && let Some(height) = stop.filter(|height| *height > 0)
        {
            return height..=height;
        }
        let known = locator.hashes.iter().find_map(|hash| self.heights.get(&hash).copied());
        let first = known.unwrap_or(0) + 1;
        let last = (first - 1).saturating_add(count as u32).min(self.archive.tip());
        first..=stop.filter(|stop| *stop >= first).map_or(last, |stop| last.min(stop))
    }
}

struct Session<'a> {
    stream: TcpStream,
    shared: &'a Shared,
    /// A request for this block triggers another `inv` (Core's `m_continuation_block`).
    resume_after: Option<BlockHash>,
    raw: Vec<u8>,
    out: Vec<u8>,
}

impl Session<'_> {
    /// Runs until either side closes. Disconnects encrypted handshakes; such peers reconnect without encryption.
    fn go_on(&mut self) -> io::Result<()> {
        self.stream.set_nonblocking(false)?;
        self.stream.set_nodelay(true)?;
        // A peer that neither sends nor reads must not keep its slot.
        self.stream.set_read_timeout(Some(SILENT_MAX))?;
        self.stream.set_write_timeout(Some(SILENT_MAX))?;
        loop {
            let mut head = [0; FrameHeader::SIZE];
            self.stream.read_exact(&mut head)?;
            let header = FrameHeader::parse(&head, self.shared.params.magic, MESSAGE_BYTES_MAX)
                .map_err(invalid)?;
            let mut payload = vec![0; header.length as usize];
            self.stream.read_exact(&mut payload)?;
            header.check(&payload).map_err(invalid)?;
            match Message::parse(header.command, &payload).map_err(invalid)? {
                Message::Version(_) => self.greet()?,
                Message::Ping(nonce) => self.send(&Message::Pong(nonce))?,
                Message::GetHeaders(locator) => self.headers(&locator)?,
                Message::GetBlocks(locator) => self.hashes(&locator)?,
                Message::GetData(entries) => {
                    entries.iter().try_for_each(|entry| self.data(&entry))?;
                }
                _ => {}
            }
        }
    }

    fn greet(&mut self) -> io::Result<()> {
        let kind = match self.shared.params.encoding {
            Encoding::Segwit => NODE_WITNESS,
            Encoding::Legacy => NODE_BITCOIN_CASH,
        };
        let services = NODE_NETWORK | kind;
        let now_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
        let version = Version {
            version: PROTOCOL_VERSION,
            services,
            time: now_s.cast_signed(),
            receiver: NetAddress::default(),
            sender: NetAddress { services, ..NetAddress::default() },
            nonce: nonce()?,
            user_agent: concat!("/assay-blocks:", env!("CARGO_PKG_VERSION"), "/").as_bytes(),
            start_height: self.shared.archive.tip().cast_signed(),
            relay: Some(false),
        };
        self.send(&Message::Version(version))?;
        self.send(&Message::Verack)
    }

    fn headers(&mut self, locator: &Locator<'_>) -> io::Result<()> {
        let heights = self.shared.above(locator, HEADERS_MAX);
        let archive = &self.shared.archive;
        let read = |height| -> io::Result<Header> { Ok(Header::parse(&archive.header(height)?)) };
        let headers = heights.map(read).collect::<io::Result<Vec<Header>>>()?;
        self.send(&Message::Headers(headers[..].into()))
    }

    /// For peers that request hashes first, such as btcd and all programs before 2015.
    fn hashes(&mut self, locator: &Locator<'_>) -> io::Result<()> {
        let shared = self.shared;
        let heights = shared.above(locator, HASHES_MAX);
        let hashes: Vec<_> = heights.map(|height| shared.archive.hash(height)).collect();
        self.resume_after = hashes.get(HASHES_MAX - 1).copied();
        if hashes.is_empty() {
            return Ok(());
        }
        let entries: Vec<_> = hashes.iter().map(entry_of).collect();
        self.send(&Message::Inv(entries[..].into()))
    }

    fn data(&mut self, entry: &Inventory) -> io::Result<()> {
        let (shared, hash) = (self.shared, BlockHash(entry.hash));
        let height = match shared.heights.get(&hash) {
            Some(height) if *height > 0 && BLOCKS.contains(&entry.kind) => *height,
            _ => return self.send(&Message::NotFound([*entry][..].into())),
        };
        let params = &shared.params;
        shared.archive.read(height, &mut self.raw)?;
        if entry.kind == InventoryKind::BLOCK
            && params.encoding == Encoding::Segwit
            && params.segwit_active(height)
        {
            // For peers without BIP144.
            let raw = std::mem::take(&mut self.raw);
            let block = Block::parse(raw, params.encoding).map_err(invalid)?;
            put_stripped(&block, &mut self.raw);
        }
        let raw = std::mem::take(&mut self.raw);
        self.send(&Message::Block(&raw))?;
        self.raw = raw;
        if self.resume_after.take_if(|last| *last == hash).is_some() {
            let tip = shared.archive.hash(shared.archive.tip());
            self.send(&Message::Inv([entry_of(&tip)][..].into()))?;
        }
        Ok(())
    }

    fn send(&mut self, message: &Message<'_>) -> io::Result<()> {
        let shared = self.shared;
        self.out.clear();
        message.write(shared.params.magic, &mut self.out);
        for piece in self.out.chunks(shared.rate.piece(self.out.len())) {
            if !shared.rate.pay(piece.len(), || shared.stop.load(Ordering::Relaxed)) {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            self.stream.write_all(piece)?;
        }
        Ok(())
    }
}

fn invalid(error: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

fn is_farewell(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof)
}

/// Inventory kinds answered with a block.
const BLOCKS: [InventoryKind; 3] =
    [InventoryKind::BLOCK, InventoryKind::WITNESS_BLOCK, InventoryKind::COMPACT_BLOCK];
const PEERS_MAX: usize = 64;
/// As Core's `TIMEOUT_INTERVAL` (`net.h`); peers ping every two minutes.
const SILENT_MAX: Duration = Duration::from_mins(20);
const PAUSE: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests {
    use super::*;
    use assay_wire::p2p::Items;

    /// Chain of 600 headers above genesis, with empty blocks.
    struct Headers(Vec<Header>);

    impl Headers {
        fn new(params: &ChainParams) -> Self {
            let (mut headers, mut prev) = (Vec::new(), params.genesis_hash);
            for nonce in 0..600 {
                let header = Header {
                    version: 1,
                    prev_block: prev,
                    merkle_root: [0; 32],
                    time: 0,
                    bits: 0,
                    nonce,
                };
                prev = header.hash();
                headers.push(header);
            }
            Self(headers)
        }
    }

    impl BlockArchive for Headers {
        fn tip(&self) -> u32 {
            self.0.len() as u32
        }

        fn hash(&self, height: u32) -> BlockHash {
            self.0[height as usize - 1].hash()
        }

        fn header(&self, height: u32) -> io::Result<[u8; Header::SIZE]> {
            Ok(self.0[height as usize - 1].to_bytes())
        }

        fn read(&self, height: u32, raw: &mut Vec<u8>) -> io::Result<()> {
            raw.clear();
            raw.extend(self.header(height)?);
            Ok(())
        }
    }

    struct Asker {
        stream: TcpStream,
        magic: [u8; 4],
    }

    impl Asker {
        fn ask(&mut self, message: &Message<'_>) {
            self.stream.write_all(&message.to_bytes(self.magic)).expect("written");
        }

        fn next<T>(&mut self, use_it: impl FnOnce(Message<'_>) -> T) -> T {
            let mut head = [0; FrameHeader::SIZE];
            self.stream.read_exact(&mut head).expect("a header");
            let header = FrameHeader::parse(&head, self.magic, MESSAGE_BYTES_MAX).expect("valid");
            let mut payload = vec![0; header.length as usize];
            self.stream.read_exact(&mut payload).expect("a payload");
            header.check(&payload).expect("its checksum");
            use_it(Message::parse(header.command, &payload).expect("a message"))
        }

        fn headers(&mut self, hashes: &[BlockHash], stop: BlockHash) -> Vec<Header> {
            self.ask(&Message::GetHeaders(Locator { version: 0, hashes: hashes.into(), stop }));
            self.next(|message| match message {
                Message::Headers(headers) => headers.iter().collect(),
                other => panic!("{other:?}"),
            })
        }

        fn inv(&mut self) -> Vec<BlockHash> {
            let hashes = |items: Items<'_, Inventory>| {
                items.iter().map(|entry| BlockHash(entry.hash)).collect()
            };
            self.next(|message| match message {
                Message::Inv(items) => hashes(items),
                other => panic!("{other:?}"),
            })
        }
    }

    #[test]
    fn answers_sync_requests_only() {
        let params = Arc::new(ChainParams::by_name("regtest").expect("known"));
        let archive = Arc::new(Headers::new(&params));
        let all = archive.0.clone();
        let hash = |height: usize| all[height - 1].hash();
        let stop = Arc::new(AtomicBool::new(false));
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let config = ServeConfig { address, params: Arc::clone(&params), bytes_per_s: None };
        let (up, is_up) = std::sync::mpsc::channel();
        let stopping = Arc::clone(&stop);
        let server = thread::spawn(move || {
            serve_blocks(archive, &config, &stopping, |address| up.send(address).expect("heard"))
        });
        let stream = TcpStream::connect(is_up.recv().expect("an address")).expect("it listens");
        let mut asker = Asker { stream, magic: params.magic };

        asker.ask(&Message::GetAddr);
        asker.ask(&Message::Ping(7));
        asker.next(|message| assert_eq!(message, Message::Pong(7)));
        assert_eq!(asker.headers(&[params.genesis_hash], BlockHash::ZERO), all);
        assert_eq!(asker.headers(&[BlockHash([9; 32])], hash(3)), all[..3]);
        assert!(asker.headers(&[hash(600), hash(1)], BlockHash::ZERO).is_empty());
        assert_eq!(asker.headers(&[], hash(9)), [all[8]]);

        // Hashes come in batches; a request for the last block of one triggers the tip, so that the peer requests more.
        let from = [params.genesis_hash];
        let hashes = from[..].into();
        asker.ask(&Message::GetBlocks(Locator { version: 0, hashes, stop: BlockHash::ZERO }));
        let found = asker.inv();
        assert_eq!((found.len(), found[499]), (HASHES_MAX, hash(500)));
        let wanted = [InventoryKind::WITNESS_BLOCK, InventoryKind::TX]
            .map(|kind| Inventory { kind, hash: hash(500).0 });
        asker.ask(&Message::GetData(wanted[..].into()));
        asker.next(|message| assert_eq!(message, Message::Block(&all[499].to_bytes())));
        assert_eq!(asker.inv(), [hash(600)]);
        asker.next(|message| assert_eq!(message, Message::NotFound(wanted[1..].into())));

        // Another chain's magic, or the encrypted transport.
        asker.stream.write_all(&[0xaa; FrameHeader::SIZE]).expect("written");
        assert_eq!(asker.stream.read(&mut [0]).expect("closed"), 0);
        stop.store(true, Ordering::Relaxed);
        server.join().expect("it ends").expect("without an error");
    }
}
