//! Precompiles of the Ethereum virtual machine with their gas: on BN254 (EIP-196, EIP-197,
//! EIP-1108), on BLS12-381 (EIP-2537), on P-256 (EIP-7951), point evaluation (EIP-4844), modular
//! exponentiation (EIP-198, EIP-2565, EIP-7883), `BLAKE2b`'s function F (EIP-152) and hashes. Only
//! `ECRECOVER` is missing, which needs secp256k1: `assay_secp::ethereum`.

mod blake2f;
mod bls12_381;
mod hashes;
mod modexp;
mod natural;
mod p256;
#[cfg(test)]
mod tests;

pub use blake2f::{blake2f, blake2f_gas};
pub use bls12_381::{
    BLS_G1_ADD_GAS, BLS_G2_ADD_GAS, BLS_MAP_FP_TO_G1_GAS, BLS_MAP_FP2_TO_G2_GAS, bls_g1_add,
    bls_g1_msm, bls_g1_msm_gas, bls_g2_add, bls_g2_msm, bls_g2_msm_gas, bls_map_fp_to_g1,
    bls_map_fp2_to_g2, bls_pairing, bls_pairing_gas,
};

pub use hashes::{identity, identity_gas, ripemd160, ripemd160_gas, sha256, sha256_gas};
pub use modexp::{MODEXP_BYTES_MAX, ModexpRules, modexp, modexp_gas};
pub use p256::{P256_VERIFY_GAS, p256_verify};

use core::fmt;

use crate::curve::{Affine, BnG1, BnG2, Jacobian};
use crate::encoding::DecodeError;
use crate::kzg::{BLOB_ELEMENTS, KzgError, Settings};
use crate::limbs;
use crate::msm::Backend;
use crate::pairing::{Bn254, Pairing};
use crate::tower::Fp12;

pub const EC_ADD_GAS: u64 = 150;
pub const EC_MUL_GAS: u64 = 6_000;

pub fn ec_pairing_gas(input_bytes: usize) -> u64 {
    45_000 + 34_000 * (input_bytes / PAIR_BYTES) as u64
}

/// Length of a point of each group.
const PAIR_BYTES: usize = 192;

/// Reason why a precompile fails, which consumes all gas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrecompileError {
    /// An invalid point in the input, or an invalid number to map to one.
    Point(DecodeError),
    /// An input that is not of a required length, or not a multiple of it.
    Length {
        bytes: usize,
        /// Required length or unit.
        unit: usize,
    },
    /// A number longer than [`MODEXP_BYTES_MAX`], with its length.
    NumberLength(u64),
    /// A flag byte that is neither 0 nor 1.
    Flag(u8),
    /// The hash does not match the commitment.
    CommitmentHash,
    /// An invalid number, commitment or proof.
    Kzg(KzgError),
    /// The proof does not verify.
    Proof,
}

impl fmt::Display for PrecompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Point(error) => write!(f, "input is no point: {error}"),
            Self::Length { bytes, unit } => {
                write!(f, "input of {bytes} bytes instead of {unit} or a multiple")
            }
            Self::NumberLength(bytes) => {
                write!(f, "a number of {bytes} bytes, above {MODEXP_BYTES_MAX}")
            }
            Self::Flag(flag) => write!(f, "the last byte is {flag} instead of 0 or 1"),
            Self::CommitmentHash => f.write_str("the hash is not that of the commitment"),
            Self::Kzg(error) => error.fmt(f),
            Self::Proof => f.write_str("the proof is wrong"),
        }
    }
}

impl std::error::Error for PrecompileError {}

impl From<DecodeError> for PrecompileError {
    fn from(error: DecodeError) -> Self {
        Self::Point(error)
    }
}

/// The first bytes of an input, padded with zeros.
fn padded<const N: usize>(input: &[u8]) -> [u8; N] {
    let mut bytes = [0; N];
    let length = input.len().min(N);
    bytes[..length].copy_from_slice(&input[..length]);
    bytes
}

