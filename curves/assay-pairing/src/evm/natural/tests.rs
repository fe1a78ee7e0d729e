//! Against binary exponentiation with bit-by-bit remainders.

use super::{Natural, power};
use crate::testing::Rng;

/// `a b mod m` by doubling.
fn slow_product(a: &[u64], b: &[u64], modulus: &[u64]) -> Vec<u64> {
    let mut sum = vec![0; modulus.len() + 1];
    let mut wide = modulus.to_vec();
    wide.push(0);
    let subtract = |sum: &mut Vec<u64>| {
        if !super::is_less(sum, &wide) {
            super::subtract_low(sum, &wide);
        }
    };
    let add = |sum: &mut Vec<u64>, other: &[u64]| {
        let mut carry = 0;
        for (i, limb) in sum.iter_mut().enumerate() {
            let other = other.get(i).copied().unwrap_or(0);
            (*limb, carry) = crate::limbs::add_carry(*limb, other, carry);
        }
    };
    for bit in (0..64 * b.len()).rev() {
        let twice = sum.clone();
        add(&mut sum, &twice);
        subtract(&mut sum);
        if crate::limbs::bit(b, bit) {
            add(&mut sum, a);
            subtract(&mut sum);
        }
    }
    sum.truncate(modulus.len());
    sum
}

fn slow_power(base: &Natural, exponent: &[u8], modulus: &Natural) -> Vec<u64> {
    let mut one = vec![0; modulus.0.len()];
    one[0] = 1;
    let base = slow_product(&one, &base.0, &modulus.0);
    let mut power = slow_product(&one, &one, &modulus.0);
    for byte in exponent {
        for bit in (0..8).rev() {
            power = slow_product(&power, &power, &modulus.0);
            if byte >> bit & 1 == 1 {
                power = slow_product(&power, &base, &modulus.0);
            }
        }
    }
    power
}

fn check(base: &Natural, exponent: &[u8], modulus: &Natural) {
    let mut found = power(base, exponent, modulus).0;
    let right = slow_power(base, exponent, modulus);
    assert!(found.iter().skip(right.len()).all(|limb| *limb == 0), "{modulus:x?}");
    found.resize(right.len(), 0);
    assert_eq!(found, right, "{base:x?} to the {exponent:x?} modulo {modulus:x?}");
}

#[test]
fn odd_even_and_edges() {
    let mut rng = Rng::new(51);
    let mut number = |limbs: usize| Natural((0..limbs).map(|_| rng.edge_word()).collect());
    for limbs in [1, 2, 3, 4, 5, 7, 8, 9] {
        for round in 0..12 {
            let mut modulus = number(limbs);
            match round % 4 {
                0 | 1 => modulus.0[0] |= 1,
                // An even modulus with low limbs of zero, and a power of two.
                2 => modulus.0[..limbs / 2].fill(0),
                _ => {
                    let bit = modulus.0[0] as usize % (64 * limbs);
                    modulus.0.fill(0);
                    modulus.0[bit / 64] = 1 << (bit % 64);
                }
            }
            if modulus.is_zero() {
                continue;
            }
            let base = number(limbs * (1 + round % 3));
            let exponent: Vec<u8> = number(1 + round % 2).0[0].to_be_bytes().to_vec();
            check(&base, &exponent[round % 8..], &modulus);
            check(&base, &[], &modulus);
            check(&base, &[0, 0, 1], &modulus);
        }
    }
    // Long exponents, so that every window is used.
    let (base, mut modulus) = (number(3), number(3));
    modulus.0[0] |= 1;
    for bytes in [4, 20, 40, 120] {
        let exponent: Vec<u8> = (0..bytes).map(|k| (k * 37 + 11) as u8).collect();
        check(&base, &exponent, &modulus);
        check(&base, &exponent, &Natural(vec![0, 0x300, 5]));
    }
}

#[test]
fn bytes() {
    let number = Natural::from_be_bytes(&[1, 2, 3, 4, 5, 6, 7, 8, 9]);
    assert_eq!(number.0, [0x0203_0405_0607_0809, 1]);
    let mut bytes = [0; 11];
    number.write_be_bytes(&mut bytes);
    assert_eq!(bytes, [0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    assert!(Natural::from_be_bytes(&[]).is_zero());
}
