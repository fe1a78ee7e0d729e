//! A synthetic block with the structure of blocks since Taproot: thousands of inputs, most of them segwit, with
//! inscriptions, multisig, consolidations and batched payouts. Its model is block 784,588, by which the report's
//! author later replaced the one of 2016 in Bitcoin Core's benchmarks.
//!
//! Sizes and kinds are realistic. Keys and signatures are random bytes, since no benchmark verifies
//! them. The block passes all context-free checks.

use crate::block_builder::Coinbase;
use assay_consensus::commitment::txid_merkle_root;
use assay_consensus::params::ChainParams;
use assay_report::stats::random::SplitMix64;
use assay_wire::{
    BlockHash, Coin, Encoding, Header, OutPoint, Script, Transaction, TxBuilder, Txid, Wtxid,
    encode,
};

/// Height of the block in its coinbase.
pub(super) const HEIGHT: u32 = 784_588;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    P2pkh,
    P2sh,
    P2wpkh,
    P2wsh,
    P2tr,
    /// Spent by a script with some hundred bytes of embedded data.
    Inscription,
}

impl Kind {
    /// A locking script of this kind.
    pub(super) fn script(self, random: &mut SplitMix64) -> Vec<u8> {
        let hash: [u8; 32] = random.bytes();
        match self {
            Self::P2pkh => [&[0x76, 0xa9, 20][..], &hash[..20], &[0x88, 0xac]].concat(),
            Self::P2sh => [&[0xa9, 20][..], &hash[..20], &[0x87]].concat(),
            Self::P2wpkh => [&[0, 20][..], &hash[..20]].concat(),
            Self::P2wsh => [&[0, 32][..], &hash].concat(),
            Self::P2tr | Self::Inscription => [&[0x51, 32][..], &hash].concat(),
        }
    }

    /// The signature script and the witness that would spend it.
    fn unlock(self, random: &mut SplitMix64) -> (Vec<u8>, Vec<Vec<u8>>) {
        let some = |random: &mut SplitMix64, length: usize| {
            let mut bytes = vec![0; length];
            random.fill(&mut bytes);
            bytes
        };
        let sig = |random: &mut SplitMix64| some(random, 71 + random.clone().below(2) as usize);
        match self {
            Self::P2pkh => {
                let (sig, key) = (sig(random), some(random, 33));
                let mut script = Vec::new();
                for push in [sig, key] {
                    script.push(push.len() as u8);
                    script.extend(push);
                }
                (script, Vec::new())
            }
            Self::P2sh => {
                let nested = Self::P2wpkh.script(random);
                let script = [&[nested.len() as u8][..], &nested].concat();
                (script, vec![sig(random), some(random, 33)])
            }
            Self::P2wpkh => (Vec::new(), vec![sig(random), some(random, 33)]),
            Self::P2wsh => {
                let items = vec![Vec::new(), sig(random), sig(random), some(random, 105)];
                (Vec::new(), items)
            }
            Self::P2tr => (Vec::new(), vec![some(random, 64)]),
            Self::Inscription => {
                let script = 120 + random.below(500) as usize;
                (Vec::new(), vec![some(random, 64), some(random, script), some(random, 33)])
            }
        }
    }

    /// A random kind, about as frequent as in such blocks.
    pub(super) fn any(random: &mut SplitMix64) -> Self {
        match random.below(100) {
            0..14 => Self::P2pkh,
            14..30 => Self::P2sh,
            30..64 => Self::P2wpkh,
            64..70 => Self::P2wsh,
            70..88 => Self::P2tr,
            _ => Self::Inscription,
        }
    }
}

