//! Precompiles by their definitions. `peers/pairing` compares them with another implementation.

use super::{PrecompileError, ec_add, ec_mul, ec_pairing, ec_pairing_gas};
use crate::curve::{Affine, BnG1, BnG2, Curve as _};
use crate::encoding::DecodeError;
use crate::testing::{Point as _, Rng};

fn generator_times(scalar: u64) -> [u8; 64] {
    BnG1::GENERATOR.multiply(&[scalar, 0, 0, 0]).to_affine().to_evm()
}

#[test]
fn additions_and_products() {
    let (two, three, five) = (generator_times(2), generator_times(3), generator_times(5));
    assert_eq!(ec_add(&[two, three].concat()), Ok(five));
    // Extra bytes are ignored, missing ones are zeros.
    assert_eq!(ec_add(&[&two[..], &three, &[9; 7]].concat()), Ok(five));
    assert_eq!(ec_add(&two), Ok(two));
    assert_eq!(ec_add(&[]), Ok([0; 64]));
    assert_eq!(ec_add(&[&two[..], &[0xff; 64]].concat()), Err(DecodeError::Coordinate.into()));
    assert_eq!(ec_add(&[1; 128]), Err(DecodeError::NotOnCurve.into()));
    let mut scalar = [0; 32];
    scalar[31] = 5;
    assert_eq!(ec_mul(&[&generator_times(1)[..], &scalar].concat()), Ok(five));
    // A number that ends early goes on with zeros.
    assert_eq!(ec_mul(&[&generator_times(1)[..], &[0; 31], &[5, 1]].concat()), Ok(five));
    assert_eq!(ec_mul(&generator_times(1)), Ok([0; 64]));
    let all = [0xff; 32];
    let slow = crate::curve::Jacobian::from(BnG1::GENERATOR).multiply_slowly(&[u64::MAX; 4]);
    assert_eq!(ec_mul(&[&generator_times(1)[..], &all].concat()), Ok(slow.to_affine().to_evm()));
}

#[test]
fn pairings() {
    let g2 = BnG2::GENERATOR.to_evm();
    let minus = (-BnG1::GENERATOR).to_evm();
    assert_eq!(ec_pairing(&[]), Ok(true));
    assert_eq!(ec_pairing(&[&generator_times(1)[..], &g2].concat()), Ok(false));
    let pairs = [&generator_times(1)[..], &g2, &minus, &g2].concat();
    assert_eq!(ec_pairing(&pairs), Ok(true));
    assert_eq!(ec_pairing(&pairs[1..]), Err(PrecompileError::Length(383)));
    assert_eq!(ec_pairing(&[0; 192]), Ok(true));
    let outside = Rng::new(14).point_of_curve::<BnG2>().to_evm();
    let pair = [&Affine::<BnG1>::INFINITY.to_evm()[..], &outside].concat();
    assert_eq!(ec_pairing(&pair), Err(DecodeError::NotInGroup.into()));
    assert_eq!(ec_pairing_gas(384), 113_000);
}
