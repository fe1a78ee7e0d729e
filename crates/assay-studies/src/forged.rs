//! Blocks of a thousand transactions with five inputs and five outputs each, as in Bitcoin Core's `connectblock` benchmark: each
//! transaction spends all outputs of the previous one. Unlike there, every output has its own key.

use std::ops::Range;

use assay_consensus::script::TxContext;
use assay_hash::{hash160, sha256, sha256d};
use assay_wire::{Encoding, OutPoint, Transaction, TxBuilder, TxOut, Txid, Wtxid, encode};
use rayon::prelude::*;
use secp256k1::{Keypair, Message, PublicKey, SecretKey, ecdsa, schnorr};

use crate::block_builder::{Coinbase, Tip, prevouts};
use crate::chain;

/// Inputs and outputs of a transaction.
pub(crate) const INPUTS: usize = 5;

const MATURITY: u32 = 100;

/// Script types of a block's inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Ecdsa,
    /// P2TR, spent by the key path.
    Schnorr,
    /// One of five P2TR, as in the blocks from 848,000 to 868,000.
    Mixed,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Ecdsa, Self::Schnorr, Self::Mixed];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ecdsa => "ecdsa",
            Self::Schnorr => "schnorr",
            Self::Mixed => "mixed",
        }
    }

    /// Number of P2TR outputs of a transaction; they come first.
    const fn taproots(self) -> usize {
        match self {
            Self::Ecdsa => 0,
            Self::Schnorr => INPUTS,
            Self::Mixed => 1,
        }
    }
}

#[derive(Clone)]
pub(crate) struct ForgedBlock {
    pub(crate) height: u32,
    pub(crate) raw: Vec<u8>,
    /// Its spent outputs in the format of `assay block verify`.
    pub(crate) prevouts: Vec<u8>,
}

/// Forges a regtest chain: preliminary blocks, then the requested blocks of each kind.
pub(crate) struct Forge {
    seed: u64,
    tip: Tip,
    keys_used: u64,
    /// Outputs for the next transaction of each kind.
    ends: Vec<Vec<Spend>>,
}

#[derive(Clone)]
struct Spend {
    prevout: OutPoint,
    value: i64,
    key: Key,
}

#[derive(Clone)]
struct Key {
    secret: SecretKey,
    lock: Lock,
    script_pubkey: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lock {
    P2wpkh,
    /// Spent by the key path.
    P2tr,
    /// Uncompressed key, as in the first years of the chain.
    P2pkh,
}

struct Unsigned {
    tx: TxBuilder,
    spends: Vec<Spend>,
}

/// Coinbase output, below the allowed maximum.
const COINBASE_SAT: i64 = 1_000_000_000;
/// Value of each input of a large transaction.
const LARGE_INPUT_SAT: i64 = 1_000;
/// Fee per output of a transaction.
const FEE_SAT: i64 = 40;

impl Forge {
    /// The chain up to the height of the first measured block, with its blocks.
    pub(crate) fn new(seed: u64) -> (Self, Vec<ForgedBlock>) {
        let tip = Tip::genesis(&chain("regtest"));
        let mut forge = Self { seed, tip, keys_used: 0, ends: Vec::new() };
        let mut blocks = Vec::new();
        let mut coinbases = Vec::new();
        for number in 0..MATURITY + Kind::ALL.len() as u32 {
            let key = forge.keys(1, 0).remove(0);
            let (block, spend) = forge.block(&[], key);
            blocks.push(block);
            if (number as usize) < Kind::ALL.len() {
                coinbases.push(spend);
            }
        }
        let mut txs = Vec::new();
        for (kind, coinbase) in Kind::ALL.into_iter().zip(coinbases) {
            let keys = forge.keys(INPUTS, kind.taproots());
            let (tx, end) = pay(vec![coinbase], keys);
            txs.push(tx);
            forge.ends.push(end);
        }
        let key = forge.keys(1, 0).remove(0);
        blocks.push(forge.block(&txs, key).0);
        (forge, blocks)
    }

    /// Next block with `txs` transactions of a kind.
    pub(crate) fn next(&mut self, kind: Kind, txs: usize) -> ForgedBlock {
        let index = Kind::ALL.iter().position(|other| *other == kind).expect("it is one of all");
        let mut end = self.ends[index].clone();
        let mut unsigned = Vec::with_capacity(txs);
        let mut keys = self.keys(txs * INPUTS, kind.taproots()).into_iter();
        for _ in 0..txs {
            let (tx, outputs) = pay(end, keys.by_ref().take(INPUTS).collect());
            unsigned.push(tx);
            end = outputs;
        }
        self.ends[index] = end;
        let key = self.keys(1, 0).remove(0);
        self.block(&unsigned, key).0
    }

