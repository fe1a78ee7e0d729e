//! Prime fields: elements in Montgomery form over 64-bit limbs, for any odd modulus with one or two spare bits.
//!
//! A field is a type that implements [`Modulus`]; R, R^2, the inverse of the modulus and the
//! constants of square roots are derived from it at compile time. Arithmetic with branches
//! (inversion, square roots, powers) takes variable time, so it is for public values.

pub(crate) mod backend;
mod power;
#[cfg(test)]
mod tests;
pub(crate) mod wide;

use core::fmt;
use core::marker::PhantomData;
use core::ops::{Add, AddAssign, Mul, MulAssign, Neg, Sub, SubAssign};

use assay_hash::division_steps;

use crate::limbs;

/// Primes of base fields that have code of their own (`backend/shifted.rs`); the modules of curves state their parameters.
pub(crate) mod primes {
    use crate::limbs::from_hex;

    pub(crate) const BLS12_381: [u64; 6] = from_hex(
        "1a0111ea397fe69a4b1ba7b6434bacd764774b84f38512bf6730d2a0f6b0f6241eabfffeb153ffffb9feffffffffaaab",
    );
    pub(crate) const BLS12_377: [u64; 6] = from_hex(
        "01ae3a4617c510eac63b05c06ca1493b1a22d9f300f5138f1ef3622fba094800170b5d44300000008508c00000000001",
    );
    pub(crate) const BN254: [u64; 4] =
        from_hex("30644e72e131a029b85045b68181585d97816a916871ca8d3c208c16d87cfd47");
    pub(crate) const BN254_NOGAMI: [u64; 4] =
        from_hex("2523648240000001ba344d80000000086121000000000013a700000000000013");
}

/// A prime below 2^(64 N - 1), as limbs, least significant first.
pub trait Modulus<const N: usize>: Copy + Eq + fmt::Debug + Send + Sync + 'static {
    const MODULUS: [u64; N];
}

