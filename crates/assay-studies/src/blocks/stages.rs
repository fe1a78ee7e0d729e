//! Stages of one block, each on one thread.

use std::cell::RefCell;
use std::hint::black_box;
use std::path::PathBuf;

use assay_consensus::block::check_block;
use assay_consensus::header::check_header;
use assay_consensus::params::ChainParams;
use assay_engine::{Block, BlockVerifier, TxOut, parse_prevouts};
use assay_hash::merkle_root;
use assay_wire::{Encoding, Txid};
use rayon::ThreadPool;

use super::{ASSAY, ASSAY_LIBSECP, KERNEL, WARM_UP};
use crate::peer::KernelPeer;
use crate::{cannot_use, chain, read_file};
use anyhow::{Context as _, Result};
use assay_bench::harness::{Alternative, Rounds, Row, Sample, compare, repeats};
use assay_bench::options::BlocksOptions;
use assay_bench::{Progress, wrong_answer};

pub(super) struct Subject {
    pub(super) name: String,
    pub(super) chain: &'static str,
    pub(super) height: u32,
    pub(super) block: PathBuf,
    pub(super) prevouts: Option<PathBuf>,
}

pub(super) struct Measured {
    pub(super) txs: usize,
    pub(super) inputs: usize,
    pub(super) sig_checks: u64,
    pub(super) bytes: usize,
    pub(super) rows: Vec<Row>,
}

/// Stages in order, with the kernel's name if it supports the stage.
pub(super) const STAGES: usize = 6;

pub(super) fn measure(
    subject: &Subject,
    options: &BlocksOptions,
    (pool, kernel): (&ThreadPool, Option<&RefCell<KernelPeer>>),
    progress: &dyn Progress,
) -> Result<Measured> {
    progress.begin(&subject.name, (STAGES * (WARM_UP + options.rounds.get())) as u64);
    let raw = read_file(&subject.block)?;
    let wrong = |detail: String| wrong_answer(&subject.name, ASSAY, detail);
    let block =
        Block::parse(raw.clone(), Encoding::Segwit).map_err(|error| wrong(error.to_string()))?;
    let params = chain(subject.chain);
    if let Some(kernel) = kernel {
        let place = (subject.chain, subject.height);
        let prevouts = subject.prevouts.as_deref();
        kernel.borrow_mut().load(&subject.name, place, &subject.block, prevouts)?;
    }
    let bench = StageBench { subject, rounds: options.rounds.get(), kernel, progress };
    let mut rows = alone(&bench, &params, &raw, &block)?;
    let (mut inputs, mut sig_checks) = (0, 0);
    if let Some(path) = &subject.prevouts {
        let prevouts = read_file(path)?;
        let verifier = BlockVerifier::new(&params, &block, subject.height, None);
        let spent =
            parse_prevouts(&prevouts, verifier.input_count()).with_context(|| cannot_use(path))?;
        inputs = spent.len();
        sig_checks = check_scripts(&verifier, &spent, pool).map_err(wrong)?;
        rows.push(scripts(&bench, &params, (&block, &spent), pool)?);
    }
    Ok(Measured { txs: block.tx_count(), inputs, sig_checks, bytes: raw.len(), rows })
}

struct StageBench<'a> {
    subject: &'a Subject,
    rounds: usize,
    kernel: Option<&'a RefCell<KernelPeer>>,
    progress: &'a dyn Progress,
}

impl<'a> StageBench<'a> {
    fn row(
        &self,
        name: &str,
        stage: Option<&'a str>,
        mut ours: Vec<Alternative<'a>>,
    ) -> Result<Row> {
        if let (Some(kernel), Some(stage)) = (self.kernel, stage) {
            let name = &self.subject.name;
            // A difference of two times may be close to zero, so the whole operation determines the number of repetitions.
            let whole = if stage == "merkle" { "check" } else { stage };
            let times = repeats(kernel.borrow_mut().run(name, whole, 1)?);
            ours.push(Alternative::fallible(KERNEL, move || {
                kernel.borrow_mut().run(name, stage, times)
            }));
        }
        let rounds = Rounds { count: self.rounds, warm_up: WARM_UP };
        let name = format!("{}: {name}", self.subject.name);
        compare(&name, &mut ours, rounds, &mut || self.progress.step())
    }
}

