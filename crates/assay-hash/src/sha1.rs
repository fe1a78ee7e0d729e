//! SHA-1 (FIPS 180-4), kept only for `OP_SHA1`.

use crate::backend::Backend;

/// SHA-1 of `data`.
///
/// Broken as a collision-resistant hash; scripts may still ask for it.
pub fn sha1(data: &[u8]) -> [u8; 20] {
    sha1_with(Backend::detect(), data)
}

fn sha1_with(backend: Backend, data: &[u8]) -> [u8; 20] {
    let mut state = [0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0];
    let (blocks, rest) = data.as_chunks::<64>();
    backend.compress_sha1(&mut state, blocks);
    let mut tail = [[0u8; 64]; 2];
    tail[0][..rest.len()].copy_from_slice(rest);
    tail[0][rest.len()] = 0x80;
    let count = if rest.len() < 56 { 1 } else { 2 };
    tail[count - 1][56..].copy_from_slice(&(data.len() as u64).wrapping_mul(8).to_be_bytes());
    backend.compress_sha1(&mut state, &tail[..count]);
    let mut out = [0u8; 20];
    for (bytes, word) in out.as_chunks_mut::<4>().0.iter_mut().zip(state) {
        *bytes = word.to_be_bytes();
    }
    out
}

/// Absorbs whole blocks, the readable way.
pub(crate) fn compress_portable(state: &mut [u32; 5], blocks: &[[u8; 64]]) {
    for block in blocks {
        compress(state, block);
    }
}

/// Absorbs one block, FIPS 180-4 section 6.1.2.
fn compress(state: &mut [u32; 5], block: &[u8; 64]) {
    let mut w = [0u32; 80];
    for (word, bytes) in w.iter_mut().zip(block.as_chunks::<4>().0) {
        *word = u32::from_be_bytes(*bytes);
    }
    for i in 16..80 {
        w[i] = (w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16]).rotate_left(1);
    }
    let mut vars = *state;
    let (quarters, _) = w.as_chunks::<20>();
    twenty_steps(&mut vars, &quarters[0], 0x5a827999, |x, y, z| z ^ (x & (y ^ z)));
    twenty_steps(&mut vars, &quarters[1], 0x6ed9eba1, |x, y, z| x ^ y ^ z);
    twenty_steps(&mut vars, &quarters[2], 0x8f1bbcdc, |x, y, z| (x & y) | (z & (x | y)));
    twenty_steps(&mut vars, &quarters[3], 0xca62c1d6, |x, y, z| x ^ y ^ z);
    for (word, add) in state.iter_mut().zip(vars) {
        *word = word.wrapping_add(add);
    }
}

/// A quarter of the steps, which share their constant and mixing function.
#[inline(always)]
fn twenty_steps(
    vars: &mut [u32; 5],
    words: &[u32; 20],
    constant: u32,
    mix: impl Fn(u32, u32, u32) -> u32,
) {
    let [mut a, mut b, mut c, mut d, mut e] = *vars;
    for word in words {
        let next = a
            .rotate_left(5)
            .wrapping_add(mix(b, c, d))
            .wrapping_add(e)
            .wrapping_add(constant)
            .wrapping_add(*word);
        (e, d, c, b, a) = (d, c, b.rotate_left(30), a, next);
    }
    *vars = [a, b, c, d, e];
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Published digests, and every length up to a few blocks against the portable kernel.
    #[test]
    fn backends_agree() {
        let abc = [
            0xa9, 0x99, 0x3e, 0x36, 0x47, 0x06, 0x81, 0x6a, 0xba, 0x3e, 0x25, 0x71, 0x78, 0x50,
            0xc2, 0x6c, 0x9c, 0xd0, 0xd8, 0x9d,
        ];
        let data: Vec<u8> = (0..2000u32).map(|i| ((i * i) >> 3) as u8).collect();
        for backend in Backend::available() {
            assert_eq!(sha1_with(backend, b"abc"), abc, "{}", backend.name());
            for length in (0..300).chain([511, 512, 520, 1999, 2000]) {
                let expected = sha1_with(Backend::PORTABLE, &data[..length]);
                assert_eq!(sha1_with(backend, &data[..length]), expected, "{length}");
            }
        }
    }
}
