//! Compact encoding of a coin, shared by the coin tier and the undo files.
//!
//! The integers and the amount follow Bitcoin Core's `serialize.h` (`VARINT`) and `compressor.cpp`; the list of script templates
//! differs, so that it needs no curve arithmetic. Layouts: `docs/formats.md`.

use assay_wire::{Coin, Script};

/// A coin by reference, from a block or from this store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoinRef<'a> {
    /// Satoshi.
    pub value: i64,
    /// Height of the block that created it, below 2^31.
    pub height: u32,
    pub coinbase: bool,
    pub script_pubkey: &'a [u8],
}

impl CoinRef<'_> {
    #[inline]
    pub fn to_coin(&self) -> Coin {
        Coin {
            value: self.value,
            height: self.height,
            coinbase: self.coinbase,
            script_pubkey: Script::from(self.script_pubkey),
        }
    }
}

impl<'a> From<&'a Coin> for CoinRef<'a> {
    fn from(coin: &'a Coin) -> Self {
        Self {
            value: coin.value,
            height: coin.height,
            coinbase: coin.coinbase,
            script_pubkey: &coin.script_pubkey,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    #[error("the bytes end inside a field")]
    Short,
    /// A variable-length integer exceeds 64 bits, or a height 31.
    #[error("a number is out of range")]
    Range,
    #[error("{count} bytes are left over")]
    Trailing { count: usize },
}

pub(crate) const TEMPLATE_MAX: usize = 35;

pub(crate) type Scratch = [u8; TEMPLATE_MAX];

pub(crate) fn write_coin(out: &mut Vec<u8>, coin: CoinRef<'_>) {
    write_varint(out, u64::from(coin.height) << 1 | u64::from(coin.coinbase));
    write_amount(out, coin.value);
    write_script(out, coin.script_pubkey);
}

/// Takes one coin from the front of `input`; a template script is expanded into `scratch`.
pub(crate) fn read_coin<'s, 'a: 's>(
    input: &mut &'a [u8],
    scratch: &'s mut Scratch,
) -> Result<CoinRef<'s>, CodecError> {
    let code = read_varint(input)?;
    let height = u32::try_from(code >> 1).map_err(|_| CodecError::Range)?;
    if height > i32::MAX as u32 {
        return Err(CodecError::Range);
    }
    let value = read_amount(input)?;
    let script_pubkey = read_script(input, scratch)?;
    Ok(CoinRef { value, height, coinbase: code & 1 == 1, script_pubkey })
}

pub(crate) fn decode_coin<'s, 'a: 's>(
    mut input: &'a [u8],
    scratch: &'s mut Scratch,
) -> Result<CoinRef<'s>, CodecError> {
    let coin = read_coin(&mut input, scratch)?;
    if input.is_empty() { Ok(coin) } else { Err(CodecError::Trailing { count: input.len() }) }
}

/// Appends a number in base 128, most significant digit first, in the unique encoding.
#[inline]
pub(crate) fn write_varint(out: &mut Vec<u8>, n: u64) {
    // Heights and most amounts take two or three digits: encode them without a call.
    let low = n as u8 & 0x7f;
    let Some(second) = (n >> 7).checked_sub(1) else { return out.push(low) };
    let mid = second as u8 | 0x80;
    match (second >> 7).checked_sub(1) {
        None => out.extend_from_slice(&[mid, low]),
        Some(third) if third < 0x80 => out.extend_from_slice(&[third as u8 | 0x80, mid, low]),
        Some(_) => write_long_varint(out, n),
    }
}

/// [`write_varint`] for any number.
fn write_long_varint(out: &mut Vec<u8>, mut n: u64) {
    let mut digits = [0u8; 10];
    let mut at = digits.len() - 1;
    digits[at] = (n & 0x7f) as u8;
    while n > 0x7f {
        n = (n >> 7) - 1;
        at -= 1;
        digits[at] = (n & 0x7f) as u8 | 0x80;
    }
    out.extend_from_slice(&digits[at..]);
}

pub(crate) fn read_varint(input: &mut &[u8]) -> Result<u64, CodecError> {
    let mut n = 0u64;
    loop {
        let (&byte, rest) = input.split_first().ok_or(CodecError::Short)?;
        *input = rest;
        if n > u64::MAX >> 7 {
            return Err(CodecError::Range);
        }
        n = n << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Ok(n);
        }
        n = n.checked_add(1).ok_or(CodecError::Range)?;
    }
}

/// Amounts below this are compressed. All valid amounts are below it; the escape exists for completeness.
const AMOUNT_COMPRESSIBLE: u64 = 1 << 60;

/// Code before eight raw bytes; no compressible amount has this code.
const AMOUNT_RAW: u64 = u64::MAX;

fn write_amount(out: &mut Vec<u8>, value: i64) {
    match u64::try_from(value) {
        Ok(amount) if amount < AMOUNT_COMPRESSIBLE => write_varint(out, compress_amount(amount)),
        _ => {
            write_varint(out, AMOUNT_RAW);
            out.extend_from_slice(&value.to_le_bytes());
        }
    }
}

