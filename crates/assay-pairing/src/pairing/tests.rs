//! Pairings by their properties; other libraries' values are compared in `peers/pairing`.

use super::{Bls12377, Bls12381, Bn254, Pairing};
use crate::curve::{Affine, Curve};
use crate::limbs;
use crate::msm::Backend;
use crate::testing::Rng;
use crate::tower::Fp12;

fn is_zero_power<P: Pairing>(x: &Fp12<P::Base>) -> bool {
    x.power(&P::G1::ORDER) == Fp12::ONE
}

/// All backends against words, for up to 17 pairs.
fn check_backends<P: Pairing>() {
    let mut rng = Rng::new(8);
    for count in [0, 1, 2, 7, 8, 9, 17] {
        let mut point = || [rng.word(), rng.word(), rng.edge_word(), rng.word() >> 3];
        let mut pairs: Vec<_> = (0..count)
            .map(|_| {
                let (p, q) =
                    (P::G1::GENERATOR.multiply(&point()), P::G2::GENERATOR.multiply(&point()));
                (p.to_affine(), q.to_affine())
            })
            .collect();
        if count > 2 {
            pairs[1].0 = Affine::INFINITY;
            pairs[count - 1].1 = Affine::INFINITY;
            pairs[2] = pairs[0];
        }
        let right = P::final_exponentiation_with(
            Backend::Scalar,
            &P::miller_loop_with(Backend::Scalar, &pairs),
        );
        for backend in Backend::ALL.into_iter().filter(|backend| backend.is_available()) {
            let f = P::miller_loop_with(backend, &pairs);
            let found = P::final_exponentiation_with(backend, &f);
            assert_eq!(found, right, "{count} pairs, {}", backend.name());
        }
    }
}

#[test]
fn bls12_381_backends() {
    check_backends::<Bls12381>();
}

#[test]
fn bls12_377_backends() {
    check_backends::<Bls12377>();
}

#[test]
fn bn254_backends() {
    check_backends::<Bn254>();
}

fn check<P: Pairing>() {
    let (p, q) = (P::G1::GENERATOR, P::G2::GENERATOR);
    let one = P::pair(&p, &q);
    assert_ne!(one, Fp12::ONE);
    assert!(is_zero_power::<P>(&one));
    let mut rng = Rng::new(7);
    for _ in 0..20 {
        let a = [rng.word(), rng.edge_word(), rng.word(), rng.word() >> 3];
        let b = [rng.word(), rng.word(), 0, 0];
        let (pa, qb) = (p.multiply(&a).to_affine(), q.multiply(&b).to_affine());
        let value = P::pair(&pa, &qb);
        assert_eq!(value, one.power(&a).power(&b), "{a:x?} {b:x?}");
        assert_eq!(P::pair(&pa, &q), one.power(&a));
        assert_eq!(P::pair(&p, &qb), one.power(&b));
        // e(aP, bQ) e(-abP, Q) = 1, with infinity among the pairs.
        let minus = limbs::minus_small(&P::G1::ORDER, 1);
        let ab = pa.multiply(&b).multiply(&minus).to_affine();
        let pairs = [(pa, qb), (Affine::INFINITY, q), (ab, q), (p, Affine::INFINITY)];
        assert_eq!(P::product(&pairs), Fp12::ONE);
        assert_eq!(P::product(&pairs[..2]), value);
    }
    assert_eq!(P::product(&[]), Fp12::ONE);
    assert_eq!(P::pair(&Affine::INFINITY, &q), Fp12::ONE);
}

#[test]
fn bls12_381_is_bilinear() {
    check::<Bls12381>();
}

#[test]
fn bls12_377_is_bilinear() {
    check::<Bls12377>();
}

#[test]
fn bn254_is_bilinear() {
    check::<Bn254>();
}
