//! Addresses 2, 3 and 4: hashes, and identity.

use super::padded;

/// Base gas plus a price per word.
const fn by_words(base: u64, per_word: u64, input_bytes: usize) -> u64 {
    base + per_word * input_bytes.div_ceil(32) as u64
}

pub const fn sha256_gas(input_bytes: usize) -> u64 {
    by_words(60, 12, input_bytes)
}

pub const fn ripemd160_gas(input_bytes: usize) -> u64 {
    by_words(600, 120, input_bytes)
}

pub const fn identity_gas(input_bytes: usize) -> u64 {
    by_words(15, 3, input_bytes)
}

/// Address 2: SHA-256.
pub fn sha256(input: &[u8]) -> [u8; 32] {
    assay_hash::sha256(input)
}

/// Address 3: RIPEMD-160, after twelve zero bytes.
pub fn ripemd160(input: &[u8]) -> [u8; 32] {
    let mut word: [u8; 32] = padded(&[]);
    word[12..].copy_from_slice(&assay_hash::ripemd160(input));
    word
}

/// Address 4: returns the input.
pub fn identity(input: &[u8]) -> Vec<u8> {
    input.to_vec()
}
