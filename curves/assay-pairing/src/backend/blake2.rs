//! `BLAKE2b`'s function F on rows of four words, with the rotations and permutations of AVX-512VL or with AVX2 alone;
//! `evm/blake2f.rs` is the oracle.
//!
//! The time of a round is about that of its chain of additions, rotations and exclusive ors: between its halves the
//! first, third and fourth row are rotated instead of the second, which the next step waits for. With AVX-512VL words
//! of the message come from registers, by two permutations and a selection for each four; vectors of eight words
//! would need fewer, but block one of the ports of the chain. With AVX2 they are read one by one, and rotations by
//! whole bytes are shuffles.

#![expect(unsafe_code, reason = "entry into target-feature functions")]

use core::arch::x86_64::{
    __m256i, _mm256_add_epi64, _mm256_extract_epi64, _mm256_or_si256, _mm256_permute4x64_epi64,
    _mm256_permutex2var_epi64, _mm256_ror_epi64, _mm256_setr_epi8, _mm256_setr_epi64x,
    _mm256_shuffle_epi8, _mm256_shuffle_epi32, _mm256_srli_epi64, _mm256_ternarylogic_epi64,
    _mm256_xor_si256,
};

use assay_hash::cpu::{CpuFeature, has};

/// Constants of the hash.
pub(crate) trait Constants {
    /// Initial second half of the state.
    const IV: [u64; 8];
    /// Order of the message words in each of ten rounds.
    const ORDERS: [[usize; 16]; 10];
}

/// State after `rounds` rounds; `changes` are combined by XOR with the last words of the second half. The inputs are
/// bytes, since loads of words that were just stored one by one would stall. `None` if the CPU lacks the instructions.
#[inline]
pub(crate) fn compressed<C: Constants>(
    rounds: u32,
    state: &[u8; 64],
    message: &[u8; 128],
    changes: [u64; 3],
) -> Option<[u8; 64]> {
    let has_avx512 = has(CpuFeature::Avx512f) && has(CpuFeature::Avx512vl);
    match has(CpuFeature::Avx2) {
        // SAFETY: the features are checked.
        true if has_avx512 => Some(unsafe { with_avx512::<C>(rounds, state, message, changes) }),
        // SAFETY: the feature is checked.
        true => Some(unsafe { with_avx2::<C>(rounds, state, message, changes) }),
        false => None,
    }
}

/// Indices of four words in the lower and in the upper half of the message.
const fn places(order: &[usize; 16], of: [usize; 4]) -> [u64; 4] {
    let [a, b, c, d] = of;
    [order[a] as u64 % 8, order[b] as u64 % 8, order[c] as u64 % 8, order[d] as u64 % 8]
}

/// Masks of the words in the upper half.
const fn upper(order: &[usize; 16], of: [usize; 4]) -> [u64; 4] {
    let [a, b, c, d] = of;
    [
        (order[a] as u64 / 8).wrapping_neg(),
        (order[b] as u64 / 8).wrapping_neg(),
        (order[c] as u64 / 8).wrapping_neg(),
        (order[d] as u64 / 8).wrapping_neg(),
    ]
}

/// Four message words in the order of a round, from registers.
macro_rules! permuted {
    ($message:ident, $constants:ident, $round:literal, $of:expr) => {{
        let places = from_words(&const { places(&$constants::ORDERS[$round], $of) });
        let upper = from_words(&const { upper(&$constants::ORDERS[$round], $of) });
        let [a, b, c, d] = $message;
        // Bits of the second operand where the first is set, else of the third.
        _mm256_ternarylogic_epi64::<0xca>(
            upper,
            _mm256_permutex2var_epi64(c, places, d),
            _mm256_permutex2var_epi64(a, places, b),
        )
    }};
}

/// The same from memory.
macro_rules! read {
    ($message:ident, $constants:ident, $round:literal, $of:expr) => {{
        let [a, b, c, d] = const { ordered(&$constants::ORDERS[$round], $of) };
        from_words(&[$message[a], $message[b], $message[c], $message[d]])
    }};
}

/// Indices of four words.
const fn ordered(order: &[usize; 16], of: [usize; 4]) -> [usize; 4] {
    let [a, b, c, d] = of;
    [order[a], order[b], order[c], order[d]]
}