fn read_amount(input: &mut &[u8]) -> Result<i64, CodecError> {
    let code = read_varint(input)?;
    if code == AMOUNT_RAW {
        let raw = take(input, 8)?.try_into().map_err(|_| CodecError::Short)?;
        return Ok(i64::from_le_bytes(raw));
    }
    decompress_amount(code).and_then(|n| i64::try_from(n).ok()).ok_or(CodecError::Range)
}

/// Moves trailing decimal zeros into one digit, because most payments are round (Core, `CompressAmount`).
pub(crate) fn compress_amount(mut n: u64) -> u64 {
    if n == 0 {
        return 0;
    }
    let mut exponent = 0;
    while n.is_multiple_of(10) && exponent < 9 {
        n /= 10;
        exponent += 1;
    }
    if exponent < 9 {
        let digit = n % 10;
        1 + (n / 10 * 9 + digit - 1) * 10 + exponent
    } else {
        1 + (n - 1) * 10 + 9
    }
}

/// Inverse of [`compress_amount`]; `None` for invalid codes.
pub(crate) fn decompress_amount(code: u64) -> Option<u64> {
    let Some(mut rest) = code.checked_sub(1) else { return Some(0) };
    let exponent = rest % 10;
    rest /= 10;
    let n = if exponent < 9 {
        let digit = rest % 9 + 1;
        (rest / 9).checked_mul(10)?.checked_add(digit)?
    } else {
        rest.checked_add(1)?
    };
    n.checked_mul(10u64.pow(exponent as u32))
}

/// A script of fixed bytes around a hash or key. The tag is its index in [`TEMPLATES`].
struct Template {
    prefix: &'static [u8],
    hole: usize,
    suffix: &'static [u8],
}

const TEMPLATES: [Template; 7] = [
    Template { prefix: &[0x76, 0xa9, 20], hole: 20, suffix: &[0x88, 0xac] }, // P2PKH
    Template { prefix: &[0xa9, 20], hole: 20, suffix: &[0x87] },             // P2SH
    Template { prefix: &[33, 2], hole: 32, suffix: &[0xac] },                // P2PK, even key
    Template { prefix: &[33, 3], hole: 32, suffix: &[0xac] },                // P2PK, odd key
    Template { prefix: &[0, 20], hole: 20, suffix: &[] },                    // P2WPKH
    Template { prefix: &[0, 32], hole: 32, suffix: &[] },                    // P2WSH
    Template { prefix: &[0x51, 32], hole: 32, suffix: &[] },                 // P2TR
];

fn write_script(out: &mut Vec<u8>, script: &[u8]) {
    if let Some((tag, hole)) = find_template(script) {
        // A tag is below 0x80, so it is its own encoding.
        out.push(tag);
        out.extend_from_slice(hole);
    } else {
        write_varint(out, (script.len() + TEMPLATES.len()) as u64);
        out.extend_from_slice(script);
    }
}

/// The template of a script, by length and fixed bytes. Equals `try_templates`.
#[inline]
fn find_template(script: &[u8]) -> Option<(u8, &[u8])> {
    match script.len() {
        22 => script.strip_prefix(&[0, 20]).map(|hole| (4, hole)),
        23 => Some((1, script.strip_prefix(&[0xa9, 20])?.strip_suffix(&[0x87])?)),
        25 => Some((0, script.strip_prefix(&[0x76, 0xa9, 20])?.strip_suffix(&[0x88, 0xac])?)),
        34 => match script {
            [0x51, 32, hole @ ..] => Some((6, hole)),
            [0, 32, hole @ ..] => Some((5, hole)),
            _ => None,
        },
        35 => match script {
            [33, 2, hole @ .., 0xac] => Some((2, hole)),
            [33, 3, hole @ .., 0xac] => Some((3, hole)),
            _ => None,
        },
        _ => None,
    }
}

fn read_script<'s, 'a: 's>(
    input: &mut &'a [u8],
    scratch: &'s mut Scratch,
) -> Result<&'s [u8], CodecError> {
    let tag = usize::try_from(read_varint(input)?).map_err(|_| CodecError::Range)?;
    // Constant lengths compile to a few stores per case.
    match tag {
        0 => expand::<0, 20>(input, scratch),
        1 => expand::<1, 20>(input, scratch),
        2 => expand::<2, 32>(input, scratch),
        3 => expand::<3, 32>(input, scratch),
        4 => expand::<4, 20>(input, scratch),
        5 => expand::<5, 32>(input, scratch),
        6 => expand::<6, 32>(input, scratch),
        _ => take(input, tag - TEMPLATES.len()),
    }
}

