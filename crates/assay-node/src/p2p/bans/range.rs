//! Address ranges in Core's notation and order (`netaddress.cpp`, `CSubNet`).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// IP range or Tor address.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Range {
    V4(u32, u8),
    V6(u128, u8),
    Onion(String),
}

impl Range {
    /// Parses an address, optionally with a prefix length or a mask after a slash.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if let Some(name) = text.strip_suffix(".onion") {
            let is_digit = |c: u8| c.is_ascii_lowercase() || (b'2'..=b'7').contains(&c);
            let is_name = name.len() == ONION_DIGITS && name.bytes().all(is_digit);
            return is_name.then(|| Self::Onion(text.to_owned()));
        }
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address = address.parse::<IpAddr>().ok()?.to_canonical();
        let width = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Some(width), |bits| prefix(bits, address))?;
        Some(match address {
            IpAddr::V4(ip) => Self::V4(ip.to_bits() & mask(32, bits) as u32, bits),
            IpAddr::V6(ip) => Self::V6(ip.to_bits() & mask(128, bits), bits),
        })
    }

    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        match (self, address.to_canonical()) {
            (Self::V4(start, bits), IpAddr::V4(ip)) => {
                ip.to_bits() & mask(32, *bits) as u32 == *start
            }
            (Self::V6(start, bits), IpAddr::V6(ip)) => ip.to_bits() & mask(128, *bits) == *start,
            _ => false,
        }
    }

    /// The address of a range of one.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        match self {
            Self::V4(ip, 32) => Some(Ipv4Addr::from_bits(*ip).into()),
            Self::V6(ip, 128) => Some(Ipv6Addr::from_bits(*ip).into()),
            _ => None,
        }
    }
}

/// Prefix length from a mask or a number.
fn prefix(text: &str, address: IpAddr) -> Option<u8> {
    let (bits, ones, width) = match (text.parse::<IpAddr>(), address) {
        (Ok(IpAddr::V4(mask)), IpAddr::V4(_)) => {
            (u128::from(mask.to_bits()), mask.to_bits().leading_ones(), 32)
        }
        (Ok(IpAddr::V6(mask)), IpAddr::V6(_)) => {
            (mask.to_bits(), mask.to_bits().leading_ones(), 128)
        }
        (Ok(_), _) => return None,
        (Err(_), _) => {
            let width = if address.is_ipv4() { 32 } else { 128 };
            return text.parse().ok().filter(|bits| *bits <= width);
        }
    };
    let ones = u8::try_from(ones).ok()?;
    (bits == mask(width, ones)).then_some(ones)
}

/// `ones` leading ones, then zeros.
fn mask(width: u8, ones: u8) -> u128 {
    let all = u128::MAX >> (128 - u32::from(width));
    let zeros = u32::from(width.saturating_sub(ones));
    all & u128::MAX.checked_shl(zeros).unwrap_or(0)
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::V4(start, bits) => write!(f, "{}/{bits}", Ipv4Addr::from_bits(*start)),
            Self::V6(start, bits) => write!(f, "{}/{bits}", Ipv6Addr::from_bits(*start)),
            Self::Onion(name) => f.write_str(name),
        }
    }
}

/// Characters of a Tor v3 address, without suffix.
const ONION_DIGITS: usize = 56;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_and_formats_like_core() {
        let onion = format!("{}.onion", "a2".repeat(28));
        for (text, expected) in [
            ("127.0.0.1", Some("127.0.0.1/32")),
            ("127.0.0.1/24", Some("127.0.0.0/24")),
            ("127.0.0.1/255.255.0.0", Some("127.0.0.0/16")),
            ("1.2.3.4/0", Some("0.0.0.0/0")),
            ("127.0.0.1/255.0.255.0", None),
            ("127.0.0.1/33", None),
            ("127.0.0.1/ffff::", None),
            ("::1", Some("::1/128")),
            ("2001:4d48:ac57:400:cacf:e9ff:fe1d:9c63/19", Some("2001:4000::/19")),
            ("::/0", Some("::/0")),
            ("::ffff:1.2.3.4", Some("1.2.3.4/32")),
            (&onion, Some(&onion)),
            ("a.onion", None),
            ("", None),
            ("host", None),
        ] {
            assert_eq!(Range::parse(text).map(|range| range.to_string()).as_deref(), expected);
        }
        let range = |text: &str| Range::parse(text).unwrap();
        assert!(range("127.0.0.0/24") < range("127.0.0.0/32"));
        assert!(range("192.168.0.2") < range("2001::/19") && range("2001::/19") < range(&onion));
        assert!(range("0.0.0.0/0").contains("9.9.9.9".parse().unwrap()));
        assert!(!range("0.0.0.0/0").contains("::1".parse().unwrap()));
    }
}
