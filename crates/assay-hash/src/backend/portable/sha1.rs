//! SHA-1 compression in portable Rust: the oracle of the other backends.

/// Absorbs whole blocks into `state`.
pub(crate) fn compress(state: &mut [u32; 5], blocks: &[[u8; 64]]) {
    for block in blocks {
        one(state, block);
    }
}

/// Absorbs one block, FIPS 180-4 section 6.1.2.
fn one(state: &mut [u32; 5], block: &[u8; 64]) {
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
