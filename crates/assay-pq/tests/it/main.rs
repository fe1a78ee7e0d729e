//! Tests from outside.

mod acvp;
mod differential;
mod signer;
