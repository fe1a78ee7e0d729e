//! SHA-512 (FIPS 180-4), one message at a time, in portable Rust.
//!
//! The larger parameter sets of FIPS 205 use it for tree nodes.

use crate::sha256::absorb;

/// An incremental SHA-512 computation.
///
/// Messages are shorter than 2^61 bytes, so the upper half of the length field is zero.
#[derive(Clone)]
pub struct Sha512 {
    state: [u64; 8],
    buffer: [u8; 128],
    /// Total message bytes so far; the last `bytes % 128` of them are in `buffer`.
    bytes: u64,
}

impl Default for Sha512 {
    fn default() -> Self {
        Self::new()
    }
}

impl core::fmt::Debug for Sha512 {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Sha512").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl Sha512 {
    /// Starts an empty message.
    pub fn new() -> Self {
        Self { state: INITIAL, buffer: [0; 128], bytes: 0 }
    }

    /// Absorbs `data`.
    pub fn update(&mut self, data: &[u8]) {
        let used = (self.bytes % 128) as usize;
        self.bytes = self.bytes.wrapping_add(data.len() as u64);
        let Self { state, buffer, .. } = self;
        absorb(buffer, used, data, |blocks| blocks.iter().for_each(|block| compress(state, block)));
    }

    /// Pads as FIPS 180-4, section 5.1.2, and returns the digest.
    pub fn finalize(mut self) -> [u8; 64] {
        let used = (self.bytes % 128) as usize;
        self.buffer[used..].fill(0);
        self.buffer[used] = 0x80;
        if used >= 112 {
            compress(&mut self.state, &self.buffer);
            self.buffer.fill(0);
        }
        self.buffer[120..].copy_from_slice(&self.bytes.wrapping_mul(8).to_be_bytes());
        compress(&mut self.state, &self.buffer);
        let mut digest = [0; 64];
        for (bytes, word) in digest.as_chunks_mut::<8>().0.iter_mut().zip(self.state) {
            *bytes = word.to_be_bytes();
        }
        digest
    }
}

/// SHA-512 of `data`.
pub fn sha512(data: &[u8]) -> [u8; 64] {
    let mut hasher = Sha512::new();
    hasher.update(data);
    hasher.finalize()
}

/// The compression function, FIPS 180-4 section 6.4.2.
fn compress(state: &mut [u64; 8], block: &[u8; 128]) {
    let mut w = [0; 16];
    for (word, bytes) in w.iter_mut().zip(block.as_chunks::<8>().0) {
        *word = u64::from_be_bytes(*bytes);
    }
    let mut vars = *state;
    for (group, k) in K.as_chunks::<16>().0.iter().enumerate() {
        for i in 0..16 {
            if group > 0 {
                w[i] = next_word(&w, i);
            }
            round(&mut vars, w[i].wrapping_add(k[i]));
        }
    }
    for (word, add) in state.iter_mut().zip(vars) {
        *word = word.wrapping_add(add);
    }
}

#[inline(always)]
fn round(vars: &mut [u64; 8], kw: u64) {
    let [a, b, c, d, e, f, g, h] = *vars;
    let sigma1 = e.rotate_right(14) ^ e.rotate_right(18) ^ e.rotate_right(41);
    let choose = (e & f) ^ (!e & g);
    let t1 = h.wrapping_add(kw).wrapping_add(choose).wrapping_add(sigma1);
    let sigma0 = a.rotate_right(28) ^ a.rotate_right(34) ^ a.rotate_right(39);
    let majority = (a & b) | (c & (a | b));
    let t2 = sigma0.wrapping_add(majority);
    *vars = [t1.wrapping_add(t2), a, b, c, d.wrapping_add(t1), e, f, g];
}

