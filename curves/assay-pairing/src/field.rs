//! Prime fields: elements in Montgomery form over limbs of 64 bits, for any odd modulus with two
//! spare bits or one.
//!
//! A field is a type that implements [`Modulus`]; everything else, R, R^2, the inverse of the modulus
//! and what square roots need, is derived from the modulus at compile time. Arithmetic is variable
//! time where it branches (inversion, square roots, powers), so it is for public values.

pub(crate) mod backend;
mod inverse;
mod power;
pub(crate) mod primes;
#[cfg(test)]
mod tests;
pub(crate) mod wide;

use core::fmt;
use core::marker::PhantomData;
use core::ops::{Add, AddAssign, Mul, MulAssign, Neg, Sub, SubAssign};

use crate::limbs;

/// A prime below 2^(64 N - 1), as limbs, least significant first.
pub trait Modulus<const N: usize>: Copy + Eq + fmt::Debug + Send + Sync + 'static {
    /// The prime.
    const MODULUS: [u64; N];
}

/// What points and towers need of a field.
pub trait Field:
    Copy
    + Eq
    + fmt::Debug
    + Send
    + Sync
    + 'static
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Neg<Output = Self>
{
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;

    /// The product. By reference: elements that are passed by value may be copied.
    #[must_use]
    fn times(&self, other: &Self) -> Self {
        *self * *other
    }
    /// The square.
    #[must_use]
    fn square(&self) -> Self;
    /// Twice the element.
    #[must_use]
    fn double(&self) -> Self {
        *self + *self
    }
    /// Half of the element. What towers are made of has the same as `halved`, in lanes as well.
    #[must_use]
    fn half(&self) -> Self;
    /// Whether it is zero.
    fn is_zero(&self) -> bool {
        *self == Self::ZERO
    }
    /// The inverse; zero has none.
    fn inverse(&self) -> Option<Self>;
    /// The inverse of an element that is not zero, without branches on it.
    #[doc(hidden)]
    #[must_use]
    fn inverse_by_power(&self) -> Self;
    /// `yes` for a mask of ones, `no` for zero.
    #[doc(hidden)]
    #[must_use]
    fn select(mask: u64, yes: &Self, no: &Self) -> Self;
    /// A square root, if there is one.
    fn sqrt(&self) -> Option<Self>;
    /// Whether the element is larger than its negation, as compressed points ask (Zcash's "lexicographically
    /// largest"; towers compare from the highest coefficient).
    fn is_largest(&self) -> bool;

    /// The power; limbs of the exponent are least significant first.
    #[must_use]
    fn power(&self, exponent: &[u64]) -> Self {
        let mut power = Self::ONE;
        for index in (0..limbs::bits(exponent)).rev() {
            power = power.square();
            if limbs::bit(exponent, index) {
                power = power * *self;
            }
        }
        power
    }

    /// Replaces every element by its inverse with a single inversion (Montgomery's trick); zeros stay.
    fn invert_all(elements: &mut [Self]) {
        let mut product = Self::ONE;
        let mut prefixes = Vec::with_capacity(elements.len());
        for element in elements.iter() {
            prefixes.push(product);
            if !element.is_zero() {
                product = product * *element;
            }
        }
        let mut inverse = product.inverse().expect("a product of elements that are not zero");
        for (element, prefix) in elements.iter_mut().zip(prefixes).rev() {
            if !element.is_zero() {
                let rest = inverse * *element;
                *element = inverse * prefix;
                inverse = rest;
            }
        }
    }
}

/// An element of a prime field, always fully reduced: `x R mod p` with R = 2^(64 N).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Fe<M, const N: usize>(pub(crate) [u64; N], PhantomData<M>);

impl<M: Modulus<N>, const N: usize> Fe<M, N> {
    /// The prime.
    pub const MODULUS: [u64; N] = M::MODULUS;
    /// Bits of the prime.
    pub const BITS: usize = limbs::bits(&M::MODULUS);
    /// R modulo the prime, which is one in Montgomery form.
    const R: [u64; N] = limbs::power_of_two(64 * N, &M::MODULUS);
    /// R^2 modulo the prime.
    const R2: Self = Self::raw(limbs::power_of_two(2 * 64 * N, &M::MODULUS));
    /// R^3 modulo the prime.
    const R3: Self = Self::raw(limbs::power_of_two(3 * 64 * N, &M::MODULUS));
    /// What kernels read of the prime.
    pub(crate) const PRIME: &'static backend::Prime = &backend::with_inverse(&M::MODULUS);
    /// `-1 / p mod 2^64`.
    const NEGATED_INVERSE: u64 = limbs::negated_inverse_64(M::MODULUS[0]);

