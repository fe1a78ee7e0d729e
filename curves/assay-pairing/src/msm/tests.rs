//! Sums against one product after the other, on every backend.

use super::{Backend, MultiScalar, Share, share_of_products, sum_of_products};
use crate::curve::{
    Affine, Bls377G1, Bls377G2, BlsG1, BlsG2, BnG1, BnG2, Jacobian, NogamiG1, NogamiG2,
};
use crate::limbs;
use crate::testing::Rng;

/// A chain of multiples of the generator.
fn points<C: MultiScalar>(count: usize) -> Vec<Affine<C>> {
    let mut point = Jacobian::from(C::GENERATOR);
    let step = point.multiply(&[0x1234_5678_9abc_def1, 7, 9, 1]);
    let mut points = Vec::new();
    for _ in 0..count {
        points.push(point);
        point = point + step;
    }
    Jacobian::all_to_affine(&points)
}

fn check<C: MultiScalar>(points: &[Affine<C>], scalars: &[[u64; 4]], what: &str) {
    let products = points.iter().zip(scalars).map(|(point, scalar)| point.multiply(scalar));
    let right = products.fold(Jacobian::INFINITY, |sum, product| sum + product);
    for backend in Backend::ALL {
        // The oracle is slow.
        if !backend.is_available() || backend == Backend::Portable && points.len() > 300 {
            continue;
        }
        // As a whole, and in shares, of which there may be more than windows.
        for count in [1, 2, 3, 40] {
            let share = |share| share_of_products(backend, points, scalars, share);
            let sum = Share::all(count).map(share).fold(Jacobian::INFINITY, |sum, x| sum + x);
            let (count, name) = (points.len(), backend.name());
            assert_eq!(sum, right, "{what}, {count} points, {name}");
        }
    }
}

fn check_group<C: MultiScalar>(most: usize) {
    let mut rng = Rng::new(11);
    let all = points::<C>(most);
    for count in [0, 1, 2, 7, 8, 9, 15, 16, 17, 40, 129, 300, most] {
        let count = count.min(most);
        let points = &all[..count];
        let scalars: Vec<[u64; 4]> =
            (0..count).map(|_| core::array::from_fn(|_| rng.word())).collect();
        check(points, &scalars, "random");
    }
    let points = &all[..most.min(100)];
    let edges: Vec<[u64; 4]> = points
        .iter()
        .map(|_| match rng.word() % 8 {
            0 => [0; 4],
            1 => [1 + rng.word() % 3, 0, 0, 0],
            2 => limbs::minus_small(&C::ORDER, rng.word() % 3),
            3 => [u64::MAX; 4],
            4 => C::ORDER,
            _ => core::array::from_fn(|_| rng.edge_word()),
        })
        .collect();
    check(points, &edges, "edges");
    // Equal, opposite and infinite points, with equal scalars: all exceptions of additions.
    let same = vec![all[0]; 100];
    check(&same, &vec![[5, 6, 7, 8]; 100], "equal points and scalars");
    check(&same, &edges, "equal points");
    let mixed: Vec<Affine<C>> = (0..100)
        .map(|_| match rng.word() % 5 {
            0 => Affine::INFINITY,
            1 => -all[(rng.word() % 3) as usize],
            _ => all[(rng.word() % 3) as usize],
        })
        .collect();
    for scalar in [[0; 4], [1, 0, 0, 0], [u64::MAX; 4], [3, 1 << 63, 9, 1 << 61]] {
        check(&mixed, &vec![scalar; 100], "few different points, equal scalars");
    }
    check(&mixed, &edges, "few different points");
    let opposite: Vec<Affine<C>> =
        (0..100).map(|k| if k % 2 == 0 { all[1] } else { -all[1] }).collect();
    check(&opposite, &vec![[77, 1, 2, 3]; 100], "opposite points");
}

#[test]
fn bls12_381() {
    check_group::<BlsG1>(3_000);
    check_group::<BlsG2>(200);
}

#[test]
fn bls12_377() {
    check_group::<Bls377G1>(3_000);
    check_group::<Bls377G2>(200);
}

#[test]
fn bn254() {
    check_group::<BnG1>(3_000);
    check_group::<BnG2>(200);
}

#[test]
fn bn254_nogami() {
    check_group::<NogamiG1>(3_000);
    check_group::<NogamiG2>(200);
}

/// Enough points for parts within a window: the sum of a chain by its closed form.
#[test]
fn many_points() {
    fn check<C: MultiScalar>() {
        let count = 40_000;
        let all = points::<C>(count);
        // sum of k P_k for P_k = G + k S.
        let scalars: Vec<[u64; 4]> = (0..count as u64).map(|k| [k, 0, 0, 0]).collect();
        let n = count as u128;
        let wide = |number: u128| [number as u64, (number >> 64) as u64, 0, 0];
        let step = Jacobian::from(C::GENERATOR).multiply(&[0x1234_5678_9abc_def1, 7, 9, 1]);
        let right = Jacobian::from(C::GENERATOR).multiply(&wide(n * (n - 1) / 2))
            + step.multiply(&wide((n - 1) * n * (2 * n - 1) / 6));
        for backend in [Backend::Scalar, Backend::Ifma] {
            if backend.is_available() {
                assert_eq!(sum_of_products(backend, &all, &scalars), right, "{backend:?}");
            }
        }
    }
    check::<BlsG1>();
    check::<BnG1>();
}