    /// Next two blocks for one large transaction without witnesses: the second contains only that, with `inputs` P2PKH inputs,
    /// which spend outputs of the first, and half as many outputs.
    pub(crate) fn next_large(&mut self, inputs: usize) -> [ForgedBlock; 2] {
        let end = self.ends[0].clone();
        let mut keys = self.keys(INPUTS, 0);
        keys.extend(self.keys_locked(inputs, |_| Lock::P2pkh));
        let sum: i64 = end.iter().map(|spend| spend.value).sum();
        let change = (sum - LARGE_INPUT_SAT * inputs as i64) / INPUTS as i64 - FEE_SAT;
        let value = |index: usize| if index < INPUTS { change } else { LARGE_INPUT_SAT };
        let (funding, mut outputs) = pay_values(end, keys, value);
        let spends = outputs.split_off(INPUTS);
        self.ends[0] = outputs;
        let keys = self.keys_locked(inputs.div_ceil(2), |_| Lock::P2pkh);
        let (large, _) = pay(spends, keys);
        [&funding, &large].map(|tx| {
            let key = self.keys(1, 0).remove(0);
            self.block(std::slice::from_ref(tx), key).0
        })
    }

    /// New keys; of every five the first `taproots` are for P2TR.
    fn keys(&mut self, count: usize, taproots: usize) -> Vec<Key> {
        self.keys_locked(
            count,
            |index| {
                if index % INPUTS < taproots { Lock::P2tr } else { Lock::P2wpkh }
            },
        )
    }

    fn keys_locked(&mut self, count: usize, lock: impl Fn(usize) -> Lock + Sync) -> Vec<Key> {
        let numbers: Range<u64> = self.keys_used..self.keys_used + count as u64;
        self.keys_used = numbers.end;
        let (seed, first) = (self.seed, numbers.start);
        numbers
            .into_par_iter()
            .map(|number| Key::new(seed, number, lock((number - first) as usize)))
            .collect()
    }

    /// A block on the tip, and its coinbase output to `key`.
    fn block(&mut self, txs: &[Unsigned], key: Key) -> (ForgedBlock, Spend) {
        let signed: Vec<Vec<u8>> = txs.par_iter().map(Unsigned::sign).collect();
        let txid = |raw: &Vec<u8>| {
            let tx = Transaction::parse(raw.clone(), Encoding::Segwit).expect("well formed");
            tx.view().txid().0
        };
        let txids: Vec<[u8; 32]> = signed.par_iter().map(txid).collect();
        let mut wtxids: Vec<Wtxid> = signed.iter().map(|raw| Wtxid(sha256d(raw))).collect();
        wtxids.insert(0, Wtxid::default());
        let pays = (COINBASE_SAT, &key.script_pubkey[..]);
        // The second push keeps the script above its minimum length.
        let coinbase = Coinbase::new(self.tip.height + 1, &[0], pays, Some(&wtxids));
        let (tip, raw) = self.tip.next(600, &coinbase, &signed, txids);
        self.tip = tip;
        let spent = txs.iter().flat_map(|tx| &tx.spends).map(Spend::output);
        let prevouts = prevouts(spent);
        let prevout = OutPoint { txid: coinbase.txid(), vout: 0 };
        let spend = Spend { prevout, value: COINBASE_SAT, key };
        (ForgedBlock { height: tip.height, raw, prevouts }, spend)
    }
}

impl Key {
    fn new(seed: u64, number: u64, lock: Lock) -> Self {
        let hash =
            sha256(&[&b"assay bench"[..], &seed.to_le_bytes(), &number.to_le_bytes()].concat());
        let secret = SecretKey::from_secret_bytes(hash).expect("a hash is a key but once in 2^127");
        let public = PublicKey::from_secret_key(&secret);
        let script_pubkey = match lock {
            // The derived key is the untweaked output key, which a key path spend cannot distinguish.
            Lock::P2tr => {
                [&[0x51, 0x20][..], &public.x_only_public_key().0.to_byte_array()].concat()
            }
            Lock::P2wpkh => [&[0x00, 0x14][..], &hash160(&public.serialize())].concat(),
            Lock::P2pkh => p2pkh(&hash160(&public.serialize_uncompressed())),
        };
        Self { secret, lock, script_pubkey }
    }
}

/// A transaction that spends all of `spends` and pays the same amount to each of `keys`, with its outputs.
fn pay(spends: Vec<Spend>, keys: Vec<Key>) -> (Unsigned, Vec<Spend>) {
    let sum: i64 = spends.iter().map(|spend| spend.value).sum();
    let value = sum / keys.len() as i64 - FEE_SAT;
    pay_values(spends, keys, |_| value)
}

/// A transaction that pays `value` of its index to each key, with its outputs.
fn pay_values(
    spends: Vec<Spend>,
    keys: Vec<Key>,
    value: impl Fn(usize) -> i64,
) -> (Unsigned, Vec<Spend>) {
    let mut tx = TxBuilder::new(2);
    for spend in &spends {
        tx = tx.spend(spend.prevout, &[], u32::MAX);
    }
    for (index, key) in keys.iter().enumerate() {
        tx = tx.output(value(index), &key.script_pubkey);
    }
    let txid = Txid(sha256d(&tx.bytes()));
    let outputs = keys.into_iter().zip(0..);
    let outputs = outputs
        .map(|(key, vout)| {
            let (prevout, value) = (OutPoint { txid, vout }, value(vout as usize));
            Spend { prevout, value, key }
        })
        .collect();
    (Unsigned { tx, spends }, outputs)
}

impl Unsigned {
    fn sign(&self) -> Vec<u8> {
        let unsigned = self.tx.build();
        let spent: Vec<TxOut<'_>> = self.spends.iter().map(Spend::output).collect();
        let context = TxContext::new(unsigned.view(), &spent);
        let inputs = self.spends.iter().enumerate();
        let signed = inputs.fold(self.tx.clone(), |tx, (input, spend)| {
            let Signed { script_sig, witness } = spend.sign(&context, input);
            tx.unlock(input, &script_sig, &witness)
        });
        signed.bytes()
    }
}

#[derive(Default)]
struct Signed {
    script_sig: Vec<u8>,
    witness: Vec<Vec<u8>>,
}

impl Spend {
    fn output(&self) -> TxOut<'_> {
        TxOut { value: self.value, script_pubkey: &self.key.script_pubkey }
    }

