//! Verifying single things given the outputs they spend, without a chain: a transaction's scripts, a whole block.

mod block;
mod prevouts;
mod spend_type;

pub use block::{BlockVerifier, SpendSums, VerifyBlockError};
pub use prevouts::{PrevoutsError, parse_prevouts};
pub use spend_type::{SpendType, TypeCount, TypeCounts};

use assay_consensus::script::{Flags, Interpreter, ScriptError, TxContext};
use assay_wire::{Tx, TxOut};

use crate::checker::ImmediateChecker;

/// Verifies the scripts of every input of a transaction in isolation: no merkle root, no amounts, no context.
///
/// `spent` are the outputs that the inputs spend, in input order; `flags` are the script rules, for a block those of
/// [`ChainParams::block_script_flags`](assay_consensus::params::ChainParams::block_script_flags). Returns the number of
/// signature checks.
///
/// # Errors
/// The first input that fails, and why.
///
/// # Panics
/// When there is not exactly one spent output per input.
pub fn verify_tx_scripts(
    tx: Tx<'_>,
    spent: &[TxOut<'_>],
    flags: Flags,
) -> Result<u64, (usize, ScriptError)> {
    let context = TxContext::new(tx, spent);
    let mut interpreter = Interpreter::new();
    let mut sig_checks = 0;
    for input in 0..tx.input_count() {
        let stats = interpreter
            .verify_input(&context, input, flags, &mut ImmediateChecker)
            .map_err(|error| (input, error))?;
        sig_checks += u64::from(stats.sig_checks);
    }
    Ok(sig_checks)
}
