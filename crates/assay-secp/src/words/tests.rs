//! Words against shift-and-add arithmetic, and assembly against portable words.

use super::field::{Fe, PRIME};
use super::*;
use crate::scalar::is_below;

/// Numbers with words of all zeros or ones, or next to the prime and the complement, and random ones.
fn numbers() -> Vec<[u64; 4]> {
    let edges = [0, 1, 2, u64::MAX, u64::MAX - 1, 1 << 63, 0x1_0000_03d1, PRIME[0], PRIME[0] + 1];
    let mut numbers = Vec::new();
    for low in edges {
        for high in edges {
            numbers.extend([[low, high, high, high], [low, low, low, high], [low, 0, 0, high]]);
        }
    }
    for seed in 0..100u8 {
        numbers.push(crate::scalar::words(&assay_hash::sha256(&[seed])));
    }
    numbers
}

fn subtract(a: [u64; 4], b: [u64; 4]) -> [u64; 4] {
    let mut borrow = false;
    std::array::from_fn(|k| {
        let word;
        (word, borrow) = a[k].borrowing_sub(b[k], borrow);
        word
    })
}

/// Below the prime.
fn reduced(a: [u64; 4]) -> [u64; 4] {
    if is_below(&a, &PRIME) { a } else { subtract(a, PRIME) }
}

/// Of numbers below the prime.
fn slow_add(a: [u64; 4], b: [u64; 4]) -> [u64; 4] {
    let room = subtract(PRIME, b);
    if is_below(&a, &room) {
        let mut carry = false;
        std::array::from_fn(|k| {
            let word;
            (word, carry) = a[k].carrying_add(b[k], carry);
            word
        })
    } else {
        subtract(a, room)
    }
}

fn slow_mul(a: [u64; 4], b: [u64; 4]) -> [u64; 4] {
    (0..256).rev().fold([0; 4], |product, bit| {
        let twice = slow_add(product, product);
        if b[bit / 64] >> (bit % 64) & 1 == 1 { slow_add(twice, a) } else { twice }
    })
}

#[test]
fn elements() {
    let numbers = numbers();
    for (index, &number) in numbers.iter().enumerate() {
        let (a, reduced_a) = (Fe::from_words(number), reduced(number));
        assert_eq!(a.to_words(), reduced_a, "{number:x?}");
        assert_eq!(a.is_zero(), reduced_a == [0; 4], "{number:x?}");
        assert_eq!(a.half().double().to_words(), reduced_a, "{number:x?}");
        assert_eq!(a.negate().add(&a).to_words(), [0; 4], "{number:x?}");
        let square = slow_mul(reduced_a, reduced_a);
        assert_eq!(a.square().to_words(), square, "{number:x?}");
        assert_eq!(a.square_portable().to_words(), square, "{number:x?}");
        let root = a.square().square_root();
        assert_eq!(root.square().to_words(), square, "{number:x?}");
        for step in [0, 1, 7, 50, 101] {
            let other = numbers[(index + step) % numbers.len()];
            let (b, reduced_b) = (Fe::from_words(other), reduced(other));
            assert_eq!(
                a.add(&b).to_words(),
                slow_add(reduced_a, reduced_b),
                "{number:x?}, {other:x?}"
            );
            assert_eq!(a.sub(&b).add(&b).to_words(), reduced_a, "{number:x?}, {other:x?}");
            let product = slow_mul(reduced_a, reduced_b);
            assert_eq!(a.mul(&b).to_words(), product, "{number:x?}, {other:x?}");
            assert_eq!(a.mul_portable(&b).to_words(), product, "{number:x?}, {other:x?}");
        }
    }
}

#[test]
fn inverses() {
    for number in numbers() {
        let scalar = Scalar::reduced(&Scalar(number).to_bytes());
        assert_eq!(inverse(scalar), scalar.inverse(), "{number:x?}");
        let number = reduced(number);
        let product = slow_mul(number, PRIME_FIELD.inverse(&number));
        assert_eq!(product, if number == [0; 4] { number } else { [1, 0, 0, 0] });
    }
}

/// Digits are odd or zero, sufficiently spaced, and add up to the number.
#[test]
fn digits() {
    for number in numbers() {
        for half in Scalar::reduced(&Scalar(number).to_bytes()).halves() {
            for magnitudes in [1usize, 8, 4096] {
                let width = magnitudes.ilog2() as usize + 2;
                let naf = Naf::new(half, magnitudes);
                let places: Vec<usize> = (0..PLACES).filter(|&place| naf.0[place] != 0).collect();
                assert!(places.windows(2).all(|two| two[1] - two[0] >= width));
                let mut sum = Scalar::default();
                for place in (0..PLACES).rev() {
                    sum = sum.add(sum);
                    let digit = naf.0[place];
                    assert!(
                        digit == 0
                            || digit & 1 == 1 && usize::from(digit.unsigned_abs()) < 2 * magnitudes
                    );
                    let magnitude = Scalar([u64::from(digit.unsigned_abs()), 0, 0, 0]);
                    sum = sum.add(if digit < 0 { magnitude.negate() } else { magnitude });
                }
                let is_negative = (half[2] as i64) < 0;
                let [a, b, c] = if is_negative { negated(half) } else { half };
                let expected = Scalar([a, b, c, 0]);
                assert_eq!(sum, if is_negative { expected.negate() } else { expected });
            }
        }
    }
}
