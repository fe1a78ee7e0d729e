//! ECRECOVER, the precompile at address 1 of the Ethereum virtual machine (Yellow Paper, appendix E): recovers the signer's
//! address.
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

/// Relevant input bytes: hash, v, r and s.
const INPUT_BYTES: usize = 128;

/// Coordinates of a key to the address of its account: the last 20 bytes of their Keccak-256.
pub fn address(key: &[u8; 64]) -> [u8; 20] {
    let mut address = [0; 20];
    address.copy_from_slice(&assay_hash::keccak_256(key)[12..]);
    address
}

/// Precompile at address 1: the address of the hash's signer, preceded by twelve zero bytes. The input is truncated or
/// zero-padded to 128 bytes: hash, v, r and s. `None`, for empty output, if v is not 27 or 28, r or s is zero or not below the
/// group order, or there is no such key. A high s is allowed, and x of R is r itself.
pub fn ecrecover(input: &[u8]) -> Option<[u8; 32]> {
    let input = padded(input);
    Some(word(&signed(&input)?.recover()?))
}

/// [`ecrecover`] of each input, in lanes.
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

/// `None` if v, in all of its 32 bytes, is neither 27 nor 28.
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
