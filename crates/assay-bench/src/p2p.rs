//! Measures the speed at which a node serves blocks to a peer.
//!
//! The client does minimal work, so that the source is the bottleneck: it hashes blocks for their checksum, identifies them by
//! their header, and discards them. A single thread does this, which limits the measurable speed: it hashes every byte, as every
//! peer must.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use assay_consensus::params::ChainParams;
use assay_wire::p2p::{
    FrameError, FrameHeader, HEADERS_MAX, Inventory, InventoryKind, Items, LARGE_MESSAGE_BYTES_MAX,
    Locator, Message, NetAddress, Version,
};
use assay_wire::{BlockHash, Header, ParseError};
use serde::Serialize;

#[derive(Clone, Debug)]
pub struct P2pOptions {
    /// The source, as `HOST:PORT`.
    pub address: String,
    pub chain: String,
    /// Duration of block requests.
    pub time: Duration,
    pub window: u32,
    pub with_witnesses: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum P2pError {
    #[error("unknown chain {name:?}; known are {}", ChainParams::NAMES.join(", "))]
    Chain { name: String },
    #[error("cannot connect to {address}: {source}")]
    Connect { address: String, source: io::Error },
    #[error("the connection to the source broke: {0}")]
    Io(#[from] io::Error),
    /// Received bytes are no message, or the checksum is wrong.
    #[error("not a message: {0}")]
    Frame(#[from] FrameError),
    #[error("message {command}: {source}")]
    Payload {
        command: String,
        /// Parser error.
        source: ParseError,
    },
    /// The source has nothing but the genesis block.
    #[error("the source has no headers")]
    Empty,
    #[error("header {hash} does not follow the one before it")]
    Unconnected { hash: BlockHash },
    /// An unrequested block, or one out of order.
    #[error("block {found} instead of {expected}")]
    WrongBlock { expected: BlockHash, found: BlockHash },
    #[error("the source does not give a block of its own chain")]
    NotFound,
}

#[derive(Clone, Debug, Serialize)]
pub struct P2pReport {
    pub user_agent: String,
    /// Protocol version of the source.
    pub version: i32,
    /// Headers of its chain, without the genesis block.
    pub headers: usize,
    /// Hash of the last header.
    pub tip: String,
    pub headers_s: f64,
    /// Received and checked blocks.
    pub blocks: u64,
    pub bytes: u64,
    /// Seconds of the block download.
    pub blocks_s: f64,
    /// Megabytes (of 1,000,000 bytes) of blocks per second.
    pub mb_per_s: f64,
    pub blocks_per_s: f64,
    pub window: u32,
}

impl P2pReport {
    pub fn text(&self) -> String {
        let Self { user_agent, version, headers, tip, headers_s, .. } = self;
        let Self { blocks, bytes, blocks_s, mb_per_s, blocks_per_s, window, .. } = self;
        let lines = [
            format!("source    {user_agent} protocol {version}"),
            format!("headers   {headers} in {:.1} ms, tip {tip}", headers_s * 1e3),
            format!("blocks    {blocks}, every checksum and hash right, {window} under way"),
            format!("bytes     {bytes} in {blocks_s:.3} s"),
            format!("rate      {mb_per_s:.0} MB/s, {blocks_per_s:.0} blocks/s"),
        ];
        lines.join("\n") + "\n"
    }
}

/// Requests blocks until the time is over or `stop` is set.
///
/// # Errors
/// When the source cannot be reached, or violates the protocol.
pub fn run(options: &P2pOptions, stop: &AtomicBool) -> Result<P2pReport, P2pError> {
    let params = ChainParams::by_name(&options.chain);
    let params = params.ok_or_else(|| P2pError::Chain { name: options.chain.clone() })?;
    let mut source = Source::connect(&options.address, &params)?;
    let (user_agent, version) = source.shake_hands()?;
    let start = Instant::now();
    let chain = source.headers(params.genesis_hash)?;
    let headers_s = start.elapsed().as_secs_f64();
    let tip = chain.last().ok_or(P2pError::Empty)?.to_string();
    let kind =
        if options.with_witnesses { InventoryKind::WITNESS_BLOCK } else { InventoryKind::BLOCK };

    let mut wanted = chain.iter().cycle();
    let mut under_way = VecDeque::new();
    let (mut blocks, mut bytes) = (0, 0);
    let start = Instant::now();
    loop {
        let is_over = start.elapsed() >= options.time || stop.load(Ordering::Relaxed);
        if is_over && under_way.is_empty() {
            break;
        }
        // Half a window per request: the source always has work, with few requests.
        let window = options.window as usize;
        if !is_over && under_way.len() <= window / 2 {
            let more = window - under_way.len();
            let asked: Vec<BlockHash> = wanted.by_ref().take(more).copied().collect();
            let entry = |hash: &BlockHash| Inventory { kind, hash: hash.0 };
            let entries: Vec<Inventory> = asked.iter().map(entry).collect();
            source.send(&Message::GetData(entries[..].into()))?;
            under_way.extend(asked);
        }
        bytes += source.block(&under_way.pop_front().expect("something is under way"))? as u64;
        blocks += 1;
    }
    let blocks_s = start.elapsed().as_secs_f64();
    Ok(P2pReport {
        user_agent,
        version,
        headers: chain.len(),
        tip,
        headers_s,
        blocks,
        bytes,
        blocks_s,
        mb_per_s: bytes as f64 / 1e6 / blocks_s,
        blocks_per_s: blocks as f64 / blocks_s,
        window: options.window,
    })
}

struct Source {
    stream: BufReader<TcpStream>,
    magic: [u8; 4],
    message_bytes_max: u32,
    payload: Vec<u8>,
}

impl Source {
    fn connect(address: &str, params: &ChainParams) -> Result<Self, P2pError> {
        let failed = |source| P2pError::Connect { address: address.to_owned(), source };
        let stream = TcpStream::connect(address).map_err(failed)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let largest = u32::try_from(params.block_bytes_max()).unwrap_or(u32::MAX);
        Ok(Self {
            stream: BufReader::with_capacity(READ_BYTES, stream),
            magic: params.magic,
            message_bytes_max: largest.max(LARGE_MESSAGE_BYTES_MAX),
            payload: Vec::new(),
        })
    }

    fn send(&mut self, message: &Message<'_>) -> io::Result<()> {
        self.stream.get_mut().write_all(&message.to_bytes(self.magic))
    }

    /// Reads the next message into the buffer; answers pings.
    fn receive(&mut self) -> Result<FrameHeader, P2pError> {
        loop {
            let mut head = [0; FrameHeader::SIZE];
            self.stream.read_exact(&mut head)?;
            let header = FrameHeader::parse(&head, self.magic, self.message_bytes_max)?;
            let mut left = header.length as usize;
            self.payload.clear();
            // Grows with the received bytes: a length alone reserves no memory.
            while left > 0 {
                let piece = self.stream.fill_buf()?;
                if piece.is_empty() {
                    return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
                }
                let taken = piece.len().min(left);
                self.payload.extend_from_slice(&piece[..taken]);
                self.stream.consume(taken);
                left -= taken;
            }
            header.check(&self.payload)?;
            if header.command.as_str() != "ping" {
                return Ok(header);
            }
            if let Message::Ping(nonce) = parse(&header, &self.payload)? {
                self.send(&Message::Pong(nonce))?;
            }
        }
    }

    fn shake_hands(&mut self) -> Result<(String, i32), P2pError> {
        self.send(&Message::Version(Version {
            version: 70016,
            services: 0,
            time: 0,
            receiver: NetAddress::default(),
            sender: NetAddress::default(),
            nonce: u64::from(std::process::id()),
            user_agent: concat!("/assay-load:", env!("CARGO_PKG_VERSION"), "/").as_bytes(),
            start_height: 0,
            relay: Some(false),
        }))?;
        let mut about = (String::new(), 0);
        loop {
            let header = self.receive()?;
            match parse(&header, &self.payload)? {
                Message::Version(version) => {
                    about = (version.user_agent.escape_ascii().to_string(), version.version);
                }
                Message::Verack => {
                    self.send(&Message::Verack)?;
                    return Ok(about);
                }
                _ => {}
            }
        }
    }

    /// Hashes of the whole chain above the genesis block.
    fn headers(&mut self, genesis: BlockHash) -> Result<Vec<BlockHash>, P2pError> {
        let mut chain: Vec<BlockHash> = Vec::new();
        loop {
            let last = [chain.last().copied().unwrap_or(genesis)];
            let hashes: Items<'_, BlockHash> = last[..].into();
            let locator = Locator { version: 70016, hashes, stop: BlockHash::ZERO };
            self.send(&Message::GetHeaders(locator))?;
            let count = loop {
                let header = self.receive()?;
                let Message::Headers(headers) = parse(&header, &self.payload)? else { continue };
                for header in headers.iter() {
                    let hash = header.hash();
                    if header.prev_block != chain.last().copied().unwrap_or(genesis) {
                        return Err(P2pError::Unconnected { hash });
                    }
                    chain.push(hash);
                }
                break headers.len();
            };
            if count < HEADERS_MAX {
                return Ok(chain);
            }
        }
    }

    /// Waits for the block with this hash; returns its length.
    fn block(&mut self, expected: &BlockHash) -> Result<usize, P2pError> {
        loop {
            let header = self.receive()?;
            match header.command.as_str() {
                "block" => {}
                "notfound" => return Err(P2pError::NotFound),
                _ => continue,
            }
            let head = self.payload.first_chunk::<{ Header::SIZE }>();
            let found = head.map_or(BlockHash::ZERO, |head| Header::parse(head).hash());
            if found != *expected {
                return Err(P2pError::WrongBlock { expected: *expected, found });
            }
            return Ok(self.payload.len());
        }
    }
}

fn parse<'a>(header: &FrameHeader, payload: &'a [u8]) -> Result<Message<'a>, P2pError> {
    let command = header.command;
    Message::parse(command, payload)
        .map_err(|source| P2pError::Payload { command: command.to_string(), source })
}

/// Time limit for a source that is validating.
const PATIENCE: Duration = Duration::from_mins(5);
const READ_BYTES: usize = 256 << 10;
