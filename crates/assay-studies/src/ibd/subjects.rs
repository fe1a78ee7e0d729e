//! The blocks of the measurements.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use assay_bench::BenchError;
use assay_bench::suite::Extent;
use assay_consensus::block::check_block;
use assay_consensus::params::ChainParams;
use assay_report::stats::random::SplitMix64;
use assay_store::UndoWriter;
use assay_wire::{Block, Coin, Encoding, Txid};

use super::calls::{file_error, wrong};
use super::modern::{self, Kind};

/// A block with all data that alternatives start from.
#[derive(Debug)]
pub(super) struct Subject {
    pub(super) raw: Vec<u8>,
    pub(super) block: Block,
    pub(super) txids: Vec<Txid>,
    /// The spent coins, in order of the inputs.
    pub(super) coins: Vec<Coin>,
    pub(super) undo: Vec<u8>,
}

#[derive(Clone, Debug)]
enum Source {
    File(PathBuf),
    Modern { seed: u64, txs: usize },
}

/// A subject that is created on first use.
#[derive(Clone, Debug)]
pub(super) struct LazySubject {
    /// Its part of the names of benchmarks.
    pub(super) name: &'static str,
    source: Source,
    made: Arc<OnceLock<Arc<Subject>>>,
}

impl LazySubject {
    fn new(name: &'static str, source: Source) -> Self {
        Self { name, source, made: Arc::default() }
    }

    /// Returns the subject, and creates it on the first call.
    pub(super) fn get(&self) -> Result<Arc<Subject>, BenchError> {
        if let Some(made) = self.made.get() {
            return Ok(Arc::clone(made));
        }
        let subject = match &self.source {
            Source::File(path) => {
                let raw = std::fs::read(path).map_err(file_error(path))?;
                Subject::new(self.name, raw, None)?
            }
            Source::Modern { seed, txs } => {
                let (raw, coins) = modern::block(*seed, *txs);
                Subject::new(self.name, raw, Some(coins))?
            }
        };
        Ok(Arc::clone(self.made.get_or_init(|| Arc::new(subject))))
    }
}

impl Subject {
    fn new(name: &str, raw: Vec<u8>, coins: Option<Vec<Coin>>) -> Result<Self, BenchError> {
        let block = Block::parse(raw.clone(), Encoding::Segwit)
            .map_err(|error| wrong(name, "parse", error.to_string()))?;
        let txids = block.txids(0..block.tx_count());
        let params = ChainParams::by_name("main").expect("a known chain");
        check_block(&params, &block, &txids)
            .map_err(|error| wrong(name, "CheckBlock", error.to_string()))?;
        let coins = coins.unwrap_or_else(|| coins_of_2016(block.input_count() - 1));
        let mut undo = UndoWriter::with_capacity(coins.len());
        for coin in &coins {
            undo.push(coin.into());
        }
        Ok(Self { raw, block, txids, coins, undo: undo.finish() })
    }
}

/// Coins like those spent by a block of 2016; the real ones are not available.
fn coins_of_2016(count: usize) -> Vec<Coin> {
    let mut random = SplitMix64::new(413_567);
    (0..count)
        .map(|_| {
            let kind = if random.below(6) == 0 { Kind::P2sh } else { Kind::P2pkh };
            let coin = modern::coin(kind, &mut random);
            Coin { height: coin.height - (modern::HEIGHT - 413_567), ..coin }
        })
        .collect()
}

/// The real block, if available, and the modern one.
pub(super) fn subjects(real: Option<&Path>, extent: Extent, seed: u64) -> Vec<LazySubject> {
    let txs = if extent == Extent::Smoke { 40 } else { 2_750 };
    let real = real.map(|path| LazySubject::new(REAL, Source::File(path.to_owned())));
    let modern = LazySubject::new(MODERN, Source::Modern { seed, txs });
    real.into_iter().chain([modern]).collect()
}

/// Height of the report's block.
pub(super) const REAL: &str = "413567";

/// Name of the synthetic block.
pub(super) const MODERN: &str = "modern";

/// Finds the real block in the folder of the settings or the environment.
pub(super) fn real_block(data: Option<&Path>) -> Option<PathBuf> {
    let given = data.map(Path::to_owned);
    let root = given.or_else(|| std::env::var_os("ASSAY_TEST_DATA").map(PathBuf::from))?;
    [root.join("blocks").join(FILE), root.join(FILE)].into_iter().find(|path| path.is_file())
}

const FILE: &str = "mainnet-413567.blk";
