//! Classification of addresses: networks, routability and groups (Core `netaddress.cpp`).

use std::fmt;
use std::str::FromStr;

use super::Host;

/// Networks, in the order and with the numbers of Core (`netaddress.h`, `Network`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum NetworkKind {
    /// Not routable, or only within a local network.
    Unroutable = 0,
    /// IPv4.
    Ipv4 = 1,
    /// IPv6.
    Ipv6 = 2,
    /// Tor.
    Onion = 3,
    /// I2P.
    I2p = 4,
    /// CJDNS.
    Cjdns = 5,
    /// Internal addresses of names.
    Internal = 6,
}

impl NetworkKind {
    /// The networks of nodes.
    pub const ALL: [Self; 5] = [Self::Ipv4, Self::Ipv6, Self::Onion, Self::I2p, Self::Cjdns];

    /// Core's name of the network (`netbase.cpp`, `GetNetworkName`).
    pub fn name(self) -> &'static str {
        match self {
            Self::Unroutable => "not_publicly_routable",
            Self::Ipv4 => "ipv4",
            Self::Ipv6 => "ipv6",
            Self::Onion => "onion",
            Self::I2p => "i2p",
            Self::Cjdns => "cjdns",
            Self::Internal => "internal",
        }
    }
}

impl fmt::Display for NetworkKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The text is not the name of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown network")]
pub struct UnknownNetwork;

/// Case-insensitive (Core `netbase.cpp`, `ParseNetwork`).
impl FromStr for NetworkKind {
    type Err = UnknownNetwork;

    fn from_str(text: &str) -> Result<Self, UnknownNetwork> {
        let named = |kind: &&Self| kind.name().eq_ignore_ascii_case(text);
        Self::ALL.iter().find(named).copied().ok_or(UnknownNetwork)
    }
}

impl Host {
    /// True if a host can have this address (Core `IsValid`).
    pub fn is_valid(&self) -> bool {
        match *self {
            Self::V4(ip) => ip != [0; 4] && ip != [255; 4],
            // The second range is for documentation (RFC 3849).
            Self::V6(ip) => ip != [0; 16] && !ip.starts_with(&[0x20, 0x01, 0x0d, 0xb8]),
            Self::Cjdns(ip) => ip[0] == 0xfc,
            Self::Onion(_) | Self::I2p(_) => true,
            Self::Internal(_) => false,
        }
    }

    /// True for the local machine (Core `IsLocal`).
    pub fn is_local(&self) -> bool {
        match self {
            Self::V4(ip) => matches!(ip[0], 0 | 127),
            Self::V6(ip) => std::net::Ipv6Addr::from(*ip).is_loopback(),
            _ => false,
        }
    }

    /// True if reachable from its whole network (Core `IsRoutable`).
    pub fn is_routable(&self) -> bool {
        let is_inside = match *self {
            // RFC 1918, 3927, 2544, 5737, 6598; 4862, 4193, 4843, 7343.
            Self::V4(
                [10, ..]
                | [192, 168, ..]
                | [169, 254, ..]
                | [198, 18 | 19, ..]
                | [192, 0, 2, _]
                | [198, 51, 100, _]
                | [203, 0, 113, _],
            )
            | Self::V6([0xfe, 0x80, 0, 0, 0, 0, 0, 0, ..] | [0xfc | 0xfd, ..]) => true,
            Self::V4([172, second, ..]) => (16..=31).contains(&second),
            Self::V4([100, second, ..]) => (64..=127).contains(&second),
            Self::V6([0x20, 0x01, 0, fourth, ..]) => matches!(fourth & 0xf0, 0x10 | 0x20),
            _ => false,
        };
        self.is_valid() && !is_inside && !self.is_local()
    }

    /// The network, or [`NetworkKind::Unroutable`] or [`NetworkKind::Internal`] (Core `GetNetwork`).
    pub fn network(&self) -> NetworkKind {
        match self {
            Self::Internal(_) => NetworkKind::Internal,
            _ if !self.is_routable() => NetworkKind::Unroutable,
            Self::V4(_) => NetworkKind::Ipv4,
            Self::V6(_) => NetworkKind::Ipv6,
            Self::Onion(_) => NetworkKind::Onion,
            Self::I2p(_) => NetworkKind::I2p,
            Self::Cjdns(_) => NetworkKind::Cjdns,
        }
    }

    /// The same, but an IPv6 address that embeds an IPv4 one counts as IPv4 (Core `GetNetClass`).
    pub fn network_class(&self) -> NetworkKind {
        match self.network() {
            NetworkKind::Ipv6 if self.linked_v4().is_some() => NetworkKind::Ipv4,
            network => network,
        }
    }

    /// The IPv4 address itself, or the one that a routable address embeds (Core `GetLinkedIPv4`).
    pub fn linked_v4(&self) -> Option<[u8; 4]> {
        let linked = match *self {
            // IPv6 addresses that embed IPv4: RFC 6052, RFC 6145, 6to4 (RFC 3964).
            Self::V4([a, b, c, d])
            | Self::V6(
                [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0, a, b, c, d]
                | [0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, a, b, c, d]
                | [0x20, 0x02, a, b, c, d, ..],
            ) => [a, b, c, d],
            // Teredo (RFC 4380).
            Self::V6([0x20, 0x01, 0, 0, .., a, b, c, d]) => [!a, !b, !c, !d],
            _ => return None,
        };
        self.is_routable().then_some(linked)
    }

    /// Prefix that identifies the address group, which probably has a single operator (Core `netgroup.cpp`, `GetGroup`, without a
    /// map of autonomous systems).
    pub fn group(&self) -> Vec<u8> {
        let class = self.network_class() as u8;
        if let Self::Internal(name) = self {
            return [&[class], name.as_slice()].concat();
        }
        if !self.is_routable() {
            return vec![class];
        }
        if let Some([a, b, ..]) = self.linked_v4() {
            return vec![class, a, b];
        }
        let bits = match self {
            Self::Onion(_) | Self::I2p(_) => 4,
            // The first byte is constant.
            Self::Cjdns(_) => 12,
            // Hurricane Electric assigns parts of one /32 to its customers.
            Self::V6([0x20, 0x01, 0x04, 0x70, ..]) => 36,
            _ => 32,
        };
        let (bytes, key) = (bits / 8, self.key());
        let mut group = vec![class];
        group.extend_from_slice(&key[..bytes]);
        if bits % 8 > 0 {
            group.push(key[bytes] | ((1 << (8 - bits % 8)) - 1));
        }
        group
    }
}
