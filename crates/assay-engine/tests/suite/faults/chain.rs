//! A small tree of regtest blocks with coins, competing branches, and an invalid block.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use assay_consensus::params::ChainParams;
use assay_engine::{Engine, SubmitOutcome};
use assay_wire::{Block, BlockHash, Encoding, Header, OutPoint, Transaction, Txid, encode};

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

struct Builder {
    params: Arc<ChainParams>,
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
        let mut builder =
            Builder { params: Arc::clone(&params), coinbases: Vec::new(), made: Vec::new() };
        let base = Disk::new();
        let engine = base.open(&params, Setup::Calm).unwrap();
        let mut tip = params.genesis_hash;
        for height in 1..=BASE {
            let raw = builder.block(tip, height, 0, Vec::new(), 0);
            assert!(matches!(engine.submit_block(raw.clone()), SubmitOutcome::Accepted));
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
                branch.iter().map(|made| engine.submit_block(made.raw.clone())).collect();
            if outcomes.iter().all(|outcome| matches!(outcome, SubmitOutcome::Accepted)) {
                muhash.insert(made.hash, self::muhash(&engine));
            }
        }
        Self { params, base, acts, muhash, end, coinbases: builder.coinbases }
    }

    /// A block on top of the base, with a payment whose only output has `bytes` bytes.
    pub(crate) fn long_block(&self, base: BlockHash, bytes: usize) -> Vec<u8> {
        let (params, coinbases) = (Arc::clone(&self.params), self.coinbases.clone());
        let mut builder = Builder { params, coinbases, made: Vec::new() };
        let spent = OutPoint { txid: self.coinbases[0], vout: 0 };
        let mut raw = transaction(&[spent], 0, 0);
        raw.truncate(raw.len() - 5);
        raw.push(1);
        raw.extend(0i64.to_le_bytes());
        encode::var_bytes(&mut raw, &[&[0x6a][..], &vec![7; bytes]].concat());
        raw.extend([0; 4]);
        builder.block(base, BASE + 1, 1, vec![raw], 0)
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
        let wrong = self.block(b, BASE + 6, 2, Vec::new(), 5_000_000_000);
        let hash = self.made.last().unwrap().hash;
        acts.push(Act::Submit { raw: wrong, hash, is_valid: false });
        acts.push(Act::Flush);
        a = self.branch(&mut acts, a, BASE + 5, 1, 1);
        (acts, a)
    }

    /// Spends coins that no branch uses.
    fn offer(&self, index: usize) -> Act {
        let mut raw = 2i32.to_le_bytes().to_vec();
        raw.push(1);
        raw.extend(OutPoint { txid: self.coinbases[index], vout: 3 }.to_bytes());
        encode::var_bytes(&mut raw, &[&[ANYONE.len() as u8], ANYONE].concat());
        raw.extend(u32::MAX.to_le_bytes());
        raw.push(1);
        raw.extend(1_249_000_000i64.to_le_bytes());
        encode::var_bytes(&mut raw, &anyone_by_hash());
        raw.extend([0; 4]);
        let txid = Transaction::parse(raw.clone(), Encoding::Segwit).unwrap().view().txid();
        Act::Offer { raw, txid }
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
            let first_txid =
                Transaction::parse(first.clone(), Encoding::Segwit).unwrap().view().txid();
            let second = transaction(&[OutPoint { txid: first_txid, vout: 1 }], 2, 500);
            let raw = self.block(parent, height, branch, vec![first, second], 0);
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
        txs: Vec<Vec<u8>>,
        excess: i64,
    ) -> Vec<u8> {
        let mut coinbase = 1i32.to_le_bytes().to_vec();
        coinbase.push(1);
        coinbase.extend(OutPoint::NULL.to_bytes());
        let mut script = assay_consensus::commitment::height_prefix(height);
        script.extend([8, branch]);
        encode::var_bytes(&mut coinbase, &script);
        coinbase.extend(u32::MAX.to_le_bytes());
        // The first ones are spent, the others only need to exist.
        let outputs = if height <= 8 { 4 } else { 1 };
        coinbase.push(outputs);
        for vout in 0..outputs {
            let value = 1_250_000_000 + if vout == 0 { excess } else { 0 };
            coinbase.extend(value.to_le_bytes());
            let script = if vout == 3 { anyone_by_hash() } else { ANYONE.to_vec() };
            encode::var_bytes(&mut coinbase, &script);
        }
        coinbase.extend([0; 4]);
        let txs: Vec<Vec<u8>> = std::iter::once(coinbase).chain(txs).collect();
        let txids = txs
            .iter()
            .map(|raw| Transaction::parse(raw.clone(), Encoding::Segwit).unwrap().view().txid().0);
        let mut header = Header {
            version: 0x2000_0000,
            prev_block: parent,
            merkle_root: assay_hash::merkle_root(txids.collect()).0,
            time: 1_600_000_000 + height * 600,
            bits: 0x207f_ffff,
            nonce: 0,
        };
        let pow = &self.params.pow;
        while !assay_consensus::pow::check_proof_of_work(&header.hash(), header.bits, pow) {
            header.nonce += 1;
        }
        let mut raw = header.to_bytes().to_vec();
        encode::compact_size(&mut raw, txs.len() as u64);
        raw.extend(txs.concat());
        self.made.push(Made { raw: raw.clone(), hash: header.hash(), parent });
        raw
    }
}

/// A block with only a coinbase; `branch` makes it different from those of other branches.
pub(crate) fn plain_block(
    params: &Arc<ChainParams>,
    parent: BlockHash,
    height: u32,
    branch: u8,
) -> Vec<u8> {
    let (params, coinbases, made) = (Arc::clone(params), Vec::new(), Vec::new());
    Builder { params, coinbases, made }.block(parent, height, branch, Vec::new(), 0)
}

/// Pays to the hash of [`ANYONE`], which is standard.
fn anyone_by_hash() -> Vec<u8> {
    [&[0xa9, 20][..], &assay_hash::hash160(ANYONE), &[0x87]].concat()
}

fn transaction(inputs: &[OutPoint], outputs: u8, value: i64) -> Vec<u8> {
    let mut raw = 2i32.to_le_bytes().to_vec();
    raw.push(inputs.len() as u8);
    for outpoint in inputs {
        raw.extend(outpoint.to_bytes());
        raw.push(0);
        raw.extend(u32::MAX.to_le_bytes());
    }
    raw.push(outputs);
    for vout in 0..outputs {
        raw.extend((value + i64::from(vout)).to_le_bytes());
        // Long enough for the minimum transaction size.
        encode::var_bytes(&mut raw, &[ANYONE, &[0x61; 20]].concat());
    }
    raw.extend([0; 4]);
    raw
}

pub(crate) fn muhash(engine: &Engine) -> [u8; 32] {
    engine.utxo_stats(true).unwrap().muhash.unwrap()
}
