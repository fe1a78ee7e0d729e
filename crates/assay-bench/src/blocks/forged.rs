//! Blocks of a thousand transactions with five inputs and five outputs each, as Bitcoin Core's `connectblock` benchmark has
//! them: each transaction spends all outputs of the one before it. Other than there, every output has a key of its own.

use std::ops::Range;

use assay_consensus::commitment::witness_commitment;
use assay_consensus::params::ChainParams;
use assay_consensus::script::TxContext;
use assay_hash::{hash160, merkle_root, sha256, sha256d};
use assay_wire::{BlockHash, Encoding, Header, OutPoint, Transaction, TxOut, Txid, Wtxid, encode};
use rayon::prelude::*;
use secp256k1::{Keypair, Message, PublicKey, SecretKey, ecdsa, schnorr};

/// Inputs and outputs of a transaction.
pub(crate) const INPUTS: usize = 5;

/// Blocks before the first coinbase can be spent.
const MATURITY: u32 = 100;

/// What the inputs of a block are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// P2WPKH.
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

    /// How many of a transaction's outputs are P2TR; they come first.
    const fn taproots(self) -> usize {
        match self {
            Self::Ecdsa => 0,
            Self::Schnorr => INPUTS,
            Self::Mixed => 1,
        }
    }
}

/// A block.
pub(crate) struct ForgedBlock {
    pub(crate) height: u32,
    pub(crate) raw: Vec<u8>,
    /// The outputs that it spends, as `assay block verify` takes them.
    pub(crate) prevouts: Vec<u8>,
}

/// Makes a regtest chain: first what has to come before, then as many blocks of each kind as are wanted.
pub(crate) struct Forge {
    seed: u64,
    height: u32,
    tip: BlockHash,
    time: u32,
    bits: u32,
    keys_used: u64,
    /// What the next transaction of each kind spends.
    ends: Vec<Vec<Spend>>,
}

/// An output with its key.
#[derive(Clone)]
struct Spend {
    prevout: OutPoint,
    value: i64,
    key: Key,
}

#[derive(Clone)]
struct Key {
    secret: SecretKey,
    is_taproot: bool,
    script_pubkey: Vec<u8>,
}

/// A transaction without its witness.
struct Unsigned {
    /// Version, inputs, outputs, lock time.
    base: Vec<u8>,
    spends: Vec<Spend>,
}

/// What a coinbase pays; less than it might.
const COINBASE_SAT: i64 = 1_000_000_000;
/// Fee of a transaction for each of its outputs.
const FEE_SAT: i64 = 40;

