//! Subjects of the plan `pairing-curves` that are Rust crates: each answers orders to prepare an operation, and to
//! repeat it by its own clock. The formats of inputs and answers are the same for all subjects, here and in Go.

pub mod arkworks;
pub mod assay;
mod constantine;
pub mod derive;
pub mod differential;
pub mod evm;
mod evm_inputs;
pub mod interleaved;
pub mod kzg;
pub mod pools;
pub mod secp;
pub mod session;
pub mod supranational;
pub mod table;
pub mod trace;

pub use session::{CONSTANTINE, SUBJECTS, Session, Subject, constantine, subject};
