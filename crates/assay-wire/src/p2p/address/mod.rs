//! Node addresses on every network of BIP155, and their encodings in `addr`, `addrv2` and on disk.

mod base32;
mod list;
mod network;
mod text;

pub use list::AddressesV2;
pub use network::NetworkKind;

use super::items::NetAddress;
use crate::encode::{compact_size, var_bytes};
use crate::error::{ParseError, ParseErrorKind};
use crate::reader::Reader;

/// A node address without its port (Core `netaddress.h`, `CNetAddr`). Ordered as in Core: by network, then by bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Host {
    /// An IPv4 address.
    V4([u8; 4]),
    /// A native IPv6 address; all zeros for an unknown host.
    V6([u8; 16]),
    /// The public key of a Tor v3 onion service.
    Onion([u8; 32]),
    /// The hash of an I2P destination.
    I2p([u8; 32]),
    /// A CJDNS address, which begins with `fc`.
    Cjdns([u8; 16]),
    /// The hash of a name, such as a DNS seed's: records the source of addresses, never connected to.
    Internal([u8; 10]),
}

/// A host and a port (Core `netaddress.h`, `CService`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    /// The node address.
    pub host: Host,
    /// The TCP port.
    pub port: u16,
}

/// A node address with metadata (Core `protocol.h`, `CAddress`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerAddress {
    /// Time when the node was last seen, in seconds since 1970.
    pub time: u32,
    /// Service bits.
    pub services: u64,
    /// The node's host and port.
    pub endpoint: Endpoint,
}

impl Host {
    /// The unknown host, invalid on every network.
    pub const NONE: Self = Self::V6([0; 16]);

    /// The host in an IPv6 address of the older messages, where IPv4 addresses are mapped. Tor v2 addresses are obsolete and
    /// become [`Host::NONE`] (Core `SetLegacyIPv6`).
    pub fn from_v1(ip: [u8; 16]) -> Self {
        if let Some(v4) = ip.strip_prefix(&V4_IN_V6).and_then(|rest| rest.first_chunk()) {
            return Self::V4(*v4);
        }
        if ip.starts_with(&TOR_V2_IN_V6) {
            return Self::NONE;
        }
        match ip.strip_prefix(&INTERNAL_IN_V6).and_then(|rest| rest.first_chunk()) {
            Some(name) => Self::Internal(*name),
            None => Self::V6(ip),
        }
    }

    /// The IPv6 address for the older messages; all zeros if there is none.
    pub fn to_v1(self) -> [u8; 16] {
        let mut ip = [0; 16];
        match self {
            Self::V4(v4) => {
                ip[..12].copy_from_slice(&V4_IN_V6);
                ip[12..].copy_from_slice(&v4);
            }
            Self::V6(v6) => ip = v6,
            Self::Internal(name) => {
                ip[..6].copy_from_slice(&INTERNAL_IN_V6);
                ip[6..].copy_from_slice(&name);
            }
            Self::Onion(_) | Self::I2p(_) | Self::Cjdns(_) => {}
        }
        ip
    }

    /// True if the older messages can carry the host.
    pub fn fits_v1(&self) -> bool {
        matches!(self, Self::V4(_) | Self::V6(_) | Self::Internal(_))
    }

    /// The internal address of a name, as a source of addresses (Core `SetInternal`).
    pub fn of_name(name: &str) -> Self {
        let hash = assay_hash::sha256(name.as_bytes());
        let mut start = [0; 10];
        start.copy_from_slice(&hash[..10]);
        Self::Internal(start)
    }

    /// Hash input for the host: the form of the older messages if they can carry it.
    pub fn key(&self) -> Vec<u8> {
        match self {
            Self::Onion(key) | Self::I2p(key) => key.to_vec(),
            Self::Cjdns(ip) => ip.to_vec(),
            _ => self.to_v1().to_vec(),
        }
    }

