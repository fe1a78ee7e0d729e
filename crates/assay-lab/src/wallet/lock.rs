//! Locking scripts by kind, and their unlocking data.

use assay_hash::{hash160, sha256, sha256d, tagged_hash};
use assay_report::stats::random::SplitMix64;
use assay_wire::{Tx, TxBuilder, encode};
use secp256k1::{Keypair, Message, PublicKey, SecretKey, ecdsa, schnorr};
use serde::{Deserialize, Serialize};

use super::{Coin, SEQUENCE, VERSION};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// P2PKH: ECDSA over the whole transaction for each input.
    P2pkh,
    /// P2WPKH, a witness program (BIP141, BIP143).
    P2wpkh,
    /// Witness script `<key> OP_CHECKSIG`, which every program relays.
    P2wsh,
    /// Witness script of two signatures out of three keys.
    #[serde(rename = "p2wsh-2of3")]
    P2wsh2Of3,
    /// Taproot, spent by the key path (BIP341): Schnorr. The output key is the untweaked key.
    P2tr,
}

impl Kind {
    pub const ALL: [Self; 5] =
        [Self::P2pkh, Self::P2wpkh, Self::P2wsh, Self::P2wsh2Of3, Self::P2tr];

    pub const fn title(self) -> &'static str {
        match self {
            Self::P2pkh => "P2PKH",
            Self::P2wpkh => "P2WPKH",
            Self::P2wsh => "P2WSH",
            Self::P2wsh2Of3 => "P2WSH 2-of-3",
            Self::P2tr => "P2TR",
        }
    }

    /// Maximum weight of an input that spends such a coin.
    pub(super) const fn input_weight(self) -> usize {
        match self {
            Self::P2pkh => 4 * (INPUT_BYTES + PUSHED_SIGNATURE + PUSHED_KEY),
            Self::P2wpkh => 4 * INPUT_BYTES + 1 + PUSHED_SIGNATURE + PUSHED_KEY,
            Self::P2wsh => 4 * INPUT_BYTES + 1 + PUSHED_SIGNATURE + 1 + PUSHED_KEY + 1,
            Self::P2wsh2Of3 => 4 * INPUT_BYTES + 2 + 2 * PUSHED_SIGNATURE + 1 + 3 * PUSHED_KEY + 3,
            Self::P2tr => 4 * INPUT_BYTES + 1 + 65,
        }
    }

    const fn keys(self) -> usize {
        if matches!(self, Self::P2wsh2Of3) { 3 } else { 1 }
    }
}

/// The keys of one script, shared by all its coins.
pub(crate) struct Wallet {
    pub(super) kind: Kind,
    pub(super) script_pubkey: Vec<u8>,
    keys: Vec<SecretKey>,
    /// Script code of signatures (BIP143), if it differs from the spent script.
    script_code: Vec<u8>,
    /// First public key, compressed.
    public: [u8; 33],
}

impl Wallet {
    pub(crate) fn new(kind: Kind, random: &mut SplitMix64) -> Self {
        let keys: Vec<SecretKey> = (0..kind.keys()).map(|_| secret_key(random)).collect();
        let publics: Vec<[u8; 33]> =
            keys.iter().map(|key| PublicKey::from_secret_key(key).serialize()).collect();
        let hash = hash160(&publics[0]);
        let to_hash =
            [&[OP_DUP, OP_HASH160, 20], &hash[..], &[OP_EQUALVERIFY, OP_CHECKSIG]].concat();
        let (script_pubkey, script_code) = match kind {
            Kind::P2pkh => (to_hash.clone(), to_hash),
            Kind::P2wpkh => ([&[0, 20], &hash[..]].concat(), to_hash),
            Kind::P2wsh => to_script([&[33], &publics[0][..], &[OP_CHECKSIG]].concat()),
            Kind::P2wsh2Of3 => {
                let pushed = publics.iter().flat_map(|key| [&[33], &key[..]].concat());
                let pushed: Vec<u8> = pushed.collect();
                to_script([&[OP_2], &pushed[..], &[OP_3, OP_CHECKMULTISIG]].concat())
            }
            Kind::P2tr => ([&[OP_1, 32], &publics[0][1..]].concat(), Vec::new()),
        };
        Self { kind, script_pubkey, keys, script_code, public: publics[0] }
    }

