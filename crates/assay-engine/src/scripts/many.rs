//! Scripts of many transactions outside of a block.

use std::ops::Range;

use assay_consensus::script::{Flags, Interpreter, RuleSet, SharedHashes, TxContext};
use assay_wire::{Tx, TxOut};
use rayon::ThreadPool;
use rayon::prelude::*;

use super::Cause;
use super::parts::{PART_COST, cost, cut};
use super::runs::{Contexts, DeferredRuns, RunVerdict, verify_run};

/// Minimum number of transactions for a batch of signatures, unless they have [`BATCHED_INPUTS_MIN`] inputs.
const BATCHED_MIN: usize = 2;
/// Minimum number of inputs for a batch of signatures, also of one transaction.
const BATCHED_INPUTS_MIN: usize = 64;

/// A transaction and its spent outputs.
pub(crate) type Spending<'t> = (Tx<'t>, Vec<TxOut<'t>>);

/// Verifies all inputs of some transactions on the threads of a pool. Returns one verdict each: the number of signature checks,
/// or the first input that fails with its error. With `script_batch` signatures are verified in batches of about that size.
pub(crate) fn verify_many(
    txs: &[Spending<'_>],
    flags: Flags,
    script_batch: Option<usize>,
    pool: &ThreadPool,
) -> Vec<Result<u64, Cause>> {
    verify_many_in_parts(txs, flags, script_batch, (pool, PART_COST))
}

/// [`verify_many`] with parts of at least `part_cost`.
pub(super) fn verify_many_in_parts(
    txs: &[Spending<'_>],
    flags: Flags,
    script_batch: Option<usize>,
    (pool, part_cost): (&ThreadPool, u64),
) -> Vec<Result<u64, Cause>> {
    let threads = pool.current_num_threads();
    let (parts, hashes) = cut_all(txs, threads, part_cost);
    let all = Parts { flags, rules: &RuleSet::TODAY, txs, hashes: &hashes };
    let shares = shares(&parts, threads, part_cost);
    // A small share stays on this thread.
    let found = match &shares[..] {
        [] | [_] => all.verify(&shares, script_batch),
        _ => pool.install(|| all.verify(&shares, script_batch)),
    };
    let mut verdicts = vec![Ok(0); txs.len()];
    for (part, found) in parts.iter().zip(found) {
        let verdict = &mut verdicts[part.index];
        match (&mut *verdict, found) {
            (Ok(sum), Ok(sigchecks)) => *sum += sigchecks,
            // Parts are in input order, so the first failure is the lowest.
            (Ok(_), Err((input, error))) => *verdict = Err(Cause::Script { input, error }),
            (Err(_), _) => {}
        }
    }
    verdicts
}

/// Some inputs of a transaction, verified sequentially.
pub(crate) struct Part {
    /// Index of the transaction.
    pub(crate) index: usize,
    pub(crate) inputs: Range<u32>,
    pub(crate) cost: u64,
}

/// The parts of all transactions in order, and what the parts of a transaction have in common, if it has several.
pub(crate) fn cut_all(
    txs: &[Spending<'_>],
    threads: usize,
    part_cost: u64,
) -> (Vec<Part>, Vec<Option<SharedHashes>>) {
    let mut hashes: Vec<Option<SharedHashes>> = Vec::with_capacity(txs.len());
    let mut parts: Vec<Part> = Vec::with_capacity(txs.len());
    for (index, (tx, _)) in txs.iter().enumerate() {
        let cost = cost(*tx);
        if let Some(inputs) = cut(*tx, threads, part_cost) {
            hashes.push(Some(SharedHashes::new(*tx)));
            let cost = cost / inputs.len() as u64;
            parts.extend(inputs.map(|inputs| Part { index, inputs, cost }));
        } else {
            hashes.push(None);
            parts.push(Part { index, inputs: 0..tx.input_count() as u32, cost });
        }
    }
    (parts, hashes)
}

/// Splits parts into shares of similar cost: one per thread, and several if large, since the costs are estimates.
pub(crate) fn shares(mut parts: &[Part], threads: usize, part_cost: u64) -> Vec<&[Part]> {
    let total: u64 = parts.iter().map(|part| part.cost).sum();
    let each = if threads > 1 { total.div_ceil(threads as u64) } else { total };
    let wanted = (each / SHARES_PER_THREAD).max(part_cost).min(each).max(part_cost / 8);
    let mut shares = Vec::new();
    while !parts.is_empty() {
        let mut cost = 0;
        let is_full = |part: &Part| {
            cost += part.cost;
            cost >= wanted
        };
        let end = parts.iter().position(is_full).map_or(parts.len(), |last| last + 1);
        let share;
        (share, parts) = parts.split_at(end);
        shares.push(share);
    }
    shares
}

/// Maximum number of shares per thread.
const SHARES_PER_THREAD: u64 = 4;

/// Transactions that are verified in parts, and their rules.
#[derive(Clone, Copy)]
pub(crate) struct Parts<'m> {
    pub(crate) flags: Flags,
    pub(crate) rules: &'m RuleSet,
    pub(crate) txs: &'m [Spending<'m>],
    pub(crate) hashes: &'m [Option<SharedHashes>],
}

impl Parts<'_> {
    /// Verifies shares on the threads of the current pool; one verdict per part.
    pub(crate) fn verify(self, shares: &[&[Part]], script_batch: Option<usize>) -> Vec<RunVerdict> {
        match shares {
            [] => Vec::new(),
            [share] => self.verify_share(share, script_batch),
            _ => {
                let verify = |share: &&[Part]| self.verify_share(share, script_batch);
                shares.par_iter().flat_map_iter(verify).collect()
            }
        }
    }

    fn verify_share(self, share: &[Part], script_batch: Option<usize>) -> Vec<RunVerdict> {
        let inputs: usize = share.iter().map(|part| part.inputs.len()).sum();
        let is_batched = share.len() >= BATCHED_MIN || inputs >= BATCHED_INPUTS_MIN;
        let Some(script_batch) = script_batch.filter(|_| is_batched) else {
            let mut interpreter = Interpreter::with_rules(*self.rules);
            let verify = |part: &Part| {
                let context = self.context(part.index, &part.inputs);
                verify_run(&context, part.inputs.clone(), self.flags, &mut interpreter)
            };
            return share.iter().map(verify).collect();
        };
        let mut runs = DeferredRuns::with_rules(self.rules);
        let mut contexts = Share { all: self, share };
        for Part { index, inputs, .. } in share {
            let context = self.context(*index, inputs);
            runs.run((&context, self.flags), inputs.clone(), script_batch, &mut contexts);
        }
        runs.finish(None, &mut contexts)
    }

    fn context(&self, index: usize, inputs: &Range<u32>) -> TxContext<'_> {
        let (tx, spent) = &self.txs[index];
        let context = TxContext::new(*tx, spent);
        match &self.hashes[index] {
            Some(hashes) => context.for_part(inputs.start as usize..inputs.end as usize, hashes),
            None => context,
        }
    }
}

/// The runs of one share, in order.
struct Share<'m> {
    all: Parts<'m>,
    share: &'m [Part],
}

impl Contexts for Share<'_> {
    fn with(&mut self, run: usize, input: u32, work: &mut dyn FnMut(&TxContext<'_>, Flags)) {
        let index = self.share[run].index;
        work(&self.all.context(index, &(input..input + 1)), self.all.flags);
    }
}
