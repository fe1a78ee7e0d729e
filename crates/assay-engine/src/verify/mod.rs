//! Verifies a transaction's scripts or a whole block with given spent outputs, without a chain.

mod block;
mod prevouts;
mod scripts;
mod spend_type;

pub use block::{BlockVerifier, SpendSums, VerifyBlockError};
pub use prevouts::{PrevoutsError, parse_prevouts};
pub use spend_type::{SpendType, TypeCount, TypeCounts};

use std::ops::Range;

use assay_consensus::script::{Flags, Interpreter, ScriptError, SharedHashes, TxContext};
use assay_wire::{Tx, TxOut};
use rayon::prelude::*;

use crate::checker::ImmediateChecker;
use crate::scripts::{PART_COST, cut};

/// Verifies the scripts of every input of a transaction in isolation: no merkle root, no amounts, no context.
///
/// `spent` are the outputs that the inputs spend, in input order; `flags` are the script rules, for a block those of
/// [`ChainParams::block_script_flags`](assay_consensus::params::ChainParams::block_script_flags). Returns the number of signature
/// checks. The inputs of a large transaction are distributed over the current rayon pool.
///
/// # Errors
/// The first failing input, with its error.
///
/// # Panics
/// `spent` does not have exactly one output per input.
pub fn verify_tx_scripts(
    tx: Tx<'_>,
    spent: &[TxOut<'_>],
    flags: Flags,
) -> Result<u64, (usize, ScriptError)> {
    let verify = |context: &TxContext<'_>, inputs: Range<usize>| {
        let mut interpreter = Interpreter::new();
        let mut sig_checks = 0;
        for input in inputs {
            let stats = interpreter
                .verify_input(context, input, flags, &mut ImmediateChecker)
                .map_err(|error| (input, error))?;
            sig_checks += u64::from(stats.sig_checks);
        }
        Ok(sig_checks)
    };
    let Some(parts) = cut(tx, rayon::current_num_threads(), PART_COST) else {
        return verify(&TxContext::new(tx, spent), 0..tx.input_count());
    };
    let hashes = SharedHashes::new(tx);
    let parts: Vec<Range<u32>> = parts.collect();
    let verdicts: Vec<Result<u64, (usize, ScriptError)>> = parts
        .into_par_iter()
        .map(|part| {
            let inputs = part.start as usize..part.end as usize;
            verify(&TxContext::new(tx, spent).for_part(inputs.clone(), &hashes), inputs)
        })
        .collect();
    // In input order, so the first failure is the lowest.
    verdicts.into_iter().sum()
}