impl Forge {
    /// The chain up to where the first block of a kind can come, with those blocks.
    pub(crate) fn new(seed: u64) -> (Self, Vec<ForgedBlock>) {
        let params = ChainParams::by_name("regtest").expect("a known chain");
        let genesis = params.genesis.block();
        let header: &[u8; 80] = genesis.first_chunk().expect("a block begins with its header");
        let header = Header::parse(header);
        let mut forge = Self {
            seed,
            height: 0,
            tip: header.hash(),
            time: header.time,
            bits: header.bits,
            keys_used: 0,
            ends: Vec::new(),
        };
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

    /// The next block, of `txs` transactions of a kind.
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

    /// Transactions that all spend the same, what the next block of the kind would begin with: each is valid without the others.
    pub(crate) fn rivals(&mut self, kind: Kind, count: usize) -> Vec<Vec<u8>> {
        let index = Kind::ALL.iter().position(|other| *other == kind).expect("it is one of all");
        let mut keys = self.keys(count * INPUTS, kind.taproots()).into_iter();
        let mut pay_all = || pay(self.ends[index].clone(), keys.by_ref().take(INPUTS).collect()).0;
        let unsigned: Vec<Unsigned> = (0..count).map(|_| pay_all()).collect();
        unsigned.par_iter().map(Unsigned::sign).collect()
    }

    /// New keys; of every five the first `taproots` are for P2TR.
    fn keys(&mut self, count: usize, taproots: usize) -> Vec<Key> {
        let numbers: Range<u64> = self.keys_used..self.keys_used + count as u64;
        self.keys_used = numbers.end;
        let (seed, first) = (self.seed, numbers.start);
        numbers
            .into_par_iter()
            .map(|number| Key::new(seed, number, ((number - first) as usize % INPUTS) < taproots))
            .collect()
    }

    /// A block on the tip; also what its coinbase pays to `key`.
    fn block(&mut self, txs: &[Unsigned], key: Key) -> (ForgedBlock, Spend) {
        self.height += 1;
        self.time += 600;
        let signed: Vec<Vec<u8>> = txs.par_iter().map(Unsigned::sign).collect();
        let mut txids: Vec<[u8; 32]> = txs.iter().map(|tx| sha256d(&tx.base)).collect();
        let mut wtxids: Vec<Wtxid> = signed.iter().map(|raw| Wtxid(sha256d(raw))).collect();
        wtxids.insert(0, Wtxid::default());
        let (base, coinbase) = coinbase(self.height, &key, &wtxids);
        txids.insert(0, sha256d(&base));
        let mut header = Header {
            version: 0x2000_0000,
            prev_block: self.tip,
            merkle_root: merkle_root(txids.clone()).0,
            time: self.time,
            bits: self.bits,
            nonce: 0,
        };
        // Half of all hashes are below regtest's target; those with a smaller first byte surely are.
        while header.hash().0[31] >= 0x7f {
            header.nonce += 1;
        }
        self.tip = header.hash();
        let mut raw = header.to_bytes().to_vec();
        encode::compact_size(&mut raw, 1 + signed.len() as u64);
        raw.extend_from_slice(&coinbase);
        for tx in &signed {
            raw.extend_from_slice(tx);
        }
        let mut prevouts = Vec::new();
        for spend in txs.iter().flat_map(|tx| &tx.spends) {
            let script = &spend.key.script_pubkey;
            prevouts.extend_from_slice(&spend.value.to_le_bytes());
            prevouts.extend_from_slice(&(script.len() as u32).to_le_bytes());
            prevouts.extend_from_slice(script);
        }
        let prevout = OutPoint { txid: Txid(txids[0]), vout: 0 };
        let spend = Spend { prevout, value: COINBASE_SAT, key };
        (ForgedBlock { height: self.height, raw, prevouts }, spend)
    }
}

impl Key {
    fn new(seed: u64, number: u64, is_taproot: bool) -> Self {
        let hash =
            sha256(&[&b"assay bench"[..], &seed.to_le_bytes(), &number.to_le_bytes()].concat());
        let secret = SecretKey::from_secret_bytes(hash).expect("a hash is a key but once in 2^127");
        let public = PublicKey::from_secret_key(&secret);
        // The derived key is the output key: a key path shows nothing of a tweak.
        let script_pubkey = if is_taproot {
            [&[0x51, 0x20][..], &public.x_only_public_key().0.to_byte_array()].concat()
        } else {
            [&[0x00, 0x14][..], &hash160(&public.serialize())].concat()
        };
        Self { secret, is_taproot, script_pubkey }
    }
}

/// A transaction that spends all of `spends` and pays the same to each of `keys`; also what it pays.
fn pay(spends: Vec<Spend>, keys: Vec<Key>) -> (Unsigned, Vec<Spend>) {
    let sum: i64 = spends.iter().map(|spend| spend.value).sum();
    let value = sum / keys.len() as i64 - FEE_SAT;
    let mut base = 2i32.to_le_bytes().to_vec();
    encode::compact_size(&mut base, spends.len() as u64);
    for spend in &spends {
        base.extend_from_slice(&spend.prevout.to_bytes());
        base.extend_from_slice(&[0, 0xff, 0xff, 0xff, 0xff]);
    }
    encode::compact_size(&mut base, keys.len() as u64);
    for key in &keys {
        base.extend_from_slice(&value.to_le_bytes());
        encode::var_bytes(&mut base, &key.script_pubkey);
    }
    base.extend_from_slice(&[0; 4]);
    let txid = Txid(sha256d(&base));
    let outputs = keys.into_iter().zip(0..);
    let outputs =
        outputs.map(|(key, vout)| Spend { prevout: OutPoint { txid, vout }, value, key }).collect();
    (Unsigned { base, spends }, outputs)
}

impl Unsigned {
    /// The transaction with real signatures.
    fn sign(&self) -> Vec<u8> {
        let tx = Transaction::parse(self.base.clone(), Encoding::Segwit).expect("well formed");
        let spent: Vec<TxOut<'_>> = self
            .spends
            .iter()
            .map(|spend| TxOut { value: spend.value, script_pubkey: &spend.key.script_pubkey })
            .collect();
        let context = TxContext::new(tx.view(), &spent);
        let (body, lock_time) = self.base.split_at(self.base.len() - 4);
        let mut raw = body[..4].to_vec();
        raw.extend_from_slice(&[0, 1]);
        raw.extend_from_slice(&body[4..]);
        for (input, spend) in self.spends.iter().enumerate() {
            let items = spend.witness(&context, input);
            encode::compact_size(&mut raw, items.len() as u64);
            for item in &items {
                encode::var_bytes(&mut raw, item);
            }
        }
        raw.extend_from_slice(lock_time);
        raw
    }
}

impl Spend {
    fn witness(&self, context: &TxContext<'_>, input: usize) -> Vec<Vec<u8>> {
        let Key { secret, is_taproot, script_pubkey } = &self.key;
        if *is_taproot {
            let msg = context.sighash_taproot(input, 0, None, None).expect("the default hash type");
            let keypair = Keypair::from_secret_key(secret);
            return vec![
                schnorr::sign_with_aux_rand(&msg, &keypair, &[0; 32]).to_byte_array().into(),
            ];
        }
        // BIP-0143: the script code of P2WPKH is that of P2PKH.
        let code = [&[0x76, 0xa9][..], &script_pubkey[1..], &[0x88, 0xac]].concat();
        let msg = context.sighash_segwit_v0(input, &code, self.value, 1);
        let sig = ecdsa::sign(Message::from_digest(msg), secret).serialize_der();
        let public = PublicKey::from_secret_key(secret).serialize();
        vec![[&sig[..], &[1]].concat(), public.to_vec()]
    }
}

/// A coinbase that pays to `key`, without and with witness.
fn coinbase(height: u32, key: &Key, wtxids: &[Wtxid]) -> (Vec<u8>, Vec<u8>) {
    let reserved = [0; 32];
    let commitment = witness_commitment(wtxids, &reserved);
    let mut body = vec![1];
    body.extend_from_slice(&OutPoint::NULL.to_bytes());
    // BIP-0034: the height as a script pushes it; a second push keeps the script above its least length.
    let mut script_sig = if height <= 16 {
        vec![0x50 + height as u8]
    } else {
        let len = match height {
            0..0x80 => 1,
            0x80..0x8000 => 2,
            _ => 3,
        };
        [&[len as u8][..], &height.to_le_bytes()[..len]].concat()
    };
    script_sig.push(0);
    encode::var_bytes(&mut body, &script_sig);
    body.extend_from_slice(&[0xff; 4]);
    body.push(2);
    body.extend_from_slice(&COINBASE_SAT.to_le_bytes());
    encode::var_bytes(&mut body, &key.script_pubkey);
    body.extend_from_slice(&0i64.to_le_bytes());
    let output = [&[0x6a, 0x24, 0xaa, 0x21, 0xa9, 0xed][..], &commitment].concat();
    encode::var_bytes(&mut body, &output);
    let version = 2i32.to_le_bytes();
    let base = [&version[..], &body, &[0; 4]].concat();
    let witness = [&[1, 32][..], &reserved].concat();
    let full = [&version[..], &[0, 1], &body, &witness, &[0; 4]].concat();
    (base, full)
}

#[cfg(test)]
mod tests {
    use assay_engine::{Block, BlockVerifier, parse_prevouts};

    use super::*;

    #[test]
    fn blocks_are_valid_and_the_same_each_time() {
        let params = ChainParams::by_name("regtest").expect("a known chain");
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
        for forged in base.iter().chain(&ours) {
            let block = Block::parse(forged.raw.clone(), Encoding::Segwit).expect("a block");
            let verifier = BlockVerifier::new(&params, &block, forged.height, None);
            let spent = parse_prevouts(&forged.prevouts, verifier.input_count()).expect("prevouts");
            let verdict = verifier.verify(&spent);
            assert!(verdict.is_ok(), "block {}: {:?}", forged.height, verdict.err());
        }
        for forged in &ours {
            let block = Block::parse(forged.raw.clone(), Encoding::Segwit).expect("a block");
            assert_eq!((block.tx_count(), block.input_count()), (8, 36));
        }
    }
}