    pub(crate) const fn raw(limbs: [u64; N]) -> Self {
        assert!(M::MODULUS[0] & 1 == 1 && M::MODULUS[N - 1] >> 63 == 0);
        Self(limbs, PhantomData)
    }

    /// The element with this Montgomery form, which is below the prime.
    pub(crate) const fn from_montgomery(limbs: [u64; N]) -> Self {
        debug_assert!(limbs::less(&limbs, &M::MODULUS));
        Self(limbs, PhantomData)
    }

    /// Limbs that are a factor alone, below R and maybe above the prime (`tower/lazy.rs`).
    #[inline(always)]
    pub(crate) const fn unreduced(limbs: [u64; N]) -> Self {
        Self(limbs, PhantomData)
    }

    /// Zero.
    pub const ZERO: Self = Self::raw([0; N]);
    /// One.
    pub const ONE: Self = Self::raw(Self::R);

    /// A small number.
    pub const fn from_u64(small: u64) -> Self {
        let mut limbs = [0; N];
        limbs[0] = small;
        Self::raw(limbs).multiply(&Self::R2)
    }

    /// The number, if it is below the prime; limbs are least significant first.
    pub const fn from_limbs(limbs: [u64; N]) -> Option<Self> {
        if limbs::less(&limbs, &M::MODULUS) {
            Some(Self::raw(limbs).multiply(&Self::R2))
        } else {
            None
        }
    }

    /// The number below the prime, least significant limb first.
    pub const fn to_limbs(&self) -> [u64; N] {
        let mut one = [0; N];
        one[0] = 1;
        self.multiply(&Self::raw(one)).0
    }

    /// The number that these big-endian bytes are, modulo the prime. Any length.
    pub fn from_be_bytes_reduced(bytes: &[u8]) -> Self {
        bytes.rchunks(8 * N).rev().fold(Self::ZERO, |sum, chunk| {
            let mut padded = [0u8; 64];
            padded[8 * N - chunk.len()..8 * N].copy_from_slice(chunk);
            // Below 2^(64 N), so the product with R^2 is reduced by less than one subtraction of p:
            // (2^(64 N) p + p R) / R = 2 p.
            let part = Self(limbs::from_be_bytes(&padded[..8 * N]), PhantomData);
            // R^2 is R in Montgomery form. The part is the operand that is scanned limb by limb, so it may be
            // above p.
            sum * Self::R2 + Self::R2.multiply(&part)
        })
    }

    /// The sum.
    #[inline(always)]
    #[must_use]
    pub const fn plus(&self, other: &Self) -> Self {
        let (sum, _) = limbs::add(&self.0, &other.0);
        Self::reduced_once(sum)
    }

    /// Subtracts the prime where the value, below twice the prime, is not below it.
    #[inline(always)]
    const fn reduced_once(value: [u64; N]) -> Self {
        let (difference, is_below) = limbs::sub(&value, &M::MODULUS);
        // LLVM makes a branch of a mask that it knows, and the value may follow from a secret.
        let mask = core::hint::black_box(is_below as u64).wrapping_neg();
        let (mut result, mut i) = ([0; N], 0);
        while i < N {
            result[i] = difference[i] ^ (mask & (difference[i] ^ value[i]));
            i += 1;
        }
        Self(result, PhantomData)
    }

    /// The difference.
    #[inline(always)]
    #[must_use]
    pub const fn minus(&self, other: &Self) -> Self {
        let (difference, is_below) = limbs::sub(&self.0, &other.0);
        let mask = (is_below as u64).wrapping_neg();
        let (mut prime, mut i) = ([0; N], 0);
        while i < N {
            prime[i] = M::MODULUS[i] & mask;
            i += 1;
        }
        Self(limbs::add(&difference, &prime).0, PhantomData)
    }

    /// The negation.
    #[inline(always)]
    #[must_use]
    pub const fn negated(&self) -> Self {
        Self::ZERO.minus(self)
    }

    /// The product.
    #[inline(always)]
    #[must_use]
    pub const fn multiply(&self, other: &Self) -> Self {
        Self::sum_of_products(&[*self], &[*other])
    }

