//! The payload of `addrv2` (BIP155): entries of variable length.

use std::fmt;

use super::PeerAddress;
use crate::encode::compact_size;
use crate::error::{ParseError, ParseErrorKind};
use crate::p2p::ADDRESSES_MAX;
use crate::reader::Reader;

/// The addresses of a message, over its bytes or over values.
#[derive(Clone, Copy)]
pub struct AddressesV2<'a>(Repr<'a>);

#[derive(Clone, Copy)]
enum Repr<'a> {
    Bytes { count: usize, entries: &'a [u8] },
    Values(&'a [PeerAddress]),
}

impl<'a> AddressesV2<'a> {
    /// Number of addresses.
    pub fn len(&self) -> usize {
        match self.0 {
            Repr::Bytes { count, .. } => count,
            Repr::Values(values) => values.len(),
        }
    }

    /// True if the list is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All addresses in order; hosts of unknown networks are [`Host::NONE`](super::Host::NONE).
    pub fn iter(&self) -> impl Iterator<Item = PeerAddress> + use<'a> {
        let (bytes, values): (&[u8], &[PeerAddress]) = match self.0 {
            Repr::Bytes { entries, .. } => (entries, &[]),
            Repr::Values(values) => (&[], values),
        };
        let mut reader = Reader::new(bytes, 0);
        let read = std::iter::from_fn(move || match reader.remaining() {
            0 => None,
            _ => Some(PeerAddress::read(&mut reader).expect("it was read before")),
        });
        read.chain(values.iter().copied())
    }

    /// A count, then that number of entries. As in Core, all entries are read before a count above 1,000 is rejected.
    pub(crate) fn parse(reader: &mut Reader<'a>, payload: &'a [u8]) -> Result<Self, ParseError> {
        let offset = reader.position();
        let count = reader.count(ENTRY_BYTES_MIN)?;
        let start = reader.position();
        for _ in 0..count {
            PeerAddress::read(reader)?;
        }
        if count > ADDRESSES_MAX {
            return Err(ParseError { offset, kind: ParseErrorKind::TooManyAddresses { count } });
        }
        Ok(Self(Repr::Bytes { count, entries: &payload[start..reader.position()] }))
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        compact_size(out, self.len() as u64);
        match self.0 {
            Repr::Bytes { entries, .. } => out.extend_from_slice(entries),
            Repr::Values(values) => values.iter().for_each(|value| value.encode(out)),
        }
    }
}

impl<'a> From<&'a [PeerAddress]> for AddressesV2<'a> {
    fn from(values: &'a [PeerAddress]) -> Self {
        Self(Repr::Values(values))
    }
}

impl PartialEq for AddressesV2<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl Eq for AddressesV2<'_> {}

impl fmt::Debug for AddressesV2<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Time, services, network, length, port.
const ENTRY_BYTES_MIN: usize = 4 + 1 + 1 + 1 + 2;
