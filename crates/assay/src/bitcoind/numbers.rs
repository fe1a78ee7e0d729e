//! Parsers of amounts, hashes, and addresses with ports.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use anyhow::anyhow;

use super::grammar::WHITE;

/// Converts an amount in BTC to satoshi (Core `util/moneystr.cpp`, `ParseMoney`).
pub(crate) fn amount(text: &str) -> Option<u64> {
    const COIN: u64 = 100_000_000;
    let text = text.trim_matches(WHITE);
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    if text.is_empty()
        || !is_number(whole)
        || !is_number(part)
        || part.len() > 8
        || whole.len() > 10
    {
        return None;
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let part: u64 = format!("{part:0<8}").parse().ok()?;
    let sum = whole.checked_mul(COIN)?.checked_add(part)?;
    (sum <= 21_000_000 * COIN).then_some(sum)
}

/// Parses a size with a unit suffix: k, m, g and t for powers of 1000, K, M, G and T for powers of 1024 (Core
/// `util/strencodings.cpp`, `ParseByteUnits`). Without a suffix the unit is `default_unit`.
pub(crate) fn bytes(text: &str, default_unit: char) -> Option<u64> {
    let unit = text.chars().next_back().filter(|last| !last.is_ascii_digit());
    let digits = &text[..text.len() - unit.map_or(0, char::len_utf8)];
    let factor: u64 = match unit.unwrap_or(default_unit) {
        'k' => 1000,
        'K' => 1 << 10,
        'm' => 1_000_000,
        'M' => 1 << 20,
        'g' => 1_000_000_000,
        'G' => 1 << 30,
        't' => 1_000_000_000_000,
        'T' => 1 << 40,
        _ => return None,
    };
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse::<u64>().ok().filter(|_| is_number)?.checked_mul(factor)
}

/// Parses a 256-bit number of up to 64 hexadecimal digits, with or without `0x`, in little-endian
/// byte order like hashes (Core `uint256.h`, `FromUserHex`).
pub(crate) fn hash(text: &str) -> Option<[u8; 32]> {
    let text = text.trim_matches(WHITE);
    let digits = text.strip_prefix("0x").unwrap_or(text);
    if digits.len() > 64 || !digits.is_ascii() {
        return None;
    }
    let mut bytes = [0; 32];
    faster_hex::hex_decode(format!("{digits:0>64}").as_bytes(), &mut bytes).ok()?;
    bytes.reverse();
    Some(bytes)
}

pub(crate) fn port(text: &str) -> Option<u16> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|port| is_number && *port > 0)
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AddressError {
    /// The text after the colon is not a port.
    Port,
    /// The text before the colon is not a numeric address.
    Host,
}

/// Parses an address with an optional port: `1.2.3.4`, `1.2.3.4:5`, `::1`, `[::1]`, `[::1]:5`.
pub(crate) fn address(text: &str, default: u16) -> Result<SocketAddr, AddressError> {
    let colons = text.bytes().filter(|byte| *byte == b':').count();
    let (host, number) = match text.rsplit_once(':') {
        Some((host, number)) if host.ends_with(']') || colons == 1 => (host, Some(number)),
        _ => (text, None),
    };
    let number = match number {
        Some(number) => port(number).ok_or(AddressError::Port)?,
        None => default,
    };
    let host = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    let ip: IpAddr = host.parse().map_err(|_| AddressError::Host)?;
    Ok(SocketAddr::new(ip, number))
}

/// Normalises a subnet to `address/bits` from any form that Core accepts: with a netmask, with brackets.
pub(crate) fn subnet(text: &str) -> Option<String> {
    let (address, mask) = match text.split_once('/') {
        Some((address, mask)) => (address, Some(mask)),
        None => (text, None),
    };
    let inner = address.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let ip: IpAddr = inner.unwrap_or(address).parse().ok()?;
    let Some(mask) = mask else { return Some(ip.to_string()) };
    let Ok(mask) = mask.parse::<IpAddr>() else { return Some(format!("{ip}/{mask}")) };
    let (ones, zeros, width) = match (ip, mask) {
        (IpAddr::V4(_), IpAddr::V4(mask)) => {
            (mask.to_bits().leading_ones(), mask.to_bits().trailing_zeros(), 32)
        }
        (IpAddr::V6(_), IpAddr::V6(mask)) => {
            (mask.to_bits().leading_ones(), mask.to_bits().trailing_zeros(), 128)
        }
        _ => return None,
    };
    (ones + zeros >= width).then(|| format!("{ip}/{ones}"))
}