fn part<const N: usize>(bytes: &[u8], first: usize) -> [u8; N] {
    bytes[first..first + N].try_into().expect("as many bytes")
}

fn exactly<const N: usize>(input: &[u8]) -> Result<&[u8; N], PrecompileError> {
    input.try_into().map_err(|_| PrecompileError::Length { bytes: input.len(), unit: N })
}

/// Address 6: the sum of two points. Input is truncated or padded to 128 bytes.
///
/// # Errors
/// If a point is not on the curve.
pub fn ec_add(input: &[u8]) -> Result<[u8; 64], PrecompileError> {
    let bytes: [u8; 128] = padded(input);
    let a = Affine::<BnG1>::from_evm(&part(&bytes, 0))?;
    let b = Affine::<BnG1>::from_evm(&part(&bytes, 64))?;
    Ok(Jacobian::from(a).add_affine(&b).to_affine().to_evm())
}

/// Address 7: a point times a number. Input is truncated or padded to 96 bytes.
///
/// # Errors
/// If the point is not on the curve.
pub fn ec_mul(input: &[u8]) -> Result<[u8; 64], PrecompileError> {
    let bytes: [u8; 96] = padded(input);
    let point = Affine::<BnG1>::from_evm(&part(&bytes, 0))?;
    let scalar = limbs::from_be_bytes(&bytes[64..]);
    Ok(point.multiply(&scalar).to_affine().to_evm())
}

/// Address 8: true if the product of the pairings of all pairs is one.
///
/// # Errors
/// If the length is not a multiple of 192, or a point is not in its group.
pub fn ec_pairing(input: &[u8]) -> Result<bool, PrecompileError> {
    if !input.len().is_multiple_of(PAIR_BYTES) {
        return Err(PrecompileError::Length { bytes: input.len(), unit: PAIR_BYTES });
    }
    let mut pairs = Vec::with_capacity(input.len() / PAIR_BYTES);
    for bytes in input.chunks_exact(PAIR_BYTES) {
        let p = Affine::<BnG1>::from_evm(&part(bytes, 0))?;
        pairs.push((p, Affine::<BnG2>::from_evm(&part(bytes, 64))?));
    }
    let product =
        Bn254::checked_product(Backend::detect(), &pairs).ok_or(DecodeError::NotInGroup)?;
    Ok(product == Fp12::ONE)
}

pub const POINT_EVALUATION_GAS: u64 = 50_000;

/// The first byte of hashes of commitments, in place of their own.
const COMMITMENT_VERSION: u8 = 1;

/// Address 0x0a, the value of a blob's polynomial at a point: numbers of a blob and the order of the groups, if the polynomial of a commitment has the value y at z. Input: the hash of
/// the commitment, z and y, 32 bytes each, the commitment and the proof.
///
/// # Errors
/// The input is not 192 bytes long, its hash is not that of the commitment, a value is not canonical, or the proof is wrong.
pub fn point_evaluation(settings: &Settings, input: &[u8]) -> Result<[u8; 64], PrecompileError> {
    let input: &[u8; 192] = exactly(input)?;
    let commitment: [u8; 48] = part(input, 96);
    let mut hash = assay_hash::sha256(&commitment);
    hash[0] = COMMITMENT_VERSION;
    if hash != part(input, 0) {
        return Err(PrecompileError::CommitmentHash);
    }
    let (z, y) = (part(input, 32), part(input, 64));
    let is_proven = settings.verify_proof(&commitment, &z, &y, &part(input, 144));
    if !is_proven.map_err(PrecompileError::Kzg)? {
        return Err(PrecompileError::Proof);
    }
    let mut output = [0; 64];
    output[24..32].copy_from_slice(&(BLOB_ELEMENTS as u64).to_be_bytes());
    limbs::to_be_bytes(&crate::bls12_381::Fr::MODULUS, &mut output[32..]);
    Ok(output)
}
