//! Fields against slow oracles: schoolbook division for products, Fermat for inverses; with edge
//! cases near zero, the prime and powers of two.

use super::wide::Sum;
use super::{Fe, Field as _, Modulus};
use crate::testing::Rng;
use crate::{bls12_377, bls12_381, bn254, bn254_nogami, limbs};

/// `a b mod p`, bit by bit.
fn slow_product<M: Modulus<N>, const N: usize>(a: &[u64; N], b: &[u64; N]) -> [u64; N] {
    let mut sum = [0; N];
    let plus = |x: &[u64; N], y: &[u64; N]| {
        let (sum, _) = limbs::add(x, y);
        let (reduced, is_below) = limbs::sub(&sum, &M::MODULUS);
        if is_below { sum } else { reduced }
    };
    for index in (0..64 * N).rev() {
        sum = plus(&sum, &sum);
        if limbs::bit(b, index) {
            sum = plus(&sum, a);
        }
    }
    sum
}

fn check<M: Modulus<N>, const N: usize>(cases: usize) {
    let mut rng = Rng::new(1);
    for case in 0..cases {
        let (a, b): (Fe<M, N>, Fe<M, N>) = (rng.fe(), rng.fe());
        let (x, y) = (a.to_limbs(), b.to_limbs());
        assert_eq!(Fe::from_limbs(x), Some(a), "{a:?}");
        assert_eq!((a - b) + b, a);
        assert_eq!(a + (-a), Fe::ZERO);
        assert_eq!(a.halved().double(), a);
        assert_eq!(a.halved_slowly(), a.halved(), "{a:?}");
        // The kernels of this CPU against plain Rust.
        assert_eq!(Fe::sum_of_products(&[a], &[b]), a * b, "{a:?} {b:?}");
        assert_eq!(a.plus(&b), a + b, "{a:?} {b:?}");
        assert_eq!(a.minus(&b), a - b, "{a:?} {b:?}");
        assert_eq!(a.negated(), -a, "{a:?}");
        assert_eq!(a.multiply(&a), a.square(), "{a:?}");
        if case % 16 == 0 {
            assert_eq!((a * b).to_limbs(), slow_product::<M, N>(&x, &y), "{a:?} {b:?}");
        }
        match a.inverse() {
            Some(inverse) => assert_eq!(inverse * a, Fe::ONE, "{a:?}"),
            None => assert_eq!(a, Fe::ZERO),
        }
        if case % 64 == 0 {
            let square = a.square();
            let root = square.sqrt().expect("a square");
            assert!(root == a || root == -a, "{a:?}");
            assert_eq!(a.legendre() == -1, a.sqrt().is_none(), "{a:?}");
            assert_eq!(square.legendre(), i32::from(!a.is_zero()));
            assert_eq!(a.is_largest(), !a.is_zero() && !(-a).is_largest());
            let slow = (0..limbs::bits(&y)).rev().fold(Fe::ONE, |power: Fe<M, N>, index| {
                let square = power * power;
                if limbs::bit(&y, index) { square * a } else { square }
            });
            assert_eq!(a.power(&y), slow);
        }
    }
}

#[test]
fn arithmetic() {
    check::<bls12_381::FpModulus, 6>(100_000);
    check::<bls12_381::FrModulus, 4>(100_000);
    check::<bn254::FpModulus, 4>(100_000);
    check::<bn254::FrModulus, 4>(100_000);
    check::<bls12_377::FpModulus, 6>(100_000);
    check::<bls12_377::FrModulus, 4>(100_000);
    check::<bn254_nogami::FpModulus, 4>(100_000);
    check::<bn254_nogami::FrModulus, 4>(100_000);
}

