//! MuHash on AVX-512: multiplication in 52-bit limbs and the `ChaCha20` key stream.
//!
//! `vpmadd52` adds the low or the high half of a 52 by 52 bit product to a 64-bit lane. With at
//! most 61 products of each kind per column a lane stays below 2^59, so the whole multiplication
//! runs without carries, and one carry pass at the end restores limbs.

#![expect(unsafe_code, reason = "vector loads and stores, entry into target-feature functions")]

use core::arch::x86_64::{
    __m512i, _mm_loadu_si128, _mm512_add_epi32, _mm512_add_epi64, _mm512_alignr_epi64,
    _mm512_and_si512, _mm512_broadcast_i32x4, _mm512_cmpeq_epu64_mask, _mm512_cmpgt_epu64_mask,
    _mm512_loadu_si512, _mm512_madd52hi_epu64, _mm512_madd52lo_epu64, _mm512_mask_sub_epi64,
    _mm512_or_si512, _mm512_permutex2var_epi64, _mm512_permutexvar_epi64, _mm512_rol_epi32,
    _mm512_set1_epi64, _mm512_setzero_si512, _mm512_shuffle_epi32, _mm512_shuffle_i32x4,
    _mm512_sllv_epi64, _mm512_srli_epi64, _mm512_srlv_epi64, _mm512_storeu_si512, _mm512_xor_si512,
};

use super::portable::chacha20::initial_state;
use crate::cpu::{CpuFeature, has};
use crate::num3072::LIMBS;

/// Bits per limb of the multiplier.
const BITS: usize = 52;

/// The low bits of a limb.
const MASK: i64 = (1 << BITS) - 1;

/// Limbs of a factor: 60 hold 3120 bits.
const LIMBS_52: usize = 60;

/// Vectors of eight product columns.
const COLUMN_VECTORS: usize = 2 * LIMBS_52 / 8;

/// Zeros around a factor, so that vectors may extend past its ends.
const PAD: usize = 16;

/// A factor in 52-bit limbs with zeros on both sides.
type Padded = [u64; PAD + 64 + PAD];

/// True if this CPU has the features of the kernels.
pub(super) fn available() -> bool {
    has(CpuFeature::Avx512f) && has(CpuFeature::Avx512ifma)
}

/// The double-width product of two numbers. [`available`] must be true.
#[inline]
pub(super) fn mul_wide(a: &[u64; LIMBS], b: &[u64; LIMBS]) -> [u64; 2 * LIMBS] {
    // SAFETY: `Backend` selects this module only on CPUs for which `available` is true.
    unsafe { mul_wide_kernel(a, b) }
}

/// The first 384 bytes of the `ChaCha20` key stream with nonce and counter zero. [`available`] must be true.
#[inline]
pub(super) fn keystream(key: &[u8; 32]) -> [u8; 384] {
    // SAFETY: `Backend` selects this module only on CPUs for which `available` is true.
    unsafe { keystream_kernel(key) }
}

#[target_feature(enable = "avx512f,avx512ifma")]
fn mul_wide_kernel(a: &[u64; LIMBS], b: &[u64; LIMBS]) -> [u64; 2 * LIMBS] {
    let mut columns = multiply(&split(a), &split(b));
    resolve_carries(&mut columns);
    join(&columns)
}

/// Column sums of the product. Column k collects the low halves of `a[t] b[k - t]` and the high
/// halves of `a[t - 1] b[k - t]`.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn multiply(a: &Padded, b: &Padded) -> [__m512i; COLUMN_VECTORS + 1] {
    let mut columns = [_mm512_setzero_si512(); COLUMN_VECTORS + 1];
    // Two vectors of columns at a time, with separate low and high sums that alternate over two sets: eight independent chains
    // cover the latency of four cycles at two instructions per cycle.
    for pair in 0..COLUMN_VECTORS.div_ceil(2) {
        let first = 16 * pair;
        let from = (first + 1).saturating_sub(LIMBS_52) & !1;
        let to = (first + 16).min(LIMBS_52 + 1);
        let mut low = [[_mm512_setzero_si512(); 2]; 2];
        let mut high = [[_mm512_setzero_si512(); 2]; 2];
        let mut previous = _mm512_set1_epi64(a[PAD + from - 1] as i64);
        let mut t = from;
        while t < to {
            for set in 0..2 {
                let current = _mm512_set1_epi64(a[PAD + t + set] as i64);
                for half in 0..2 {
                    let limbs = load(b, PAD + first + 8 * half - t - set);
                    low[set][half] = _mm512_madd52lo_epu64(low[set][half], current, limbs);
                    high[set][half] = _mm512_madd52hi_epu64(high[set][half], previous, limbs);
                }
                previous = current;
            }
            t += 2;
        }
        for half in 0..2 {
            columns[2 * pair + half] = _mm512_add_epi64(
                _mm512_add_epi64(low[0][half], low[1][half]),
                _mm512_add_epi64(high[0][half], high[1][half]),
            );
        }
    }
    columns
}

