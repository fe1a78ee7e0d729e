//! Groups against repeated addition and the definition of their order.

use super::{
    Affine, Bls377G1, Bls377G2, BlsG1, BlsG2, BnG1, BnG2, Curve, Jacobian, NogamiG1, NogamiG2,
};
use crate::bn254_nogami;
use crate::field::Field as _;
use crate::limbs;
use crate::testing::{Point as _, Rng, tests};
use crate::tower::Fp2;

fn check<C: Curve>(is_cofactor_one: bool)
where
    C::Base: crate::testing::Random,
{
    let generator = C::GENERATOR;
    assert!(generator.is_in_group(), "the generator");
    let point = Jacobian::from(generator);
    assert!(point.multiply_slowly(&C::ORDER).is_infinity(), "its order");
    assert!(Affine::<C>::INFINITY.is_in_group());
    let mut rng = Rng::new(5);
    // Small multiples, one after the other.
    let mut sum = Jacobian::<C>::INFINITY;
    for k in 0..100u64 {
        assert_eq!(point.multiply(&[k, 0, 0, 0]), sum, "{k}");
        assert_eq!(point.multiply_slowly(&[k]), sum, "{k}");
        assert!(sum.to_affine().is_in_group());
        sum = if k % 2 == 0 { sum.add_affine(&generator) } else { sum + point };
    }
    // All cases of additions.
    let other = point.multiply_slowly(&[rng.word()]);
    for (a, b) in [
        (point, point),
        (point, -point),
        (other, point),
        (other, other.to_affine().into()),
        (other, (-other).to_affine().into()),
        (Jacobian::INFINITY, other),
        (other, Jacobian::INFINITY),
        (Jacobian::INFINITY, Jacobian::INFINITY),
    ] {
        let slow = slow_sum(&a.to_affine(), &b.to_affine());
        assert_eq!((a + b).to_affine(), slow);
        assert_eq!(a.add_affine(&b.to_affine()).to_affine(), slow);
        assert_eq!((a - b).to_affine(), slow_sum(&a.to_affine(), &(-b).to_affine()));
        assert_eq!(a.double().to_affine(), slow_sum(&a.to_affine(), &a.to_affine()));
    }
    // Edge cases of the order and of limbs.
    for case in 0..300 {
        let small = rng.word() % 3;
        let number = match case % 8 {
            0 => limbs::minus_small(&C::ORDER, small),
            1 => limbs::plus_small(&C::ORDER, small),
            2 => [u64::MAX; 4],
            3 => core::array::from_fn(|_| rng.edge_word()),
            4 => [rng.edge_word(), rng.edge_word(), 0, 0],
            _ => core::array::from_fn(|_| rng.word()),
        };
        assert_eq!(other.multiply(&number), other.multiply_slowly(&number), "{number:x?}");
    }
    // Secret numbers.
    for number in [[1, 0, 0, 0], [2, 0, 0, 0], limbs::minus_small(&C::ORDER, 1)]
        .into_iter()
        .chain((0..20).map(|_| [rng.edge_word(), rng.word(), rng.edge_word(), rng.word() >> 3]))
    {
        let found = super::secret::multiply(&other.to_affine(), &number);
        assert_eq!(found, other.multiply_slowly(&number).to_affine(), "{number:x?}");
    }
    // Points of the curve: in the group if and only if the order annihilates them.
    let mut outside = 0;
    for _ in 0..100 {
        let point = rng.point_of_curve::<C>();
        assert!(point.is_on_curve());
        let is_in_group = Jacobian::from(point).multiply_slowly(&C::ORDER).is_infinity();
        assert_eq!(point.is_in_group(), is_in_group);
        outside += usize::from(!is_in_group);
        let off = Affine::<C>::new(point.x, point.y + C::Base::ONE);
        assert_eq!(off.is_on_curve(), off.y.square() == point.y.square());
    }
    assert_eq!(outside, if is_cofactor_one { 0 } else { 100 });
    let points = [point, Jacobian::INFINITY, other, other];
    assert_eq!(Jacobian::all_to_affine(&points)[..], points.map(|p| p.to_affine()));
}

