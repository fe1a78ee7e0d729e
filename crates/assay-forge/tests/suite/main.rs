//! Integration tests of the forge: chains, files and recipes. Chain directories are read back and verified without its code.

mod files;
mod forged;
mod history;
mod recipes;
mod scripts;

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    path::Path,
};

use assay_consensus::{
    params::ChainParams,
    script::{Flags, PqScheme, SignatureChecker, TxContext, verify_input},
};
use assay_forge::{BlockLine, ForgeOptions, Ledger, Recipe, forge};
use assay_wire::{Block, BlockHash, Coin, Encoding, OutPoint, Transaction, Tx, TxOut, Txid};
use faster_hex::hex_string;
use secp256k1::{Message, PublicKey, Scalar, XOnlyPublicKey, ecdsa, schnorr};

/// Mempool policy for the script kinds forged for Bitcoin.
pub(crate) const STANDARD: Flags = Flags::BITCOIN_STANDARD;

pub(crate) fn bch() -> Recipe {
    Recipe::builtin("bch-scaling").expect("built in")
}

pub(crate) fn bitcoin() -> Recipe {
    Recipe::builtin("bitcoin-scaling").expect("built in")
}

/// The built-in recipe with few inputs per block.
pub(crate) fn sighash() -> Recipe {
    let text = Recipe::builtin_text("sighash-scaling").expect("built in");
    let text = text
        .replace("inputs = [1, 10, 100, 500, 1_000, 2_500, 5_000]", "inputs = [1, 3, 12, 300]")
        .replace("inputs_per_block = 5_000", "inputs_per_block = 300")
        .replace("outputs = 15_000", "outputs = 1_000")
        .replace("blocks = 8", "blocks = 2");
    Recipe::from_toml(&text).expect("a small one")
}

/// A temporary chain directory, deleted on drop.
pub(crate) struct Chain {
    dir: tempfile::TempDir,
    pub(crate) ledger: Ledger,
}

pub(crate) fn forged(recipe: &Recipe, options: &ForgeOptions) -> Chain {
    let dir = tempfile::tempdir().expect("a directory for tests");
    let summary = forge(recipe, options, dir.path(), &mut ()).expect("it can be forged");
    let ledger = Ledger::read(dir.path()).expect("the ledger was written");
    assert_eq!(ledger, summary.ledger);
    Chain { dir, ledger }
}

impl Chain {
    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn encoding(&self) -> Encoding {
        if self.ledger.chain.chain == "regtest" { Encoding::Segwit } else { Encoding::Legacy }
    }

    pub(crate) fn block(&self, line: &BlockLine) -> Block {
        let file = fs::read(self.path().join(&line.file)).expect("the block file is there");
        let at = line.offset as usize;
        assert_eq!(file[at - 4..at], (line.bytes as u32).to_le_bytes());
        assert_eq!(hex_string(&file[at - 8..at - 4]), self.ledger.chain.magic);
        let bytes = file[at..at + line.bytes as usize].to_vec();
        Block::parse(bytes, self.encoding()).expect("the block parses")
    }

    /// A block that follows `previous`, agrees with its line and obeys the rules without context; with its txids.
    pub(crate) fn checked_block(
        &self,
        params: &ChainParams,
        line: &BlockLine,
        previous: BlockHash,
    ) -> (Block, Vec<Txid>) {
        let (block, height) = (self.block(line), line.height);
        let txids: Vec<_> = block.txs().map(|tx| tx.txid()).collect();
        assay_consensus::block::check_block(params, &block, &txids)
            .unwrap_or_else(|error| panic!("block {height}: {error}"));
        assert_eq!(block.header().prev_block, previous, "block {height}");
        assert_eq!(block.hash().to_string(), line.hash);
        assert_eq!(block.header().time, line.time);
        assert_eq!(block.tx_count() as u64, line.txs);
        assert_eq!(block.bytes().len() as u64, line.bytes);
        assert_eq!(block.output_count() as u64, line.outputs);
        assert_eq!(block.input_count() as u64 - 1, line.inputs);
        let is_segwit = self.encoding() == Encoding::Segwit;
        let weight = if is_segwit { block.weight() } else { 4 * block.bytes().len() };
        assert_eq!(weight as u64, line.weight, "block {height}");
        (block, txids)
    }

