//! Signs transactions with the caller's keys (Core `script/sign.cpp`).

use std::collections::HashMap;

use assay_consensus::script::opcode::{Instructions, op};
use assay_consensus::script::{
    Flags, OutputKind, SIGHASH_ALL, SIGHASH_ANYONECANPAY, SIGHASH_FORKID, SIGHASH_NONE,
    SIGHASH_SINGLE, SignatureChecker as _, TxContext,
};
use assay_engine::ImmediateChecker;
use assay_hash::{hash160, ripemd160};
use secp256k1::{Keypair, Message, PublicKey, ecdsa, schnorr};

use super::descriptor::Secret;
use super::lock::{pay_to_key_hash_of, push};

#[derive(Default)]
pub(super) struct Keyring {
    /// By public key hash, in the key format of the private key.
    keys: HashMap<[u8; 20], Secret>,
    /// By hash.
    scripts: HashMap<[u8; 20], Vec<u8>>,
}

/// Core's sighash types, or the default.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct HashType(u8);

impl HashType {
    /// Taproot's default; `ALL` elsewhere.
    pub(super) const DEFAULT: Self = Self(0);

    pub(super) fn parse(text: &str) -> Option<Self> {
        let (name, any) = match text.strip_suffix("|ANYONECANPAY") {
            Some(name) => (name, SIGHASH_ANYONECANPAY),
            None => (text, 0),
        };
        let base = match name {
            "DEFAULT" if any == 0 => 0,
            "ALL" => SIGHASH_ALL,
            "NONE" => SIGHASH_NONE,
            "SINGLE" => SIGHASH_SINGLE,
            _ => return None,
        };
        Some(Self((base | any) as u8))
    }

    /// True if it covers only the output of the same index.
    pub(super) fn is_single(self) -> bool {
        u32::from(self.0) & !SIGHASH_ANYONECANPAY == SIGHASH_SINGLE
    }

    pub(super) const fn number(self) -> u8 {
        self.0
    }

    fn ecdsa(self, is_cash: bool) -> u8 {
        let base = if self.0 == 0 { SIGHASH_ALL } else { u32::from(self.0) };
        (if is_cash { base | SIGHASH_FORKID } else { base }) as u8
    }
}

/// Script sig and witness of an input.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Unlocking {
    pub(super) script_sig: Vec<u8>,
    pub(super) witness: Vec<Vec<u8>>,
}

impl Keyring {
    pub(super) fn add_key(&mut self, secret: Secret) {
        let key = PublicKey::from_secret_key(&secret.key);
        let bytes: &[u8] =
            if secret.is_compressed { &key.serialize() } else { &key.serialize_uncompressed() };
        self.keys.insert(hash160(bytes), secret);
    }

    pub(super) fn add_script(&mut self, script: Vec<u8>) {
        self.scripts.insert(hash160(&script), script);
    }

    /// Unlocks an input as far as keys and scripts allow; `before` is its present unlocking data.
    pub(super) fn unlock(
        &self,
        context: &TxContext<'_>,
        input: usize,
        hash_type: HashType,
        is_cash: bool,
        before: &Unlocking,
    ) -> Unlocking {
        let signer = Signer { keyring: self, context, input, hash_type, is_cash, before };
        signer.unlock(context.spent(input).script_pubkey)
    }
}

/// Sighash algorithm.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    Legacy,
    WitnessV0,
}

struct Signer<'a, 'c> {
    keyring: &'a Keyring,
    context: &'a TxContext<'c>,
    input: usize,
    hash_type: HashType,
    is_cash: bool,
    before: &'a Unlocking,
}

impl Signer<'_, '_> {
    fn unlock(&self, script_pubkey: &[u8]) -> Unlocking {
        let kind = OutputKind::of(script_pubkey, self.is_cash);
        if let OutputKind::ScriptHash(hash) = kind {
            let found = <[u8; 20]>::try_from(hash).ok();
            let Some(redeem) = found.and_then(|hash| self.keyring.scripts.get(&hash)) else {
                return Unlocking::default();
            };
            let inner = OutputKind::of(redeem, self.is_cash);
            let (mut items, witness) = match self.witness(&inner) {
                Some(witness) => (Vec::new(), witness),
                None => (self.step(redeem, Version::Legacy), Vec::new()),
            };
            items.push(redeem.clone());
            return Unlocking { script_sig: push_all(&items), witness };
        }
        if let Some(witness) = self.witness(&kind) {
            return Unlocking { script_sig: Vec::new(), witness };
        }
        let script_sig = push_all(&self.step(script_pubkey, Version::Legacy));
        Unlocking { script_sig, witness: Vec::new() }
    }

    /// Witness of a witness program; `None` for other outputs.
    fn witness(&self, kind: &OutputKind<'_>) -> Option<Vec<Vec<u8>>> {
        match kind {
            OutputKind::WitnessKeyHash(hash) => {
                Some(self.step(&pay_to_key_hash_of(hash), Version::WitnessV0))
            }
            OutputKind::WitnessScriptHash(hash) => {
                let Some(script) = self.keyring.scripts.get(&ripemd160(hash)) else {
                    return Some(Vec::new());
                };
                let mut items = self.step(script, Version::WitnessV0);
                items.push(script.clone());
                Some(items)
            }
            OutputKind::Taproot(key) => {
                Some(self.taproot(key).map_or_else(Vec::new, |signature| vec![signature]))
            }
            _ => None,
        }
    }

