//! The form of signatures and keys, without any arithmetic on the curve.

use super::error::ScriptError;
use super::flags::Flags;
use super::message::{SIGHASH_ANYONECANPAY, SIGHASH_SINGLE};

/// Half of the group order, big endian; S above it is "high".
const HALF_ORDER: [u8; 32] = [
    0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    0x5d, 0x57, 0x6e, 0x73, 0x57, 0xa4, 0x50, 0x1d, 0xdf, 0xe9, 0x2f, 0x46, 0x68, 0x1b, 0x20, 0xa0,
];
/// The group order, big endian.
const ORDER: [u8; 32] = [
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe,
    0xba, 0xae, 0xdc, 0xe6, 0xaf, 0x48, 0xa0, 0x3b, 0xbf, 0xd2, 0x5e, 0x8c, 0xd0, 0x36, 0x41, 0x41,
];

/// The two numbers of a strict DER signature (BIP-0066), without hash type; `None` when it is not
/// strict: `30 len 02 len R 02 len S`, both positive and as short as possible.
#[inline]
pub(super) fn strict_der(der: &[u8]) -> Option<(&[u8], &[u8])> {
    let [0x30, total, body @ ..] = der else { return None };
    if !(8..=72).contains(&der.len()) || usize::from(*total) != body.len() {
        return None;
    }
    let (r, rest) = der_integer(body)?;
    let (s, rest) = der_integer(rest)?;
    rest.is_empty().then_some((r, s))
}

#[inline]
fn der_integer(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let [0x02, length, rest @ ..] = bytes else { return None };
    let (number, rest) = rest.split_at_checked(usize::from(*length))?;
    let minimal = match number {
        [] => false,
        [first, ..] if first & 0x80 != 0 => false,
        [0, second, ..] => second & 0x80 != 0,
        _ => true,
    };
    minimal.then_some((number, rest))
}

/// Returns `true` if a positive DER integer is greater than a number of 32 bytes.
fn exceeds(number: &[u8], bound: &[u8; 32]) -> bool {
    let digits = match number {
        [0, rest @ ..] => rest,
        _ => number,
    };
    match digits.len() {
        32 => digits > &bound[..],
        length => length > 32,
    }
}

/// Returns `true` if S is at most half the order, as Core's `CPubKey::CheckLowS` answers it: a number
/// outside the scalar field turns the whole signature into zeros there, and zero is low.
#[inline]
pub(super) fn is_low_s(r: &[u8], s: &[u8]) -> bool {
    if !exceeds(s, &HALF_ORDER) {
        return true;
    }
    let at_least_order = |number: &[u8]| {
        let digits = if let [0, rest @ ..] = number { rest } else { number };
        exceeds(number, &ORDER) || digits == ORDER
    };
    at_least_order(r) || at_least_order(s)
}

/// The rules for a signature with its hash type (Core `CheckSignatureEncoding`). Empty signatures
/// pass: they are the compact way to fail a check on purpose.
#[inline]
pub(super) fn check_signature(sig: &[u8], flags: Flags) -> Result<(), ScriptError> {
    let Some((&hash_type, der)) = sig.split_last() else { return Ok(()) };
    check_der(der, flags)?;
    if flags.contains(Flags::STRICTENC) {
        let base = u32::from(hash_type) & !SIGHASH_ANYONECANPAY;
        if !(1..=SIGHASH_SINGLE).contains(&base) {
            return Err(ScriptError::SigHashType);
        }
    }
    Ok(())
}

/// DER and low-S rules for a signature without hash type.
#[inline]
pub(super) fn check_der(der: &[u8], flags: Flags) -> Result<(), ScriptError> {
    if flags.intersects(Flags::DERSIG | Flags::LOW_S | Flags::STRICTENC) {
        let (r, s) = strict_der(der).ok_or(ScriptError::SigDer)?;
        if flags.contains(Flags::LOW_S) && !is_low_s(r, s) {
            return Err(ScriptError::SigHighS);
        }
    }
    Ok(())
}

/// Returns `true` if the key is 02/03 with 33 bytes or 04 with 65 bytes.
#[inline]
pub(super) fn is_plain_key(key: &[u8]) -> bool {
    is_compressed_key(key) || matches!(key, [4, ..] if key.len() == 65)
}

/// Returns `true` if the key is 02/03 with 33 bytes.
#[inline]
pub(super) fn is_compressed_key(key: &[u8]) -> bool {
    matches!(key, [2 | 3, ..] if key.len() == 33)
}

/// Returns `true` if first byte and length fit together (Core `CPubKey::IsValid`); those of hybrid keys do.
#[inline]
pub(super) fn has_key_form(key: &[u8]) -> bool {
    is_compressed_key(key) || matches!(key, [4 | 6 | 7, ..] if key.len() == 65)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn der(r: &[u8], s: &[u8]) -> Vec<u8> {
        let mut out = vec![0x30, (4 + r.len() + s.len()) as u8, 2, r.len() as u8];
        out.extend(r);
        out.extend([2, s.len() as u8]);
        out.extend(s);
        out
    }

    #[test]
    fn strictness() {
        assert!(strict_der(&der(&[1], &[1])).is_some());
        assert!(strict_der(&der(&[0, 0x80], &[0x7f; 32])).is_some());
        for (r, s) in [(&[0u8, 1][..], &[1u8][..]), (&[0x80], &[1]), (&[], &[1]), (&[1], &[])] {
            assert!(strict_der(&der(r, s)).is_none(), "{r:?} {s:?}");
        }
        let mut trailing = der(&[1], &[1]);
        trailing.push(0);
        assert!(strict_der(&trailing).is_none());
        trailing[1] += 1;
        assert!(strict_der(&trailing).is_none());
        let good = der(&[1; 32], &[2; 32]);
        for length in 0..good.len() {
            assert!(strict_der(&good[..length]).is_none());
        }
    }

    #[test]
    fn low_s_boundary() {
        let mut above = HALF_ORDER;
        above[31] += 1;
        assert!(is_low_s(&[1], &HALF_ORDER));
        assert!(!is_low_s(&[1], &above));
        let order: Vec<u8> = [0].into_iter().chain(ORDER).collect();
        assert!(is_low_s(&[1], &order), "overflowing S becomes zero");
        assert!(is_low_s(&order, &above), "overflowing R zeroes S too");
        let mut below = order.clone();
        below[32] -= 1;
        assert!(!is_low_s(&below, &below));
        assert!(is_low_s(&[1], &[0x7f; 34]));
    }

    #[test]
    fn key_forms() {
        let key = |first: u8, length: usize| {
            let mut key = vec![9; length];
            key[0] = first;
            key
        };
        assert!(is_plain_key(&key(2, 33)) && is_plain_key(&key(4, 65)));
        assert!(!is_plain_key(&key(6, 65)) && has_key_form(&key(6, 65)));
        assert!(!has_key_form(&key(2, 65)) && !has_key_form(&key(4, 33)) && !has_key_form(&[]));
    }
}
