//! Natural numbers of any length, as elements hold them: little endian, zeros at the end allowed (BIP-0441).
//!
//! Results are written to a buffer that the caller reuses. Elements have up to 4,000,000 bytes and BIP-0440 counts bytes, so
//! everything goes through them many at a time. Multiplication and division are the schoolbook's, as the costs of BIP-0441
//! assume: a budget ends long before a better method would pay.

use std::cmp::Ordering;

/// Bytes that are compared with zero at a time: a loop without a branch that compilers turn into vector instructions.
const BLOCK: usize = 256;

fn is_zero_block(block: &[u8]) -> bool {
    block.iter().fold(0, |all, &byte| all | byte) == 0
}

/// Whether some byte is not zero.
#[inline]
pub(super) fn is_true(bytes: &[u8]) -> bool {
    !bytes.chunks(BLOCK).all(is_zero_block)
}

/// The bytes up to the last that is not zero.
pub(super) fn significant(bytes: &[u8]) -> &[u8] {
    let zeros = bytes.rchunks(BLOCK).take_while(|block| is_zero_block(block));
    let rest = &bytes[..bytes.len() - zeros.map(<[u8]>::len).sum::<usize>()];
    let zeros = rest.rchunks_exact(8).take_while(|chunk| word(chunk) == 0).count();
    let rest = &rest[..rest.len() - 8 * zeros];
    let length = rest.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    &rest[..length]
}

/// The value, or the largest of the type where it is above that.
pub(super) fn saturating(bytes: &[u8]) -> u64 {
    let Some((low, high)) = bytes.split_at_checked(8) else { return word(bytes) };
    if is_true(high) { u64::MAX } else { word(low) }
}

/// The shortest element of a value.
pub(super) fn encode(value: u64) -> ([u8; 8], usize) {
    (value.to_le_bytes(), 8 - value.leading_zeros() as usize / 8)
}

/// Compares values.
pub(super) fn compare(a: &[u8], b: &[u8]) -> Ordering {
    let common = a.len().min(b.len());
    let ((a, a_above), (b, b_above)) = (a.split_at(common), b.split_at(common));
    if is_true(a_above) {
        return Ordering::Greater;
    }
    if is_true(b_above) {
        return Ordering::Less;
    }
    let mut blocks = a.rchunks(BLOCK).zip(b.rchunks(BLOCK));
    match blocks.find(|(a, b)| a != b) {
        Some((a, b)) => a.iter().rev().cmp(b.iter().rev()),
        None => Ordering::Equal,
    }
}

/// At most eight bytes.
fn word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

/// The words of a number, the last one with zeros above.
fn words(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    let (whole, rest) = bytes.as_chunks();
    let last = (!rest.is_empty()).then(|| word(rest));
    whole.iter().map(|&bytes| u64::from_le_bytes(bytes)).chain(last)
}

/// Writes words, of which the last may reach beyond `length` bytes with zeros.
fn write(out: &mut Vec<u8>, length: usize, words: impl Iterator<Item = u64>) {
    let start = out.len();
    out.resize(start + length.next_multiple_of(8), 0);
    for (bytes, word) in out[start..].as_chunks_mut().0.iter_mut().zip(words) {
        *bytes = word.to_le_bytes();
    }
    out.truncate(start + length);
}

fn trim(out: &mut Vec<u8>) {
    let length = significant(out).len();
    out.truncate(length);
}

/// `a + b`, without zeros at the end.
pub(super) fn add(a: &[u8], b: &[u8], out: &mut Vec<u8>) {
    let (long, short) = if a.len() < b.len() { (b, a) } else { (a, b) };
    if combine_words(long, short, out, |x, y, carry| {
        let (sum, first) = x.overflowing_add(y);
        let (sum, second) = sum.overflowing_add(u64::from(carry));
        (sum, first | second)
    }) {
        out.push(1);
    }
    trim(out);
}

/// `a - b`, without zeros at the end; whether `b` is not above `a`. Otherwise the result means nothing.
pub(super) fn subtract(a: &[u8], b: &[u8], out: &mut Vec<u8>) -> bool {
    let b = &b[..b.len().min(a.len().max(significant(b).len()))];
    if b.len() > a.len() {
        return false;
    }
    let borrows = combine_words(a, b, out, |x, y, borrow| {
        let (difference, first) = x.overflowing_sub(y);
        let (difference, second) = difference.overflowing_sub(u64::from(borrow));
        (difference, first | second)
    });
    trim(out);
    !borrows
}