    /// Txid and bytes of each transaction, in generation order.
    pub(crate) fn order<'b>(&self, height: u32, block: &'b Block) -> Vec<(Txid, &'b [u8])> {
        let file = self.path().join(format!("order/{height:06}.bin"));
        let records = fs::read(file).expect("the order is there");
        let number = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("4 bytes")) as usize;
        let record = |record: &[u8]| {
            let (offset, len) = (number(&record[32..36]), number(&record[36..]));
            let txid = Txid(record[..32].try_into().expect("32 bytes"));
            (txid, &block.bytes()[offset..offset + len])
        };
        records.chunks(40).map(record).collect()
    }
}

/// Every file below `dir` with its content hash.
pub(crate) fn file_hashes(dir: &Path) -> BTreeMap<String, [u8; 32]> {
    let mut found = BTreeMap::new();
    let mut left = vec![dir.to_owned()];
    while let Some(at) = left.pop() {
        for entry in fs::read_dir(&at).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                left.push(path);
            } else {
                let name = path.strip_prefix(dir).expect("below").display().to_string();
                found.insert(name, assay_hash::sha256(&fs::read(&path).expect("a file")));
            }
        }
    }
    found
}

pub(crate) fn parse_tx(raw: &[u8], encoding: Encoding) -> Transaction {
    Transaction::parse(raw.to_vec(), encoding).expect("the transaction parses")
}

pub(crate) fn genesis(params: &ChainParams) -> BlockHash {
    let block = Block::parse(params.genesis_block(), Encoding::Segwit);
    block.expect("the genesis block parses").hash()
}

/// A plain UTXO set.
#[derive(Default)]
pub(crate) struct Coins {
    pub(crate) unspent: HashMap<OutPoint, Coin>,
    /// True if transactions follow consensus rules only, not mempool policy.
    pub(crate) consensus_only: bool,
}

impl Coins {
    /// Connects a block, in any order of parents and children, and verifies every input; returns the number of valid signatures.
    pub(crate) fn connect(
        &mut self,
        block: &Block,
        height: u32,
        flags: Flags,
        checker: &mut SecpChecker,
    ) -> u64 {
        let before = checker.valid;
        for (index, tx) in block.txs().enumerate() {
            let txid = tx.txid();
            for (vout, output) in tx.outputs().enumerate() {
                if output.script_pubkey.first() == Some(&0x6a) {
                    continue;
                }
                let coin = Coin {
                    value: output.value,
                    height,
                    coinbase: index == 0,
                    script_pubkey: output.script_pubkey.into(),
                };
                let outpoint = OutPoint { txid, vout: vout as u32 };
                assert!(self.unspent.insert(outpoint, coin).is_none(), "{outpoint:?}");
            }
        }
        for tx in block.txs().skip(1) {
            let spent: Vec<_> = tx
                .inputs()
                .map(|input| {
                    self.unspent.remove(&input.prevout).expect("the output exists and is unspent")
                })
                .collect();
            for coin in &spent {
                assert!(!coin.coinbase || height >= coin.height + 100, "height {height}");
                let before_halving = coin.height < 150;
                assert!(!coin.coinbase || before_halving || self.consensus_only, "{height}");
            }
            let outs: Vec<TxOut<'_>> = spent.iter().map(Coin::as_tx_out).collect();
            let fee = outs.iter().map(|out| out.value).sum::<i64>()
                - tx.outputs().map(|out| out.value).sum::<i64>();
            assert!(fee >= 0, "height {height}");
            if !self.consensus_only {
                check_relay(height, tx, fee);
            }
            let context = TxContext::new(tx, &outs);
            for input in 0..tx.input_count() {
                verify_input(&context, input, flags, checker).unwrap_or_else(|error| {
                    panic!("height {height}: {} {input}: {error}", tx.txid())
                });
            }
        }
        checker.valid - before
    }

