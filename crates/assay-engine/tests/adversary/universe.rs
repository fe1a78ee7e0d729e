//! The blocks of a run: a tree with the known validity and coins of each block.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use assay_consensus::commitment::height_prefix;
use assay_consensus::params::ChainParams;
use assay_hash::MuHash3072;
use assay_testkit::chain::{
    P2SH_TRUE, SPEND_P2SH_TRUE, TxBuilder, coinbase_with, header_on, mined_block_bytes,
};
use assay_testkit::random::Random;
use assay_wire::{BlockHash, Encoding, Header, OutPoint, Transaction, Txid, encode};
use secp256k1::{Message, PublicKey, SecretKey, ecdsa};

/// Height of the snapshot's base. Blocks above it fork and may be invalid; those below it are valid.
pub(crate) const BASE: u32 = 150;

/// Value of every coinbase, satoshi: less than the subsidy up to height 450.
const CLAIM_SAT: i64 = 100_000_000;
/// Fee of every transaction, satoshi.
const FEE_SAT: i64 = 2000;
/// Maximum number of signatures in a transaction.
const SIGNATURES_MAX: usize = 64;
const KEYS: usize = 32;

/// Condition to spend a coin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lock {
    /// None.
    True,
    /// A signature of the key with this number.
    Key(usize),
    /// A signature with an ignored result.
    Dropped,
    Never,
}

/// A key with a signature that is valid for every input without an output of the same index: `SIGHASH_SINGLE` signs the number 1
/// there (Core `script/interpreter.cpp`, `SignatureHash`).
struct Key {
    script_pubkey: Vec<u8>,
    script_sig: Vec<u8>,
}

fn keys() -> &'static [Key] {
    static KEY_TABLE: OnceLock<Vec<Key>> = OnceLock::new();
    KEY_TABLE.get_or_init(|| {
        let key = |number: usize| {
            let secret = assay_hash::sha256(&number.to_le_bytes());
            let secret = SecretKey::from_secret_bytes(secret).expect("a key");
            let mut one = [0; 32];
            one[0] = 1;
            let signature = ecdsa::sign(Message::from_digest(one), &secret).serialize_der();
            let mut script_pubkey = Vec::new();
            encode::var_bytes(&mut script_pubkey, &PublicKey::from_secret_key(&secret).serialize());
            script_pubkey.push(OP_CHECKSIG);
            let mut script_sig = Vec::new();
            encode::var_bytes(&mut script_sig, &[&signature[..], &[SIGHASH_SINGLE]].concat());
            Key { script_pubkey, script_sig }
        };
        (0..KEYS).map(key).collect()
    })
}

impl Lock {
    fn script_pubkey(self) -> Vec<u8> {
        match self {
            Self::True => P2SH_TRUE.to_vec(),
            Self::Key(number) => keys()[number].script_pubkey.clone(),
            // Three times: OP_2DUP OP_CHECKSIG OP_DROP OP_CODESEPARATOR; then OP_2DROP OP_1.
            Self::Dropped => {
                [&[0x6e, OP_CHECKSIG, 0x75, 0xab].repeat(3)[..], &[0x6d, 0x51]].concat()
            }
            Self::Never => vec![0],
        }
    }

