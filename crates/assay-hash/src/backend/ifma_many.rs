//! MuHash of many elements: sixteen are derived side by side, and eight products grow in the lanes.
//!
//! A product may be taken in any order, so each lane multiplies every eighth element and the eight
//! products meet at the end. With one number per lane no word ever moves between lanes, and
//! Karatsuba's method costs additions only. Numbers are 64 limbs of 48 bits: sums of four limbs
//! still fit the 52 bits that `vpmadd52` reads. Bounds: `docs/kernels/hashes.md`.

#![expect(unsafe_code, reason = "vector loads and stores, entry into a target-feature function")]

use core::arch::x86_64::{
    __m512i, _mm512_add_epi32, _mm512_add_epi64, _mm512_and_si512, _mm512_madd52hi_epu64,
    _mm512_madd52lo_epu64, _mm512_rol_epi32, _mm512_set1_epi32, _mm512_set1_epi64,
    _mm512_setzero_si512, _mm512_slli_epi64, _mm512_srai_epi64, _mm512_srli_epi64,
    _mm512_storeu_si512, _mm512_sub_epi64, _mm512_ternarylogic_epi64, _mm512_unpackhi_epi32,
    _mm512_unpacklo_epi32, _mm512_xor_si512,
};

use super::avx512::{self, LANES};
use super::portable::chacha20::initial_state;
use crate::num3072::{FOLD, LIMBS, LIMBS_48};

/// Products that grow side by side.
pub(crate) const PRODUCTS: usize = 8;

/// Bits per limb.
const BITS: u32 = 48;

/// The low bits of a limb.
const MASK: i64 = (1 << BITS) - 1;

/// Makes limbs that may be as low as -2^13 factors.
const BIAS: i64 = 1 << 14;

/// Limb by limb, a representation of zero modulo p, less what [`BIAS`] adds to the limb: the sum of
/// `2^48 - 1` over all limbs is `2^3072 - 1`, which is `FOLD - 1`.
const CORRECTION: i64 = MASK - FOLD as i64 * BIAS;

/// Eight numbers, limb by limb.
type Numbers = [__m512i; LIMBS_48];

/// The columns of eight products.
type Columns = [__m512i; 2 * LIMBS_48];

