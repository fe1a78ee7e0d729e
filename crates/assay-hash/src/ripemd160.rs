//! RIPEMD-160 and the family's `hash160`.

use crate::backend::lanes::ripemd160_absorb;
use crate::backend::ripemd160::INITIAL;
use crate::sha256::sha256;

/// RIPEMD-160 of `data`.
pub fn ripemd160(data: &[u8]) -> [u8; 20] {
    let mut state = INITIAL;
    let (blocks, rest) = data.as_chunks::<64>();
    for block in blocks {
        compress(&mut state, block);
    }
    let mut tail = [[0u8; 64]; 2];
    tail[0][..rest.len()].copy_from_slice(rest);
    tail[0][rest.len()] = 0x80;
    let count = if rest.len() < 56 { 1 } else { 2 };
    tail[count - 1][56..].copy_from_slice(&(data.len() as u64).wrapping_mul(8).to_le_bytes());
    for block in &tail[..count] {
        compress(&mut state, block);
    }
    let mut out = [0u8; 20];
    for (bytes, word) in out.as_chunks_mut::<4>().0.iter_mut().zip(state) {
        *bytes = word.to_le_bytes();
    }
    out
}

/// RIPEMD-160 of the SHA-256 of `data`: the hash inside P2PKH, P2SH and P2WPKH scripts.
pub fn hash160(data: &[u8]) -> [u8; 20] {
    ripemd160(&sha256(data))
}

/// Absorbs one block.
fn compress(state: &mut [u32; 5], block: &[u8; 64]) {
    let (words, _) = block.as_chunks::<4>();
    ripemd160_absorb(state, &core::array::from_fn(|i| u32::from_le_bytes(words[i])));
}