    fn script_sig(self) -> Vec<u8> {
        match self {
            Self::True => SPEND_P2SH_TRUE.to_vec(),
            Self::Key(number) => keys()[number].script_sig.clone(),
            Self::Dropped => {
                // R and S are 1, and the key is another one.
                let mut script_sig = vec![9, 0x30, 6, 2, 1, 1, 2, 1, 1, 1];
                script_sig.extend(&keys()[0].script_pubkey[..34]);
                script_sig
            }
            Self::Never => Vec::new(),
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Coin {
    outpoint: OutPoint,
    value: i64,
    lock: Lock,
    height: u32,
    is_coinbase: bool,
}

impl Coin {
    /// The serialisation in the hash of the set (Core `kernel/coinstats.cpp`, `TxOutSer`).
    fn bytes(&self) -> Vec<u8> {
        let mut out = self.outpoint.to_bytes().to_vec();
        out.extend((self.height << 1 | u32::from(self.is_coinbase)).to_le_bytes());
        out.extend(self.value.to_le_bytes());
        encode::var_bytes(&mut out, &self.lock.script_pubkey());
        out
    }
}

/// The unspent outputs after a block.
#[derive(Clone, Default)]
pub(crate) struct Coins {
    all: Vec<Coin>,
    muhash: MuHash3072,
}

impl Coins {
    fn add(&mut self, coin: Coin) {
        self.muhash.insert(&coin.bytes());
        self.all.push(coin);
    }

    /// Takes a coin that the block at `height` may spend.
    fn take(
        &mut self,
        rng: &mut Random,
        height: u32,
        is_fit: impl Fn(&Coin) -> bool,
    ) -> Option<Coin> {
        let is_mature = |coin: &Coin| !coin.is_coinbase || coin.height + 100 <= height;
        let first = rng.below(self.all.len().max(1));
        let mut places = (first..self.all.len()).chain(0..first);
        let place = places.find(|at| is_mature(&self.all[*at]) && is_fit(&self.all[*at]))?;
        let coin = self.all.swap_remove(place);
        self.muhash.remove(&coin.bytes());
        Some(coin)
    }

    pub(crate) fn any(&self, rng: &mut Random) -> Option<OutPoint> {
        let place = rng.below(self.all.len().max(1));
        self.all.get(place).map(|coin| coin.outpoint)
    }

    pub(crate) fn has(&self, outpoint: &OutPoint) -> bool {
        self.all.iter().any(|coin| coin.outpoint == *outpoint)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A script without signatures fails.
    Script,
    /// A signature belongs to another key.
    Signature,
    /// The coinbase claims too much.
    Amount,
    /// The coinbase claims too much, and a script fails.
    AmountAndScript,
    Missing,
    /// A transaction is not final, which is checked before coins move.
    NotFinal,
    /// The coinbase has another height, which is checked before coins move.
    Height,
}

impl Fault {
    /// Usually one that only scripts detect.
    fn any(rng: &mut Random) -> Self {
        match rng.below(10) {
            0..3 => Self::Script,
            3..5 => Self::Signature,
            5 => Self::Amount,
            6 => Self::AmountAndScript,
            7 => Self::Missing,
            8 => Self::NotFinal,
            _ => Self::Height,
        }
    }

    /// True if Core rejects it for this reason.
    pub(crate) fn has_reason(self, reason: &str) -> bool {
        match self {
            Self::Script | Self::Signature => reason.contains("script-verify-flag-failed"),
            Self::Amount | Self::AmountAndScript => reason == "bad-cb-amount",
            Self::Missing => reason == "bad-txns-inputs-missingorspent",
            Self::NotFinal => reason == "bad-txns-nonfinal",
            Self::Height => reason == "bad-cb-height",
        }
    }

    fn has_bad_script(self) -> bool {
        matches!(self, Self::Script | Self::AmountAndScript)
    }
}

/// A block of known validity.
#[derive(Clone)]
pub(crate) struct Block {
    pub(crate) raw: Vec<u8>,
    pub(crate) hash: BlockHash,
    pub(crate) header: Header,
    /// Its transactions, without the coinbase.
    pub(crate) txs: Vec<Transaction>,
    /// Index of its parent; the genesis block is its own.
    pub(crate) parent: usize,
    pub(crate) height: u32,
    /// The rule that it breaks itself.
    pub(crate) fault: Option<Fault>,
    /// True if it and all below it are valid.
    pub(crate) is_sound: bool,
    /// Coins after it; on an invalid branch, those below the first invalid block.
    pub(crate) coins: Coins,
    muhash: OnceLock<[u8; 32]>,
}

impl Block {
    pub(crate) fn muhash(&self) -> [u8; 32] {
        *self.muhash.get_or_init(|| self.coins.muhash.clone().finalize())
    }
}

/// A tree of blocks; parents come before children.
#[derive(Clone)]
pub(crate) struct Universe {
    pub(crate) blocks: Vec<Block>,
    by_hash: HashMap<BlockHash, usize>,
}

impl Universe {
    /// A valid chain up to [`BASE`].
    pub(crate) fn new() -> Self {
        let params = ChainParams::by_name("regtest").expect("a known chain");
        let raw = params.genesis_block();
        let genesis = Block {
            header: header_of(&raw),
            raw,
            hash: params.genesis_hash,
            txs: Vec::new(),
            parent: 0,
            height: 0,
            fault: None,
            is_sound: true,
            coins: Coins::default(),
            muhash: OnceLock::new(),
        };
        let by_hash = HashMap::from([(genesis.hash, 0)]);
        let mut universe = Self { blocks: vec![genesis], by_hash };
        let rng = &mut Random(1);
        for parent in 0..BASE as usize {
            universe.push(universe.build(parent, None, 5, rng));
        }
        universe
    }

    pub(crate) fn find(&self, hash: &BlockHash) -> Option<usize> {
        self.by_hash.get(hash).copied()
    }

    fn push(&mut self, block: Block) -> usize {
        let index = self.blocks.len();
        self.by_hash.insert(block.hash, index);
        self.blocks.push(block);
        index
    }

    /// The block and all below it, downwards, without the genesis block.
    pub(crate) fn branch(&self, of: usize) -> impl Iterator<Item = usize> + '_ {
        let up = |index: usize| (index != 0).then_some(index);
        std::iter::successors(up(of), move |index| up(self.blocks[*index].parent))
    }

    pub(crate) fn is_on_branch(&self, index: usize, tip: usize) -> bool {
        let height = self.blocks[index].height;
        index == 0 || self.branch(tip).find(|at| self.blocks[*at].height <= height) == Some(index)
    }

    /// The first of the highest valid blocks.
    pub(crate) fn lead(&self) -> usize {
        let sound = (0..self.blocks.len()).rev().filter(|index| self.blocks[*index].is_sound);
        sound.max_by_key(|index| self.blocks[*index].height).expect("the genesis block is sound")
    }

    /// Adds a few blocks: to the best branch, to a fork of it, or to an invalid one.
    pub(crate) fn grow(&mut self, rng: &mut Random) {
        let lead = self.lead();
        let (mut at, mut length) = match rng.below(20) {
            0..11 => (lead, 1 + rng.below(3)),
            11..17 => {
                // A fork that may overtake the best branch.
                let depth = 1 + rng.below(4);
                (self.branch(lead).nth(depth).unwrap_or(0), depth + rng.below(3))
            }
            17 => {
                // A short one, which the snapshot's branch outgrows.
                let low = self.build(BASE as usize - 3 - rng.below(6), None, 3, rng);
                self.push(low);
                return;
            }
            _ => (self.blocks.len() - 1 - rng.below(8), 1),
        };
        if !self.is_on_branch(BASE as usize, at) {
            (at, length) = (lead, 2);
        }
        for left in (0..length).rev() {
            // Usually the last one, so that valid blocks below it are connected in the same pass.
            let is_faulty = rng.below(if left == 0 { 2 } else { 8 }) == 0;
            let fault = is_faulty.then(|| Fault::any(rng));
            at = self.push(self.build(at, fault, 6, rng));
        }
    }

    /// A block after `parent`, valid except for `fault`, with up to `txs_max` additional transactions.
    pub(crate) fn build(
        &self,
        parent: usize,
        fault: Option<Fault>,
        txs_max: usize,
        rng: &mut Random,
    ) -> Block {
        let below = &self.blocks[parent];
        let height = below.height + 1;
        let mut coins = below.coins.clone();
        let bad = fault.and_then(|fault| bad_tx(&mut coins, fault, height, rng));
        // There may be no coin to spend.
        let fault = fault.map(|fault| match bad {
            None if fault != Fault::Height => Fault::Amount,
            _ => fault,
        });
        let mut txs = Vec::new();
        for _ in 0..rng.below(txs_max + 1) {
            txs.extend(match rng.below(3) {
                0 => fan(&mut coins, height, rng),
                1 => signed(&mut coins, height, rng),
                _ => plain(&mut coins, height, rng),
            });
        }
        if let Some(bad) = bad {
            txs.insert(rng.below(txs.len() + 1), bad);
        }
        let named = if fault == Some(Fault::Height) { height + 1 } else { height };
        let takes_too_much = matches!(fault, Some(Fault::Amount | Fault::AmountAndScript));
        let claim = if takes_too_much { 100 * CLAIM_SAT } else { CLAIM_SAT };
        let mut script_sig = height_prefix(named);
        encode::var_bytes(&mut script_sig, &rng.next().to_le_bytes());
        let coinbase = coinbase_with(&script_sig).output(claim, &P2SH_TRUE).build();
        let outpoint = OutPoint { txid: coinbase.view().txid(), vout: 0 };
        let (value, lock) = (claim, Lock::True);
        coins.add(Coin { outpoint, value, lock, height, is_coinbase: true });
        let header = header_on(below.hash, below.header.time + 60);
        let all: Vec<&Transaction> = std::iter::once(&coinbase).chain(&txs).collect();
        let raw = mined_block_bytes(header, all);
        let header = header_of(&raw);
        let is_sound = below.is_sound && fault.is_none();
        if !is_sound {
            coins = below.coins.clone();
        }
        let (hash, muhash) = (header.hash(), OnceLock::new());
        Block { raw, hash, header, txs, parent, height, fault, is_sound, coins, muhash }
    }
}

fn header_of(raw: &[u8]) -> Header {
    let block = assay_wire::Block::parse(raw.to_vec(), Encoding::Segwit);
    *block.expect("a block that was put together parses").header()
}

/// The transaction that makes a block invalid; it spends older coins, and nothing spends its outputs.
fn bad_tx(coins: &mut Coins, fault: Fault, height: u32, rng: &mut Random) -> Option<Transaction> {
    let coin = match fault {
        fault if fault.has_bad_script() => {
            coins.take(rng, height, |coin| coin.lock == Lock::Never)?
        }
        Fault::Signature => coins.take(rng, height, |coin| matches!(coin.lock, Lock::Key(_)))?,
        Fault::Missing => {
            let outpoint = OutPoint { txid: Txid([rng.next() as u8; 32]), vout: 7 };
            let (value, lock) = (FEE_SAT, Lock::True);
            Coin { outpoint, value, lock, height, is_coinbase: false }
        }
        Fault::Amount | Fault::NotFinal => {
            coins.take(rng, height, |coin| coin.lock == Lock::True)?
        }
        _ => return None,
    };
    let script_sig = match coin.lock {
        Lock::Key(number) => keys()[(number + 1) % KEYS].script_sig.clone(),
        lock => lock.script_sig(),
    };
    let (sequence, lock_time) =
        if fault == Fault::NotFinal { (0, height + 1000) } else { (u32::MAX, 0) };
    let tx = TxBuilder::new(2).lock_time(lock_time).spend(coin.outpoint, &script_sig, sequence);
    Some(tx.output(coin.value / 2, &P2SH_TRUE).build())
}

fn is_rich(coin: &Coin) -> bool {
    coin.lock == Lock::True && coin.value > 100 * FEE_SAT
}

/// Spends these coins to outputs with these locks, all of equal value.
fn spend(coins: &mut Coins, spent: &[Coin], locks: &[Lock], height: u32) -> Transaction {
    let sum: i64 = spent.iter().map(|coin| coin.value).sum();
    let value = (sum - FEE_SAT) / locks.len() as i64;
    let mut tx = TxBuilder::new(2);
    for coin in spent {
        tx = tx.spend(coin.outpoint, &coin.lock.script_sig(), u32::MAX);
    }
    for lock in locks {
        tx = tx.output(value, &lock.script_pubkey());
    }
    let tx = tx.build();
    let txid = tx.view().txid();
    for (vout, lock) in locks.iter().enumerate() {
        let outpoint = OutPoint { txid, vout: vout as u32 };
        coins.add(Coin { outpoint, value, lock: *lock, height, is_coinbase: false });
    }
    tx
}

/// Creates coins of all kinds.
fn fan(coins: &mut Coins, height: u32, rng: &mut Random) -> Option<Transaction> {
    let coin = coins.take(rng, height, is_rich)?;
    let mut locks = vec![Lock::True, Lock::True, Lock::Never, Lock::Dropped, Lock::Dropped];
    locks.extend((0..=rng.below(SIGNATURES_MAX)).map(|_| Lock::Key(rng.below(KEYS))));
    Some(spend(coins, &[coin], &locks, height))
}

/// Spends coins that need signatures. The first input has the index of the only output ([`Key`]).
fn signed(coins: &mut Coins, height: u32, rng: &mut Random) -> Option<Transaction> {
    let mut spent =
        vec![coins.take(rng, height, |coin| coin.lock == Lock::True && coin.value > 3 * FEE_SAT)?];
    for _ in 0..=rng.below(SIGNATURES_MAX) {
        let is_signed = |coin: &Coin| matches!(coin.lock, Lock::Key(_) | Lock::Dropped);
        spent.extend(coins.take(rng, height, is_signed));
    }
    Some(spend(coins, &spent, &[Lock::True], height))
}

/// Spends coins without signatures, some of them likely of the same block.
fn plain(coins: &mut Coins, height: u32, rng: &mut Random) -> Option<Transaction> {
    let coin = coins.take(rng, height, is_rich)?;
    Some(spend(coins, &[coin], &vec![Lock::True; 1 + rng.below(3)], height))
}

const OP_CHECKSIG: u8 = 0xac;
const SIGHASH_SINGLE: u8 = 3;

/// The common initial chain of all runs.
pub(crate) fn base() -> Arc<Universe> {
    static BASE_UNIVERSE: OnceLock<Arc<Universe>> = OnceLock::new();
    Arc::clone(BASE_UNIVERSE.get_or_init(|| Arc::new(Universe::new())))
}
