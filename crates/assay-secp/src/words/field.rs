//! Elements modulo 2^256 - c as four words, any residue below 2^256: c is small, so the upper half of a product counts c times.

#[cfg(target_arch = "x86_64")]
use crate::backend::mulx;

/// 2^256 - 2^32 - 977, least significant word first.
pub(super) const PRIME: [u64; 4] = [0xffff_fffe_ffff_fc2f, u64::MAX, u64::MAX, u64::MAX];

/// 2^256 less the prime.
const COMPLEMENT: u64 = 0x1_0000_03d1;

#[derive(Clone, Copy, Debug)]
pub(super) struct Fe([u64; 4]);

impl Fe {
    pub(super) const ZERO: Self = Self([0; 4]);
    pub(super) const ONE: Self = Self([1, 0, 0, 0]);

    pub(super) const fn from_words(words: [u64; 4]) -> Self {
        Self(words)
    }

    /// The residue below the prime.
    pub(super) fn to_words(self) -> [u64; 4] {
        // Values of at least the prime carry when the complement is added.
        let (above, carry) = add_small(self.0, COMPLEMENT);
        if carry { above } else { self.0 }
    }

    pub(super) fn is_zero(&self) -> bool {
        self.0 == [0; 4] || self.0 == PRIME
    }

    pub(super) fn is_odd(self) -> bool {
        self.to_words()[0] & 1 == 1
    }

    #[inline(always)]
    pub(super) fn mul(&self, other: &Self) -> Self {
        #[cfg(target_arch = "x86_64")]
        if mulx::is_available() {
            return Self(mulx::product::<COMPLEMENT>(&self.0, &other.0));
        }
        self.mul_portable(other)
    }

    #[inline(always)]
    pub(super) fn square(&self) -> Self {
        #[cfg(target_arch = "x86_64")]
        if mulx::is_available() {
            return Self(mulx::square::<COMPLEMENT>(&self.0));
        }
        self.square_portable()
    }

    pub(super) fn mul_portable(&self, other: &Self) -> Self {
        let mut wide = [0; 8];
        for (i, limb) in self.0.iter().enumerate() {
            let mut carry = 0;
            for (j, factor) in other.0.iter().enumerate() {
                (wide[i + j], carry) = limb.carrying_mul_add(*factor, wide[i + j], carry);
            }
            wide[i + 4] = carry;
        }
        Self::reduced(wide)
    }

    pub(super) fn square_portable(&self) -> Self {
        let [a, b, c, d] = self.0;
        // Products of different words once, doubled, and the squares.
        let (w1, carry) = a.carrying_mul(b, 0);
        let (w2, carry) = a.carrying_mul(c, carry);
        let (w3, w4) = a.carrying_mul(d, carry);
        let (w3, carry) = b.carrying_mul(c, w3);
        let (w4, w5) = b.carrying_mul_add(d, w4, carry);
        let (w5, w6) = c.carrying_mul(d, w5);
        let mut wide = [
            0,
            w1 << 1,
            w2 << 1 | w1 >> 63,
            w3 << 1 | w2 >> 63,
            w4 << 1 | w3 >> 63,
            w5 << 1 | w4 >> 63,
            w6 << 1 | w5 >> 63,
            w6 >> 63,
        ];
        let mut carry = false;
        for (k, limb) in self.0.iter().enumerate() {
            let (low, high) = limb.carrying_mul(*limb, 0);
            (wide[2 * k], carry) = wide[2 * k].carrying_add(low, carry);
            (wide[2 * k + 1], carry) = wide[2 * k + 1].carrying_add(high, carry);
        }
        Self::reduced(wide)
    }

    #[inline(always)]
    fn reduced([a, b, c, d, e, f, g, h]: [u64; 8]) -> Self {
        let (a, carry) = e.carrying_mul(COMPLEMENT, a);
        let (b, carry) = f.carrying_mul_add(COMPLEMENT, b, carry);
        let (c, carry) = g.carrying_mul_add(COMPLEMENT, c, carry);
        let (d, carry) = h.carrying_mul_add(COMPLEMENT, d, carry);
        // The carry is below 2^34, so its multiple is below 2^67.
        let (low, high) = carry.carrying_mul(COMPLEMENT, 0);
        let (a, carry) = a.overflowing_add(low);
        let (b, carry) = b.carrying_add(high, carry);
        let (c, carry) = c.carrying_add(0, carry);
        let (d, carry) = d.carrying_add(0, carry);
        // After a carry the rest is below 2^67, and the complement is added to its lowest word. The words above were all ones, so
        // the wrapped value is below the multiple itself.
        let (sum, _) = add_small([a, b, c, d], if carry { COMPLEMENT } else { 0 });
        Self(sum)
    }

