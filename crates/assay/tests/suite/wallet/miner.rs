//! Mines regtest blocks on any branch, with coins that need no signature.

use assay_consensus::commitment::{height_prefix, witness_commitment};
use assay_consensus::params::ChainParams;
use assay_hash::hash160;
use assay_testkit::chain::{
    P2SH_TRUE, SPEND_P2SH_TRUE, TxBuilder, coinbase_with, header_on, mined_block_bytes,
};
use assay_wire::{BlockHash, Encoding, Header, OutPoint, Transaction};

/// Value of each coinbase; the subsidy is 50 until height 150 and 25 after that.
const CLAIM_SAT: i64 = 20 * 100_000_000;
/// Fee of our own payments.
const FEE_SAT: i64 = 10_000;
/// Reserved value of the witness commitment (BIP141).
const RESERVED: [u8; 32] = [0; 32];

#[derive(Debug, Clone, Copy)]
pub(crate) struct Parent {
    pub(crate) hash: BlockHash,
    pub(crate) height: u32,
    time: u32,
}

/// A coin of the miner.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Coin(OutPoint);

#[derive(Debug)]
pub(crate) struct Mined {
    pub(crate) raw: Vec<u8>,
    pub(crate) parent: Parent,
    /// The coin of its coinbase.
    pub(crate) coin: Coin,
}

#[derive(Debug)]
pub(crate) struct Miner {
    params: ChainParams,
    blocks: u32,
}

impl Miner {
    pub(crate) fn new() -> Self {
        let params = ChainParams::by_name("regtest").expect("the chain has a name");
        Self { params, blocks: 0 }
    }

    pub(crate) fn genesis(&self) -> Parent {
        Parent { hash: self.params.genesis_hash, height: 0, time: self.params.genesis.time }
    }

    /// Mines a block on `parent` with these transactions.
    pub(crate) fn mine(&mut self, parent: Parent, txs: &[Transaction]) -> Mined {
        self.blocks += 1;
        let height = parent.height + 1;
        let wtxids: Vec<_> = std::iter::once(assay_wire::Wtxid([0; 32]))
            .chain(txs.iter().map(|tx| tx.view().wtxid()))
            .collect();
        let coinbase = coinbase(height, self.blocks, &witness_commitment(&wtxids, &RESERVED));
        let txs: Vec<&Transaction> = std::iter::once(&coinbase).chain(txs).collect();
        let header = header_on(parent.hash, parent.time + 60);
        let raw = mined_block_bytes(header, txs);
        let hash = Header::parse(raw[..80].as_array().expect("a header")).hash();
        Mined {
            raw,
            parent: Parent { hash, height, time: header.time },
            coin: Coin(OutPoint { txid: coinbase.view().txid(), vout: 0 }),
        }
    }

    /// Pays `value_sat` of a mature coin to a script, with the change to the miner.
    pub(crate) fn pay(coin: Coin, script_pubkey: &[u8], value_sat: i64) -> Transaction {
        TxBuilder::new(2)
            .spend(coin.0, &SPEND_P2SH_TRUE, u32::MAX)
            .output(value_sat, script_pubkey)
            .output(CLAIM_SAT - value_sat - FEE_SAT, &P2SH_TRUE)
            .build()
    }
}

/// Output script of a key (BIP141, version 0).
pub(crate) fn p2wpkh(pubkey: &[u8]) -> Vec<u8> {
    [&[0x00, 20], hash160(pubkey).as_slice()].concat()
}

pub(crate) fn parse(raw: Vec<u8>) -> Transaction {
    Transaction::parse(raw, Encoding::Segwit).expect("it is a whole transaction")
}

/// The sequence number distinguishes the coinbases of two branches.
fn coinbase(height: u32, number: u32, commitment: &[u8; 32]) -> Transaction {
    let mut script_sig = height_prefix(height);
    script_sig.push(4);
    script_sig.extend(number.to_le_bytes());
    coinbase_with(&script_sig)
        .output(CLAIM_SAT, &P2SH_TRUE)
        .output(0, &[&[0x6a, 0x24, 0xaa, 0x21, 0xa9, 0xed], commitment.as_slice()].concat())
        .witness(&[&RESERVED])
        .build()
}
