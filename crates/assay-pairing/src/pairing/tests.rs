//! Pairings by their properties; other libraries' values are compared in `peers/pairing`.

use super::{Bls12381, Bn254, Pairing};
use crate::curve::{Affine, Curve};
use crate::limbs;
use crate::testing::Rng;
use crate::tower::Fp12;

fn is_zero_power<P: Pairing>(x: &Fp12<P::Base>) -> bool {
    x.power(&P::G1::ORDER) == Fp12::ONE
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
fn bn254_is_bilinear() {
    check::<Bn254>();
}
