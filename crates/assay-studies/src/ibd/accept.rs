//! Transactions offered to the engine: what the check of inputs is worth in context, and what it saves to look at scripts once.

use std::hint::black_box;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use assay_bench::BenchError;
use assay_bench::forged::{Forge, Kind};
use assay_bench::harness::{Alternative, Sample};
use assay_bench::suite::{Benchmark, Extent};
use assay_consensus::params::ChainParams;
use assay_consensus::tx::check_transaction;
use assay_engine::{Config, Engine, SubmitOutcome, TestAccept, TxRejectCode};
use assay_wire::{Encoding, Transaction};
use tempfile::TempDir;

use super::calls::{Scale, expect, file_error, wrong};
use super::check::{STEPS, check_with};
use super::names::{AGAIN, ASSAY, FIRST, SET, SORTED_NULL};
use super::subjects::{LazySubject, Subject};

/// Transactions whose inputs are not there: everything but coins and scripts (the report's `ProcessTransactionBench`).
pub(super) fn missing<'a>(subject: &LazySubject, scale: Scale) -> Benchmark<'a> {
    let name = format!("process-transaction/{}", subject.name);
    let (subject, benchmark) = (subject.clone(), name.clone());
    Benchmark {
        name,
        series: "process-transaction".to_owned(),
        size: None,
        unit: "transactions",
        bytes_per_op: None,
        baseline: None,
        make: Box::new(move || make_missing(&benchmark, &subject.get()?, scale)),
    }
}

/// Transactions of five inputs that are valid, offered for the first time and once more.
pub(super) fn valid<'a>(extent: Extent, scale: Scale) -> Vec<Benchmark<'a>> {
    let bench: Arc<OnceLock<Arc<Forged>>> = Arc::default();
    [Kind::Ecdsa, Kind::Schnorr]
        .map(|kind| {
            let name = format!("accept-transaction/{}", kind.name());
            let (benchmark, bench) = (name.clone(), Arc::clone(&bench));
            Benchmark {
                name,
                series: "accept-transaction".to_owned(),
                size: None,
                unit: "transactions",
                bytes_per_op: None,
                baseline: None,
                make: Box::new(move || {
                    if bench.get().is_none() {
                        bench.get_or_init(|| Arc::new(Forged::default()));
                    }
                    let forged = bench.get().expect("it was made just now");
                    make_valid(&benchmark, kind, forged, extent, scale)
                }),
            }
        })
        .into()
}

/// An engine of its own on regtest.
struct Node {
    engine: Engine,
    _dir: TempDir,
}

impl Node {
    fn open() -> Result<Self, BenchError> {
        let dir = tempfile::tempdir().map_err(file_error(&std::env::temp_dir()))?;
        let params = ChainParams::by_name("regtest").expect("a known chain");
        let mut config = Config::new(dir.path(), Arc::new(params));
        config.cache_bytes_max = 64 << 20;
        config.persist_mempool = false;
        config.threads = 1;
        let engine = Engine::open(config).map_err(|error| BenchError::Engine {
            dir: dir.path().to_owned(),
            source: Box::new(error),
        })?;
        Ok(Self { engine, _dir: dir })
    }

    fn offer(&self, raw: &[u8]) -> TestAccept {
        let mut verdicts = self.engine.test_accept(vec![raw.to_vec()], None);
        verdicts.pop().expect("one transaction has one verdict")
    }
}

fn make_missing(
    name: &str,
    subject: &Arc<Subject>,
    scale: Scale,
) -> Result<Vec<Alternative<'static>>, BenchError> {
    let node = Arc::new(Node::open()?);
    let mut offers = Vec::new();
    for tx in subject.block.txs().skip(1) {
        // What policy refuses at once, or a block's own chain of transactions, tells nothing of the way through.
        let reject = node.offer(tx.raw()).reject;
        if reject.is_some_and(|reject| reject.code == TxRejectCode::MissingInputs) {
            let parsed = Transaction::parse(tx.raw().to_vec(), Encoding::Segwit)
                .map_err(|error| wrong(name, ASSAY, error.to_string()))?;
            offers.push(parsed);
        }
    }
    expect(!offers.is_empty(), name, ASSAY, "nothing came as far as its inputs")?;
    let (ops, offers) = (offers.len() as u64, Arc::new(offers));
    let mut alternatives = Vec::new();
    for (alternative, inputs) in
        STEPS.into_iter().filter(|step| [SET, SORTED_NULL].contains(&step.0))
    {
        let (node, offers) = (Arc::clone(&node), Arc::clone(&offers));
        alternatives.push(scale.epochs(alternative, move |times| {
            let path = timed(times, &offers, |tx| node.offer(tx.bytes()).reject.is_some());
            let own = timed(times, &offers, |tx| check_transaction(tx.view()).is_ok());
            let other = timed(times, &offers, |tx| check_with(tx.view(), inputs));
            Ok(with_other_check(path, own, other))
        })?);
    }
    alternatives.push(scale.calls(ASSAY, ops, move || {
        for tx in offers.iter() {
            assert!(node.offer(tx.bytes()).reject.is_some(), "its inputs are not there");
        }
    })?);
    Ok(alternatives)
}

