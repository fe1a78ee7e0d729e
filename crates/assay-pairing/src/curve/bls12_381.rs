//! The groups of BLS12-381, with cofactors.

use super::scalar::{Short, divide, low, odd_multiples, reduced, sum};
use super::{Affine, Curve, Jacobian};
use crate::bls12_381::{Fp, FpModulus, Fr, X};
use crate::field::Modulus as _;
use crate::limbs;
use crate::tower::{Fp2, TowerField as _};

/// The group over the base field, on `y^2 = x^3 + 4`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct G1;

/// The group over Fp2, on the twist `y^2 = x^3 + 4 (1 + u)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct G2;

const FOUR: Fp = Fp::from_u64(4);

/// The square of x.
const X2: u128 = X as u128 * X as u128;

const fn fp(limbs: [u64; 6]) -> Fp {
    Fp::from_limbs(limbs).expect("a constant below the prime")
}

impl G1 {
    /// A cube root of one, with `(beta x, y) = -x^2 (x, y)` for the parameter x and points of the group.
    pub(crate) const BETA: Fp = {
        let third = limbs::divide_small(&limbs::minus_small(&FpModulus::MODULUS, 1), 3).0;
        Fp::from_u64(2).const_power(&third)
    };

    pub(crate) fn endomorphism(point: &Jacobian<Self>) -> Jacobian<Self> {
        Jacobian { x: point.x * Self::BETA, ..*point }
    }
}

impl Curve for G1 {
    type Base = Fp;
    const ORDER: [u64; 4] = Fr::MODULUS;
    const B: Fp = FOUR;
    const GENERATOR: Affine<Self> = Affine::new(
        fp([
            0xfb3a_f00a_db22_c6bb,
            0x6c55_e83f_f97a_1aef,
            0xa14e_3a3f_171b_ac58,
            0xc368_8c4f_9774_b905,
            0x2695_638c_4fa9_ac0f,
            0x17f1_d3a7_3197_d794,
        ]),
        fp([
            0x0caa_2329_46c5_e7e1,
            0xd03c_c744_a288_8ae4,
            0x00db_18cb_2c04_b3ed,
            0xfcf5_e095_d5d0_0af6,
            0xa09e_30ed_741d_8ae4,
            0x08b3_f481_e3aa_a0f1,
        ]),
    );

    /// Scott, "A note on group membership tests for G1, G2 and GT on BLS pairing-friendly curves" (2021): the
    /// endomorphism acts as `-x^2`.
    fn is_in_group(point: &Affine<Self>) -> bool {
        let point = Jacobian::from(*point);
        let x2 = point.multiply_slowly(&[X]).multiply_slowly(&[X]);
        Self::endomorphism(&point) == -x2
    }

    /// `k = k1 x^2 + k0`, both below 2^128.
    fn multiply(point: &Jacobian<Self>, scalar: &[u64; 4]) -> Jacobian<Self> {
        let (quotient, rest) = divide(&reduced(scalar, &Self::ORDER), X2);
        let multiples = odd_multiples(point);
        let others = multiples.map(|multiple| -Self::endomorphism(&multiple));
        sum([Short::new(rest), Short::new(low(&quotient))], &[multiples, others])
    }
}

impl G2 {
    /// Untwist, Frobenius, twist: acts as the parameter x on the group.
    pub(crate) fn endomorphism(point: &Jacobian<Self>) -> Jacobian<Self> {
        Jacobian {
            x: point.x.conjugate() * Fp::FROBENIUS_INVERSES[2],
            y: point.y.conjugate() * Fp::FROBENIUS_INVERSES[3],
            z: point.z.conjugate(),
        }
    }
}

impl Curve for G2 {
    type Base = Fp2<Fp>;
    const ORDER: [u64; 4] = Fr::MODULUS;
    const B: Fp2<Fp> = Fp2 { c0: FOUR, c1: FOUR };
    const GENERATOR: Affine<Self> = Affine::new(
        Fp2 {
            c0: fp([
                0xd480_56c8_c121_bdb8,
                0x0bac_0326_a805_bbef,
                0xb451_0b64_7ae3_d177,
                0xc6e4_7ad4_fa40_3b02,
                0x2608_0527_2dc5_1051,
                0x024a_a2b2_f08f_0a91,
            ]),
            c1: fp([
                0xe5ac_7d05_5d04_2b7e,
                0x334c_f112_1394_5d57,
                0xb5da_61bb_dc7f_5049,
                0x596b_d0d0_9920_b61a,
                0x7dac_d3a0_8827_4f65,
                0x13e0_2b60_5271_9f60,
            ]),
        },
        Fp2 {
            c0: fp([
                0xe193_5486_08b8_2801,
                0x923a_c9cc_3bac_a289,
                0x6d42_9a69_5160_d12c,
                0xadfd_9baa_8cbd_d3a7,
                0x8cc9_cdc6_da2e_351a,
                0x0ce5_d527_727d_6e11,
            ]),
            c1: fp([
                0xaaa9_075f_f05f_79be,
                0x3f37_0d27_5cec_1da1,
                0x2674_92ab_572e_99ab,
                0xcb3e_287e_85a7_63af,
                0x32ac_d2b0_2bc2_8b99,
                0x0606_c4a0_2ea7_34cc,
            ]),
        },
    );

    /// Scott (2021): psi acts as x, which is negative.
    fn is_in_group(point: &Affine<Self>) -> bool {
        let point = Jacobian::from(*point);
        Self::endomorphism(&point) == -point.multiply_slowly(&[X])
    }

    /// `k = k0 + k1 |x| + k2 |x|^2 + k3 |x|^3`, all below 2^64, and psi acts as `-|x|`.
    fn multiply(point: &Jacobian<Self>, scalar: &[u64; 4]) -> Jacobian<Self> {
        let (upper, lower) = divide(&reduced(scalar, &Self::ORDER), X2);
        let (upper, x) = (low(&upper), u128::from(X));
        let numbers = [lower % x, lower / x, upper % x, upper / x].map(Short::new);
        let first = odd_multiples(point);
        let second = first.map(|multiple| -Self::endomorphism(&multiple));
        let third = second.map(|multiple| -Self::endomorphism(&multiple));
        let fourth = third.map(|multiple| -Self::endomorphism(&multiple));
        sum(numbers, &[first, second, third, fourth])
    }
}
