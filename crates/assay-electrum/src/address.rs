//! IP address ranges, and the grouping of addresses by client.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

/// An IP range in CIDR form: all addresses that share the first `prefix` bits with `address`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subnet {
    address: IpAddr,
    prefix: u8,
}

/// Identifies one client: an IPv4 address, also if mapped to IPv6, or the /64 of an IPv6 address.
pub fn customer(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from(u128::from(address) >> 64 << 64)),
    }
}

/// The text is not a valid [`Subnet`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid subnet {text:?}: expected an address such as 10.0.0.7, or a range such as 10.0.0.0/8 or fd00::/8"
)]
pub struct SubnetParseError {
    pub text: String,
}

impl Subnet {
    pub fn one(address: IpAddr) -> Self {
        let prefix = if address.is_ipv4() { 32 } else { 128 };
        Self { address, prefix }
    }

    /// True if `address` is in the range. An IPv4-mapped IPv6 address counts as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        let bits = |ip: IpAddr| match ip.to_canonical() {
            IpAddr::V4(ip) => (u128::from(ip.to_bits()) << 96, 32),
            IpAddr::V6(ip) => (ip.to_bits(), 128),
        };
        let ((ours, our_len), (theirs, their_len)) = (bits(self.address), bits(address));
        let mask = u128::MAX.checked_shl(128 - u32::from(self.prefix)).unwrap_or(0);
        our_len == their_len && (ours ^ theirs) & mask == 0
    }
}

impl FromStr for Subnet {
    type Err = SubnetParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let (address, prefix) = match text.split_once('/') {
                Some((address, prefix)) => (address, Some(prefix)),
                None => (text, None),
            };
            let address: IpAddr = address.parse().ok()?;
            let address_bits = if address.is_ipv4() { 32 } else { 128 };
            let prefix = match prefix {
                Some(prefix) => prefix.parse().ok().filter(|bits| *bits <= address_bits)?,
                None => address_bits,
            };
            Some(Self { address, prefix })
        };
        parse().ok_or_else(|| SubnetParseError { text: text.to_owned() })
    }
}

impl fmt::Display for Subnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_contain_all_scripts_with_the_prefix() {
        for (range, address, inside) in [
            ("10.0.0.0/8", "10.255.1.2", true),
            ("10.0.0.0/8", "11.0.0.0", false),
            ("10.0.0.7", "10.0.0.7", true),
            ("10.0.0.7", "10.0.0.6", false),
            ("0.0.0.0/0", "203.0.113.9", true),
            ("0.0.0.0/0", "::1", false),
            ("10.0.0.0/8", "::ffff:10.1.2.3", true),
            ("fd00::/8", "fd12::1", true),
            ("fd00::/8", "fe80::1", false),
            ("::/0", "2001:db8::1", true),
        ] {
            let range: Subnet = range.parse().unwrap();
            assert_eq!(range.contains(address.parse().unwrap()), inside, "{range} {address}");
        }
    }

    #[test]
    fn clients_are_ipv4_addresses_or_ipv6_subnets() {
        for (address, expected) in [
            ("203.0.113.9", "203.0.113.9"),
            ("::ffff:203.0.113.9", "203.0.113.9"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
            ("2001:db8:1:2::1", "2001:db8:1:2::"),
            ("2001:db8:1:3::1", "2001:db8:1:3::"),
            ("::1", "::"),
        ] {
            let parse = |text: &str| text.parse::<IpAddr>().unwrap();
            assert_eq!(customer(parse(address)), parse(expected));
        }
    }

    #[test]
    fn rejects_bad_ranges() {
        for text in ["", "10.0.0", "10.0.0.0/33", "::/129", "10.0.0.0/x", "10.0.0.0/-1", "host"] {
            assert_eq!(text.parse::<Subnet>().unwrap_err().text, text);
        }
    }
}