/// Field operations needed by points and towers.
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
    const ZERO: Self;
    const ONE: Self;

    /// Product. By reference, since elements passed by value may be copied.
    #[must_use]
    fn times(&self, other: &Self) -> Self {
        *self * *other
    }
    #[must_use]
    fn square(&self) -> Self;
    #[must_use]
    fn double(&self) -> Self {
        *self + *self
    }
    /// Half of the element. Rings of towers have the same as `halved`, in lanes too.
    #[must_use]
    fn half(&self) -> Self;
    fn is_zero(&self) -> bool {
        *self == Self::ZERO
    }
    fn inverse(&self) -> Option<Self>;
    /// Inverse of a nonzero element, without branches on it.
    #[doc(hidden)]
    #[must_use]
    fn inverse_by_power(&self) -> Self;
    /// `yes` for a mask of ones, `no` for zero.
    #[doc(hidden)]
    #[must_use]
    fn select(mask: u64, yes: &Self, no: &Self) -> Self;
    /// A square root; `None` for a non-residue.
    fn sqrt(&self) -> Option<Self>;
    /// True if the element is larger than its negation, as in the flags of compressed points
    /// (Zcash's "lexicographically largest"; towers compare from the highest coefficient).
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
    pub const MODULUS: [u64; N] = M::MODULUS;
    pub const BITS: usize = limbs::bits(&M::MODULUS);
    /// R modulo the prime, which is one in Montgomery form.
    const R: [u64; N] = limbs::power_of_two(64 * N, &M::MODULUS);
    /// R^2 modulo the prime.
    const R2: Self = Self::raw(limbs::power_of_two(2 * 64 * N, &M::MODULUS));
    /// R^3 modulo the prime.
    const R3: Self = Self::raw(limbs::power_of_two(3 * 64 * N, &M::MODULUS));
    /// Constants of the prime for kernels.
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

    /// Limbs below R, possibly above the prime, that are only used as a factor (`tower/lazy.rs`).
    #[inline(always)]
    pub(crate) const fn unreduced(limbs: [u64; N]) -> Self {
        Self(limbs, PhantomData)
    }

    pub const ZERO: Self = Self::raw([0; N]);
    pub const ONE: Self = Self::raw(Self::R);

    /// A small number as an element.
    pub const fn from_u64(small: u64) -> Self {
        let mut limbs = [0; N];
        limbs[0] = small;
        Self::raw(limbs).multiply(&Self::R2)
    }

    /// The number as an element; `None` if it is not below the prime. Limbs are least significant first.
    pub const fn from_limbs(limbs: [u64; N]) -> Option<Self> {
        if limbs::less(&limbs, &M::MODULUS) {
            Some(Self::raw(limbs).multiply(&Self::R2))
        } else {
            None
        }
    }

    /// A published constant, which is below the prime, from at most 16 N hexadecimal digits.
    pub(crate) const fn from_hex(digits: &str) -> Self {
        Self::from_limbs(limbs::from_hex(digits)).expect("a constant below the prime")
    }

    pub(crate) const fn all_from_hex<const K: usize>(digits: [&str; K]) -> [Self; K] {
        let (mut all, mut i) = ([Self::ZERO; K], 0);
        while i < K {
            all[i] = Self::from_hex(digits[i]);
            i += 1;
        }
        all
    }

    /// Conversion to a number below the prime, least significant limb first.
    pub const fn to_limbs(&self) -> [u64; N] {
        let mut one = [0; N];
        one[0] = 1;
        self.multiply(&Self::raw(one)).0
    }

    /// Reduces a big-endian number of any length modulo the prime.
    pub fn from_be_bytes_reduced(bytes: &[u8]) -> Self {
        bytes.rchunks(8 * N).rev().fold(Self::ZERO, |sum, chunk| {
            let mut padded = [0u8; 64];
            padded[8 * N - chunk.len()..8 * N].copy_from_slice(chunk);
            // Below 2^(64 N), so the product with R^2 is reduced by less than one subtraction of p:
            // (2^(64 N) p + p R) / R = 2 p.
            let part = Self(limbs::from_be_bytes(&padded[..8 * N]), PhantomData);
            // R^2 is R in Montgomery form. The part is the operand that is scanned limb by limb, so it may be above p.
            sum * Self::R2 + Self::R2.multiply(&part)
        })
    }

    #[inline(always)]
    #[must_use]
    pub const fn plus(&self, other: &Self) -> Self {
        let (sum, _) = limbs::add(&self.0, &other.0);
        Self::reduced_once(sum)
    }

    /// Subtracts the prime from a value below twice the prime, unless the value is already below the prime.
    #[inline(always)]
    const fn reduced_once(value: [u64; N]) -> Self {
        let (difference, is_below) = limbs::sub(&value, &M::MODULUS);
        // LLVM turns a known mask into a branch, and the value may depend on a secret.
        let mask = core::hint::black_box(is_below as u64).wrapping_neg();
        let (mut result, mut i) = ([0; N], 0);
        while i < N {
            result[i] = difference[i] ^ (mask & (difference[i] ^ value[i]));
            i += 1;
        }
        Self(result, PhantomData)
    }

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

    #[inline(always)]
    #[must_use]
    pub const fn negated(&self) -> Self {
        Self::ZERO.minus(self)
    }

    #[inline(always)]
    #[must_use]
    pub const fn multiply(&self, other: &Self) -> Self {
        Self::sum_of_products(&[*self], &[*other])
    }

    /// [`Fe::multiply`] as a separate function, for processors without kernels.
    #[cold]
    #[inline(never)]
    fn multiply_slowly(&self, other: &Self) -> Self {
        self.multiply(other)
    }

    /// Product of sums below R, one of which is below twice the prime and the other below the prime.
    #[inline(always)]
    pub(crate) fn product_of_sums(a: &wide::Sum<N>, b: &wide::Sum<N>) -> Self {
        // Below (2 p^2 + p R) / R < 2 p, since 2 p < R.
        if let Some(product) = backend::product(&a.0, &b.0, Self::PRIME) {
            return Self(product, PhantomData);
        }
        let product = Self(a.0, PhantomData).multiply_slowly(&Self(b.0, PhantomData));
        Self(backend::apart(&product.0), PhantomData)
    }

    /// Sum of `T` products, reduced once: Montgomery multiplication, operand scanning, all pairs in step.
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

    /// Sum of `T` products, reduced once.
    ///
    /// Bounds are those of [`Fe::sum_of_products`]; six products over four limbs may need one more
    /// word and two subtractions, since 6 p^2 < 2 p R.
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

    /// [`Fe::sum_of`] one product after the other: the oracle, and the version for other processors.
    #[cold]
    #[inline(never)]
    pub(crate) fn sum_of_slowly<const T: usize>(a: [&Self; T], b: [&Self; T]) -> Self {
        a.iter().zip(b).fold(Self::ZERO, |sum, (a, b)| sum.plus(&a.multiply(b)))
    }

    /// Power at compile time; otherwise [`Field::power`].
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

    /// True if the number (not its Montgomery form) is odd.
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
        (*self != Self::ZERO).then(|| Self::raw(inverse::<M, N>(&self.0)).multiply(&Self::R3))
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
        // At least (p + 1) / 2.
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

/// The inverse modulo the prime of a number that is below it and not zero.
fn inverse<M: Modulus<N>, const N: usize>(x: &[u64; N]) -> [u64; N] {
    fn of_limbs<M: Modulus<N>, const N: usize, const L: usize>(x: &[u64; N]) -> [u64; N] {
        const { division_steps::Modulus::<N, L>::new(&M::MODULUS) }.inverse(x)
    }
    match N {
        4 => of_limbs::<M, N, 5>(x),
        5 => of_limbs::<M, N, 6>(x),
        6 => of_limbs::<M, N, 7>(x),
        _ => unreachable!("fields have four limbs to six"),
    }
}

impl<M: Modulus<N>, const N: usize> fmt::Debug for Fe<M, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x")?;
        self.to_limbs().iter().rev().try_for_each(|limb| write!(f, "{limb:016x}"))
    }
}

/// Fixed-length encodings, which cannot be generic over `N` yet.
macro_rules! encodings {
    ($limbs:literal) => {
        impl<M: Modulus<$limbs>> Fe<M, $limbs> {
            /// Big-endian encoding of the number below the prime.
            pub fn to_be_bytes(&self) -> [u8; 8 * $limbs] {
                let mut bytes = [0; 8 * $limbs];
                limbs::to_be_bytes(&self.to_limbs(), &mut bytes);
                bytes
            }

            /// Decodes a big-endian number; `None` if it is not below the prime.
            pub fn from_be_bytes(bytes: &[u8; 8 * $limbs]) -> Option<Self> {
                Self::from_limbs(limbs::from_be_bytes(bytes))
            }
        }
    };
}

encodings!(4);
encodings!(6);
