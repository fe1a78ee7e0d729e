//! Locks: an output script with the data needed to spend it, derived from its key and cached for reuse.

use std::collections::HashMap;

use assay_hash::{hash160, sha256, tagged_hash};
use rayon::{ThreadPool, prelude::*};
use secp256k1::{Keypair, PublicKey, Scalar, SecretKey};

use crate::{
    keys::{KeyId, Points},
    kind::Kind,
    raw::{self, Signer},
};

/// An output script and the public data to spend it.
pub(crate) struct Lock {
    script: [u8; SCRIPT_MAX],
    script_len: u8,
    pub(crate) unlock: Unlock,
}

/// Public data of an input that spends the lock; [`KeyId`] yields the secret keys.
pub(crate) enum Unlock {
    /// One ECDSA key behind its hash.
    Hash {
        public_key: [u8; 33],
        key_hash: [u8; 20],
    },
    /// The witness or redeem script of a 2-of-3.
    Multi(Box<[u8; 105]>),
    /// A signature of key 0 over a script that contains it, preceded by a dummy element if `dummy`.
    Bare {
        dummy: bool,
    },
    Never,
    Key(Box<Keypair>),
    Leaf(Box<Leaf>),
}

/// The one leaf of a taproot script tree.
pub(crate) struct Leaf {
    pub(crate) keypair: Keypair,
    pub(crate) hash: [u8; 32],
    pub(crate) script: [u8; 34],
    pub(crate) control_block: [u8; 33],
}

impl Lock {
    pub(crate) fn new(points: &Points, kind: Kind, id: &KeyId) -> Self {
        match kind {
            Kind::P2pkh | Kind::P2wpkh | Kind::P2shP2wpkh => Self::hash(points, kind, id),
            Kind::P2wsh => {
                let script = Self::two_of_three(points, id);
                let program = sha256(&script[..]);
                Self::from_parts(&[0x00, 0x20], &program, &[], Unlock::Multi(Box::new(script)))
            }
            Kind::P2shMulti => {
                let script = Self::two_of_three(points, id);
                let hash = hash160(&script[..]);
                Self::from_parts(&[0xa9, 0x14], &hash, &[0x87], Unlock::Multi(Box::new(script)))
            }
            Kind::P2pk => {
                let key = points.public_key(id, 0).serialize_uncompressed();
                Self::from_parts(&[65], &key, &[0xac], Unlock::Bare { dummy: false })
            }
            Kind::Multi => {
                let key = |number| points.public_key(id, number).serialize();
                let keys = [&[33][..], &key(0), &[33], &key(1)].concat();
                // OP_1 … OP_2 OP_CHECKMULTISIG
                Self::from_parts(&[0x51], &keys, &[0x52, 0xae], Unlock::Bare { dummy: true })
            }
            Kind::OpReturn => {
                let data = &id.secret(0)[12..];
                Self::from_parts(&[0x6a, 20], data, &[], Unlock::Never)
            }
            Kind::P2trKey => {
                // The derived key is the output key: BIP341 advises wallets to tweak it, but a key path spend does not reveal this.
                let output = points.public_key(id, 0);
                let unlock = Unlock::Key(Box::new(raw::keypair(secret_key(id, 0), &output)));
                Self::from_parts(&[0x51, 0x20], &x_only(&output), &[], unlock)
            }
            Kind::P2trScript => Self::leaf(points, id),
        }
    }

    pub(crate) fn script(&self) -> &[u8] {
        &self.script[..usize::from(self.script_len)]
    }

    fn hash(points: &Points, kind: Kind, id: &KeyId) -> Self {
        let public_key = points.public_key(id, 0).serialize();
        let key_hash = hash160(&public_key);
        let unlock = Unlock::Hash { public_key, key_hash };
        match kind {
            Kind::P2pkh => Self::from_parts(&[0x76, 0xa9, 0x14], &key_hash, &[0x88, 0xac], unlock),
            Kind::P2wpkh => Self::from_parts(&[0x00, 0x14], &key_hash, &[], unlock),
            _ => {
                let redeem = hash160(&p2wpkh_program(&key_hash));
                Self::from_parts(&[0xa9, 0x14], &redeem, &[0x87], unlock)
            }
        }
    }

    fn two_of_three(points: &Points, id: &KeyId) -> [u8; 105] {
        let mut script = [0u8; 105];
        script[0] = 0x52; // OP_2
        for number in 0..3 {
            let at = 1 + 34 * number;
            script[at] = 33;
            script[at + 1..at + 34]
                .copy_from_slice(&points.public_key(id, number as u8).serialize());
        }
        script[103..].copy_from_slice(&[0x53, 0xae]); // OP_3 OP_CHECKMULTISIG
        script
    }

    fn leaf(points: &Points, id: &KeyId) -> Self {
        let leaf_key = points.public_key(id, 1);
        let mut script = [0u8; 34];
        script[0] = 0x20;
        script[1..33].copy_from_slice(&x_only(&leaf_key));
        script[33] = 0xac; // OP_CHECKSIG
        let hash = tagged_hash("TapLeaf", &[&[LEAF_VERSION, 34], &script]);
        let (internal, output) = tweaked(&points.public_key(id, 0), &hash);
        let mut control_block = [0u8; 33];
        control_block[0] = LEAF_VERSION | u8::from(output.serialize()[0] == 3);
        control_block[1..].copy_from_slice(&internal);
        let keypair = raw::keypair(secret_key(id, 1), &leaf_key);
        let unlock = Unlock::Leaf(Box::new(Leaf { keypair, hash, script, control_block }));
        Self::from_parts(&[0x51, 0x20], &x_only(&output), &[], unlock)
    }

