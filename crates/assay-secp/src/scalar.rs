//! Scalars modulo the group order, and their digits.

/// The group order, least significant word first.
pub(crate) const ORDER: [u64; 4] =
    [0xbfd2_5e8c_d036_4141, 0xbaae_dce6_af48_a03b, 0xffff_ffff_ffff_fffe, u64::MAX];

/// 2^256 minus the order.
const COMPLEMENT: [u64; 3] = [0x402d_a173_2fc9_bebf, 0x4551_2319_50b7_5fc4, 1];

/// A scalar below the order, least significant word first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Scalar(pub(crate) [u64; 4]);

/// Big endian bytes as words.
#[inline]
pub(crate) fn words(bytes: &[u8; 32]) -> [u64; 4] {
    let [a, b, c, d] = bytes.as_chunks::<8>().0 else { return [0; 4] };
    [d, c, b, a].map(|chunk| u64::from_be_bytes(*chunk))
}

#[inline]
pub(crate) fn is_below(a: &[u64; 4], b: &[u64; 4]) -> bool {
    subtract(a, b).1
}

/// `a - b` modulo 2^256, and true if it borrowed.
#[inline]
fn subtract(a: &[u64; 4], b: &[u64; 4]) -> ([u64; 4], bool) {
    let mut difference = [0; 4];
    let mut borrow = false;
    for k in 0..4 {
        (difference[k], borrow) = a[k].borrowing_sub(b[k], borrow);
    }
    (difference, borrow)
}

/// Product of numbers of any lengths with `N = A + B` words.
#[inline(always)]
fn wide_product<const A: usize, const B: usize, const N: usize>(
    a: &[u64; A],
    b: &[u64; B],
) -> [u64; N] {
    let mut product = [0; N];
    for i in 0..A {
        let mut carry = 0;
        for j in 0..B {
            (product[i + j], carry) = a[i].carrying_mul_add(b[j], product[i + j], carry);
        }
        product[i + B] = carry;
    }
    product
}

/// `a + b` for `b` no longer than `a`; the sum must fit.
#[inline(always)]
fn wide_sum<const A: usize, const B: usize>(a: &[u64; A], b: &[u64; B]) -> [u64; A] {
    let mut sum = *a;
    let mut carry = false;
    for k in 0..A {
        (sum[k], carry) = sum[k].carrying_add(if k < B { b[k] } else { 0 }, carry);
    }
    debug_assert!(!carry);
    sum
}

impl Scalar {
    pub(crate) const ONE: Self = Self([1, 0, 0, 0]);

    /// The number, or `None` at or above the order.
    #[inline]
    pub(crate) fn from_bytes(bytes: &[u8; 32]) -> Option<Self> {
        let words = words(bytes);
        is_below(&words, &ORDER).then_some(Self(words))
    }

    /// The number modulo the order.
    #[inline]
    pub(crate) fn reduced(bytes: &[u8; 32]) -> Self {
        Self::reduce_once(words(bytes))
    }

    #[inline]
    fn reduce_once(words: [u64; 4]) -> Self {
        let (difference, is_below) = subtract(&words, &ORDER);
        Self(if is_below { words } else { difference })
    }

    #[inline]
    pub(crate) fn is_zero(self) -> bool {
        self.0 == [0; 4]
    }

    #[inline]
    pub(crate) fn negate(self) -> Self {
        if self.is_zero() { self } else { Self(subtract(&ORDER, &self.0).0) }
    }

    #[inline]
    pub(crate) fn add(self, other: Self) -> Self {
        let mut sum = [0; 4];
        let mut carry = false;
        for ((sum, a), b) in sum.iter_mut().zip(self.0).zip(other.0) {
            (*sum, carry) = a.carrying_add(b, carry);
        }
        if carry { Self(subtract(&sum, &ORDER).0) } else { Self::reduce_once(sum) }
    }

    /// Big endian.
    #[inline]
    pub(crate) fn to_bytes(self) -> [u8; 32] {
        let mut bytes = [0; 32];
        for (chunk, word) in bytes.as_chunks_mut::<8>().0.iter_mut().rev().zip(self.0) {
            *chunk = word.to_be_bytes();
        }
        bytes
    }

