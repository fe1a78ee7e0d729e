//! Address 0x100: signatures over P-256, also called secp256r1 (FIPS 186-5; EIP-7951).
//!
//! Its prime and its order have no spare bit in four limbs, which the fields here require, so elements have five.

use super::exactly;
use crate::field::{Fe, Field as _, Modulus};
use crate::limbs;

pub const P256_VERIFY_GAS: u64 = 6_900;

const INPUT_BYTES: usize = 160;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Prime;

impl Modulus<5> for Prime {
    /// `2^256 - 2^224 + 2^192 + 2^96 - 1`.
    const MODULUS: [u64; 5] = [u64::MAX, 0xffff_ffff, 0, 0xffff_ffff_0000_0001, 0];
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Order;

impl Modulus<5> for Order {
    const MODULUS: [u64; 5] =
        [0xf3b9_cac2_fc63_2551, 0xbce6_faad_a717_9e84, u64::MAX, 0xffff_ffff_0000_0000, 0];
}

type Fp = Fe<Prime, 5>;
type Scalar = Fe<Order, 5>;

const B: Fp = Fp::from_hex("5ac635d8aa3a93e7b3ebbd55769886bc651d06b0cc53b0f63bce3c3e27d2604b");

const GENERATOR: Point = Point {
    x: Fp::from_hex("6b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296"),
    y: Fp::from_hex("4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5"),
    z: Fp::ONE,
};

/// True if a signature is valid: of the hash, by r and s, under the key with coordinates x and y,
/// 32 bytes each. Non-canonical input is invalid too; the precompile never fails.
pub fn p256_verify(input: &[u8]) -> bool {
    exactly(input).is_ok_and(|input| is_valid(input) == Some(true))
}

/// `None` if an input is out of range.
fn is_valid(input: &[u8; INPUT_BYTES]) -> Option<bool> {
    let number = |place: usize| limbs::from_be_bytes::<5>(&input[32 * place..][..32]);
    let [hash, r_limbs, s] = [0, 1, 2].map(number);
    let (r, s) = (Scalar::from_limbs(r_limbs)?, Scalar::from_limbs(s)?);
    let key = Point { x: Fp::from_limbs(number(3))?, y: Fp::from_limbs(number(4))?, z: Fp::ONE };
    if r.is_zero() || !key.is_on_curve() {
        return None;
    }
    let inverse = s.inverse()?;
    let mut hash_below = hash;
    if !limbs::less(&hash, &Order::MODULUS) {
        hash_below = limbs::sub(&hash, &Order::MODULUS).0;
    }
    let hash = Scalar::from_limbs(hash_below)?;
    let sum = sum_of_products(
        [(hash * inverse).to_limbs(), (r * inverse).to_limbs()],
        [&GENERATOR, &key],
    );
    if sum.z.is_zero() {
        return Some(false);
    }
    // x = X / Z^2 is r modulo the order: r itself, or r plus the order if that is below the prime.
    let square = sum.z.square();
    let has_x = |x: [u64; 5]| Fp::from_limbs(x).is_some_and(|x| x * square == sum.x);
    Some(has_x(r_limbs) || has_x(limbs::add(&r_limbs, &Order::MODULUS).0))
}

/// A point in Jacobian coordinates; infinity has Z = 0.
#[derive(Clone, Copy, Debug)]
struct Point {
    x: Fp,
    y: Fp,
    z: Fp,
}

impl Point {
    const INFINITY: Self = Self { x: Fp::ONE, y: Fp::ONE, z: Fp::ZERO };

    /// `y^2 = x^3 - 3 x + b`, of affine points; x = y = 0 is not on it.
    fn is_on_curve(&self) -> bool {
        let three = self.x.double() + self.x;
        self.y.square() == self.x.square() * self.x - three + B
    }

    /// Bernstein 2001: dbl-2001-b.
    fn double(&self) -> Self {
        let delta = self.z.square();
        let gamma = self.y.square();
        let beta = self.x * gamma;
        let alpha = (self.x - delta) * (self.x + delta);
        let alpha = alpha.double() + alpha;
        let four_beta = beta.double().double();
        let x = alpha.square() - four_beta.double();
        let z = (self.y + self.z).square() - gamma - delta;
        let y = alpha * (four_beta - x) - gamma.square().double().double().double();
        Self { x, y, z }
    }

    /// Bernstein and Lange 2007: add-2007-bl.
    fn plus(&self, other: &Self) -> Self {
        if self.z.is_zero() {
            return *other;
        }
        if other.z.is_zero() {
            return *self;
        }
        let (z1, z2) = (self.z.square(), other.z.square());
        let (u, s) = (self.x * z2, self.y * other.z * z2);
        let h = other.x * z1 - u;
        let r = (other.y * self.z * z1 - s).double();
        if h.is_zero() {
            return if r.is_zero() { self.double() } else { Self::INFINITY };
        }
        let i = h.double().square();
        let j = h * i;
        let v = u * i;
        let x = r.square() - j - v.double();
        let y = r * (v - x) - (s * j).double();
        Self { x, y, z: ((self.z + other.z).square() - z1 - z2) * h }
    }
}

/// Bits of a digit, which are odd and below 2^(WIDTH - 1) in magnitude.
const WIDTH: usize = 5;

/// Number of digits of numbers of 256 bits.
const PLACES: usize = 257;

/// `a P + b Q` by Straus's method, with digits in non-adjacent form.
fn sum_of_products(numbers: [[u64; 5]; 2], points: [&Point; 2]) -> Point {
    let digits = numbers.map(|number| limbs::non_adjacent::<PLACES>(&number, WIDTH));
    let multiples = points.map(|point| {
        let twice = point.double();
        let mut multiples = [*point; 1 << (WIDTH - 2)];
        for k in 1..multiples.len() {
            multiples[k] = multiples[k - 1].plus(&twice);
        }
        multiples
    });
    let mut sum = Point::INFINITY;
    for place in (0..PLACES).rev() {
        if !sum.z.is_zero() {
            sum = sum.double();
        }
        for (digits, multiples) in digits.iter().zip(&multiples) {
            let digit = digits[place];
            if digit != 0 {
                let multiple = multiples[usize::from(digit.unsigned_abs()) / 2];
                let y = if digit < 0 { -multiple.y } else { multiple.y };
                sum = sum.plus(&Point { y, ..multiple });
            }
        }
    }
    sum
}