/// The schedule word that replaces word `i` of the previous sixteen.
#[inline(always)]
fn next_word(w: &[u64; 16], i: usize) -> u64 {
    let (x, y) = (w[(i + 1) % 16], w[(i + 14) % 16]);
    let sigma0 = x.rotate_right(1) ^ x.rotate_right(8) ^ (x >> 7);
    let sigma1 = y.rotate_right(19) ^ y.rotate_right(61) ^ (y >> 6);
    w[i].wrapping_add(sigma0).wrapping_add(w[(i + 9) % 16]).wrapping_add(sigma1)
}

/// The state before any block, FIPS 180-4 section 5.3.5.
const INITIAL: [u64; 8] = [
    0x6a09e667f3bcc908,
    0xbb67ae8584caa73b,
    0x3c6ef372fe94f82b,
    0xa54ff53a5f1d36f1,
    0x510e527fade682d1,
    0x9b05688c2b3e6c1f,
    0x1f83d9abfb41bd6b,
    0x5be0cd19137e2179,
];

/// Round constants, FIPS 180-4 section 4.2.3.
const K: [u64; 80] = [
    0x428a2f98d728ae22,
    0x7137449123ef65cd,
    0xb5c0fbcfec4d3b2f,
    0xe9b5dba58189dbbc,
    0x3956c25bf348b538,
    0x59f111f1b605d019,
    0x923f82a4af194f9b,
    0xab1c5ed5da6d8118,
    0xd807aa98a3030242,
    0x12835b0145706fbe,
    0x243185be4ee4b28c,
    0x550c7dc3d5ffb4e2,
    0x72be5d74f27b896f,
    0x80deb1fe3b1696b1,
    0x9bdc06a725c71235,
    0xc19bf174cf692694,
    0xe49b69c19ef14ad2,
    0xefbe4786384f25e3,
    0x0fc19dc68b8cd5b5,
    0x240ca1cc77ac9c65,
    0x2de92c6f592b0275,
    0x4a7484aa6ea6e483,
    0x5cb0a9dcbd41fbd4,
    0x76f988da831153b5,
    0x983e5152ee66dfab,
    0xa831c66d2db43210,
    0xb00327c898fb213f,
    0xbf597fc7beef0ee4,
    0xc6e00bf33da88fc2,
    0xd5a79147930aa725,
    0x06ca6351e003826f,
    0x142929670a0e6e70,
    0x27b70a8546d22ffc,
    0x2e1b21385c26c926,
    0x4d2c6dfc5ac42aed,
    0x53380d139d95b3df,
    0x650a73548baf63de,
    0x766a0abb3c77b2a8,
    0x81c2c92e47edaee6,
    0x92722c851482353b,
    0xa2bfe8a14cf10364,
    0xa81a664bbc423001,
    0xc24b8b70d0f89791,
    0xc76c51a30654be30,
    0xd192e819d6ef5218,
    0xd69906245565a910,
    0xf40e35855771202a,
    0x106aa07032bbd1b8,
    0x19a4c116b8d2d0c8,
    0x1e376c085141ab53,
    0x2748774cdf8eeb99,
    0x34b0bcb5e19b48a8,
    0x391c0cb3c5c95a63,
    0x4ed8aa4ae3418acb,
    0x5b9cca4f7763e373,
    0x682e6ff3d6b2b8a3,
    0x748f82ee5defb2fc,
    0x78a5636f43172f60,
    0x84c87814a1f0ab72,
    0x8cc702081a6439ec,
    0x90befffa23631e28,
    0xa4506cebde82bde9,
    0xbef9a3f7b2c67915,
    0xc67178f2e372532b,
    0xca273eceea26619c,
    0xd186b8c721c0c207,
    0xeada7dd6cde0eb1e,
    0xf57d4f7fee6ed178,
    0x06f067aa72176fba,
    0x0a637dc5a2c898a6,
    0x113f9804bef90dae,
    0x1b710b35131c471b,
    0x28db77f523047d84,
    0x32caab7b40c72493,
    0x3c9ebe0a15c9bebc,
    0x431d67c49c100d4c,
    0x4cc5d4becb3e42b6,
    0x597f299cfc657e2a,
    0x5fcb6fab3ad6faec,
    0x6c44198c4a475817,
];
