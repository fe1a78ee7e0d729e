//! The groups of BN254-Nogami. The first has no cofactor.

use super::glv::Lattice;
use super::{bn, prime_order};
use crate::bn254_nogami::{Fp, FpModulus, FrModulus, Parameters, X};
use crate::field::Modulus as _;
use crate::tower::{Fp2, TowerModulus as _};

/// The group over the base field, on `y^2 = x^3 + 2`.
pub type G1 = prime_order::PrimeOrder<Parameters>;

/// The group over Fp2, on the twist `y^2 = x^3 + 2 / (1 + u)`, which is `x^3 + 1 - u`.
pub type G2 = bn::G2<Parameters>;

impl prime_order::Parameters for Parameters {
    type Base = FpModulus;
    type Scalar = FrModulus;
    const B: u64 = FpModulus::B;
    const BETA_ROOT: u64 = 2;
    const LATTICE: Lattice = bn::lattice(&FrModulus::MODULUS, X, true);
    const GENERATOR: [Fp; 2] = [Fp::ONE.negated(), Fp::ONE];
}

const fn fp(limbs: [u64; 4]) -> Fp {
    Fp::from_limbs(limbs).expect("a constant below the prime")
}

impl bn::Parameters for Parameters {
    const X: u64 = X;
    const IS_NEGATIVE: bool = true;
    /// The point (-u, 1) times the cofactor, as in Aranha et al., "Faster explicit formulas for computing pairings over ordinary
    /// curves" (2011).
    const G2: [Fp2<Fp>; 2] = [
        Fp2 {
            c0: fp([
                0x91ee_4224_c803_fb2b,
                0xa464_8bbb_4898_bf0d,
                0xeb8d_8c7e_8c61_edb6,
                0x061a_10bb_519e_b62f,
            ]),
            c1: fp([
                0x0d8c_34c1_e7d5_4cf3,
                0x1f4d_746b_ae37_84b7,
                0x310a_a78c_5982_aa5b,
                0x0516_aaf9_ba73_7833,
            ]),
        },
        Fp2 {
            c0: fp([
                0x19f0_e078_91cd_2b9a,
                0x29bd_0ae6_bdbe_09bd,
                0x9a90_e096_698c_8223,
                0x0218_97a0_6baf_9343,
            ]),
            c1: fp([
                0x8a2d_1aec_6b3a_ce9b,
                0xb090_06ff_d739_c957,
                0x8f6d_4456_f5f3_8d37,
                0x0ebb_2b0e_7c8b_1526,
            ]),
        },
    ];
}