/// A round: columns, then diagonals. Since the second row stays in place, the diagonals are
/// processed in another order, starting with the one that ends the first row.
macro_rules! round {
    ($rows:ident, $words:ident, $turned:ident; $message:ident, $constants:ident, $round:literal) => {
        mix!(
            $rows,
            $words!($message, $constants, $round, [0, 2, 4, 6]),
            $words!($message, $constants, $round, [1, 3, 5, 7]),
            $turned
        );
        let [a, b, c, d] = $rows;
        $rows = [
            _mm256_permute4x64_epi64::<0b10_01_00_11>(a),
            b,
            _mm256_permute4x64_epi64::<0b00_11_10_01>(c),
            _mm256_permute4x64_epi64::<0b01_00_11_10>(d),
        ];
        mix!(
            $rows,
            $words!($message, $constants, $round, [14, 8, 10, 12]),
            $words!($message, $constants, $round, [15, 9, 11, 13]),
            $turned
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

/// The function G on four columns at once.
macro_rules! mix {
    ($rows:ident, $x:expr, $y:expr, $turned:ident) => {
        let [mut a, mut b, mut c, mut d] = $rows;
        a = _mm256_add_epi64(_mm256_add_epi64(a, $x), b);
        d = $turned!(32, _mm256_xor_si256(d, a));
        c = _mm256_add_epi64(c, d);
        b = $turned!(24, _mm256_xor_si256(b, c));
        a = _mm256_add_epi64(_mm256_add_epi64(a, $y), b);
        d = $turned!(16, _mm256_xor_si256(d, a));
        c = _mm256_add_epi64(c, d);
        b = $turned!(63, _mm256_xor_si256(b, c));
        $rows = [a, b, c, d];
    };
}

/// Rotates each word to the right, by an instruction.
macro_rules! rotated {
    ($count:literal, $row:expr) => {
        _mm256_ror_epi64::<$count>($row)
    };
}

/// Rotates each word by AVX2.
macro_rules! shuffled {
    (32, $row:expr) => {
        _mm256_shuffle_epi32::<0b10_11_00_01>($row)
    };
    (63, $row:expr) => {{
        let row = $row;
        _mm256_or_si256(_mm256_add_epi64(row, row), _mm256_srli_epi64::<63>(row))
    }};
    ($count:literal, $row:expr) => {
        _mm256_shuffle_epi8($row, by_bytes::<{ $count / 8 }>())
    };
}

/// Shuffle control for a rotation of each word by a number of bytes.
#[target_feature(enable = "avx2")]
#[inline]
fn by_bytes<const COUNT: i8>() -> __m256i {
    let at = |byte: i8| byte / 8 * 8 + (byte + COUNT) % 8;
    let [a, b, c, d, e, f, g, h] = [0, 1, 2, 3, 4, 5, 6, 7].map(at);
    let [i, j, k, l, m, n, o, p] = [8, 9, 10, 11, 12, 13, 14, 15].map(at);
    _mm256_setr_epi8(
        a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, a, b, c, d, e, f, g, h, i, j, k, l, m, n,
        o, p,
    )
}

/// Repeats rounds; the order of words has a period of ten.
macro_rules! rounds {
    ($count:ident, $rows:ident, $words:ident, $turned:ident; $message:ident, $constants:ident, $($round:literal)+) => {
        let mut left = $count;
        loop {
            // Opaque, since LLVM would otherwise prepare the words of all ten rounds before the first one.
            let $message = core::hint::black_box($message);
            $(
                if left == 0 {
                    break;
                }
                left -= 1;
                round!($rows, $words, $turned; $message, $constants, $round);
            )+
        }
    };
}

/// Defines [`compressed`] for given features: access to message words, and rotation of words.
macro_rules! version {
    ($name:ident, $features:literal, $words:ident, $turned:ident; |$bytes:ident| $message:expr) => {
        #[target_feature(enable = $features)]
        fn $name<C: Constants>(
            rounds: u32,
            state: &[u8; 64],
            $bytes: &[u8; 128],
            [first, second, last]: [u64; 3],
        ) -> [u8; 64] {
            let message = $message;
            let [low, high] = state.as_chunks::<32>().0 else { unreachable!("64 bytes") };
            let (low, high) = (from_bytes(low), from_bytes(high));
            let iv = const { C::IV.as_chunks::<4>().0 };
            let changes = _mm256_setr_epi64x(first as i64, second as i64, last as i64, 0);
            let mut rows =
                [low, high, from_words(&iv[0]), _mm256_xor_si256(from_words(&iv[1]), changes)];
            rounds!(
                rounds, rows, $words, $turned; message, C, 0 1 2 3 4 5 6 7 8 9
            );
            let [a, b, c, d] = rows;
            let mut output = [0; 64];
            let (first, second) = output.split_at_mut(32);
            to_bytes(_mm256_xor_si256(low, _mm256_xor_si256(a, c)), first);
            to_bytes(_mm256_xor_si256(high, _mm256_xor_si256(b, d)), second);
            output
        }
    };
}

version!(with_avx512, "avx2,avx512f,avx512vl", permuted, rotated; |bytes| {
    let [m0, m1, m2, m3] = bytes.as_chunks::<32>().0 else { unreachable!("128 bytes") };
    [from_bytes(m0), from_bytes(m1), from_bytes(m2), from_bytes(m3)]
});

version!(with_avx2, "avx2", read, shuffled; |bytes| {
    let (words, _) = bytes.as_chunks::<8>();
    core::array::from_fn::<u64, 16, _>(|place| u64::from_le_bytes(words[place]))
});

#[target_feature(enable = "avx2")]
#[inline]
fn from_words(words: &[u64; 4]) -> __m256i {
    let [a, b, c, d] = words.map(|word| word as i64);
    _mm256_setr_epi64x(a, b, c, d)
}

#[target_feature(enable = "avx2")]
#[inline]
fn from_bytes(bytes: &[u8; 32]) -> __m256i {
    let [a, b, c, d] = bytes.as_chunks::<8>().0 else { unreachable!("four words") };
    from_words(&[a, b, c, d].map(|word| u64::from_le_bytes(*word)))
}

#[target_feature(enable = "avx2")]
#[inline]
fn to_bytes(row: __m256i, bytes: &mut [u8]) {
    let words = [
        _mm256_extract_epi64::<0>(row),
        _mm256_extract_epi64::<1>(row),
        _mm256_extract_epi64::<2>(row),
        _mm256_extract_epi64::<3>(row),
    ];
    for (bytes, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(words) {
        *bytes = word.to_le_bytes();
    }
}