/// Reduces columns below 2^63 to limbs below 2^52; the number has 6144 bits, so nothing is lost.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn resolve_carries(columns: &mut [__m512i; COLUMN_VECTORS + 1]) {
    let mask = _mm512_set1_epi64(MASK);
    let mut before = _mm512_setzero_si512();
    // After one pass a limb exceeds the mask by less than 2^12, so a second carry is 0 or 1.
    let (mut above, mut full) = ([0u8; COLUMN_VECTORS + 1], [0u8; COLUMN_VECTORS + 1]);
    for ((column, above), full) in columns.iter_mut().zip(&mut above).zip(&mut full) {
        let carries = _mm512_srli_epi64::<{ BITS as u32 }>(*column);
        let incoming = _mm512_alignr_epi64::<7>(carries, before);
        before = carries;
        *column = _mm512_add_epi64(_mm512_and_si512(*column, mask), incoming);
        *above = _mm512_cmpgt_epu64_mask(*column, mask);
        *full = _mm512_cmpeq_epu64_mask(*column, mask);
    }
    // One bit per limb: adding the carries to the limbs of all ones lets the integer adder ripple
    // them, and the bits it changed are the limbs that receive one.
    let (above, full) = (u128::from_le_bytes(above), u128::from_le_bytes(full));
    let carried = ((above << 1).wrapping_add(full) ^ full).to_le_bytes();
    for (column, lanes) in columns.iter_mut().zip(carried) {
        let sum = _mm512_mask_sub_epi64(*column, lanes, *column, _mm512_set1_epi64(-1));
        *column = _mm512_and_si512(sum, mask);
    }
}

/// Regroups 64-bit limbs into 52-bit limbs.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn split(limbs: &[u64; LIMBS]) -> Padded {
    let mut source = [0u64; LIMBS + 8];
    source[..LIMBS].copy_from_slice(limbs);
    let mut out = [0u64; PAD + 64 + PAD];
    let mask = _mm512_set1_epi64(MASK);
    for (vector, plan) in SPLIT.iter().enumerate() {
        let words = load(&source, 8 * vector * BITS / 64);
        let low = _mm512_permutexvar_epi64(load(&plan.index, 0), words);
        let high = _mm512_permutexvar_epi64(load(&plan.index, 8), words);
        let joined = _mm512_or_si512(
            _mm512_srlv_epi64(low, load(&plan.shift, 0)),
            _mm512_sllv_epi64(high, load(&plan.shift, 8)),
        );
        store(&mut out, PAD + 8 * vector, _mm512_and_si512(joined, mask));
    }
    out
}

/// Regroups 52-bit limbs into 64-bit limbs.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn join(columns: &[__m512i; COLUMN_VECTORS + 1]) -> [u64; 2 * LIMBS] {
    let mut source = [0u64; 8 * (COLUMN_VECTORS + 1)];
    for (i, column) in columns.iter().enumerate() {
        store(&mut source, 8 * i, *column);
    }
    let mut out = [0u64; 2 * LIMBS];
    for (vector, plan) in JOIN.iter().enumerate() {
        let base = 8 * vector * 64 / BITS;
        let (words, more) = (load(&source, base), load(&source, base + 8));
        let pick =
            |part: usize| _mm512_permutex2var_epi64(words, load(&plan.index, 8 * part), more);
        let low = _mm512_srlv_epi64(pick(0), load(&plan.shift, 0));
        let middle = _mm512_sllv_epi64(pick(1), load(&plan.shift, 8));
        let high = _mm512_sllv_epi64(pick(2), load(&plan.shift, 16));
        store(&mut out, 8 * vector, _mm512_or_si512(_mm512_or_si512(low, middle), high));
    }
    out
}

/// For eight results: source words of each, relative to the first one loaded, and their shifts, the first down and the others up.
/// A shift of 64 or more yields zero.
struct Plan<const N: usize> {
    index: [u64; N],
    shift: [u64; N],
}

/// Source of each vector in [`split`].
const SPLIT: [Plan<16>; 8] = {
    let mut plans = [const { Plan { index: [0; 16], shift: [0; 16] } }; 8];
    let mut limb = 0;
    while limb < 64 {
        let (plan, lane) = (&mut plans[limb / 8], limb % 8);
        let bit = limb * BITS;
        let base = limb / 8 * 8 * BITS / 64;
        let index = bit / 64 - base;
        plan.index[lane] = index as u64;
        plan.shift[lane] = (bit % 64) as u64;
        plan.index[8 + lane] = index as u64 + 1;
        plan.shift[8 + lane] = (64 - bit % 64) as u64;
        limb += 1;
    }
    plans
};

/// Source of each vector in [`join`].
const JOIN: [Plan<24>; 12] = {
    let mut plans = [const { Plan { index: [0; 24], shift: [0; 24] } }; 12];
    let mut word = 0;
    while word < 96 {
        let (plan, lane) = (&mut plans[word / 8], word % 8);
        let bit = word * 64;
        let base = word / 8 * 8 * 64 / BITS;
        let index = (bit / BITS - base) as u64;
        plan.index[lane] = index;
        plan.shift[lane] = (bit % BITS) as u64;
        plan.index[8 + lane] = index + 1;
        plan.shift[8 + lane] = (BITS - bit % BITS) as u64;
        plan.index[16 + lane] = index + 2;
        plan.shift[16 + lane] = (2 * BITS - bit % BITS) as u64;
        word += 1;
    }
    plans
};

