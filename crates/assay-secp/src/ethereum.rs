//! ECRECOVER, the precompile at address 1 of the Ethereum virtual machine (Yellow Paper, appendix E): which address signed.
//!
//! ```
//! use assay_secp::ethereum::ecrecover;
//!
//! // No signature, so no address; the call itself never fails.
//! assert_eq!(ecrecover(&[0; 128]), None);
//! ```

use crate::{Recoverer, Signed};

/// Gas of [`ecrecover`].
pub const ECRECOVER_GAS: u64 = 3_000;

/// Bytes of an input that matter: hash, v, r and s.
const INPUT_BYTES: usize = 128;

/// Coordinates of a key to the address of its account: the last 20 bytes of their Keccak-256.
pub fn address(key: &[u8; 64]) -> [u8; 20] {
    let mut address = [0; 20];
    address.copy_from_slice(&assay_hash::keccak_256(key)[12..]);
    address
}

/// Address 1: the address whose key signed the hash, with twelve zeros before it. Input is cut or padded to 128 bytes: hash, v,
/// r and s. None, for an output of no bytes, where v is not 27 or 28, r or s is zero or not below the group order, or there is
/// no such key. A high s is allowed, and x of R is r itself.
pub fn ecrecover(input: &[u8]) -> Option<[u8; 32]> {
    let input = padded(input);
    Some(word(&signed(&input)?.recover()?))
}

/// As [`ecrecover`] of each input, in lanes.
pub fn ecrecover_all(recoverer: &mut Recoverer, inputs: &[&[u8]]) -> Vec<Option<[u8; 32]>> {
    let inputs: Vec<[u8; INPUT_BYTES]> = inputs.iter().map(|input| padded(input)).collect();
    let mut places = Vec::with_capacity(inputs.len());
    let mut all = Vec::with_capacity(inputs.len());
    for (place, input) in inputs.iter().enumerate() {
        if let Some(signed) = signed(input) {
            places.push(place);
            all.push(signed);
        }
    }
    let mut keys = Vec::new();
    recoverer.recover(&all, &mut keys);
    let mut words = vec![None; inputs.len()];
    for (place, key) in places.into_iter().zip(keys) {
        words[place] = key.as_ref().map(word);
    }
    words
}

fn padded(input: &[u8]) -> [u8; INPUT_BYTES] {
    let mut bytes = [0; INPUT_BYTES];
    let length = input.len().min(INPUT_BYTES);
    bytes[..length].copy_from_slice(&input[..length]);
    bytes
}

/// None where v is neither 27 nor 28, in all of its 32 bytes.
fn signed(input: &[u8; INPUT_BYTES]) -> Option<Signed<'_>> {
    let [msg, v, r, s] = input.as_chunks::<32>().0 else { return None };
    let (last, zeros) = v.split_last()?;
    let is_known = matches!(last, 27 | 28) && zeros.iter().all(|byte| *byte == 0);
    is_known.then_some(Signed { msg, r, s, is_y_odd: *last == 28 })
}

fn word(key: &[u8; 64]) -> [u8; 32] {
    let mut word = [0; 32];
    word[12..].copy_from_slice(&address(key));
    word
}

#[cfg(test)]
mod tests;
