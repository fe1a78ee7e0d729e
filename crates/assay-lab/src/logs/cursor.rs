//! Tokenizer for a log line.

/// Unread rest of a line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'a> {
    pub(super) rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(super) const fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    /// Consumes exactly `text`, or nothing.
    pub(super) fn eat(&mut self, text: &str) -> Option<()> {
        self.rest = self.rest.strip_prefix(text.as_bytes())?;
        Some(())
    }

    /// Consumes up to and including `text`; returns the part before it.
    pub(super) fn until(&mut self, text: &str) -> Option<&'a [u8]> {
        let at = memchr::memmem::find(self.rest, text.as_bytes())?;
        let taken = &self.rest[..at];
        self.rest = &self.rest[at + text.len()..];
        Some(taken)
    }

    pub(super) fn blanks(&mut self) {
        while let [b' ' | b'\t', rest @ ..] = self.rest {
            self.rest = rest;
        }
    }

    /// Parses digits; `None` without any, or on overflow of `u64`.
    pub(super) fn number(&mut self) -> Option<u64> {
        let (value, count) = digits(self.rest, 0)?;
        (count > 0).then_some(())?;
        self.rest = &self.rest[count..];
        Some(value)
    }

    pub(super) fn height(&mut self) -> Option<u32> {
        self.number()?.try_into().ok()
    }

    /// Parses digits with thousands separators.
    pub(super) fn grouped(&mut self) -> Option<u64> {
        let mut value = self.number()?;
        while let [b',', a, b, c, ..] = *self.rest {
            let group = [a, b, c];
            if !group.iter().all(u8::is_ascii_digit) {
                break;
            }
            let (group, _) = digits(&group, 0)?;
            value = value.checked_mul(1000)?.checked_add(group)?;
            self.rest = &self.rest[4..];
        }
        Some(value)
    }

    /// Parses a number with or without a fraction.
    pub(super) fn decimal(&mut self) -> Option<f64> {
        let whole_text = self.rest;
        let (whole, count) = digit_by_digit(self.rest, 0)?;
        (count > 0).then_some(())?;
        self.rest = &self.rest[count..];
        let [b'.', fraction @ ..] = self.rest else { return Some(whole as f64) };
        // Digits beyond `u64` are allowed after the point.
        let taken = digit_by_digit(fraction, whole).filter(|(_, length)| count + length <= 15);
        if let Some((all, length)) = taken {
            (length > 0).then_some(())?;
            self.rest = &fraction[length..];
            // Both are exact, so the quotient is rounded once, as in the standard library.
            return Some(all as f64 / POWERS[length]);
        }
        let length = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
        (length > 0).then_some(())?;
        self.rest = &fraction[length..];
        std::str::from_utf8(&whole_text[..=count + length]).ok()?.parse().ok()
    }
}

const POWERS: [f64; 16] =
    [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];

/// Parses leading digits after `value`, with their count; `None` on overflow of `u64`.
#[inline]
fn digit_by_digit(text: &[u8], mut value: u64) -> Option<(u64, usize)> {
    let mut count = 0;
    for byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
        count += 1;
    }
    Some((value, count))
}

/// Equals [`digit_by_digit`]; faster for long numbers, slower for one or two digits, as in decimals.
#[inline]
fn digits(text: &[u8], mut value: u64) -> Option<(u64, usize)> {
    let mut count = 0;
    loop {
        let (part, length) = up_to_eight(&text[count..]);
        value = value.checked_mul(TENS[length])?.checked_add(part)?;
        count += length;
        if length < 8 {
            return Some((value, count));
        }
    }
}