    /// Product modulo the order: 2^256 is congruent to a number of 129 bits, so three folds suffice.
    #[inline]
    pub(crate) fn mul(self, other: Self) -> Self {
        let [a, b, c, d, e, f, g, h] = wide_product::<4, 4, 8>(&self.0, &other.0);
        // Below 2^256 + 2^385.
        let folded = wide_product::<4, 3, 7>(&[e, f, g, h], &COMPLEMENT);
        let [a, b, c, d, e, f, g] = wide_sum(&folded, &[a, b, c, d]);
        // Below 2^256 + 2^259.
        let folded = wide_product::<3, 3, 6>(&[e, f, g], &COMPLEMENT);
        let [a, b, c, d, e, _] = wide_sum(&folded, &[a, b, c, d]);
        // Below 2^256 + 2^133.
        let folded = wide_product::<1, 3, 4>(&[e], &COMPLEMENT);
        let [a, b, c, d, e] = wide_sum(&[a, b, c, d, 0], &folded);
        if e != 0 {
            // 2^256 is the order plus its complement, and the rest is small.
            let [x, y, z] = COMPLEMENT;
            return Self(wide_sum(&[a, b, c, d], &[x, y, z]));
        }
        Self::reduce_once([a, b, c, d])
    }

    /// The inverse by Fermat's little theorem, and zero for zero.
    pub(crate) fn inverse(self) -> Self {
        let mut power = Self::ONE;
        let exponent = [ORDER[0] - 2, ORDER[1], ORDER[2], ORDER[3]];
        for bit in (0..256).rev() {
            power = power.mul(power);
            if exponent[bit / 64] >> (bit % 64) & 1 == 1 {
                power = power.mul(self);
            }
        }
        power
    }

    /// The digits of [`Scalar::halves`].
    #[inline]
    pub(crate) fn split(self) -> [Digits; 2] {
        self.halves().map(Digits::of_odd)
    }

    /// Halves k1 and k2 in two's complement, odd and below 2^129 in magnitude, with `k1 + k2 lambda` congruent to this scalar.
    ///
    /// The lattice of (k1, k2) congruent to zero has the short basis (a1, b1), (a2, b2) of Guide to Elliptic Curve Cryptography,
    /// 3.5; this subtracts the nearest vector found by rounding, as libsecp256k1's `scalar_split_lambda`. The parities of the
    /// basis are (1, 1) and (0, 1), so adding each at most once makes both halves odd, and digits need no correction.
    #[inline]
    pub(crate) fn halves(self) -> [[u64; 3]; 2] {
        const G1: [u64; 4] = [
            0xe893_209a_45db_b031,
            0x3daa_8a14_71e8_ca7f,
            0xe86c_90e4_9284_eb15,
            0x3086_d221_a7d4_6bcd,
        ];
        const G2: [u64; 4] = [
            0x1571_b4ae_8ac4_7f71,
            0x2212_08ac_9df5_06c6,
            0x6f54_7fa9_0abf_e4c4,
            0xe443_7ed6_010e_8828,
        ];
        // a1 = b2 and -b1 have two words, a2 is one word longer.
        const A1: [u64; 3] = [0xe86c_90e4_9284_eb15, 0x3086_d221_a7d4_6bcd, 0];
        const MINUS_B1: [u64; 3] = [0x6f54_7fa9_0abf_e4c3, 0xe443_7ed6_010e_8828, 0];
        const A2: [u64; 3] = [0x57c1_108d_9d44_cfd8, 0x14ca_50f7_a8e2_f3f6, 1];

        let c1 = rounded_top(&self.0, &G1);
        let c2 = rounded_top(&self.0, &G2);
        let [k, l, m, _] = self.0;
        let mut k1 = signed_sub([k, l, m], low_product(&c1, &A1));
        k1 = signed_sub(k1, low_product(&c2, &A2));
        let mut k2 = signed_sub(low_product(&c1, &MINUS_B1), low_product(&c2, &A1));
        if k1[0] & 1 == 0 {
            k1 = signed_add(k1, A1);
            k2 = signed_sub(k2, MINUS_B1);
        }
        if k2[0] & 1 == 0 {
            k1 = signed_add(k1, A2);
            k2 = signed_add(k2, A1);
        }
        [k1, k2]
    }
}

