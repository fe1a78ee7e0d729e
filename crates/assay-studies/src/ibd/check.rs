//! `CheckBlock` and the check for duplicate inputs, by the report's last step and by our engine.

use std::hint::black_box;
use std::sync::Arc;

use anyhow::Result;
use assay_bench::harness::Alternative;
use assay_bench::suite::{Benchmark, Extent};
use assay_bench::wrong_answer;
use assay_consensus::amount::money_range;
use assay_consensus::block::{check_block, check_legacy_sigops, check_merkle_root, check_shape};
use assay_consensus::params::{ChainParams, MAX_TX_BYTES};
use assay_consensus::sigops::legacy_sigops;
use assay_consensus::tx::check_transaction;
use assay_report::stats::random::SplitMix64;
use assay_wire::{OutPoint, Transaction, Tx, TxBuilder, Txid};

use super::subjects::{LazySubject, Subject};
use super::{ASSAY, LAST_STEP, expect};
use crate::chain;

/// `CheckTransaction` with the last step's check of inputs, in Core's order.
fn check_by_sorting(tx: Tx<'_>) -> bool {
    if tx.input_count() == 0 || tx.output_count() == 0 || tx.stripped_size() > MAX_TX_BYTES {
        return false;
    }
    let mut total = 0i64;
    for output in tx.outputs() {
        if !money_range(output.value) {
            return false;
        }
        total += output.value;
        if !money_range(total) {
            return false;
        }
    }
    are_inputs_right(tx)
}

/// A coinbase script has 2 to 100 bytes. The inputs of any other transaction are sorted (two are
/// just compared) and must have neither duplicates nor a null outpoint.
fn are_inputs_right(tx: Tx<'_>) -> bool {
    if tx.is_coinbase() {
        return (2..=100).contains(&tx.input(0).script_sig.len());
    }
    let no_null = || !tx.inputs().any(|input| input.prevout.is_null());
    match tx.input_count() {
        1 => return no_null(),
        2 => return tx.input(0).prevout != tx.input(1).prevout && no_null(),
        _ => {}
    }
    let mut sorted = Vec::with_capacity(tx.input_count());
    sorted.extend(tx.inputs().map(|input| input.prevout));
    sorted.sort_unstable();
    // The null outpoint has the smallest txid and the largest index: it is the last one of that txid.
    let zeros = sorted.iter().take_while(|prevout| prevout.txid == Txid::default());
    let are_distinct = sorted.array_windows().all(|[left, right]| left != right);
    are_distinct && !zeros.last().is_some_and(OutPoint::is_null)
}

pub(super) fn duplicates<'a>(counts: &[u64], extent: Extent) -> Vec<Benchmark<'a>> {
    let counts = if extent == Extent::Smoke { &[1, 2, 50][..] } else { counts };
    let rows = counts.iter().map(|count| ("duplicate-inputs", *count, false));
    let colliding = if extent == Extent::Smoke { 50 } else { COLLIDING };
    rows.chain([("duplicate-inputs-colliding", colliding, true)])
        .map(|(series, count, is_colliding)| {
            Benchmark::of_size(series, count, "inputs", move |name| {
                duplicates_of(name, &prevouts(count, is_colliding))
            })
        })
        .collect()
}

/// Inputs whose txids collide in their first eight bytes, as an attacker could grind them.
const COLLIDING: u64 = 2_000;

fn prevouts(count: u64, is_colliding: bool) -> Vec<OutPoint> {
    let mut random = SplitMix64::new(count);
    (0..count)
        .map(|_| {
            let mut txid: [u8; 32] = random.bytes();
            if is_colliding {
                txid[..8].fill(7);
            }
            let vout = if is_colliding { 0 } else { random.below(3) as u32 };
            OutPoint { txid: Txid(txid), vout }
        })
        .collect()
}

fn spending(prevouts: &[OutPoint]) -> Arc<Transaction> {
    let tx = prevouts
        .iter()
        .fold(TxBuilder::new(2).output(1, &[]), |tx, prevout| tx.spend(*prevout, &[], u32::MAX));
    Arc::new(tx.build())
}

/// True if the transaction passes, and fails with a duplicate input or a null outpoint.
fn gives_the_right_verdict(prevouts: &[OutPoint], check: impl Fn(Tx<'_>) -> bool) -> bool {
    let is_valid = |prevouts: &[OutPoint]| check(spending(prevouts).view());
    if prevouts.len() == 1 {
        return is_valid(prevouts);
    }
    let (mut twice, mut null) = (prevouts.to_vec(), prevouts.to_vec());
    twice[0] = prevouts[prevouts.len() - 1];
    null[prevouts.len() / 2] = OutPoint::NULL;
    is_valid(prevouts) && !is_valid(&twice) && !is_valid(&null)
}

fn duplicates_of<'a>(name: &str, prevouts: &[OutPoint]) -> Result<Vec<Alternative<'a>>> {
    let right = gives_the_right_verdict(prevouts, check_by_sorting);
    expect(right, name, LAST_STEP, "another verdict")?;
    let right = gives_the_right_verdict(prevouts, |tx| check_transaction(tx).is_ok());
    expect(right, name, ASSAY, "another verdict")?;
    let tx = spending(prevouts);
    let again = Arc::clone(&tx);
    Ok(vec![
        Alternative::calls(LAST_STEP, move || {
            assert!(check_by_sorting(black_box(&again).view()), "it was valid before");
        }),
        Alternative::calls(ASSAY, move || {
            assert!(check_transaction(black_box(&tx).view()).is_ok(), "it was valid before");
        }),
    ])
}

/// All context-free checks of a block except proof of work.
pub(super) fn blocks<'a>(subject: &LazySubject) -> Benchmark<'a> {
    let made = subject.clone();
    subject.benchmark("check-block", "blocks", move |name| check_blocks(name, &made.get()?))
}

/// Our checks, with that of inputs replaced.
fn check_block_by_sorting(params: &ChainParams, subject: &Subject) -> bool {
    let block = &subject.block;
    let mut sigops = 0;
    check_merkle_root(block.header(), &subject.txids).is_ok()
        && check_shape(params, block).is_ok()
        && block.txs().all(|tx| {
            sigops += legacy_sigops(tx);
            check_by_sorting(tx)
        })
        && check_legacy_sigops(params, sigops).is_ok()
}

fn check_blocks(name: &str, subject: &Arc<Subject>) -> Result<Vec<Alternative<'static>>> {
    let params = chain("main");
    expect(check_block_by_sorting(&params, subject), name, LAST_STEP, "a valid block fails")?;
    check_block(&params, &subject.block, &subject.txids)
        .map_err(|error| wrong_answer(name, ASSAY, error))?;
    let (again, one, two) = (params.clone(), Arc::clone(subject), Arc::clone(subject));
    Ok(vec![
        Alternative::calls(LAST_STEP, move || {
            assert!(check_block_by_sorting(&again, black_box(&one)), "it was valid before");
        }),
        Alternative::calls(ASSAY, move || {
            let block = &black_box(&two).block;
            assert!(check_block(&params, block, &two.txids).is_ok(), "it was valid before");
        }),
    ])
}
