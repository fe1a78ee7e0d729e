//! Counts against the ledgers of forged chains, and block files made of their blocks.

mod damage;
mod ledger;

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use assay_consensus::header::check_header;
use assay_consensus::params::ChainParams;
use assay_forge::{BlockLine, ForgeOptions, Ledger, Recipe, forge};
use assay_stats::{BlockRow, BlockSet, Heights, InvalidBlock, Item, ReadOptions, TxRow, read};
use assay_wire::Header;
use tempfile::TempDir;

/// A forged chain and its blocks from height 1 on.
pub(crate) struct Forged {
    pub(crate) dir: TempDir,
    pub(crate) ledger: Ledger,
    pub(crate) blocks: Vec<Vec<u8>>,
}

impl Forged {
    fn new(recipe: &str, scale: f64) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let options = ForgeOptions { seed: 3, scale, threads: 2, ..ForgeOptions::default() };
        let recipe = Recipe::builtin(recipe).expect("a recipe");
        let chain = dir.path().join("chain");
        let ledger = forge(&recipe, &options, &chain, &mut ()).expect("a chain").ledger;
        let block = |line: &BlockLine| {
            let file = fs::read(chain.join(&line.file)).expect("a block file");
            file[line.offset as usize..][..line.bytes as usize].to_vec()
        };
        let blocks = ledger.blocks.iter().map(block).collect();
        Self { dir, ledger, blocks }
    }

    pub(crate) fn path(&self) -> std::path::PathBuf {
        self.dir.path().join("chain")
    }

    pub(crate) fn params(&self) -> Arc<ChainParams> {
        Arc::new(ChainParams::by_name(&self.ledger.chain.chain).expect("a known chain"))
    }

    pub(crate) fn open(&self, path: &Path) -> BlockSet {
        BlockSet::open(path, self.params(), 2, &|_, _| ()).expect("a chain")
    }

    /// A sibling of the block at a height: the same with another nonce or time.
    pub(crate) fn sibling(&self, height: usize) -> Vec<u8> {
        let mut raw = self.blocks[height - 1].clone();
        loop {
            let nonce = u32::from_le_bytes([raw[76], raw[77], raw[78], raw[79]]).wrapping_add(1);
            raw[76..80].copy_from_slice(&nonce.to_le_bytes());
            let mut head = [0; 80];
            head.copy_from_slice(&raw[..80]);
            let header = Header::parse(&head);
            if check_header(&self.params(), &header, &header.hash()).is_ok() {
                return raw;
            }
        }
    }
}

/// One of each recipe, made once.
pub(crate) static BITCOIN: LazyLock<Forged> =
    LazyLock::new(|| Forged::new("bitcoin-scaling", 0.01));
pub(crate) static CASH: LazyLock<Forged> = LazyLock::new(|| Forged::new("bch-scaling", 0.01));
pub(crate) static SIGHASH: LazyLock<Forged> =
    LazyLock::new(|| Forged::new("sighash-scaling", 0.125));

pub(crate) fn all() -> [&'static Forged; 3] {
    [&BITCOIN, &CASH, &SIGHASH]
}

/// A record of a block file.
pub(crate) fn frame(params: &ChainParams, raw: &[u8]) -> Vec<u8> {
    let size = (raw.len() as u32).to_le_bytes();
    [&params.disk_magic[..], &size, raw].concat()
}

#[derive(Debug, Default)]
pub(crate) struct All {
    pub(crate) blocks: Vec<BlockRow>,
    pub(crate) txs: Vec<TxRow>,
    pub(crate) damage: Vec<InvalidBlock>,
}

pub(crate) fn read_all(set: &BlockSet, options: &ReadOptions) -> All {
    let mut all = All::default();
    read(set, Heights::ALL, options, &mut |item| {
        match item {
            Item::Txs(rows) => all.txs.extend(rows),
            Item::Block(row) => all.blocks.push(*row),
            Item::Damage(damage) => all.damage.push(*damage),
        }
        ControlFlow::Continue(())
    });
    all
}
