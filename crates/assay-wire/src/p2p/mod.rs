//! Messages of the peer-to-peer protocol, version 1 of its transport.
//!
//! A message is a [`FrameHeader`] and a payload. [`Message::parse`] parses a payload without copying it, lists included;
//! [`Message::encode`] writes one, from views or from values.
//!
//! ```
//! use assay_wire::p2p::{FrameHeader, Message};
//! let magic = [0xfa, 0xbf, 0xb5, 0xda];
//! let bytes = Message::Ping(7).to_bytes(magic);
//! let (head, payload) = bytes.split_first_chunk::<24>().expect("a header comes first");
//! let header = FrameHeader::parse(head, magic, 1000)?;
//! header.check(payload)?;
//! assert_eq!(Message::parse(header.command, payload)?, Message::Ping(7));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Bytes after the known fields of a payload are ignored, as in Core: later versions may extend a message. Deliberately absent:
//! transaction sketches (BIP330); such messages are [`Message::Other`].

mod address;
mod compact;
mod filters;
mod frame;
mod items;

pub use address::{AddressesV2, Endpoint, Host, NetworkKind, PeerAddress};
pub use compact::{
    BlockTxs, BlockTxsRequest, COMPACT_TXS_MAX, CompactBlock, Prefilled, ShortId, ShortIdKey,
};
pub use filters::{
    BlockFilter, FILTER_CHECKPOINT_INTERVAL, FILTER_HASHES_MAX, FILTERS_MAX, FilterCheckpoints,
    FilterHashes, FilterKind, FilterRange,
};
pub use frame::{Command, FrameError, FrameHeader, PayloadHasher, checksum};
pub use items::{Inventory, InventoryKind, Item, Items, NetAddress, TimedAddress};

use std::borrow::Cow;

use crate::encode::var_bytes;
use crate::error::{ParseError, ParseErrorKind};
use crate::header::Header;
use crate::id::BlockHash;
use crate::reader::Reader;

/// Maximum message size in bytes on chains with a weight limit (Core `net.h`, `MAX_PROTOCOL_MESSAGE_LENGTH`).
pub const MESSAGE_BYTES_MAX: u32 = 4_000_000;
/// Maximum size in bytes of messages other than blocks on chains with larger blocks.
pub const LARGE_MESSAGE_BYTES_MAX: u32 = 32 << 20;
/// Maximum headers per message (Core `net_processing.h`, `MAX_HEADERS_RESULTS`).
pub const HEADERS_MAX: usize = 2000;
/// Maximum entries of `inv`, `getdata` and `notfound` (Core `net_processing.cpp`, `MAX_INV_SZ`).
pub const INVENTORY_MAX: usize = 50_000;
/// Maximum hashes in a locator (Core `net_processing.cpp`, `MAX_LOCATOR_SZ`).
pub const LOCATOR_MAX: usize = 101;
/// Maximum entries of `addr` and `addrv2` (Core `net_processing.cpp`, `MAX_ADDR_TO_SEND`).
pub const ADDRESSES_MAX: usize = 1000;
/// Maximum length of a user agent (Core `net.h`, `MAX_SUBVERSION_LENGTH`).
pub const USER_AGENT_BYTES_MAX: usize = 256;

/// The first message of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version<'a> {
    /// Newest supported protocol version.
    pub version: i32,
    /// Service bits of the sender.
    pub services: u64,
    /// Clock of the sender, in seconds since 1970.
    pub time: i64,
    /// Address of the receiver, as known to the sender.
    pub receiver: NetAddress,
    /// Address of the sender.
    pub sender: NetAddress,
    /// Random; detects connections of a node to itself.
    pub nonce: u64,
    /// Name and version of the program.
    pub user_agent: &'a [u8],
    /// Height of the sender's chain.
    pub start_height: i32,
    /// False to suppress transaction announcements (BIP37); `None` from older nodes.
    pub relay: Option<bool>,
}

/// Known blocks of a chain, and the end of the requested range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Locator<'a> {
    /// Protocol version; ignored.
    pub version: u32,
    /// Known blocks, highest first.
    pub hashes: Items<'a, BlockHash>,
    /// Hash of the last requested block; zero for the maximum.
    pub stop: BlockHash,
}

/// A Bloom filter (BIP37).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterLoad<'a> {
    /// Filter bits, least significant first; at most 36,000 bytes in the protocol.
    pub bits: &'a [u8],
    /// Number of hash functions; at most 50 in the protocol.
    pub functions: u32,
    /// Added to the seed of each hash function.
    pub tweak: u32,
    /// Update rule for matching outputs.
    pub flags: u8,
}

