//! Every backend against sums of single products.

use super::FixedLists;
use crate::curve::{BlsG1, Curve as _, Jacobian};
use crate::msm::Backend;
use crate::testing::Rng;

#[test]
fn as_one_by_one() {
    let mut rng = Rng::new(32);
    let mut point = Jacobian::from(BlsG1::GENERATOR);
    for (lists, points) in [(1, 1), (3, 5), (6, 64), (1, 0)] {
        let lists: Vec<Vec<_>> = (0..lists)
            .map(|_| {
                let next = |index| {
                    point = point.double() + BlsG1::GENERATOR.into();
                    // Infinity, and the same point again.
                    if index == 3 { Jacobian::INFINITY } else { point }
                };
                (0..points).map(next).collect()
            })
            .collect();
        let scalar = |rng: &mut Rng| rng.fe::<crate::bls12_381::FrModulus, 4>().to_limbs();
        let scalars: Vec<Vec<_>> =
            lists.iter().map(|list| list.iter().map(|_| scalar(&mut rng)).collect()).collect();
        let fixed = FixedLists::new(&lists);
        for backend in Backend::ALL.into_iter().filter(|backend| backend.is_available()) {
            let sums = fixed.sums(backend, &scalars);
            for ((list, scalars), sum) in lists.iter().zip(&scalars).zip(&sums) {
                let products = list.iter().zip(scalars).map(|(p, k)| p.multiply_slowly(k));
                let right = products.fold(Jacobian::INFINITY, |sum, product| sum + product);
                assert_eq!(*sum, right, "{backend:?}");
            }
        }
    }
}

/// Sums that are infinity, and buckets with the same point and its negation.
#[test]
fn sums_that_cancel() {
    let point = Jacobian::from(BlsG1::GENERATOR);
    let fixed = FixedLists::new(&[vec![point, -point, point, point]]);
    let scalars = vec![vec![[77, 5, 0, 0], [77, 5, 0, 0], [9, 0, 0, 0], [0; 4]]];
    for backend in Backend::ALL.into_iter().filter(|backend| backend.is_available()) {
        let right = point.multiply(&[9, 0, 0, 0]);
        assert_eq!(fixed.sums(backend, &scalars), [right], "{backend:?}");
    }
}