    fn from_parts(head: &[u8], body: &[u8], tail: &[u8], unlock: Unlock) -> Self {
        let mut script = [0u8; SCRIPT_MAX];
        let mut len = 0;
        for part in [head, body, tail] {
            script[len..len + part.len()].copy_from_slice(part);
            len += part.len();
        }
        Self { script, script_len: len as u8, unlock }
    }
}

/// `OP_0 <hash>`: the output script of P2WPKH and the redeem script of its nested form.
pub(crate) fn p2wpkh_program(key_hash: &[u8; 20]) -> [u8; 22] {
    let mut script = [0u8; 22];
    script[1] = 0x14;
    script[2..].copy_from_slice(key_hash);
    script
}

/// Internal key and output key of BIP341 for a script tree with this root.
fn tweaked(key: &PublicKey, root: &[u8; 32]) -> ([u8; 32], PublicKey) {
    let internal = x_only(key);
    let even = if key.serialize()[0] == 3 { key.negate() } else { *key };
    let tweak = Scalar::from_be_bytes(tagged_hash("TapTweak", &[&internal, root]))
        .expect("a hash is below the group order but once in 2^127");
    let output = even.add_exp_tweak(&tweak).expect("the tweak is a hash of the key");
    (internal, output)
}

fn secret_key(id: &KeyId, number: u8) -> SecretKey {
    SecretKey::from_secret_bytes(id.secret(number)).expect("forged keys are below the order")
}

fn x_only(key: &PublicKey) -> [u8; 32] {
    key.serialize()[1..].try_into().expect("a compressed key has 33 bytes")
}

/// Bytes of the longest output script: a bare 1-of-2.
const SCRIPT_MAX: usize = 71;
/// Leaf version of tapscript (BIP342).
const LEAF_VERSION: u8 = 0xc0;

/// Cache of locks by key: published keys repeat the same few thousand locks; distinct keys are derived on each use.
pub(crate) struct ScriptCache {
    points: Points,
    distinct: bool,
    heights: Vec<HeightLocks>,
}

#[derive(Default)]
struct HeightLocks {
    locks: Vec<Lock>,
    /// For amounts below [`SMALL_AMOUNTS`]: index of the lock plus one, by kind.
    small: [Vec<u32>; Kind::ALL.len()],
    large: HashMap<(u64, Kind), u32>,
    /// Numbered but not derived yet.
    pending: Vec<(Kind, u64)>,
}

impl ScriptCache {
    pub(crate) fn new(height_max: u32, distinct: bool) -> Self {
        let mut heights = Vec::new();
        heights.resize_with(height_max as usize + 1, HeightLocks::default);
        Self { points: Points::new(height_max, distinct), distinct, heights }
    }

    pub(crate) fn signer(&self) -> &Signer {
        self.points.signer()
    }

    /// Requests a lock; [`prepare`](Self::prepare) derives it.
    pub(crate) fn request(&mut self, kind: Kind, id: &KeyId) {
        if self.distinct {
            return;
        }
        let book = &mut self.heights[id.height as usize];
        let next = (book.locks.len() + book.pending.len()) as u32;
        if id.amount < SMALL_AMOUNTS {
            let slots = &mut book.small[kind as usize];
            if slots.is_empty() {
                slots.resize(SMALL_AMOUNTS as usize, 0);
            }
            let slot = &mut slots[id.amount as usize];
            if *slot != 0 {
                return;
            }
            *slot = next + 1;
        } else {
            let before = book.large.len();
            book.large.entry((id.amount, kind)).or_insert(next);
            if book.large.len() == before {
                return;
            }
        }
        book.pending.push((kind, id.amount));
    }

    pub(crate) fn prepare(&mut self, threads: &ThreadPool) {
        let points = &self.points;
        for (height, book) in self.heights.iter_mut().enumerate() {
            if book.pending.is_empty() {
                continue;
            }
            let pending = std::mem::take(&mut book.pending);
            let locks = &mut book.locks;
            threads.install(|| {
                locks.par_extend(pending.into_par_iter().with_min_len(16).map(|(kind, amount)| {
                    Lock::new(points, kind, &KeyId::published(height as u32, amount))
                }));
            });
        }
    }

    /// Calls `f` with the lock of this kind and key.
    pub(crate) fn with<R>(&self, kind: Kind, id: &KeyId, f: impl FnOnce(&Lock) -> R) -> R {
        if self.distinct {
            return f(&Lock::new(&self.points, kind, id));
        }
        let book = &self.heights[id.height as usize];
        let number = if id.amount < SMALL_AMOUNTS {
            book.small[kind as usize].get(id.amount as usize).and_then(|slot| slot.checked_sub(1))
        } else {
            book.large.get(&(id.amount, kind)).copied()
        };
        f(&book.locks[number.expect("every planned output announces its lock") as usize])
    }
}

/// Amounts below this are looked up by index; fan-out outputs, the majority, are.
const SMALL_AMOUNTS: u64 = 2048;
