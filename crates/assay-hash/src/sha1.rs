//! SHA-1 (FIPS 180-4), kept only for `OP_SHA1`.

use crate::backend::Backend;

/// SHA-1 of `data`.
///
/// Broken as a collision-resistant hash, but still available to scripts.
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
