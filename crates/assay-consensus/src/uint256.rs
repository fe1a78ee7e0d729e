//! A 256-bit unsigned integer, as far as proof of work needs one.

use std::fmt;
use std::ops::{Not, Shl, Shr};

/// An unsigned number of 256 bits: a target, a hash read as a number, or an amount of work.
///
/// Stored as four 64-bit limbs, least significant first. Arithmetic wraps, as it does in Bitcoin
/// Core (`arith_uint256.h`), whose results consensus depends on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct U256([u64; 4]);

impl U256 {
    pub const ZERO: Self = Self([0; 4]);
    pub const ONE: Self = Self([1, 0, 0, 0]);
    /// 2^256 - 1.
    pub const MAX: Self = Self([u64::MAX; 4]);

    /// The number whose 64 hexadecimal digits, most significant first, are `digits`.
    ///
    /// # Panics
    /// When `digits` is not 64 hexadecimal digits. Meant for constants, where the panic is a
    /// compile error.
    #[must_use]
    pub const fn from_hex(digits: &str) -> Self {
        let bytes = crate::hex::reversed_32(digits);
        Self::from_le_bytes(&bytes)
    }

    /// Reads 32 bytes, least significant first: the order in which hashes are stored.
    #[must_use]
    pub const fn from_le_bytes(bytes: &[u8; 32]) -> Self {
        let mut limbs = [0u64; 4];
        let mut index = 0;
        while index < 32 {
            limbs[index / 8] |= (bytes[index] as u64) << (8 * (index % 8));
            index += 1;
        }
        Self(limbs)
    }

    /// Inverse of [`U256::from_le_bytes`].
    #[must_use]
    pub fn to_le_bytes(self) -> [u8; 32] {
        let mut bytes = [0u8; 32];
        for (chunk, limb) in bytes.chunks_exact_mut(8).zip(self.0) {
            chunk.copy_from_slice(&limb.to_le_bytes());
        }
        bytes
    }

    /// The least significant 64 bits.
    #[must_use]
    pub const fn low_u64(self) -> u64 {
        self.0[0]
    }

    /// Position of the highest set bit plus one; 0 for zero.
    #[must_use]
    pub fn bits(self) -> u32 {
        match self.0.iter().rposition(|limb| *limb != 0) {
            Some(index) => index as u32 * 64 + 64 - self.0[index].leading_zeros(),
            None => 0,
        }
    }

    #[must_use]
    pub fn is_zero(self) -> bool {
        self == Self::ZERO
    }

    /// Sum modulo 2^256.
    #[must_use]
    pub fn wrapping_add(self, other: Self) -> Self {
        let mut limbs = [0u64; 4];
        let mut carry = false;
        for (index, limb) in limbs.iter_mut().enumerate() {
            let (sum, over_a) = self.0[index].overflowing_add(other.0[index]);
            let (sum, over_b) = sum.overflowing_add(u64::from(carry));
            *limb = sum;
            carry = over_a | over_b;
        }
        Self(limbs)
    }

    /// Difference modulo 2^256.
    #[must_use]
    pub fn wrapping_sub(self, other: Self) -> Self {
        self.wrapping_add(!other).wrapping_add(Self::ONE)
    }

    /// Product with a 32-bit number, modulo 2^256.
    #[must_use]
    pub fn wrapping_mul_u32(self, factor: u32) -> Self {
        let mut limbs = [0u64; 4];
        let mut carry = 0u128;
        for (limb, own) in limbs.iter_mut().zip(self.0) {
            carry += u128::from(own) * u128::from(factor);
            *limb = carry as u64;
            carry >>= 64;
        }
        Self(limbs)
    }

    /// Quotient, rounded down; `None` when `divisor` is zero.
    #[must_use]
    pub fn checked_div(self, divisor: Self) -> Option<Self> {
        if divisor.is_zero() {
            return None;
        }
        let (width, divisor_width) = (self.bits(), divisor.bits());
        if width < divisor_width {
            return Some(Self::ZERO);
        }
        let mut rest = self;
        let mut quotient = Self::ZERO;
        let mut step = divisor << (width - divisor_width);
        for bit in (0..=width - divisor_width).rev() {
            if rest >= step {
                rest = rest.wrapping_sub(step);
                quotient.0[bit as usize / 64] |= 1 << (bit % 64);
            }
            step = step >> 1;
        }
        Some(quotient)
    }
}

