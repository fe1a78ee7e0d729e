//! Incremental reader of request texts that decodes long hexadecimal strings during the transfer.
//!
//! A 256 MB block arrives as one JSON string of 512 million digits. Keeping that text would double the memory and
//! delay decoding until the last byte. Strings of only hexadecimal digits longer than [`BLOB_DIGITS_MIN`] therefore
//! leave the text: their bytes are kept separately as a *blob*, and an empty string replaces them. The position
//! identifies these empty strings, which no client can forge. A string that proves to be other data returns to the
//! text.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::TryReserveError;

use memchr::{memchr, memchr2};
use serde_json::value::RawValue;

#[derive(Debug)]
pub(crate) struct BodyDecoder {
    text: Vec<u8>,
    blobs: Vec<Blob>,
    state: State,
    taken: usize,
    announced: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Text {
    text: Vec<u8>,
    /// Sorted by position. In a `RefCell`, because [`Text::take`] empties them one by one while values borrow from the text.
    blobs: RefCell<Vec<Blob>>,
}

#[derive(Debug)]
struct Blob {
    /// Position in the text of the opening quotation mark of the empty string.
    at: usize,
    bytes: Vec<u8>,
    /// True for uppercase digits. A string of mixed case is not a blob, so that each blob can be restored exactly.
    upper: bool,
}

impl Blob {
    fn write(&self, text: &mut Vec<u8>) {
        let start = text.len();
        assay_json::push_hex(text, &self.bytes);
        if self.upper {
            text[start..].make_ascii_uppercase();
        }
    }
}

/// True if `digits` has no letter of the other case.
fn is_in_case(digits: &[u8], upper: bool) -> bool {
    if upper {
        !digits.iter().any(u8::is_ascii_lowercase)
    } else {
        !digits.iter().any(u8::is_ascii_uppercase)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Outside,
    /// Inside a string that begins at `start` in the text.
    InString {
        start: usize,
        escaped: bool,
        /// The string may still become a blob.
        candidate: bool,
    },
    /// Inside a string whose digits go to the last blob.
    InBlob {
        /// First digit of an incomplete byte.
        odd: Option<u8>,
    },
}

impl BodyDecoder {
    /// For a text of `announced` bytes; 0 if unknown.
    pub(crate) fn new(announced: usize) -> Self {
        let text = Vec::with_capacity(announced.min(TEXT_RESERVE_MAX));
        Self { text, blobs: Vec::new(), state: State::Outside, taken: 0, announced }
    }

    pub(crate) fn taken(&self) -> usize {
        self.taken
    }

    /// Appends the next piece; pieces may be cut anywhere.
    ///
    /// # Errors
    /// Out of memory.
    pub(crate) fn push(&mut self, mut piece: &[u8]) -> Result<(), TryReserveError> {
        self.taken += piece.len();
        while !piece.is_empty() {
            let used = match self.state {
                State::Outside => self.push_outside(piece)?,
                State::InString { start, escaped, candidate } => {
                    self.push_string(piece, start, escaped, candidate)?
                }
                State::InBlob { odd } => self.push_blob(piece, odd)?,
            };
            piece = &piece[used..];
        }
        Ok(())
    }

    pub(crate) fn finish(self) -> Text {
        Text { text: self.text, blobs: RefCell::new(self.blobs) }
    }

    fn push_outside(&mut self, piece: &[u8]) -> Result<usize, TryReserveError> {
        let quote = memchr(b'"', piece);
        let used = quote.map_or(piece.len(), |at| at + 1);
        self.append(&piece[..used])?;
        if quote.is_some() {
            let start = self.text.len();
            self.state = State::InString { start, escaped: false, candidate: true };
        }
        Ok(used)
    }

    fn push_string(
        &mut self,
        piece: &[u8],
        start: usize,
        escaped: bool,
        candidate: bool,
    ) -> Result<usize, TryReserveError> {
        if escaped {
            self.append(&piece[..1])?;
            self.state = State::InString { start, escaped: false, candidate };
            return Ok(1);
        }
        let stop = memchr2(b'"', b'\\', piece);
        let run = stop.unwrap_or(piece.len());
        self.append(&piece[..run])?;
        if candidate && self.text.len() - start >= BLOB_DIGITS_MIN {
            self.begin_blob(start)?;
            return Ok(run);
        }
        let Some(stop) = stop else { return Ok(run) };
        self.append(&piece[stop..=stop])?;
        self.state = if piece[stop] == b'"' {
            State::Outside
        } else {
            // Clients that send megabytes of hexadecimal digits do not escape them.
            State::InString { start, escaped: true, candidate: false }
        };
        Ok(stop + 1)
    }

    /// Moves the digits from `start` on into a blob if all are hexadecimal.
    fn begin_blob(&mut self, start: usize) -> Result<(), TryReserveError> {
        let digits = &self.text[start..];
        let even = digits.len() & !1;
        let odd = digits.get(even).copied();
        let mut bytes = Vec::new();
        // The rest of the text most likely belongs to this string.
        let rest = self.announced.saturating_sub(self.taken);
        bytes.try_reserve_exact(even / 2 + rest.div_ceil(2))?;
        bytes.resize(even / 2, 0);
        let upper = digits.iter().any(u8::is_ascii_uppercase);
        let decoded = is_in_case(digits, upper)
            && faster_hex::hex_decode(&digits[..even], &mut bytes).is_ok();
        if !decoded || odd.is_some_and(|digit| !digit.is_ascii_hexdigit()) {
            self.state = State::InString { start, escaped: false, candidate: false };
            return Ok(());
        }
        self.text.truncate(start);
        self.blobs.push(Blob { at: start - 1, bytes, upper });
        self.state = State::InBlob { odd };
        Ok(())
    }

    fn push_blob(&mut self, piece: &[u8], odd: Option<u8>) -> Result<usize, TryReserveError> {
        let quote = memchr(b'"', piece);
        let digits = &piece[..quote.unwrap_or(piece.len())];
        let blob = self.blobs.last_mut().expect("a blob is being filled");
        let (pair, rest) = match odd {
            Some(first) => match digits.split_first() {
                Some((&second, rest)) => (Some([first, second]), rest),
                None => (None, digits),
            },
            None => (None, digits),
        };
        let (even, left) = rest.split_at(rest.len() & !1);
        let before = blob.bytes.len();
        blob.bytes.try_reserve(even.len() / 2 + 1)?;
        let mut good = is_in_case(digits, blob.upper) && left.iter().all(u8::is_ascii_hexdigit);
        for part in [pair.as_ref().map_or(&[][..], |pair| pair), even] {
            let start = blob.bytes.len();
            blob.bytes.resize(start + part.len() / 2, 0);
            good &= faster_hex::hex_decode(part, &mut blob.bytes[start..]).is_ok();
        }
        let pending = left.first().copied().or(odd.filter(|_| pair.is_none()));
        if !good || quote.is_some() && pending.is_some() {
            blob.bytes.truncate(before);
            self.return_blob(odd)?;
            return Ok(0);
        }
        let Some(quote) = quote else {
            self.state = State::InBlob { odd: pending };
            return Ok(piece.len());
        };
        self.append(b"\"")?;
        self.state = State::Outside;
        Ok(quote + 1)
    }

    /// Returns the digits of the last blob to the text: the string is not hexadecimal data.
    fn return_blob(&mut self, odd: Option<u8>) -> Result<(), TryReserveError> {
        let blob = self.blobs.pop().expect("a blob is being filled");
        let start = self.text.len();
        self.text.try_reserve(blob.bytes.len() * 2 + 1)?;
        blob.write(&mut self.text);
        self.text.extend(odd);
        self.state = State::InString { start, escaped: false, candidate: false };
        Ok(())
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), TryReserveError> {
        self.text.try_reserve(bytes.len())?;
        self.text.extend_from_slice(bytes);
        Ok(())
    }
}

impl Text {
    /// Array of values from other texts, whose blobs move to it; null for `None`.
    pub(crate) fn array<'a>(
        values: impl Iterator<Item = Option<(&'a RawValue, &'a Self)>>,
    ) -> Self {
        let mut array = Self::from(&b"["[..]);
        for value in values {
            if array.text.len() > 1 {
                array.text.push(b',');
            }
            let Some((value, source)) = value else {
                array.text.extend_from_slice(b"null");
                continue;
            };
            let (json, at) = (value.get(), array.text.len());
            if let Some(start) = source.position(value) {
                let is_inside = |blob: &mut Blob| (start..start + json.len()).contains(&blob.at);
                let mut blobs = source.blobs.borrow_mut();
                let moved = blobs.extract_if(.., is_inside);
                let moved = moved.map(|blob| Blob { at: blob.at - start + at, ..blob });
                array.blobs.get_mut().extend(moved);
            }
            array.text.extend_from_slice(json.as_bytes());
        }
        array.text.push(b']');
        array
    }

    /// The text, with empty strings in place of blobs.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.text
    }

