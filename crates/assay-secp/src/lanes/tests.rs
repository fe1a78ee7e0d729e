//! The field against reference arithmetic, and the scalars' digits against their definition.

use super::field::{Columns, Fe, Sum};
use super::{LANES, Lanes, steps};
use crate::backend::{Portable, PortableRounded};

pub(super) type Words = [u64; 4];

pub(super) const PRIME: Words = [0xffff_fffe_ffff_fc2f, u64::MAX, u64::MAX, u64::MAX];

/// Addition modulo the prime, of numbers below it.
pub(super) fn slow_add(a: &Words, b: &Words) -> Words {
    let mut sum = [0; 4];
    let mut carry = 0u128;
    for k in 0..4 {
        carry += u128::from(a[k]) + u128::from(b[k]);
        sum[k] = carry as u64;
        carry >>= 64;
    }
    if carry == 1 || !sum.iter().rev().lt(PRIME.iter().rev()) {
        let mut borrow = false;
        for k in 0..4 {
            (sum[k], borrow) = sum[k].borrowing_sub(PRIME[k], borrow);
        }
    }
    sum
}

/// Multiplication modulo the prime by shift and add.
pub(super) fn slow_mul(a: &Words, b: &Words) -> Words {
    let mut product = [0; 4];
    for bit in (0..256).rev() {
        product = slow_add(&product, &product);
        if b[bit / 64] >> (bit % 64) & 1 == 1 {
            product = slow_add(&product, a);
        }
    }
    product
}

fn load<L: Lanes>(words: &[Words; LANES]) -> Fe<L> {
    Fe::from_words(std::array::from_fn(|word| {
        L::load(&std::array::from_fn(|lane| words[lane][word]), 0)
    }))
}

pub(super) fn read<L: Lanes>(fe: Fe<L>) -> [Words; LANES] {
    let words = fe.normalize().to_words();
    let mut out = [[0; 4]; LANES];
    for (k, word) in words.into_iter().enumerate() {
        let mut lanes = [0; LANES];
        word.store(&mut lanes, 0);
        for lane in 0..LANES {
            out[lane][k] = lanes[lane];
        }
    }
    out
}

/// Numbers below the prime, with many zeros and ones among their bits.
fn samples(seed: &mut u64) -> [Words; LANES] {
    let mut next = || {
        *seed ^= *seed << 13;
        *seed ^= *seed >> 7;
        *seed ^= *seed << 17;
        *seed
    };
    std::array::from_fn(|_| {
        let mut words: Words = std::array::from_fn(|_| match next() % 4 {
            0 => 0,
            1 => u64::MAX,
            _ => next(),
        });
        if next().is_multiple_of(8) {
            words = [0xffff_fffe_ffff_fc2f - next() % 4, u64::MAX, u64::MAX, u64::MAX];
        }
        if !words.iter().rev().lt(PRIME.iter().rev()) {
            words[3] >>= 1;
        }
        words
    })
}

fn check_field<L: Lanes>() {
    let mut seed = 0x9e37_79b9_7f4a_7c15;
    for _ in 0..200 {
        let (a, b) = (samples(&mut seed), samples(&mut seed));
        let (x, y) = (load::<L>(&a), load::<L>(&b));
        assert_eq!(read(x)[..L::WIDTH], a[..L::WIDTH], "round trip");
        let product = read(x.mul(&y));
        let square = read(x.sqr());
        let twice = read(Columns::zero().plus_product(&x, &y).reduce_twice().fe());
        let thrice = read(Columns::zero().plus_product(&x, &y).reduce_thrice().fe());
        let negated = Columns::zero().plus_product(&x, &y).reduce_negated();
        let sum = read(Sum::primes(2).plus(&x).minus(&y).plus(&y).plus(&y).carry().mul(&Fe::one()));
        for lane in 0..L::WIDTH {
            let expected = slow_mul(&a[lane], &b[lane]);
            assert_eq!(product[lane], expected, "{:x?} * {:x?}", a[lane], b[lane]);
            assert_eq!(square[lane], slow_mul(&a[lane], &a[lane]), "{:x?} squared", a[lane]);
            let double = slow_add(&expected, &expected);
            assert_eq!(twice[lane], double);
            assert_eq!(thrice[lane], slow_add(&double, &expected));
            assert_eq!(sum[lane], slow_add(&a[lane], &b[lane]));
        }
        let zero = Sum::primes(0).plus(&negated).plus(&x.mul(&y)).carry().mul(&Fe::one());
        assert_eq!(zero.zeros(), L::ALL);
        let far = Sum::<L>::far_primes().columns().reduce();
        assert_eq!(far.zeros(), L::ALL, "a multiple of the prime");
        let sums = Columns::zero().plus_product(&x, &y).reduce_to_sum();
        assert_eq!(sums.carry().mul(&Fe::one()).equals(&x.mul(&y)), L::ALL);
        let eights = Columns::minus_eight_squares(&x).plus_product(&x, &y).reduce();
        let square = x.sqr();
        let eight = Sum::primes(0).plus_shifted::<3>(&square).carry();
        assert_eq!(eight.mul(&Fe::one()).zeros() & !square.zeros(), 0);
        let back = Sum::primes(0).plus(&eights).plus(&eight).carry().mul(&Fe::one());
        assert_eq!(back.equals(&x.mul(&y)), L::ALL);
        let inverse = steps::inverse(&x);
        let unit = inverse.mul(&x).fe();
        for (unit, a) in read(unit).into_iter().zip(a).take(L::WIDTH) {
            assert_eq!(unit, if a == [0; 4] { [0; 4] } else { [1, 0, 0, 0] });
        }
        let [root] = steps::square_roots(&[x.sqr()]);
        assert_eq!(root.sqr().equals(&x.sqr()), L::ALL);
    }
}

#[test]
fn field_agrees_with_slow_arithmetic() {
    check_field::<Portable>();
    check_field::<PortableRounded>();
}
