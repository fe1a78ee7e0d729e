//! Keys of descriptors: public keys, private keys (WIF), and extended keys with a path (BIP32).

use std::collections::HashSet;
use std::fmt::Write as _;

use assay_consensus::params::ChainParams;
use assay_hash::hash160;
use hmac::{Hmac, KeyInit as _, Mac as _};
use secp256k1::{PublicKey, Scalar, SecretKey};
use sha2::Sha512;

use super::NeedsPrivateKey;
use crate::jsonrpc::unhex;
use crate::rpc::decode::base58_check;

/// Script context of a key, which determines its format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum KeyContext {
    /// Uncompressed keys are allowed.
    Legacy,
    /// Compressed keys only.
    Witness,
    /// X-only keys are allowed.
    Taproot,
}

#[derive(Debug, Clone)]
pub(in super::super) struct Key {
    origin: Option<Origin>,
    source: Source,
}

#[derive(Debug, Clone)]
struct Origin {
    fingerprint: [u8; 4],
    path: Vec<u32>,
}

#[derive(Debug, Clone)]
enum Source {
    Plain {
        key: PublicKey,
        is_compressed: bool,
        secret: Option<SecretKey>,
    },
    /// With the key at the end of the path, unless hardened steps lack the private key; common to the range.
    Extended {
        root: Extended,
        path: Vec<u32>,
        parent: Option<Box<Extended>>,
        wildcard: Wildcard,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wildcard {
    None,
    Plain,
    Hardened,
}

/// Extended key, private if known.
#[derive(Debug, Clone)]
struct Extended {
    key: PublicKey,
    secret: Option<SecretKey>,
    chain_code: [u8; 32],
}

/// Private key with the format of its public key.
#[derive(Clone)]
pub(in super::super) struct Secret {
    pub(in super::super) key: SecretKey,
    pub(in super::super) is_compressed: bool,
}

#[derive(Debug, Clone)]
pub(in super::super) struct Derived {
    /// Script encoding.
    pub(in super::super) bytes: Vec<u8>,
    /// Descriptor notation, with origin.
    pub(in super::super) text: String,
    pub(in super::super) is_compressed: bool,
    /// Fingerprint of the master key and the path from it: four little-endian bytes per step.
    pub(in super::super) origin: Vec<u8>,
    pub(in super::super) secret: Option<SecretKey>,
}

impl Derived {
    pub(in super::super) fn x_only(&self) -> [u8; 32] {
        self.bytes.get(1..33).and_then(|x| x.try_into().ok()).unwrap_or_default()
    }

    /// Descriptor notation of the x-only form.
    pub(in super::super) fn x_only_text(&self) -> String {
        let digits = 2 * self.bytes.len();
        let (origin, key) = self.text.split_at(self.text.len().saturating_sub(digits));
        format!("{origin}{}", key.get(2..66).unwrap_or_default())
    }
}

impl Key {
    /// Parses a key expression; several keys for a multipath.
    pub(super) fn parse(
        params: &ChainParams,
        text: &str,
        context: KeyContext,
    ) -> Result<Vec<Self>, String> {
        let parts: Vec<&str> = text.split(']').collect();
        let (origin, rest) = match parts[..] {
            [rest] => (None, rest),
            [origin, rest] => (Some(parse_origin(origin)?), rest),
            _ => return Err("Multiple ']' characters found for a single pubkey".to_owned()),
        };
        let sources = parse_source(params, rest, context)?;
        Ok(sources.into_iter().map(|source| Self { origin: origin.clone(), source }).collect())
    }

    pub(in super::super) fn is_range(&self) -> bool {
        matches!(&self.source, Source::Extended { wildcard, .. } if *wildcard != Wildcard::None)
    }

    pub(super) fn is_private(&self) -> bool {
        match &self.source {
            Source::Plain { secret, .. } => secret.is_some(),
            Source::Extended { root, .. } => root.secret.is_some(),
        }
    }

    /// True for a 65-byte public key.
    pub(super) fn is_uncompressed(&self) -> bool {
        matches!(self.source, Source::Plain { is_compressed: false, .. })
    }

    pub(in super::super) fn derive(&self, position: u32) -> Result<Derived, NeedsPrivateKey> {
        let (key, is_compressed, root, path, secret) = match &self.source {
            Source::Plain { key, is_compressed, secret } => {
                (*key, *is_compressed, *key, Vec::new(), *secret)
            }
            Source::Extended { root, path, parent, wildcard } => {
                let last = match wildcard {
                    Wildcard::None => None,
                    Wildcard::Plain => Some(position),
                    Wildcard::Hardened => Some(position | HARDENED),
                };
                let path: Vec<u32> = path.iter().copied().chain(last).collect();
                let parent = parent.as_ref().ok_or(NeedsPrivateKey)?;
                let child = match last {
                    Some(step) => &parent.child(step).ok_or(NeedsPrivateKey)?,
                    None => &**parent,
                };
                (child.key, true, root.key, path, child.secret)
            }
        };
        let bytes = if is_compressed {
            key.serialize().to_vec()
        } else {
            key.serialize_uncompressed().to_vec()
        };
        let (fingerprint, origin_path) = match &self.origin {
            Some(origin) => (origin.fingerprint, &origin.path[..]),
            None if is_compressed => (fingerprint(&root.serialize()), &[][..]),
            None => (fingerprint(&bytes), &[][..]),
        };
        let mut text = format!("[{}", faster_hex::hex_string(&fingerprint));
        let mut origin = fingerprint.to_vec();
        for step in origin_path.iter().chain(&path) {
            origin.extend(step.to_le_bytes());
            let mark = if step & HARDENED == 0 { "" } else { "h" };
            write!(text, "/{}{mark}", step & !HARDENED).expect("writing to a string does not fail");
        }
        write!(text, "]{}", faster_hex::hex_string(&bytes))
            .expect("writing to a string does not fail");
        Ok(Derived { bytes, text, is_compressed, origin, secret })
    }
}

impl Extended {
    fn parse(params: &ChainParams, text: &str) -> Option<Self> {
        let data = base58_check(text, 78)?;
        let data: &[u8; 78] = data[..].try_into().ok()?;
        let chain_code = data[13..45].try_into().ok()?;
        let key = &data[45..];
        let is_main = params.address.base58_pubkey_hash == 0;
        let (public, private) = if is_main { (XPUB, XPRV) } else { (TPUB, TPRV) };
        let version: [u8; 4] = data[..4].try_into().ok()?;
        if version == public {
            return Some(Self { key: PublicKey::from_slice(key).ok()?, secret: None, chain_code });
        }
        if version != private || key[0] != 0 {
            return None;
        }
        let secret = SecretKey::from_secret_bytes(key[1..].try_into().ok()?).ok()?;
        Some(Self { key: PublicKey::from_secret_key(&secret), secret: Some(secret), chain_code })
    }

    /// Child key (BIP32, `CKDpriv` and `CKDpub`).
    fn child(&self, number: u32) -> Option<Self> {
        let mut mac = Hmac::<Sha512>::new_from_slice(&self.chain_code).ok()?;
        if number & HARDENED == 0 {
            mac.update(&self.key.serialize());
        } else {
            mac.update(&[0]);
            mac.update(&self.secret?.to_secret_bytes());
        }
        mac.update(&number.to_be_bytes());
        let digest = mac.finalize().into_bytes();
        let (tweak, chain_code) = digest.split_at(32);
        let tweak = Scalar::from_be_bytes(tweak.try_into().ok()?).ok()?;
        let chain_code = chain_code.try_into().ok()?;
        if let Some(secret) = self.secret {
            let secret = secret.add_tweak(&tweak).ok()?;
            let key = PublicKey::from_secret_key(&secret);
            return Some(Self { key, secret: Some(secret), chain_code });
        }
        let key = self.key.add_exp_tweak(&tweak).ok()?;
        Some(Self { key, secret: None, chain_code })
    }
}

/// Parses a private key in WIF.
pub(in super::super) fn parse_secret(params: &ChainParams, text: &str) -> Option<Secret> {
    let data = base58_check(text, 34)?;
    let version = if params.address.base58_pubkey_hash == 0 { 128 } else { 239 };
    let (key, is_compressed) = match &data[..] {
        [first, key @ .., 1] if *first == version && key.len() == 32 => (key, true),
        [first, key @ ..] if *first == version && key.len() == 32 => (key, false),
        _ => return None,
    };
    Some(Secret { key: SecretKey::from_secret_bytes(key.try_into().ok()?).ok()?, is_compressed })
}

fn parse_origin(text: &str) -> Result<Origin, String> {
    let Some(text) = text.strip_prefix('[') else {
        let found = text.chars().next().unwrap_or(']');
        return Err(format!(
            "Key origin start '[ character expected but not found, got '{found}' instead"
        ));
    };
    let mut parts = text.split('/');
    let digits = parts.next().unwrap_or_default();
    if digits.len() != 8 {
        return Err(format!(
            "Fingerprint is not 4 bytes ({} characters instead of 8 characters)",
            digits.len()
        ));
    }
    let mut fingerprint = [0; 4];
    if faster_hex::hex_decode(digits.as_bytes(), &mut fingerprint).is_err() {
        return Err(format!("Fingerprint '{digits}' is not hex"));
    }
    let path = parts.map(parse_step).collect::<Result<_, _>>()?;
    Ok(Origin { fingerprint, path })
}

fn parse_source(
    params: &ChainParams,
    text: &str,
    context: KeyContext,
) -> Result<Vec<Source>, String> {
    let mut parts = text.split('/');
    let name = parts.next().unwrap_or_default();
    let steps: Vec<&str> = parts.collect();
    if name.is_empty() {
        return Err("No key provided".to_owned());
    }
    if name.starts_with(char::is_whitespace) || name.ends_with(char::is_whitespace) {
        return Err(format!("Key '{name}' is invalid due to whitespace"));
    }
    let plain = |key: PublicKey, is_compressed: bool, secret: Option<SecretKey>| {
        if is_compressed || context == KeyContext::Legacy {
            Ok(vec![Source::Plain { key, is_compressed, secret }])
        } else {
            Err("Uncompressed keys are not allowed".to_owned())
        }
    };
    if steps.is_empty() {
        if let Some(mut bytes) = unhex(name.as_bytes()) {
            if bytes.len() == 65 && matches!(bytes[0], 6 | 7) {
                return Err("Hybrid public keys are not allowed".to_owned());
            }
            if context == KeyContext::Taproot && bytes.len() == 32 {
                bytes.insert(0, 2);
            }
            return match PublicKey::from_slice(&bytes) {
                Ok(key) => plain(key, bytes.len() == 33, None),
                Err(_) => Err(format!("Pubkey '{name}' is invalid")),
            };
        }
        if let Some(Secret { key, is_compressed }) = parse_secret(params, name) {
            return plain(PublicKey::from_secret_key(&key), is_compressed, Some(key));
        }
    }
    let root = Extended::parse(params, name).ok_or_else(|| format!("key '{name}' is not valid"))?;
    let (wildcard, steps) = match steps.split_last() {
        Some((&"*", steps)) => (Wildcard::Plain, steps),
        Some((&("*'" | "*h"), steps)) => (Wildcard::Hardened, steps),
        _ => (Wildcard::None, &steps[..]),
    };
    let source = |path: Vec<u32>| {
        let parent = path.iter().try_fold(root.clone(), |at, step| at.child(*step));
        Source::Extended { root: root.clone(), path, parent: parent.map(Box::new), wildcard }
    };
    Ok(parse_paths(steps)?.into_iter().map(source).collect())
}

/// Expands a multipath, where one step lists alternatives such as `<0;1>` (BIP389).
fn parse_paths(steps: &[&str]) -> Result<Vec<Vec<u32>>, String> {
    let mut paths = vec![Vec::with_capacity(steps.len())];
    let mut has_alternatives = false;
    for step in steps {
        let Some(list) = step.strip_prefix('<').and_then(|step| step.strip_suffix('>')) else {
            let number = parse_step(step)?;
            for path in &mut paths {
                path.push(number);
            }
            continue;
        };
        if has_alternatives {
            return Err("Multiple multipath key path specifiers found".to_owned());
        }
        has_alternatives = true;
        let numbers: Vec<u32> = list.split(';').map(parse_step).collect::<Result<_, _>>()?;
        if numbers.len() < 2 {
            return Err("Multipath key path specifiers must have at least two items".to_owned());
        }
        let mut seen = HashSet::with_capacity(numbers.len());
        if let Some(again) = numbers.iter().find(|number| !seen.insert(**number)) {
            return Err(format!("Duplicated key path value {again} in multipath specifier"));
        }
        let start = paths.pop().unwrap_or_default();
        paths = numbers.iter().map(|number| [&start[..], &[*number]].concat()).collect();
    }
    Ok(paths)
}

fn parse_step(step: &str) -> Result<u32, String> {
    let digits = step.strip_suffix(['\'', 'h']);
    let text = digits.unwrap_or(step);
    let is_number = !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    let number = text.parse::<u32>().ok().filter(|_| is_number);
    match number {
        None if is_number => Err(format!("Key path value {text} is out of range")),
        None => Err(format!("Key path value '{text}' is not a valid uint32")),
        Some(number) if number & HARDENED != 0 => {
            Err(format!("Key path value {number} is out of range"))
        }
        Some(number) => Ok(if digits.is_some() { number | HARDENED } else { number }),
    }
}

fn fingerprint(key: &[u8]) -> [u8; 4] {
    let hash = hash160(key);
    [hash[0], hash[1], hash[2], hash[3]]
}

/// Hardened bit of a path step.
const HARDENED: u32 = 1 << 31;
const XPUB: [u8; 4] = [0x04, 0x88, 0xb2, 0x1e];
const XPRV: [u8; 4] = [0x04, 0x88, 0xad, 0xe4];
const TPUB: [u8; 4] = [0x04, 0x35, 0x87, 0xcf];
const TPRV: [u8; 4] = [0x04, 0x35, 0x83, 0x94];
