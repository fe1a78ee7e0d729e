//! BLS12-381: parameters.

use crate::field::{Fe, Modulus, primes};
use crate::tower::{TowerModulus, Twist};

/// The absolute value of the parameter x, which is negative.
pub const X: u64 = 0xd201_0000_0001_0000;

/// Marker type of the curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Parameters;

/// Modulus of the base field: `p = (x - 1)^2 (x^4 - x^2 + 1) / 3 + x`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FpModulus;

impl Modulus<6> for FpModulus {
    const MODULUS: [u64; 6] = primes::BLS12_381;
}

impl TowerModulus<6> for FpModulus {
    const NON_RESIDUE: u64 = 1;
    const XI: u64 = 1;
    const B: u64 = 4;
    const TWIST: Twist = Twist::M;
}

/// Modulus of the scalar field: `r = x^4 - x^2 + 1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FrModulus;

impl Modulus<4> for FrModulus {
    const MODULUS: [u64; 4] = [
        0xffff_ffff_0000_0001,
        0x53bd_a402_fffe_5bfe,
        0x3339_d808_09a1_d805,
        0x73ed_a753_299d_7d48,
    ];
}

/// The base field.
pub type Fp = Fe<FpModulus, 6>;
/// The scalar field.
pub type Fr = Fe<FrModulus, 4>;