/// Clamps negative numbers to 0.
pub(crate) fn not_negative(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

pub(crate) fn bind_address(name: &str, text: &str, default: u16) -> anyhow::Result<SocketAddr> {
    address(text, default).map_err(|error| match error {
        AddressError::Port => anyhow!("Invalid port specified in -{name}: '{text}'"),
        AddressError::Host => anyhow!("Cannot resolve -{name} address: '{text}'"),
    })
}

/// Clamps to at least one second, and below the range at which clocks overflow.
pub(crate) fn seconds_of(seconds: i64) -> Duration {
    Duration::from_secs(not_negative(seconds).clamp(1, u32::MAX.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts() {
        for (text, expected) in [
            ("1", Some(100_000_000)),
            ("0.00001", Some(1000)),
            (" 0.00000001 ", Some(1)),
            (".5", Some(50_000_000)),
            ("1.", Some(100_000_000)),
            ("21000000", Some(2_100_000_000_000_000)),
            ("21000000.00000001", None),
            ("0.000000001", None),
            ("-1", None),
            ("1 2", None),
            ("1e3", None),
            ("", None),
            ("99999999999", None),
        ] {
            assert_eq!(amount(text), expected, "{text:?}");
        }
    }

    #[test]
    fn bytes_with_units() {
        for (text, expected) in [
            ("1", Some(1 << 20)),
            ("800M", Some(800 << 20)),
            ("3k", Some(3000)),
            ("3K", Some(3072)),
            ("2m", Some(2_000_000)),
            ("5g", Some(5_000_000_000)),
            ("1G", Some(1 << 30)),
            ("1t", Some(1_000_000_000_000)),
            ("1T", Some(1 << 40)),
            ("0", Some(0)),
            ("", None),
            ("M", None),
            ("abc", None),
            ("-1", None),
            ("+1M", None),
            ("1é", None),
            ("1MM", None),
            ("18446744073709551615", None),
        ] {
            assert_eq!(bytes(text, 'M'), expected, "{text}");
        }
    }

    #[test]
    fn hashes() {
        assert_eq!(hash("0"), Some([0; 32]));
        assert_eq!(hash("").map(|bytes| bytes[0]), Some(0));
        assert_eq!(hash("0x1Ff").map(|bytes| (bytes[1], bytes[0])), Some((1, 0xff)));
        assert_eq!(hash(&"f".repeat(64)), Some([0xff; 32]));
        assert!(hash(&"f".repeat(65)).is_none() && hash("xyz").is_none() && hash("é").is_none());
    }

    #[test]
    fn subnets() {
        for (text, expected) in [
            ("1.2.3.4", Some("1.2.3.4")),
            ("[::1]", Some("::1")),
            ("1.2.3.4/24", Some("1.2.3.4/24")),
            ("1.2.3.4/255.255.254.0", Some("1.2.3.4/23")),
            ("1.2.3.4/0.0.0.0", Some("1.2.3.4/0")),
            ("1.2.3.4/255.255.255.255", Some("1.2.3.4/32")),
            ("::1/ffff::", Some("::1/16")),
            ("1.2.3.4/255.0.255.0", None),
            ("1.2.3.4/ffff::", None),
            ("host/8", None),
            ("", None),
        ] {
            assert_eq!(subnet(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn addresses() {
        let check = |text, expected: &str| {
            assert_eq!(address(text, 9), Ok(expected.parse().unwrap()), "{text}");
        };
        check("1.2.3.4", "1.2.3.4:9");
        check("1.2.3.4:5", "1.2.3.4:5");
        check("::1", "[::1]:9");
        check("[::1]", "[::1]:9");
        check("[::1]:5", "[::1]:5");
        for text in ["1.2.3.4:0", "1.2.3.4:x", "1.2.3.4:65536", "1.2.3.4:", "[::1]:", ":"] {
            assert_eq!(address(text, 9), Err(AddressError::Port), "{text}");
        }
        for text in ["", "host", "1.2.3", "[::1", "1.2.3.4]"] {
            assert_eq!(address(text, 9), Err(AddressError::Host), "{text}");
        }
        assert_eq!(port("0"), None);
        assert_eq!(port("+5"), None);
    }
}
