//! The groups of BN254. The first has no cofactor.

use super::glv::Lattice;
use super::{bn, prime_order};
use crate::bn254::{Fp, FpModulus, FrModulus, Parameters, X};
use crate::field::Modulus as _;
use crate::tower::{Fp2, TowerModulus as _};

/// The group over the base field, on `y^2 = x^3 + 3`.
pub type G1 = prime_order::PrimeOrder<Parameters>;

/// The group over Fp2, on the twist `y^2 = x^3 + 3 / (9 + u)`.
pub type G2 = bn::G2<Parameters>;

impl prime_order::Parameters for Parameters {
    type Base = FpModulus;
    type Scalar = FrModulus;
    const B: u64 = FpModulus::B;
    const BETA_ROOT: u64 = 3;
    const LATTICE: Lattice = bn::lattice(&FrModulus::MODULUS, X, false);
    const GENERATOR: [Fp; 2] = [Fp::ONE, Fp::from_u64(2)];
}

const fn fp(limbs: [u64; 4]) -> Fp {
    Fp::from_limbs(limbs).expect("a constant below the prime")
}

impl bn::Parameters for Parameters {
    const X: u64 = X;
    const IS_NEGATIVE: bool = false;
    const G2: [Fp2<Fp>; 2] = [
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
    ];
}