    /// Stack items of a script, as far as keys are available (Core's `SignStep`).
    fn step(&self, script: &[u8], version: Version) -> Vec<Vec<u8>> {
        match OutputKind::of(script, self.is_cash) {
            OutputKind::PubKey(key) => self.signature(key, script, version).into_iter().collect(),
            OutputKind::PubKeyHash(hash) => {
                let hash = hash.try_into().unwrap_or_default();
                let Some(key) = self.public_key(&hash) else { return Vec::new() };
                let signature = self.signature(&key, script, version);
                signature.map_or_else(Vec::new, |signature| vec![signature, key])
            }
            OutputKind::Multisig { required, keys } => {
                let required = usize::from(required);
                // Dummy element of CHECKMULTISIG.
                let mut items = vec![Vec::new()];
                let signatures = keys.iter().filter_map(|key| self.signature(key, script, version));
                items.extend(signatures.take(required));
                // Half of the missing ones, as in Core: its loop counts each addition twice.
                let missing = required + 1 - items.len();
                items.resize(items.len() + missing.div_ceil(2), Vec::new());
                items
            }
            _ => Vec::new(),
        }
    }

    /// Public key by hash, from our keys or the present unlocking data.
    fn public_key(&self, hash: &[u8; 20]) -> Option<Vec<u8>> {
        let Some(secret) = self.keyring.keys.get(hash) else {
            return self.known_items().find(|item| hash160(item) == *hash).map(<[u8]>::to_vec);
        };
        let key = PublicKey::from_secret_key(&secret.key);
        Some(if secret.is_compressed {
            key.serialize().to_vec()
        } else {
            key.serialize_uncompressed().to_vec()
        })
    }

    /// Existing or new signature of a key.
    fn signature(&self, key: &[u8], script: &[u8], version: Version) -> Option<Vec<u8>> {
        if let Some(known) = self.known_signature(key, script, version) {
            return Some(known);
        }
        let secret = self.keyring.keys.get(&hash160(key))?;
        if version == Version::WitnessV0 && !secret.is_compressed {
            return None;
        }
        let hash_type = self.hash_type.ecdsa(self.is_cash);
        let message = Message::from_digest(self.message(script, hash_type, version));
        let mut signature = ecdsa::sign_low_r(message, &secret.key).serialize_der().to_vec();
        signature.push(hash_type);
        Some(signature)
    }

    /// Signature of this key in the present unlocking data.
    fn known_signature(&self, key: &[u8], script: &[u8], version: Version) -> Option<Vec<u8>> {
        let is_valid = |item: &&[u8]| {
            let Some((hash_type, der)) = item.split_last() else { return false };
            // Other data may look similar; a DER signature has at least eight bytes.
            (8..=72).contains(&der.len())
                && der[0] == 0x30
                && ImmediateChecker.ecdsa(key, der, &self.message(script, *hash_type, version))
        };
        self.known_items().filter(is_valid).map(<[u8]>::to_vec).next()
    }

    /// Items of the present unlocking data: script pushes and witness.
    fn known_items(&self) -> impl Iterator<Item = &[u8]> {
        let pushes = Instructions::new(&self.before.script_sig).map_while(|one| one);
        let pushes = pushes.map(|one| one.data);
        pushes.chain(self.before.witness.iter().map(Vec::as_slice))
    }

    fn message(&self, script: &[u8], hash_type: u8, version: Version) -> [u8; 32] {
        let is_forked = self.is_cash && u32::from(hash_type) & SIGHASH_FORKID != 0;
        let hash_type = u32::from(hash_type);
        if version == Version::WitnessV0 || is_forked {
            let value = self.context.spent(self.input).value;
            self.context.sighash_segwit_v0(self.input, script, value, hash_type)
        } else {
            self.context.sighash_legacy(self.input, script, hash_type)
        }
    }

    /// Key path signature, if the output key itself is known.
    fn taproot(&self, output: &[u8]) -> Option<Vec<u8>> {
        let keypair = self.keyring.keys.values().find_map(|secret| {
            let keypair = Keypair::from_secret_key(&secret.key);
            (keypair.x_only_public_key().0.to_byte_array() == output).then_some(keypair)
        })?;
        let hash_type = self.hash_type.0;
        let message = self.context.sighash_taproot(self.input, hash_type, None, None)?;
        let signature = schnorr::sign_with_aux_rand(&message, &keypair, &[0; 32]);
        let mut bytes = signature.to_byte_array().to_vec();
        if hash_type != 0 {
            bytes.push(hash_type);
        }
        Some(bytes)
    }
}

/// Minimal pushes of items (Core's `PushAll`).
pub(super) fn push_all(items: &[Vec<u8>]) -> Vec<u8> {
    let mut script = Vec::new();
    for item in items {
        match item[..] {
            [number @ 1..=16] => script.push(op::PUSH1 + number - 1),
            [0x81] => script.push(op::NEGATE1),
            _ => push(item, &mut script),
        }
    }
    script
}

/// Standardness flags under which a result counts as complete.
pub(super) const fn standard(is_cash: bool) -> Flags {
    if is_cash { Flags::BCH_STANDARD } else { Flags::BITCOIN_STANDARD }
}
