//! Vesta: parameters. Its fields are those of Pallas, the other way round.

pub use crate::pallas::{Fp as Fr, FpModulus as FrModulus, Fr as Fp, FrModulus as FpModulus};

/// Names the curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Parameters;
