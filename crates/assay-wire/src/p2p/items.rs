//! Lists of fixed-size items, over the bytes of a message or over values.

use std::fmt;

use crate::encode::compact_size;
use crate::error::{ParseError, ParseErrorKind};
use crate::header::Header;
use crate::id::BlockHash;
use crate::reader::Reader;

/// An item with a fixed-size encoding.
pub trait Item: Copy {
    /// Encoded size in bytes.
    const SIZE: usize;
    /// Decodes an item; any `SIZE` bytes are valid.
    ///
    /// # Panics
    /// When there are fewer bytes.
    fn read(bytes: &[u8]) -> Self;
    /// Appends the encoding.
    fn write(&self, out: &mut Vec<u8>);
    /// Offset and kind of a format violation in `SIZE` bytes, if any.
    fn fault(_bytes: &[u8]) -> Option<(usize, ParseErrorKind)> {
        None
    }
}

/// A list of items.
#[derive(Clone, Copy)]
pub struct Items<'a, T>(Repr<'a, T>);

#[derive(Clone, Copy)]
enum Repr<'a, T> {
    Bytes(&'a [u8]),
    Values(&'a [T]),
}

impl<'a, T: Item> Items<'a, T> {
    /// Number of items.
    pub fn len(&self) -> usize {
        match self.0 {
            Repr::Bytes(bytes) => bytes.len() / T::SIZE,
            Repr::Values(values) => values.len(),
        }
    }

    /// True if the list is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The item at `index`; `None` beyond the end.
    pub fn get(&self, index: usize) -> Option<T> {
        match self.0 {
            Repr::Bytes(bytes) => {
                let at = index.checked_mul(T::SIZE)?;
                bytes.get(at..at.checked_add(T::SIZE)?).map(T::read)
            }
            Repr::Values(values) => values.get(index).copied(),
        }
    }

    /// All items in order.
    pub fn iter(self) -> impl ExactSizeIterator<Item = T> + use<'a, T> {
        (0..self.len()).map(move |index| self.get(index).expect("an index below the length"))
    }

    /// A count of at most `max`, then the items.
    pub(super) fn parse(reader: &mut Reader<'a>, max: usize) -> Result<Self, ParseError> {
        let start = reader.position();
        let count = reader.count(T::SIZE)?;
        if count > max {
            return Err(ParseError { offset: start, kind: ParseErrorKind::TooMany { count } });
        }
        let first = reader.position();
        let bytes = reader.bytes(count * T::SIZE)?;
        for (index, item) in bytes.chunks_exact(T::SIZE).enumerate() {
            if let Some((at, kind)) = T::fault(item) {
                return Err(ParseError { offset: first + index * T::SIZE + at, kind });
            }
        }
        Ok(Self(Repr::Bytes(bytes)))
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        compact_size(out, self.len() as u64);
        match self.0 {
            Repr::Bytes(bytes) => out.extend_from_slice(bytes),
            Repr::Values(values) => values.iter().for_each(|value| value.write(out)),
        }
    }
}

impl<'a, T> From<&'a [T]> for Items<'a, T> {
    fn from(values: &'a [T]) -> Self {
        Self(Repr::Values(values))
    }
}

impl<T: Item + PartialEq> PartialEq for Items<'_, T> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl<T: Item + Eq> Eq for Items<'_, T> {}

impl<T: Item + fmt::Debug> fmt::Debug for Items<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

pub(super) fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[at..at + N]);
    out
}

impl Item for [u8; 32] {
    const SIZE: usize = 32;

    fn read(bytes: &[u8]) -> Self {
        array(bytes, 0)
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }
}

impl Item for BlockHash {
    const SIZE: usize = 32;

    fn read(bytes: &[u8]) -> Self {
        Self(array(bytes, 0))
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }
}

/// In a message, a transaction count follows each header; it is always 0.
impl Item for Header {
    const SIZE: usize = 81;

    fn read(bytes: &[u8]) -> Self {
        Self::parse(&array(bytes, 0))
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_bytes());
        out.push(0);
    }

    fn fault(bytes: &[u8]) -> Option<(usize, ParseErrorKind)> {
        (bytes[80] != 0).then_some((80, ParseErrorKind::HeaderWithTransactions))
    }
}

/// Type of an inventory entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InventoryKind(pub u32);

/// Core's name in logs (`protocol.cpp`, `CInv::GetMessageType`).
impl fmt::Display for InventoryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self {
            Self::TX => "tx",
            Self::WITNESS_TX => "witness-tx",
            Self::WTX => "wtx",
            Self::BLOCK => "block",
            Self::WITNESS_BLOCK => "witness-block",
            Self::FILTERED_BLOCK => "merkleblock",
            Self::COMPACT_BLOCK => "cmpctblock",
            Self(number) => return write!(f, "kind {number:#x}"),
        })
    }
}

impl InventoryKind {
    /// A transaction by its txid.
    pub const TX: Self = Self(1);
    /// A block, without witnesses.
    pub const BLOCK: Self = Self(2);
    /// A block and the part of its merkle tree that matches a filter (BIP37).
    pub const FILTERED_BLOCK: Self = Self(3);
    /// A compact block (BIP152).
    pub const COMPACT_BLOCK: Self = Self(4);
    /// A transaction by its wtxid (BIP339).
    pub const WTX: Self = Self(5);
    /// A transaction with its witnesses (BIP144).
    pub const WITNESS_TX: Self = Self(1 | 1 << 30);
    /// A block with its witnesses (BIP144).
    pub const WITNESS_BLOCK: Self = Self(2 | 1 << 30);

    /// The type without the flag that requests witnesses (BIP144).
    #[must_use]
    pub fn base(self) -> Self {
        Self(self.0 & !(1 << 30))
    }
}

/// One entry of `inv`, `getdata` and `notfound`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Inventory {
    /// Type of the object.
    pub kind: InventoryKind,
    /// Hash of the object.
    pub hash: [u8; 32],
}

impl Item for Inventory {
    const SIZE: usize = 36;

    fn read(bytes: &[u8]) -> Self {
        let kind = InventoryKind(u32::from_le_bytes(array(bytes, 0)));
        Self { kind, hash: array(bytes, 4) }
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.kind.0.to_le_bytes());
        out.extend_from_slice(&self.hash);
    }
}

/// Address and services of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetAddress {
    /// Service bits.
    pub services: u64,
    /// An IPv6 address; IPv4 ones are mapped into `::ffff:0:0/96`.
    pub ip: [u8; 16],
    /// The TCP port.
    pub port: u16,
}

impl Item for NetAddress {
    const SIZE: usize = 26;

    fn read(bytes: &[u8]) -> Self {
        Self {
            services: u64::from_le_bytes(array(bytes, 0)),
            ip: array(bytes, 8),
            port: u16::from_be_bytes(array(bytes, 24)),
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.services.to_le_bytes());
        out.extend_from_slice(&self.ip);
        out.extend_from_slice(&self.port.to_be_bytes());
    }
}

/// An entry of `addr`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimedAddress {
    /// Time when the node was last seen, in seconds since 1970.
    pub time: u32,
    /// The node's address and services.
    pub address: NetAddress,
}

impl Item for TimedAddress {
    const SIZE: usize = 4 + NetAddress::SIZE;

    fn read(bytes: &[u8]) -> Self {
        let time = u32::from_le_bytes(array(bytes, 0));
        Self { time, address: NetAddress::read(&bytes[4..]) }
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.time.to_le_bytes());
        self.address.write(out);
    }
}
