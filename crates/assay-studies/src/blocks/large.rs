//! A block with one large transaction: tests if its inputs are verified on all cores.
//!
//! Each legacy input signs a message as long as the transaction without its scripts, so this is the most expensive transaction of
//! its size.

use std::path::Path;

use super::connect::{open, submit};
use super::{ASSAY, ASSAY_LIBSECP, WARM_UP};
use crate::forged::{Forge, ForgedBlock};
use anyhow::Result;
use assay_bench::Progress;
use assay_bench::harness::{Alternative, Rounds, Row, compare};
use assay_bench::options::BlocksOptions;

/// A row: connecting such a block on one thread and on all, with both signature backends; `None` with a single thread.
pub(super) fn measure(
    options: &BlocksOptions,
    dir: &Path,
    progress: &dyn Progress,
) -> Result<Option<Large>> {
    let BlocksOptions { large_inputs: inputs, threads, seed, .. } = *options;
    let rounds = options.rounds.get();
    if inputs == 0 || threads < 2 {
        return Ok(None);
    }
    let name = format!("connect, one transaction of {inputs} legacy inputs");
    let count = WARM_UP + rounds;
    progress.begin(&name, 2 * count as u64);
    let (mut forge, base) = Forge::new(seed);
    let mut blocks = Vec::with_capacity(count);
    for _ in 0..count {
        blocks.push(forge.next_large(inputs));
        progress.step();
    }
    let ways = [(ASSAY, true), (ASSAY_LIBSECP, false)];
    let ways = ways.into_iter().flat_map(|way| [(way, threads), (way, 1)]);
    let mut alternatives = Vec::new();
    for (index, ((who, is_batched), threads)) in ways.enumerate() {
        let engine = open(&dir.join(format!("large-{index}")), threads, is_batched)?;
        base.iter().try_for_each(|block| submit(&engine, block).map(drop))?;
        let mut next = blocks.iter();
        alternatives.push(Alternative::fallible(&alternative(who, threads), move || {
            let [funding, large] = next.next().expect("blocks for each round");
            submit(&engine, funding)?;
            submit(&engine, large)
        }));
    }
    let rounds = Rounds { count: rounds, warm_up: WARM_UP };
    let row = compare(&name, &mut alternatives, rounds, &mut || progress.step())?;
    let bytes = blocks.first().map_or(0, |[_, large]: &[ForgedBlock; 2]| large.raw.len());
    Ok(Some(Large { row, threads, block_bytes: bytes }))
}

pub(super) struct Large {
    pub(super) row: Row,
    pub(super) threads: usize,
    /// Size of the block, nearly all of it the transaction.
    pub(super) block_bytes: usize,
}

pub(super) fn alternative(who: &str, threads: usize) -> String {
    format!("{who}, {threads} {}", if threads == 1 { "thread" } else { "threads" })
}
