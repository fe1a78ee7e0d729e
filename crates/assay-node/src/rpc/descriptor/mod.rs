//! Output descriptors (BIP380 and related), limited to derivation of their scripts.
//!
//! Keys may be public, private or extended. Deliberately absent: miniscript, and several scripts below a taproot
//! key.

mod keys;
mod parse;

pub(super) use keys::{Derived, Key, KeyContext, Secret, parse_secret};

use assay_consensus::params::ChainParams;
use assay_consensus::script::tap_tweak_hash;
use assay_hash::{hash160, sha256};
use secp256k1::{Scalar, XOnlyPublicKey};

use super::lock::{multisig, pay_to_key, pay_to_key_hash, pay_to_script_hash_of, witness};
use super::script;

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

/// One of its scripts, with a descriptor for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Expanded {
    pub(super) script: Vec<u8>,
    /// With checksum.
    pub(super) descriptor: String,
}

/// Keys and scripts of a descriptor at one position.
#[derive(Debug, Default)]
pub(super) struct Material {
    pub(super) keys: Vec<Derived>,
    /// Scripts that outputs commit to by hash.
    pub(super) scripts: Vec<Vec<u8>>,
    pub(super) taproot: Option<([u8; 32], [u8; 32])>,
}

/// A hardened step requires a private key that is missing.
#[derive(Debug)]
pub(super) struct NeedsPrivateKey;

impl Descriptor {
    /// Parses a descriptor; several for a multipath. Errors use Bitcoin Core's wording.
    pub(super) fn parse(params: &ChainParams, text: &str) -> Result<Vec<Self>, String> {
        parse::parse(params, text)
    }

    pub(super) fn is_range(&self) -> bool {
        self.keys().iter().any(|key| key.is_range())
    }

    pub(super) fn has_private_keys(&self) -> bool {
        self.keys().iter().any(|key| key.is_private())
    }

    fn keys(&self) -> Vec<&Key> {
        match self {
            Self::Pk(key)
            | Self::Pkh(key)
            | Self::Wpkh(key)
            | Self::Combo(key)
            | Self::Tr(key)
            | Self::RawTr(key) => vec![key],
            Self::Multi { keys, .. } => keys.iter().collect(),
            Self::Sh(inner) | Self::Wsh(inner) => inner.keys(),
            Self::Addr(_) | Self::Raw(_) => Vec::new(),
        }
    }

    /// Scripts at a position: one, or two or four for `combo`.
    pub(super) fn expand(
        &self,
        params: &ChainParams,
        position: u32,
    ) -> Result<Vec<Expanded>, NeedsPrivateKey> {
        let expanded = |(script, text): (Vec<u8>, String)| Expanded {
            script,
            descriptor: script::with_checksum(&text),
        };
        let Self::Combo(key) = self else {
            return Ok(match self {
                Self::Addr(script) | Self::Raw(script) => {
                    let descriptor = script::infer_descriptor(params, script);
                    vec![Expanded { script: script.clone(), descriptor }]
                }
                _ => vec![expanded(self.single(position)?)],
            });
        };
        let (pk, pkh) = (Self::Pk(key.clone()), Self::Pkh(key.clone()));
        let mut out = vec![pk.single(position)?, pkh.single(position)?];
        if key.derive(position)?.is_compressed {
            let wpkh = Self::Wpkh(key.clone());
            out.push(wpkh.single(position)?);
            out.push(Self::Sh(Box::new(wpkh)).single(position)?);
        }
        Ok(out.into_iter().map(expanded).collect())
    }

    pub(super) fn material(&self, position: u32) -> Result<Material, NeedsPrivateKey> {
        let mut out = Material::default();
        for key in self.keys() {
            out.keys.push(key.derive(position)?);
        }
        let mut inner = match self {
            Self::Sh(inner) | Self::Wsh(inner) => Some(&**inner),
            _ => None,
        };
        while let Some(descriptor) = inner {
            out.scripts.push(descriptor.single(position)?.0);
            inner = match descriptor {
                Self::Wsh(inner) => Some(inner),
                _ => None,
            };
        }
        match (self, &out.keys[..]) {
            (Self::Combo(_), [key]) if key.is_compressed => {
                out.scripts.push(witness(0, &hash160(&key.bytes)));
            }
            (Self::Tr(_), [key]) => {
                let internal = key.x_only();
                out.taproot = Some((taproot_output_key(&internal), internal));
            }
            _ => {}
        }
        Ok(out)
    }

    /// Script and descriptor at a position; not for `combo`.
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
                (pay_to_script_hash_of(&hash160(&script)), format!("sh({text})"))
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

/// Taproot output key without scripts (BIP341); the key itself if invalid.
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
