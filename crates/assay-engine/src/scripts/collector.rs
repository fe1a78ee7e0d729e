//! Transactions whose signatures have yet to be verified.

use assay_consensus::script::{KeyHashes, ScriptError, TxContext};
use assay_store::defect::{Point, point};
use assay_wire::TxOut;

use super::verifier::Verifier;
use super::{Batch, Cause};
use crate::checker::ImmediateChecker;
use crate::deferred::DeferredScripts;

/// Runs scripts; their signatures are verified when enough have come together.
#[derive(Default)]
pub(super) struct Collector {
    scripts: DeferredScripts<Site>,
    batches: Vec<Batch>,
    txs: Vec<Collected>,
    /// Inputs of all batches.
    inputs: usize,
}

/// An input of a collected transaction.
#[derive(Clone, Copy)]
pub(super) struct Site {
    /// Index in `Collector::txs`.
    slot: u32,
    input: u32,
}

/// A collected transaction, and what is known of it.
struct Collected {
    tx_index: u32,
    /// Index in `Collector::batches`, and of its first coin there.
    batch: u32,
    first_coin: u32,
    sigchecks: u64,
    /// Its first input that fails, so far.
    failure: Option<(u32, ScriptError)>,
}

impl Collected {
    fn fail(&mut self, input: u32, error: ScriptError) {
        if self.failure.is_none_or(|(first, _)| input < first) {
            self.failure = Some((input, error));
        }
    }
}

/// Inputs whose coins a collector keeps at most; only inputs without signatures let it come to that.
const INPUTS_MAX: usize = 1 << 14;

impl Collector {
    pub(super) fn scripts(&self) -> &DeferredScripts<Site> {
        &self.scripts
    }

    pub(super) fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// Whether it holds enough to be concluded.
    pub(super) fn is_full(&self, script_batch: usize) -> bool {
        self.scripts.checks_len() >= script_batch || self.inputs >= INPUTS_MAX
    }

    /// Runs the scripts of a batch.
    pub(super) fn collect(&mut self, batch: Batch, script_batch: usize, verifier: &Verifier) {
        self.inputs += batch.coins.len();
        self.batches.push(batch);
        let Self { scripts, batches, txs, .. } = self;
        let number = batches.len() as u32 - 1;
        let batch = &batches[number as usize];
        let (block, flags) = (&batch.block.prepared.block, batch.block.rules.flags);
        let mut outputs: Vec<TxOut<'_>> = Vec::new();
        let mut key_hashes = KeyHashes::default();
        for &(tx_index, first_coin) in &batch.txs {
            let tx = block.tx(tx_index as usize);
            batch.spent(first_coin, tx, &mut outputs);
            key_hashes.add(tx, &outputs);
        }
        key_hashes.compute();
        for &(tx_index, first_coin) in &batch.txs {
            if verifier.is_pointless(batch, tx_index) {
                continue;
            }
            let tx = block.tx(tx_index as usize);
            let slot = txs.len() as u32;
            txs.push(Collected {
                tx_index,
                batch: number,
                first_coin,
                sigchecks: 0,
                failure: None,
            });
            batch.spent(first_coin, tx, &mut outputs);
            // The coins of a batch are those of its transactions, one after the other.
            let known = key_hashes.of(first_coin as usize, tx.input_count());
            let context = TxContext::new(tx, &outputs).with_key_hashes(known);
            for input in 0..tx.input_count() {
                let site = Site { slot, input: input as u32 };
                match scripts.verify_input(&context, input, flags, site) {
                    Ok(stats) => txs[slot as usize].sigchecks += u64::from(stats.sig_checks),
                    Err(error) => {
                        txs[slot as usize].fail(input as u32, error);
                        break;
                    }
                }
                // Only a transaction with very many inputs comes to this.
                if scripts.checks_len() >= 2 * script_batch {
                    settle(scripts, None, batches, txs);
                }
            }
        }
    }

    /// Settles everything and empties itself. `proven` are the answers to what the scripts ask, if they are known.
    pub(super) fn conclude(&mut self, proven: Option<&[bool]>, verifier: &Verifier) {
        point(Point::ScriptBatch);
        let Self { scripts, batches, txs, inputs } = self;
        settle(scripts, proven, batches, txs);
        for collected in txs.drain(..) {
            let batch = &batches[collected.batch as usize];
            let verdict = match collected.failure {
                Some((input, error)) => Err(Cause::Script { input, error }),
                None => batch
                    .block
                    .rules
                    .check_tx_sigchecks(collected.sigchecks)
                    .map(|()| collected.sigchecks)
                    .map_err(Cause::SigChecks),
            };
            verifier.note(batch, collected.tx_index, verdict);
        }
        for batch in batches.drain(..) {
            batch.block.close(batch.txs.len());
        }
        *inputs = 0;
    }
}

/// Verifies what has been recorded, and runs inputs again where that did not prove it.
fn settle(
    scripts: &mut DeferredScripts<Site>,
    proven: Option<&[bool]>,
    batches: &[Batch],
    txs: &mut [Collected],
) {
    scripts.settle_proven(proven, |site, claimed, interpreter| {
        let collected = &mut txs[site.slot as usize];
        if collected.failure.is_some_and(|(first, _)| first < site.input) {
            return;
        }
        let batch = &batches[collected.batch as usize];
        let tx = batch.block.prepared.block.tx(collected.tx_index as usize);
        let mut outputs = Vec::new();
        batch.spent(collected.first_coin, tx, &mut outputs);
        let context = TxContext::new(tx, &outputs);
        let (input, flags) = (site.input as usize, batch.block.rules.flags);
        match interpreter.verify_input(&context, input, flags, &mut ImmediateChecker) {
            Ok(stats) => {
                collected.sigchecks -= u64::from(claimed.sig_checks);
                collected.sigchecks += u64::from(stats.sig_checks);
            }
            Err(error) => collected.fail(site.input, error),
        }
    });
}
