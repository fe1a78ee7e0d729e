//! Integration tests: addresses, messages, parsing; and here block filters against a slow implementation of BIP158 with bits as text.

mod addresses;
mod p2p;
mod parse;

use std::fmt::Write as _;

use std::collections::BTreeSet;

use assay_hash::SipHash24;
use assay_testkit::random::Random;
use assay_wire::BlockHash;
use assay_wire::filter::{BASIC_M, BASIC_P, Filter, FilterError, encode};
use proptest::prelude::*;

/// Reference encoder of a set of elements; a bit is a character.
fn slow_encode(hash: &BlockHash, elements: &BTreeSet<Vec<u8>>) -> Vec<u8> {
    let values = slow_values(hash, elements);
    let mut bits = String::new();
    let mut last = 0;
    for value in values {
        let difference = value - last;
        last = value;
        bits.push_str(&"1".repeat((difference >> BASIC_P) as usize));
        bits.push('0');
        write!(bits, "{:019b}", difference & ((1 << BASIC_P) - 1)).expect("memory");
    }
    while !bits.len().is_multiple_of(8) {
        bits.push('0');
    }
    assert!(elements.len() < 253);
    let mut out = vec![elements.len() as u8];
    for byte in bits.as_bytes().chunks(8) {
        let text = std::str::from_utf8(byte).unwrap();
        out.push(u8::from_str_radix(text, 2).unwrap());
    }
    out
}

fn slow_values(hash: &BlockHash, elements: &BTreeSet<Vec<u8>>) -> Vec<u64> {
    let k0 = u64::from_le_bytes(hash.0[..8].try_into().unwrap());
    let k1 = u64::from_le_bytes(hash.0[8..16].try_into().unwrap());
    let range = u128::from(elements.len() as u64 * BASIC_M);
    let hashed = |element: &Vec<u8>| {
        ((u128::from(SipHash24::new(k0, k1).hash(element)) * range) >> 64) as u64
    };
    let mut values: Vec<u64> = elements.iter().map(hashed).collect();
    values.sort_unstable();
    values
}

proptest! {
    #[test]
    fn filter_matches_the_reference(
        hash in any::<[u8; 32]>(),
        elements in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..200),
        others in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..20),
    ) {
        let hash = BlockHash(hash);
        let set: BTreeSet<Vec<u8>> = elements.iter().cloned().collect();
        let bytes = encode(&hash, elements.clone());
        prop_assert_eq!(&bytes, &slow_encode(&hash, &set));
        let filter = Filter::parse(&bytes).unwrap();
        prop_assert_eq!(filter.count() as usize, set.len());
        let values = slow_values(&hash, &set);
        prop_assert_eq!(filter.values().collect::<Vec<_>>(), values.clone());
        for element in &set {
            prop_assert!(filter.matches_any(&hash, [element]));
        }
        // Matching all at once equals matching one by one, with the same false positives as the slow version.
        let single = others.iter().map(|one| filter.matches_any(&hash, [one])).collect::<Vec<_>>();
        prop_assert_eq!(filter.matches_any(&hash, &others), single.contains(&true));
    }

    #[test]
    fn parsed_bytes_round_trip(data in proptest::collection::vec(any::<u8>(), 0..64)) {
        if let Ok(filter) = Filter::parse(&data) {
            prop_assert_eq!(filter.values().count(), filter.count() as usize);
        }
    }
}

#[test]
fn long_runs_of_ones_cross_the_window() {
    // Two distant elements: in a small set the second one's quotient is sometimes large.
    let mut random = Random(7);
    for _ in 0..2000 {
        let hash = BlockHash(std::array::from_fn(|_| random.next() as u8));
        let elements: BTreeSet<Vec<u8>> =
            (0..=random.below(3)).map(|n| vec![n as u8, random.next() as u8]).collect();
        let bytes = encode(&hash, elements.iter().collect::<Vec<_>>());
        assert_eq!(bytes, slow_encode(&hash, &elements));
        assert_eq!(
            Filter::parse(&bytes).unwrap().values().collect::<Vec<_>>(),
            slow_values(&hash, &elements)
        );
    }
    // 100 ones, a zero, and a remainder of 5.
    let mut bits = "1".repeat(100) + "0" + &format!("{:019b}", 5);
    while !bits.len().is_multiple_of(8) {
        bits.push('0');
    }
    let mut bytes = vec![1];
    for byte in bits.as_bytes().chunks(8) {
        bytes.push(u8::from_str_radix(std::str::from_utf8(byte).unwrap(), 2).unwrap());
    }
    let filter = Filter::parse(&bytes).unwrap();
    assert_eq!(filter.values().collect::<Vec<_>>(), [(100 << BASIC_P) + 5]);
}

#[test]
fn damaged_filters_are_rejected() {
    let hash = BlockHash([9; 32]);
    let bytes = encode(&hash, vec![[1u8], [2], [3]]);
    assert!(Filter::parse(&bytes).is_ok());
    assert!(matches!(Filter::parse(&[]), Err(FilterError::Count(_))));
    assert_eq!(Filter::parse(&bytes[..bytes.len() - 1]), Err(FilterError::Truncated));
    assert_eq!(Filter::parse(&[bytes.as_slice(), &[0]].concat()), Err(FilterError::Excess));
    assert_eq!(encode(&hash, Vec::<Vec<u8>>::new()), [0]);
    assert_eq!(Filter::parse(&[0]).unwrap().count(), 0);
    assert!(!Filter::parse(&[0]).unwrap().matches_any(&hash, [[1u8]]));
    // A large count without bits must not reserve memory.
    assert_eq!(Filter::parse(&[0xfe, 0, 0, 0, 2]), Err(FilterError::Truncated));
}
