//! The groups of BN254. The first has no cofactor.

use super::scalar::{Short, divide, low, odd_multiples, reduced, sum};
use super::{Affine, Curve, Jacobian};
use crate::bn254::{Fp, FpModulus, Fr, X};
use crate::field::Modulus as _;
use crate::limbs;
use crate::tower::{Fp2, TowerField as _};

/// The group over the base field, on `y^2 = x^3 + 3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct G1;

/// The group over Fp2, on the twist `y^2 = x^3 + 3 / (9 + u)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct G2;

const THREE: Fp = Fp::from_u64(3);

/// A cube root of one, with `(beta x, y) = lambda (x, y)` for `lambda = (36 x^3 + 18 x^2 + 6 x + 1)^2`.
const BETA: Fp = {
    let third = limbs::divide_small(&limbs::minus_small(&FpModulus::MODULUS, 1), 3).0;
    Fp::from_u64(3).const_power(&third)
};

/// `2 x + 1`, `6 x^2 + 2 x` and `6 x^2 + 4 x + 1`. Pairs (a, b) with `a + b lambda = 0` modulo the order have the
/// basis `(SHORT, LONG + SHORT)`, `(LONG, -SHORT)`, of determinant `-r`.
const SHORT: u128 = 2 * X as u128 + 1;
const LONG: u128 = 6 * X as u128 * X as u128 + 2 * X as u128;
const LONG_AND_SHORT: u128 = LONG + SHORT;

/// `floor(2^256 number / r)` for a number below r.
const fn per_order(number: u128) -> [u64; 4] {
    let (mut rest, mut quotient, mut i) = (wide(number), [0; 4], 0);
    while i < 256 {
        let (twice, _) = limbs::add(&rest, &rest);
        let (difference, is_below) = limbs::sub(&twice, &Fr::MODULUS);
        rest = if is_below { twice } else { difference };
        quotient = limbs::add(&quotient, &quotient).0;
        quotient[0] |= !is_below as u64;
        i += 1;
    }
    quotient
}

const fn wide(number: u128) -> [u64; 4] {
    [number as u64, (number >> 64) as u64, 0, 0]
}

/// All eight limbs of the product.
fn product(a: &[u64; 4], b: &[u64; 4]) -> [u64; 8] {
    let mut product = [0; 8];
    for (i, a) in a.iter().enumerate() {
        let mut carry = 0;
        for (j, b) in b.iter().enumerate() {
            (product[i + j], carry) = limbs::multiply_add(product[i + j], *a, *b, carry);
        }
        product[i + 4] = carry;
    }
    product
}

/// `k = k0 + k1 lambda` modulo the order, for k below the order. Both are below 2^128 in magnitude: the quotients
/// are at most two below the exact ones, so k0 and k1 are at most two basis vectors long.
fn split(k: &[u64; 4]) -> [Short; 2] {
    let quotient = |number_per_order: &[u64; 4]| {
        let [.., a, b, c, d] = product(k, number_per_order);
        [a, b, c, d]
    };
    let first = quotient(&const { per_order(SHORT) });
    let second = quotient(&const { per_order(LONG_AND_SHORT) });
    // Modulo 2^256, where the numbers are small and signed.
    let times = |a: &[u64; 4], b: u128| {
        let [a, b, c, d, ..] = product(a, &wide(b));
        [a, b, c, d]
    };
    let minus = |a: &[u64; 4], b: &[u64; 4]| limbs::sub(a, b).0;
    let k0 = minus(&minus(k, &times(&first, SHORT)), &times(&second, LONG));
    let k1 = minus(&times(&second, SHORT), &times(&first, LONG_AND_SHORT));
    [k0, k1].map(|number| {
        let is_negative = number[3] >> 63 == 1;
        let magnitude = if is_negative { minus(&[0; 4], &number) } else { number };
        Short { magnitude: low(&magnitude), is_negative }
    })
}