/// Six `ChaCha20` blocks (RFC 8439): four in the 128-bit lanes of one vector, two in another.
#[target_feature(enable = "avx512f,avx512ifma")]
fn keystream_kernel(key: &[u8; 32]) -> [u8; 384] {
    let state = initial_state(key);
    let rows = state.as_chunks::<4>().0;
    let [a, b, c] = [broadcast(&rows[0]), broadcast(&rows[1]), broadcast(&rows[2])];
    let start = [[a, b, c, load_words(&COUNTERS[0])], [a, b, c, load_words(&COUNTERS[1])]];
    let mut blocks = start;
    for _ in 0..10 {
        for rows in &mut blocks {
            round(rows);
        }
        for [_, b, c, d] in &mut blocks {
            *b = _mm512_shuffle_epi32::<0x39>(*b);
            *c = _mm512_shuffle_epi32::<0x4e>(*c);
            *d = _mm512_shuffle_epi32::<0x93>(*d);
        }
        for rows in &mut blocks {
            round(rows);
        }
        for [_, b, c, d] in &mut blocks {
            *b = _mm512_shuffle_epi32::<0x93>(*b);
            *c = _mm512_shuffle_epi32::<0x4e>(*c);
            *d = _mm512_shuffle_epi32::<0x39>(*d);
        }
    }
    let mut out = [0u8; 384];
    let outputs = out.as_chunks_mut::<64>().0;
    for (group, (rows, start)) in blocks.iter_mut().zip(&start).enumerate() {
        for (row, start) in rows.iter_mut().zip(start) {
            *row = _mm512_add_epi32(*row, *start);
        }
        let [a, b, c, d] = *rows;
        // A 4 by 4 transposition of 128-bit lanes: from rows of four blocks to whole blocks.
        let even_ab = _mm512_shuffle_i32x4::<0x88>(a, b);
        let odd_ab = _mm512_shuffle_i32x4::<0xdd>(a, b);
        let even_cd = _mm512_shuffle_i32x4::<0x88>(c, d);
        let odd_cd = _mm512_shuffle_i32x4::<0xdd>(c, d);
        store_block(&mut outputs[4 * group], _mm512_shuffle_i32x4::<0x88>(even_ab, even_cd));
        store_block(&mut outputs[4 * group + 1], _mm512_shuffle_i32x4::<0x88>(odd_ab, odd_cd));
        if group == 0 {
            store_block(&mut outputs[2], _mm512_shuffle_i32x4::<0xdd>(even_ab, even_cd));
            store_block(&mut outputs[3], _mm512_shuffle_i32x4::<0xdd>(odd_ab, odd_cd));
        }
    }
    out
}

/// The last row of each block: counter and zero nonce. The last two lanes are unused.
const COUNTERS: [[u32; 16]; 2] = [
    [0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0],
    [4, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
];

/// Four quarter rounds in each 128-bit lane, one per column.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn round([a, b, c, d]: &mut [__m512i; 4]) {
    *a = _mm512_add_epi32(*a, *b);
    *d = _mm512_rol_epi32::<16>(_mm512_xor_si512(*d, *a));
    *c = _mm512_add_epi32(*c, *d);
    *b = _mm512_rol_epi32::<12>(_mm512_xor_si512(*b, *c));
    *a = _mm512_add_epi32(*a, *b);
    *d = _mm512_rol_epi32::<8>(_mm512_xor_si512(*d, *a));
    *c = _mm512_add_epi32(*c, *d);
    *b = _mm512_rol_epi32::<7>(_mm512_xor_si512(*b, *c));
}

/// Eight words of `from` starting at `at`.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn load(from: &[u64], at: usize) -> __m512i {
    let words: &[u64; 8] = from[at..].first_chunk().expect("eight words are in bounds");
    // SAFETY: `words` is 64 readable bytes; the load has no alignment requirement.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

/// Stores eight words to `to` starting at `at`.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn store(to: &mut [u64], at: usize, value: __m512i) {
    let words: &mut [u64; 8] = to[at..].first_chunk_mut().expect("eight words are in bounds");
    // SAFETY: `words` is 64 writable bytes; the store has no alignment requirement.
    unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), value) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn load_words(words: &[u32; 16]) -> __m512i {
    // SAFETY: `words` is 64 readable bytes; the load has no alignment requirement.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn broadcast(row: &[u32; 4]) -> __m512i {
    // SAFETY: `row` is 16 readable bytes; the load has no alignment requirement.
    let row = unsafe { _mm_loadu_si128(row.as_ptr().cast()) };
    _mm512_broadcast_i32x4(row)
}

#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn store_block(block: &mut [u8; 64], value: __m512i) {
    // SAFETY: `block` is 64 writable bytes; the store has no alignment requirement.
    unsafe { _mm512_storeu_si512(block.as_mut_ptr().cast(), value) }
}
