//! The blocks of the measurements.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use anyhow::Result;
use assay_bench::harness::Alternative;
use assay_bench::suite::{Benchmark, Extent};
use assay_bench::wrong_answer;
use assay_consensus::block::check_block;
use assay_wire::{Block, Encoding, Txid};

use crate::forged::{Forge, Kind};
use crate::{chain, read_file};

/// A block with all data that alternatives start from.
#[derive(Debug)]
pub(super) struct Subject {
    pub(super) raw: Vec<u8>,
    pub(super) block: Block,
    pub(super) txids: Vec<Txid>,
}

#[derive(Clone, Debug)]
enum Source {
    File(PathBuf),
    Forged { seed: u64, txs: usize },
}

/// A subject that is created on first use.
#[derive(Clone, Debug)]
pub(super) struct LazySubject {
    pub(super) name: &'static str,
    source: Source,
    made: Arc<OnceLock<Arc<Subject>>>,
}

impl LazySubject {
    fn new(name: &'static str, source: Source) -> Self {
        Self { name, source, made: Arc::default() }
    }

    /// Returns the subject, and creates it on the first call.
    pub(super) fn get(&self) -> Result<Arc<Subject>> {
        if let Some(made) = self.made.get() {
            return Ok(Arc::clone(made));
        }
        let raw = match &self.source {
            Source::File(path) => read_file(path)?,
            Source::Forged { seed, txs } => Forge::new(*seed).0.next(Kind::Mixed, *txs).raw,
        };
        let subject = Subject::new(self.name, raw)?;
        Ok(Arc::clone(self.made.get_or_init(|| Arc::new(subject))))
    }

    pub(super) fn benchmark<'a>(
        &self,
        operation: &str,
        unit: &str,
        make: impl Fn(&str) -> Result<Vec<Alternative<'a>>> + 'a,
    ) -> Benchmark<'a> {
        let series = operation.to_owned();
        Benchmark { series, ..Benchmark::new(format!("{operation}/{}", self.name), unit, make) }
    }
}

impl Subject {
    fn new(name: &str, raw: Vec<u8>) -> Result<Self> {
        let block = Block::parse(raw.clone(), Encoding::Segwit)
            .map_err(|error| wrong_answer(name, "parse", error))?;
        let txids = block.txids(0..block.tx_count());
        check_block(&chain("main"), &block, &txids)
            .map_err(|error| wrong_answer(name, "CheckBlock", error))?;
        Ok(Self { raw, block, txids })
    }
}

/// The real block, if available, and the forged one.
pub(super) fn subjects(real: Option<&Path>, extent: Extent, seed: u64) -> Vec<LazySubject> {
    let txs = if extent == Extent::Smoke { 40 } else { 1_500 };
    let real = real.map(|path| LazySubject::new(REAL, Source::File(path.to_owned())));
    let forged = LazySubject::new("forged", Source::Forged { seed, txs });
    real.into_iter().chain([forged]).collect()
}

/// Height of the report's block.
pub(super) const REAL: &str = "413567";

/// Finds the real block in the folder of the settings or the environment.
pub(super) fn real_block(data: Option<&Path>) -> Option<PathBuf> {
    let given = data.map(Path::to_owned);
    let root = given.or_else(|| std::env::var_os("ASSAY_TEST_DATA").map(PathBuf::from))?;
    [root.join("blocks").join(FILE), root.join(FILE)].into_iter().find(|path| path.is_file())
}

const FILE: &str = "mainnet-413567.blk";