    /// Appends the host in BIP155 encoding. Internal addresses are embedded in IPv6, for files only.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let (id, bytes): (u8, &[u8]) = match self {
            Self::V4(ip) => (1, ip),
            Self::V6(ip) => (2, ip),
            Self::Internal(_) => {
                out.push(2);
                return var_bytes(out, &self.to_v1());
            }
            Self::Onion(key) => (4, key),
            Self::I2p(hash) => (5, hash),
            Self::Cjdns(ip) => (6, ip),
        };
        out.push(id);
        var_bytes(out, bytes);
    }

    /// Reads a BIP155 host. A host of an unknown network is [`Host::NONE`].
    ///
    /// # Errors
    /// When the bytes end early, or a length differs from the network's or exceeds 512 bytes.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, ParseError> {
        let [id] = *reader.take()?;
        let offset = reader.position();
        let length = reader.compact_size()?;
        let fail = |kind| Err(ParseError { offset, kind });
        if length > ADDRESS_BYTES_MAX {
            return fail(ParseErrorKind::AddressTooLong { length });
        }
        if let Some((network, expected)) = network_of(id)
            && length != expected
        {
            return fail(ParseErrorKind::AddressLength { network, length, expected });
        }
        Ok(match id {
            1 => Self::V4(*reader.take()?),
            2 => match Self::from_v1(*reader.take()?) {
                // Embedded addresses are invalid here.
                Self::V4(_) => Self::NONE,
                host => host,
            },
            4 => Self::Onion(*reader.take()?),
            5 => Self::I2p(*reader.take()?),
            6 => Self::Cjdns(*reader.take()?),
            _ => {
                reader.skip(length as usize)?;
                Self::NONE
            }
        })
    }
}

impl Endpoint {
    /// Hash input for the endpoint (Core `CService::GetKey`).
    pub fn key(&self) -> Vec<u8> {
        let mut key = self.host.key();
        key.extend_from_slice(&self.port.to_be_bytes());
        key
    }
}

impl PeerAddress {
    /// Appends an entry of `addrv2`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.time.to_le_bytes());
        compact_size(out, self.services);
        self.endpoint.host.encode(out);
        out.extend_from_slice(&self.endpoint.port.to_be_bytes());
    }

    /// Reads an entry of `addrv2`.
    ///
    /// # Errors
    /// As [`Host::read`].
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, ParseError> {
        let time = u32::from_le_bytes(*reader.take()?);
        let services = reader.number()?;
        let host = Host::read(reader)?;
        let port = u16::from_be_bytes(*reader.take()?);
        Ok(Self { time, services, endpoint: Endpoint { host, port } })
    }
}

impl From<NetAddress> for Endpoint {
    fn from(address: NetAddress) -> Self {
        Self { host: Host::from_v1(address.ip), port: address.port }
    }
}

impl From<std::net::IpAddr> for Host {
    fn from(ip: std::net::IpAddr) -> Self {
        match ip {
            std::net::IpAddr::V4(ip) => Self::V4(ip.octets()),
            std::net::IpAddr::V6(ip) => Self::from_v1(ip.octets()),
        }
    }
}

impl From<std::net::SocketAddr> for Endpoint {
    fn from(address: std::net::SocketAddr) -> Self {
        Self { host: address.ip().into(), port: address.port() }
    }
}

/// Name and address length of a network by its number (BIP155; Core `SetNetFromBIP155Network`).
fn network_of(id: u8) -> Option<(&'static str, u64)> {
    Some(match id {
        1 => ("IPv4", 4),
        2 => ("IPv6", 16),
        4 => ("TORv3", 32),
        5 => ("I2P", 32),
        6 => ("CJDNS", 16),
        _ => return None,
    })
}

/// BIP155; Core `netaddress.h`, `MAX_ADDRV2_SIZE`.
const ADDRESS_BYTES_MAX: u64 = 512;
const V4_IN_V6: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];
/// Core `netaddress.h`, `TORV2_IN_IPV6_PREFIX`.
const TOR_V2_IN_V6: [u8; 6] = [0xfd, 0x87, 0xd8, 0x7e, 0xeb, 0x43];
/// Core `netaddress.h`, `INTERNAL_IN_IPV6_PREFIX`: fd + sha256("bitcoin")\[0:5\].
const INTERNAL_IN_V6: [u8; 6] = [0xfd, 0x6b, 0x88, 0xc0, 0x87, 0x24];
