//! Host names and their addresses (Core `netbase.cpp`).

use std::fmt::Debug;
use std::io;
use std::net::{IpAddr, Ipv4Addr, ToSocketAddrs};

use assay_wire::p2p::{Endpoint, Host};

/// DNS resolver; tests replace it.
pub trait Resolve: Debug + Send + Sync {
    /// All addresses of `host`, which is not an address itself.
    ///
    /// # Errors
    /// Resolution failed.
    fn look_up(&self, host: &str) -> io::Result<Vec<IpAddr>>;
}

#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn look_up(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        let mut found: Vec<IpAddr> = (host, 0).to_socket_addrs()?.map(|found| found.ip()).collect();
        found.dedup();
        Ok(found)
    }
}

/// True for equal known hosts. Hosts known only to a proxy are never equal.
pub(super) fn same_host(one: &Host, other: &Host) -> bool {
    one.is_valid() && one == other
}

/// As [`same_host`], with ports.
pub(super) fn same_endpoint(one: &Endpoint, other: &Endpoint) -> bool {
    same_host(&one.host, &other.host) && one.port == other.port
}

/// IP address of a host, for range checks; `None` if unknown (Core `netaddress.cpp`, `CSubNet::Match`).
pub(crate) fn valid_ip(host: &Host) -> Option<IpAddr> {
    host.ip().filter(|_| host.is_valid())
}

/// Splits a name into host without brackets and port or `default_port` (Core `util/strencodings.cpp`, `SplitHostPort`).
pub(super) fn split(name: &str, default_port: u16) -> (&str, u16) {
    let port = name.rsplit_once(':').and_then(|(host, port)| {
        let is_port = !host.contains(':') || (host.starts_with('[') && host.ends_with(']'));
        let is_number = port.bytes().all(|byte| byte.is_ascii_digit());
        port.parse().ok().filter(|_| is_port && is_number).map(|port| (host, port))
    });
    let (host, port) = port.unwrap_or((name, default_port));
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    (bare.unwrap_or(host), port)
}

/// Parses a numeric address, including short forms such as `127.1`, or a Tor or I2P address, without DNS.
pub(super) fn numeric(name: &str, default_port: u16) -> Option<Endpoint> {
    let (host, port) = split(name, default_port);
    let host = Host::parse(host).or_else(|| short_v4(host).map(|ip| Host::V4(ip.octets())))?;
    Some(Endpoint { host, port })
}

/// Default port of a name: none on I2P (Core `net.cpp`, `GetDefaultPort`).
pub(super) fn default_port(name: &str, of_chain: u16) -> u16 {
    let is_i2p = name.rsplit_once('.').is_some_and(|(_, end)| end.eq_ignore_ascii_case("i2p"));
    if is_i2p { 0 } else { of_chain }
}

/// IPv4 address in the notation of `inet_aton`: with fewer than four numbers the last one fills the remaining
/// bytes, and numbers may be octal or hexadecimal.
fn short_v4(text: &str) -> Option<Ipv4Addr> {
    let number = |text: &str| match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None if text.len() > 1 && text.starts_with('0') => u32::from_str_radix(text, 8).ok(),
        None => text.parse().ok(),
    };
    if !text.bytes().all(|byte| byte.is_ascii_hexdigit() || matches!(byte, b'.' | b'x' | b'X')) {
        return None;
    }
    let parts = text.split('.').map(number).collect::<Option<Vec<u32>>>()?;
    let (last, bytes) = parts.split_last()?;
    let left = 4usize.checked_sub(bytes.len()).filter(|left| *left > 0)?;
    if bytes.iter().any(|byte| *byte > 0xff) || u64::from(*last) >> (8 * left) != 0 {
        return None;
    }
    let start = bytes.iter().enumerate().map(|(at, byte)| byte << (24 - 8 * at));
    Some(Ipv4Addr::from_bits(start.sum::<u32>() | last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_hosts_are_never_equal() {
        let host = |text: &str| Host::parse(text).unwrap();
        assert!(same_host(&host("1.2.3.4"), &host("1.2.3.4")));
        assert!(!same_host(&host("1.2.3.4"), &host("1.2.3.5")));
        for unknown in [Host::NONE, host("0.0.0.0"), host("2001:db8::1")] {
            assert!(!same_host(&unknown, &unknown) && valid_ip(&unknown).is_none());
            let endpoint = Endpoint { host: unknown, port: 1 };
            assert!(!same_endpoint(&endpoint, &endpoint));
        }
        assert_eq!(valid_ip(&host("1.2.3.4")), Some([1, 2, 3, 4].into()));
    }

    #[test]
    fn splits_names_and_ports() {
        for (name, expected) in [
            ("127.0.0.1:5", Some("127.0.0.1:5")),
            ("127.0.0.1", Some("127.0.0.1:8333")),
            ("127.1:7", Some("127.0.0.1:7")),
            ("0x7f000001", Some("127.0.0.1:8333")),
            ("010.1.258", Some("8.1.1.2:8333")),
            ("[::1]:7", Some("[::1]:7")),
            ("::1", Some("[::1]:8333")),
            ("[::1]", Some("[::1]:8333")),
            ("1.2.3.4.5", None),
            ("1.2.3.256", None),
            ("256.1", None),
            ("", None),
            ("a.b", None),
            ("localhost", None),
            ("127.0.0.1:99999", None),
            (
                "pg6mmjiyjmcrsslvykfwnntlaru7p5svn6y2ymmju6nubxndf4pscryd.onion:9",
                Some("pg6mmjiyjmcrsslvykfwnntlaru7p5svn6y2ymmju6nubxndf4pscryd.onion:9"),
            ),
        ] {
            let found = numeric(name, 8333).map(|endpoint| endpoint.to_string());
            assert_eq!(found.as_deref(), expected, "{name}");
        }
        assert_eq!(split("seed.example:1", 2), ("seed.example", 1));
        assert_eq!(split("seed.example", 2), ("seed.example", 2));
        assert_eq!(default_port("x.b32.i2p", 8333), 0);
    }

    #[test]
    fn system_resolves_localhost() {
        let found = SystemResolver.look_up("localhost").unwrap();
        assert!(!found.is_empty() && found.iter().all(IpAddr::is_loopback));
    }
}
