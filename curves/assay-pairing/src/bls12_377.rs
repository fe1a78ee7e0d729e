//! BLS12-377: parameters.

use crate::field::{Fe, Modulus, primes};
use crate::tower::{TowerModulus, Twist};

/// The parameter x.
pub const X: u64 = 0x8508_c000_0000_0001;

/// Marker type of the curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Parameters;

/// Modulus of the base field: `p = (x - 1)^2 (x^4 - x^2 + 1) / 3 + x`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FpModulus;

impl Modulus<6> for FpModulus {
    const MODULUS: [u64; 6] = primes::BLS12_377;
}

/// As p is 1 modulo 4, the square of u cannot be -1.
impl TowerModulus<6> for FpModulus {
    const NON_RESIDUE: u64 = 5;
    const XI: u64 = 0;
    const B: u64 = 1;
    const TWIST: Twist = Twist::D;
}

/// Modulus of the scalar field: `r = x^4 - x^2 + 1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FrModulus;

impl Modulus<4> for FrModulus {
    const MODULUS: [u64; 4] = [
        0x0a11_8000_0000_0001,
        0x59aa_76fe_d000_0001,
        0x60b4_4d1e_5c37_b001,
        0x12ab_655e_9a2c_a556,
    ];
}

/// The base field.
pub type Fp = Fe<FpModulus, 6>;
/// The scalar field.
pub type Fr = Fe<FrModulus, 4>;
