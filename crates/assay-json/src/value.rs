//! Formats of values.

use std::fmt::Display;
use std::io::Write as _;

pub(crate) fn bool(out: &mut Vec<u8>, value: bool) {
    out.extend_from_slice(if value { b"true" } else { b"false" });
}

pub(crate) fn display(out: &mut Vec<u8>, value: impl Display) {
    write!(out, "{value}").expect("writing to a vector does not fail");
}

pub fn push_int(out: &mut Vec<u8>, value: i128) {
    if value < 0 {
        out.push(b'-');
    }
    // 64-bit arithmetic computes the digits several times faster than 128-bit arithmetic.
    let Ok(mut rest) = u64::try_from(value.unsigned_abs()) else {
        return display(out, value.unsigned_abs());
    };
    let mut digits = [0; 20];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[start..]);
}

pub(crate) fn real(out: &mut Vec<u8>, value: f64) {
    out.extend_from_slice(format_g16(value).as_bytes());
}

/// Satoshis in coins, with eight decimals.
pub(crate) fn amount(out: &mut Vec<u8>, sat: i64) {
    const COIN: u64 = 100_000_000;
    let (sign, abs) = (if sat < 0 { "-" } else { "" }, sat.unsigned_abs());
    display(out, format_args!("{sign}{}.{:08}", abs / COIN, abs % COIN));
}

/// Escapes the same characters as `UniValue` of Bitcoin Core, DEL included.
pub(crate) fn string(out: &mut Vec<u8>, value: &str) {
    let is_escaped = |byte: &u8| matches!(byte, 0..0x20 | b'"' | b'\\' | 0x7f);
    let mut rest = value.as_bytes();
    out.push(b'"');
    while let Some(at) = rest.iter().position(is_escaped) {
        out.extend_from_slice(&rest[..at]);
        match rest[at] {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0c => out.extend_from_slice(b"\\f"),
            byte => display(out, format_args!("\\u{byte:04x}")),
        }
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

/// Bytes as a string of lower-case hex digits.
pub(crate) fn hex(out: &mut Vec<u8>, bytes: &[u8]) {
    out.reserve(bytes.len() * 2 + 2);
    out.push(b'"');
    push_hex(out, bytes);
    out.push(b'"');
}

/// Appends `bytes` in hex, without quotation marks.
pub fn push_hex(out: &mut Vec<u8>, bytes: &[u8]) {
    let start = out.len();
    out.resize(start + bytes.len() * 2, 0);
    faster_hex::hex_encode(bytes, &mut out[start..])
        .expect("the destination is twice as long as the source");
}

/// C's `%.16g`: Bitcoin Core's format of difficulty and progress.
fn format_g16(value: f64) -> String {
    const DIGITS: i32 = 16;
    if value == 0.0 || !value.is_finite() {
        return "0".to_owned();
    }
    // Scientific notation first rounds to 16 digits: the exponent after rounding selects the format.
    let scientific = format!("{value:.15e}");
    let (mantissa, exponent) =
        scientific.split_once('e').expect("scientific notation has an exponent");
    let exponent: i32 = exponent.parse().expect("the exponent is a small integer");
    let trim = |text: &str| -> String {
        if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            text.to_owned()
        }
    };
    if (-4..DIGITS).contains(&exponent) {
        let decimals = usize::try_from(DIGITS - 1 - exponent).unwrap_or(0);
        trim(&format!("{value:.decimals$}"))
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{}e{sign}{:02}", trim(mantissa), exponent.abs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(f: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        f(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn integers_are_written_as_they_are_printed() {
        for edge in [0, 9, 10, 840_000, 1 << 32, 1 << 63, 1 << 64, i128::MAX - 1] {
            for number in [edge, edge + 1, edge - 1, -edge, -edge - 1, -edge - 2] {
                assert_eq!(written(|out| push_int(out, number)), number.to_string());
            }
        }
        assert_eq!(written(|out| push_int(out, i128::MIN)), i128::MIN.to_string());
    }

    #[test]
    fn amounts_are_exact_decimals() {
        for (sat, expected) in [
            (0, "0.00000000"),
            (1, "0.00000001"),
            (-1, "-0.00000001"),
            (5_000_000_000, "50.00000000"),
            (2_099_999_997_690_000, "20999999.97690000"),
            (-123_456_789, "-1.23456789"),
            (i64::MIN, "-92233720368.54775808"),
        ] {
            assert_eq!(written(|out| amount(out, sat)), expected);
        }
    }

    #[test]
    fn reals_print_as_percent_16g() {
        for (value, expected) in [
            (0.0, "0"),
            (1.0, "1"),
            (4.656542373906925e-10, "4.656542373906925e-10"),
            (0.1, "0.1"),
            (0.00012345, "0.00012345"),
            (0.000012345, "1.2345e-05"),
            (126_411_437_451_912.23, "126411437451912.2"),
            (1e15, "1000000000000000"),
            (1e16, "1e+16"),
            (1.25e22, "1.25e+22"),
        ] {
            assert_eq!(written(|out| real(out, value)), expected);
        }
    }

    #[test]
    fn strings_are_escaped_and_parse_back() {
        let text = "a\"b\\c\n\r\t\u{8}\u{c}\u{1}\u{7f}é";
        let json = written(|out| string(out, text));
        assert_eq!(json, "\"a\\\"b\\\\c\\n\\r\\t\\b\\f\\u0001\\u007fé\"");
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
    }
}
