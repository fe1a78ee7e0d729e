//! Pallas and Vesta (Hopwood, "The Pasta curves for Halo 2 and beyond", 2020): each has the other's field for its scalars.

use super::glv::Lattice;
use super::prime_order;
use crate::field::{Fe, Modulus as _};
use crate::{pallas, vesta};

/// The point (-1, 2).
const fn generator<M: crate::field::Modulus<4>>() -> [Fe<M, 4>; 2] {
    [Fe::ONE.negated(), Fe::from_u64(2)]
}

impl prime_order::Parameters for pallas::Parameters {
    type Base = pallas::FpModulus;
    type Scalar = pallas::FrModulus;
    const B: u64 = 5;
    const BETA_ROOT: u64 = 2;
    const LATTICE: Lattice = Lattice::new(
        &pallas::FrModulus::MODULUS,
        0x49e6_9d16_40a8_9953_8cb1_2793_0000_0000,
        0x49e6_9d16_40f0_4915_7fca_e1c7_0000_0001,
        false,
    );
    const GENERATOR: [pallas::Fp; 2] = generator();
}

impl prime_order::Parameters for vesta::Parameters {
    type Base = vesta::FpModulus;
    type Scalar = vesta::FrModulus;
    const B: u64 = 5;
    const BETA_ROOT: u64 = 4;
    const LATTICE: Lattice = Lattice::new(
        &vesta::FrModulus::MODULUS,
        0x49e6_9d16_40a8_9953_8cb1_2793_0000_0001,
        0x49e6_9d16_40f0_4915_7fca_e1c7_0000_0000,
        false,
    );
    const GENERATOR: [vesta::Fp; 2] = generator();
}