/// Sums by kernels, of elements that are often zero, one or the largest.
fn check_sums<M: Modulus<N>, const N: usize, const T: usize>() {
    let mut rng = Rng::new(6);
    let edges = [Fe::<M, N>::ZERO, Fe::ONE, -Fe::ONE, Fe::raw(limbs::minus_small(&M::MODULUS, 1))];
    for case in 0..50_000 {
        let mut element = || match rng.word() % 8 {
            edge if (edge as usize) < edges.len() => edges[edge as usize],
            _ => rng.fe::<M, N>(),
        };
        // The first case is the largest sum.
        let mut factors = || core::array::from_fn(|_| if case == 0 { edges[3] } else { element() });
        let (a, b): ([_; T], [_; T]) = (factors(), factors());
        let (a, b) = (a.each_ref(), b.each_ref());
        assert_eq!(Fe::sum_of(a, b), Fe::sum_of_slowly(a, b), "{a:?} {b:?}");
    }
}

#[test]
fn sums_of_products_by_kernels() {
    check_sums::<bn254::FpModulus, 4, 2>();
    check_sums::<bn254::FpModulus, 4, 3>();
    check_sums::<bn254::FpModulus, 4, 6>();
    check_sums::<bn254_nogami::FpModulus, 4, 2>();
    check_sums::<bn254_nogami::FpModulus, 4, 3>();
    check_sums::<bn254_nogami::FpModulus, 4, 6>();
    check_sums::<bls12_377::FpModulus, 6, 2>();
    check_sums::<bls12_377::FpModulus, 6, 3>();
    check_sums::<bls12_377::FpModulus, 6, 4>();
    check_sums::<bls12_377::FpModulus, 6, 6>();
    check_sums::<bls12_381::FpModulus, 6, 2>();
    check_sums::<bls12_381::FpModulus, 6, 6>();
}

/// Powers, which consist of runs of squares by kernels, against bit-by-bit powers in plain Rust: edge cases and
/// random elements, with random exponents and exponents with long runs of zeros and ones.
fn check_powers<M: Modulus<N>, const N: usize>() {
    let mut rng = Rng::new(7);
    let edges = [Fe::<M, N>::ZERO, Fe::ONE, -Fe::ONE, Fe::from_u64(2)];
    for case in 0..600 {
        let x = edges.get(case % 100).copied().unwrap_or_else(|| rng.fe());
        let exponent: [u64; 3] = match case % 3 {
            0 => [rng.word(), rng.word(), rng.word()],
            1 => [rng.edge_word(), rng.edge_word(), rng.edge_word()],
            _ => [1 << (rng.word() % 64), 0, rng.word() & rng.word() & rng.word()],
        };
        let slow = (0..192).rev().fold(Fe::ONE, |power, index| {
            let square = power.multiply(&power);
            if limbs::bit(&exponent, index) { square.multiply(&x) } else { square }
        });
        assert_eq!(x.power(&exponent), slow, "{x:?} to the power {exponent:x?}");
    }
    assert_eq!(edges[3].power(&[0]), Fe::ONE);
    assert_eq!(edges[0].power(&[]), Fe::ONE);
}

#[test]
fn powers() {
    check_powers::<bls12_381::FpModulus, 6>();
    check_powers::<bls12_377::FpModulus, 6>();
    check_powers::<bn254::FpModulus, 4>();
    check_powers::<bn254::FrModulus, 4>();
    check_powers::<bn254_nogami::FpModulus, 4>();
    check_powers::<bls12_381::FrModulus, 4>();
}

fn check_two_products<M: Modulus<N>, const N: usize>() {
    let mut rng = Rng::new(2);
    for _ in 0..100_000 {
        let [a, b, c, d]: [Fe<M, N>; 4] = core::array::from_fn(|_| rng.fe());
        let right = a.multiply(&c).plus(&b.multiply(&d));
        assert_eq!(Fe::sum_of_products(&[a, b], &[c, d]), right);
        // A factor that is not reduced.
        let sum = Sum::of(&a.0, &b.0);
        assert_eq!(Fe::product_of_sums(&sum, &Sum(c.0)), a.plus(&b).multiply(&c));
    }
}

#[test]
fn sums_of_products() {
    check_two_products::<bls12_381::FpModulus, 6>();
    check_two_products::<bn254::FpModulus, 4>();
    check_two_products::<bls12_377::FpModulus, 6>();
    check_two_products::<bn254_nogami::FpModulus, 4>();
}

