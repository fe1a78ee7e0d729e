//! Verifies a block with given spent outputs, without a chain.

mod block;
mod prevouts;
mod scripts;
mod spend_type;

pub use block::{BlockVerifier, SpendSums, VerifyBlockError};
pub use prevouts::{PrevoutsError, parse_prevouts};
pub use spend_type::{SpendType, TypeCount, TypeCounts};
