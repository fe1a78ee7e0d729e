//! Output descriptors (BIP380 and those after it), as far as scripts are concerned: which scripts a descriptor stands for.
//!
//! Keys may be plain, private or extended. Deliberately absent: miniscript, and several scripts below a taproot key.

mod keys;
mod parse;

pub(super) use keys::{Key, KeyContext, Secret, parse_secret};

use assay_consensus::params::ChainParams;
use assay_consensus::script::opcode::op;
use assay_consensus::script::tap_tweak_hash;
use assay_hash::{hash160, sha256};
use secp256k1::{Scalar, XOnlyPublicKey};

use super::script;

/// Which scripts are meant.
#[derive(Debug, Clone)]
pub(super) enum Descriptor {
    Pk(Key),
    Pkh(Key),
    Wpkh(Key),
    Combo(Key),
    Multi { is_sorted: bool, threshold: u8, keys: Vec<Key> },
    Sh(Box<Self>),
    Wsh(Box<Self>),
    Tr(Key),
    RawTr(Key),
    Addr(Vec<u8>),
    Raw(Vec<u8>),
}

/// One of its scripts, and the descriptor that says how to spend it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Expanded {
    pub(super) script: Vec<u8>,
    /// With checksum.
    pub(super) descriptor: String,
}

/// A key that can only be derived with a private one that is not there.
#[derive(Debug)]
pub(super) struct NeedsPrivateKey;

impl Descriptor {
    /// Reads a descriptor; several where a path names alternatives. The error is Bitcoin Core's.
    pub(super) fn parse(params: &ChainParams, text: &str) -> Result<Vec<Self>, String> {
        parse::parse(params, text)
    }

    /// Whether it stands for a script at each of many positions.
    pub(super) fn is_range(&self) -> bool {
        match self {
            Self::Pk(key)
            | Self::Pkh(key)
            | Self::Wpkh(key)
            | Self::Combo(key)
            | Self::Tr(key)
            | Self::RawTr(key) => key.is_range(),
            Self::Multi { keys, .. } => keys.iter().any(Key::is_range),
            Self::Sh(inner) | Self::Wsh(inner) => inner.is_range(),
            Self::Addr(_) | Self::Raw(_) => false,
        }
    }

    /// Its scripts at a position: one, or with `combo` two or four.
    pub(super) fn expand(
        &self,
        params: &ChainParams,
        position: u32,
    ) -> Result<Vec<Expanded>, NeedsPrivateKey> {
        let with_checksum = |script: Vec<u8>, text: String| {
            let checksum = script::descriptor_checksum(&text).unwrap_or_default();
            Expanded { script, descriptor: format!("{text}#{checksum}") }
        };
        let Self::Combo(key) = self else {
            return Ok(match self {
                Self::Addr(script) | Self::Raw(script) => {
                    let descriptor = script::infer_descriptor(params, script);
                    vec![Expanded { script: script.clone(), descriptor }]
                }
                _ => {
                    let (script, text) = self.single(position)?;
                    vec![with_checksum(script, text)]
                }
            });
        };
        let all = [Self::Pk(key.clone()), Self::Pkh(key.clone())];
        let mut out: Vec<(Vec<u8>, String)> = Vec::new();
        for one in &all {
            out.push(one.single(position)?);
        }
        if key.derive(position)?.is_compressed {
            let wpkh = Self::Wpkh(key.clone());
            out.push(wpkh.single(position)?);
            out.push(Self::Sh(Box::new(wpkh)).single(position)?);
        }
        Ok(out.into_iter().map(|(script, text)| with_checksum(script, text)).collect())
    }