/// A raw block of `txs` transactions and a coinbase, and the coins that it spends.
pub(super) fn block(seed: u64, txs: usize) -> (Vec<u8>, Vec<Coin>) {
    let mut random = SplitMix64::new(seed);
    let mut coins = Vec::new();
    let mut txids = vec![Txid::default()];
    let mut wtxids = vec![Wtxid::default()];
    let mut body = Vec::new();
    for _ in 0..txs {
        let tx = transaction(&mut random, &mut coins);
        txids.push(tx.view().txid());
        wtxids.push(tx.view().wtxid());
        body.extend_from_slice(tx.bytes());
    }
    let script = Kind::P2wpkh.script(&mut SplitMix64::new(1));
    let pays = (650_000_000, &script[..]);
    let coinbase = Coinbase::new(HEIGHT, b"/assay bench/", pays, Some(&wtxids)).full;
    let tx = Transaction::parse(coinbase, Encoding::Segwit).expect("it is well formed");
    txids[0] = tx.view().txid();
    let params = ChainParams::by_name("main").expect("a known chain");
    let genesis = params.genesis.block();
    let genesis = Header::parse(genesis.first_chunk().expect("a block begins with its header"));
    let header = Header {
        version: 0x2000_0000,
        prev_block: BlockHash(random.bytes()),
        merkle_root: txid_merkle_root(&txids).0,
        time: genesis.time + HEIGHT * 600,
        bits: genesis.bits,
        nonce: 0,
    };
    let mut raw = header.to_bytes().to_vec();
    encode::compact_size(&mut raw, txids.len() as u64);
    raw.extend_from_slice(tx.bytes());
    raw.extend(body);
    (raw, coins)
}

/// Numbers of inputs and outputs of a transaction: most have one and two, some sweep and some pay many.
fn shape(random: &mut SplitMix64) -> (u64, u64) {
    match random.below(100) {
        0..72 => (1, 1 + random.below(2)),
        72..84 => (2, 1 + random.below(2)),
        84..96 => (3 + random.below(7), 1 + random.below(3)),
        96..98 => (20 + random.below(60), 1),
        _ => (1, 20 + random.below(80)),
    }
}

fn transaction(random: &mut SplitMix64, coins: &mut Vec<Coin>) -> Transaction {
    let (inputs, outputs) = shape(random);
    // The inputs of a consolidation are mostly of one kind.
    let kind = Kind::any(random);
    let kind = if kind == Kind::Inscription && inputs > 2 { Kind::P2tr } else { kind };
    let mut tx = TxBuilder::new(2);
    for index in 0..inputs as usize {
        coins.push(coin(kind, random));
        let (script_sig, witness) = kind.unlock(random);
        let prevout = OutPoint { txid: Txid(random.bytes()), vout: random.below(4) as u32 };
        tx = tx.spend(prevout, &[], 0xffff_fffd).unlock(index, &script_sig, &witness);
    }
    for _ in 0..outputs {
        let value = 546 + random.below(10_000_000) as i64;
        tx = tx.output(value, &Kind::any(random).script(random));
    }
    tx.build()
}

/// A coin of this kind such as a block of today spends: most are young.
pub(super) fn coin(kind: Kind, random: &mut SplitMix64) -> Coin {
    let span = 1 << random.below(19);
    let age = 1 + random.below(span) as u32;
    // One amount in three is round.
    let value = match random.below(3) {
        0 => 100_000 * (1 + random.below(10_000)),
        _ => 546 + random.below(100_000_000),
    };
    let script_pubkey = Script::from(kind.script(random).as_slice());
    Coin { value: value as i64, height: HEIGHT - age, coinbase: false, script_pubkey }
}

#[cfg(test)]
mod tests {
    use assay_consensus::block::check_block;
    use assay_wire::Block;

    use super::*;

    #[test]
    fn the_block_is_one_and_the_same_each_time() {
        let (raw, coins) = block(784_588, 2_750);
        assert_eq!(block(7, 40), block(7, 40));
        let block = Block::parse(raw, Encoding::Segwit).expect("a block");
        let txids = block.txids(0..block.tx_count());
        let params = ChainParams::by_name("main").expect("a known chain");
        check_block(&params, &block, &txids).expect("it keeps the rules");
        assert!(block.weight() <= 4_000_000 && block.weight() > 3_000_000, "{}", block.weight());
        assert_eq!(block.input_count(), coins.len() + 1);
        assert!(coins.len() > 5_000, "{} inputs", coins.len());
    }
}
