//! `CheckBlock` and the check for inputs that spend the same, in the steps of the report and as ours does it.

use std::collections::{BTreeSet, HashSet};
use std::hint::black_box;
use std::sync::Arc;

use assay_bench::BenchError;
use assay_bench::harness::Alternative;
use assay_bench::random::Random;
use assay_bench::suite::{Benchmark, Extent};
use assay_consensus::amount::money_range;
use assay_consensus::block::{check_block, check_legacy_sigops, check_merkle_root, check_shape};
use assay_consensus::params::{ChainParams, MAX_TX_BYTES};
use assay_consensus::sigops::legacy_sigops;
use assay_consensus::tx::check_transaction;
use assay_wire::{Encoding, OutPoint, Transaction, Tx, Txid, encode};

use super::calls::{Scale, expect, wrong};
use super::names::{ASSAY, HASH_SET, SET, SET_NOT_ONE, SET_NOT_TWO, SORTED, SORTED_NULL};
use super::subjects::{LazySubject, Subject};

/// A way to find inputs that spend the same or nothing: whether there are none.
pub(super) type InputCheck = fn(Tx<'_>) -> bool;

/// The report's base and its steps.
pub(super) const STEPS: [(&str, InputCheck); 5] = [
    (SET, by_set),
    (SET_NOT_ONE, by_set_not_one),
    (SET_NOT_TWO, by_set_not_two),
    (SORTED, by_sorting),
    (SORTED_NULL, by_sorting_with_null),
];

/// `CheckTransaction` with another check of inputs; everything else in Core's order.
pub(super) fn check_with(tx: Tx<'_>, inputs: InputCheck) -> bool {
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
    inputs(tx)
}

/// A coinbase's script has 2 to 100 bytes; any other transaction has no null input.
fn by_coinbase_or(tx: Tx<'_>, others: impl FnOnce() -> bool) -> bool {
    if tx.is_coinbase() {
        return (2..=100).contains(&tx.input(0).script_sig.len());
    }
    others()
}

fn no_null(tx: Tx<'_>) -> bool {
    !tx.inputs().any(|input| input.prevout.is_null())
}

fn distinct_in_set(tx: Tx<'_>) -> bool {
    let mut set = BTreeSet::new();
    tx.inputs().all(|input| set.insert(input.prevout))
}

fn by_set(tx: Tx<'_>) -> bool {
    distinct_in_set(tx) && by_coinbase_or(tx, || no_null(tx))
}

fn by_set_not_one(tx: Tx<'_>) -> bool {
    by_coinbase_or(tx, || (tx.input_count() == 1 || distinct_in_set(tx)) && no_null(tx))
}

/// Two inputs are compared with each other.
fn pair(tx: Tx<'_>) -> Option<bool> {
    match tx.input_count() {
        1 => Some(true),
        2 => Some(tx.input(0).prevout != tx.input(1).prevout),
        _ => None,
    }
}

fn by_set_not_two(tx: Tx<'_>) -> bool {
    by_coinbase_or(tx, || pair(tx).unwrap_or_else(|| distinct_in_set(tx)) && no_null(tx))
}

fn sorted(tx: Tx<'_>) -> Vec<OutPoint> {
    let mut prevouts = Vec::with_capacity(tx.input_count());
    prevouts.extend(tx.inputs().map(|input| input.prevout));
    prevouts.sort_unstable();
    prevouts
}

fn are_distinct(sorted: &[OutPoint]) -> bool {
    sorted.array_windows().all(|[left, right]| left != right)
}

fn by_sorting(tx: Tx<'_>) -> bool {
    by_coinbase_or(tx, || pair(tx).unwrap_or_else(|| are_distinct(&sorted(tx))) && no_null(tx))
}

fn by_sorting_with_null(tx: Tx<'_>) -> bool {
    by_coinbase_or(tx, || {
        if let Some(distinct) = pair(tx) {
            return distinct && no_null(tx);
        }
        let sorted = sorted(tx);
        // The null outpoint has the least txid and the greatest index: it follows the others of that txid.
        let zeros = sorted.iter().take_while(|prevout| prevout.txid == Txid::default());
        are_distinct(&sorted) && !zeros.last().is_some_and(OutPoint::is_null)
    })
}

fn by_hash_set(tx: Tx<'_>) -> bool {
    by_coinbase_or(tx, || {
        let mut set = HashSet::with_capacity(tx.input_count());
        tx.inputs().all(|input| !input.prevout.is_null() && set.insert(input.prevout))
    })
}

/// Rows over numbers of inputs.
pub(super) fn duplicates<'a>(counts: &[u64], extent: Extent, scale: Scale) -> Vec<Benchmark<'a>> {
    let counts = if extent == Extent::Smoke { &[1, 2, 50][..] } else { counts };
    let rows = counts.iter().map(|count| (DUPLICATES, *count, false));
    let colliding = if extent == Extent::Smoke { 50 } else { COLLIDING };
    rows.chain([("duplicate-inputs-colliding", colliding, true)])
        .map(|(series, count, is_colliding)| {
            let name = format!("{series}/{count}");
            let benchmark = name.clone();
            Benchmark {
                name,
                series: series.to_owned(),
                size: Some(count),
                unit: "inputs",
                bytes_per_op: None,
                baseline: None,
                make: Box::new(move || {
                    duplicates_of(&benchmark, &prevouts(count, is_colliding), scale)
                }),
            }
        })
        .collect()
}

/// Series of the check for duplicates alone.
pub(super) const DUPLICATES: &str = "duplicate-inputs";

/// Inputs whose txids agree in their first eight bytes, which somebody has ground for.
const COLLIDING: u64 = 2_000;

fn prevouts(count: u64, is_colliding: bool) -> Vec<OutPoint> {
    let mut random = Random::new(count);
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
    let mut raw = 2i32.to_le_bytes().to_vec();
    encode::compact_size(&mut raw, prevouts.len() as u64);
    for prevout in prevouts {
        raw.extend(prevout.to_bytes());
        raw.extend([0, 0xff, 0xff, 0xff, 0xff]);
    }
    raw.push(1);
    raw.extend(1i64.to_le_bytes());
    raw.extend([0, 0, 0, 0, 0]);
    Arc::new(Transaction::parse(raw, Encoding::Segwit).expect("it is well formed"))
}

/// The transaction passes, and does not with one input twice or with one that spends nothing.
fn is_judged_right(prevouts: &[OutPoint], check: impl Fn(Tx<'_>) -> bool) -> bool {
    let is_valid = |prevouts: &[OutPoint]| check(spending(prevouts).view());
    if prevouts.len() == 1 {
        return is_valid(prevouts);
    }
    let (mut twice, mut null) = (prevouts.to_vec(), prevouts.to_vec());
    twice[0] = prevouts[prevouts.len() - 1];
    null[prevouts.len() / 2] = OutPoint::NULL;
    is_valid(prevouts) && !is_valid(&twice) && !is_valid(&null)
}

fn duplicates_of<'a>(
    name: &str,
    prevouts: &[OutPoint],
    scale: Scale,
) -> Result<Vec<Alternative<'a>>, BenchError> {
    let tx = spending(prevouts);
    let mut alternatives = Vec::new();
    for (alternative, inputs) in STEPS.into_iter().chain([(HASH_SET, by_hash_set as InputCheck)]) {
        let right = is_judged_right(prevouts, |tx| check_with(tx, inputs));
        expect(right, name, alternative, "another verdict")?;
        let tx = Arc::clone(&tx);
        alternatives.push(scale.calls(alternative, 1, move || {
            assert!(check_with(black_box(&tx).view(), inputs), "it was valid before");
        })?);
    }
    let right = is_judged_right(prevouts, |tx| check_transaction(tx).is_ok());
    expect(right, name, ASSAY, "another verdict")?;
    alternatives.push(scale.calls(ASSAY, 1, move || {
        assert!(check_transaction(black_box(&tx).view()).is_ok(), "it was valid before");
    })?);
    Ok(alternatives)
}