/// `a b / 2^384`, rounded.
#[inline(always)]
fn rounded_top(a: &[u64; 4], b: &[u64; 4]) -> [u64; 2] {
    let product = wide_product::<4, 4, 8>(a, b);
    let (low, carry) = product[6].overflowing_add(product[5] >> 63);
    [low, product[7] + u64::from(carry)]
}

/// The low 192 bits of a product.
#[inline(always)]
fn low_product(a: &[u64; 2], b: &[u64; 3]) -> [u64; 3] {
    let [x, y, z, ..] = wide_product::<2, 3, 5>(a, b);
    [x, y, z]
}

/// Sum modulo 2^192, of two's complement numbers.
#[inline(always)]
fn signed_add(a: [u64; 3], b: [u64; 3]) -> [u64; 3] {
    let (x, carry) = a[0].carrying_add(b[0], false);
    let (y, carry) = a[1].carrying_add(b[1], carry);
    [x, y, a[2].wrapping_add(b[2]).wrapping_add(u64::from(carry))]
}

/// Difference modulo 2^192.
#[inline(always)]
fn signed_sub(a: [u64; 3], b: [u64; 3]) -> [u64; 3] {
    let (x, borrow) = a[0].borrowing_sub(b[0], false);
    let (y, borrow) = a[1].borrowing_sub(b[1], borrow);
    [x, y, a[2].wrapping_sub(b[2]).wrapping_sub(u64::from(borrow))]
}

/// The odd digits of an odd number below 2^130 in magnitude, for windows whose width divides 130.
///
/// With `B = (k + 2^130 - 1) / 2` and its windows b of w bits, `k` is the sum of
/// `(2b - 2^w + 1) 2^(wi)`: the constant terms add up to `1 - 2^130`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Digits([u64; 3]);

impl Digits {
    /// The bits of all windows.
    pub(crate) const BITS: usize = 130;

    /// The same number for windows with `bits` bits in total, at least [`Digits::BITS`]: with `B = (k + 2^bits - 1) / 2` in place
    /// of B.
    #[inline(always)]
    pub(crate) fn of_bits(self, bits: usize) -> Self {
        let [low, middle, high] = self.0;
        Self([low, middle, high + (1 << (bits - 129)) - (1 << (Self::BITS - 129))])
    }

    /// As [`Digits::window`], for windows of `width` bits.
    #[inline(always)]
    pub(crate) fn window_of(&self, width: usize, index: usize) -> u64 {
        let (word, shift) = (width * index / 64, width * index % 64);
        // One more word if present; shifted twice because a shift by 64 overflows.
        let above = self.0[(word + 1).min(2)] << 1 << (63 - shift);
        (self.0[word] >> shift | above) & ((1 << width) - 1)
    }

    #[inline(always)]
    pub(crate) fn of_odd(k: [u64; 3]) -> Self {
        debug_assert!(k[0] & 1 == 1 && (k[2] as i64) >> 1 == (k[2] as i64) >> 63);
        let half =
            [k[0] >> 1 | k[1] << 63, k[1] >> 1 | k[2] << 63, (((k[2] as i64) >> 1) + 2) as u64];
        Self(half)
    }

    /// b of window `index`; the digit is `2b - 2^WIDTH + 1`.
    #[inline(always)]
    pub(crate) fn window<const WIDTH: usize>(&self, index: usize) -> u64 {
        let (word, shift) = (WIDTH * index / 64, WIDTH * index % 64);
        let mut bits = self.0[word] >> shift;
        if shift + WIDTH > 64 {
            bits |= self.0[word + 1] << (64 - shift);
        }
        bits & ((1 << WIDTH) - 1)
    }
}
