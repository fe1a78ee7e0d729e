//! BN254 (`alt_bn128` of the Ethereum virtual machine): parameters.

use crate::field::{Fe, Modulus, primes};
use crate::tower::{TowerModulus, Twist};

/// The parameter x.
pub const X: u64 = 0x44e9_92b4_4a69_09f1;

/// Marker type of the curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Parameters;

/// Modulus of the base field: `p = 36 x^4 + 36 x^3 + 24 x^2 + 6 x + 1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FpModulus;

impl Modulus<4> for FpModulus {
    const MODULUS: [u64; 4] = primes::BN254;
}

impl TowerModulus<4> for FpModulus {
    const NON_RESIDUE: u64 = 1;
    const XI: u64 = 9;
    const B: u64 = 3;
    const TWIST: Twist = Twist::D;
}

/// Modulus of the scalar field: `r = 36 x^4 + 36 x^3 + 18 x^2 + 6 x + 1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FrModulus;

impl Modulus<4> for FrModulus {
    const MODULUS: [u64; 4] = [
        0x43e1_f593_f000_0001,
        0x2833_e848_79b9_7091,
        0xb850_45b6_8181_585d,
        0x3064_4e72_e131_a029,
    ];
}

/// The base field.
pub type Fp = Fe<FpModulus, 4>;
/// The scalar field.
pub type Fr = Fe<FrModulus, 4>;
