//! Judging one part of a plan.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use assay_store::KeyForms;
use assay_wire::Txid;

use super::coins::{self, Piece};
use super::hints::PartHints;
use super::plan::{Inputs, Part, Plan, Unspent};
use super::result::{PartFigures, PartResult, Rejection, commitment};
use super::source::{BlockSums, Judged, PartFault, PlanSource};
use super::tally::{CoinFigures, Hashing};
use super::timing::{Stage, StageClock};
use super::{Salt, ShardError};
use crate::connect::Connected;
use crate::files::rule;
use crate::pipeline::{InFlight, Passed, Pipeline};
use crate::scripts::{Verifier, verify_threads};
use crate::validate::{Prefetch, Totals};

#[derive(Clone, Debug)]
pub struct PartConfig {
    /// Places of files that are not where the plan says.
    pub inputs: Inputs,
    /// Threads that verify scripts; at least 1.
    pub threads: usize,
    /// Signatures that are verified together: [`ValidateConfig::script_batch`](crate::ValidateConfig::script_batch).
    pub script_batch: Option<usize>,
    /// Conversion of keys in files of Bitcoin Core.
    pub keys: KeyForms,
    /// Adds up the processor time of stages.
    pub clock: Arc<StageClock>,
}

#[derive(Clone, Copy, Debug)]
pub struct PartProgress {
    /// Inputs of the blocks whose scripts have passed.
    pub inputs_done: u64,
    /// Inputs of all blocks.
    pub inputs_total: u64,
}

/// Judges a part. The result is the same on every machine.
///
/// # Errors
/// It cannot be judged, which says nothing of the blocks. Invalid blocks are no error: see [`PartResult::rejection`].
pub fn run_part(
    plan: &Plan,
    number: usize,
    salt: &Salt,
    config: &PartConfig,
    stop: &AtomicBool,
    progress: &dyn Fn(PartProgress),
) -> Result<PartResult, ShardError> {
    let count = plan.parts.len();
    let part = *plan.parts.get(number).ok_or(ShardError::NoPart { part: number, count })?;
    let hashing = Hashing::new(&plan.unspent, salt);
    let outcome = match part {
        Part::Coins { offset, bytes, coins } => {
            let Unspent::Coins { path, .. } = &plan.unspent else {
                unreachable!("a plan with pieces of coins has coins")
            };
            let path: &Path = config.inputs.coins.as_ref().unwrap_or(path);
            let piece = Piece { path, offset, bytes, coins };
            let add_up = || coins::add_up(&piece, &hashing, config.keys, stop);
            let (tally, figures) = config.clock.time(Stage::Sums, add_up)?;
            let (totals, coinbases) = (Totals::default(), Vec::new());
            Ok(PartFigures { totals, tally, coins: Some(figures), coinbases })
        }
        Part::Blocks { first, last, inputs, .. } => {
            let heights = (first, last);
            let range = Range { plan, number, hashing: &hashing, heights, inputs };
            range.judge(config, stop, progress)?
        }
    };
    let salt = commitment(&plan.unspent, salt);
    Ok(PartResult { part: number, plan: plan.id, salt, outcome })
}

struct Range<'a> {
    plan: &'a Plan,
    number: usize,
    hashing: &'a Hashing,
    heights: (u32, u32),
    inputs: u64,
}

/// Sums over blocks whose scripts may be open.
#[derive(Default)]
struct Sums {
    totals: Totals,
    coinbases: Vec<Txid>,
}