/// By the slope, with an inversion.
fn slow_sum<C: Curve>(a: &Affine<C>, b: &Affine<C>) -> Affine<C> {
    if a.is_infinity {
        return *b;
    }
    if b.is_infinity {
        return *a;
    }
    let slope = if a.x == b.x {
        if a.y != b.y {
            return Affine::INFINITY;
        }
        let square = a.x.square();
        (square + square + square) * (a.y + a.y).inverse().expect("an odd order")
    } else {
        (b.y - a.y) * (b.x - a.x).inverse().expect("different")
    };
    let x = slope.square() - a.x - b.x;
    Affine::new(x, slope * (a.x - x) - a.y)
}

tests! {
    bls12_381_g1: check::<BlsG1>(false);
    bls12_381_g2: check::<BlsG2>(false);
    bn254_g1: check::<BnG1>(true);
    bn254_g2: check::<BnG2>(false);
    bls12_377_g1: check::<Bls377G1>(false);
    bls12_377_g2: check::<Bls377G2>(false);
    bn254_nogami_g1: check::<NogamiG1>(true);
}

/// Its generator is the point (-u, 1) times the cofactor `2 p - r`.
#[test]
fn bn254_nogami_g2() {
    check::<NogamiG2>(false);
    let zero = bn254_nogami::Fp::ZERO;
    let x = Fp2 { c0: zero, c1: -bn254_nogami::Fp::ONE };
    let point = Affine::<NogamiG2>::new(x, Fp2::ONE);
    assert!(point.is_on_curve());
    let prime = bn254_nogami::Fp::MODULUS;
    let cofactor = limbs::sub(&limbs::add(&prime, &prime).0, &NogamiG2::ORDER).0;
    let multiple = Jacobian::from(point).multiply_slowly(&cofactor);
    assert_eq!(multiple.to_affine(), NogamiG2::GENERATOR);
}

/// The cofactor of the twist maps points into the group; both checks agree there too.
#[test]
fn points_of_the_group_by_the_cofactor() {
    let mut rng = Rng::new(6);
    // (x - 1)^2 / 3 of BLS12-381 for its first group.
    let cofactor = [0x8c00_aaab_0000_aaab, 0x396c_8c00_5555_e156];
    for _ in 0..50 {
        let point = Jacobian::from(rng.point_of_curve::<BlsG1>()).multiply_slowly(&cofactor);
        assert!(point.to_affine().is_in_group());
        assert!(point.multiply_slowly(&BlsG1::ORDER).is_infinity());
    }
    // (x - 1)^2 / 3 of BLS12-377.
    let cofactor = [0, 0x170b_5d44_3000_0000];
    for _ in 0..50 {
        let point = Jacobian::from(rng.point_of_curve::<Bls377G1>()).multiply_slowly(&cofactor);
        assert!(point.to_affine().is_in_group());
        assert!(point.multiply_slowly(&Bls377G1::ORDER).is_infinity());
    }
}

/// Digits of the four parts of a secret number: parts that are zero, even, and maximal.
#[test]
fn secret_numbers_by_the_endomorphism() {
    let mut rng = Rng::new(22);
    let point = BlsG2::GENERATOR.multiply(&[rng.word(), rng.word(), 0, 0]);
    let affine = point.to_affine();
    let x = [crate::bls12_381::X, 0, 0, 0];
    let mut numbers = vec![[1, 0, 0, 0], [2, 0, 0, 0], x, limbs::plus_small(&x, 1)];
    numbers.extend((1..8).map(|k| limbs::minus_small(&BlsG2::ORDER, k)));
    numbers.extend((0..200).map(|_| {
        [rng.edge_word(), rng.edge_word(), rng.edge_word(), rng.edge_word() & (u64::MAX >> 2)]
    }));
    for number in numbers.into_iter().filter(|number| *number != [0; 4]) {
        let found = super::secret::multiply_g2(&affine, &number);
        assert_eq!(found, super::secret::multiply(&affine, &number), "{number:x?}");
        assert_eq!(found, point.multiply_slowly(&number).to_affine(), "{number:x?}");
    }
}