impl From<u64> for U256 {
    fn from(number: u64) -> Self {
        Self([number, 0, 0, 0])
    }
}

impl Ord for U256 {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.iter().rev().cmp(other.0.iter().rev())
    }
}

impl PartialOrd for U256 {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Not for U256 {
    type Output = Self;
    fn not(self) -> Self {
        Self(self.0.map(|limb| !limb))
    }
}

impl Shl<u32> for U256 {
    type Output = Self;
    /// Bits that leave at the top are lost; 256 and more give zero.
    fn shl(self, count: u32) -> Self {
        let (limbs, bits) = ((count / 64) as usize, count % 64);
        let mut out = [0u64; 4];
        let mut carry = 0;
        for (limb, own) in out.iter_mut().skip(limbs).zip(self.0) {
            *limb = own << bits | carry;
            carry = own.checked_shr(64 - bits).unwrap_or(0);
        }
        Self(out)
    }
}

impl Shr<u32> for U256 {
    type Output = Self;
    /// 256 and more give zero.
    fn shr(self, count: u32) -> Self {
        let (limbs, bits) = ((count / 64) as usize, count % 64);
        let mut out = [0u64; 4];
        let mut carry = 0;
        for (limb, own) in out.iter_mut().rev().skip(limbs).zip(self.0.iter().rev()) {
            *limb = own >> bits | carry;
            carry = own.checked_shl(64 - bits).unwrap_or(0);
        }
        Self(out)
    }
}

impl fmt::Display for U256 {
    /// 64 hexadecimal digits, as RPC prints `chainwork`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d] = self.0;
        write!(f, "{d:016x}{c:016x}{b:016x}{a:016x}")
    }
}

impl fmt::Debug for U256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_hex_and_order() {
        let text = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
        let number = U256::from_hex(text);
        assert_eq!(number.to_string(), text);
        assert_eq!(U256::from_le_bytes(&number.to_le_bytes()), number);
        assert_eq!(number.bits(), 241);
        assert!(U256::ONE << 200 > U256::from(u64::MAX));
        assert!(U256::ZERO < U256::ONE && U256::MAX > U256::ONE);
    }

    #[test]
    fn shifts_match_small_numbers() {
        for count in [0, 1, 7, 63, 64, 65, 127, 128, 191, 192, 255] {
            let moved = U256::ONE << count;
            assert_eq!(moved.bits(), count + 1);
            assert_eq!(moved >> count, U256::ONE);
        }
        assert_eq!(U256::MAX << 256, U256::ZERO);
        assert_eq!(U256::MAX >> 256, U256::ZERO);
        assert_eq!(U256::MAX >> 255, U256::ONE);
    }

    #[test]
    fn arithmetic_wraps_and_divides() {
        assert_eq!(U256::MAX.wrapping_add(U256::ONE), U256::ZERO);
        assert_eq!(U256::ZERO.wrapping_sub(U256::ONE), U256::MAX);
        assert_eq!(U256::MAX.wrapping_mul_u32(2), U256::MAX.wrapping_sub(U256::ONE));
        let number =
            U256::from_hex("123456789abcdef0fedcba9876543210deadbeefcafef00d0123456789abcdef");
        for factor in [1u32, 3, 0xffff, u32::MAX] {
            let divisor = U256::from(u64::from(factor));
            let small = number >> 40;
            assert_eq!(small.wrapping_mul_u32(factor).checked_div(divisor), Some(small));
        }
        assert_eq!(number.checked_div(U256::ZERO), None);
        assert_eq!(number.checked_div(number), Some(U256::ONE));
        assert_eq!(U256::ONE.checked_div(number), Some(U256::ZERO));
        let wide = U256::from(u64::MAX) << 64;
        let expected = u128::from(u64::MAX) << 64;
        for divisor in [3u64, 1 << 33, u64::MAX - 1] {
            let quotient = wide.checked_div(U256::from(divisor)).expect("divisor is not zero");
            let wanted = expected / u128::from(divisor);
            assert_eq!(quotient.low_u64(), wanted as u64);
            assert_eq!((quotient >> 64).low_u64(), (wanted >> 64) as u64);
        }
    }
}
