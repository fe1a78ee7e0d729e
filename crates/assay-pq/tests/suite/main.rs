//! Integration tests.

mod acvp;
mod differential;
mod ml_dsa;
mod shrincs;
mod signer;
