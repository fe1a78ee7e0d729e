//! Transactions submitted to the engine, up to their missing coins.

use std::sync::Arc;

use assay_bench::BenchError;
use assay_bench::harness::Alternative;
use assay_bench::suite::Benchmark;
use assay_consensus::params::ChainParams;
use assay_engine::{Config, Engine, TestAccept, TxRejectCode};
use tempfile::TempDir;

use super::subjects::LazySubject;
use super::{ASSAY, expect, folder};

/// Transactions with missing inputs: everything but coins and scripts (the report's `ProcessTransactionBench`).
pub(super) fn missing<'a>(subject: &LazySubject) -> Benchmark<'a> {
    let subject = subject.clone();
    subject.clone().benchmark("process-transaction", "transactions", move |name| {
        let node = Node::open()?;
        let mut offers = Vec::new();
        for tx in subject.get()?.block.txs().skip(1) {
            // Transactions that policy rejects early do not take the whole path.
            let reject = node.offer(tx.raw()).reject;
            if reject.is_some_and(|reject| reject.code == TxRejectCode::MissingInputs) {
                offers.push(tx.raw().to_vec());
            }
        }
        expect(!offers.is_empty(), name, ASSAY, "nothing came as far as its inputs")?;
        Ok(vec![Alternative::calls_of(ASSAY, offers.len() as u64, move || {
            for tx in &offers {
                assert!(node.offer(tx).reject.is_some(), "its inputs are not there");
            }
        })])
    })
}

/// An engine with an empty regtest chain.
struct Node {
    engine: Engine,
    _dir: TempDir,
}

impl Node {
    fn open() -> Result<Self, BenchError> {
        let dir = folder()?;
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