    #[inline(always)]
    pub(super) fn add(&self, other: &Self) -> Self {
        let mut sum = [0; 4];
        let mut carry = false;
        for ((sum, a), b) in sum.iter_mut().zip(self.0).zip(other.0) {
            (*sum, carry) = a.carrying_add(b, carry);
        }
        let (low, carry) = sum[0].overflowing_add(u64::from(carry).wrapping_neg() & COMPLEMENT);
        sum[0] = low;
        // Taken once in 2^31 times: a predicted branch does not wait for the carries.
        if carry {
            return Self(carried(sum));
        }
        Self(sum)
    }

    #[inline(always)]
    pub(super) fn double(&self) -> Self {
        self.add(self)
    }

    #[inline(always)]
    pub(super) fn sub(&self, other: &Self) -> Self {
        let mut difference = [0; 4];
        let mut borrow = false;
        for ((difference, a), b) in difference.iter_mut().zip(self.0).zip(other.0) {
            (*difference, borrow) = a.borrowing_sub(b, borrow);
        }
        let (low, borrow) =
            difference[0].overflowing_sub(u64::from(borrow).wrapping_neg() & COMPLEMENT);
        difference[0] = low;
        if borrow {
            return Self(borrowed(difference));
        }
        Self(difference)
    }

    /// Half of the number if even, else of its sum with the prime.
    #[inline(always)]
    pub(super) fn half(&self) -> Self {
        let [a, b, c, d] = self.0;
        let is_odd = (a & 1).wrapping_neg();
        // The number, 2^256 and c are halved: (number + 2^256 - c) / 2.
        let halved = [a >> 1 | b << 63, b >> 1 | c << 63, c >> 1 | d << 63, d >> 1 | is_odd << 63];
        // c is odd too: (c - 1) / 2 is subtracted, since the shift rounded the number down.
        let (low, borrow) = halved[0].overflowing_sub(is_odd & (COMPLEMENT >> 1));
        let halved = [low, halved[1], halved[2], halved[3]];
        if borrow {
            return Self(borrowed(halved));
        }
        Self(halved)
    }

    pub(super) fn negate(&self) -> Self {
        Self::ZERO.sub(self)
    }

    fn squared(mut self, times: u32) -> Self {
        for _ in 0..times {
            self = self.square();
        }
        self
    }

    /// The square root, or an unspecified value for non-squares: the power `(p + 1) / 4`, whose bits are 223 ones, a zero, 22
    /// ones, four zeros, two ones and two zeros.
    pub(super) fn square_root(&self) -> Self {
        let x2 = self.square().mul(self);
        let x3 = x2.square().mul(self);
        let x6 = x3.squared(3).mul(&x3);
        let x9 = x6.squared(3).mul(&x3);
        let x11 = x9.squared(2).mul(&x2);
        let x22 = x11.squared(11).mul(&x11);
        let x44 = x22.squared(22).mul(&x22);
        let x88 = x44.squared(44).mul(&x44);
        let x176 = x88.squared(88).mul(&x88);
        let x220 = x176.squared(44).mul(&x44);
        let x223 = x220.squared(3).mul(&x3);
        x223.squared(23).mul(&x22).squared(6).mul(&x2).squared(2)
    }
}

/// The sum after an overflow of the lowest word.
#[cold]
fn carried([a, b, c, d]: [u64; 4]) -> [u64; 4] {
    let (b, carry) = b.overflowing_add(1);
    let (c, carry) = c.overflowing_add(u64::from(carry));
    let (d, carry) = d.overflowing_add(u64::from(carry));
    // The rest is below the complement then.
    [a.wrapping_add(if carry { COMPLEMENT } else { 0 }), b, c, d]
}

/// The difference after a borrow of the lowest word.
#[cold]
fn borrowed([a, b, c, d]: [u64; 4]) -> [u64; 4] {
    let (b, borrow) = b.overflowing_sub(1);
    let (c, borrow) = c.overflowing_sub(u64::from(borrow));
    let (d, borrow) = d.overflowing_sub(u64::from(borrow));
    // The rest is above 2^256 less the complement then.
    [a.wrapping_sub(if borrow { COMPLEMENT } else { 0 }), b, c, d]
}

#[inline(always)]
fn add_small([a, b, c, d]: [u64; 4], small: u64) -> ([u64; 4], bool) {
    let (a, carry) = a.overflowing_add(small);
    let (b, carry) = b.overflowing_add(u64::from(carry));
    let (c, carry) = c.overflowing_add(u64::from(carry));
    let (d, carry) = d.overflowing_add(u64::from(carry));
    ([a, b, c, d], carry)
}
