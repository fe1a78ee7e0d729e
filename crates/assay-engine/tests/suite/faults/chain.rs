//! A small tree of regtest blocks with coins, competing branches, and an invalid block.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use assay_consensus::params::ChainParams;
use assay_engine::{Engine, SubmitOutcome};
use assay_testkit::chain::{
    P2SH_TRUE, SPEND_P2SH_TRUE, TxBuilder, coinbase_with, header_on, mined_block_bytes,
};
use assay_wire::{Block, BlockHash, Encoding, Header, OutPoint, Transaction, Txid};

use super::disk::{Disk, Setup};

/// Blocks below the branches: the coins of the first ones are mature.
pub(crate) const BASE: u32 = 108;

/// A script that anyone can spend.
const ANYONE: &[u8] = &[0x51];

/// The base, and the blocks submitted on top of it.
pub(crate) struct Story {
    pub(crate) params: Arc<ChainParams>,
    /// A disk with the flushed base.
    pub(crate) base: Disk,
    pub(crate) acts: Vec<Act>,
    /// `MuHash` of the coins at each possible tip.
    pub(crate) muhash: HashMap<BlockHash, [u8; 32]>,
    pub(crate) end: BlockHash,
    coinbases: Vec<Txid>,
}

pub(crate) enum Act {
    Submit {
        raw: Vec<u8>,
        hash: BlockHash,
        is_valid: bool,
    },
    Flush,
    /// A transaction that no block of the story confirms or contradicts.
    Offer {
        raw: Vec<u8>,
        txid: Txid,
    },
    SaveMempool,
}

struct Made {
    raw: Vec<u8>,
    hash: BlockHash,
    parent: BlockHash,
}

#[derive(Default)]
struct Builder {
    /// Coinbases of the base, each with four outputs that each branch may spend once.
    coinbases: Vec<Txid>,
    made: Vec<Made>,
}

impl Story {
    /// Created once and reused.
    pub(crate) fn get() -> &'static Self {
        static STORY: OnceLock<Story> = OnceLock::new();
        STORY.get_or_init(Self::new)
    }

    fn new() -> Self {
        let params = Arc::new(ChainParams::by_name("regtest").unwrap());
        let mut builder = Builder::default();
        let base = Disk::new();
        let engine = base.open(&params, Setup::Calm).unwrap();
        let mut tip = params.genesis_hash;
        for height in 1..=BASE {
            let raw = builder.block(tip, height, 0, &[], 0);
            assert!(matches!(engine.blocks().submit(raw.clone()), SubmitOutcome::Accepted));
            let block = Block::parse(raw, Encoding::Segwit).unwrap();
            builder.coinbases.push(block.tx(0).txid());
            tip = block.hash();
        }
        engine.shutdown().unwrap();
        drop(engine);
        builder.made.clear();
        let (acts, end) = builder.acts(tip);
        let mut muhash = HashMap::from([(tip, muhash(&base.open(&params, Setup::Calm).unwrap()))]);
        for made in &builder.made {
            // The branch up to this block, alone.
            let mut branch = vec![made];
            while let Some(below) = builder.made.iter().find(|m| m.hash == branch[0].parent) {
                branch.insert(0, below);
            }
            let engine = base.killed().open(&params, Setup::Calm).unwrap();
            let outcomes: Vec<_> =
                branch.iter().map(|made| engine.blocks().submit(made.raw.clone())).collect();
            if outcomes.iter().all(|outcome| matches!(outcome, SubmitOutcome::Accepted)) {
                muhash.insert(made.hash, self::muhash(&engine));
            }
        }
        Self { params, base, acts, muhash, end, coinbases: builder.coinbases }
    }

    /// A block on top of the base, with a payment whose only output has `bytes` bytes.
    pub(crate) fn long_block(&self, base: BlockHash, bytes: usize) -> Vec<u8> {
        let mut builder = Builder { coinbases: self.coinbases.clone(), made: Vec::new() };
        let spent = OutPoint { txid: self.coinbases[0], vout: 0 };
        let tx = spending(&[spent]).output(0, &[&[0x6a][..], &vec![7; bytes]].concat());
        builder.block(base, BASE + 1, 1, &[tx.build()], 0)
    }
}

