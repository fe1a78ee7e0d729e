//! Text form of addresses as in Core (`netaddress.cpp`, `ToStringAddr`, `SetSpecial`).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::{Endpoint, Host, base32};

impl Host {
    /// Parses an IPv4, IPv6, Tor (`….onion`, version 3) or I2P (`….b32.i2p`) address, without name lookup. A CJDNS address is
    /// parsed as IPv6: see [`Host::or_cjdns`].
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(name) = text.strip_suffix(".onion") {
            let bytes: [u8; 35] = base32::decode(name)?;
            let (key, rest) = bytes.split_first_chunk::<32>()?;
            let is_right = rest == [onion_checksum(key).as_slice(), &[ONION_VERSION]].concat();
            return is_right.then_some(Self::Onion(*key));
        }
        if let Some((name, suffix)) = text.split_at_checked(I2P_DIGITS)
            && suffix.eq_ignore_ascii_case(".b32.i2p")
        {
            return base32::decode(name).map(Self::I2p);
        }
        text.parse::<IpAddr>().ok().map(Self::from)
    }

    /// The same host, but as CJDNS if it is an IPv6 address that begins with `fc` (Core `MaybeFlipIPv6toCJDNS`).
    #[must_use]
    pub fn or_cjdns(self) -> Self {
        match self {
            Self::V6(ip) if ip[0] == 0xfc => Self::Cjdns(ip),
            host => host,
        }
    }

    /// The socket address; `None` for other networks.
    pub fn ip(&self) -> Option<IpAddr> {
        match *self {
            Self::V4(ip) => Some(Ipv4Addr::from(ip).into()),
            Self::V6(ip) | Self::Cjdns(ip) => Some(Ipv6Addr::from(ip).into()),
            Self::Onion(_) | Self::I2p(_) | Self::Internal(_) => None,
        }
    }
}

impl Endpoint {
    /// The socket address; `None` for other networks.
    pub fn socket(&self) -> Option<SocketAddr> {
        self.host.ip().map(|ip| SocketAddr::new(ip, self.port))
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::V4(ip) => write!(f, "{}", Ipv4Addr::from(*ip)),
            // Core always prints plain groups, also for embedded IPv4 addresses.
            Self::V6(ip) | Self::Cjdns(ip) => write_v6(*ip, f),
            Self::Onion(key) => {
                let bytes = [key.as_slice(), &onion_checksum(key), &[ONION_VERSION]].concat();
                write!(f, "{}.onion", base32::encode(&bytes))
            }
            Self::I2p(hash) => write!(f, "{}.b32.i2p", base32::encode(hash)),
            Self::Internal(name) => write!(f, "{}.internal", base32::encode(name)),
        }
    }
}

/// Like Core's `CService::ToStringAddrPort`.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host {
            Host::V4(_) | Host::Onion(_) | Host::I2p(_) | Host::Internal(_) => {
                write!(f, "{}:{}", self.host, self.port)
            }
            Host::V6(_) | Host::Cjdns(_) => write!(f, "[{}]:{}", self.host, self.port),
        }
    }
}

fn write_v6(ip: [u8; 16], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let ip = Ipv6Addr::from(ip);
    match ip.segments() {
        // The standard library would print ::ffff:1.2.3.4 here.
        [0, 0, 0, 0, 0, 0xffff, a, b] => write!(f, "::ffff:{a:x}:{b:x}"),
        _ => write!(f, "{ip}"),
    }
}

/// Tor's rend-spec-v3, section 6.
fn onion_checksum(key: &[u8; 32]) -> [u8; 2] {
    let hash =
        assay_hash::sha3_256(&[b".onion checksum", key.as_slice(), &[ONION_VERSION]].concat());
    [hash[0], hash[1]]
}

const ONION_VERSION: u8 = 3;
const I2P_DIGITS: usize = 52;
