//! Transactions of blocks with deferred signatures.

use assay_consensus::script::{Flags, KeyHashes, TxContext};
use assay_store::defect::{Point, point};
use assay_wire::TxOut;

use super::Batch;
use super::runs::{Contexts, DeferredRuns, Site};
use crate::deferred::{Answer, DeferredScripts};

/// Runs scripts and verifies their signatures in batches.
#[derive(Default)]
pub(super) struct Collector {
    runs: DeferredRuns,
    batches: Vec<Batch>,
    /// One per run: index of its batch, and index in the batch.
    spends: Vec<(u32, u32)>,
    /// Number of inputs of all batches.
    inputs: usize,
}

/// Limit of inputs whose coins a collector keeps; reached only by inputs without signatures.
const INPUTS_MAX: usize = 1 << 14;

impl Collector {
    pub(super) fn scripts(&self) -> &DeferredScripts<Site> {
        self.runs.scripts()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// True if it is full and should be concluded.
    pub(super) fn is_full(&self, script_batch: usize) -> bool {
        self.runs.checks_len() >= script_batch || self.inputs >= INPUTS_MAX
    }

    pub(super) fn collect(&mut self, batch: Batch, script_batch: usize) {
        self.inputs += batch.input_count();
        self.batches.push(batch);
        let Self { runs, batches, spends, .. } = self;
        let number = batches.len() - 1;
        let batch = &batches[number];
        let mut outputs: Vec<TxOut<'_>> = Vec::new();
        let mut key_hashes = KeyHashes::default();
        for spend in &batch.spends {
            batch.spent(spend, &mut outputs);
            key_hashes.add(batch.tx(spend), &outputs, spend.range());
        }
        key_hashes.compute();
        let mut first_key = 0;
        for (index, spend) in batch.spends.iter().enumerate() {
            let known = key_hashes.of(first_key, spend.inputs.len());
            first_key += spend.inputs.len();
            if batch.block.skips(spend) {
                continue;
            }
            spends.push((number as u32, index as u32));
            batch.spent(spend, &mut outputs);
            let context = batch.context(spend, &outputs, spend.range()).with_key_hashes(known);
            let flags = batch.block.rules.flags;
            // Only a transaction with very many signatures must be settled before its end.
            let mut contexts = Lookup::new(batches, spends);
            runs.run((&context, flags), spend.inputs.clone(), 2 * script_batch, &mut contexts);
        }
    }

    /// Settles everything and empties itself. `proven` are the results of the recorded checks, if known.
    pub(super) fn conclude(&mut self, proven: Option<&[Answer]>) {
        point(Point::ScriptBatch);
        let Self { runs, batches, spends, inputs } = self;
        let verdicts = runs.finish(proven, &mut Lookup::new(batches, spends));
        for (&(batch, index), verdict) in spends.iter().zip(verdicts) {
            let batch = &batches[batch as usize];
            batch.note(&batch.spends[index as usize], verdict);
        }
        spends.clear();
        for batch in batches.drain(..) {
            batch.block.close(batch.spends.len());
        }
        *inputs = 0;
    }
}

struct Lookup<'c> {
    batches: &'c [Batch],
    runs: &'c [(u32, u32)],
    /// Spent outputs of the last requested run.
    outputs: Vec<TxOut<'c>>,
    last: Option<usize>,
}

impl<'c> Lookup<'c> {
    fn new(batches: &'c [Batch], runs: &'c [(u32, u32)]) -> Self {
        Self { batches, runs, outputs: Vec::new(), last: None }
    }
}

impl Contexts for Lookup<'_> {
    fn with(&mut self, run: usize, input: u32, work: &mut dyn FnMut(&TxContext<'_>, Flags)) {
        let (batch, index) = self.runs[run];
        let batch = &self.batches[batch as usize];
        let spend = &batch.spends[index as usize];
        if self.last != Some(run) {
            batch.spent(spend, &mut self.outputs);
            self.last = Some(run);
        }
        let only = input as usize..input as usize + 1;
        work(&batch.context(spend, &self.outputs, only), batch.block.rules.flags);
    }
}
