//! Against products with the weight as a number.

use super::{Weight, Weighted, products};
use crate::bls12_381::{Fr, X};
use crate::curve::{Affine, BlsG1, BlsG2, Jacobian};
use crate::field::Field as _;
use crate::msm::Backend;
use crate::testing::Rng;

fn number(weight: Weight) -> [u64; 4] {
    let lambda = -Fr::from_u64(X).square();
    let two_64 = Fr::from_u64(1 << 32).square();
    (two_64 + Fr::from_u64(weight.a) + Fr::from_u64(weight.b) * lambda).to_limbs()
}

fn check<C: Weighted>() {
    let mut rng = Rng::new(17);
    let mut points: Vec<Affine<C>> =
        (1..20).map(|k| C::GENERATOR.multiply(&[rng.word(), k, 0, 0]).to_affine()).collect();
    points[3] = Affine::INFINITY;
    points[5] = C::GENERATOR;
    let weights: Vec<_> =
        points.iter().map(|_| Weight { a: rng.edge_word(), b: rng.edge_word() }).collect();
    for count in [0, 1, 8, 19] {
        let right: Vec<Jacobian<C>> = points[..count]
            .iter()
            .zip(&weights)
            .map(|(point, weight)| Jacobian::from(*point).multiply_slowly(&number(*weight)))
            .collect();
        for backend in Backend::ALL.into_iter().filter(|backend| backend.is_available()) {
            let found = products(backend, &points[..count], &weights[..count]);
            assert_eq!(found, right, "{}", backend.name());
        }
    }
}

#[test]
fn of_the_first_group() {
    check::<BlsG1>();
}

#[test]
fn of_the_second_group() {
    check::<BlsG2>();
}