    /// Takes the blob that replaces `value`, which must be part of this text.
    pub(crate) fn take(&self, value: &RawValue) -> Option<Vec<u8>> {
        let at = self.position(value)?;
        let mut blobs = self.blobs.borrow_mut();
        let index = blobs.iter().position(|blob| blob.at == at)?;
        Some(blobs.remove(index).bytes)
    }

    /// `value` as the client wrote it.
    pub(crate) fn original<'a>(&self, value: &'a RawValue) -> Cow<'a, str> {
        let json = value.get();
        let Some(start) = self.position(value) else { return Cow::Borrowed(json) };
        let blobs = self.blobs.borrow();
        let inside = blobs.iter().filter(|blob| (start..start + json.len()).contains(&blob.at));
        let (mut out, mut done) = (Vec::new(), 0);
        for blob in inside {
            let open = blob.at - start + 1;
            out.extend_from_slice(&json.as_bytes()[done..open]);
            blob.write(&mut out);
            done = open;
        }
        if done == 0 {
            return Cow::Borrowed(json);
        }
        out.extend_from_slice(&json.as_bytes()[done..]);
        Cow::Owned(String::from_utf8(out).expect("pieces of a text and hexadecimal digits"))
    }

    /// Position of `value` in the text; `None` if it is not part of it.
    fn position(&self, value: &RawValue) -> Option<usize> {
        let at = value.get().as_ptr().addr().checked_sub(self.text.as_ptr().addr())?;
        (at < self.text.len()).then_some(at)
    }
}