impl Range<'_> {
    fn judge(
        &self,
        config: &PartConfig,
        stop: &AtomicBool,
        progress: &dyn Fn(PartProgress),
    ) -> Result<Result<PartFigures, Rejection>, ShardError> {
        let (files, spent) = self.plan.open_files(&config.inputs)?;
        let hints = self.open_hints(&config.inputs)?;
        let has_hints = hints.is_some();
        let source = PlanSource {
            plan: self.plan,
            files: &files,
            spent: &spent,
            keys: config.keys,
            hints,
            hashing: self.hashing,
            clock: &config.clock,
            sums: Mutex::default(),
        };
        let prefetch = Prefetch::new(source, self.heights, AHEAD_BYTES_MAX);
        let pool = verify_threads(config.threads).map_err(ShardError::Threads)?;
        let verifier = Verifier::new(pool, config.script_batch);
        // Checks without scripts and the sums take about a quarter of what scripts take.
        let readers = config.threads.div_ceil(4);
        let no_thread = |error: &std::io::Error| ShardError::Threads(error.to_string());
        let judged = prefetch.with_readers(readers, no_thread, || {
            self.verify(&prefetch, Pipeline::new(verifier), stop, progress)
        })?;
        let sums = prefetch.into_source().sums.into_inner();
        let sums = sums.unwrap_or_else(PoisonError::into_inner);
        Ok(judged.map(|Sums { totals, coinbases }| {
            let (mut tally, mut all_kept) = (self.hashing.tally(), CoinFigures::new());
            for BlockSums { tally: other, kept } in &sums {
                tally.combine(other);
                all_kept.combine(kept);
            }
            PartFigures { totals, tally, coins: has_hints.then_some(all_kept), coinbases }
        }))
    }

    fn open_hints(&self, inputs: &Inputs) -> Result<Option<PartHints>, ShardError> {
        let Unspent::Hints { path, .. } = &self.plan.unspent else { return Ok(None) };
        let path = inputs.hints.as_ref().unwrap_or(path);
        let piece = &self.plan.hints[self.number];
        PartHints::open(path, piece, self.heights).map(Some)
    }

    /// Verifies the scripts of all blocks; of several invalid blocks the lowest decides.
    fn verify(
        &self,
        prefetch: &Prefetch<PlanSource<'_>>,
        mut pipeline: Pipeline<u32>,
        stop: &AtomicBool,
        progress: &dyn Fn(PartProgress),
    ) -> Result<Result<Sums, Rejection>, ShardError> {
        let (first, last) = self.heights;
        let (mut sums, mut rejection, mut done) = (Sums::default(), None, 0);
        let mut passed = |Passed { scripts, .. }: Passed<u32>| {
            done += scripts.prepared().spent_prevouts().len() as u64;
            progress(PartProgress { inputs_done: done, inputs_total: self.inputs });
        };
        for _ in first..=last {
            if stop.load(Ordering::Relaxed) {
                return Err(ShardError::Interrupted);
            }
            if pipeline.has_failure() {
                break;
            }
            match prefetch.next() {
                Ok(judged) => {
                    pipeline.push(hand_over(judged, &pipeline, &mut sums));
                    pipeline.make_room(&mut passed);
                }
                Err(PartFault::Cannot(error)) => return Err(error),
                Err(PartFault::Rejected(found)) => {
                    rejection = Some(found);
                    break;
                }
            }
        }
        if let Err(refuted) = pipeline.drain(&mut passed) {
            let (height, error) = refuted.into_error();
            let (reason, debug) = rule(&error);
            return Ok(Err(Rejection { height, hash: self.plan.hash(height), reason, debug }));
        }
        Ok(rejection.map_or(Ok(sums), Err))
    }
}

/// Hands the scripts of a block over.
fn hand_over(judged: Judged, pipeline: &Pipeline<u32>, sums: &mut Sums) -> InFlight<u32> {
    let Judged { prepared, rules, coins } = judged;
    sums.totals.add(&prepared.block, false);
    sums.coinbases.push(prepared.txids[0]);
    let prepared = Arc::new(prepared);
    let mut queue = pipeline.queue(&prepared, rules);
    let mut coins = coins.into_iter();
    for (tx_index, tx) in prepared.block.txs().enumerate().skip(1) {
        queue.push(tx_index, &mut coins.by_ref().take(tx.input_count()).collect());
    }
    let block = Connected { scripts: queue.finish(), undo: Vec::new() };
    InFlight { block, note: rules.height }
}

/// Blocks and spent coins read ahead; with their hashes and copies they take several times as much.
const AHEAD_BYTES_MAX: u64 = 32 << 20;
