//! Signing data of one input or output: the records of a PSBT, and additions from descriptors (Core's
//! `SignatureData` and `FlatSigningProvider`).

use std::collections::{BTreeMap, BTreeSet, HashMap};

use assay_hash::hash160;
use assay_wire::encode;
use secp256k1::PublicKey;

use super::fields::{Fields, Scope, input, output, split_tap_origin, tap_origin};
use super::format::Input;
use crate::rpc::descriptor::{Descriptor, NeedsPrivateKey, Secret};

/// Keys and scripts from descriptors.
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
    /// Adds keys and scripts of a descriptor at a position, with or without private keys.
    pub(super) fn add(
        &mut self,
        descriptor: &Descriptor,
        position: u32,
        with_secrets: bool,
    ) -> Result<(), NeedsPrivateKey> {
        let material = descriptor.material(position)?;
        for key in material.keys {
            let id = hash160(&key.bytes);
            if let Some(secret) = key.secret.filter(|_| with_secrets) {
                self.keys.insert(id, Secret { key: secret, is_compressed: key.is_compressed });
            }
            self.pubkeys.insert(id, (key.bytes, key.origin));
        }
        for script in material.scripts {
            self.scripts.insert(hash160(&script), script);
        }
        self.taproot.extend(material.taproot);
        Ok(())
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
    pub(super) fn of_input(from: &Input) -> Self {
        let mut out = Self::default();
        if from.is_final() {
            out.script_sig = from.final_script_sig().to_vec();
            out.stack = from.final_witness();
            out.complete = true;
            return out;
        }
        let fields = &from.fields;
        for (key, signature) in fields.of(input::PARTIAL_SIG) {
            out.signatures.insert(hash160(key), (key.to_vec(), signature.to_vec()));
        }
        out.take_common(
            fields,
            [input::REDEEM_SCRIPT, input::WITNESS_SCRIPT, input::BIP32_DERIVATION],
            [input::TAP_INTERNAL_KEY, input::TAP_BIP32_DERIVATION],
        );
        out.tap_key_sig = fields.get(input::TAP_KEY_SIG).unwrap_or_default().to_vec();
        for (key, signature) in fields.of(input::TAP_SCRIPT_SIG) {
            if let Some((x, leaf)) = key.split_first_chunk() {
                let leaf = leaf.try_into().unwrap_or_default();
                out.tap_script_sigs.insert((*x, leaf), signature.to_vec());
            }
        }
        out.tap_root = fields.get(input::TAP_MERKLE_ROOT).and_then(|root| root.try_into().ok());
        for (control, leaf) in fields.of(input::TAP_LEAF_SCRIPT) {
            if let Some((version, script)) = leaf.split_last() {
                out.tap_leaves.push((script.to_vec(), *version, control.to_vec()));
            }
        }
        out
    }

    pub(super) fn of_output(fields: &Fields) -> Self {
        let mut out = Self::default();
        out.take_common(
            fields,
            [output::REDEEM_SCRIPT, output::WITNESS_SCRIPT, output::BIP32_DERIVATION],
            [output::TAP_INTERNAL_KEY, output::TAP_BIP32_DERIVATION],
        );
        out
    }

    fn take_common(&mut self, fields: &Fields, scripts: [u8; 3], taproot: [u8; 2]) {
        let [redeem, witness, derivation] = scripts;
        let [internal, tap_derivation] = taproot;
        self.redeem_script = fields.get(redeem).unwrap_or_default().to_vec();
        self.witness_script = fields.get(witness).unwrap_or_default().to_vec();
        for (key, origin) in fields.of(derivation) {
            self.origins.insert(hash160(key), (key.to_vec(), origin.to_vec()));
        }
        self.tap_internal = fields.get(internal).and_then(|key| key.try_into().ok());
        for (key, value) in fields.of(tap_derivation) {
            let (leaves, origin) = split_tap_origin(value);
            let key = key.try_into().unwrap_or_default();
            self.tap_origins.insert(key, (leaves, origin.to_vec()));
        }
    }

    /// Stores data in an input: the final unlocking data if complete, otherwise all records that it lacks.
    pub(super) fn store_in_input(&self, to: &mut Input) {
        let fields = &mut to.fields;
        if self.complete {
            let displaced = [
                input::PARTIAL_SIG,
                input::BIP32_DERIVATION,
                input::REDEEM_SCRIPT,
                input::WITNESS_SCRIPT,
            ];
            for kind in displaced {
                fields.remove(kind);
            }
            if !self.script_sig.is_empty() {
                fields.set(Scope::Input, input::SCRIPT_SIG, self.script_sig.clone());
            }
            if !self.stack.is_empty() {
                fields.set(Scope::Input, input::SCRIPT_WITNESS, stack_bytes(&self.stack));
            }
            return;
        }
        for (key, signature) in self.signatures.values() {
            fields.add(Scope::Input, key_of(input::PARTIAL_SIG, key), signature.clone());
        }
        self.store_common(
            Scope::Input,
            fields,
            [input::REDEEM_SCRIPT, input::WITNESS_SCRIPT, input::BIP32_DERIVATION],
            [input::TAP_INTERNAL_KEY, input::TAP_BIP32_DERIVATION],
        );
        if !self.tap_key_sig.is_empty() {
            fields.set(Scope::Input, input::TAP_KEY_SIG, self.tap_key_sig.clone());
        }
        for ((x, leaf), signature) in &self.tap_script_sigs {
            let key = key_of(input::TAP_SCRIPT_SIG, &[&x[..], leaf].concat());
            fields.add(Scope::Input, key, signature.clone());
        }
        if let Some(root) = self.tap_root {
            fields.set(Scope::Input, input::TAP_MERKLE_ROOT, root.to_vec());
        }
    }

    pub(super) fn store_in_output(&self, fields: &mut Fields) {
        self.store_common(
            Scope::Output,
            fields,
            [output::REDEEM_SCRIPT, output::WITNESS_SCRIPT, output::BIP32_DERIVATION],
            [output::TAP_INTERNAL_KEY, output::TAP_BIP32_DERIVATION],
        );
    }

    fn store_common(&self, scope: Scope, fields: &mut Fields, scripts: [u8; 3], taproot: [u8; 2]) {
        let [redeem, witness, derivation] = scripts;
        let [internal, tap_derivation] = taproot;
        for (kind, script) in [(redeem, &self.redeem_script), (witness, &self.witness_script)] {
            if !script.is_empty() {
                fields.add(scope, vec![kind], script.clone());
            }
        }
        for (key, origin) in self.origins.values() {
            fields.add(scope, key_of(derivation, key), origin.clone());
        }
        if let Some(key) = self.tap_internal {
            fields.set(scope, internal, key.to_vec());
        }
        for (key, (leaves, origin)) in &self.tap_origins {
            fields.add(scope, key_of(tap_derivation, key), tap_origin(leaves, origin));
        }
    }

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
        known.or_else(tap).or_else(|| provider.keys.get(id).map(public_key_of))
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

fn key_of(kind: u8, rest: &[u8]) -> Vec<u8> {
    [&[kind], rest].concat()
}

pub(super) fn stack_bytes(stack: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    encode::compact_size(&mut out, stack.len() as u64);
    for item in stack {
        encode::var_bytes(&mut out, item);
    }
    out
}
