//! Every operation against one that goes bit by bit or byte by byte.

use proptest::prelude::*;

use super::*;

fn trimmed(mut bytes: Vec<u8>) -> Vec<u8> {
    while bytes.last() == Some(&0) {
        bytes.pop();
    }
    bytes
}

fn byte(bytes: &[u8], index: usize) -> u8 {
    bytes.get(index).copied().unwrap_or_default()
}

fn bit(bytes: &[u8], index: usize) -> bool {
    byte(bytes, index / 8) >> (index % 8) & 1 == 1
}

fn slow_add(a: &[u8], b: &[u8]) -> Vec<u8> {
    let mut carry = 0;
    let sums = (0..=a.len().max(b.len())).map(|index| {
        carry += u16::from(byte(a, index)) + u16::from(byte(b, index));
        let low = carry as u8;
        carry >>= 8;
        low
    });
    trimmed(sums.collect())
}

fn slow_subtract(a: &[u8], b: &[u8]) -> Option<Vec<u8>> {
    let mut borrow = 0;
    let differences = (0..a.len().max(b.len())).map(|index| {
        let difference = i16::from(byte(a, index)) - i16::from(byte(b, index)) - borrow;
        borrow = i16::from(difference < 0);
        difference as u8
    });
    let differences = differences.collect();
    (borrow == 0).then(|| trimmed(differences))
}

fn slow_up(a: &[u8], bits: usize) -> Vec<u8> {
    let length = a.len() + bits.div_ceil(8);
    let mut out = vec![0; length];
    for index in (0..8 * a.len()).filter(|&index| bit(a, index)) {
        out[(index + bits) / 8] |= 1 << ((index + bits) % 8);
    }
    out
}

fn slow_down(a: &[u8], bits: usize) -> Vec<u8> {
    let mut out = vec![0; a.len().saturating_sub(bits / 8)];
    for index in (bits..8 * a.len()).filter(|&index| bit(a, index)) {
        out[(index - bits) / 8] |= 1 << ((index - bits) % 8);
    }
    out
}

fn slow_multiply(a: &[u8], b: &[u8]) -> Vec<u8> {
    let mut sum = Vec::new();
    for index in (0..8 * a.len()).filter(|&index| bit(a, index)) {
        sum = slow_add(&sum, &slow_up(b, index));
    }
    sum
}

/// Division bit by bit: quotient and remainder.
fn slow_divide(a: &[u8], b: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let (mut quotient, mut rest) = (vec![0; a.len()], Vec::new());
    for index in (0..8 * a.len()).rev() {
        rest = slow_up(&rest, 1);
        if bit(a, index) {
            rest = slow_add(&rest, &[1]);
        }
        if let Some(less) = slow_subtract(&rest, b) {
            rest = less;
            quotient[index / 8] |= 1 << (index % 8);
        }
    }
    (trimmed(quotient), trimmed(rest))
}

/// Lengths about word boundaries, and bytes that carry.
fn element() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![Just(0), Just(0xff), Just(0x80), any::<u8>()];
    let length = prop_oneof![0..20usize, 60..70usize, 126..132usize];
    length.prop_flat_map(move |length| prop::collection::vec(byte.clone(), length))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn as_bit_by_bit(a in element(), b in element(), bits in 0..600usize) {
        let mut out = vec![7; 9];
        prop_assert_eq!(significant(&a), &trimmed(a.clone())[..]);
        prop_assert_eq!(is_true(&a), a.iter().any(|&byte| byte != 0));
        let slow_ordering = match (slow_subtract(&a, &b), slow_subtract(&b, &a)) {
            (Some(_), Some(_)) => Ordering::Equal,
            (Some(_), None) => Ordering::Greater,
            _ => Ordering::Less,
        };
        prop_assert_eq!(compare(&a, &b), slow_ordering);
        add(&a, &b, &mut out);
        prop_assert_eq!(&out, &slow_add(&a, &b));
        let fits = subtract(&a, &b, &mut out);
        prop_assert_eq!(fits.then(|| out.clone()), slow_subtract(&a, &b));
        double(&a, &mut out);
        prop_assert_eq!(&out, &slow_add(&a, &a));
        halve(&a, &mut out);
        prop_assert_eq!(&out, &trimmed(slow_down(&a, 1)));
        shift_up(&a, bits as u64, &mut out);
        prop_assert_eq!(&out, &slow_up(&a, bits));
        prop_assert_eq!(out.len() as u64, shifted_up_len(a.len(), bits as u64));
        shift_down(&a, bits as u64, &mut out);
        prop_assert_eq!(&out, &slow_down(&a, bits));
        let by_bytes = |combine: fn(u8, u8) -> u8| {
            let length = a.len().max(b.len());
            (0..length).map(|at| combine(byte(&a, at), byte(&b, at))).collect::<Vec<u8>>()
        };
        and(&a, &b, &mut out);
        prop_assert_eq!(&out, &by_bytes(|x, y| x & y));
        multiply(&a, &b, &mut out);
        prop_assert_eq!(&out, &slow_multiply(&a, &b));
        if is_true(&b) {
            let (quotient, rest) = slow_divide(&a, &b);
            divide(&a, &b, &mut out);
            prop_assert_eq!(&out, &quotient);
            remainder(&a, &b, &mut out);
            prop_assert_eq!(&out, &rest);
        }
    }

    #[test]
    fn values_of_a_word(value in any::<u64>(), zeros in 0..20usize, above in any::<bool>()) {
        let (buffer, length) = encode(value);
        let mut bytes = buffer[..length].to_vec();
        prop_assert_eq!(&bytes, &trimmed(value.to_le_bytes().to_vec()));
        bytes.resize(8 + zeros, 0);
        prop_assert_eq!(saturating(&bytes), value);
        if above {
            bytes.push(1);
            prop_assert_eq!(saturating(&bytes), u64::MAX);
        }
    }
}

#[test]
fn shifts_beyond_everything() {
    let mut out = Vec::new();
    shift_down(&[1, 2, 3], u64::MAX, &mut out);
    assert!(out.is_empty());
    assert_eq!(shifted_up_len(3, u64::MAX), u64::MAX / 8 + 4);
}
