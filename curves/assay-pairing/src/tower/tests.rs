//! Towers against the definition: polynomials multiplied coefficient by coefficient.

use super::cyclotomic::{self, Cyclotomic as _};
use super::{Fp2, Fp6, Fp12, TowerField, TowerModulus, TowerRing as _, lazy, sums};
use crate::field::{Fe, Field as _};
use crate::testing::Rng;
use crate::{bls12_377, bls12_381, bn254, bn254_nogami};

/// Products and squares of every pair of elements with edge-case parts, by any method.
fn check_edges<M: TowerModulus<N>, const N: usize>() {
    let small = Fe::<M, N>::from_u64;
    let all_ones = Fe::from_be_bytes_reduced(&[0xff; 64]);
    let parts = [Fe::ZERO, Fe::ONE, small(2), -Fe::ONE, -small(2), Fe::ONE.halved(), all_ones];
    let pairs = || parts.iter().flat_map(|c0| parts.iter().map(|c1| Fp2 { c0: *c0, c1: *c1 }));
    for a in pairs() {
        for b in pairs() {
            let wrapped = (0..M::NON_RESIDUE).fold(Fe::ZERO, |sum, _| sum + a.c1 * b.c1);
            let product = Fp2 { c0: a.c0 * b.c0 - wrapped, c1: a.c0 * b.c1 + a.c1 * b.c0 };
            assert_eq!([a * b, lazy::product_2(&a, &b), sums::product_2(&a, &b)], [product; 3]);
        }
        assert_eq!([a.square(), lazy::square_2(&a)], [a * a; 2], "{a:?}");
    }
}

#[test]
fn products_in_fp2_at_edges() {
    check_edges::<bn254::FpModulus, 4>();
    check_edges::<bn254_nogami::FpModulus, 4>();
    check_edges::<bls12_381::FpModulus, 6>();
    check_edges::<bls12_377::FpModulus, 6>();
}

/// Coefficients of 1, w, w^2, ... w^5 over Fp2.
fn coefficients<F: TowerField>(x: &Fp12<F>) -> [Fp2<F>; 6] {
    [x.c0.c0, x.c1.c0, x.c0.c1, x.c1.c1, x.c0.c2, x.c1.c2]
}

fn slow_product<F: TowerField>(a: &Fp12<F>, b: &Fp12<F>) -> [Fp2<F>; 6] {
    let (a, b) = (coefficients(a), coefficients(b));
    let mut product = [Fp2::ZERO; 6];
    for (i, x) in a.iter().enumerate() {
        for (j, y) in b.iter().enumerate() {
            let wrapped = (0..F::NON_RESIDUE).fold(F::ZERO, |sum, _| sum + x.c1 * y.c1);
            let part = Fp2 { c0: x.c0 * y.c0 - wrapped, c1: x.c0 * y.c1 + x.c1 * y.c0 };
            let part = if i + j < 6 { part } else { part * Fp2::xi() };
            product[(i + j) % 6] = product[(i + j) % 6] + part;
        }
    }
    product
}

