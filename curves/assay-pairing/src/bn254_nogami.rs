//! The 254-bit curve of Barreto and Naehrig that Nogami, Akane, Sakemi, Kato and Morikawa (2008) proposed:
//! parameters. The name is that of other libraries; it is also called BN254N and `BN_P254`.

use crate::field::{Fe, Modulus, primes};
use crate::tower::{TowerModulus, Twist};

/// The absolute value of the parameter x, which is negative: `2^62 + 2^55 + 1`.
pub const X: u64 = 1 << 62 | 1 << 55 | 1;

/// Marker type of the curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Parameters;

/// Modulus of the base field: `p = 36 x^4 + 36 x^3 + 24 x^2 + 6 x + 1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FpModulus;

impl Modulus<4> for FpModulus {
    const MODULUS: [u64; 4] = primes::BN254_NOGAMI;
}

impl TowerModulus<4> for FpModulus {
    const NON_RESIDUE: u64 = 1;
    const XI: u64 = 1;
    const B: u64 = 2;
    const TWIST: Twist = Twist::D;
}

/// Modulus of the scalar field: `r = 36 x^4 + 36 x^3 + 18 x^2 + 6 x + 1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FrModulus;

impl Modulus<4> for FrModulus {
    const MODULUS: [u64; 4] = [
        0xa100_0000_0000_000d,
        0xff9f_8000_0000_0010,
        0xba34_4d80_0000_0007,
        0x2523_6482_4000_0001,
    ];
}

/// The base field.
pub type Fp = Fe<FpModulus, 4>;
/// The scalar field.
pub type Fr = Fe<FrModulus, 4>;
