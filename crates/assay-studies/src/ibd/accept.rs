//! Transactions submitted to the engine, up to their missing coins.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use assay_bench::harness::Alternative;
use assay_bench::suite::Benchmark;
use assay_engine::{Config, Engine, TestAccept, TxRejectCode};

use super::subjects::LazySubject;
use super::{ASSAY, InFolder, expect};
use crate::{chain, open_engine};

/// Transactions with missing inputs: everything but coins and scripts (the report's `ProcessTransactionBench`).
pub(super) fn missing<'a>(subject: &LazySubject) -> Benchmark<'a> {
    let subject = subject.clone();
    subject.clone().benchmark("process-transaction", "transactions", move |name| {
        let engine = InFolder::open(engine)?;
        let mut offers = Vec::new();
        for tx in subject.get()?.block.txs().skip(1) {
            // Transactions that policy rejects early do not take the whole path.
            let reject = offer(&engine, tx.raw()).reject;
            if reject.is_some_and(|reject| reject.code == TxRejectCode::MissingInputs) {
                offers.push(tx.raw().to_vec());
            }
        }
        expect(!offers.is_empty(), name, ASSAY, "nothing came as far as its inputs")?;
        Ok(vec![Alternative::calls_of(ASSAY, offers.len() as u64, move || {
            for tx in &offers {
                assert!(offer(&engine, tx).reject.is_some(), "its inputs are not there");
            }
        })])
    })
}

/// An engine with an empty regtest chain.
fn engine(dir: &Path) -> Result<Engine> {
    let mut config = Config::new(dir, Arc::new(chain("regtest")));
    config.cache_bytes_max = 64 << 20;
    config.persist_mempool = false;
    config.threads = 1;
    open_engine(config)
}

fn offer(engine: &Engine, raw: &[u8]) -> TestAccept {
    let mut verdicts = engine.mempool().test_accept(vec![raw.to_vec()], None);
    verdicts.pop().expect("one transaction has one verdict")
}
