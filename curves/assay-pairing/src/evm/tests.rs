//! Precompiles by their definitions. `curves/peer` compares them with another implementation.

mod others;

use super::{
    PrecompileError, bls_g1_add, bls_g1_msm, bls_g1_msm_gas, bls_g2_add, bls_g2_msm,
    bls_g2_msm_gas, bls_map_fp_to_g1, bls_map_fp2_to_g2, bls_pairing, bls_pairing_gas, ec_add,
    ec_mul, ec_pairing, ec_pairing_gas,
};
use crate::curve::{Affine, BlsG1, BlsG2, BnG1, BnG2, Curve as _};
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
    // A truncated number is padded with zeros.
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
    assert_eq!(ec_pairing(&pairs[1..]), Err(PrecompileError::Length { bytes: 383, unit: 192 }));
    assert_eq!(ec_pairing(&[0; 192]), Ok(true));
    let outside = Rng::new(14).point_of_curve::<BnG2>().to_evm();
    let pair = [&Affine::<BnG1>::INFINITY.to_evm()[..], &outside].concat();
    assert_eq!(ec_pairing(&pair), Err(DecodeError::NotInGroup.into()));
    assert_eq!(ec_pairing_gas(384), 113_000);
}

#[test]
fn sums_and_pairings_of_bls12_381() {
    let first = |k: u64| BlsG1::GENERATOR.multiply(&[k, 0, 0, 0]).to_affine().to_evm();
    let second = |k: u64| BlsG2::GENERATOR.multiply(&[k, 0, 0, 0]).to_affine().to_evm();
    let scalar = |k: u8| core::array::from_fn::<u8, 32, _>(|i| if i == 31 { k } else { 0 });
    assert_eq!(bls_g1_add(&[first(2), first(3)].concat()), Ok(first(5)));
    assert_eq!(bls_g2_add(&[second(2), second(3)].concat()), Ok(second(5)));
    // Products, including numbers above the order, and many of them.
    let input = [&first(2)[..], &scalar(3), &first(1), &scalar(4)].concat();
    assert_eq!(bls_g1_msm(&input), Ok(first(10)));
    assert_eq!(bls_g1_msm(&input.repeat(10)), Ok(first(100)));
    let input = [&second(2)[..], &scalar(3), &second(1), &scalar(4)].concat();
    assert_eq!(bls_g2_msm(&input), Ok(second(10)));
    assert_eq!(bls_g2_msm(&input.repeat(10)), Ok(second(100)));
    let all = crate::curve::Jacobian::from(BlsG1::GENERATOR).multiply_slowly(&[u64::MAX; 4]);
    let input = [&first(1)[..], &[0xff; 32]].concat();
    assert_eq!(bls_g1_msm(&input), Ok(all.to_affine().to_evm()));
    // e(2 P, 3 Q) e(-6 P, Q) = 1.
    let minus_six = (-BlsG1::GENERATOR.multiply(&[6, 0, 0, 0]).to_affine()).to_evm();
    let input = [&first(2)[..], &second(3), &minus_six, &second(1)].concat();
    assert_eq!(bls_pairing(&input), Ok(true));
    assert_eq!(bls_pairing(&input[..384]), Ok(false));
    assert_eq!(
        (bls_pairing_gas(768), bls_g1_msm_gas(160), bls_g2_msm_gas(0)),
        (102_900, 12_000, 0)
    );
    assert_eq!(bls_g1_msm_gas(160 * 200), 200 * 12_000 * 519 / 1000);
}

#[test]
fn inputs_on_bls12_381_that_are_rejected() {
    let length = |bytes, unit| PrecompileError::Length { bytes, unit };
    assert_eq!(bls_g1_add(&[0; 255]), Err(length(255, 256)));
    assert_eq!(bls_g2_add(&[0; 513]), Err(length(513, 512)));
    assert_eq!(bls_g1_msm(&[]), Err(length(0, 160)));
    assert_eq!(bls_g2_msm(&[0; 287]), Err(length(287, 288)));
    assert_eq!(bls_pairing(&[]), Err(length(0, 384)));
    assert_eq!(bls_map_fp_to_g1(&[0; 63]), Err(length(63, 64)));
    assert_eq!(bls_map_fp2_to_g2(&[0; 64]), Err(length(64, 128)));
    // Infinity is all zeros.
    assert_eq!(bls_g1_add(&[0; 256]), Ok([0; 128]));
    assert_eq!(bls_pairing(&[0; 384]), Ok(true));
    // Padding, numbers above the prime, points off the curve.
    let mut input = [0; 128];
    input[0] = 1;
    assert_eq!(bls_map_fp2_to_g2(&input), Err(DecodeError::Coordinate.into()));
    assert_eq!(bls_map_fp_to_g1(&[0xff; 64]), Err(DecodeError::Coordinate.into()));
    let mut input = [0; 256];
    input[127] = 1;
    assert_eq!(bls_g1_add(&input), Err(DecodeError::NotOnCurve.into()));
    // Points of the curves outside the groups are accepted by additions only.
    let mut rng = Rng::new(23);
    let (p, q) = (rng.point_of_curve::<BlsG1>().to_evm(), rng.point_of_curve::<BlsG2>().to_evm());
    assert!(bls_g1_add(&[p, p].concat()).is_ok() && bls_g2_add(&[q, q].concat()).is_ok());
    let outside = Err(DecodeError::NotInGroup.into());
    assert_eq!(bls_g1_msm(&[&p[..], &[0; 32]].concat()), outside);
    assert_eq!(
        bls_g2_msm(&[&q[..], &[0; 32]].concat()).err(),
        Some(DecodeError::NotInGroup.into())
    );
    assert_eq!(
        bls_pairing(&[&p[..], &[0; 256]].concat()).err(),
        Some(DecodeError::NotInGroup.into())
    );
    assert_eq!(
        bls_pairing(&[&[0; 128][..], &q].concat()).err(),
        Some(DecodeError::NotInGroup.into())
    );
}
