//! Precompiles on BLS12-381 (EIP-2537): numbers of 64 bytes, points of 128 and 256, infinity as zeros.
//!
//! Additions accept any points of the curves; multi-scalar multiplication and pairings require
//! points of the groups. Inputs must have the exact length and are never empty.

use super::{PrecompileError, exactly, part};
use crate::curve::{Affine, BlsG1, BlsG2, Jacobian};
use crate::encoding::DecodeError;
use crate::hash_to_curve::HashToCurve as _;
use crate::limbs;
use crate::membership::{BatchMembership, each_in_group};
use crate::msm::{Backend, sum_of_products};
use crate::pairing::{Bls12381, Pairing as _};
use crate::tower::{Fp2, Fp12};

const FP_BYTES: usize = 64;
const G1_BYTES: usize = 128;
const G2_BYTES: usize = 256;
const SCALAR_BYTES: usize = 32;
const PAIR_BYTES: usize = G1_BYTES + G2_BYTES;

pub const BLS_G1_ADD_GAS: u64 = 375;
pub const BLS_G2_ADD_GAS: u64 = 600;
pub const BLS_MAP_FP_TO_G1_GAS: u64 = 5_500;
pub const BLS_MAP_FP2_TO_G2_GAS: u64 = 23_800;

/// Gas of one product in thousandths of the single price, by the number of products; constant from 128 on.
type Discounts = [u16; 128];

const G1_DISCOUNTS: Discounts = [
    1000, 949, 848, 797, 764, 750, 738, 728, 719, 712, 705, 698, 692, 687, 682, 677, 673, 669, 665,
    661, 658, 654, 651, 648, 645, 642, 640, 637, 635, 632, 630, 627, 625, 623, 621, 619, 617, 615,
    613, 611, 609, 608, 606, 604, 603, 601, 599, 598, 596, 595, 593, 592, 591, 589, 588, 586, 585,
    584, 582, 581, 580, 579, 577, 576, 575, 574, 573, 572, 570, 569, 568, 567, 566, 565, 564, 563,
    562, 561, 560, 559, 558, 557, 556, 555, 554, 553, 552, 551, 550, 549, 548, 547, 547, 546, 545,
    544, 543, 542, 541, 540, 540, 539, 538, 537, 536, 536, 535, 534, 533, 532, 532, 531, 530, 529,
    528, 528, 527, 526, 525, 525, 524, 523, 522, 522, 521, 520, 520, 519,
];

const G2_DISCOUNTS: Discounts = [
    1000, 1000, 923, 884, 855, 832, 812, 796, 782, 770, 759, 749, 740, 732, 724, 717, 711, 704,
    699, 693, 688, 683, 679, 674, 670, 666, 663, 659, 655, 652, 649, 646, 643, 640, 637, 634, 632,
    629, 627, 624, 622, 620, 618, 615, 613, 611, 609, 607, 606, 604, 602, 600, 598, 597, 595, 593,
    592, 590, 589, 587, 586, 584, 583, 582, 580, 579, 578, 576, 575, 574, 573, 571, 570, 569, 568,
    567, 566, 565, 563, 562, 561, 560, 559, 558, 557, 556, 555, 554, 553, 552, 552, 551, 550, 549,
    548, 547, 546, 545, 545, 544, 543, 542, 541, 541, 540, 539, 538, 537, 537, 536, 535, 535, 534,
    533, 532, 532, 531, 530, 530, 529, 528, 528, 527, 526, 526, 525, 524, 524,
];

fn discounted(products: usize, gas: u64, discounts: &Discounts) -> u64 {
    let Some(last) = products.checked_sub(1) else { return 0 };
    let discount = discounts[last.min(discounts.len() - 1)];
    products as u64 * gas * u64::from(discount) / 1000
}

pub fn bls_g1_msm_gas(input_bytes: usize) -> u64 {
    discounted(input_bytes / (G1_BYTES + SCALAR_BYTES), 12_000, &G1_DISCOUNTS)
}

pub fn bls_g2_msm_gas(input_bytes: usize) -> u64 {
    discounted(input_bytes / (G2_BYTES + SCALAR_BYTES), 22_500, &G2_DISCOUNTS)
}

pub fn bls_pairing_gas(input_bytes: usize) -> u64 {
    37_700 + 32_600 * (input_bytes / PAIR_BYTES) as u64
}

/// Splits an input into one or more units.
fn units(input: &[u8], unit: usize) -> Result<core::slice::ChunksExact<'_, u8>, PrecompileError> {
    if input.is_empty() || !input.len().is_multiple_of(unit) {
        return Err(PrecompileError::Length { bytes: input.len(), unit });
    }
    Ok(input.chunks_exact(unit))
}

fn in_group<C: BatchMembership>(points: &[Affine<C>]) -> Result<(), PrecompileError> {
    if each_in_group(Backend::detect(), points) {
        Ok(())
    } else {
        Err(DecodeError::NotInGroup.into())
    }
}

