//! Makes regtest blocks, on any branch, and coins that need no signature.

use assay_consensus::commitment::{height_prefix, txid_merkle_root, witness_commitment};
use assay_consensus::params::ChainParams;
use assay_consensus::pow::check_proof_of_work;
use assay_hash::hash160;
use assay_wire::{BlockHash, Encoding, Header, OutPoint, Transaction, Txid, encode};

/// What a coinbase claims; the subsidy is 50 until height 150 and 25 after that.
const CLAIM_SAT: i64 = 20 * 100_000_000;
/// What our own payments leave to the miner.
const FEE_SAT: i64 = 10_000;
/// Redeem script of our coins: just true.
const REDEEM: [u8; 1] = [0x51];
/// Reserved value of the witness commitment (BIP141).
const RESERVED: [u8; 32] = [0; 32];

/// A block that others can build on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parent {
    pub(crate) hash: BlockHash,
    pub(crate) height: u32,
    time: u32,
}

/// A coin of ours.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Coin(OutPoint);

/// A mined block.
#[derive(Debug)]
pub(crate) struct Mined {
    pub(crate) raw: Vec<u8>,
    pub(crate) parent: Parent,
    /// What its coinbase pays us.
    pub(crate) coin: Coin,
}

/// Makes blocks.
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

    /// A block on `parent` with these transactions.
    pub(crate) fn mine(&mut self, parent: Parent, txs: &[Transaction]) -> Mined {
        self.blocks += 1;
        let height = parent.height + 1;
        let wtxids: Vec<_> = std::iter::once(assay_wire::Wtxid([0; 32]))
            .chain(txs.iter().map(|tx| tx.view().wtxid()))
            .collect();
        let coinbase = coinbase(height, self.blocks, &witness_commitment(&wtxids, &RESERVED));
        let txids: Vec<Txid> =
            std::iter::once(&coinbase).chain(txs).map(|tx| tx.view().txid()).collect();
        let mut header = Header {
            version: 0x2000_0000,
            prev_block: parent.hash,
            merkle_root: txid_merkle_root(&txids).0,
            time: parent.time + 60,
            bits: self.params.genesis.bits,
            nonce: 0,
        };
        while !check_proof_of_work(&header.hash(), header.bits, &self.params.pow) {
            header.nonce += 1;
        }
        let mut raw = header.to_bytes().to_vec();
        encode::compact_size(&mut raw, txids.len() as u64);
        for tx in std::iter::once(&coinbase).chain(txs) {
            raw.extend_from_slice(tx.bytes());
        }
        Mined {
            raw,
            parent: Parent { hash: header.hash(), height, time: header.time },
            coin: Coin(OutPoint { txid: txids[0], vout: 0 }),
        }
    }

    /// Pays `value_sat` of a mature coin to a script, and what is left to ourselves.
    pub(crate) fn pay(coin: Coin, script_pubkey: &[u8], value_sat: i64) -> Transaction {
        let mut raw = 2_i32.to_le_bytes().to_vec();
        raw.push(1);
        raw.extend(coin.0.to_bytes());
        encode::var_bytes(&mut raw, &[1, REDEEM[0]]);
        raw.extend(u32::MAX.to_le_bytes());
        raw.push(2);
        for (value, script) in
            [(value_sat, script_pubkey), (CLAIM_SAT - value_sat - FEE_SAT, own_script().as_slice())]
        {
            raw.extend(value.to_le_bytes());
            encode::var_bytes(&mut raw, script);
        }
        raw.extend([0; 4]);
        parse(raw)
    }
}

/// The output script of the key (BIP141, version 0).
pub(crate) fn p2wpkh(pubkey: &[u8]) -> Vec<u8> {
    [&[0x00, 20], hash160(pubkey).as_slice()].concat()
}

pub(crate) fn parse(raw: Vec<u8>) -> Transaction {
    Transaction::parse(raw, Encoding::Segwit).expect("it is a whole transaction")
}

fn own_script() -> Vec<u8> {
    [&[0xa9, 20], hash160(&REDEEM).as_slice(), &[0x87]].concat()
}

/// The number of the block makes coinbases of two branches differ.
fn coinbase(height: u32, number: u32, commitment: &[u8; 32]) -> Transaction {
    let mut script_sig = height_prefix(height);
    script_sig.push(4);
    script_sig.extend(number.to_le_bytes());
    let mut raw = 2_i32.to_le_bytes().to_vec();
    raw.extend([0, 1, 1]);
    raw.extend(OutPoint::NULL.to_bytes());
    encode::var_bytes(&mut raw, &script_sig);
    raw.extend(u32::MAX.to_le_bytes());
    raw.push(2);
    raw.extend(CLAIM_SAT.to_le_bytes());
    encode::var_bytes(&mut raw, &own_script());
    raw.extend(0_i64.to_le_bytes());
    encode::var_bytes(
        &mut raw,
        &[&[0x6a, 0x24, 0xaa, 0x21, 0xa9, 0xed], commitment.as_slice()].concat(),
    );
    raw.push(1);
    encode::var_bytes(&mut raw, &RESERVED);
    raw.extend([0; 4]);
    parse(raw)
}
