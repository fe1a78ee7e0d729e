//! One cell of the atlas: measurements of a class under a rule set.

use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use assay_bench::harness::{Alternative, Rounds, Sample, compare};
use assay_bench::suite::Extent;
use assay_consensus::script::RuleSet;
use assay_engine::{Block, BlockVerifier};
use assay_hash::sha256;
use assay_report::stats::ratio::{Ratio, Summary};
use assay_wire::TxOut;

use super::block::{self, BLOCK_WEIGHT, FullBlock, HEIGHT, Made};
use super::classes::Class;
use super::hashing::Rules;
use crate::heap::heap_use;
use crate::kernels::Kernel;
use crate::{block_builder, chain, one_thread, rejected, temporary_folder, write_file};

/// Size limits of blocks, and number of verifications.
#[derive(Clone, Copy, Debug)]
pub(super) struct Effort {
    pub(super) weight_max: u32,
    /// Maximum expected time of a block.
    pub(super) seconds_max: f64,
    rounds: usize,
}

/// Maximum growth in weight from one block to the next, and of the length of messages.
const STEP: u32 = 4;

impl Effort {
    pub(super) fn of(extent: Extent, seconds_max: f64) -> Result<Self> {
        let is_time = seconds_max > 0.0 && seconds_max <= 3600.0;
        ensure!(is_time, "seconds_max: give above 0 and at most 3600");
        Ok(match extent {
            Extent::Smoke => Self { weight_max: 62_500, seconds_max: 1.0, rounds: 1 },
            Extent::Quick => Self {
                weight_max: BLOCK_WEIGHT / STEP,
                seconds_max: seconds_max.min(3.0),
                rounds: 3,
            },
            Extent::Full => Self { weight_max: BLOCK_WEIGHT, seconds_max, rounds: 5 },
        })
    }

    /// Weight of the first block; each following one is [`STEP`] times as heavy.
    pub(super) const fn weight_first(&self) -> u32 {
        let mut weight = self.weight_max;
        while weight >= 15_000 * STEP {
            weight /= STEP;
        }
        weight
    }

    /// Weight of the first block for a node; each block needs a chain of its own.
    pub(super) const fn weight_outside(&self, extent: Extent) -> u32 {
        match extent {
            Extent::Smoke => self.weight_max,
            Extent::Quick | Extent::Full => self.weight_max / STEP / STEP,
        }
    }

    /// Number of rounds, fewer for slow blocks.
    fn rounds_of(&self, seconds: f64) -> usize {
        let patience = self.seconds_max * 1.5;
        self.rounds.min((patience / seconds.max(1e-3)) as usize).max(1)
    }

    /// Builds blocks from this weight on until the next one would take too long: the last one, its time, and the growth of the
    /// time. `None` if `make` has no block of a weight.
    pub(super) fn heaviest(
        &self,
        mut weight: u32,
        make: impl Fn(u32) -> Option<Made>,
        mut time_s: impl FnMut(&Made) -> Result<f64>,
    ) -> Result<Option<(Made, f64, f64)>> {
        let mut steps: Vec<(f64, f64)> = Vec::new();
        while let Some(made) = make(weight) {
            let seconds = time_s(&made)?;
            steps.push((made.block.weight as f64, seconds));
            let growth = growth(&steps);
            // A single block has no growth.
            let is_late =
                steps.len() > 1 && seconds * f64::from(STEP).powf(growth) > self.seconds_max;
            if weight >= self.weight_max || made.is_all || is_late {
                return Ok(Some((made, seconds, growth)));
            }
            weight *= STEP;
        }
        Ok(None)
    }
}

