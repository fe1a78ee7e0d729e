//! The scripts of one block, on the threads of the current rayon pool.

use std::ops::Range;
use std::sync::Arc;

use assay_consensus::block::{BlockError, ScriptFailure, ScriptRules};
use assay_consensus::script::{InputStats, Interpreter, ScriptError, SharedHashes, TxContext};
use assay_wire::TxOut;
use rayon::prelude::*;

use super::block::BlockVerifier;
use super::spend_type::{SpendType, TypeCounts};
use crate::checker::ImmediateChecker;
use crate::deferred::DeferredScripts;

/// Inputs of one transaction per task.
const INPUTS_PER_TASK: usize = 64;

/// Minimum and maximum number of inputs per signature batch.
const INPUTS_PER_BUNDLE: Range<usize> = 64..1024;

/// Inputs of one transaction, verified sequentially.
#[derive(Clone)]
struct Task {
    tx_index: usize,
    inputs: Range<usize>,
    /// Data shared with the other tasks of a large transaction.
    shared: Option<Arc<SharedHashes>>,
}

/// Type and statistics of each input, or the first failing input of a task.
type TaskVerdict = Result<Vec<(SpendType, InputStats)>, (usize, ScriptError)>;

impl BlockVerifier<'_> {
    /// Verifies the scripts of the transactions in `txs`; the coinbase has none. [`BlockVerifier::check_alone`] must have passed.
    ///
    /// # Errors
    /// [`BlockError::Script`] for the first failing input; on Bitcoin Cash too many signature checks.
    ///
    /// # Panics
    /// `spent` does not have [`BlockVerifier::input_count`] outputs, or `txs` exceeds the block.
    pub fn verify_scripts(
        &self,
        spent: &[TxOut<'_>],
        txs: Range<usize>,
    ) -> Result<TypeCounts, BlockError> {
        assert_eq!(spent.len(), self.input_count(), "one spent output per input");
        let tasks: Vec<Task> = txs
            .flat_map(|tx_index| {
                let inputs = self.spent_by(spent, tx_index).len();
                let shared = (inputs > INPUTS_PER_TASK)
                    .then(|| Arc::new(SharedHashes::new(self.block.tx(tx_index))));
                (0..inputs).step_by(INPUTS_PER_TASK).map(move |first| {
                    let inputs = first..(first + INPUTS_PER_TASK).min(inputs);
                    Task { tx_index, inputs, shared: shared.clone() }
                })
            })
            .collect();
        let verdicts: Vec<TaskVerdict> = match self.script_batch {
            None => tasks
                .par_iter()
                .map_init(
                    || Interpreter::with_rules(self.script_rules),
                    |interpreter, task| {
                        self.verify_inputs(spent, task, |context, input| {
                            let flags = self.rules.flags;
                            interpreter.verify_input(context, input, flags, &mut ImmediateChecker)
                        })
                    },
                )
                .collect(),
            Some(batch) => bundles(&tasks)
                .into_par_iter()
                .map_init(
                    || DeferredScripts::with_rules(self.script_rules),
                    |scripts, bundle| self.verify_bundle(spent, bundle, scripts, batch),
                )
                .flatten_iter()
                .collect(),
        };
        let mut counts = TypeCounts::default();
        let mut tx_sig_checks = 0;
        for (index, (Task { tx_index, inputs, .. }, verdict)) in
            tasks.iter().zip(verdicts).enumerate()
        {
            let inputs_found =
                verdict.map_err(|(input, error)| self.script_error(*tx_index, input, error))?;
            tx_sig_checks = if inputs.start == 0 { 0 } else { tx_sig_checks };
            for (spend_type, stats) in inputs_found {
                counts.add(spend_type, u64::from(stats.sig_checks));
                tx_sig_checks += u64::from(stats.sig_checks);
            }
            if tasks.get(index + 1).is_none_or(|next| next.tx_index != *tx_index) {
                self.rules.check_tx_sigchecks(tx_sig_checks).map_err(|source| {
                    let (tx_index, txid) = (*tx_index, self.txids[*tx_index]);
                    BlockError::Tx { tx_index, txid, source }
                })?;
            }
        }
        self.rules.check_block_sigchecks(counts.total().sig_checks)?;
        Ok(counts)
    }

    fn verify_inputs(
        &self,
        spent: &[TxOut<'_>],
        task: &Task,
        mut verify: impl FnMut(&TxContext<'_>, usize) -> Result<InputStats, ScriptError>,
    ) -> TaskVerdict {
        let tx = self.block.tx(task.tx_index);
        let outputs = self.spent_by(spent, task.tx_index);
        let context = self.context(spent, task, task.inputs.clone());
        let spend = |input| {
            let stats = verify(&context, input).map_err(|error| (input, error))?;
            let (witness, flags) = (tx.witness(input), self.rules.flags);
            let spend_type = SpendType::of(&tx.input(input), &outputs[input], witness, flags);
            Ok((spend_type, stats))
        };
        task.inputs.clone().map(spend).collect()
    }

    /// The context for some inputs of a task.
    fn context<'t>(
        &'t self,
        spent: &'t [TxOut<'t>],
        task: &'t Task,
        inputs: Range<usize>,
    ) -> TxContext<'t> {
        let outputs = self.spent_by(spent, task.tx_index);
        let context = TxContext::new(self.block.tx(task.tx_index), outputs);
        match &task.shared {
            Some(shared) => context.for_part(inputs, shared),
            None => context,
        }
    }

    /// Runs the scripts of all tasks and then verifies their signatures.
    fn verify_bundle(
        &self,
        spent: &[TxOut<'_>],
        tasks: &[Task],
        scripts: &mut DeferredScripts<(usize, usize)>,
        script_batch: usize,
    ) -> Vec<TaskVerdict> {
        let flags = self.rules.flags;
        let mut verdicts = Vec::with_capacity(tasks.len());
        for (slot, task) in tasks.iter().enumerate() {
            verdicts.push(self.verify_inputs(spent, task, |context, input| {
                scripts.verify_input(context, input, flags, (slot, input))
            }));
            if scripts.checks_len() < script_batch && slot + 1 < tasks.len() {
                continue;
            }
            scripts.settle(|(slot, input), _, again| {
                let task = &tasks[slot];
                let verdict = &mut verdicts[slot];
                if verdict.as_ref().is_err_and(|(first, _)| *first < input) {
                    return;
                }
                let context = self.context(spent, task, input..input + 1);
                match again.verify_input(&context, input, flags) {
                    Err(error) => *verdict = Err((input, error)),
                    Ok(stats) => {
                        if let Ok(found) = verdict {
                            found[input - task.inputs.start].1 = stats;
                        }
                    }
                }
            });
        }
        verdicts
    }

    fn script_error(&self, tx_index: usize, input: usize, error: ScriptError) -> BlockError {
        let tx = self.block.tx(tx_index);
        let (txid, wtxid) = (self.txids[tx_index], tx.wtxid());
        let prevout = tx.input(input).prevout;
        let source = Box::new(ScriptFailure {
            txid,
            wtxid,
            input,
            prevout,
            error,
            rules: ScriptRules::of(self.rules.flags),
        });
        BlockError::Script { tx_index, source }
    }
}

/// Splits tasks into runs, one per thread: as long as useful, and short enough that all threads have some.
fn bundles(mut tasks: &[Task]) -> Vec<&[Task]> {
    let inputs: usize = tasks.iter().map(|task| task.inputs.len()).sum();
    let share = inputs.div_ceil(rayon::current_num_threads());
    let (least, most) = (INPUTS_PER_BUNDLE.start, INPUTS_PER_BUNDLE.end);
    let wanted = share.div_ceil(share.div_ceil(most).max(1)).max(least);
    let mut bundles = Vec::new();
    while !tasks.is_empty() {
        let mut count = 0;
        let whole = |task: &Task| {
            count += task.inputs.len();
            count >= wanted
        };
        let end = tasks.iter().position(whole).map_or(tasks.len(), |last| last + 1);
        let bundle;
        (bundle, tasks) = tasks.split_at(end);
        bundles.push(bundle);
    }
    bundles
}