/// The words of the longer operand, each with that of the shorter and what is carried; whether something is carried out of the
/// last. Where a word is not used to its end, it holds what its bytes carry.
fn combine_words(
    long: &[u8],
    short: &[u8],
    out: &mut Vec<u8>,
    combine: impl Fn(u64, u64, bool) -> (u64, bool),
) -> bool {
    out.clear();
    out.extend_from_slice(long);
    out.resize(long.len().next_multiple_of(8), 0);
    let mut carry = false;
    let mut step = |bytes: &mut [u8; 8], y: u64| {
        let (result, carries) = combine(u64::from_le_bytes(*bytes), y, carry);
        (*bytes, carry) = (result.to_le_bytes(), carries);
        carries
    };
    // As many words as the shorter has whole ones, then what is left of it, then what is carried.
    let (whole, rest) = short.as_chunks();
    let (low, high) = out.as_chunks_mut().0.split_at_mut(whole.len());
    for (bytes, &y) in low.iter_mut().zip(whole) {
        step(bytes, u64::from_le_bytes(y));
    }
    let mut y = word(rest);
    for bytes in high {
        if !step(bytes, y) && y == 0 {
            break;
        }
        y = 0;
    }
    carry
}

/// `2 a`, without zeros at the end.
pub(super) fn double(a: &[u8], out: &mut Vec<u8>) {
    shift_up(a, 1, out);
    trim(out);
}

/// `a / 2`, without zeros at the end.
pub(super) fn halve(a: &[u8], out: &mut Vec<u8>) {
    shift_down(a, 1, out);
    trim(out);
}

/// Bytes that [`shift_up`] gives.
pub(super) fn shifted_up_len(length: usize, bits: u64) -> u64 {
    (length as u64).saturating_add(bits / 8).saturating_add(u64::from(!bits.is_multiple_of(8)))
}

/// `a` with so many zero bits before it; a byte more where the bits of its bytes move.
pub(super) fn shift_up(a: &[u8], bits: u64, out: &mut Vec<u8>) {
    out.clear();
    out.resize((bits / 8) as usize, 0);
    let shift = (bits % 8) as u32;
    if shift == 0 {
        out.extend_from_slice(a);
        return;
    }
    let Some((first, last)) = a.first().zip(a.last()) else { return out.push(0) };
    // Bytes and not words: compilers make vectors of this.
    out.push(first << shift);
    out.extend(a.iter().zip(&a[1..]).map(|(before, byte)| byte << shift | before >> (8 - shift)));
    out.push(last >> (8 - shift));
}

/// `a` without its first so many bits: as many bytes fewer as that is whole bytes.
pub(super) fn shift_down(a: &[u8], bits: u64, out: &mut Vec<u8>) {
    out.clear();
    let rest = usize::try_from(bits / 8).ok().and_then(|skipped| a.get(skipped..));
    let rest = rest.unwrap_or_default();
    let shift = (bits % 8) as u32;
    if shift == 0 {
        out.extend_from_slice(rest);
        return;
    }
    let Some((last, above)) = rest.last().zip(rest.get(1..)) else { return };
    out.extend(rest.iter().zip(above).map(|(byte, above)| byte >> shift | above << (8 - shift)));
    out.push(last >> shift);
}

/// The bits that both have; the shorter operand goes on with zeros.
pub(super) fn and(a: &[u8], b: &[u8], out: &mut Vec<u8>) {
    out.clear();
    out.extend(a.iter().zip(b).map(|(a, b)| a & b));
    out.resize(a.len().max(b.len()), 0);
}

/// Every bit the other way.
pub(super) fn invert(a: &[u8], out: &mut Vec<u8>) {
    out.clear();
    out.extend(a.iter().map(|byte| !byte));
}

/// `a b`, without zeros at the end.
pub(super) fn multiply(a: &[u8], b: &[u8], out: &mut Vec<u8>) {
    let (a, b) = (significant(a), significant(b));
    // The inner loop is the longer.
    let (long, short) = if a.len() < b.len() { (b, a) } else { (a, b) };
    let long: Vec<u64> = words(long).collect();
    let mut product = vec![0; long.len() + short.len().div_ceil(8)];
    for (at, factor) in words(short).enumerate() {
        let mut carry = 0;
        for (sum, &word) in product[at..].iter_mut().zip(&long) {
            let wide = u128::from(word) * u128::from(factor) + u128::from(*sum) + carry;
            *sum = wide as u64;
            carry = wide >> 64;
        }
        product[at + long.len()] = carry as u64;
    }
    set(out, &product);
}