#[derive(Clone, Debug)]
pub(super) struct Cell {
    pub(super) class: &'static Class,
    pub(super) rules: String,
    pub(super) shape: String,
    /// Identity of the smallest block of the class: cells with the same one are equal.
    pub(super) first_block: [u8; 32],
    /// True if another rule set has the same blocks and was measured.
    pub(super) is_known: bool,
    /// True if the class has no heavier block.
    pub(super) is_full: bool,
    /// Weight of the heaviest measured block.
    pub(super) weight: u64,
    pub(super) inputs: usize,
    pub(super) checks: u64,
    pub(super) hashed_bytes: u64,
    pub(super) copied_bytes: u64,
    pub(super) preparation: f64,
    /// Seconds of full verification, on all threads and on one.
    pub(super) seconds: Summary,
    pub(super) seconds_alone: f64,
    pub(super) peak_bytes: u64,
    /// Exponent of the time as a power of the weight, from the two heaviest blocks.
    pub(super) growth: f64,
    pub(super) against: Option<Against>,
}

/// Script verification of one block by the kernel and by our engine, one thread each, interleaved.
#[derive(Clone, Debug)]
pub(super) struct Against {
    pub(super) kernel: &'static str,
    pub(super) weight: u64,
    pub(super) kernel_s: f64,
    pub(super) ours_s: f64,
    pub(super) ratio: Option<Ratio>,
}

impl Cell {
    /// Seconds of a full block: measured, or extrapolated by the measured growth.
    pub(super) fn full_s(&self) -> f64 {
        let times = f64::from(BLOCK_WEIGHT) / self.weight as f64;
        if self.is_full {
            self.seconds.median
        } else {
            self.seconds.median * times.powf(self.growth)
        }
    }
}

/// The bytes of the block with the spent script, since bare scripts are not in the block.
pub(super) fn identity(block: &FullBlock) -> [u8; 32] {
    sha256(&[&block.raw[..], &block.script_pubkey].concat())
}

