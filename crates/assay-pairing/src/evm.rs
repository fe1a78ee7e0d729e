//! Precompiles of the Ethereum virtual machine on BN254 (EIP-196, EIP-197), with the gas of EIP-1108.

#[cfg(test)]
mod tests;

use core::fmt;

use crate::curve::{Affine, BnG1, BnG2, Curve, Jacobian};
use crate::encoding::DecodeError;
use crate::limbs;
use crate::pairing::{Bn254, Pairing};
use crate::tower::Fp12;

/// Gas of [`ec_add`].
pub const EC_ADD_GAS: u64 = 150;
/// Gas of [`ec_mul`].
pub const EC_MUL_GAS: u64 = 6_000;

/// Gas of [`ec_pairing`] for an input of so many bytes.
pub fn ec_pairing_gas(input_bytes: usize) -> u64 {
    45_000 + 34_000 * (input_bytes / PAIR_BYTES) as u64
}

/// A point of each group.
const PAIR_BYTES: usize = 192;

/// Why a precompile fails; it then takes all gas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrecompileError {
    /// A point of the input is none.
    Point(DecodeError),
    /// The input of [`ec_pairing`] is not made of pairs of 192 bytes.
    Length(usize),
}

impl fmt::Display for PrecompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Point(error) => write!(f, "input is no point: {error}"),
            Self::Length(bytes) => write!(f, "input of {bytes} bytes, not a multiple of 192"),
        }
    }
}

impl std::error::Error for PrecompileError {}

impl From<DecodeError> for PrecompileError {
    fn from(error: DecodeError) -> Self {
        Self::Point(error)
    }
}

/// The first bytes of an input, with zeros behind it where it is shorter.
fn padded<const N: usize>(input: &[u8]) -> [u8; N] {
    let mut bytes = [0; N];
    let length = input.len().min(N);
    bytes[..length].copy_from_slice(&input[..length]);
    bytes
}

fn part<const N: usize>(bytes: &[u8], first: usize) -> [u8; N] {
    bytes[first..first + N].try_into().expect("as many bytes")
}

/// Address 6: the sum of two points. Input is cut or padded to 128 bytes.
///
/// # Errors
/// Where a point is not on the curve.
pub fn ec_add(input: &[u8]) -> Result<[u8; 64], PrecompileError> {
    let bytes: [u8; 128] = padded(input);
    let a = Affine::<BnG1>::from_evm(&part(&bytes, 0))?;
    let b = Affine::<BnG1>::from_evm(&part(&bytes, 64))?;
    Ok(Jacobian::from(a).add_affine(&b).to_affine().to_evm())
}

/// Address 7: a point times a number. Input is cut or padded to 96 bytes.
///
/// # Errors
/// Where the point is not on the curve.
pub fn ec_mul(input: &[u8]) -> Result<[u8; 64], PrecompileError> {
    let bytes: [u8; 96] = padded(input);
    let point = Affine::<BnG1>::from_evm(&part(&bytes, 0))?;
    let scalar = limbs::from_be_bytes(&bytes[64..]);
    Ok(point.multiply(&scalar).to_affine().to_evm())
}

/// Address 8: whether the product of the pairings of all pairs is one.
///
/// # Errors
/// Where the length is not a multiple of 192, or a point is not of its group.
pub fn ec_pairing(input: &[u8]) -> Result<bool, PrecompileError> {
    if !input.len().is_multiple_of(PAIR_BYTES) {
        return Err(PrecompileError::Length(input.len()));
    }
    let mut pairs = Vec::with_capacity(input.len() / PAIR_BYTES);
    for bytes in input.chunks_exact(PAIR_BYTES) {
        let p = Affine::<BnG1>::from_evm(&part(bytes, 0))?;
        let q = Affine::<BnG2>::from_evm(&part(bytes, 64))?;
        if !BnG2::is_in_group(&q) {
            return Err(DecodeError::NotInGroup.into());
        }
        pairs.push((p, q));
    }
    Ok(Bn254::product(&pairs) == Fp12::ONE)
}
