//! Takes tokens off the front of a line.

/// What is left of a line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'a> {
    pub(super) rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(super) const fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    /// Takes exactly this, or nothing.
    pub(super) fn eat(&mut self, text: &str) -> Option<()> {
        self.rest = self.rest.strip_prefix(text.as_bytes())?;
        Some(())
    }

    /// Takes what comes before `text`, and `text`.
    pub(super) fn until(&mut self, text: &str) -> Option<&'a [u8]> {
        let at = memchr::memmem::find(self.rest, text.as_bytes())?;
        let taken = &self.rest[..at];
        self.rest = &self.rest[at + text.len()..];
        Some(taken)
    }

    /// Takes blanks.
    pub(super) fn blanks(&mut self) {
        while let [b' ' | b'\t', rest @ ..] = self.rest {
            self.rest = rest;
        }
    }

    /// Takes digits; `None` without any or with more than a `u64` holds.
    pub(super) fn number(&mut self) -> Option<u64> {
        let (value, count) = digits(self.rest, 0)?;
        (count > 0).then_some(())?;
        self.rest = &self.rest[count..];
        Some(value)
    }

    /// A number that counts heights or blocks.
    pub(super) fn height(&mut self) -> Option<u32> {
        self.number()?.try_into().ok()
    }

    /// Takes digits with commas between thousands.
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

    /// Takes a number with or without a fraction.
    pub(super) fn decimal(&mut self) -> Option<f64> {
        let whole_text = self.rest;
        let (whole, count) = digits(self.rest, 0)?;
        (count > 0).then_some(())?;
        self.rest = &self.rest[count..];
        let [b'.', fraction @ ..] = self.rest else { return Some(whole as f64) };
        let length = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
        (length > 0).then_some(())?;
        self.rest = &fraction[length..];
        if count + length <= 15 {
            // Both are exact, so that the quotient is rounded once, as the library would.
            let (all, _) = digits(&fraction[..length], whole)?;
            return Some(all as f64 / POWERS[length]);
        }
        std::str::from_utf8(&whole_text[..=count + length]).ok()?.parse().ok()
    }
}

const POWERS: [f64; 16] =
    [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];

/// Digits at the front behind `value`, and how many there are.
fn digits(text: &[u8], mut value: u64) -> Option<(u64, usize)> {
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

/// A hash that is there whole: 64 hexadecimal digits.
pub(super) fn hash(text: &[u8]) -> Option<[u8; 32]> {
    let mut out = [0; 32];
    (text.len() == 64 && faster_hex::hex_decode(text, &mut out).is_ok()).then_some(out)
}

/// A hash, whole or shortened with dots, as people paste them; the outer `None` is for neither.
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
    use super::*;

    #[test]
    fn decimals_are_those_of_the_library() {
        for text in ["0.00", "3.99", "18.1", "1578.9", "0.998105", "12345678901234567.25", "7"] {
            let ours = Cursor::new(text.as_bytes()).decimal();
            assert_eq!(ours, text.parse().ok(), "{text}");
        }
        for text in ["", ".5", "1.", "x", "99999999999999999999999"] {
            assert_eq!(Cursor::new(text.as_bytes()).decimal(), None, "{text}");
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