    /// The serialisation that Bitcoin Core hashes (kernel/coinstats.cpp).
    pub(crate) fn for_each_serialised(&self, mut f: impl FnMut(&[u8])) {
        for (outpoint, coin) in &self.unspent {
            let mut bytes = outpoint.to_bytes().to_vec();
            bytes.extend((coin.height << 1 | u32::from(coin.coinbase)).to_le_bytes());
            bytes.extend(coin.value.to_le_bytes());
            bytes.push(coin.script_pubkey.len() as u8);
            bytes.extend_from_slice(&coin.script_pubkey);
            f(&bytes);
        }
    }
}

fn check_relay(height: u32, tx: Tx<'_>, fee: i64) {
    let vsize = tx.weight().div_ceil(4) as i64;
    assert!(fee >= vsize, "height {height}: fee {fee} for {vsize} bytes");
    // Relay rules: 65 bytes on Bitcoin, formerly 100 on Bitcoin Cash.
    let least = if tx.has_witness() { 65 } else { 100 };
    assert!(tx.weight() <= 400_000 && tx.stripped_size() >= least, "height {height}");
    assert!(tx.outputs().all(|out| out.value >= 546), "height {height}: dust");
}

/// Strict verification by libsecp256k1; counts valid signatures.
#[derive(Default)]
pub(crate) struct SecpChecker {
    pub(crate) valid: u64,
}

impl SecpChecker {
    fn count(&mut self, valid: bool) -> bool {
        self.valid += u64::from(valid);
        valid
    }
}

impl SignatureChecker for SecpChecker {
    fn ecdsa(&mut self, pubkey: &[u8], der_sig: &[u8], msg: &[u8; 32]) -> bool {
        let key = PublicKey::from_slice(pubkey).expect("forged keys parse");
        let signature =
            ecdsa::Signature::from_der(der_sig).expect("forged signatures are strict DER");
        let valid = ecdsa::verify(&signature, Message::from_digest(*msg), &key).is_ok();
        self.count(valid)
    }

    fn schnorr(&mut self, xonly: &[u8; 32], sig: &[u8; 64], msg: &[u8; 32]) -> bool {
        let key = XOnlyPublicKey::from_byte_array(*xonly).expect("forged keys parse");
        let signature = schnorr::Signature::from_byte_array(*sig);
        let valid = schnorr::verify(&signature, msg, &key).is_ok();
        self.count(valid)
    }

    fn schnorr_of_any_length(&mut self, _: &[u8; 32], _: &[u8; 64], _: &[u8]) -> bool {
        unreachable!("the forge follows today's rules")
    }
    fn post_quantum(&mut self, _: PqScheme, _: &[u8], _: &[u8], _: &[u8; 32]) -> bool {
        unreachable!("the forge follows today's rules")
    }
    fn schnorr_bch(&mut self, _: &[u8], _: &[u8; 64], _: &[u8; 32]) -> bool {
        unreachable!("the forge signs ECDSA on Bitcoin Cash")
    }

    fn taproot_tweak(
        &mut self,
        internal: &[u8; 32],
        tweak: &[u8; 32],
        output: &[u8; 32],
        output_parity: bool,
    ) -> bool {
        let internal = XOnlyPublicKey::from_byte_array(*internal).expect("forged keys parse");
        let tweak = Scalar::from_be_bytes(*tweak).expect("a hash below the order");
        let (tweaked, parity) = internal.add_tweak(&tweak).expect("a hash of the key");
        tweaked.to_byte_array() == *output && (parity.to_u8() == 1) == output_parity
    }
}