/// The script of template `TAG` with `HOLE` variable bytes.
#[inline(always)]
fn expand<'s, const TAG: usize, const HOLE: usize>(
    input: &mut &[u8],
    scratch: &'s mut Scratch,
) -> Result<&'s [u8], CodecError> {
    let template = const { &TEMPLATES[TAG] };
    const { assert!(TEMPLATES[TAG].hole == HOLE) };
    let (hole, rest) = input.split_first_chunk::<HOLE>().ok_or(CodecError::Short)?;
    *input = rest;
    let start = template.prefix.len();
    let length = start + HOLE + template.suffix.len();
    scratch[..start].copy_from_slice(template.prefix);
    scratch[start..start + HOLE].copy_from_slice(hole);
    scratch[start + HOLE..length].copy_from_slice(template.suffix);
    Ok(&scratch[..length])
}

fn take<'a>(input: &mut &'a [u8], count: usize) -> Result<&'a [u8], CodecError> {
    let (head, rest) = input.split_at_checked(count).ok_or(CodecError::Short)?;
    *input = rest;
    Ok(head)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn round_trip(coin: CoinRef<'_>) -> usize {
        let mut bytes = Vec::new();
        write_coin(&mut bytes, coin);
        assert_eq!(decode_coin(&bytes, &mut [0; TEMPLATE_MAX]), Ok(coin));
        for cut in 0..bytes.len() {
            assert!(decode_coin(&bytes[..cut], &mut [0; TEMPLATE_MAX]).is_err());
        }
        bytes.push(0);
        let mut scratch = [0; TEMPLATE_MAX];
        let trailing = decode_coin(&bytes, &mut scratch);
        assert_eq!(trailing, Err(CodecError::Trailing { count: 1 }));
        bytes.len() - 1
    }

    #[test]
    fn templates_are_short() {
        let hash = [7u8; 32];
        for template in &TEMPLATES {
            let hole = &hash[..template.hole];
            let script = [template.prefix, hole, template.suffix].concat();
            let coin =
                CoinRef { value: 50_0000_0000, height: 1, coinbase: true, script_pubkey: &script };
            assert_eq!(round_trip(coin), 3 + template.hole);
        }
    }

    /// Reference for [`find_template`]: tries each template.
    fn try_templates(script: &[u8]) -> Option<(u8, &[u8])> {
        (0u8..).zip(&TEMPLATES).find_map(|(tag, template)| {
            let hole = script.strip_prefix(template.prefix)?.strip_suffix(template.suffix)?;
            (hole.len() == template.hole).then_some((tag, hole))
        })
    }

    #[test]
    fn templates_are_found_as_by_trying_each() {
        for template in &TEMPLATES {
            let whole = [template.prefix, &[0x51; 33][..template.hole], template.suffix].concat();
            for cut in 0..=whole.len() {
                assert_eq!(find_template(&whole[..cut]), try_templates(&whole[..cut]));
            }
            for at in 0..whole.len() {
                for byte in [0, 1, 2, 3, 20, 32, 33, 0x51, 0x76, 0x87, 0x88, 0xa9, 0xac, 0xff] {
                    let mut other = whole.clone();
                    other[at] = byte;
                    assert_eq!(find_template(&other), try_templates(&other), "{other:02x?}");
                    other.push(byte);
                    assert_eq!(find_template(&other), try_templates(&other), "{other:02x?}");
                }
            }
        }
    }

    #[test]
    fn extreme_values_survive() {
        for value in [0, 1, -1, 21_000_000 * 100_000_000, i64::MIN, i64::MAX, 1 << 60] {
            for height in [0, i32::MAX as u32] {
                round_trip(CoinRef { value, height, coinbase: false, script_pubkey: &[0x6a; 300] });
            }
        }
    }

    #[test]
    fn amounts_follow_core() {
        // src/test/compress_tests.cpp
        let pairs = [(0, 0), (1, 1), (1_000_000, 7), (100_000_000, 9), (5_000_000_000, 0x32)];
        for (amount, code) in pairs {
            assert_eq!(compress_amount(amount), code);
            assert_eq!(decompress_amount(code), Some(amount));
        }
        assert_eq!(compress_amount(21_000_000 * 100_000_000), 0x0140_6f40);
    }

    proptest! {
        #[test]
        fn any_coin_survives(
            value: i64, height in 0u32..1 << 31, coinbase: bool,
            script in proptest::collection::vec(any::<u8>(), 0..60),
        ) {
            round_trip(CoinRef { value, height, coinbase, script_pubkey: &script });
        }

        #[test]
        fn any_bytes_are_harmless(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let mut scratch = [0; TEMPLATE_MAX];
            if let Ok(coin) = decode_coin(&bytes, &mut scratch) {
                let mut again = Vec::new();
                write_coin(&mut again, coin);
                let mut second = [0; TEMPLATE_MAX];
                prop_assert_eq!(decode_coin(&again, &mut second), Ok(coin));
            }
        }

        #[test]
        fn varint_round_trip(n: u64, shift in 0u32..64) {
            let n = n >> shift;
            let mut bytes = Vec::new();
            write_varint(&mut bytes, n);
            let mut slow = Vec::new();
            write_long_varint(&mut slow, n);
            prop_assert_eq!(&bytes, &slow);
            let mut input = &bytes[..];
            prop_assert_eq!(read_varint(&mut input), Ok(n));
            prop_assert!(input.is_empty());
        }
    }
}