impl G1 {
    pub(crate) fn endomorphism(point: &Jacobian<Self>) -> Jacobian<Self> {
        Jacobian { x: point.x * BETA, ..*point }
    }
}

impl Curve for G1 {
    type Base = Fp;
    const ORDER: [u64; 4] = Fr::MODULUS;
    const B: Fp = THREE;
    const GENERATOR: Affine<Self> = Affine::new(Fp::ONE, Fp::from_u64(2));

    /// The curve has as many points as the group.
    fn is_in_group(_: &Affine<Self>) -> bool {
        true
    }

    fn multiply(point: &Jacobian<Self>, scalar: &[u64; 4]) -> Jacobian<Self> {
        let multiples = odd_multiples(point);
        let others = multiples.map(|multiple| Self::endomorphism(&multiple));
        sum(split(&reduced(scalar, &Self::ORDER)), &[multiples, others])
    }
}

const fn fp(limbs: [u64; 4]) -> Fp {
    Fp::from_limbs(limbs).expect("a constant below the prime")
}

impl G2 {
    /// Untwist, Frobenius, twist: acts as `6 x^2` on the group.
    pub(crate) fn endomorphism(point: &Jacobian<Self>) -> Jacobian<Self> {
        Jacobian {
            x: point.x.conjugate() * Fp::FROBENIUS[2],
            y: point.y.conjugate() * Fp::FROBENIUS[3],
            z: point.z.conjugate(),
        }
    }
}

impl Curve for G2 {
    type Base = Fp2<Fp>;
    const ORDER: [u64; 4] = Fr::MODULUS;
    const B: Fp2<Fp> = {
        let Fp2 { c0, c1 } = Fp::XI_INVERSE;
        Fp2 { c0: c0.multiply(&THREE), c1: c1.multiply(&THREE) }
    };
    const GENERATOR: Affine<Self> = Affine::new(
        Fp2 {
            c0: fp([
                0x46de_bd5c_d992_f6ed,
                0x6743_22d4_f75e_dadd,
                0x426a_0066_5e5c_4479,
                0x1800_deef_121f_1e76,
            ]),
            c1: fp([
                0x97e4_85b7_aef3_12c2,
                0xf1aa_4933_35a9_e712,
                0x7260_bfb7_31fb_5d25,
                0x198e_9393_920d_483a,
            ]),
        },
        Fp2 {
            c0: fp([
                0x4ce6_cc01_66fa_7daa,
                0xe3d1_e769_0c43_d37b,
                0x4aab_7180_8dcb_408f,
                0x12c8_5ea5_db8c_6deb,
            ]),
            c1: fp([
                0x55ac_dadc_d122_975b,
                0xbc4b_3133_70b3_8ef3,
                0xec9e_99ad_690c_3395,
                0x0906_89d0_585f_f075,
            ]),
        },
    );

    /// `(x + 1) P + psi(x P) + psi^2(x P) = psi^3(2 x P)` (Dai, Lin, Zhao, Zhou, "Fast subgroup membership testings
    /// for G1, G2 and GT on pairing-friendly curves", 2022, section 3).
    fn is_in_group(point: &Affine<Self>) -> bool {
        let point = Jacobian::from(*point);
        let psi = Self::endomorphism;
        let multiple = point.multiply_slowly(&[X]);
        let left = point + multiple + psi(&multiple) + psi(&psi(&multiple));
        left == psi(&psi(&psi(&multiple.double())))
    }

    /// `k = k0 + k1 6 x^2`, both below 2^128.
    fn multiply(point: &Jacobian<Self>, scalar: &[u64; 4]) -> Jacobian<Self> {
        const SIX_X2: u128 = 6 * X as u128 * X as u128;
        let (quotient, rest) = divide(&reduced(scalar, &Self::ORDER), SIX_X2);
        let multiples = odd_multiples(point);
        let others = multiples.map(|multiple| Self::endomorphism(&multiple));
        sum([Short::new(rest), Short::new(low(&quotient))], &[multiples, others])
    }
}
