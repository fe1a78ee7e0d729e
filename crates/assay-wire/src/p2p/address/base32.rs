//! Base32 (RFC 4648) in lower case without padding.

pub(super) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(5) * 8);
    let (mut held, mut bits) = (0u32, 0);
    for byte in bytes {
        held = held << 8 | u32::from(*byte);
        bits += 8;
        while bits >= 5 {
            bits -= 5;
            text.push(digit(held >> bits));
        }
    }
    if bits > 0 {
        text.push(digit(held << (5 - bits)));
    }
    text
}

/// Decodes exactly `N` bytes; `None` for other lengths, invalid digits, or non-zero trailing bits.
pub(super) fn decode<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != (N * 8).div_ceil(5) {
        return None;
    }
    let mut bytes = [0; N];
    let (mut held, mut bits, mut filled) = (0u32, 0, 0);
    for letter in text.bytes() {
        let letter = letter.to_ascii_lowercase();
        let value = DIGITS.iter().position(|digit| *digit == letter)?;
        held = (held << 5 | value as u32) & 0xfff;
        bits += 5;
        if bits >= 8 {
            bits -= 8;
            *bytes.get_mut(filled)? = (held >> bits) as u8;
            filled += 1;
        }
    }
    (filled == N && held & ((1 << bits) - 1) == 0).then_some(bytes)
}

fn digit(value: u32) -> char {
    char::from(DIGITS[(value & 31) as usize])
}

const DIGITS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
