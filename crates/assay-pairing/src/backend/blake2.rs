//! `BLAKE2b`'s function F on rows of four words, with the rotations and permutations of AVX-512VL; `evm/blake2f.rs` is the oracle.
//!
//! A round takes about as long as the chain of its additions, rotations and exclusive ors: between its halves the first, third and fourth
//! row are rotated and the second stays, which the next step waits for. Words of the message come from registers, by two permutations and a
//! selection for each four; vectors of eight words would need fewer, but close one of the ports of the chain.

#![expect(unsafe_code, reason = "entry into target-feature functions")]

use core::arch::x86_64::{
    __m256i, _mm256_add_epi64, _mm256_extract_epi64, _mm256_permute4x64_epi64,
    _mm256_permutex2var_epi64, _mm256_ror_epi64, _mm256_setr_epi64x, _mm256_ternarylogic_epi64,
    _mm256_xor_si256,
};

use assay_hash::cpu::{CpuFeature, has};

/// Constants of the hash.
pub(crate) trait Constants {
    /// In which order each of ten rounds takes the words of the message.
    const ORDERS: [[usize; 16]; 10];
}

/// Whether this CPU has the instructions.
#[inline]
pub(crate) fn is_available() -> bool {
    has(CpuFeature::Avx2) && has(CpuFeature::Avx512f) && has(CpuFeature::Avx512vl)
}

/// Exclusive or of both halves of the state after so many rounds, from its halves before. Returns them where the CPU has the instructions.
#[inline]
pub(crate) fn mixed<C: Constants>(
    rounds: u32,
    halves: [&[u64; 8]; 2],
    message: &[u64; 16],
) -> Option<[u64; 8]> {
    // SAFETY: the features are checked.
    is_available().then(|| unsafe { mixed_checked::<C>(rounds, halves, message) })
}

/// The places of four words in the lower and in the upper half of the message.
const fn places(order: &[usize; 16], of: [usize; 4]) -> [i64; 4] {
    let [a, b, c, d] = of;
    [order[a] as i64 % 8, order[b] as i64 % 8, order[c] as i64 % 8, order[d] as i64 % 8]
}

/// All ones for words in the upper half.
const fn upper(order: &[usize; 16], of: [usize; 4]) -> [i64; 4] {
    let [a, b, c, d] = of;
    [-(order[a] as i64 / 8), -(order[b] as i64 / 8), -(order[c] as i64 / 8), -(order[d] as i64 / 8)]
}

/// Four words of the message as a round takes them.
macro_rules! words {
    ($message:ident, $constants:ident, $round:literal, $of:expr) => {{
        let places = row(&const { places(&$constants::ORDERS[$round], $of) });
        let upper = row(&const { upper(&$constants::ORDERS[$round], $of) });
        let [a, b, c, d] = $message;
        // Bits of the second where those of the first are set, else of the third.
        _mm256_ternarylogic_epi64::<0xca>(
            upper,
            _mm256_permutex2var_epi64(c, places, d),
            _mm256_permutex2var_epi64(a, places, b),
        )
    }};
}

/// A round: columns, then diagonals. With the second row in its place the diagonals come in another order, the one that ends the first row
/// first.
macro_rules! round {
    ($rows:ident, $message:ident, $constants:ident, $round:literal) => {
        $rows = mix(
            $rows,
            words!($message, $constants, $round, [0, 2, 4, 6]),
            words!($message, $constants, $round, [1, 3, 5, 7]),
        );
        let [a, b, c, d] = $rows;
        $rows = [
            _mm256_permute4x64_epi64::<0b10_01_00_11>(a),
            b,
            _mm256_permute4x64_epi64::<0b00_11_10_01>(c),
            _mm256_permute4x64_epi64::<0b01_00_11_10>(d),
        ];
        $rows = mix(
            $rows,
            words!($message, $constants, $round, [14, 8, 10, 12]),
            words!($message, $constants, $round, [15, 9, 11, 13]),
        );
        let [a, b, c, d] = $rows;
        $rows = [
            _mm256_permute4x64_epi64::<0b00_11_10_01>(a),
            b,
            _mm256_permute4x64_epi64::<0b10_01_00_11>(c),
            _mm256_permute4x64_epi64::<0b01_00_11_10>(d),
        ];
    };
}

#[target_feature(enable = "avx2,avx512f,avx512vl")]
fn mixed_checked<C: Constants>(
    rounds: u32,
    [low, high]: [&[u64; 8]; 2],
    message: &[u64; 16],
) -> [u64; 8] {
    let words = message.map(|word| word as i64);
    let [m0, m1, m2, m3] = words.as_chunks::<4>().0 else { unreachable!("sixteen words") };
    let message = [row(m0), row(m1), row(m2), row(m3)];
    let [low, high] = [low, high].map(|half| half.map(|word| word as i64));
    let mut rows = [
        row(&[low[0], low[1], low[2], low[3]]),
        row(&[low[4], low[5], low[6], low[7]]),
        row(&[high[0], high[1], high[2], high[3]]),
        row(&[high[4], high[5], high[6], high[7]]),
    ];
    let mut left = rounds;
    macro_rules! rounds {
        ($($round:literal)+) => {
            loop {
                $(
                    if left == 0 {
                        break;
                    }
                    left -= 1;
                    round!(rows, message, C, $round);
                )+
            }
        };
    }
    rounds!(0 1 2 3 4 5 6 7 8 9);
    let [a, b, c, d] = rows;
    let (first, second) = (_mm256_xor_si256(a, c), _mm256_xor_si256(b, d));
    [
        _mm256_extract_epi64::<0>(first) as u64,
        _mm256_extract_epi64::<1>(first) as u64,
        _mm256_extract_epi64::<2>(first) as u64,
        _mm256_extract_epi64::<3>(first) as u64,
        _mm256_extract_epi64::<0>(second) as u64,
        _mm256_extract_epi64::<1>(second) as u64,
        _mm256_extract_epi64::<2>(second) as u64,
        _mm256_extract_epi64::<3>(second) as u64,
    ]
}

/// The function G on four columns at once.
#[target_feature(enable = "avx2,avx512f,avx512vl")]
#[inline]
fn mix([mut a, mut b, mut c, mut d]: [__m256i; 4], x: __m256i, y: __m256i) -> [__m256i; 4] {
    a = _mm256_add_epi64(_mm256_add_epi64(a, x), b);
    d = _mm256_ror_epi64::<32>(_mm256_xor_si256(d, a));
    c = _mm256_add_epi64(c, d);
    b = _mm256_ror_epi64::<24>(_mm256_xor_si256(b, c));
    a = _mm256_add_epi64(_mm256_add_epi64(a, y), b);
    d = _mm256_ror_epi64::<16>(_mm256_xor_si256(d, a));
    c = _mm256_add_epi64(c, d);
    b = _mm256_ror_epi64::<63>(_mm256_xor_si256(b, c));
    [a, b, c, d]
}

#[target_feature(enable = "avx2,avx512f,avx512vl")]
#[inline]
fn row(words: &[i64; 4]) -> __m256i {
    _mm256_setr_epi64x(words[0], words[1], words[2], words[3])
}
