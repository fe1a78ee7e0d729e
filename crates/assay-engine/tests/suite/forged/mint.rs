//! Long regtest branches with transactions without signatures: fast to build, and every coin moves.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use assay_consensus::params::ChainParams;
use assay_engine::{Config, Engine};
use assay_testkit::chain::{
    P2SH_TRUE, SPEND_P2SH_TRUE, TxBuilder, coinbase_with, header_on, mined_block_bytes,
};
use assay_wire::{BlockHash, Header, OutPoint, Transaction};

/// Sufficient for any of the transactions here.
const FEE_SAT: i64 = 1000;
/// Value of coinbases; below the subsidy, which halves every 150 blocks.
const CLAIM_SAT: i64 = 100_000_000;
/// Heights with coinbases of nonzero value.
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

/// Builds one branch; a clone builds another one.
#[derive(Clone)]
pub(crate) struct Mint {
    pub(crate) tip: BlockHash,
    pub(crate) height: u32,
    time: u32,
    /// Distinguishes branches.
    pub(crate) salt: u8,
    /// Coinbase outputs with the height from which they are spendable.
    immature: VecDeque<(u32, OutPoint)>,
    /// Spendable coins, oldest first.
    coins: VecDeque<(OutPoint, i64)>,
}

impl Mint {
    /// Starts at the genesis block.
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

    /// A transaction that spends the oldest coin to two outputs, the second of which is left for a later one; `None` if no coin
    /// is worth spending.
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

    /// The oldest spendable coin, and its value in satoshi.
    pub(crate) fn take_coin(&mut self) -> (OutPoint, i64) {
        self.coins.pop_front().expect("a coinbase has matured")
    }

    /// The next block, with up to `count` transactions, most of which spend one of the same block.
    pub(crate) fn block(&mut self, count: usize) -> Vec<u8> {
        let spends: Vec<_> = (0..count).map_while(|_| self.spend()).collect();
        self.block_of(&spends)
    }

    /// The next block with these transactions, and a coinbase that does not claim their fees.
    pub(crate) fn block_of(&mut self, txs: &[Transaction]) -> Vec<u8> {
        let claim = if self.height + 1 < CLAIMING_HEIGHTS { CLAIM_SAT } else { 0 };
        self.block_claiming(claim, txs)
    }

    /// [`Self::block_of`] with a coinbase of this value.
    pub(crate) fn block_claiming(&mut self, claim: i64, txs: &[Transaction]) -> Vec<u8> {
        self.height += 1;
        self.time += 60;
        let mut script_sig = assay_consensus::commitment::height_prefix(self.height);
        script_sig.extend([1, self.salt]);
        let coinbase = coinbase_with(&script_sig).output(claim, &P2SH_TRUE).build();
        let header = header_on(self.tip, self.time);
        let txs: Vec<&Transaction> = std::iter::once(&coinbase).chain(txs).collect();
        let raw = mined_block_bytes(header, txs);
        self.tip = Header::parse(raw.first_chunk().unwrap()).hash();
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

/// Spends outputs to [`P2SH_TRUE`], with a sequence number each.
pub(crate) fn tx(inputs: &[(OutPoint, u32)], values: &[i64], lock_time: u32) -> Transaction {
    let mut tx = TxBuilder::new(2).lock_time(lock_time);
    for (outpoint, sequence) in inputs {
        tx = tx.spend(*outpoint, &SPEND_P2SH_TRUE, *sequence);
    }
    values.iter().fold(tx, |tx, value| tx.output(*value, &P2SH_TRUE)).build()
}