/// An alternative whose operation consumes prepared input, and whose output is dropped, both outside of the measured time.
fn ours<'a, T: 'a, R: 'a>(
    prepare: impl Fn() -> T + 'a,
    work: impl Fn(T) -> R + 'a,
) -> Alternative<'a> {
    // Each operation is timed separately, so that its input is as fresh in the cache as the kernel's.
    Alternative::repeated(ASSAY, move |times| {
        let once = |_| {
            let (item, mut result) = (prepare(), None);
            Sample::of(1, || result = Some(black_box(work(item))))
        };
        Ok((0..times).map(once).sum())
    })
}

fn txids(block: &Block) -> Vec<Txid> {
    block.txids(0..block.tx_count())
}

fn alone<'a>(
    bench: &StageBench<'a>,
    params: &'a ChainParams,
    raw: &'a [u8],
    block: &'a Block,
) -> Result<Vec<Row>> {
    let ids = txids(block);
    let parse = |raw: Vec<u8>| Block::parse(raw, Encoding::Segwit).expect("it was parsed before");
    let header = block.header();
    let leaves: Vec<[u8; 32]> = ids.iter().map(|txid| txid.0).collect();
    let with_ids = move |raw: Vec<u8>| {
        let block = parse(raw);
        let txids = txids(&block);
        let wtxids = block.wtxids(0..block.tx_count(), &txids);
        (block, txids, wtxids)
    };
    let root = header.merkle_root;
    let check = move |()| {
        check_header(params, header, &header.hash()).expect("a valid header");
        check_block(params, block, &ids).expect("a valid block");
    };
    Ok(vec![
        bench.row("parse", None, vec![ours(|| raw.to_vec(), parse)])?,
        bench.row("txids", None, vec![ours(|| (), move |()| txids(block))])?,
        bench.row("parse, txids, wtxids", Some("parse"), vec![ours(|| raw.to_vec(), with_ids)])?,
        bench.row(
            "merkle root",
            Some("merkle"),
            vec![ours(
                move || leaves.clone(),
                move |leaves| assert_eq!(merkle_root(leaves), (root, false)),
            )],
        )?,
        bench.row("CheckBlock", Some("check"), vec![ours(|| (), check)])?,
    ])
}

/// All input scripts on one thread: in batches, one by one with libsecp256k1, and with the kernel.
fn scripts<'a>(
    bench: &StageBench<'a>,
    params: &'a ChainParams,
    (block, spent): (&'a Block, &'a [TxOut<'a>]),
    pool: &'a ThreadPool,
) -> Result<Row> {
    let height = bench.subject.height;
    let alternative = |name: &str, is_batched: bool| {
        let mut verifier = BlockVerifier::new(params, block, height, None);
        if !is_batched {
            verifier = verifier.with_script_batch(None);
        }
        Alternative::calls(name, move || {
            let verdict = pool.install(|| verifier.verify_scripts(spent, 0..block.tx_count()));
            assert_eq!(verdict.expect("a valid block").total().inputs, spent.len() as u64);
        })
    };
    let ours = vec![alternative(ASSAY, true), alternative(ASSAY_LIBSECP, false)];
    bench.row("scripts", Some("scripts"), ours)
}

/// Checks that the scripts are valid with either checker, and invalid for another spent output; returns the number of checks.
fn check_scripts(
    verifier: &BlockVerifier<'_>,
    spent: &[TxOut<'_>],
    pool: &ThreadPool,
) -> Result<u64, String> {
    let end = verifier.txids().len();
    let verify = |spent: &[TxOut<'_>]| pool.install(|| verifier.verify_scripts(spent, 0..end));
    let counts = verify(spent).map_err(|error| error.to_string())?;
    let mut other = spent.to_vec();
    if let Some(output) = other.last_mut() {
        // OP_RETURN fails for every input.
        output.script_pubkey = &[0x6a];
        if verify(&other).is_ok() {
            return Err("an input passes that spends something else".to_owned());
        }
    }
    Ok(counts.total().sig_checks)
}