/// Measures the heaviest block of a class; `first` is the lightest one.
pub(super) fn measure(
    class: &'static Class,
    (name, rules): (&str, &Rules<'_>),
    first: &Made,
    kernels: &[Kernel],
    effort: &Effort,
) -> Result<Cell> {
    let make = |weight: u32| (class.make)(rules, weight);
    // Bitcoin Core treats a proposed opcode as `OP_SUCCESS`, which is other work.
    let able = |kernel: &&Kernel| first.block.verify(&kernel.rules).is_ok();
    let kernel = kernels.iter().find(able).filter(|_| !class.is_proposed);
    let found = effort.heaviest(effort.weight_first(), make, |made| {
        let (block, spent) = (made.block.parsed()?, made.block.spent());
        timed(|| block::verify(&block, &spent, rules.set))
    })?;
    let (made, _, growth) = found.with_context(|| format!("{} has no block", class.name))?;
    let against = kernel.map(|kernel| against(kernel, rules.set, effort, make)).transpose()?;
    let Made { block: full, shape, checks, hashed_bytes, copied_bytes, is_all } = made;
    let (block, spent) = (full.parsed()?, full.spent());
    let verify = || block::verify(&block, &spent, rules.set);
    let mut samples = vec![timed(verify)?];
    for _ in 1..effort.rounds_of(samples[0]) {
        samples.push(timed(verify)?);
    }
    let (seconds_alone, used) = one_thread()?.install(|| heap_use(|| timed(verify)));
    Ok(Cell {
        class,
        rules: name.to_owned(),
        shape,
        first_block: identity(&first.block),
        is_known: false,
        is_full: is_all || full.weight > u64::from(BLOCK_WEIGHT) * 9 / 10,
        weight: full.weight,
        inputs: full.inputs,
        checks,
        hashed_bytes,
        copied_bytes,
        preparation: full.preparation(),
        seconds: Summary::of(&samples),
        seconds_alone: seconds_alone?,
        peak_bytes: used.peak_bytes,
        growth,
        against: against.flatten(),
    })
}

/// Measures the heaviest block that the kernel verifies in time, by the kernel and by our engine.
fn against(
    kernel: &Kernel,
    rules: &RuleSet,
    effort: &Effort,
    make: impl Fn(u32) -> Option<Made>,
) -> Result<Option<Against>> {
    let dir = temporary_folder()?;
    let (raw, prevouts) = (dir.path().join("block"), dir.path().join("prevouts"));
    let run = |times: u64| kernel.peer.borrow_mut().run("worst", "scripts", times);
    // Loading verifies the block once more.
    let half = Effort { seconds_max: effort.seconds_max / 2.0, ..*effort };
    let found = half.heaviest(effort.weight_first(), make, |made| {
        write_file(&raw, &made.block.raw)?;
        write_file(&prevouts, &block_builder::prevouts(made.block.spent()))?;
        let mut peer = kernel.peer.borrow_mut();
        peer.load("worst", ("regtest", HEIGHT), &raw, Some(&prevouts))?;
        drop(peer);
        Ok(run(1)?.wall_ns as f64 / 1e9)
    })?;
    let Some((made, seconds, _)) = found else { return Ok(None) };
    let (block, spent) = (made.block.parsed()?, made.block.spent());
    let alone = one_thread()?;
    let mut alternatives = [
        Alternative::fallible(kernel.name, || run(1)),
        Alternative::fallible("assay", || alone.install(|| scripts(&block, &spent, rules))),
    ];
    let rounds = Rounds { count: effort.rounds_of(seconds), warm_up: 0 };
    let row = compare("scripts", &mut alternatives, rounds, &mut || {})?;
    let seconds = |name: &str| row.of(name).map(|figures| figures.ns_per_op / 1e9);
    Ok(seconds(kernel.name).zip(seconds("assay")).map(|(kernel_s, ours_s)| Against {
        kernel: kernel.name,
        weight: made.block.weight,
        kernel_s,
        ours_s,
        ratio: row.ratio(kernel.name, "assay"),
    }))
}

/// Verifies the scripts of all inputs, including the hashes shared by a transaction, as the kernel does.
fn scripts(block: &Block, spent: &[TxOut<'_>], rules: &RuleSet) -> Result<Sample> {
    let params = chain("regtest");
    let verifier = BlockVerifier::new(&params, block, HEIGHT, None).with_rules(*rules);
    let mut outcome = Ok(());
    let sample = Sample::of(1, || {
        outcome = verifier.verify_scripts(spent, 0..block.tx_count()).map(drop);
    });
    outcome.map(|()| sample).map_err(|error| rejected(HEIGHT, error))
}

fn timed(work: impl Fn() -> Result<()>) -> Result<f64> {
    let start = Instant::now();
    work()?;
    Ok(start.elapsed().as_secs_f64())
}

/// Exponent of the time as a power of the weight in the last step; at least 1.
fn growth(steps: &[(f64, f64)]) -> f64 {
    let [.., (lighter, before), (heavier, after)] = steps else { return 2.0 };
    if heavier <= lighter { 1.0 } else { (after / before).ln() / (heavier / lighter).ln() }
        .clamp(1.0, 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_found() {
        assert!(growth(&[(1.0, 1.0)]) > 1.99, "nothing is known");
        assert!((growth(&[(1.0, 1.0), (4.0, 4.4)]) - 1.07).abs() < 0.01);
        assert!((growth(&[(1.0, 1.0), (4.0, 16.0)]) - 2.0).abs() < 1e-9);
        assert!(growth(&[(1.0, 4.0), (4.0, 4.0)]) < 1.01, "a fixed part");
    }

    #[test]
    fn weights_grow_to_a_full_block() {
        let effort = Effort::of(Extent::Full, 60.0).expect("settings");
        assert_eq!(effort.weight_first() * 256, BLOCK_WEIGHT);
        assert!(Effort::of(Extent::Full, 0.0).is_err());
        assert_eq!((effort.rounds_of(0.01), effort.rounds_of(50.0)), (5, 1));
    }
}
