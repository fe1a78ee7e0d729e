//! Writing answers straight into a buffer: a history of 100,000 entries never is a tree of values.

use std::io::Write as _;

/// Text of an answer as it grows.
#[derive(Debug, Default)]
pub(in crate::server) struct Out {
    bytes: Vec<u8>,
}

impl Out {
    pub(in crate::server) fn new() -> Self {
        Self::default()
    }

    pub(in crate::server) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(in crate::server) fn truncate(&mut self, length: usize) {
        self.bytes.truncate(length);
    }

    pub(in crate::server) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Text that is JSON already.
    pub(in crate::server) fn raw(&mut self, text: &str) -> &mut Self {
        self.bytes.extend_from_slice(text.as_bytes());
        self
    }

    pub(in crate::server) fn raw_bytes(&mut self, text: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(text);
        self
    }

    pub(in crate::server) fn int(&mut self, value: impl Into<i128>) -> &mut Self {
        let value: i128 = value.into();
        write!(self.bytes, "{value}").expect("a vector takes everything");
        self
    }

    pub(in crate::server) fn bool(&mut self, value: bool) -> &mut Self {
        self.raw(if value { "true" } else { "false" })
    }

    /// A string with what JSON wants escaped.
    pub(in crate::server) fn string(&mut self, text: &str) -> &mut Self {
        serde_json::to_writer(&mut self.bytes, text).expect("a vector takes everything");
        self
    }

    /// Bytes as a string of hexadecimal digits.
    pub(in crate::server) fn hex(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes.push(b'"');
        self.hex_digits(bytes);
        self.bytes.push(b'"');
        self
    }

    /// Digits without quotation marks.
    pub(in crate::server) fn hex_digits(&mut self, bytes: &[u8]) -> &mut Self {
        let start = self.bytes.len();
        self.bytes.resize(start + 2 * bytes.len(), 0);
        faster_hex::hex_encode(bytes, &mut self.bytes[start..])
            .expect("room for two digits a byte");
        self
    }

    /// A hash as the protocol prints it: last byte first.
    pub(in crate::server) fn hash(&mut self, hash: &[u8; 32]) -> &mut Self {
        let mut reversed = *hash;
        reversed.reverse();
        self.hex(&reversed)
    }

    /// Hashes as an array.
    pub(in crate::server) fn hashes(&mut self, hashes: &[[u8; 32]]) -> &mut Self {
        self.array(hashes, |out, hash| {
            out.hash(hash);
        })
    }

    /// An array of what `each` writes.
    pub(in crate::server) fn array<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        mut each: impl FnMut(&mut Self, T),
    ) -> &mut Self {
        self.bytes.push(b'[');
        for (index, item) in items.into_iter().enumerate() {
            if index > 0 {
                self.bytes.push(b',');
            }
            each(self, item);
        }
        self.bytes.push(b']');
        self
    }

    /// Satoshi as coins: an exact decimal without superfluous zeros.
    pub(in crate::server) fn coins(&mut self, satoshi: u64) -> &mut Self {
        let text = format!("{}.{:08}", satoshi / 100_000_000, satoshi % 100_000_000);
        let text = text.trim_end_matches('0');
        // "1." is no number.
        let dot = if text.ends_with('.') { "0" } else { "" };
        self.raw(text).raw(dot)
    }
}

#[cfg(test)]
mod tests {
    use super::Out;

    fn text(write: impl FnOnce(&mut Out)) -> String {
        let mut out = Out::new();
        write(&mut out);
        String::from_utf8(out.into_bytes()).unwrap()
    }

    #[test]
    fn amounts_are_exact_decimals() {
        for (satoshi, expected) in [
            (0, "0.0"),
            (1, "0.00000001"),
            (1_000, "0.00001"),
            (100_000_000, "1.0"),
            (123_456_789, "1.23456789"),
            (2_100_000_000_000_000, "21000000.0"),
            (u64::MAX, "184467440737.09551615"),
        ] {
            assert_eq!(text(|out| _ = out.coins(satoshi)), expected);
        }
    }

    #[test]
    fn strings_are_escaped_and_hashes_reversed() {
        assert_eq!(text(|out| _ = out.string("a\"\n\u{1}")), "\"a\\\"\\n\\u0001\"");
        let mut hash = [0; 32];
        hash[31] = 0xab;
        assert_eq!(text(|out| _ = out.hash(&hash)), format!("\"ab{}\"", "0".repeat(62)));
        assert_eq!(text(|out| _ = out.hex(&[])), "\"\"");
        assert_eq!(text(|out| _ = out.array([1, 2], |out, n| _ = out.int(n))), "[1,2]");
    }
}