/// All that a block tells alone, except its work.
pub(super) fn blocks<'a>(subject: &LazySubject, scale: Scale) -> Benchmark<'a> {
    let name = format!("check-block/{}", subject.name);
    let (subject, benchmark) = (subject.clone(), name.clone());
    Benchmark {
        name,
        series: "check-block".to_owned(),
        size: None,
        unit: "blocks",
        bytes_per_op: None,
        baseline: None,
        make: Box::new(move || check_blocks(&benchmark, &subject.get()?, scale)),
    }
}

/// Ours, with the check of transactions exchanged.
fn check_block_with(params: &ChainParams, subject: &Subject, inputs: InputCheck) -> bool {
    let block = &subject.block;
    let mut sigops = 0;
    check_merkle_root(block.header(), &subject.txids).is_ok()
        && check_shape(params, block).is_ok()
        && block.txs().all(|tx| {
            sigops += legacy_sigops(tx);
            check_with(tx, inputs)
        })
        && check_legacy_sigops(params, sigops).is_ok()
}

fn check_blocks(
    name: &str,
    subject: &Arc<Subject>,
    scale: Scale,
) -> Result<Vec<Alternative<'static>>, BenchError> {
    let params = ChainParams::by_name("main").expect("a known chain");
    let mut alternatives = Vec::new();
    for (alternative, inputs) in STEPS {
        let right = check_block_with(&params, subject, inputs);
        expect(right, name, alternative, "a valid block fails")?;
        let (params, subject) = (params.clone(), Arc::clone(subject));
        alternatives.push(scale.calls(alternative, 1, move || {
            assert!(check_block_with(&params, black_box(&subject), inputs), "it was valid before");
        })?);
    }
    check_block(&params, &subject.block, &subject.txids)
        .map_err(|error| wrong(name, ASSAY, error.to_string()))?;
    let subject = Arc::clone(subject);
    alternatives.push(scale.calls(ASSAY, 1, move || {
        let block = &black_box(&subject).block;
        assert!(check_block(&params, block, &subject.txids).is_ok(), "it was valid before");
    })?);
    Ok(alternatives)
}
