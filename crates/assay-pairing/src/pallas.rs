//! Pallas: parameters. Its scalar field is the base field of Vesta.

use crate::field::{Fe, Modulus};

/// Names the curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Parameters;

/// Names the base field: `p = 2^254 + 0x2246_98fc_094c_f91b_992d_30ed_0000_0001`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FpModulus;

impl Modulus<4> for FpModulus {
    const MODULUS: [u64; 4] =
        [0x992d_30ed_0000_0001, 0x2246_98fc_094c_f91b, 0, 0x4000_0000_0000_0000];
}

/// Names the scalar field: `r = 2^254 + 0x2246_98fc_0994_a8dd_8c46_eb21_0000_0001`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FrModulus;

impl Modulus<4> for FrModulus {
    const MODULUS: [u64; 4] =
        [0x8c46_eb21_0000_0001, 0x2246_98fc_0994_a8dd, 0, 0x4000_0000_0000_0000];
}

/// The base field.
pub type Fp = Fe<FpModulus, 4>;
/// The scalar field.
pub type Fr = Fe<FrModulus, 4>;