/// Value and count of the leading digits, at most eight at once: a loop per digit mispredicts its exit, since lengths vary in logs.
#[inline]
fn up_to_eight(text: &[u8]) -> (u64, usize) {
    let Some(bytes) = text.first_chunk::<8>() else {
        let length = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let add = |value: u64, byte: &u8| 10 * value + u64::from(byte - b'0');
        return (text[..length].iter().fold(0, add), length);
    };
    let values = u64::from_le_bytes(*bytes) ^ 0x3030_3030_3030_3030;
    // Top bit of each byte above nine. Its carry only falsifies later bytes.
    let others = (values.wrapping_add(0x7676_7676_7676_7676) | values) & 0x8080_8080_8080_8080;
    let length = (others.trailing_zeros() / 8) as usize;
    if length == 0 {
        return (0, 0);
    }
    // Shifts zeros in front of the digits and later bytes out; then joins neighbours three times.
    let digits = values << (8 * (8 - length));
    let pairs = (digits.wrapping_mul(10) + (digits >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs.wrapping_mul(100) + (pairs >> 16)) & 0x0000_ffff_0000_ffff;
    ((fours.wrapping_mul(10_000) + (fours >> 32)) & 0xffff_ffff, length)
}

const TENS: [u64; 9] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// A complete hash: 64 hex digits.
pub(super) fn hash(text: &[u8]) -> Option<[u8; 32]> {
    let mut out = [0; 32];
    (text.len() == 64 && faster_hex::hex_decode(text, &mut out).is_ok()).then_some(out)
}

/// A hash, complete or shortened with dots; the outer `None` is for neither.
#[expect(clippy::option_option, reason = "no hash, a shortened one, and a whole one")]
pub(super) fn hash_like(text: &[u8]) -> Option<Option<[u8; 32]>> {
    if let Some(hash) = hash(text) {
        return Some(Some(hash));
    }
    let is_cut = text.len() == 20 || memchr::memmem::find(text, b"..").is_some();
    let is_hash = |byte: &u8| byte.is_ascii_hexdigit() || *byte == b'.';
    (is_cut && text.iter().all(is_hash)).then_some(None)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn decimals_are_those_of_the_library() {
        for text in ["0.00", "3.99", "18.1", "1578.9", "0.998105", "12345678901234567.25", "7"] {
            let ours = Cursor::new(text.as_bytes()).decimal();
            assert_eq!(ours, text.parse().ok(), "{text}");
        }
        for text in ["", ".5", "1.", "12345678901234567.", "x", "99999999999999999999999"] {
            assert_eq!(Cursor::new(text.as_bytes()).decimal(), None, "{text}");
        }
    }

    #[test]
    fn digits_are_those_of_the_library() {
        let texts = ["", "7", "1234567", "12345678", "123456789", "18446744073709551615"];
        for text in texts {
            for behind in
                ["", " ", "/", ":", "x", "\u{ff}", "\0", ".5 and more", "        ", "eeeeeeeee"]
            {
                let line = format!("{text}{behind}");
                let mut cursor = Cursor::new(line.as_bytes());
                assert_eq!(cursor.number(), text.parse().ok(), "{line:?}");
                let left = if text.is_empty() { line.as_bytes() } else { behind.as_bytes() };
                assert_eq!(cursor.rest, left, "{line:?}");
            }
        }
        for value in (0..64).map(|bit| (1u64 << bit) - 1) {
            assert_eq!(Cursor::new(value.to_string().as_bytes()).number(), Some(value));
        }
        assert_eq!(Cursor::new(b"18446744073709551616").number(), None);
        // Every byte after a digit ends the number or belongs to it.
        for byte in 0..=u8::MAX {
            let text = [b'4', byte, b'2', b'2', b'2', b'2', b'2', b'2', b'2'];
            let expected = if byte.is_ascii_digit() {
                402_222_222 + 10_000_000 * u64::from(byte - b'0')
            } else {
                4
            };
            assert_eq!(Cursor::new(&text).number(), Some(expected), "{byte}");
        }
    }

    proptest! {
        #[test]
        fn eight_at_once_and_one_by_one_are_the_same(text in "[0-9]{0,24}[ -~]{0,9}", value in 0..1000u64) {
            prop_assert_eq!(digits(text.as_bytes(), value), digit_by_digit(text.as_bytes(), value));
        }

        #[test]
        fn on_any_bytes(text in prop::collection::vec(any::<u8>(), 0..20), at in 0..20usize) {
            let mut text = text;
            // Half of the bytes become digits.
            for byte in text.iter_mut().skip(at).step_by(2) {
                *byte = b'0' + *byte % 10;
            }
            prop_assert_eq!(digits(&text, 0), digit_by_digit(&text, 0));
        }
    }

    #[test]
    fn groups_of_thousands() {
        let read = |text: &'static str| {
            let mut cursor = Cursor::new(text.as_bytes());
            (cursor.grouped(), cursor.rest)
        };
        assert_eq!(read("93,438,029 (+1"), (Some(93_438_029), &b" (+1"[..]));
        assert_eq!(read("384,44"), (Some(384), &b",44"[..]));
        assert_eq!(read("18446744073709551615,000").0, None);
    }
}
