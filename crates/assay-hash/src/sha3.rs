//! SHA3-256 (FIPS 202), used in the checksums of Tor addresses, and Keccak-256, used by Ethereum. No consensus rule needs them.

/// SHA3-256 of `data`.
pub fn sha3_256(data: &[u8]) -> [u8; 32] {
    // The suffix 01 of SHA-3 and the first bit of the padding 10*1, lowest bit first (FIPS 202, section 6.1 and B.2).
    sponge(data, 0x06)
}

/// Keccak-256 of `data`: SHA3-256 without the suffix that the standard added.
pub fn keccak_256(data: &[u8]) -> [u8; 32] {
    sponge(data, 0x01)
}

fn sponge(data: &[u8], suffix: u8) -> [u8; 32] {
    let mut state = [0u64; 25];
    let (blocks, rest) = data.as_chunks::<RATE>();
    for block in blocks {
        absorb(&mut state, block);
    }
    let mut last = [0u8; RATE];
    last[..rest.len()].copy_from_slice(rest);
    last[rest.len()] = suffix;
    last[RATE - 1] |= 0x80;
    absorb(&mut state, &last);
    let mut out = [0u8; 32];
    for (bytes, word) in out.as_chunks_mut::<8>().0.iter_mut().zip(state) {
        *bytes = word.to_le_bytes();
    }
    out
}

fn absorb(state: &mut [u64; 25], block: &[u8; RATE]) {
    for (lane, word) in state.iter_mut().zip(block.as_chunks::<8>().0) {
        *lane ^= u64::from_le_bytes(*word);
    }
    for constant in ROUND_CONSTANTS {
        round(state, constant);
    }
}

/// One round of Keccak-f\[1600\] (FIPS 202, section 3.2): theta, rho with pi, chi, iota. Lane (x, y) is at 5 y + x.
fn round(state: &mut [u64; 25], constant: u64) {
    let column = |x: usize| (0..5).fold(0, |sum, y| sum ^ state[5 * y + x]);
    let columns = [column(0), column(1), column(2), column(3), column(4)];
    for x in 0..5 {
        let change = columns[(x + 4) % 5] ^ columns[(x + 1) % 5].rotate_left(1);
        for y in 0..5 {
            state[5 * y + x] ^= change;
        }
    }
    let mut moved = [0u64; 25];
    moved[0] = state[0];
    let (mut x, mut y) = (1, 0);
    for step in 0u32..24 {
        // The offsets of rho are the triangular numbers along the path of pi.
        let offset = (step + 1) * (step + 2) / 2 % 64;
        let lane = state[5 * y + x].rotate_left(offset);
        (x, y) = (y, (2 * x + 3 * y) % 5);
        moved[5 * y + x] = lane;
    }
    for y in 0..5 {
        for x in 0..5 {
            let row = |x: usize| moved[5 * y + x % 5];
            state[5 * y + x] = row(x) ^ (!row(x + 1) & row(x + 2));
        }
    }
    state[0] ^= constant;
}

/// Bytes absorbed per permutation: 1600 bits less twice the length of the hash.
const RATE: usize = 136;
/// FIPS 202, section 3.2.5.
const ROUND_CONSTANTS: [u64; 24] = [
    0x0000_0000_0000_0001,
    0x0000_0000_0000_8082,
    0x8000_0000_0000_808a,
    0x8000_0000_8000_8000,
    0x0000_0000_0000_808b,
    0x0000_0000_8000_0001,
    0x8000_0000_8000_8081,
    0x8000_0000_0000_8009,
    0x0000_0000_0000_008a,
    0x0000_0000_0000_0088,
    0x0000_0000_8000_8009,
    0x0000_0000_8000_000a,
    0x0000_0000_8000_808b,
    0x8000_0000_0000_008b,
    0x8000_0000_0000_8089,
    0x8000_0000_0000_8003,
    0x8000_0000_0000_8002,
    0x8000_0000_0000_0080,
    0x0000_0000_0000_800a,
    0x8000_0000_8000_000a,
    0x8000_0000_8000_8081,
    0x8000_0000_0000_8080,
    0x0000_0000_8000_0001,
    0x8000_0000_8000_8008,
];