#[test]
fn batch_inversion_leaves_zeros() {
    let mut rng = Rng::new(3);
    let mut elements: Vec<bn254::Fp> = (0..100).map(|_| rng.fe()).collect();
    elements[0] = Fe::ZERO;
    elements[57] = Fe::ZERO;
    let single: Vec<_> = elements.iter().map(|x| x.inverse().unwrap_or(Fe::ZERO)).collect();
    bn254::Fp::invert_all(&mut elements);
    assert_eq!(elements, single);
    bn254::Fp::invert_all(&mut []);
}

#[test]
fn encodings_reject_numbers_not_below_the_prime() {
    let prime = {
        let mut bytes = [0; 48];
        limbs::to_be_bytes(&bls12_381::Fp::MODULUS, &mut bytes);
        bytes
    };
    assert_eq!(bls12_381::Fp::from_be_bytes(&prime), None);
    assert_eq!(bls12_381::Fp::from_be_bytes(&[0xff; 48]), None);
    let mut below = prime;
    below[47] -= 1;
    let minus_one = bls12_381::Fp::from_be_bytes(&below).expect("p - 1");
    assert_eq!(minus_one, -bls12_381::Fp::ONE);
    assert_eq!(minus_one.to_be_bytes(), below);
    assert_eq!(bls12_381::Fp::from_be_bytes_reduced(&prime), Fe::ZERO);
    // 2^512 - 1, by squares.
    let two_256 = bn254::Fp::from_u64(2).power(&[256]);
    let wide = bn254::Fp::from_be_bytes_reduced(&[0xff; 64]);
    assert_eq!(wide, two_256.square() - Fe::ONE);
    let two_128 = bls12_381::Fp::from_u64(2).power(&[128]);
    let wide = bls12_381::Fp::from_be_bytes_reduced(&[0xff; 64]);
    assert_eq!(wide, two_128.square().square() - Fe::ONE);
    assert_eq!(bls12_381::Fp::from_be_bytes_reduced(&[]), Fe::ZERO);
    assert_eq!(bls12_381::Fp::from_be_bytes_reduced(&[7]), Fe::from_u64(7));
}

/// The primes are the polynomials of their parameters.
#[test]
fn primes_follow_from_parameters() {
    // In the other field of the same width, large enough to exclude an accidental match: both sides
    // are compared as numbers modulo three primes.
    fn numbers<M: Modulus<N>, const N: usize>() {
        let number = |limbs: &[u64]| {
            limbs.iter().rev().fold(Fe::<M, N>::ZERO, |sum, limb| {
                sum * Fe::from_u64(2).power(&[64]) + Fe::from_u64(*limb)
            })
        };
        let small = Fe::<M, N>::from_u64;
        let bls12 = |x: Fe<M, N>, base: &[u64], scalar: &[u64]| {
            let r = x.power(&[4]) - x.square() + small(1);
            assert_eq!(number(scalar), r);
            let three_p = (x - small(1)).square() * r + small(3) * x;
            assert_eq!(small(3) * number(base), three_p);
        };
        bls12(-small(bls12_381::X), &bls12_381::Fp::MODULUS, &bls12_381::Fr::MODULUS);
        bls12(small(bls12_377::X), &bls12_377::Fp::MODULUS, &bls12_377::Fr::MODULUS);
        let bn = |x: Fe<M, N>, base: &[u64], scalar: &[u64]| {
            let r = small(36) * (x.power(&[4]) + x.power(&[3])) + small(6) * x + small(1);
            assert_eq!(number(scalar), r + small(18) * x.square());
            assert_eq!(number(base), r + small(24) * x.square());
        };
        bn(small(bn254::X), &bn254::Fp::MODULUS, &bn254::Fr::MODULUS);
        let (base, scalar) = (bn254_nogami::Fp::MODULUS, bn254_nogami::Fr::MODULUS);
        bn(-small(bn254_nogami::X), &base, &scalar);
    }
    numbers::<bls12_381::FpModulus, 6>();
    numbers::<bls12_381::FrModulus, 4>();
    numbers::<bn254::FrModulus, 4>();
}