impl From<&[u8]> for Text {
    fn from(text: &[u8]) -> Self {
        Self { text: text.to_vec(), blobs: RefCell::default() }
    }
}

/// Minimum digits of a blob: longer than any transaction outside blocks.
const BLOB_DIGITS_MIN: usize = if cfg!(fuzzing) { 1 << 4 } else { 1 << 20 };
/// Only blobs make texts longer, as a rule.
const TEXT_RESERVE_MAX: usize = BLOB_DIGITS_MIN + (1 << 20);

#[cfg(test)]
mod tests {
    use super::*;

    fn take_in(text: &[u8], piece: usize) -> Text {
        let mut decoder = BodyDecoder::new(text.len());
        for piece in text.chunks(piece) {
            decoder.push(piece).unwrap();
        }
        assert_eq!(decoder.taken(), text.len());
        decoder.finish()
    }

    fn values(text: &Text) -> Vec<&RawValue> {
        serde_json::from_slice(text.as_bytes()).unwrap()
    }

    #[test]
    fn decodes_long_hexadecimal_strings() {
        let data: Vec<u8> = (0..BLOB_DIGITS_MIN).map(|i| (i % 251) as u8).collect();
        let hex = faster_hex::hex_string(&data);
        let upper = hex.to_uppercase();
        let json = format!(r#"["{hex}", "ab", "", "{upper}", {{"x\"y":"{hex}"}}, "{hex}"]"#);
        for piece in [json.len(), 65_536, 65_537, 4095] {
            let text = take_in(json.as_bytes(), piece);
            assert!(text.as_bytes().len() < 100);
            let values = values(&text);
            assert!(text.original(values[4]).contains(&hex));
            for (index, expected) in [
                (0, Some(&data)),
                (1, None),
                (2, None),
                (3, Some(&data)),
                (4, None),
                (5, Some(&data)),
            ] {
                assert!(text.take(values[index]).as_ref() == expected, "{piece} {index}");
            }
            assert!(text.take(values[0]).is_none());
            assert_eq!((values[1].get(), values[2].get()), ("\"ab\"", "\"\""));
        }
    }

    #[test]
    fn other_strings_stay_in_the_text() {
        let hex = "5a".repeat(BLOB_DIGITS_MIN);
        let odd = format!("{hex}0");
        let late = format!("{hex}xy");
        let late_odd = format!("{hex}1x");
        let early = format!("x{hex}");
        let escaped = format!("{hex}\\n\\\"{hex}");
        let leading = format!("\\u0035{hex}");
        // The case of letters survives any cut; found by the fuzz target `jsonrpc`.
        let mixed = format!("{hex}5A,");
        let capitals = format!("{}x", hex.to_uppercase());
        for content in [&odd, &late, &late_odd, &early, &escaped, &leading, &mixed, &capitals] {
            let json = format!(r#"["{content}","ab"]"#);
            for piece in [json.len(), 65_537, 65_536] {
                let text = take_in(json.as_bytes(), piece);
                assert!(text.as_bytes() == json.as_bytes(), "{piece} {}", &content[..8]);
                let first = values(&text)[0];
                assert!(text.take(first).is_none());
                assert!(matches!(text.original(first), Cow::Borrowed(_)));
            }
        }
    }

    #[test]
    fn result_is_independent_of_cuts() {
        let data: Vec<u8> = (0..BLOB_DIGITS_MIN / 2 + 40).map(|i| (i * 7 % 256) as u8).collect();
        let json = format!(r#"["{}"]"#, faster_hex::hex_string(&data));
        let (head, tail) = json.split_at(BLOB_DIGITS_MIN - 8);
        for cut in 0..tail.len() {
            let mut decoder = BodyDecoder::new(0);
            for piece in [head, &tail[..cut], &tail[cut..]] {
                decoder.push(piece.as_bytes()).unwrap();
            }
            let text = decoder.finish();
            assert!(text.take(values(&text)[0]).as_ref() == Some(&data), "{cut}");
        }
        // One digit at a time.
        let mut decoder = BodyDecoder::new(0);
        decoder.push(head.as_bytes()).unwrap();
        for byte in tail.bytes() {
            decoder.push(&[byte]).unwrap();
        }
        let text = decoder.finish();
        assert!(text.take(values(&text)[0]) == Some(data));
    }

    #[test]
    fn values_move_to_another_text() {
        let hex = "5a".repeat(BLOB_DIGITS_MIN / 2);
        let json = format!(r#"["{hex}", "ab", ["x", "{hex}"], ""]"#);
        let text = take_in(json.as_bytes(), 1 << 16);
        let found = values(&text);
        let order = [Some(3), None, Some(2), Some(0), Some(1)];
        let moved = Text::array(order.into_iter().map(|at| at.map(|at: usize| (found[at], &text))));
        assert!(text.take(found[0]).is_none(), "it is in the other text");
        assert_eq!(moved.as_bytes(), br#"["",null,["x", ""],"","ab"]"#);
        let found = values(&moved);
        assert!(moved.original(found[2]).contains(&hex));
        assert!(moved.take(found[0]).is_none());
        assert_eq!(moved.take(found[3]).map(|bytes| bytes.len()), Some(hex.len() / 2));
    }

    #[test]
    fn rejects_truncated_texts() {
        let json = format!(r#"["{}"#, "00".repeat(BLOB_DIGITS_MIN));
        let text = take_in(json.as_bytes(), 1 << 16);
        assert!(serde_json::from_slice::<&RawValue>(text.as_bytes()).is_err());
    }

    #[test]
    fn foreign_values_have_no_position() {
        let text = take_in(br#"[""]"#, 1);
        let other: &RawValue = serde_json::from_str(r#""""#).unwrap();
        assert!(text.take(other).is_none());
        assert_eq!(text.original(other), r#""""#);
    }
}