/// The products of the elements of whole groups of sixteen `messages`, as limbs of 48 bits and
/// somewhat more: limb `i` of the eight in entry `i`.
///
/// The caller has seen `available` of `avx512` and `ifma` return true.
pub(super) fn products(groups: &[[&[u8]; LANES]]) -> [[u64; PRODUCTS]; LIMBS_48] {
    // SAFETY: `Backend` selects this module only on CPUs that have the features.
    unsafe { products_kernel(groups) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512ifma")]
fn products_kernel(groups: &[[&[u8]; LANES]]) -> [[u64; PRODUCTS]; LIMBS_48] {
    let mut product = [_mm512_setzero_si512(); LIMBS_48];
    product[0] = _mm512_set1_epi64(1);
    // Results go to where they are needed: numbers are 4 KiB long and copying them shows.
    let mut elements = [[_mm512_setzero_si512(); LIMBS_48]; 2];
    let mut columns = [_mm512_setzero_si512(); 2 * LIMBS_48];
    for group in groups {
        derive(group, &mut elements);
        for element in &elements {
            product_64(&product, element, &mut columns);
            reduce(&mut columns, &mut product);
        }
    }
    let mut out = [[0; PRODUCTS]; LIMBS_48];
    for (out, limb) in out.iter_mut().zip(product) {
        store(out, limb);
    }
    out
}

/// The elements of sixteen messages: the `ChaCha20` key streams under their SHA-256 digests.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512ifma")]
fn derive(messages: &[&[u8]; LANES], elements: &mut [Numbers; 2]) {
    let key = avx512::keys(messages);
    let mut words = [[_mm512_setzero_si512(); LIMBS]; 2];
    for counter in 0..LIMBS / 8 {
        let block = chacha_block(&key, counter as u32);
        for (i, pair) in block.as_chunks::<2>().0.iter().enumerate() {
            // Which eight of the sixteen come first is of no importance.
            words[0][8 * counter + i] = _mm512_unpacklo_epi32(pair[0], pair[1]);
            words[1][8 * counter + i] = _mm512_unpackhi_epi32(pair[0], pair[1]);
        }
    }
    for (words, element) in words.iter().zip(elements) {
        split(words, element);
    }
}

/// A block of sixteen key streams with nonce zero (RFC 8439), one stream per lane.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512ifma")]
fn chacha_block(key: &[__m512i; 8], counter: u32) -> [__m512i; 16] {
    let mut start = [_mm512_setzero_si512(); 16];
    for (word, constant) in start.iter_mut().zip(initial_state(&[0; 32])) {
        *word = splat(constant);
    }
    start[4..12].copy_from_slice(key);
    start[12] = splat(counter);
    let mut x = start;
    for _ in 0..10 {
        quarter::<0, 4, 8, 12>(&mut x);
        quarter::<1, 5, 9, 13>(&mut x);
        quarter::<2, 6, 10, 14>(&mut x);
        quarter::<3, 7, 11, 15>(&mut x);
        quarter::<0, 5, 10, 15>(&mut x);
        quarter::<1, 6, 11, 12>(&mut x);
        quarter::<2, 7, 8, 13>(&mut x);
        quarter::<3, 4, 9, 14>(&mut x);
    }
    for (word, start) in x.iter_mut().zip(start) {
        *word = _mm512_add_epi32(*word, start);
    }
    x
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512ifma")]
fn quarter<const A: usize, const B: usize, const C: usize, const D: usize>(x: &mut [__m512i; 16]) {
    x[A] = _mm512_add_epi32(x[A], x[B]);
    x[D] = _mm512_rol_epi32::<16>(_mm512_xor_si512(x[D], x[A]));
    x[C] = _mm512_add_epi32(x[C], x[D]);
    x[B] = _mm512_rol_epi32::<12>(_mm512_xor_si512(x[B], x[C]));
    x[A] = _mm512_add_epi32(x[A], x[B]);
    x[D] = _mm512_rol_epi32::<8>(_mm512_xor_si512(x[D], x[A]));
    x[C] = _mm512_add_epi32(x[C], x[D]);
    x[B] = _mm512_rol_epi32::<7>(_mm512_xor_si512(x[B], x[C]));
}

/// Regroups 64-bit words into limbs.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512ifma")]
fn split(words: &[__m512i; LIMBS], out: &mut Numbers) {
    let mask = _mm512_set1_epi64(MASK);
    for (limbs, [w0, w1, w2]) in out.as_chunks_mut::<4>().0.iter_mut().zip(words.as_chunks().0) {
        // Truth table 0xa8: (a or b) and c.
        let (low, high) = (_mm512_srli_epi64::<48>(*w0), _mm512_slli_epi64::<16>(*w1));
        let second = _mm512_ternarylogic_epi64::<0xa8>(low, high, mask);
        let (low, high) = (_mm512_srli_epi64::<32>(*w1), _mm512_slli_epi64::<32>(*w2));
        let third = _mm512_ternarylogic_epi64::<0xa8>(low, high, mask);
        *limbs = [_mm512_and_si512(*w0, mask), second, third, _mm512_srli_epi64::<16>(*w2)];
    }
}

/// Reduces products modulo p to limbs below 2^48 + 2^43.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512ifma")]
fn reduce(columns: &mut Columns, out: &mut Numbers) {
    let mask = _mm512_set1_epi64(MASK);
    let (zero, factor) = (_mm512_setzero_si512(), _mm512_set1_epi64(FOLD as i64));
    let (bias, correction) = (_mm512_set1_epi64(BIAS), _mm512_set1_epi64(CORRECTION));
    let (low, high) = columns.split_at_mut(LIMBS_48);

    // One pass of carries, no carry waiting for another; what is left of a limb is between -2^13
    // and 2^48 + 2^13. The top limb keeps everything.
    let carry = pass_carries(low, zero);
    let carry = pass_carries(high, carry);
    high[LIMBS_48 - 1] = _mm512_add_epi64(high[LIMBS_48 - 1], _mm512_slli_epi64::<BITS>(carry));

    // The upper half is worth what 2^3072 is modulo p. The lowest limb of the representation of
    // zero differs from the others.
    let mut from_below = _mm512_set1_epi64(1 - FOLD as i64);
    let mut carry = zero;
    for ((out, low), high) in out.iter_mut().zip(low).zip(high) {
        let high = _mm512_add_epi64(*high, bias);
        let mut sum = _mm512_add_epi64(_mm512_add_epi64(*low, correction), from_below);
        sum = _mm512_madd52lo_epu64(sum, factor, high);
        // The high half of the product is worth 2^52, four bits more than the next limb.
        from_below = _mm512_slli_epi64::<4>(_mm512_madd52hi_epu64(zero, factor, high));
        *out = _mm512_add_epi64(_mm512_and_si512(sum, mask), carry);
        carry = _mm512_srli_epi64::<BITS>(sum);
    }
    out[0] = _mm512_madd52lo_epu64(out[0], factor, _mm512_add_epi64(carry, from_below));
}

/// Leaves 48 bits of each column and adds what the column below had more; gives what the last one
/// had more.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512ifma")]
fn pass_carries(columns: &mut [__m512i], mut carry: __m512i) -> __m512i {
    let mask = _mm512_set1_epi64(MASK);
    for column in columns {
        let above = _mm512_srai_epi64::<BITS>(*column);
        *column = _mm512_add_epi64(_mm512_and_si512(*column, mask), carry);
        carry = above;
    }
    carry
}

/// A product of `$limbs` limbs from three of half the length (Karatsuba): the middle part is
/// `(a0 + a1) (b0 + b1) - a0 b0 - a1 b1`.
macro_rules! karatsuba {
    ($name:ident, $half:ident, $limbs:literal) => {
        #[inline]
        #[target_feature(enable = "avx512f,avx512bw,avx512ifma")]
        fn $name(a: &[__m512i; $limbs], b: &[__m512i; $limbs], out: &mut [__m512i; 2 * $limbs]) {
            const HALF: usize = $limbs / 2;
            let [a0, a1] = halves::<HALF>(a);
            let [b0, b1] = halves::<HALF>(b);
            let mut cross = [_mm512_setzero_si512(); $limbs];
            $half(&sum(a0, a1), &sum(b0, b1), &mut cross);
            let (low, high) = out.as_chunks_mut::<$limbs>().0.split_at_mut(1);
            $half(a0, b0, &mut low[0]);
            $half(a1, b1, &mut high[0]);
            let [(low0, low1), (high0, high1)] =
                [low[0].split_at_mut(HALF), high[0].split_at_mut(HALF)];
            for i in 0..HALF {
                let inner = _mm512_sub_epi64(low1[i], high0[i]);
                let outer = _mm512_sub_epi64(cross[i], low0[i]);
                low1[i] = _mm512_add_epi64(outer, inner);
                let outer = _mm512_sub_epi64(cross[HALF + i], high1[i]);
                high0[i] = _mm512_sub_epi64(outer, inner);
            }
        }
    };
}

karatsuba!(product_64, product_32, 64);
karatsuba!(product_32, product_16, 32);

/// The columns of a product, four at a time: low and high halves apart are eight sums that do not
/// wait for each other.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512ifma")]
fn product_16(a: &[__m512i; 16], b: &[__m512i; 16], out: &mut [__m512i; 32]) {
    let mut before = _mm512_setzero_si512();
    // Columns 0 to 15, then 16 to 30.
    for first in (0..16).step_by(4) {
        let mut sums = Sums::new();
        for i in 0..=first {
            sums.add_four(a[i], &b[first - i..]);
        }
        for i in 1..4 {
            for c in i..4 {
                sums.add(c, a[first + i], b[c - i]);
            }
        }
        before = sums.finish(&mut out[first..], before);
    }
    for first in (16..32).step_by(4) {
        let mut sums = Sums::new();
        for i in 0..3 {
            for c in 0..=i {
                sums.add(c, a[first - 15 + i], b[15 + c - i]);
            }
        }
        for i in first - 12..16 {
            sums.add_four(a[i], &b[first - i..]);
        }
        before = sums.finish(&mut out[first..], before);
    }
}

/// Low and high halves of products in four columns.
struct Sums {
    low: [__m512i; 4],
    high: [__m512i; 4],
}

impl Sums {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512ifma")]
    fn new() -> Self {
        Self { low: [_mm512_setzero_si512(); 4], high: [_mm512_setzero_si512(); 4] }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512ifma")]
    fn add(&mut self, column: usize, a: __m512i, b: __m512i) {
        self.low[column] = _mm512_madd52lo_epu64(self.low[column], a, b);
        self.high[column] = _mm512_madd52hi_epu64(self.high[column], a, b);
    }

    /// Adds a product to each column.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512ifma")]
    fn add_four(&mut self, a: __m512i, b: &[__m512i]) {
        let b: &[__m512i; 4] = b.first_chunk().expect("four limbs follow");
        self.add(0, a, b[0]);
        self.add(1, a, b[1]);
        self.add(2, a, b[2]);
        self.add(3, a, b[3]);
    }

    /// Writes four columns, given the high half of the one before; gives that of the last.
    ///
    /// A high half is worth 2^52, four bits more than the next column.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512ifma")]
    fn finish(&self, out: &mut [__m512i], before: __m512i) -> __m512i {
        let out: &mut [__m512i; 4] = out.first_chunk_mut().expect("four columns follow");
        let shifted = [before, self.high[0], self.high[1], self.high[2]];
        for i in 0..4 {
            out[i] = _mm512_add_epi64(self.low[i], _mm512_slli_epi64::<4>(shifted[i]));
        }
        self.high[3]
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512ifma")]
fn halves<const HALF: usize>(limbs: &[__m512i]) -> [&[__m512i; HALF]; 2] {
    let (halves, _) = limbs.as_chunks();
    [&halves[0], &halves[1]]
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512ifma")]
fn sum<const N: usize>(a: &[__m512i; N], b: &[__m512i; N]) -> [__m512i; N] {
    let mut out = *a;
    for (out, b) in out.iter_mut().zip(b) {
        *out = _mm512_add_epi64(*out, *b);
    }
    out
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512ifma")]
fn splat(word: u32) -> __m512i {
    _mm512_set1_epi32(word as i32)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512ifma")]
fn store(to: &mut [u64; PRODUCTS], value: __m512i) {
    // SAFETY: `to` is 64 writable bytes; the store has no alignment requirement.
    unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), value) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Backend;
    use crate::num3072::Num3072;

    #[target_feature(enable = "avx512f,avx512bw,avx512ifma")]
    fn multiply(a: &[u64; LIMBS_48], b: &[u64; LIMBS_48]) -> [u64; LIMBS_48] {
        let [mut x, mut y] = [[_mm512_setzero_si512(); LIMBS_48]; 2];
        for i in 0..LIMBS_48 {
            (x[i], y[i]) = (_mm512_set1_epi64(a[i] as i64), _mm512_set1_epi64(b[i] as i64));
        }
        let mut columns = [_mm512_setzero_si512(); 2 * LIMBS_48];
        product_64(&x, &y, &mut columns);
        reduce(&mut columns, &mut x);
        let mut out = [0; LIMBS_48];
        for (out, limb) in out.iter_mut().zip(x) {
            let mut lanes = [0; PRODUCTS];
            store(&mut lanes, limb);
            assert_eq!(lanes, [lanes[0]; PRODUCTS]);
            *out = lanes[0];
        }
        out
    }

    fn check(a: &[u64; LIMBS_48], b: &[u64; LIMBS_48]) {
        let [x, y] = [a, b].map(Num3072::from_limbs_48);
        let expected = x.mul(&y, Backend::PORTABLE).normalised();
        // SAFETY: the caller has asked the CPU.
        let product = unsafe { multiply(a, b) };
        assert!(product.iter().all(|limb| *limb < (1 << BITS) + (1 << 43)), "{product:?}");
        assert_eq!(Num3072::from_limbs_48(&product).normalised(), expected, "{a:?}\n{b:?}");
    }

    /// Limbs at the ends of their range: what random elements never have.
    #[test]
    fn extreme_limbs() {
        if Backend::by_name("avx512").is_none() {
            println!("skipped: this machine has no AVX-512 IFMA");
            return;
        }
        let most = MASK as u64 + (1 << 43);
        let full = MASK as u64;
        let mut p = [full; LIMBS_48];
        p[0] -= FOLD - 1;
        let mut cases = vec![[0; LIMBS_48], [1; LIMBS_48], [full; LIMBS_48], [most; LIMBS_48], p];
        for odd in 0..2 {
            cases.push(core::array::from_fn(|i| if i % 2 == odd { most } else { 0 }));
            cases.push(core::array::from_fn(|i| if i / 16 % 2 == odd { most } else { 0 }));
            cases.push(core::array::from_fn(|i| if i / 32 == odd { most } else { 1 }));
        }
        for place in [0, 1, 15, 16, 31, 32, 62, 63] {
            cases.push(core::array::from_fn(|i| if i == place { most } else { 0 }));
            cases.push(core::array::from_fn(|i| if i == place { 0 } else { full }));
        }
        let mut seed = 1u64;
        for _ in 0..40 {
            cases.push(core::array::from_fn(|_| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                [0, 1, full - 1, full, most, seed >> 16][(seed >> 33) as usize % 6]
            }));
        }
        for a in &cases {
            for b in &cases {
                check(a, b);
            }
        }
    }
}
