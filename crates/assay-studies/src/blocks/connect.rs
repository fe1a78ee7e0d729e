//! Connects whole blocks: parse, check, store, resolve, verify, update coins, store undo data.
//!
//! Both sides start with an empty folder, receive the same blocks in the same order, and use all given cores. A block can be
//! connected only once, so an epoch is one block, and a row has one epoch per forged block of its kind.

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use assay_engine::{Config, Engine, SubmitOutcome};

use super::{ASSAY, ASSAY_LIBSECP, KERNEL, WARM_UP};
use crate::forged::{Forge, ForgedBlock, Kind};
use crate::peer::KernelPeer;
use crate::{chain, open_engine, write_file};
use assay_bench::harness::{Alternative, Rounds, Row, Sample, compare};
use assay_bench::options::BlocksOptions;
use assay_bench::{Progress, wrong_answer};

/// Coin cache: the fixed value of the kernel's interface.
const CACHE_BYTES: usize = 450 << 20;

/// A row per kind, the common final tip, and the number of sides that have it.
pub(super) fn measure(
    options: &BlocksOptions,
    dir: &Path,
    kernel: Option<&RefCell<KernelPeer>>,
    progress: &dyn Progress,
) -> Result<(Vec<Row>, String, u64)> {
    let engines = [
        (ASSAY, open(&dir.join("assay"), options.threads, true)?),
        (ASSAY_LIBSECP, open(&dir.join("assay-libsecp"), options.threads, false)?),
    ];
    if let Some(kernel) = kernel {
        kernel.borrow_mut().open("regtest", &dir.join("kernel"), options.threads - 1)?;
    }
    let file = dir.join("block");
    let (mut forge, base) = Forge::new(options.seed);
    for block in base {
        for (_, engine) in &engines {
            submit(engine, &block)?;
        }
        if let Some(kernel) = kernel {
            write_file(&file, &block.raw)?;
            kernel.borrow_mut().submit(&file)?;
        }
    }
    let mut rows = Vec::new();
    for kind in Kind::ALL {
        let count = WARM_UP + options.connect_blocks.get();
        progress.begin(&format!("connect, {}", kind.name()), 2 * count as u64);
        let mut blocks = Vec::with_capacity(count);
        for _ in 0..count {
            blocks.push(forge.next(kind, options.txs.get()));
            progress.step();
        }
        rows.push(connect(kind, &blocks, &engines, (kernel, &file), progress)?);
    }
    let block = forge.next(Kind::Mixed, 1);
    for (_, engine) in &engines {
        submit(engine, &block)?;
    }
    let mut tips =
        engines.each_ref().map(|(name, one)| (*name, one.chain().tip().hash.to_string())).to_vec();
    if let Some(kernel) = kernel {
        write_file(&file, &block.raw)?;
        tips.push((KERNEL, kernel.borrow_mut().submit(&file)?.1));
    }
    let tip = tips[0].1.clone();
    match tips.iter().find(|(_, other)| *other != tip) {
        None => Ok((rows, tip, tips.len() as u64)),
        Some((side, other)) => {
            Err(wrong_answer("connect", side, format!("tip {other}, not {tip}")))
        }
    }
}

pub(super) fn open(dir: &Path, threads: usize, is_batched: bool) -> Result<Engine> {
    let mut config = Config::new(dir, Arc::new(chain("regtest")));
    config.threads = threads;
    config.cache_bytes_max = CACHE_BYTES;
    if !is_batched {
        config.script_batch = None;
    }
    open_engine(config)
}

pub(super) fn submit(engine: &Engine, block: &ForgedBlock) -> Result<Sample> {
    let raw = block.raw.clone();
    let mut outcome = SubmitOutcome::Inconclusive;
    let sample = Sample::of(1, || outcome = engine.blocks().submit(raw));
    match outcome {
        SubmitOutcome::Accepted if engine.chain().tip().height == block.height => Ok(sample),
        other => Err(crate::own_block(block.height, &other)),
    }
}

/// Connects `blocks` on all sides, interleaved.
fn connect(
    kind: Kind,
    blocks: &[ForgedBlock],
    engines: &[(&str, Engine)],
    (kernel, file): (Option<&RefCell<KernelPeer>>, &Path),
    progress: &dyn Progress,
) -> Result<Row> {
    let mut alternatives: Vec<Alternative<'_>> = engines
        .iter()
        .map(|(name, engine)| {
            let mut next = blocks.iter();
            Alternative::fallible(name, move || {
                submit(engine, next.next().expect("a block for each round"))
            })
        })
        .collect();
    if let Some(kernel) = kernel {
        let next = Cell::new(0);
        alternatives.push(Alternative::fallible(KERNEL, move || {
            let block = &blocks[next.replace(next.get() + 1)];
            write_file(file, &block.raw)?;
            kernel.borrow_mut().submit(file).map(|(sample, _)| sample)
        }));
    }
    let rounds = Rounds { count: blocks.len() - WARM_UP, warm_up: WARM_UP };
    let name = format!("connect, {}", kind.name());
    compare(&name, &mut alternatives, rounds, &mut || progress.step())
}
