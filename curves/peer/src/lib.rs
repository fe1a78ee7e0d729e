//! Subjects of the plan `pairing-curves` that are Rust crates: each answers orders to prepare an operation, and to do it so
//! many times by its own clock. What inputs are and what answers look like is the same for all subjects, here and in Go.

pub mod arkworks;
pub mod assay;
mod constantine;
pub mod derive;
pub mod differential;
pub mod evm;
pub mod kzg;
pub mod pools;
pub mod secp;
pub mod session;
pub mod supranational;
pub mod table;
pub mod trace;
pub mod turns;

pub use session::{CONSTANTINE, SUBJECTS, Session, Subject, constantine, subject};
