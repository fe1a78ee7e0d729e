//! Sets of points with a few outside of the group.

use super::{BatchMembership, all_in_group, each_in_group, shape_for};
use crate::curve::{
    Affine, Bls377G1, Bls377G2, BlsG1, BlsG2, BnG2, Curve as _, Jacobian, NogamiG2,
};
use crate::msm::Backend;
use crate::testing::{Point as _, Random, Rng};

fn check<C: BatchMembership<Base: Random>>(counts: &[usize]) {
    let mut rng = Rng::new(17);
    for &count in counts {
        let mut points = Vec::new();
        let mut point = Jacobian::from(C::GENERATOR);
        for _ in 0..count {
            points.push(point);
            point = point.double() + Jacobian::from(C::GENERATOR);
        }
        let mut points = Jacobian::all_to_affine(&points);
        points[1] = Affine::INFINITY;
        points[2] = points[0];
        points[3] = -points[0];
        for backend in [Backend::Scalar, Backend::Ifma] {
            if !backend.is_available() {
                continue;
            }
            let all = |points: &[Affine<C>]| all_in_group(backend, points, &[5; 32]);
            assert!(all(&points), "{count}");
            let place = rng.word() as usize % count;
            let mut changed = points.clone();
            changed[place] = rng.point_of_curve();
            assert!(!all(&changed), "{count}, {place}");
            // Two points that cancel each other in a plain sum.
            let other = (place + 1) % count;
            changed[other] = -changed[place];
            assert!(!all(&changed), "{count}, {place}, {other}");
        }
    }
}

#[test]
fn points_outside_are_found() {
    check::<BlsG1>(&[4, 15, 16, 17, 100, 1000]);
    check::<BlsG2>(&[4, 16, 50]);
    check::<BnG2>(&[4, 16, 50]);
    check::<NogamiG2>(&[4, 16, 50]);
    check::<Bls377G1>(&[4, 15, 16, 17, 100, 1000]);
    check::<Bls377G2>(&[4, 16, 50]);
}

/// The only point of order two of BLS12-377's first curve, with x = -1: alone, added to points of
/// the group, repeated, and in sums with itself.
#[test]
fn points_of_order_two_are_found() {
    let two = Affine::<Bls377G1>::new(-crate::bls12_377::Fp::ONE, crate::bls12_377::Fp::ZERO);
    assert!(two.is_on_curve() && Jacobian::from(two).double().is_infinity());
    let generator = Jacobian::from(Bls377G1::GENERATOR);
    let good: Vec<_> = (0..200u64).map(|k| generator.multiply(&[k + 1, 0, 0, 0])).collect();
    for places in [&[77][..], &[0, 1, 2, 3], &(0..199).collect::<Vec<_>>()] {
        let (mut alone, mut added) = (good.clone(), good.clone());
        for &place in places {
            alone[place] = two.into();
            added[place] = added[place].add_affine(&two);
        }
        for points in [alone, added].map(|points| Jacobian::all_to_affine(&points)) {
            for backend in [Backend::Scalar, Backend::Ifma] {
                for round in (0..10).filter(|_| backend.is_available()) {
                    assert!(!all_in_group(backend, &points, &[round; 32]), "{places:?}");
                }
            }
        }
    }
}

/// Points of order 3 and 11 are the hardest: their multiples take few values.
#[test]
fn points_of_small_order_are_found() {
    let mut rng = Rng::new(18);
    // (x - 1)^2 / 3 = 3 * 11^2 * ...
    let cofactor = [0x8c00_aaab_0000_aaab, 0x396c_8c00_5555_e156, 0, 0];
    // The 11-torsion has two dimensions, so 11^2 must be left out.
    for (small, power) in [(3, 3), (11, 121)] {
        let (factor, rest) = crate::limbs::divide_small(&cofactor, power);
        assert_eq!(rest, 0);
        let point = loop {
            let point = Jacobian::from(rng.point_of_curve::<BlsG1>())
                .multiply_slowly(&<BlsG1 as crate::curve::Curve>::ORDER)
                .multiply_slowly(&factor);
            if !point.is_infinity() {
                break point;
            }
        };
        assert!(point.multiply_slowly(&[small]).is_infinity());
        let generator = Jacobian::from(<BlsG1 as crate::curve::Curve>::GENERATOR);
        let mut points: Vec<_> =
            (0..200u64).map(|k| generator.multiply(&[k + 1, 0, 0, 0])).collect();
        points[77] = points[77] + point;
        let points = Jacobian::all_to_affine(&points);
        for round in 0..20 {
            assert!(!all_in_group(Backend::detect(), &points, &[round; 32]), "{small}");
        }
    }
}

/// Single points outside: at each place of a vector, exceptions of the formulas in lanes, and
/// numbers of points around its width.
fn check_each<C: BatchMembership<Base: Random>>(special: &[Affine<C>]) {
    let mut rng = Rng::new(19);
    let generator = Jacobian::from(C::GENERATOR);
    let mut good: Vec<_> =
        (0..17u64).map(|_| generator.multiply_slowly(&[rng.word(), 0, 0, 0])).collect();
    good[3] = Jacobian::INFINITY;
    good[5] = -good[4];
    let good = Jacobian::all_to_affine(&good);
    for backend in Backend::ALL.into_iter().filter(|backend| backend.is_available()) {
        for count in [0, 1, 2, 3, 7, 8, 9, 16, 17] {
            assert!(each_in_group(backend, &good[..count]), "{backend:?}, {count}");
            let random: Affine<C> = rng.point_of_curve();
            for bad in special.iter().chain([&random]) {
                assert!(!C::is_in_group(bad));
                let mut points = good[..count].to_vec();
                if count > 0 {
                    points[rng.word() as usize % count] = *bad;
                    assert!(!each_in_group(backend, &points), "{backend:?}, {count}");
                }
            }
        }
        for place in 0..8 {
            let mut points = good[..8].to_vec();
            points[place] = rng.point_of_curve();
            assert!(!each_in_group(backend, &points), "{backend:?}, {place}");
        }
    }
}

/// Points of the curve whose order divides another number, as products with `others`.
fn of_small_order<C: BatchMembership<Base: Random>>(others: &[&[u64]]) -> Affine<C> {
    let mut rng = Rng::new(20);
    loop {
        let mut point = Jacobian::from(rng.point_of_curve::<C>()).multiply_slowly(&C::ORDER);
        for other in others {
            point = point.multiply_slowly(other);
        }
        if !point.is_infinity() {
            return point.to_affine();
        }
    }
}

#[test]
fn points_are_checked_one_by_one() {
    // (x - 1)^2 / 3, its parts 27 and 121 left out.
    let cofactor = [0x8c00_aaab_0000_aaab, 0x396c_8c00_5555_e156, 0, 0];
    let without = |power| crate::limbs::divide_small(&cofactor, power).0;
    let (three, eleven) = (without(3), without(121));
    check_each::<BlsG1>(&[of_small_order(&[&three]), of_small_order(&[&eleven])]);
    check_each::<BlsG2>(&[]);
    check_each::<BnG2>(&[]);
    check_each::<NogamiG2>(&[]);
    let two = Affine::<Bls377G1>::new(-crate::bls12_377::Fp::ONE, crate::bls12_377::Fp::ZERO);
    check_each::<Bls377G1>(&[two]);
    check_each::<Bls377G2>(&[]);
}

#[test]
fn shapes_have_enough_sums() {
    for points in [16, 100, 1_000, 10_000, 1_000_000] {
        for sums in super::SUMS {
            let shape = shape_for(points, sums);
            assert!(shape.places as usize * shape.blocks >= sums);
        }
    }
}
