//! The groups of BN254. The first has no cofactor.

use super::glv::Lattice;
use super::scalar::{Short, divide, low, odd_multiples, reduced, sum};
use super::{Affine, Curve, Jacobian, prime_order};
use crate::bn254::{Fp, FpModulus, Fr, FrModulus, Parameters, X};
use crate::field::Modulus as _;
use crate::tower::{Fp2, TowerField as _, TowerModulus as _};

/// The group over the base field, on `y^2 = x^3 + 3`.
pub type G1 = prime_order::PrimeOrder<Parameters>;

/// The group over Fp2, on the twist `y^2 = x^3 + 3 / (9 + u)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct G2;

impl prime_order::Parameters for Parameters {
    type Base = FpModulus;
    type Scalar = FrModulus;
    const B: u64 = FpModulus::B;
    const BETA_ROOT: u64 = 3;
    /// Of `6 x^2 + 2 x` and `2 x + 1`.
    const LATTICE: Lattice = Lattice::new(
        &FrModulus::MODULUS,
        6 * X as u128 * X as u128 + 2 * X as u128,
        2 * X as u128 + 1,
        false,
    );
    const GENERATOR: [Fp; 2] = [Fp::ONE, Fp::from_u64(2)];
}

const THREE: Fp = Fp::from_u64(3);

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