    /// Script and witness of input `at`, which spends `from[at]`; the one that the kind does not use is empty.
    pub(super) fn unlock(&self, tx: Tx<'_>, from: &[Coin], at: usize) -> (Vec<u8>, Vec<Vec<u8>>) {
        let ecdsa = |key: &SecretKey, message: [u8; 32]| {
            let mut signature =
                ecdsa::sign(Message::from_digest(message), key).serialize_der().to_vec();
            signature.push(SIGHASH_ALL);
            signature
        };
        let segwit = |keys: &[SecretKey]| {
            let message = self.witness_sighash(tx, from, at);
            keys.iter().map(|key| ecdsa(key, message)).collect::<Vec<_>>()
        };
        let with = |mut items: Vec<Vec<u8>>, last: &[u8]| {
            items.push(last.to_vec());
            (Vec::new(), items)
        };
        match self.kind {
            Kind::P2pkh => {
                let mut script_sig = Vec::new();
                encode::var_bytes(
                    &mut script_sig,
                    &ecdsa(&self.keys[0], self.legacy_sighash(tx, at)),
                );
                encode::var_bytes(&mut script_sig, &self.public);
                (script_sig, Vec::new())
            }
            Kind::P2wpkh => with(segwit(&self.keys), &self.public),
            Kind::P2wsh => with(segwit(&self.keys), &self.script_code),
            Kind::P2wsh2Of3 => {
                // OP_CHECKMULTISIG pops an unused empty element (BIP147).
                let items = [vec![Vec::new()], segwit(&self.keys[..2])].concat();
                with(items, &self.script_code)
            }
            Kind::P2tr => {
                let keypair = Keypair::from_secret_key(&self.keys[0]);
                let message = self.taproot_sighash(tx, from, at);
                let signature = schnorr::sign_no_aux_rand(&message, &keypair).to_byte_array();
                (Vec::new(), vec![signature.to_vec()])
            }
        }
    }

    /// The original signature hash: the transaction with the spent script in place of the signature.
    fn legacy_sighash(&self, tx: Tx<'_>, at: usize) -> [u8; 32] {
        let mut text = TxBuilder::from(tx).unlock(at, &self.script_code, &[]).bytes();
        text.extend_from_slice(&u32::from(SIGHASH_ALL).to_le_bytes());
        sha256d(&text)
    }

    /// BIP143.
    fn witness_sighash(&self, tx: Tx<'_>, from: &[Coin], at: usize) -> [u8; 32] {
        let mut text = VERSION.to_le_bytes().to_vec();
        text.extend_from_slice(&sha256d(&prevouts(tx)));
        text.extend_from_slice(&sha256d(&sequences(tx)));
        text.extend_from_slice(&from[at].outpoint.to_bytes());
        encode::var_bytes(&mut text, &self.script_code);
        text.extend_from_slice(&from[at].value.to_le_bytes());
        text.extend_from_slice(&SEQUENCE.to_le_bytes());
        text.extend_from_slice(&sha256d(tx.outputs_raw()));
        text.extend_from_slice(&tx.lock_time().to_le_bytes());
        text.extend_from_slice(&u32::from(SIGHASH_ALL).to_le_bytes());
        sha256d(&text)
    }

    /// BIP341, key path, `SIGHASH_DEFAULT`, no annex.
    fn taproot_sighash(&self, tx: Tx<'_>, from: &[Coin], at: usize) -> [u8; 32] {
        let amounts: Vec<u8> = from.iter().flat_map(|coin| coin.value.to_le_bytes()).collect();
        let mut script = Vec::new();
        encode::var_bytes(&mut script, &self.script_pubkey);
        // Epoch and hash type.
        let mut text = vec![0, 0];
        text.extend_from_slice(&VERSION.to_le_bytes());
        text.extend_from_slice(&tx.lock_time().to_le_bytes());
        text.extend_from_slice(&sha256(&prevouts(tx)));
        text.extend_from_slice(&sha256(&amounts));
        text.extend_from_slice(&sha256(&script.repeat(from.len())));
        text.extend_from_slice(&sha256(&sequences(tx)));
        text.extend_from_slice(&sha256(tx.outputs_raw()));
        // Key path, no annex.
        text.push(0);
        text.extend_from_slice(&(at as u32).to_le_bytes());
        tagged_hash("TapSighash", &[&text])
    }
}

fn prevouts(tx: Tx<'_>) -> Vec<u8> {
    tx.inputs().flat_map(|input| input.prevout.to_bytes()).collect()
}

fn sequences(tx: Tx<'_>) -> Vec<u8> {
    tx.inputs().flat_map(|input| input.sequence.to_le_bytes()).collect()
}

/// Script and witness program of a witness script.
fn to_script(script: Vec<u8>) -> (Vec<u8>, Vec<u8>) {
    ([&[0, 32], &sha256(&script)[..]].concat(), script)
}

fn secret_key(random: &mut SplitMix64) -> SecretKey {
    loop {
        if let Ok(secret) = SecretKey::from_secret_bytes(random.bytes::<32>()) {
            return secret;
        }
    }
}

const OP_1: u8 = 0x51;
const OP_2: u8 = 0x52;
const OP_3: u8 = 0x53;
const OP_DUP: u8 = 0x76;
const OP_EQUALVERIFY: u8 = 0x88;
const OP_HASH160: u8 = 0xa9;
const OP_CHECKSIG: u8 = 0xac;
const OP_CHECKMULTISIG: u8 = 0xae;
const SIGHASH_ALL: u8 = 1;
/// An input without its script: outpoint, script length, sequence.
const INPUT_BYTES: usize = 41;
/// Longest signature with hash type and push opcode.
const PUSHED_SIGNATURE: usize = 73;
const PUSHED_KEY: usize = 34;
