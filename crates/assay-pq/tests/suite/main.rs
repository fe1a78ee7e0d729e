//! Integration tests.

mod acvp;
mod differential;
mod ml_dsa;
mod signer;