    /// [`Fe::multiply`] in a function of its own, for processors that kernels do not know.
    #[cold]
    #[inline(never)]
    fn multiply_slowly(&self, other: &Self) -> Self {
        self.multiply(other)
    }

    /// The product of sums below R, one of which is below twice the prime and the other below the prime.
    #[inline(always)]
    pub(crate) fn product_of_sums(a: &wide::Sum<N>, b: &wide::Sum<N>) -> Self {
        // Below (2 p^2 + p R) / R < 2 p, since 2 p < R.
        if let Some(product) = backend::product(&a.0, &b.0, Self::PRIME) {
            return Self(product, PhantomData);
        }
        let product = Self(a.0, PhantomData).multiply_slowly(&Self(b.0, PhantomData));
        Self(backend::apart(&product.0), PhantomData)
    }

    /// The sum of products of as many pairs, reduced once: Montgomery's multiplication, operand scanning,
    /// all pairs in step.
    ///
    /// Between rows the value is below `(T + 1) p`, and within one below `(T + 1) p 2^64 + (T + 1) p`,
    /// which must be below 2^(64 (N + 1)). The result is below `p + T p p / R`, hence below `2 p`.
    #[inline(always)]
    pub(crate) const fn sum_of_products<const T: usize>(a: &[Self; T], b: &[Self; T]) -> Self {
        const { assert!((T as u128 + 1) * (M::MODULUS[N - 1] as u128 + 1) < 1 << 64) };
        let mut sum = [0u64; N];
        let mut i = 0;
        while i < N {
            let mut top = 0u64;
            let mut k = 0;
            while k < T {
                let mut carry = 0;
                let mut j = 0;
                while j < N {
                    (sum[j], carry) = limbs::multiply_add(sum[j], a[k].0[j], b[k].0[i], carry);
                    j += 1;
                }
                top = top.wrapping_add(carry);
                k += 1;
            }
            let quotient = sum[0].wrapping_mul(Self::NEGATED_INVERSE);
            let (_, mut carry) = limbs::multiply_add(sum[0], quotient, M::MODULUS[0], 0);
            let mut j = 1;
            while j < N {
                (sum[j - 1], carry) = limbs::multiply_add(sum[j], quotient, M::MODULUS[j], carry);
                j += 1;
            }
            sum[N - 1] = top.wrapping_add(carry);
            i += 1;
        }
        Self::reduced_once(sum)
    }

    /// The sum of products of as many pairs, reduced once.
    ///
    /// Bounds are those of [`Fe::sum_of_products`]; six products over four limbs may take a word more and two subtractions, since
    /// 6 p^2 < 2 p R.
    #[inline(always)]
    pub(crate) fn sum_of<const T: usize>(a: [&Self; T], b: [&Self; T]) -> Self {
        const {
            let ratio = M::MODULUS[N - 1] as u128 + 1;
            let has_a_word_more = N == 4 && T == 6 && T as u128 * ratio < 2 << 64;
            assert!(has_a_word_more || (T as u128 + 1) * ratio < 1 << 64);
        }
        match backend::sum_of(&a.map(|a| &a.0), &b.map(|b| &b.0), Self::PRIME) {
            Some(sum) => Self(sum, PhantomData),
            None => Self(backend::apart(&Self::sum_of_slowly(a, b).0), PhantomData),
        }
    }

    /// [`Fe::sum_of`] one product after the other: its oracle, and what other processors run.
    #[cold]
    #[inline(never)]
    pub(crate) fn sum_of_slowly<const T: usize>(a: [&Self; T], b: [&Self; T]) -> Self {
        a.iter().zip(b).fold(Self::ZERO, |sum, (a, b)| sum.plus(&a.multiply(b)))
    }

    /// The power at compile time; elsewhere [`Field::power`].
    pub(crate) const fn const_power(&self, exponent: &[u64]) -> Self {
        let mut power = Self::ONE;
        let mut index = limbs::bits(exponent);
        while index > 0 {
            index -= 1;
            power = power.multiply(&power);
            if limbs::bit(exponent, index) {
                power = power.multiply(self);
            }
        }
        power
    }

    pub(crate) const fn equals(&self, other: &Self) -> bool {
        let mut i = 0;
        while i < N {
            if self.0[i] != other.0[i] {
                return false;
            }
            i += 1;
        }
        true
    }

