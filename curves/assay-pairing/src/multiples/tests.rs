//! Every backend against bit-by-bit multiplication.

use super::{Multiplier, products};
use crate::curve::{BlsG1, Curve as _, Jacobian};
use crate::limbs;
use crate::msm::Backend;
use crate::testing::Rng;

#[test]
fn as_bit_by_bit() {
    let mut rng = Rng::new(31);
    let order = BlsG1::ORDER;
    let mut numbers = vec![[0; 4], [1, 0, 0, 0], [2, 0, 0, 0], [3, 0, 0, 0]];
    numbers.extend([1, 2, 3].map(|below| limbs::minus_small(&order, below)));
    // Around x^2, where the split changes.
    let x2 = super::X2;
    numbers.extend([x2 - 1, x2, x2 + 1].map(|n| [n as u64, (n >> 64) as u64, 0, 0]));
    numbers.extend((0..25).map(|_| rng.fe::<crate::bls12_381::FrModulus, 4>().to_limbs()));
    let multipliers: Vec<_> = numbers.iter().map(|number| Multiplier::new(*number)).collect();
    let all: Vec<_> = multipliers.iter().collect();
    let mut point = Jacobian::from(BlsG1::GENERATOR).multiply_slowly(&[rng.word(), rng.word()]);
    let mut points = Vec::new();
    for index in 0..numbers.len() {
        points.push(if index % 11 == 7 { Jacobian::INFINITY } else { point });
        point = point.double() + BlsG1::GENERATOR.into();
    }
    for backend in Backend::ALL.into_iter().filter(|backend| backend.is_available()) {
        for count in [0, 1, 7, 8, 9, numbers.len()] {
            let found = products(backend, &points[..count], &all[..count]);
            for (index, product) in found.iter().enumerate() {
                let right = points[index].multiply_slowly(&numbers[index]);
                assert_eq!(*product, right, "{backend:?}: {:x?}", numbers[index]);
            }
        }
    }
}
