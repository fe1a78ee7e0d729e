//! Known keys and scripts, and the signing data of one input or output (Core's `FlatSigningProvider` and
//! `SignatureData`).

use std::collections::{BTreeMap, BTreeSet, HashMap};

use assay_hash::hash160;
use assay_wire::encode;
use secp256k1::PublicKey;

use super::descriptor::Secret;

/// Known keys and scripts.
#[derive(Default)]
pub(super) struct Provider {
    pub(super) keys: HashMap<KeyId, Secret>,
    /// Public keys with origins.
    pub(super) pubkeys: HashMap<KeyId, (Vec<u8>, Vec<u8>)>,
    pub(super) scripts: HashMap<KeyId, Vec<u8>>,
    /// Internal keys by taproot output key.
    pub(super) taproot: HashMap<[u8; 32], [u8; 32]>,
    /// Omit key origins from the PSBT.
    pub(super) hides_origins: bool,
}

/// HASH160 of a public key.
pub(super) type KeyId = [u8; 20];

impl Provider {
    pub(super) fn add_key(&mut self, secret: Secret) {
        self.keys.insert(hash160(&public_key_of(&secret)), secret);
    }

    pub(super) fn add_script(&mut self, script: Vec<u8>) {
        self.scripts.insert(hash160(&script), script);
    }

    pub(super) fn origin(&self, id: &KeyId) -> Option<&(Vec<u8>, Vec<u8>)> {
        self.pubkeys.get(id).filter(|_| !self.hides_origins)
    }

    pub(super) fn origin_by_x(&self, x: &[u8; 32]) -> Option<&(Vec<u8>, Vec<u8>)> {
        ids_of_x(x).into_iter().find_map(|id| self.origin(&id))
    }

    pub(super) fn secret_by_x(&self, x: &[u8; 32]) -> Option<&Secret> {
        ids_of_x(x).into_iter().find_map(|id| self.keys.get(&id))
    }
}

fn ids_of_x(x: &[u8; 32]) -> [KeyId; 2] {
    [2, 3].map(|first| hash160(&[&[first], &x[..]].concat()))
}

#[derive(Debug, Default)]
pub(super) struct Data {
    pub(super) complete: bool,
    /// True for a witness program, native or in P2SH.
    pub(super) witness: bool,
    pub(super) script_sig: Vec<u8>,
    pub(super) stack: Vec<Vec<u8>>,
    pub(super) redeem_script: Vec<u8>,
    pub(super) witness_script: Vec<u8>,
    /// Public key and signature.
    pub(super) signatures: BTreeMap<KeyId, (Vec<u8>, Vec<u8>)>,
    /// Public key and origin.
    pub(super) origins: BTreeMap<KeyId, (Vec<u8>, Vec<u8>)>,
    pub(super) tap_key_sig: Vec<u8>,
    /// By key and leaf hash.
    pub(super) tap_script_sigs: BTreeMap<([u8; 32], [u8; 32]), Vec<u8>>,
    pub(super) tap_internal: Option<[u8; 32]>,
    pub(super) tap_root: Option<[u8; 32]>,
    /// Script, leaf version and control block.
    pub(super) tap_leaves: Vec<(Vec<u8>, u8, Vec<u8>)>,
    pub(super) tap_origins: BTreeMap<[u8; 32], TapOrigin>,
    /// Pushes and witness items of present unlocking data, which may contain keys and signatures.
    pub(super) items: Vec<Vec<u8>>,
    pub(super) missing: Missing,
}

/// Leaf hashes of a key, and its fingerprint with its path.
type TapOrigin = (BTreeSet<[u8; 32]>, Vec<u8>);

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Missing {
    pub(super) pubkeys: Vec<KeyId>,
    pub(super) signatures: Vec<KeyId>,
    pub(super) redeem_script: Option<[u8; 20]>,
    pub(super) witness_script: Option<[u8; 32]>,
}

impl Data {
    pub(super) fn script(&self, provider: &Provider, hash: &[u8; 20]) -> Option<Vec<u8>> {
        let own = [&self.redeem_script, &self.witness_script];
        let own = own.into_iter().find(|script| hash160(script) == *hash);
        provider.scripts.get(hash).or(own).cloned()
    }

    pub(super) fn public_key(&self, provider: &Provider, id: &KeyId) -> Option<Vec<u8>> {
        let own = self.signatures.get(id).or_else(|| self.origins.get(id));
        let tap = || {
            let x = self.tap_origins.keys().find(|x| hash160(&x[..]) == *id)?;
            Some([&[2], &x[..]].concat())
        };
        let known = own.or_else(|| provider.pubkeys.get(id)).map(|(key, _)| key.clone());
        let item = || self.items.iter().find(|item| hash160(item) == *id).cloned();
        known.or_else(tap).or_else(|| provider.keys.get(id).map(public_key_of)).or_else(item)
    }

    /// Adds the origin of a taproot key, and a leaf that contains it.
    pub(super) fn note_tap_origin(
        &mut self,
        provider: &Provider,
        x: &[u8; 32],
        leaf: Option<[u8; 32]>,
    ) {
        if let Some((_, origin)) = provider.origin_by_x(x) {
            let known = || (BTreeSet::new(), origin.clone());
            self.tap_origins.entry(*x).or_insert_with(known).0.extend(leaf);
        }
    }
}

fn public_key_of(secret: &Secret) -> Vec<u8> {
    let key = PublicKey::from_secret_key(&secret.key);
    if secret.is_compressed {
        key.serialize().to_vec()
    } else {
        key.serialize_uncompressed().into()
    }
}

pub(super) fn stack_bytes(stack: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    encode::compact_size(&mut out, stack.len() as u64);
    for item in stack {
        encode::var_bytes(&mut out, item);
    }
    out
}