/// Does something to all transactions so many times, which must hold for each.
fn timed(times: u64, offers: &[Transaction], holds: impl Fn(&Transaction) -> bool) -> Sample {
    Sample::of(times * offers.len() as u64, || {
        for _ in 0..times {
            for tx in offers {
                assert!(holds(black_box(tx)), "it was so before");
            }
        }
    })
}

/// The path of a transaction through the engine with another check of it. The engine makes its own check in any case, so that
/// one, timed alone, is taken off and the other put in its place: each side checks once.
fn with_other_check(path: Sample, own: Sample, other: Sample) -> Sample {
    let replaced = |path: u64, own: u64, other: u64| path.saturating_sub(own) + other;
    Sample::timed(
        path.ops,
        replaced(path.wall_ns, own.wall_ns, other.wall_ns),
        replaced(path.cpu_ns, own.cpu_ns, other.cpu_ns),
    )
}

/// An engine with coins to spend, and who signs for them.
#[derive(Default)]
struct Forged(Mutex<Option<Funded>>);

type Funded = (Arc<Node>, Arc<Mutex<Forge>>);

impl Forged {
    fn get(&self) -> Result<Funded, BenchError> {
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((node, forge)) = &*made {
            return Ok((Arc::clone(node), Arc::clone(forge)));
        }
        let node = Arc::new(Node::open()?);
        let (forge, blocks) = Forge::new(1);
        for block in blocks {
            match node.engine.submit_block(block.raw) {
                SubmitOutcome::Accepted => {}
                other => return Err(BenchError::own_block(block.height, &other)),
            }
        }
        let forge = Arc::new(Mutex::new(forge));
        *made = Some((Arc::clone(&node), Arc::clone(&forge)));
        Ok((node, forge))
    }
}

fn make_valid(
    name: &str,
    kind: Kind,
    forged: &Forged,
    extent: Extent,
    scale: Scale,
) -> Result<Vec<Alternative<'static>>, BenchError> {
    let (node, forge) = forged.get()?;
    let count = if extent == Extent::Smoke { 2 } else { 32 };
    let rivals = {
        let forge = Arc::clone(&forge);
        move || forge.lock().unwrap_or_else(PoisonError::into_inner).rivals(kind, count)
    };
    let mut broken = rivals().remove(0);
    let middle = broken.len() - 40;
    broken[middle] ^= 1;
    expect(node.offer(&broken).reject.is_some(), name, FIRST, "a false signature passes")?;
    let is_accepted = |node: &Node, raw: &[u8]| match node.offer(raw).reject {
        None => Ok(()),
        Some(reject) => Err(wrong("accept-transaction", ASSAY, reject.reason)),
    };
    let known = rivals();
    known.iter().try_for_each(|raw| is_accepted(&node, raw))?;
    let (one, two) = (Arc::clone(&node), node);
    Ok(vec![
        scale.at_most(1).prepared(
            FIRST,
            count as u64,
            move || Ok(rivals()),
            move |txs| txs.iter().try_for_each(|raw| is_accepted(&one, raw)),
        )?,
        scale.prepared(
            AGAIN,
            count as u64,
            || Ok(()),
            move |()| known.iter().try_for_each(|raw| is_accepted(&two, raw)),
        )?,
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A check that takes twice as long as the engine's must not be diluted by a second one.
    #[test]
    fn another_check_takes_the_place_of_the_engines_own() {
        let sample = |ns: u64| Sample::timed(10, ns, ns);
        let found = with_other_check(sample(1_000), sample(100), sample(200));
        assert_eq!((found.ops, found.wall_ns, found.cpu_ns), (10, 1_100, 1_100));
        // The noise of three times must not make a negative one.
        assert_eq!(with_other_check(sample(10), sample(20), sample(5)).wall_ns, 5);
    }
}
