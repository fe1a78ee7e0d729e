//! Writes JSON straight into a byte buffer.
//!
//! A response may be gigabytes (a block of 256 MB with its transactions), so no value tree is built. Members appear in the order
//! written; amounts are exact decimals and never pass through a float.
//!
//! Two interfaces: [`Json`] is the position of one value, which must be filled, and places the commas; [`Out`] gets the text
//! between values from the caller, for responses of a fixed form.
//!
//! ```
//! let mut out = Vec::new();
//! let mut object = assay_json::Json::new(&mut out).object();
//! object.key("height").int(7);
//! object.key("raw").hex(&[0xab]);
//! object.end();
//! assert_eq!(out, br#"{"height":7,"raw":"ab"}"#);
//! let mut out = assay_json::Out::new();
//! out.raw(r#"{"height":"#).int(7).raw(r#","raw":"#).hex(&[0xab]).raw("}");
//! assert_eq!(out.into_bytes(), br#"{"height":7,"raw":"ab"}"#);
//! ```
//!
//! Deliberately absent: parsing, for which `serde_json` is used.

mod builder;
mod value;

pub use builder::{Array, Json, Object};
pub use value::{push_hex, push_int};

/// JSON text; the caller appends punctuation as raw text.
#[derive(Debug, Default)]
pub struct Out {
    bytes: Vec<u8>,
}

impl Out {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    pub fn truncate(&mut self, length: usize) {
        self.bytes.truncate(length);
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Appends text that is valid JSON.
    pub fn raw(&mut self, text: &str) -> &mut Self {
        self.bytes.extend_from_slice(text.as_bytes());
        self
    }

    pub fn raw_bytes(&mut self, text: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(text);
        self
    }

    pub fn int(&mut self, value: impl Into<i128>) -> &mut Self {
        push_int(&mut self.bytes, value.into());
        self
    }

    pub fn bool(&mut self, value: bool) -> &mut Self {
        value::bool(&mut self.bytes, value);
        self
    }

    /// Appends a string with JSON escapes.
    pub fn string(&mut self, text: &str) -> &mut Self {
        value::string(&mut self.bytes, text);
        self
    }

    pub fn hex(&mut self, bytes: &[u8]) -> &mut Self {
        value::hex(&mut self.bytes, bytes);
        self
    }

    /// Appends a hash as a hex string in display order: last byte first.
    pub fn hash(&mut self, hash: &[u8; 32]) -> &mut Self {
        let mut reversed = *hash;
        reversed.reverse();
        self.hex(&reversed)
    }

    pub fn hashes(&mut self, hashes: &[[u8; 32]]) -> &mut Self {
        self.array(hashes, |out, hash| {
            out.hash(hash);
        })
    }

    /// Appends an array of the values that `each` writes.
    pub fn array<T>(
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

    /// Appends satoshi in coins: an exact decimal without trailing zeros.
    pub fn coins(&mut self, satoshi: u64) -> &mut Self {
        let text = format!("{}.{:08}", satoshi / 100_000_000, satoshi % 100_000_000);
        let text = text.trim_end_matches('0');
        // "1." is not a valid number.
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
    fn hashes_are_reversed() {
        let mut hash = [0; 32];
        hash[31] = 0xab;
        assert_eq!(text(|out| _ = out.hash(&hash)), format!("\"ab{}\"", "0".repeat(62)));
        assert_eq!(text(|out| _ = out.hex(&[])), "\"\"");
        assert_eq!(text(|out| _ = out.array([1, 2], |out, n| _ = out.int(n))), "[1,2]");
    }
}
