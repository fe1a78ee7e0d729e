//! Scripts of many transactions that belong to no block.

use assay_consensus::script::{Flags, Interpreter, ScriptError, TxContext};
use assay_wire::{Tx, TxOut};

use super::{Cause, verify_tx};
use crate::checker::ImmediateChecker;
use crate::deferred::DeferredScripts;

/// Fewer transactions are not worth a batch.
const BATCHED_MIN: usize = 2;

/// A transaction, and what it spends.
pub(crate) type Spending<'t> = (Tx<'t>, Vec<TxOut<'t>>);

/// Verifies every input of some transactions, one verdict for each: the number of signature checks, or the first input
/// that fails and why. With `script_batch` signatures are verified together, about as many at once.
pub(crate) fn verify_many(
    txs: &[Spending<'_>],
    flags: Flags,
    script_batch: Option<usize>,
) -> Vec<Result<u64, Cause>> {
    let Some(script_batch) = script_batch.filter(|_| txs.len() >= BATCHED_MIN) else {
        let mut interpreter = Interpreter::default();
        return txs
            .iter()
            .map(|(tx, spent)| verify_tx(*tx, spent, flags, &mut interpreter))
            .collect();
    };
    let mut many =
        Many { flags, txs, verdicts: vec![Ok(0); txs.len()], scripts: DeferredScripts::new() };
    for (index, (tx, spent)) in txs.iter().enumerate() {
        let context = TxContext::new(*tx, spent);
        for input in 0..tx.input_count() {
            let tag = (index as u32, input as u32);
            match many.scripts.verify_input(&context, input, flags, tag) {
                Ok(stats) => many.add(index, u64::from(stats.sig_checks)),
                Err(error) => {
                    many.fail(index, input as u32, error);
                    break;
                }
            }
            if many.scripts.checks_len() >= script_batch {
                many.settle();
            }
        }
    }
    many.settle();
    many.verdicts
}

/// What has been run and is not settled.
struct Many<'m> {
    flags: Flags,
    txs: &'m [Spending<'m>],
    verdicts: Vec<Result<u64, Cause>>,
    scripts: DeferredScripts<(u32, u32)>,
}

impl Many<'_> {
    fn add(&mut self, index: usize, sigchecks: u64) {
        if let Ok(sum) = &mut self.verdicts[index] {
            *sum += sigchecks;
        }
    }

    fn fail(&mut self, index: usize, input: u32, error: ScriptError) {
        fail(&mut self.verdicts[index], input, error);
    }

    fn settle(&mut self) {
        let Self { flags, txs, verdicts, scripts } = self;
        scripts.settle(|(index, input), claimed, interpreter| {
            let (tx, spent) = &txs[index as usize];
            let verdict = &mut verdicts[index as usize];
            let context = TxContext::new(*tx, spent);
            match interpreter.verify_input(&context, input as usize, *flags, &mut ImmediateChecker)
            {
                Ok(stats) => {
                    if let Ok(sum) = verdict {
                        *sum -= u64::from(claimed.sig_checks);
                        *sum += u64::from(stats.sig_checks);
                    }
                }
                Err(error) => fail(verdict, input, error),
            }
        });
    }
}

/// Of the inputs that fail the first counts.
fn fail(verdict: &mut Result<u64, Cause>, input: u32, error: ScriptError) {
    match verdict {
        Err(Cause::Script { input: first, .. }) if *first <= input => {}
        _ => *verdict = Err(Cause::Script { input, error }),
    }
}