/// Quotient of `a / b`, without zeros at the end; `b` is not zero.
pub(super) fn divide(a: &[u8], b: &[u8], out: &mut Vec<u8>) {
    match Division::of(a, b) {
        Some(division) => set(out, &division.quotient),
        None => out.clear(),
    }
}

/// Remainder of `a / b`, without zeros at the end; `b` is not zero.
pub(super) fn remainder(a: &[u8], b: &[u8], out: &mut Vec<u8>) {
    if let Some(division) = Division::of(a, b) {
        set(out, &division.remainder);
    } else {
        out.clear();
        out.extend_from_slice(significant(a));
    }
}

fn set(out: &mut Vec<u8>, words: &[u64]) {
    out.clear();
    write(out, 8 * words.len(), words.iter().copied());
    trim(out);
}

struct Division {
    quotient: Vec<u64>,
    remainder: Vec<u64>,
}

impl Division {
    /// Algorithm D of Knuth, The Art of Computer Programming, volume 2, 4.3.1; `None` where `a` is below `b`.
    fn of(a: &[u8], b: &[u8]) -> Option<Self> {
        let (a, b) = (significant(a), significant(b));
        if compare(a, b).is_lt() {
            return None;
        }
        // D1: the highest bit of the divisor is set; the dividend has a word more.
        let shift =
            b.last().map_or(0, |top| top.leading_zeros() + 8 * (b.len().wrapping_neg() % 8) as u32);
        let divisor = shifted(b, shift);
        let mut rest = shifted(a, shift);
        let top = a.chunks(8).next_back().map_or(0, word);
        rest.push(if shift == 0 { 0 } else { top >> (64 - shift) });
        let mut quotient = vec![0; rest.len() - divisor.len()];
        for at in (0..quotient.len()).rev() {
            let window = &mut rest[at..=at + divisor.len()];
            let mut digit = estimate(window, &divisor);
            let mut is_negative = subtract_product(window, &divisor, digit);
            // D6.
            while is_negative {
                digit -= 1;
                is_negative = !add_back(window, &divisor);
            }
            quotient[at] = digit;
        }
        rest.truncate(divisor.len());
        if shift > 0 {
            let mut above = 0;
            for word in rest.iter_mut().rev() {
                (*word, above) = (*word >> shift | above, *word << (64 - shift));
            }
        }
        Some(Self { quotient, remainder: rest })
    }
}

/// The words of a number that is shifted up, without what leaves the last.
fn shifted(bytes: &[u8], shift: u32) -> Vec<u64> {
    let mut before = 0;
    let shift_word = |word: u64| {
        let moved = if shift == 0 { word } else { word << shift | before >> (64 - shift) };
        before = word;
        moved
    };
    words(bytes).map(shift_word).collect()
}

/// D3: a digit of the quotient, or a little more; `window` has a word more than the divisor, of which the first bit is set.
fn estimate(window: &[u64], divisor: &[u64]) -> u64 {
    let (top, below) = (window[window.len() - 1], window[window.len() - 2]);
    let first = divisor[divisor.len() - 1];
    if top >= first {
        return u64::MAX;
    }
    let wide = u128::from(top) << 64 | u128::from(below);
    let (mut digit, mut rest) = (wide / u128::from(first), wide % u128::from(first));
    if let [.., second, _] = *divisor {
        let third = u128::from(window[window.len() - 3]);
        while rest >> 64 == 0 && digit * u128::from(second) > (rest << 64 | third) {
            digit -= 1;
            rest += u128::from(first);
        }
    }
    digit as u64
}

/// D4: whether the product was above the window, which then holds the difference and a word more.
fn subtract_product(window: &mut [u64], divisor: &[u64], digit: u64) -> bool {
    let (mut carry, mut borrow) = (0, false);
    for (rest, word) in window.iter_mut().zip(divisor.iter().copied().chain([0])) {
        let product = u128::from(word) * u128::from(digit) + carry;
        carry = product >> 64;
        let (difference, first) = rest.overflowing_sub(product as u64);
        let (difference, second) = difference.overflowing_sub(u64::from(borrow));
        (*rest, borrow) = (difference, first | second);
    }
    borrow
}

/// Whether the sum does not fit, so that what was below zero no longer is.
fn add_back(window: &mut [u64], divisor: &[u64]) -> bool {
    let mut carry = false;
    for (rest, word) in window.iter_mut().zip(divisor.iter().copied().chain([0])) {
        let (sum, first) = rest.overflowing_add(word);
        let (sum, second) = sum.overflowing_add(u64::from(carry));
        (*rest, carry) = (sum, first | second);
    }
    carry
}

#[cfg(test)]
#[path = "natural_tests.rs"]
mod tests;