/// A message without its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// `version`
    Version(Version<'a>),
    /// `verack`
    Verack,
    /// `ping`
    Ping(u64),
    /// `pong`
    Pong(u64),
    /// `sendheaders` (BIP130)
    SendHeaders,
    /// `sendaddrv2` (BIP155)
    SendAddrV2,
    /// `wtxidrelay` (BIP339)
    WtxidRelay,
    /// `getaddr`
    GetAddr,
    /// `mempool` (BIP35)
    Mempool,
    /// `feefilter` (BIP133): satoshi per 1,000 virtual bytes
    FeeFilter(u64),
    /// `sendcmpct` (BIP152)
    SendCompact {
        /// 1 to request new blocks as compact blocks without an announcement, 0 otherwise; no other value is valid.
        announce: u8,
        /// Version of compact blocks.
        version: u64,
    },
    /// `getheaders`
    GetHeaders(Locator<'a>),
    /// `getblocks`
    GetBlocks(Locator<'a>),
    /// `headers`
    Headers(Items<'a, Header>),
    /// `inv`
    Inv(Items<'a, Inventory>),
    /// `getdata`
    GetData(Items<'a, Inventory>),
    /// `notfound`
    NotFound(Items<'a, Inventory>),
    /// `addr`
    Addr(Items<'a, TimedAddress>),
    /// `addrv2` (BIP155)
    AddrV2(AddressesV2<'a>),
    /// `block`: see [`Block::parse`](crate::Block::parse)
    Block(&'a [u8]),
    /// `tx`: see [`Transaction::parse`](crate::Transaction::parse)
    Tx(&'a [u8]),
    /// `cmpctblock`: see [`CompactBlock::parse`]
    CompactBlock(&'a [u8]),
    /// `getblocktxn`: see [`BlockTxsRequest::parse`]
    GetBlockTxs(&'a [u8]),
    /// `blocktxn`: see [`BlockTxs::parse`]
    BlockTxs(&'a [u8]),
    /// `filterload` (BIP37)
    FilterLoad(FilterLoad<'a>),
    /// `filteradd` (BIP37): element to add to the filter
    FilterAdd(&'a [u8]),
    /// `filterclear` (BIP37)
    FilterClear,
    /// `merkleblock` (BIP37)
    MerkleBlock(&'a [u8]),
    /// `getcfilters` (BIP157)
    GetFilters(FilterRange),
    /// `cfilter` (BIP157)
    Filter(BlockFilter<'a>),
    /// `getcfheaders` (BIP157)
    GetFilterHashes(FilterRange),
    /// `cfheaders` (BIP157)
    FilterHashes(FilterHashes<'a>),
    /// `getcfcheckpt` (BIP157)
    GetFilterCheckpoints {
        /// Filter type.
        kind: FilterKind,
        /// Hash of the last block of the branch.
        stop: BlockHash,
    },
    /// `cfcheckpt` (BIP157)
    FilterCheckpoints(FilterCheckpoints<'a>),
    /// A message of any other type.
    Other {
        /// Message type.
        command: Command,
        /// Raw payload.
        payload: &'a [u8],
    },
}

impl<'a> Message<'a> {
    /// Parses the payload of a message of type `command`.
    ///
    /// # Errors
    /// When the payload is malformed; the offset is relative to its start.
    pub fn parse(command: Command, payload: &'a [u8]) -> Result<Self, ParseError> {
        let mut reader = Reader::new(payload, 0);
        let reader = &mut reader;
        Ok(match command.as_str() {
            "version" => Self::Version(Version::parse(reader)?),
            "verack" => Self::Verack,
            "ping" => Self::Ping(u64::from_le_bytes(*reader.take()?)),
            "pong" => Self::Pong(u64::from_le_bytes(*reader.take()?)),
            "sendheaders" => Self::SendHeaders,
            "sendaddrv2" => Self::SendAddrV2,
            "wtxidrelay" => Self::WtxidRelay,
            "getaddr" => Self::GetAddr,
            "mempool" => Self::Mempool,
            "feefilter" => Self::FeeFilter(u64::from_le_bytes(*reader.take()?)),
            "sendcmpct" => Self::SendCompact {
                announce: reader.take::<1>()?[0],
                version: u64::from_le_bytes(*reader.take()?),
            },
            "getheaders" => Self::GetHeaders(Locator::parse(reader)?),
            "getblocks" => Self::GetBlocks(Locator::parse(reader)?),
            "headers" => Self::Headers(Items::parse(reader, HEADERS_MAX)?),
            "inv" => Self::Inv(Items::parse(reader, INVENTORY_MAX)?),
            "getdata" => Self::GetData(Items::parse(reader, INVENTORY_MAX)?),
            "notfound" => Self::NotFound(Items::parse(reader, INVENTORY_MAX)?),
            "addr" => {
                let addresses = Items::parse(reader, usize::MAX)?;
                let count = addresses.len();
                if count > ADDRESSES_MAX {
                    let kind = ParseErrorKind::TooManyAddresses { count };
                    return Err(ParseError { offset: 0, kind });
                }
                Self::Addr(addresses)
            }
            "addrv2" => Self::AddrV2(AddressesV2::parse(reader, payload)?),
            "block" => Self::Block(payload),
            "tx" => Self::Tx(payload),
            "cmpctblock" => Self::CompactBlock(payload),
            "getblocktxn" => Self::GetBlockTxs(payload),
            "blocktxn" => Self::BlockTxs(payload),
            "filterload" => Self::FilterLoad(FilterLoad::parse(reader)?),
            "filteradd" => {
                let length = reader.compact_size()? as usize;
                Self::FilterAdd(reader.bytes(length)?)
            }
            "filterclear" => Self::FilterClear,
            "merkleblock" => Self::MerkleBlock(payload),
            "getcfilters" => Self::GetFilters(FilterRange::parse(reader)?),
            "cfilter" => Self::Filter(BlockFilter::parse(reader)?),
            "getcfheaders" => Self::GetFilterHashes(FilterRange::parse(reader)?),
            "cfheaders" => Self::FilterHashes(FilterHashes::parse(reader)?),
            "getcfcheckpt" => Self::GetFilterCheckpoints {
                kind: FilterKind::parse(reader)?,
                stop: BlockHash(*reader.take()?),
            },
            "cfcheckpt" => Self::FilterCheckpoints(FilterCheckpoints::parse(reader)?),
            _ => Self::Other { command, payload },
        })
    }

    /// The message type.
    pub fn command(&self) -> Command {
        Command::new(match self {
            Self::Version(_) => "version",
            Self::Verack => "verack",
            Self::Ping(_) => "ping",
            Self::Pong(_) => "pong",
            Self::SendHeaders => "sendheaders",
            Self::SendAddrV2 => "sendaddrv2",
            Self::WtxidRelay => "wtxidrelay",
            Self::GetAddr => "getaddr",
            Self::Mempool => "mempool",
            Self::FeeFilter(_) => "feefilter",
            Self::SendCompact { .. } => "sendcmpct",
            Self::GetHeaders(_) => "getheaders",
            Self::GetBlocks(_) => "getblocks",
            Self::Headers(_) => "headers",
            Self::Inv(_) => "inv",
            Self::GetData(_) => "getdata",
            Self::NotFound(_) => "notfound",
            Self::Addr(_) => "addr",
            Self::AddrV2(_) => "addrv2",
            Self::Block(_) => "block",
            Self::Tx(_) => "tx",
            Self::CompactBlock(_) => "cmpctblock",
            Self::GetBlockTxs(_) => "getblocktxn",
            Self::BlockTxs(_) => "blocktxn",
            Self::FilterLoad(_) => "filterload",
            Self::FilterAdd(_) => "filteradd",
            Self::FilterClear => "filterclear",
            Self::MerkleBlock(_) => "merkleblock",
            Self::GetFilters(_) => "getcfilters",
            Self::Filter(_) => "cfilter",
            Self::GetFilterHashes(_) => "getcfheaders",
            Self::FilterHashes(_) => "cfheaders",
            Self::GetFilterCheckpoints { .. } => "getcfcheckpt",
            Self::FilterCheckpoints(_) => "cfcheckpt",
            Self::Other { command, .. } => return *command,
        })
    }

    /// Appends the encoded payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Verack
            | Self::SendHeaders
            | Self::SendAddrV2
            | Self::WtxidRelay
            | Self::GetAddr
            | Self::FilterClear
            | Self::Mempool => {}
            Self::Version(version) => version.encode(out),
            Self::Ping(number) | Self::Pong(number) | Self::FeeFilter(number) => {
                out.extend_from_slice(&number.to_le_bytes());
            }
            Self::SendCompact { announce, version } => {
                out.push(*announce);
                out.extend_from_slice(&version.to_le_bytes());
            }
            Self::GetHeaders(locator) | Self::GetBlocks(locator) => {
                out.extend_from_slice(&locator.version.to_le_bytes());
                locator.hashes.encode(out);
                out.extend_from_slice(&locator.stop.0);
            }
            Self::Headers(headers) => headers.encode(out),
            Self::Inv(items) | Self::GetData(items) | Self::NotFound(items) => items.encode(out),
            Self::Addr(addresses) => addresses.encode(out),
            Self::AddrV2(addresses) => addresses.encode(out),
            Self::FilterLoad(filter) => filter.encode(out),
            Self::FilterAdd(data) => var_bytes(out, data),
            Self::GetFilters(range) | Self::GetFilterHashes(range) => range.encode(out),
            Self::Filter(filter) => filter.encode(out),
            Self::FilterHashes(hashes) => hashes.encode(out),
            Self::GetFilterCheckpoints { kind, stop } => {
                out.push(kind.0);
                out.extend_from_slice(&stop.0);
            }
            Self::FilterCheckpoints(checkpoints) => checkpoints.encode(out),
            Self::Block(payload)
            | Self::Tx(payload)
            | Self::CompactBlock(payload)
            | Self::GetBlockTxs(payload)
            | Self::BlockTxs(payload)
            | Self::MerkleBlock(payload)
            | Self::Other { payload, .. } => {
                out.extend_from_slice(payload);
            }
        }
    }

    /// The encoded payload, borrowed where the message holds it.
    pub fn payload(&self) -> Cow<'a, [u8]> {
        match *self {
            Self::Block(raw) | Self::Tx(raw) | Self::CompactBlock(raw) | Self::BlockTxs(raw) => {
                Cow::Borrowed(raw)
            }
            _ => {
                let mut payload = Vec::new();
                self.encode(&mut payload);
                Cow::Owned(payload)
            }
        }
    }

    /// Appends header and payload.
    pub fn write(&self, magic: [u8; 4], out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[0; FrameHeader::SIZE]);
        self.encode(out);
        let (head, payload) = out[start..].split_at_mut(FrameHeader::SIZE);
        head.copy_from_slice(&FrameHeader::of(magic, self.command(), payload).to_bytes());
    }

    /// Header and payload.
    pub fn to_bytes(&self, magic: [u8; 4]) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(magic, &mut out);
        out
    }
}

impl<'a> Version<'a> {
    fn parse(reader: &mut Reader<'a>) -> Result<Self, ParseError> {
        let version = i32::from_le_bytes(*reader.take()?);
        let services = u64::from_le_bytes(*reader.take()?);
        let time = i64::from_le_bytes(*reader.take()?);
        let receiver = NetAddress::read(reader.take::<26>()?);
        let sender = NetAddress::read(reader.take::<26>()?);
        let nonce = u64::from_le_bytes(*reader.take()?);
        let at = reader.position();
        let length = reader.compact_size()? as usize;
        if length > USER_AGENT_BYTES_MAX {
            return Err(ParseError { offset: at, kind: ParseErrorKind::TooMany { count: length } });
        }
        let user_agent = reader.bytes(length)?;
        let start_height = i32::from_le_bytes(*reader.take()?);
        let relay = match reader.remaining() {
            0 => None,
            _ => Some(reader.take::<1>()?[0] != 0),
        };
        Ok(Self {
            version,
            services,
            time,
            receiver,
            sender,
            nonce,
            user_agent,
            start_height,
            relay,
        })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.version.to_le_bytes());
        out.extend_from_slice(&self.services.to_le_bytes());
        out.extend_from_slice(&self.time.to_le_bytes());
        self.receiver.write(out);
        self.sender.write(out);
        out.extend_from_slice(&self.nonce.to_le_bytes());
        var_bytes(out, self.user_agent);
        out.extend_from_slice(&self.start_height.to_le_bytes());
        out.extend(self.relay.map(u8::from));
    }
}

impl<'a> FilterLoad<'a> {
    fn parse(reader: &mut Reader<'a>) -> Result<Self, ParseError> {
        let length = reader.compact_size()? as usize;
        Ok(Self {
            bits: reader.bytes(length)?,
            functions: u32::from_le_bytes(*reader.take()?),
            tweak: u32::from_le_bytes(*reader.take()?),
            flags: reader.take::<1>()?[0],
        })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        var_bytes(out, self.bits);
        out.extend_from_slice(&self.functions.to_le_bytes());
        out.extend_from_slice(&self.tweak.to_le_bytes());
        out.push(self.flags);
    }
}

impl<'a> Locator<'a> {
    fn parse(reader: &mut Reader<'a>) -> Result<Self, ParseError> {
        let version = u32::from_le_bytes(*reader.take()?);
        let hashes = Items::parse(reader, LOCATOR_MAX)?;
        let stop = BlockHash(*reader.take()?);
        Ok(Self { version, hashes, stop })
    }
}
