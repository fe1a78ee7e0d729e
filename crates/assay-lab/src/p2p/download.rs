//! Measures the speed at which a node serves blocks to a peer.
//!
//! The client does minimal work, so that the source is the bottleneck: it hashes blocks for their checksum, identifies them by
//! their header, and discards them. A single thread does this, which limits the measurable speed: it hashes every byte, as every
//! peer must.

use std::collections::VecDeque;
use std::io::{self, BufReader, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use assay_wire::p2p::{
    Command, HEADERS_MAX, Inventory, InventoryKind, LARGE_MESSAGE_BYTES_MAX, Message, NetAddress,
    Version,
};
use assay_wire::{BlockHash, Header};
use serde::Serialize;

use super::{Magic, VERSION, get_headers, read};

#[derive(Clone, Debug)]
pub struct P2pOptions {
    /// The source, as `HOST:PORT`.
    pub address: String,
    /// First bytes of every message of the chain.
    pub magic: Magic,
    pub genesis: BlockHash,
    /// Maximum size of a block of the chain.
    pub block_bytes_max: u64,
    /// Duration of block requests.
    pub time: Duration,
    pub window: u32,
    pub with_witnesses: bool,
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
pub fn run(options: &P2pOptions, stop: &AtomicBool) -> anyhow::Result<P2pReport> {
    let mut source = Source::connect(options)?;
    let (user_agent, version) = source.shake_hands()?;
    let start = Instant::now();
    let chain = source.headers(options.genesis)?;
    let headers_s = start.elapsed().as_secs_f64();
    let tip = chain.last().context("the source has no headers")?.to_string();
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
    magic: Magic,
    message_bytes_max: u32,
    payload: Vec<u8>,
}

impl Source {
    fn connect(options: &P2pOptions) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(&options.address)
            .with_context(|| format!("cannot connect to {}", options.address))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let largest = u32::try_from(options.block_bytes_max).unwrap_or(u32::MAX);
        Ok(Self {
            stream: BufReader::with_capacity(READ_BYTES, stream),
            magic: options.magic,
            message_bytes_max: largest.max(LARGE_MESSAGE_BYTES_MAX),
            payload: Vec::new(),
        })
    }

    fn send(&mut self, message: &Message<'_>) -> anyhow::Result<()> {
        self.stream.get_mut().write_all(&message.to_bytes(self.magic)).context(BROKEN)
    }

    /// Reads the next message into the buffer and verifies its checksum; answers pings.
    fn receive(&mut self) -> anyhow::Result<Command> {
        loop {
            let limit = self.message_bytes_max;
            let header =
                read(&mut self.stream, self.magic, limit, &mut self.payload).map_err(|error| {
                    let is_message = error.kind() != io::ErrorKind::InvalidData;
                    let text = if is_message { BROKEN } else { "not a message" };
                    anyhow::Error::new(error).context(text)
                })?;
            header.check(&self.payload).context("not a message")?;
            if header.command.as_str() != "ping" {
                return Ok(header.command);
            }
            if let Message::Ping(nonce) = parse(header.command, &self.payload)? {
                self.send(&Message::Pong(nonce))?;
            }
        }
    }

    fn shake_hands(&mut self) -> anyhow::Result<(String, i32)> {
        self.send(&Message::Version(Version {
            version: VERSION as i32,
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
            let command = self.receive()?;
            match parse(command, &self.payload)? {
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
    fn headers(&mut self, genesis: BlockHash) -> anyhow::Result<Vec<BlockHash>> {
        let mut chain: Vec<BlockHash> = Vec::new();
        loop {
            self.send(&get_headers(chain.last().unwrap_or(&genesis)))?;
            let count = loop {
                let command = self.receive()?;
                let Message::Headers(headers) = parse(command, &self.payload)? else { continue };
                for header in headers.iter() {
                    let hash = header.hash();
                    ensure!(
                        header.prev_block == *chain.last().unwrap_or(&genesis),
                        "header {hash} does not follow the one before it"
                    );
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
    fn block(&mut self, expected: &BlockHash) -> anyhow::Result<usize> {
        loop {
            match self.receive()?.as_str() {
                "block" => {}
                "notfound" => bail!("the source does not give a block of its own chain"),
                _ => continue,
            }
            let head = self.payload.first_chunk();
            let found = head.map_or(BlockHash::ZERO, |head| Header::parse(head).hash());
            ensure!(found == *expected, "block {found} instead of {expected}");
            return Ok(self.payload.len());
        }
    }
}

fn parse(command: Command, payload: &[u8]) -> anyhow::Result<Message<'_>> {
    Message::parse(command, payload).with_context(|| format!("message {command}"))
}

/// Context of a lost connection.
const BROKEN: &str = "the connection to the source broke";
/// Time limit for a source that is validating.
const PATIENCE: Duration = Duration::from_mins(5);
const READ_BYTES: usize = 256 << 10;
