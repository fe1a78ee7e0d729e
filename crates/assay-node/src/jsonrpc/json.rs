//! A writer of JSON that goes straight into the response buffer.
//!
//! A response may be gigabytes (`getblock` with full transactions of a 256 MB block), so no tree of
//! values is built. Members appear in the order written, which is Bitcoin Core's; amounts are
//! exact decimals and never pass through a float.

use std::fmt::Display;
use std::io::Write;

/// The place of one value; each method writes that value and uses the place up.
#[derive(Debug)]
#[must_use = "a place without a value is malformed JSON"]
pub struct Json<'a> {
    out: &'a mut Vec<u8>,
}

impl<'a> Json<'a> {
    /// The value goes to the end of `out`.
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out }
    }

    /// Writes `null`.
    pub fn null(self) {
        self.out.extend_from_slice(b"null");
    }

    /// Writes `true` or `false`.
    pub fn bool(self, value: bool) {
        self.out.extend_from_slice(if value { b"true" } else { b"false" });
    }

    /// Writes an integer.
    pub fn int(self, value: impl Into<i128>) {
        write_display(self.out, value.into());
    }

    /// Writes a size or a count.
    pub fn count(self, value: usize) {
        write_display(self.out, value);
    }

    /// Writes a real number with 16 significant digits, as C's `%.16g` does.
    pub fn real(self, value: f64) {
        self.out.extend_from_slice(format_g16(value).as_bytes());
    }

    /// Writes an amount of satoshis in coins: eight digits after the point, always.
    pub fn amount(self, sat: i64) {
        const COIN: u64 = 100_000_000;
        let (sign, abs) = (if sat < 0 { "-" } else { "" }, sat.unsigned_abs());
        write_display(self.out, format_args!("{sign}{}.{:08}", abs / COIN, abs % COIN));
    }

    /// Writes a string, escaping what JSON requires.
    pub fn string(self, value: &str) {
        write_string(self.out, value);
    }

    /// Writes the text of `value`, which must need no escaping (hashes, numbers in hexadecimal).
    pub fn text(self, value: impl Display) {
        self.out.push(b'"');
        write_display(self.out, value);
        self.out.push(b'"');
    }

    /// Writes bytes as a string of lower-case hexadecimal digits.
    pub fn hex(self, bytes: &[u8]) {
        self.out.reserve(bytes.len() * 2 + 2);
        self.out.push(b'"');
        push_hex(self.out, bytes);
        self.out.push(b'"');
    }

    /// Writes JSON text made elsewhere.
    pub fn raw(self, json: &str) {
        self.out.extend_from_slice(json.as_bytes());
    }

    /// Opens an object.
    pub fn object(self) -> Object<'a> {
        self.out.push(b'{');
        Object { out: self.out, empty: true }
    }

    /// Opens an array.
    pub fn array(self) -> Array<'a> {
        self.out.push(b'[');
        Array { out: self.out, empty: true }
    }
}

/// An object being written; [`Object::end`] closes it.
#[derive(Debug)]
#[must_use = "an object that is not ended is malformed JSON"]
pub struct Object<'a> {
    out: &'a mut Vec<u8>,
    empty: bool,
}

impl Object<'_> {
    /// The place of the value of the member `name` (which must need no escaping).
    pub fn key(&mut self, name: impl Display) -> Json<'_> {
        if !std::mem::take(&mut self.empty) {
            self.out.push(b',');
        }
        self.out.push(b'"');
        write_display(self.out, name);
        self.out.extend_from_slice(b"\":");
        Json { out: self.out }
    }

    /// Closes the object.
    pub fn end(self) {
        self.out.push(b'}');
    }
}

/// An array being written; [`Array::end`] closes it.
#[derive(Debug)]
#[must_use = "an array that is not ended is malformed JSON"]
pub struct Array<'a> {
    out: &'a mut Vec<u8>,
    empty: bool,
}

impl Array<'_> {
    /// The place of the next element.
    pub fn item(&mut self) -> Json<'_> {
        if !std::mem::take(&mut self.empty) {
            self.out.push(b',');
        }
        Json { out: self.out }
    }

    /// Closes the array.
    pub fn end(self) {
        self.out.push(b']');
    }
}

/// Appends `bytes` in hexadecimal, without quotes.
pub(super) fn push_hex(out: &mut Vec<u8>, bytes: &[u8]) {
    let start = out.len();
    out.resize(start + bytes.len() * 2, 0);
    faster_hex::hex_encode(bytes, &mut out[start..])
        .expect("the destination is twice as long as the source");
}

fn write_display(out: &mut Vec<u8>, value: impl Display) {
    write!(out, "{value}").expect("writing to a vector does not fail");
}

/// Escapes the same characters as `UniValue`, DEL included.
fn write_string(out: &mut Vec<u8>, value: &str) {
    out.push(b'"');
    for &byte in value.as_bytes() {
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0c => out.extend_from_slice(b"\\f"),
            0..0x20 | 0x7f => write_display(out, format_args!("\\u{byte:04x}")),
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}

/// C's `%.16g`: the form in which Bitcoin Core prints difficulty and progress.
fn format_g16(value: f64) -> String {
    const DIGITS: i32 = 16;
    if value == 0.0 || !value.is_finite() {
        return "0".to_owned();
    }
    // Scientific notation rounds to 16 digits first: the exponent after rounding picks the form.
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

    fn written(f: impl FnOnce(Json<'_>)) -> String {
        let mut out = Vec::new();
        f(Json::new(&mut out));
        String::from_utf8(out).unwrap()
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
            assert_eq!(written(|j| j.amount(sat)), expected);
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
            assert_eq!(written(|j| j.real(value)), expected);
        }
    }

    #[test]
    fn strings_are_escaped_and_parse_back() {
        let text = "a\"b\\c\n\r\t\u{8}\u{c}\u{1}\u{7f}é";
        let json = written(|j| j.string(text));
        assert_eq!(json, "\"a\\\"b\\\\c\\n\\r\\t\\b\\f\\u0001\\u007fé\"");
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
    }

    #[test]
    fn nesting_puts_commas_between_members_only() {
        let json = written(|j| {
            let mut object = j.object();
            object.key("a").int(1);
            let mut array = object.key("b").array();
            array.item().null();
            array.item().bool(true);
            array.item().hex(&[0, 0xab]);
            array.end();
            object.key("c").object().end();
            object.key("d").array().end();
            object.end();
        });
        assert_eq!(json, r#"{"a":1,"b":[null,true,"00ab"],"c":{},"d":[]}"#);
    }
}
