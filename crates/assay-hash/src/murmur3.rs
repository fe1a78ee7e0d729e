//! `MurmurHash3` (x86, 32 bits) by Austin Appleby, used by the Bloom filters of BIP37. Not for secrets or hash tables: collisions
//! are easy to construct.

/// The hash of `data` under `seed`.
///
/// ```
/// assert_eq!(assay_hash::murmur3(0, &[0x00, 0x11, 0x22, 0x33]), 0xb447_1bf8);
/// ```
pub fn murmur3(seed: u32, data: &[u8]) -> u32 {
    let (words, rest) = data.as_chunks::<4>();
    let mut hash = seed;
    for word in words {
        hash ^= mix(u32::from_le_bytes(*word));
        hash = hash.rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64);
    }
    let last = rest.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte));
    // For an empty rest this is 0, which has no effect.
    hash ^= mix(last);
    hash ^= data.len() as u32;
    hash ^= hash >> 16;
    hash = hash.wrapping_mul(0x85eb_ca6b);
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(0xc2b2_ae35);
    hash ^ hash >> 16
}

fn mix(word: u32) -> u32 {
    word.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_of_core() {
        // `test/hash_tests.cpp`, `murmurhash3`.
        let counted = [0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88];
        for (expected, seed, data) in [
            (0, 0, &[][..]),
            (0x6a39_6f08, 0xfba4_c795, &[]),
            (0x81f1_6f39, 0xffff_ffff, &[]),
            (0x514e_28b7, 0, &counted[..1]),
            (0xea3f_0b17, 0xfba4_c795, &counted[..1]),
            (0xfd6c_f10d, 0, &[0xff]),
            (0x16c6_b7ab, 0, &counted[..2]),
            (0x8eb5_1c3d, 0, &counted[..3]),
            (0xb447_1bf8, 0, &counted[..4]),
            (0xe230_1fa8, 0, &counted[..5]),
            (0xfc2e_4a15, 0, &counted[..6]),
            (0xb074_502c, 0, &counted[..7]),
            (0x8034_d2a0, 0, &counted[..8]),
            (0xb469_8def, 0, &counted[..9]),
        ] {
            assert_eq!(murmur3(seed, data), expected, "{seed:x} {data:x?}");
        }
    }
}