fn g1(bytes: &[u8], first: usize) -> Result<Affine<BlsG1>, PrecompileError> {
    Ok(Affine::<BlsG1>::from_evm(&part(bytes, first))?)
}

fn g2(bytes: &[u8], first: usize) -> Result<Affine<BlsG2>, PrecompileError> {
    Ok(Affine::<BlsG2>::from_evm(&part(bytes, first))?)
}

/// Address 0x0b: the sum of two points of the first curve.
///
/// # Errors
/// If the input does not have 256 bytes, or a point is not on the curve.
pub fn bls_g1_add(input: &[u8]) -> Result<[u8; G1_BYTES], PrecompileError> {
    let bytes: &[u8; 2 * G1_BYTES] = exactly(input)?;
    let (a, b) = (g1(bytes, 0)?, g1(bytes, G1_BYTES)?);
    Ok(Jacobian::from(a).add_affine(&b).to_affine().to_evm())
}

/// Address 0x0d: the sum of two points of the second curve.
///
/// # Errors
/// If the input does not have 512 bytes, or a point is not on the curve.
pub fn bls_g2_add(input: &[u8]) -> Result<[u8; G2_BYTES], PrecompileError> {
    let bytes: &[u8; 2 * G2_BYTES] = exactly(input)?;
    let (a, b) = (g2(bytes, 0)?, g2(bytes, G2_BYTES)?);
    Ok(Jacobian::from(a).add_affine(&b).to_affine().to_evm())
}

/// Address 0x0c: the sum of points of the first group times numbers of up to 256 bits.
///
/// # Errors
/// If the length is not a positive multiple of 160, or a point is not in the group.
pub fn bls_g1_msm(input: &[u8]) -> Result<[u8; G1_BYTES], PrecompileError> {
    let (mut points, mut scalars) = (Vec::new(), Vec::new());
    for bytes in units(input, G1_BYTES + SCALAR_BYTES)? {
        points.push(g1(bytes, 0)?);
        scalars.push(limbs::from_be_bytes(&bytes[G1_BYTES..]));
    }
    in_group(&points)?;
    Ok(sum_of_products(Backend::detect(), &points, &scalars).to_affine().to_evm())
}

/// Address 0x0e: the sum of points of the second group times numbers of up to 256 bits.
///
/// # Errors
/// If the length is not a positive multiple of 288, or a point is not in the group.
pub fn bls_g2_msm(input: &[u8]) -> Result<[u8; G2_BYTES], PrecompileError> {
    let (mut points, mut scalars) = (Vec::new(), Vec::new());
    for bytes in units(input, G2_BYTES + SCALAR_BYTES)? {
        points.push(g2(bytes, 0)?);
        scalars.push(limbs::from_be_bytes(&bytes[G2_BYTES..]));
    }
    in_group(&points)?;
    Ok(sum_of_products(Backend::detect(), &points, &scalars).to_affine().to_evm())
}

/// Address 0x0f: true if the product of the pairings of all pairs is one.
///
/// # Errors
/// If the length is not a positive multiple of 384, or a point is not in its group.
pub fn bls_pairing(input: &[u8]) -> Result<bool, PrecompileError> {
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for bytes in units(input, PAIR_BYTES)? {
        first.push(g1(bytes, 0)?);
        second.push(g2(bytes, G1_BYTES)?);
    }
    in_group(&first)?;
    let pairs: Vec<_> = first.into_iter().zip(second).collect();
    let product =
        Bls12381::checked_product(Backend::detect(), &pairs).ok_or(DecodeError::NotInGroup)?;
    Ok(product == Fp12::ONE)
}

/// Address 0x10: maps a number to a point of the first group.
///
/// # Errors
/// If the input does not have 64 bytes, or the number is not below the prime.
pub fn bls_map_fp_to_g1(input: &[u8]) -> Result<[u8; G1_BYTES], PrecompileError> {
    let bytes: &[u8; FP_BYTES] = exactly(input)?;
    Ok(BlsG1::map(&number(bytes, 0)?).to_evm())
}

/// Address 0x11: maps an element of Fp2, real part first, to a point of the second group.
///
/// # Errors
/// If the input does not have 128 bytes, or a number is not below the prime.
pub fn bls_map_fp2_to_g2(input: &[u8]) -> Result<[u8; G2_BYTES], PrecompileError> {
    let bytes: &[u8; 2 * FP_BYTES] = exactly(input)?;
    let element = Fp2 { c0: number(bytes, 0)?, c1: number(bytes, FP_BYTES)? };
    Ok(BlsG2::map(&element).to_evm())
}

fn number(bytes: &[u8], first: usize) -> Result<crate::bls12_381::Fp, PrecompileError> {
    let bytes: [u8; FP_BYTES] = part(bytes, first);
    let (padding, number) = bytes.split_at(16);
    let number = number.first_chunk().filter(|_| padding.iter().all(|byte| *byte == 0));
    let number = number.and_then(crate::bls12_381::Fp::from_be_bytes);
    number.ok_or(PrecompileError::Point(DecodeError::Coordinate))
}