    fn sign(&self, context: &TxContext<'_>, input: usize) -> Signed {
        let Key { secret, lock, script_pubkey } = &self.key;
        let public = PublicKey::from_secret_key(secret);
        let ecdsa = |msg| {
            let sig = ecdsa::sign(Message::from_digest(msg), secret).serialize_der();
            [&sig[..], &[1]].concat()
        };
        let mut signed = Signed::default();
        match lock {
            Lock::P2tr => {
                let msg =
                    context.sighash_taproot(input, 0, None, None).expect("the default hash type");
                let keypair = Keypair::from_secret_key(secret);
                let sig = schnorr::sign_with_aux_rand(&msg, &keypair, &[0; 32]);
                signed.witness.push(sig.to_byte_array().into());
            }
            Lock::P2wpkh => {
                // BIP-0143: the script code of P2WPKH is that of P2PKH.
                let code = p2pkh(&script_pubkey[2..]);
                let sig = ecdsa(context.sighash_segwit_v0(input, &code, self.value, 1));
                signed.witness = vec![sig, public.serialize().to_vec()];
            }
            Lock::P2pkh => {
                let sig = ecdsa(context.sighash_legacy(input, script_pubkey, 1));
                encode::var_bytes(&mut signed.script_sig, &sig);
                encode::var_bytes(&mut signed.script_sig, &public.serialize_uncompressed());
            }
        }
        signed
    }
}

fn p2pkh(hash: &[u8]) -> Vec<u8> {
    [&[0x76, 0xa9, 0x14][..], hash, &[0x88, 0xac]].concat()
}

#[cfg(test)]
mod tests {
    use assay_engine::{Block, BlockVerifier, parse_prevouts};

    use super::*;

    #[test]
    fn blocks_are_valid_and_the_same_each_time() {
        let params = chain("regtest");
        let check = |forged: &ForgedBlock| {
            let block = Block::parse(forged.raw.clone(), Encoding::Segwit).expect("a block");
            let verifier = BlockVerifier::new(&params, &block, forged.height, None);
            let spent = parse_prevouts(&forged.prevouts, verifier.input_count()).expect("prevouts");
            let verdict = verifier.verify(&spent);
            assert!(verdict.is_ok(), "block {}: {:?}", forged.height, verdict.err());
        };
        let make = || {
            let (mut forge, blocks) = Forge::new(5);
            (Kind::ALL.map(|kind| forge.next(kind, 7)), blocks)
        };
        let (ours, base) = make();
        let (again, _) = make();
        assert_eq!(base.len(), 104);
        for (block, again) in ours.iter().zip(&again) {
            assert_eq!(block.raw, again.raw);
        }
        base.iter().chain(&ours).for_each(check);
        let (mut forge, base) = Forge::new(6);
        let large = [forge.next_large(40), forge.next_large(40)].concat();
        base.iter().chain(&large).for_each(check);
        let block = Block::parse(large[3].raw.clone(), Encoding::Segwit).expect("a block");
        assert_eq!((block.input_count(), block.tx(1).has_witness()), (41, false));
        for forged in &ours {
            let block = Block::parse(forged.raw.clone(), Encoding::Segwit).expect("a block");
            assert_eq!((block.tx_count(), block.input_count()), (8, 36));
        }
    }
}