    /// Half of the element.
    #[must_use]
    #[inline(always)]
    pub fn halved(&self) -> Self {
        match backend::half(&self.0, Self::PRIME) {
            Some(half) => Self(half, PhantomData),
            None => self.halved_slowly(),
        }
    }

    fn halved_slowly(&self) -> Self {
        let even = if self.0[0] & 1 == 1 { limbs::add(&self.0, &M::MODULUS).0 } else { self.0 };
        Self(limbs::half(&even), PhantomData)
    }

    /// Whether the number (not its Montgomery form) is odd.
    pub fn is_odd(&self) -> bool {
        self.to_limbs()[0] & 1 == 1
    }
}

impl<M: Modulus<N>, const N: usize> Field for Fe<M, N> {
    const ZERO: Self = Self::ZERO;
    const ONE: Self = Self::ONE;

    #[inline(always)]
    fn half(&self) -> Self {
        self.halved()
    }

    /// [`Fe::multiply`] by a kernel.
    #[inline(always)]
    fn times(&self, other: &Self) -> Self {
        match backend::product(&self.0, &other.0, Self::PRIME) {
            Some(product) => Self(product, PhantomData),
            None => Self(backend::apart(&self.multiply_slowly(other).0), PhantomData),
        }
    }

    #[inline(always)]
    fn square(&self) -> Self {
        self.times(self)
    }

    fn inverse(&self) -> Option<Self> {
        (*self != Self::ZERO).then(|| Self::raw(inverse::of::<M, N>(&self.0)).multiply(&Self::R3))
    }

    fn inverse_by_power(&self) -> Self {
        self.power(&const { limbs::minus_small(&M::MODULUS, 2) })
    }

    fn select(mask: u64, yes: &Self, no: &Self) -> Self {
        Self(core::array::from_fn(|i| yes.0[i] & mask | no.0[i] & !mask), PhantomData)
    }

    fn sqrt(&self) -> Option<Self> {
        power::sqrt(self)
    }

    fn is_largest(&self) -> bool {
        // Not below (p + 1) / 2.
        limbs::less(&const { limbs::half(&M::MODULUS) }, &self.to_limbs())
    }

    fn power(&self, exponent: &[u64]) -> Self {
        power::windowed(self, exponent)
    }
}

impl<M: Modulus<N>, const N: usize> Add for Fe<M, N> {
    type Output = Self;
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        match backend::plus(&self.0, &other.0, Self::PRIME) {
            Some(sum) => Self(sum, PhantomData),
            None => self.plus(&other),
        }
    }
}

impl<M: Modulus<N>, const N: usize> Sub for Fe<M, N> {
    type Output = Self;
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        match backend::minus(&self.0, &other.0, Self::PRIME) {
            Some(difference) => Self(difference, PhantomData),
            None => self.minus(&other),
        }
    }
}

impl<M: Modulus<N>, const N: usize> Mul for Fe<M, N> {
    type Output = Self;
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        self.times(&other)
    }
}

impl<M: Modulus<N>, const N: usize> Neg for Fe<M, N> {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        Self::ZERO - self
    }
}

impl<M: Modulus<N>, const N: usize> AddAssign for Fe<M, N> {
    #[inline(always)]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl<M: Modulus<N>, const N: usize> SubAssign for Fe<M, N> {
    #[inline(always)]
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl<M: Modulus<N>, const N: usize> MulAssign for Fe<M, N> {
    #[inline(always)]
    fn mul_assign(&mut self, other: Self) {
        *self = self.times(&other);
    }
}

impl<M: Modulus<N>, const N: usize> fmt::Debug for Fe<M, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x")?;
        self.to_limbs().iter().rev().try_for_each(|limb| write!(f, "{limb:016x}"))
    }
}

/// Encodings of fixed length, which cannot be written over `N` yet.
macro_rules! encodings {
    ($limbs:literal) => {
        impl<M: Modulus<$limbs>> Fe<M, $limbs> {
            /// The number below the prime, big-endian.
            pub fn to_be_bytes(&self) -> [u8; 8 * $limbs] {
                let mut bytes = [0; 8 * $limbs];
                limbs::to_be_bytes(&self.to_limbs(), &mut bytes);
                bytes
            }

            /// The element that this big-endian number is; none where it is not below the prime.
            pub fn from_be_bytes(bytes: &[u8; 8 * $limbs]) -> Option<Self> {
                Self::from_limbs(limbs::from_be_bytes(bytes))
            }
        }
    };
}

encodings!(4);
encodings!(6);
