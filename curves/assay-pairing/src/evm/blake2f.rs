//! Address 9: `BLAKE2b`'s function F (RFC 7693) with any number of rounds (EIP-152).

use super::PrecompileError;
#[cfg(target_arch = "x86_64")]
use crate::backend::blake2;

const INPUT_BYTES: usize = 213;

/// The fractional parts of the square roots of the first eight primes, as in SHA-512.
const IV: [u64; 8] = [
    0x6a09_e667_f3bc_c908,
    0xbb67_ae85_84ca_a73b,
    0x3c6e_f372_fe94_f82b,
    0xa54f_f53a_5f1d_36f1,
    0x510e_527f_ade6_82d1,
    0x9b05_688c_2b3e_6c1f,
    0x1f83_d9ab_fb41_bd6b,
    0x5be0_cd19_137e_2179,
];

/// The order of message words in each of ten rounds, which then repeat.
const SIGMA: [[usize; 16]; 10] = [
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
    [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
    [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
    [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
    [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
    [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
    [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
    [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
    [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
    [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
];

/// Gas of [`blake2f`]: one per round. `None` for an input of the wrong length.
pub fn blake2f_gas(input: &[u8]) -> Option<u64> {
    let input: &[u8; INPUT_BYTES] = input.try_into().ok()?;
    Some(u64::from(rounds(input)))
}

fn rounds(input: &[u8; INPUT_BYTES]) -> u32 {
    u32::from_be_bytes(super::part(input, 0))
}

/// Compresses a block. Input: number of rounds in four bytes, big-endian; eight words of state,
/// sixteen of the message, two of the offset, little-endian; and the flag of the last block.
///
/// # Errors
/// If the input does not have 213 bytes, or the last one is neither 0 nor 1.
pub fn blake2f(input: &[u8]) -> Result<[u8; 64], PrecompileError> {
    let input: &[u8; INPUT_BYTES] = super::exactly(input)?;
    let is_last = match input[212] {
        0 => false,
        1 => true,
        flag => return Err(PrecompileError::Flag(flag)),
    };
    let offset = |place: usize| u64::from_le_bytes(super::part(input, place));
    let last = if is_last { u64::MAX } else { 0 };
    let changes = [offset(196), offset(204), last];
    let (state, message) = (super::part(input, 4), super::part(input, 68));
    Ok(compressed(rounds(input), &state, &message, changes))
}

/// State after `rounds` rounds; `changes` are combined by XOR with initial words 12 to 14.
fn compressed(rounds: u32, state: &[u8; 64], message: &[u8; 128], changes: [u64; 3]) -> [u8; 64] {
    #[cfg(target_arch = "x86_64")]
    if let Some(state) = blake2::compressed::<Blake2b>(rounds, state, message, changes) {
        return state;
    }
    compressed_in_words(rounds, state, message, changes)
}

#[cfg(target_arch = "x86_64")]
struct Blake2b;

#[cfg(target_arch = "x86_64")]
impl blake2::Constants for Blake2b {
    const IV: [u64; 8] = IV;
    const ORDERS: [[usize; 16]; 10] = SIGMA;
}

fn compressed_in_words(
    rounds: u32,
    state: &[u8; 64],
    message: &[u8; 128],
    changes: [u64; 3],
) -> [u8; 64] {
    let words = |bytes: &[u8], place: usize| u64::from_le_bytes(super::part(bytes, 8 * place));
    let message: [u64; 16] = core::array::from_fn(|k| words(message, k));
    let state: [u64; 8] = core::array::from_fn(|k| words(state, k));
    let mut v = [0; 16];
    v[..8].copy_from_slice(&state);
    v[8..].copy_from_slice(&IV);
    for (word, change) in v[12..].iter_mut().zip(changes) {
        *word ^= change;
    }
    let message = &message;
    let (tens, rest) = (rounds / 10, rounds % 10);
    for _ in 0..tens {
        // Indices are constants here, so that words are not looked up.
        round::<0>(&mut v, message);
        round::<1>(&mut v, message);
        round::<2>(&mut v, message);
        round::<3>(&mut v, message);
        round::<4>(&mut v, message);
        round::<5>(&mut v, message);
        round::<6>(&mut v, message);
        round::<7>(&mut v, message);
        round::<8>(&mut v, message);
        round::<9>(&mut v, message);
    }
    let all = [
        round::<0>, round::<1>, round::<2>, round::<3>, round::<4>, round::<5>, round::<6>,
        round::<7>, round::<8>,
    ];
    for round in &all[..rest as usize] {
        round(&mut v, message);
    }
    let mut output = [0; 64];
    for (k, bytes) in output.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        *bytes = (state[k] ^ v[k] ^ v[k + 8]).to_le_bytes();
    }
    output
}

#[inline(always)]
fn round<const R: usize>(v: &mut [u64; 16], message: &[u64; 16]) {
    let order = const { &SIGMA[R] };
    let m = |k: usize| message[order[k]];
    mix(v, [0, 4, 8, 12], m(0), m(1));
    mix(v, [1, 5, 9, 13], m(2), m(3));
    mix(v, [2, 6, 10, 14], m(4), m(5));
    mix(v, [3, 7, 11, 15], m(6), m(7));
    mix(v, [0, 5, 10, 15], m(8), m(9));
    mix(v, [1, 6, 11, 12], m(10), m(11));
    mix(v, [2, 7, 8, 13], m(12), m(13));
    mix(v, [3, 4, 9, 14], m(14), m(15));
}

/// The function G.
#[inline(always)]
fn mix(v: &mut [u64; 16], [a, b, c, d]: [usize; 4], x: u64, y: u64) {
    v[a] = v[a].wrapping_add(v[b]).wrapping_add(x);
    v[d] = (v[d] ^ v[a]).rotate_right(32);
    v[c] = v[c].wrapping_add(v[d]);
    v[b] = (v[b] ^ v[c]).rotate_right(24);
    v[a] = v[a].wrapping_add(v[b]).wrapping_add(y);
    v[d] = (v[d] ^ v[a]).rotate_right(16);
    v[c] = v[c].wrapping_add(v[d]);
    v[b] = (v[b] ^ v[c]).rotate_right(63);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vectors, if this CPU supports them, against words.
    #[test]
    fn rounds_in_vectors() {
        let bytes = |seed: u8| assay_hash::sha256(&[seed]);
        for count in (0..=31).chain([100, 1_001]) {
            let seed = count as u8;
            let state: [u8; 64] = super::super::part(&[bytes(seed), bytes(1)].concat(), 0);
            let message = [bytes(2), bytes(seed), bytes(3), bytes(4)].concat();
            let message: [u8; 128] = super::super::part(&message, 0);
            let changes = [7 + u64::from(count), 1 << count.min(63), u64::MAX];
            let right = compressed_in_words(count, &state, &message, changes);
            assert_eq!(compressed(count, &state, &message, changes), right, "{count} rounds");
        }
    }
}
