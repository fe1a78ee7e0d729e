//! Signing data of the records of a PSBT and of descriptors.

use assay_hash::hash160;

use super::fields::{Fields, Scope, input, output, split_tap_origin, tap_origin};
use super::format::Input;
use crate::rpc::descriptor::{Descriptor, NeedsPrivateKey, Secret};
use crate::rpc::signing_data::{Data, Provider, stack_bytes};

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
        material.scripts.into_iter().for_each(|script| self.add_script(script));
        self.taproot.extend(material.taproot);
        Ok(())
    }
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
}

fn key_of(kind: u8, rest: &[u8]) -> Vec<u8> {
    [&[kind], rest].concat()
}