    /// The script and what describes it, of a descriptor that is no `combo`.
    fn single(&self, position: u32) -> Result<(Vec<u8>, String), NeedsPrivateKey> {
        Ok(match self {
            Self::Pk(key) | Self::Combo(key) => {
                let key = key.derive(position)?;
                (pay_to_key(&key.bytes), format!("pk({})", key.text))
            }
            Self::Pkh(key) => {
                let key = key.derive(position)?;
                (pay_to_key_hash(&key.bytes), format!("pkh({})", key.text))
            }
            Self::Wpkh(key) => {
                let key = key.derive(position)?;
                (witness(0, &hash160(&key.bytes)), format!("wpkh({})", key.text))
            }
            Self::Multi { is_sorted, threshold, keys } => {
                let mut derived = Vec::with_capacity(keys.len());
                for key in keys {
                    derived.push(key.derive(position)?);
                }
                if *is_sorted {
                    derived.sort_by(|a, b| a.bytes.cmp(&b.bytes));
                }
                let bytes: Vec<&[u8]> = derived.iter().map(|key| &key.bytes[..]).collect();
                let texts: Vec<&str> = derived.iter().map(|key| key.text.as_str()).collect();
                (multisig(*threshold, &bytes), format!("multi({threshold},{})", texts.join(",")))
            }
            Self::Sh(inner) => {
                let (script, text) = inner.single(position)?;
                let out = [&[op::HASH160, 20][..], &hash160(&script), &[op::EQUAL]].concat();
                (out, format!("sh({text})"))
            }
            Self::Wsh(inner) => {
                let (script, text) = inner.single(position)?;
                (witness(0, &sha256(&script)), format!("wsh({text})"))
            }
            Self::Tr(key) => {
                let key = key.derive(position)?;
                let output = taproot_output_key(&key.x_only());
                (witness(1, &output), format!("tr({})", key.x_only_text()))
            }
            Self::RawTr(key) => {
                let key = key.derive(position)?;
                (witness(1, &key.x_only()), format!("rawtr({})", key.x_only_text()))
            }
            Self::Addr(script) | Self::Raw(script) => (script.clone(), String::new()),
        })
    }
}

/// Pays to a key.
fn pay_to_key(key: &[u8]) -> Vec<u8> {
    [&[key.len() as u8][..], key, &[op::CHECKSIG]].concat()
}

/// Pays to the hash of a key.
pub(super) fn pay_to_key_hash(key: &[u8]) -> Vec<u8> {
    pay_to_key_hash_of(&hash160(key))
}

/// The same, of a hash of 20 bytes.
pub(super) fn pay_to_key_hash_of(hash: &[u8]) -> Vec<u8> {
    [&[op::DUP, op::HASH160, 20][..], hash, &[op::EQUALVERIFY, op::CHECKSIG]].concat()
}

/// A witness program of version 0 or 1.
pub(super) fn witness(version: u8, program: &[u8]) -> Vec<u8> {
    let opcode = if version == 0 { 0 } else { op::PUSH1 + version - 1 };
    [&[opcode, program.len() as u8][..], program].concat()
}

/// Bare multi-signature; at most 20 keys.
pub(super) fn multisig(threshold: u8, keys: &[&[u8]]) -> Vec<u8> {
    let mut script = Vec::new();
    push_number(threshold, &mut script);
    for key in keys {
        script.push(key.len() as u8);
        script.extend_from_slice(key);
    }
    push_number(keys.len() as u8, &mut script);
    script.push(op::CHECKMULTISIG);
    script
}

/// A number from 1 to 127 as scripts push it.
fn push_number(number: u8, script: &mut Vec<u8>) {
    match number {
        1..=16 => script.push(op::PUSH1 + number - 1),
        _ => script.extend([1, number]),
    }
}

/// The output key of a taproot key without scripts (BIP341); the key itself where it is none.
pub(super) fn taproot_output_key(internal: &[u8; 32]) -> [u8; 32] {
    let tweak = Scalar::from_be_bytes(tap_tweak_hash(internal, None));
    let key = XOnlyPublicKey::from_byte_array(*internal);
    match (key, tweak) {
        (Ok(key), Ok(tweak)) => {
            key.add_tweak(&tweak).map_or(*internal, |(key, _)| key.to_byte_array())
        }
        _ => *internal,
    }
}
