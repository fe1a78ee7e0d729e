//! Long regtest branches with transactions that need no signatures: cheap to make, and every coin moves.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use assay_consensus::params::ChainParams;
use assay_engine::{Config, Engine};
use assay_wire::{Block, BlockHash, Encoding, Header, OutPoint, Transaction, encode};

/// Pays to the hash of a script that is just true, which relay policy accepts.
pub(crate) const P2SH_TRUE: [u8; 23] = [
    0xa9, 20, 0xda, 0x17, 0x45, 0xe9, 0xb5, 0x49, 0xbd, 0x0b, 0xfa, 0x1a, 0x56, 0x99, 0x71, 0xc7,
    0x7e, 0xba, 0x30, 0xcd, 0x5a, 0x4b, 0x87,
];
/// Pays for any of the transactions here.
const FEE_SAT: i64 = 1000;
/// Coinbases claim this much of the subsidy, which halves every 150 blocks; nothing once it is less.
const CLAIM_SAT: i64 = 100_000_000;
/// Heights at which coinbases claim.
const CLAIMING_HEIGHTS: u32 = 450;

pub(crate) fn params() -> Arc<ChainParams> {
    Arc::new(ChainParams::by_name("regtest").unwrap())
}

pub(crate) fn open(dir: &Path, cache_bytes_max: usize) -> Engine {
    let mut config = Config::new(dir, params());
    config.threads = 2;
    config.cache_bytes_max = cache_bytes_max;
    Engine::open(config).unwrap()
}

/// Grows one branch; a clone grows another one.
#[derive(Clone)]
pub(crate) struct Mint {
    pub(crate) tip: BlockHash,
    pub(crate) height: u32,
    time: u32,
    /// Tells branches apart.
    pub(crate) salt: u8,
    /// Coinbase outputs with the height from which they may be spent.
    immature: VecDeque<(u32, OutPoint)>,
    /// What can be spent, oldest first.
    coins: VecDeque<(OutPoint, i64)>,
}

impl Mint {
    /// At the genesis block.
    pub(crate) fn new() -> Self {
        let params = params();
        Self {
            tip: params.genesis_hash,
            height: 0,
            time: params.genesis.time,
            salt: 0,
            immature: VecDeque::new(),
            coins: VecDeque::new(),
        }
    }

    /// A transaction that spends the oldest coin to two outputs, the second of which is left for a later one; `None` when
    /// there is none worth spending.
    pub(crate) fn spend(&mut self) -> Option<Transaction> {
        let (outpoint, value) = self.coins.pop_front()?;
        let half = (value - FEE_SAT) / 2;
        if half < FEE_SAT {
            return None;
        }
        let tx = tx(&[(outpoint, u32::MAX)], &[half, half], 0);
        let txid = tx.view().txid();
        self.coins.push_front((OutPoint { txid, vout: 1 }, half));
        self.coins.push_back((OutPoint { txid, vout: 0 }, half));
        Some(tx)
    }

    /// The next block, with up to `count` transactions, most of which spend one of the same block.
    pub(crate) fn block(&mut self, count: usize) -> Vec<u8> {
        let spends: Vec<_> = (0..count).map_while(|_| self.spend()).collect();
        self.block_of(&spends)
    }

    /// The next block with these transactions, and a coinbase that leaves their fees.
    pub(crate) fn block_of(&mut self, txs: &[Transaction]) -> Vec<u8> {
        self.height += 1;
        self.time += 60;
        let claim = if self.height < CLAIMING_HEIGHTS { CLAIM_SAT } else { 0 };
        let mut script_sig = assay_consensus::commitment::height_prefix(self.height);
        script_sig.extend([1, self.salt]);
        let coinbase = coinbase(&script_sig, claim);
        let mut raw = Header {
            version: 0x2000_0000,
            prev_block: self.tip,
            merkle_root: [0; 32],
            time: self.time,
            bits: 0x207f_ffff,
            nonce: 0,
        }
        .to_bytes()
        .to_vec();
        encode::compact_size(&mut raw, txs.len() as u64 + 1);
        raw.extend_from_slice(coinbase.bytes());
        for tx in txs {
            raw.extend_from_slice(tx.bytes());
        }
        crate::chain::repair(&mut raw, &params());
        self.tip = Block::parse(raw.clone(), Encoding::Segwit).unwrap().hash();
        if claim > 0 {
            let outpoint = OutPoint { txid: coinbase.view().txid(), vout: 0 };
            self.immature.push_back((self.height + 100, outpoint));
        }
        while let Some((_, outpoint)) =
            self.immature.pop_front_if(|(height, _)| *height <= self.height + 1)
        {
            self.coins.push_back((outpoint, CLAIM_SAT));
        }
        raw
    }

    /// `length` blocks with up to `count` transactions each.
    pub(crate) fn branch(&mut self, length: u32, count: usize) -> Vec<Vec<u8>> {
        (0..length).map(|_| self.block(count)).collect()
    }
}

fn coinbase(script_sig: &[u8], claim: i64) -> Transaction {
    let mut raw = 2i32.to_le_bytes().to_vec();
    raw.push(1);
    raw.extend(OutPoint::NULL.to_bytes());
    encode::var_bytes(&mut raw, script_sig);
    raw.extend(u32::MAX.to_le_bytes());
    raw.push(1);
    raw.extend(claim.to_le_bytes());
    encode::var_bytes(&mut raw, &P2SH_TRUE);
    raw.extend([0; 4]);
    Transaction::parse(raw, Encoding::Segwit).unwrap()
}

/// Spends outputs to [`P2SH_TRUE`], with a sequence number each.
pub(crate) fn tx(inputs: &[(OutPoint, u32)], values: &[i64], lock_time: u32) -> Transaction {
    let mut raw = 2i32.to_le_bytes().to_vec();
    encode::compact_size(&mut raw, inputs.len() as u64);
    for (outpoint, sequence) in inputs {
        raw.extend(outpoint.to_bytes());
        encode::var_bytes(&mut raw, &[1, 0x51]);
        raw.extend(sequence.to_le_bytes());
    }
    encode::compact_size(&mut raw, values.len() as u64);
    for value in values {
        raw.extend(value.to_le_bytes());
        encode::var_bytes(&mut raw, &P2SH_TRUE);
    }
    raw.extend(lock_time.to_le_bytes());
    Transaction::parse(raw, Encoding::Segwit).unwrap()
}