impl Builder {
    /// Branch B overtakes A, A overtakes B; then B with an invalid block on top fails to; then A continues.
    fn acts(&mut self, base: BlockHash) -> (Vec<Act>, BlockHash) {
        let mut acts = Vec::new();
        let mut a = self.branch(&mut acts, base, BASE, 1, 2);
        acts.extend([self.offer(0), Act::SaveMempool, Act::Flush]);
        a = self.branch(&mut acts, a, BASE + 2, 1, 1);
        let b = self.branch(&mut acts, base, BASE, 2, 4);
        acts.extend([self.offer(1), Act::Flush, Act::SaveMempool]);
        a = self.branch(&mut acts, a, BASE + 3, 1, 2);
        let b = self.branch(&mut acts, b, BASE + 4, 2, 1);
        // A coinbase that claims too much is detected only on connecting.
        let wrong = self.block(b, BASE + 6, 2, &[], 5_000_000_000);
        let hash = self.made.last().unwrap().hash;
        acts.push(Act::Submit { raw: wrong, hash, is_valid: false });
        acts.push(Act::Flush);
        a = self.branch(&mut acts, a, BASE + 5, 1, 1);
        (acts, a)
    }

    /// Spends coins that no branch uses.
    fn offer(&self, index: usize) -> Act {
        let spent = OutPoint { txid: self.coinbases[index], vout: 3 };
        let tx = TxBuilder::new(2)
            .spend(spent, &SPEND_P2SH_TRUE, u32::MAX)
            .output(1_249_000_000, &P2SH_TRUE)
            .build();
        Act::Offer { raw: tx.bytes().to_vec(), txid: tx.view().txid() }
    }

    fn branch(
        &mut self,
        acts: &mut Vec<Act>,
        mut parent: BlockHash,
        height: u32,
        branch: u8,
        count: u32,
    ) -> BlockHash {
        for height in height + 1..=height + count {
            let coinbase = self.coinbases[(height - BASE - 1) as usize];
            let spent = |vout| OutPoint { txid: coinbase, vout };
            // Two coins of the base become three; one of them is spent in the same block; branches differ by amounts.
            let first = transaction(&[spent(0), spent(1)], 3, 100_000 + i64::from(branch));
            let first_txid = first.view().txid();
            let second = transaction(&[OutPoint { txid: first_txid, vout: 1 }], 2, 500);
            let raw = self.block(parent, height, branch, &[first, second], 0);
            let hash = self.made.last().unwrap().hash;
            acts.push(Act::Submit { raw, hash, is_valid: true });
            parent = hash;
        }
        parent
    }

    fn block(
        &mut self,
        parent: BlockHash,
        height: u32,
        branch: u8,
        txs: &[Transaction],
        excess: i64,
    ) -> Vec<u8> {
        let mut script_sig = assay_consensus::commitment::height_prefix(height);
        script_sig.extend([8, branch]);
        let mut coinbase = coinbase_with(&script_sig);
        // The first ones are spent, the others only need to exist.
        let outputs = if height <= 8 { 4 } else { 1 };
        for vout in 0..outputs {
            let value = 1_250_000_000 + if vout == 0 { excess } else { 0 };
            coinbase = coinbase.output(value, if vout == 3 { &P2SH_TRUE[..] } else { ANYONE });
        }
        let coinbase = coinbase.build();
        let header = header_on(parent, 1_600_000_000 + height * 600);
        let txs: Vec<&Transaction> = [&coinbase].into_iter().chain(txs).collect();
        let raw = mined_block_bytes(header, txs);
        let hash = Header::parse(raw.first_chunk().unwrap()).hash();
        self.made.push(Made { raw: raw.clone(), hash, parent });
        raw
    }
}

/// A block with only a coinbase; `branch` makes it different from those of other branches.
pub(crate) fn plain_block(parent: BlockHash, height: u32, branch: u8) -> Vec<u8> {
    Builder::default().block(parent, height, branch, &[], 0)
}

fn spending(inputs: &[OutPoint]) -> TxBuilder {
    inputs.iter().fold(TxBuilder::new(2), |tx, outpoint| tx.spend(*outpoint, &[], u32::MAX))
}

fn transaction(inputs: &[OutPoint], outputs: i64, value: i64) -> Transaction {
    // Long enough for the minimum transaction size.
    let script = [ANYONE, &[0x61; 20]].concat();
    let pay = |tx: TxBuilder, vout: i64| tx.output(value + vout, &script);
    (0..outputs).fold(spending(inputs), pay).build()
}

pub(crate) fn muhash(engine: &Engine) -> [u8; 32] {
    engine.chain().utxo_stats(true).unwrap().muhash.unwrap()
}
