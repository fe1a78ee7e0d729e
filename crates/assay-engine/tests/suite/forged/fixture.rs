//! An engine with spendable coins.

use std::collections::HashSet;

use assay_engine::{Config, Engine};
use assay_wire::{Block, BlockHash, Encoding, OutPoint, Transaction, Txid};
use tempfile::TempDir;

use super::chain::accept;
use super::mint::{Mint, params, tx};

/// An engine at height 105, where coinbases 1 to 6 can be spent in the next block.
pub(crate) struct Fixture {
    pub(crate) engine: Engine,
    pub(crate) config: Config,
    pub(crate) mint: Mint,
    _dir: TempDir,
}

impl Fixture {
    pub(crate) fn new(change: impl Fn(&mut Config)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut config = Config::new(dir.path(), params());
        config.threads = 2;
        config.script_batch = Some(20);
        config.cache_bytes_max = 16 << 20;
        change(&mut config);
        let engine = Engine::open(config.clone()).unwrap();
        let mut fixture = Self { engine, config, mint: Mint::new(), _dir: dir };
        for _ in 0..105 {
            fixture.mine(&[]);
        }
        fixture
    }

    /// Replaces the engine by another one over the same folder; `is_clean`: after a clean shutdown.
    pub(crate) fn reopen(self, is_clean: bool) -> Self {
        if is_clean {
            self.engine.shutdown().unwrap();
        }
        drop(self.engine);
        let engine = Engine::open(self.config.clone()).unwrap();
        Self { engine, ..self }
    }

    pub(crate) fn mine(&mut self, txs: &[Transaction]) -> BlockHash {
        let raw = self.mint.block_of(txs);
        accept(&self.engine, raw);
        self.mint.tip
    }

    pub(crate) fn offer(&self, tx: &Transaction) -> Txid {
        self.engine.mempool().submit(tx.bytes().to_vec(), None).unwrap()
    }

    /// The coinbase output of the block at `height`.
    pub(crate) fn coinbase(&self, height: u32) -> OutPoint {
        let hash = self.engine.chain().hash_at(height).unwrap();
        let raw = self.engine.blocks().read(&hash).unwrap().unwrap();
        let block = Block::parse(raw, Encoding::Segwit).unwrap();
        OutPoint { txid: block.tx(0).txid(), vout: 0 }
    }

    /// A transaction that spends that output.
    pub(crate) fn spend(&self, height: u32, value: i64) -> Transaction {
        tx(&[(self.coinbase(height), u32::MAX)], &[value], 0)
    }

    pub(crate) fn mempool(&self) -> HashSet<Txid> {
        self.engine.mempool().txids().into_iter().collect()
    }
}

pub(crate) fn txid(tx: &Transaction) -> Txid {
    tx.view().txid()
}

/// Spends the first output of `of`.
pub(crate) fn child(of: &Transaction, value: i64) -> Transaction {
    tx(&[(OutPoint { txid: txid(of), vout: 0 }, u32::MAX)], &[value], 0)
}
