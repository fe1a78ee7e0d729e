//! The scripts of one block, on the threads of the current rayon pool.

use std::ops::Range;

use assay_consensus::block::{BlockError, ScriptFailure, ScriptRules};
use assay_consensus::script::{ScriptError, SharedHashes};
use assay_wire::TxOut;

use super::block::BlockVerifier;
use super::spend_type::{SpendType, TypeCounts};
use crate::scripts::{PART_COST, Part, Parts, Spending, cut_all, shares};

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
        let first = txs.start.max(1);
        let spending =
            |tx_index| (self.block.tx(tx_index), self.spent_by(spent, tx_index).to_vec());
        let spendings: Vec<Spending<'_>> = (first..txs.end).map(spending).collect();
        let threads = rayon::current_num_threads();
        let (parts, mut hashes) = cut_all(&spendings, threads, PART_COST);
        let (runs, types) = self.runs_by_type(parts, &spendings, &mut hashes);
        let (flags, rules) = (self.rules.flags, &self.script_rules);
        let all = Parts { flags, rules, txs: &spendings, hashes: &hashes };
        let verdicts = all.verify(&shares(&runs, threads, PART_COST), self.script_batch);
        let mut counts = TypeCounts::default();
        let mut tx_sig_checks = 0;
        for (number, (run, verdict)) in runs.iter().zip(verdicts).enumerate() {
            let tx_index = first + run.index;
            // Runs are in order, so the first failure is the lowest.
            let sig_checks =
                verdict.map_err(|(input, error)| self.script_error(tx_index, input, error))?;
            counts.add(types[number], run.inputs.len() as u64, sig_checks);
            tx_sig_checks += sig_checks;
            if runs.get(number + 1).is_none_or(|next| next.index != run.index) {
                let checked = self.rules.check_tx_sigchecks(std::mem::take(&mut tx_sig_checks));
                checked.map_err(|source| {
                    let txid = self.txids[tx_index];
                    BlockError::Tx { tx_index, txid, source }
                })?;
            }
        }
        self.rules.check_block_sigchecks(counts.total().sig_checks)?;
        Ok(counts)
    }

    /// Splits parts into runs of inputs of the same type, so that the signature checks of a run are those of a type.
    fn runs_by_type(
        &self,
        parts: Vec<Part>,
        spendings: &[Spending<'_>],
        hashes: &mut [Option<SharedHashes>],
    ) -> (Vec<Part>, Vec<SpendType>) {
        let (mut runs, mut types) = (Vec::with_capacity(parts.len()), Vec::new());
        for Part { index, inputs, cost } in parts {
            let (tx, outputs) = &spendings[index];
            let type_of = |input: u32| {
                let input = input as usize;
                let (spent, witness) = (&outputs[input], tx.witness(input));
                SpendType::of(&tx.input(input), spent, witness, self.rules.flags)
            };
            let each = cost / inputs.len().max(1) as u64;
            let mut from = inputs.start;
            while from < inputs.end {
                let spend_type = type_of(from);
                let to = (from + 1..inputs.end).find(|input| type_of(*input) != spend_type);
                let to = to.unwrap_or(inputs.end);
                runs.push(Part { index, inputs: from..to, cost: each * u64::from(to - from) });
                types.push(spend_type);
                from = to;
            }
            if runs.last().is_some_and(|last| last.inputs.start > inputs.start) {
                hashes[index].get_or_insert_with(|| SharedHashes::new(*tx));
            }
        }
        (runs, types)
    }

    fn script_error(&self, tx_index: usize, input: u32, error: ScriptError) -> BlockError {
        let input = input as usize;
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
