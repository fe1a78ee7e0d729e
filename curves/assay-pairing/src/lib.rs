//! Pairing-friendly curves BLS12-381, BLS12-377, BN254 and BN254-Nogami: fields, towers, groups, pairings,
//! multi-scalar multiplication in vectors of lanes, and protocols on the first and the third.
//!
//! ```
//! use assay_pairing::curve::{BlsG1, BlsG2, Curve};
//! use assay_pairing::pairing::{Bls12381, Pairing};
//!
//! // e(6 P, Q) = e(2 P, 3 Q)
//! let (p, q) = (BlsG1::GENERATOR, BlsG2::GENERATOR);
//! let left = Bls12381::pair(&p.multiply(&[6, 0, 0, 0]).to_affine(), &q);
//! let right = Bls12381::pair(
//!     &p.multiply(&[2, 0, 0, 0]).to_affine(),
//!     &q.multiply(&[3, 0, 0, 0]).to_affine(),
//! );
//! assert_eq!(left, right);
//! ```
//!
//! Everything is pure: no files, threads, clocks or environment (except `assay_hash::cpu`, which
//! selects kernels). Values are exact, and non-canonical encodings are rejected.
//!
//! Only signing is constant time, within the limits documented at [`bls::SecretKey`]; other scalars and points are
//! public. Deliberately absent: randomness, key derivation, and hashing to curves other than BLS12-381.
#![deny(unsafe_code)]

mod backend;
pub mod bls;
pub mod curve;
pub mod encoding;
pub mod evm;
pub mod field;
pub mod hash_to_curve;
pub mod kzg;
mod lanes;
mod limbs;
pub mod membership;
pub mod msm;
mod multiples;
pub mod pairing;
mod parameters;
#[cfg(test)]
mod testing;
pub mod tower;
mod weights;

pub use parameters::{bls12_377, bls12_381, bn254, bn254_nogami};
