//! Transactions submitted to the engine: the path up to missing coins, and the savings of the script cache.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::forged::{Forge, Kind};
use assay_bench::BenchError;
use assay_bench::harness::Alternative;
use assay_bench::suite::{Benchmark, Extent};
use assay_consensus::params::ChainParams;
use assay_engine::{Config, Engine, SubmitOutcome, TestAccept, TxRejectCode};
use tempfile::TempDir;

use super::calls::{Scale, expect, file_error, wrong};
use super::subjects::{LazySubject, Subject};
use super::{AGAIN, ASSAY, FIRST};

/// Transactions with missing inputs: everything but coins and scripts (the report's `ProcessTransactionBench`).
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

/// Valid transactions of five inputs, submitted for the first time and again.
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

/// An engine with its own regtest chain.
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
    let node = Node::open()?;
    let mut offers = Vec::new();
    for tx in subject.block.txs().skip(1) {
        // Transactions that policy rejects early, or that spend others of the block, do not take the whole path.
        let reject = node.offer(tx.raw()).reject;
        if reject.is_some_and(|reject| reject.code == TxRejectCode::MissingInputs) {
            offers.push(tx.raw().to_vec());
        }
    }
    expect(!offers.is_empty(), name, ASSAY, "nothing came as far as its inputs")?;
    let ours = scale.calls(ASSAY, offers.len() as u64, move || {
        for tx in &offers {
            assert!(node.offer(tx).reject.is_some(), "its inputs are not there");
        }
    })?;
    Ok(vec![ours])
}

/// An engine with coins to spend and their signer.
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
                other => return Err(crate::own_block(block.height, &other)),
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
