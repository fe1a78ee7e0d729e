//! Address 0x0a: the value of a blob's polynomial at a point (EIP-4844).

use super::{PrecompileError, exactly, part};
use crate::bls12_381::Fr;
use crate::kzg::{BLOB_ELEMENTS, Settings};
use crate::limbs;

/// Gas of [`point_evaluation`].
pub const POINT_EVALUATION_GAS: u64 = 50_000;

/// Version byte, which replaces the first byte of a commitment's hash.
const VERSION: u8 = 1;

/// Number of elements of a blob and the order of the groups, if the polynomial of a commitment has the value y at z.
/// Input: the hash of the commitment, z and y, 32 bytes each, the commitment and the proof.
///
/// # Errors
/// If the input does not have 192 bytes, the hash does not match, an encoding is not canonical or the proof is wrong.
pub fn point_evaluation(settings: &Settings, input: &[u8]) -> Result<[u8; 64], PrecompileError> {
    let input: &[u8; 192] = exactly(input)?;
    let commitment: [u8; 48] = part(input, 96);
    let mut hash = assay_hash::sha256(&commitment);
    hash[0] = VERSION;
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
    limbs::to_be_bytes(&Fr::MODULUS, &mut output[32..]);
    Ok(output)
}