fn check<M: TowerModulus<N>, const N: usize>() {
    let mut rng = Rng::new(4);
    let zero = Fp2::<Fe<M, N>>::ZERO;
    let xi = Fp2 { c0: Fe::from_u64(M::XI), c1: Fe::ONE };
    assert_eq!(Fp2::xi(), xi);
    assert_eq!(xi * Fe::<M, N>::XI_INVERSE, Fp2::ONE);
    for k in 0..6 {
        assert_eq!(Fe::<M, N>::FROBENIUS[k] * Fe::<M, N>::FROBENIUS_INVERSES[k], Fp2::ONE);
    }
    for case in 0..20_000 {
        let (a, b) = (rng.fp12::<M, N>(), rng.fp12::<M, N>());
        assert_eq!(coefficients(&(a * b)), slow_product(&a, &b));
        assert_eq!(a.square(), a * a);
        assert_eq!(a.c0.square(), a.c0 * a.c0);
        let (x, y, z) = (b.c0.c0, b.c0.c1, b.c1.c1);
        let line = |c0: [Fp2<Fe<M, N>>; 2], c1: [Fp2<Fe<M, N>>; 2]| Fp12 {
            c0: Fp6 { c0: c0[0], c1: c0[1], c2: zero },
            c1: Fp6 { c0: c1[0], c1: c1[1], c2: zero },
        };
        assert_eq!(lazy::product_014(&a, &x, &y, &z), a * line([x, y], [zero, z]));
        assert_eq!(sums::product_034(&a, &x, &y, &z), a * line([x, zero], [y, z]));
        // Both methods, whichever one the curve uses.
        let (u, v) = (a.c0.c0, a.c1.c1);
        let product =
            Fp2 { c0: u.c0 * v.c0 + (u.c1 * v.c1).times_u_square(), c1: u.c0 * v.c1 + u.c1 * v.c0 };
        let square = [u * u + (v * v).times_xi(), (u * v).double()];
        assert_eq!([u * v, lazy::product_2(&u, &v), sums::product_2(&u, &v)], [product; 3]);
        assert_eq!([u.square(), lazy::square_2(&u)], [u * u; 2]);
        assert_eq!(sums::square_4(&u, &v), square);
        if M::XI <= 1 {
            assert_eq!(lazy::square_4(&u, &v), square);
        }
        let x = a.c0.c0;
        assert_eq!(x.square(), x * x);
        assert_eq!(x.times_xi(), x * xi);
        if case % 16 == 0 {
            assert_eq!(a.inverse().map(|inverse| inverse * a), Some(Fp12::ONE));
            let root = x.square().sqrt().expect("a square");
            assert!(root == x || root == -x, "{x:?}");
            let is_square = x.norm().legendre() != -1;
            assert_eq!(x.sqrt().is_some(), is_square, "{x:?}");
        }
        if case % 1024 == 0 {
            assert_eq!(a.frobenius(1), a.power(&M::MODULUS));
            assert_eq!(x.conjugate(), x.power(&M::MODULUS));
            // Maps into the cyclotomic subgroup.
            let cyclotomic = a.conjugate() * a.inverse().expect("not zero");
            let cyclotomic = cyclotomic.frobenius(2) * cyclotomic;
            assert_eq!(cyclotomic.cyclotomic_square(), cyclotomic.square());
            assert_eq!(cyclotomic.inverse(), Some(cyclotomic.conjugate()));
            // By four coefficients, also if those are not enough.
            for element in [cyclotomic, Fp12::ONE] {
                let mut power = element;
                for count in 1..40 {
                    power = power.square();
                    let compressed = cyclotomic::squared(&element, count);
                    assert_eq!(compressed, (element != Fp12::ONE).then_some(power), "{count}");
                    assert_eq!(element.squared(count), power, "{count}");
                }
            }
            for exponent in [0, 1, 2, 3, 0xd201_0000_0001_0000, u64::MAX, rng.word()] {
                let power = cyclotomic.power(&[exponent]);
                assert_eq!(cyclotomic.power_of(exponent), power, "{exponent}");
            }
        }
    }
}

#[test]
fn products_are_those_of_polynomials() {
    check::<bls12_381::FpModulus, 6>();
    check::<bn254::FpModulus, 4>();
    check::<bls12_377::FpModulus, 6>();
    check::<bn254_nogami::FpModulus, 4>();
}

/// Elements of Fp, half of which have their root outside of Fp.
#[test]
fn roots_of_real_elements() {
    fn check<M: TowerModulus<N>, const N: usize>() {
        let mut rng = Rng::new(23);
        for _ in 0..100 {
            let x = Fp2 { c0: rng.fe::<M, N>(), c1: Fe::ZERO };
            let root = x.sqrt().expect("a root in Fp2");
            assert_eq!(root.square(), x);
            assert!(root.c0.is_zero() || root.c1.is_zero());
        }
    }
    check::<bls12_381::FpModulus, 6>();
    check::<bn254::FpModulus, 4>();
    check::<bls12_377::FpModulus, 6>();
    check::<bn254_nogami::FpModulus, 4>();
}

#[test]
fn zero_has_no_inverse() {
    assert_eq!(Fp12::<bn254::Fp>::ZERO.inverse(), None);
    assert_eq!(Fp2::<bn254::Fp>::ZERO.sqrt(), Some(Fp2::ZERO));
}
