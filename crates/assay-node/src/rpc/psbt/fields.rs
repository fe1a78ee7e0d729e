//! PSBT records: a key, which begins with a type, and a value (BIP174, BIP370, BIP371, BIP373). Checks and error
//! texts are Bitcoin Core's (`psbt.h`).

use std::collections::{BTreeMap, BTreeSet};

use assay_hash::hash160;
use assay_wire::{Encoding, ParseErrorKind, Transaction, encode};
use secp256k1::PublicKey;

use super::super::script::is_ecdsa_signature;

pub(super) mod global {
    pub(in super::super) const UNSIGNED_TX: u8 = 0x00;
    pub(in super::super) const XPUB: u8 = 0x01;
    pub(in super::super) const TX_VERSION: u8 = 0x02;
    pub(in super::super) const FALLBACK_LOCKTIME: u8 = 0x03;
    pub(in super::super) const INPUT_COUNT: u8 = 0x04;
    pub(in super::super) const OUTPUT_COUNT: u8 = 0x05;
    pub(in super::super) const TX_MODIFIABLE: u8 = 0x06;
    pub(in super::super) const VERSION: u8 = 0xfb;
}

pub(super) mod input {
    pub(in super::super) const NON_WITNESS_UTXO: u8 = 0x00;
    pub(in super::super) const WITNESS_UTXO: u8 = 0x01;
    pub(in super::super) const PARTIAL_SIG: u8 = 0x02;
    pub(in super::super) const SIGHASH: u8 = 0x03;
    pub(in super::super) const REDEEM_SCRIPT: u8 = 0x04;
    pub(in super::super) const WITNESS_SCRIPT: u8 = 0x05;
    pub(in super::super) const BIP32_DERIVATION: u8 = 0x06;
    pub(in super::super) const SCRIPT_SIG: u8 = 0x07;
    pub(in super::super) const SCRIPT_WITNESS: u8 = 0x08;
    pub(in super::super) const RIPEMD160: u8 = 0x0a;
    pub(in super::super) const SHA256: u8 = 0x0b;
    pub(in super::super) const HASH160: u8 = 0x0c;
    pub(in super::super) const HASH256: u8 = 0x0d;
    pub(in super::super) const PREVIOUS_TXID: u8 = 0x0e;
    pub(in super::super) const OUTPUT_INDEX: u8 = 0x0f;
    pub(in super::super) const SEQUENCE: u8 = 0x10;
    pub(in super::super) const TIME_LOCKTIME: u8 = 0x11;
    pub(in super::super) const HEIGHT_LOCKTIME: u8 = 0x12;
    pub(in super::super) const TAP_KEY_SIG: u8 = 0x13;
    pub(in super::super) const TAP_SCRIPT_SIG: u8 = 0x14;
    pub(in super::super) const TAP_LEAF_SCRIPT: u8 = 0x15;
    pub(in super::super) const TAP_BIP32_DERIVATION: u8 = 0x16;
    pub(in super::super) const TAP_INTERNAL_KEY: u8 = 0x17;
    pub(in super::super) const TAP_MERKLE_ROOT: u8 = 0x18;
    pub(in super::super) const MUSIG2_PARTICIPANTS: u8 = 0x1a;
    pub(in super::super) const MUSIG2_PUB_NONCE: u8 = 0x1b;
    pub(in super::super) const MUSIG2_PARTIAL_SIG: u8 = 0x1c;
}

pub(super) mod output {
    pub(in super::super) const REDEEM_SCRIPT: u8 = 0x00;
    pub(in super::super) const WITNESS_SCRIPT: u8 = 0x01;
    pub(in super::super) const BIP32_DERIVATION: u8 = 0x02;
    pub(in super::super) const AMOUNT: u8 = 0x03;
    pub(in super::super) const SCRIPT: u8 = 0x04;
    pub(in super::super) const TAP_INTERNAL_KEY: u8 = 0x05;
    pub(in super::super) const TAP_TREE: u8 = 0x06;
    pub(in super::super) const TAP_BIP32_DERIVATION: u8 = 0x07;
    pub(in super::super) const MUSIG2_PARTICIPANTS: u8 = 0x08;
}

/// Type of proprietary records in every map.
pub(super) const PROPRIETARY: u8 = 0xfc;

/// Parse error in Core's wording.
pub(super) type Fault = String;

pub(super) fn fault<T>(text: &str) -> Result<T, Fault> {
    Err(text.to_owned())
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], Fault> {
        let Some((taken, rest)) = self.0.split_at_checked(count) else {
            return fault(END);
        };
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        self.take(N)?.try_into().map_err(|_| String::new())
    }

    /// Compact size in its shortest encoding.
    pub(super) fn compact_size(&mut self) -> Result<u64, Fault> {
        let mut reader = assay_wire::Reader::new(self.0, 0);
        let number = reader.compact_size().map_err(|error| match error.kind {
            ParseErrorKind::NonCanonicalSize => "non-canonical ReadCompactSize()".to_owned(),
            ParseErrorKind::OversizedCount => "ReadCompactSize(): size too large".to_owned(),
            _ => END.to_owned(),
        })?;
        self.take(reader.position())?;
        Ok(number)
    }

    pub(super) fn var_bytes(&mut self) -> Result<&'a [u8], Fault> {
        let length = self.compact_size()?;
        self.take(usize::try_from(length).unwrap_or(usize::MAX))
    }

    /// Length-prefixed value, which must use the full length.
    pub(super) fn sized<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let stated = self.compact_size()?;
        let before = self.0.len();
        let value = read(self)?;
        if (before - self.0.len()) as u64 != stated {
            return fault("Size of value was not the stated size");
        }
        Ok(value)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    Global,
    Input,
    Output,
}

impl Scope {
    fn name(self) -> &'static str {
        match self {
            Self::Global => "Global",
            Self::Input => "Input",
            Self::Output => "Output",
        }
    }
}

/// Records of one map in Core's order of serialization.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Fields(BTreeMap<Place, (Vec<u8>, Vec<u8>)>);

/// Rank of the type, and Core's sort key within a type.
type Place = (u8, Vec<Vec<u8>>);

impl Fields {
    /// Adds a record unless its place is taken.
    pub(super) fn add(&mut self, scope: Scope, key: Vec<u8>, value: Vec<u8>) {
        let place = place(scope, &key, &value);
        self.0.entry(place).or_insert((key, value));
    }

    /// Sets the only record of a type; an empty value removes it.
    pub(super) fn set(&mut self, scope: Scope, kind: u8, value: Vec<u8>) {
        self.remove(kind);
        if !value.is_empty() {
            self.add(scope, vec![kind], value);
        }
    }

    pub(super) fn remove(&mut self, kind: u8) {
        self.0.retain(|_, (key, _)| key[0] != kind);
    }

    /// Value of the only record of a type.
    pub(super) fn get(&self, kind: u8) -> Option<&[u8]> {
        self.of(kind).next().map(|(_, value)| value)
    }

    pub(super) fn has(&self, kind: u8) -> bool {
        self.of(kind).next().is_some()
    }

    /// Records of a type: key without type, and value.
    pub(super) fn of(&self, kind: u8) -> impl Iterator<Item = (&[u8], &[u8])> {
        let records = self.0.values().filter(move |(key, _)| key[0] == kind);
        records.map(|(key, value)| (&key[1..], &value[..]))
    }

    /// All records: rank, key and value.
    pub(super) fn all(&self) -> impl Iterator<Item = (u8, &[u8], &[u8])> {
        self.0.iter().map(|((rank, _), (key, value))| (*rank, &key[..], &value[..]))
    }

    pub(super) fn unknown(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.all().filter(|(rank, ..)| *rank == RANK_UNKNOWN).map(|(_, key, value)| (key, value))
    }

    pub(super) fn merge(&mut self, scope: Scope, other: &Self) {
        // Control blocks of a leaf count as one.
        let leaf = |place: &Place| (place.1.first().cloned(), place.1.get(1).cloned());
        let is_leaf = |key: &[u8]| scope == Scope::Input && key[0] == input::TAP_LEAF_SCRIPT;
        let known: BTreeSet<_> =
            self.0.iter().filter(|(_, (key, _))| is_leaf(key)).map(|(at, _)| leaf(at)).collect();
        for (place, (key, value)) in &other.0 {
            if !(is_leaf(key) && known.contains(&leaf(place))) {
                self.0.entry(place.clone()).or_insert((key.clone(), value.clone()));
            }
        }
    }
}

/// Parses one map. `special` gets type, key and reader of records stored elsewhere; returns true if it read the value.
pub(super) fn read_map(
    reader: &mut Reader<'_>,
    scope: Scope,
    mut special: impl FnMut(u8, &[u8], &mut Reader<'_>) -> Result<bool, Fault>,
) -> Result<Fields, Fault> {
    let mut fields = Fields::default();
    let mut seen = BTreeSet::new();
    while !reader.0.is_empty() {
        let key = reader.var_bytes()?;
        if key.is_empty() {
            return Ok(fields);
        }
        let name = scope.name();
        if !seen.insert(key) {
            return Err(format!(
                "Duplicate Key, {} key \"{}\" already provided",
                name.to_lowercase(),
                faster_hex::hex_string(key)
            ));
        }
        let kind = Reader(key).compact_size()?;
        // Types longer than a byte are unknown.
        let known = u8::try_from(kind).ok().filter(|kind| is_known(scope, *kind));
        if let Some(kind) = known
            && special(kind, key, reader)?
        {
            continue;
        }
        let value = match known {
            Some(kind) => read_value(scope, kind, key, reader)?,
            None => Some(reader.var_bytes()?.to_vec()),
        };
        if let Some(value) = value {
            fields.add(scope, key.to_vec(), value);
        }
    }
    let article = match scope {
        Scope::Global => "the global",
        Scope::Input => "an input",
        Scope::Output => "an output",
    };
    Err(format!("Separator is missing at the end of {article} map"))
}

/// Checks the length of a key, including its type.
pub(super) fn expect_key(name: &str, key: &[u8], length: usize) -> Result<(), Fault> {
    if key.len() == length {
        return Ok(());
    }
    Err(format!("Size of key was not {length} for the type {name}"))
}

fn is_known(scope: Scope, kind: u8) -> bool {
    kind == PROPRIETARY
        || match scope {
            Scope::Global => kind <= global::TX_MODIFIABLE || kind == global::VERSION,
            Scope::Input => kind <= input::MUSIG2_PARTIAL_SIG && kind != 0x09 && kind != 0x19,
            Scope::Output => kind <= output::MUSIG2_PARTICIPANTS,
        }
}

/// Parses and checks a value; `None` if the record counts as absent.
fn read_value(
    scope: Scope,
    kind: u8,
    key: &[u8],
    reader: &mut Reader<'_>,
) -> Result<Option<Vec<u8>>, Fault> {
    use input as i;
    use output as o;
    let not_empty = |value: &[u8]| (!value.is_empty()).then(|| value.to_vec());
    let not_null = |value: [u8; 32]| (value != [0; 32]).then(|| value.to_vec());
    let name = scope.name();
    match (scope, kind) {
        (_, PROPRIETARY) => {
            proprietary(key)?;
            reader.var_bytes().map(|value| Some(value.to_vec()))
        }
        (Scope::Global, global::XPUB) => {
            expect_key("Global XPUB", key, XPUB_BYTES + 1)?;
            public_key(&key[46..], "Invalid pubkey")?;
            read_origin(reader).map(Some)
        }
        (Scope::Input, i::REDEEM_SCRIPT) | (Scope::Output, o::REDEEM_SCRIPT) => {
            expect_key(&format!("{name} redeemScript"), key, 1)?;
            reader.var_bytes().map(not_empty)
        }
        (Scope::Input, i::WITNESS_SCRIPT) | (Scope::Output, o::WITNESS_SCRIPT) => {
            expect_key(&format!("{name} witnessScript"), key, 1)?;
            reader.var_bytes().map(not_empty)
        }
        (Scope::Input, i::BIP32_DERIVATION) | (Scope::Output, o::BIP32_DERIVATION) => {
            if !is_key_length(key.len() - 1) {
                return fault("Size of key was not the expected size for the type BIP32 keypath");
            }
            public_key(&key[1..], "Invalid pubkey")?;
            read_origin(reader).map(Some)
        }
        (Scope::Input, i::TAP_BIP32_DERIVATION) | (Scope::Output, o::TAP_BIP32_DERIVATION) => {
            expect_key(&format!("{name} Taproot BIP32 Keypath"), key, 33)?;
            read_tap_origin(reader, name).map(Some)
        }
        (Scope::Input, i::TAP_INTERNAL_KEY) | (Scope::Output, o::TAP_INTERNAL_KEY) => {
            expect_key(&format!("{name} Taproot Internal Key"), key, 1)?;
            reader.sized(Reader::array).map(not_null)
        }
        (Scope::Input, i::MUSIG2_PARTICIPANTS) | (Scope::Output, o::MUSIG2_PARTICIPANTS) => {
            expect_key(&format!("{name} MuSig2 Participants Pubkeys"), key, 34)?;
            participants(name, key, reader.var_bytes()?).map(Some)
        }
        (Scope::Input, _) => read_input_value(kind, key, reader),
        (Scope::Output, _) => {
            expect_key("Output Taproot Tree Key", key, 1)?;
            let tree = reader.var_bytes()?;
            read_tree(tree)?;
            Ok(Some(tree.to_vec()))
        }
        (Scope::Global, _) => reader.var_bytes().map(|value| Some(value.to_vec())),
    }
}

/// As [`read_value`], for input types.
fn read_input_value(
    kind: u8,
    key: &[u8],
    reader: &mut Reader<'_>,
) -> Result<Option<Vec<u8>>, Fault> {
    let not_empty = |value: &[u8]| (!value.is_empty()).then(|| value.to_vec());
    match kind {
        input::NON_WITNESS_UTXO => {
            expect_key("Input Non-witness UTXO", key, 1)?;
            reader
                .sized(|reader| read_tx(reader, Encoding::Segwit))
                .map(|tx| Some(tx.bytes().into()))
        }
        input::WITNESS_UTXO => {
            expect_key("Input Witness UTXO", key, 1)?;
            let utxo = reader.sized(|reader| {
                let start = reader.0;
                reader.take(8)?;
                reader.var_bytes()?;
                Ok(start[..start.len() - reader.0.len()].to_vec())
            })?;
            // Core's encoding of a missing output.
            Ok((utxo[..8] != [0xff; 8]).then_some(utxo))
        }
        input::PARTIAL_SIG => {
            if !is_key_length(key.len() - 1) {
                return fault(
                    "Size of key was not the expected size for the type partial signature pubkey",
                );
            }
            public_key(&key[1..], "Invalid pubkey")?;
            let signature = reader.var_bytes()?;
            if !is_ecdsa_signature(signature) {
                return fault("Signature is not a valid encoding");
            }
            Ok(Some(signature.to_vec()))
        }
        input::SIGHASH => {
            expect_key("Input Sighash Type", key, 1)?;
            reader.sized(Reader::array::<4>).map(|value| Some(value.to_vec()))
        }
        input::SCRIPT_SIG => {
            expect_key("Input Final scriptSig", key, 1)?;
            reader.var_bytes().map(not_empty)
        }
        input::SCRIPT_WITNESS => {
            expect_key("Input Final scriptWitness", key, 1)?;
            let stack = reader.sized(|reader| {
                let start = reader.0;
                for _ in 0..reader.compact_size()? {
                    reader.var_bytes()?;
                }
                Ok(&start[..start.len() - reader.0.len()])
            })?;
            Ok((stack != [0]).then(|| stack.to_vec()))
        }
        input::RIPEMD160 | input::SHA256 | input::HASH160 | input::HASH256 => {
            let (name, length) = match kind {
                input::RIPEMD160 => ("RIPEMD160", 21),
                input::SHA256 => ("SHA256", 33),
                input::HASH160 => ("Hash160", 21),
                _ => ("Hash256", 33),
            };
            expect_key(&format!("Input {name} Preimage"), key, length)?;
            reader.var_bytes().map(|value| Some(value.to_vec()))
        }
        input::TAP_KEY_SIG => {
            expect_key("Input Taproot Key Path Signature", key, 1)?;
            schnorr(reader.var_bytes()?, "key").map(Some)
        }
        input::TAP_SCRIPT_SIG => {
            expect_key("Input Taproot Script Path Signature", key, 65)?;
            schnorr(reader.var_bytes()?, "script").map(Some)
        }
        input::TAP_LEAF_SCRIPT => {
            if key.len() < 34 {
                return fault("Input Taproot leaf script key is not at least 34 bytes");
            }
            if !(key.len() - 2).is_multiple_of(32) {
                return fault("Input Taproot leaf script key's control block size is not valid");
            }
            let script = reader.var_bytes()?;
            if script.is_empty() {
                return fault("Input Taproot leaf script must be at least 1 byte");
            }
            Ok(Some(script.to_vec()))
        }
        input::TAP_MERKLE_ROOT => {
            expect_key("Input Taproot Merkle Root", key, 1)?;
            let root: [u8; 32] = reader.sized(Reader::array)?;
            Ok((root != [0; 32]).then(|| root.to_vec()))
        }
        _ => read_musig2(kind, key, reader).map(Some),
    }
}

fn read_musig2(kind: u8, key: &[u8], reader: &mut Reader<'_>) -> Result<Vec<u8>, Fault> {
    let is_nonce = kind == input::MUSIG2_PUB_NONCE;
    let name = if is_nonce { "pubnonce" } else { "partial sig" };
    if ![67, 99].contains(&key.len()) {
        return Err(format!("Input musig2 {name} key is not expected size of 67 or 99 bytes"));
    }
    public_key(&key[34..67], "musig2 aggregate pubkey is invalid")?;
    public_key(&key[1..34], "musig2 participant pubkey is invalid")?;
    if !is_nonce {
        return reader.sized(Reader::array::<32>).map(|value| value.to_vec());
    }
    let nonce = reader.var_bytes()?;
    if nonce.len() != 66 {
        return fault("Input musig2 pubnonce value is not 66 bytes");
    }
    Ok(nonce.to_vec())
}

/// Parses a transaction at the start of the reader.
pub(super) fn read_tx(reader: &mut Reader<'_>, encoding: Encoding) -> Result<Transaction, Fault> {
    let tx = Transaction::parse_first(reader.0, encoding).map_err(|error| error.to_string())?;
    reader.take(tx.bytes().len())?;
    Ok(tx)
}

/// Identifier and subtype of a proprietary key.
pub(super) fn proprietary(key: &[u8]) -> Result<(Vec<u8>, u64), Fault> {
    let mut reader = Reader(&key[1..]);
    Ok((reader.var_bytes()?.to_vec(), reader.compact_size()?))
}

/// Parses a key origin: fingerprint and path, four bytes per step.
fn read_origin(reader: &mut Reader<'_>) -> Result<Vec<u8>, Fault> {
    let length = reader.compact_size()?;
    take_origin(reader, length)
}

fn take_origin(reader: &mut Reader<'_>, length: u64) -> Result<Vec<u8>, Fault> {
    if length == 0 || !length.is_multiple_of(4) {
        return fault("Invalid length for HD key path");
    }
    reader.take(usize::try_from(length).unwrap_or(usize::MAX)).map(<[u8]>::to_vec)
}

/// Parses leaf hashes and a key origin; sorts the hashes.
fn read_tap_origin(reader: &mut Reader<'_>, name: &str) -> Result<Vec<u8>, Fault> {
    let length = reader.compact_size()?;
    let before = reader.0.len() as u64;
    let mut hashes = BTreeSet::new();
    for _ in 0..reader.compact_size()? {
        hashes.insert(reader.array::<32>()?);
    }
    let Some(left) = length.checked_sub(before - reader.0.len() as u64) else {
        return Err(format!("{name} Taproot BIP32 keypath has an invalid length"));
    };
    let origin = take_origin(reader, left)?;
    Ok(tap_origin(&hashes, &origin))
}

pub(super) fn tap_origin(leaves: &BTreeSet<[u8; 32]>, origin: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    encode::compact_size(&mut out, leaves.len() as u64);
    for hash in leaves {
        out.extend(hash);
    }
    out.extend(origin);
    out
}

pub(super) fn split_tap_origin(value: &[u8]) -> (BTreeSet<[u8; 32]>, &[u8]) {
    let mut reader = Reader(value);
    let count = reader.compact_size().unwrap_or(0);
    let hashes = (0..count).map_while(|_| reader.array().ok()).collect();
    (hashes, reader.0)
}

fn participants(name: &str, key: &[u8], value: &[u8]) -> Result<Vec<u8>, Fault> {
    public_key(&key[1..], &format!("{name} musig2 aggregate pubkey is invalid"))?;
    let keys = value.chunks_exact(33);
    let is_whole = keys.remainder().is_empty();
    for key in keys {
        public_key(key, &format!("{name} musig2 participant pubkey is invalid"))?;
    }
    if !is_whole {
        return Err(format!(
            "{name} musig2 participants pubkeys value size is not a multiple of 33"
        ));
    }
    Ok(value.to_vec())
}

fn schnorr(signature: &[u8], path: &str) -> Result<Vec<u8>, Fault> {
    match signature.len() {
        64 | 65 => Ok(signature.to_vec()),
        0..64 => Err(format!("Input Taproot {path} path signature is shorter than 64 bytes")),
        _ => Err(format!("Input Taproot {path} path signature is longer than 65 bytes")),
    }
}

fn is_key_length(length: usize) -> bool {
    length == 33 || length == 65
}

fn public_key(bytes: &[u8], text: &str) -> Result<(), Fault> {
    PublicKey::from_slice(bytes).map(|_| ()).map_err(|_| text.to_owned())
}

/// Leaves of an output's taproot tree: depth, version and script.
pub(super) fn read_tree(value: &[u8]) -> Result<Vec<(u8, u8, Vec<u8>)>, Fault> {
    if value.is_empty() {
        return fault("Output Taproot tree must not be empty");
    }
    let mut leaves = Vec::new();
    // True at each depth with a subtree that lacks its sibling.
    let mut branch: Vec<bool> = Vec::new();
    let mut is_valid = true;
    let mut reader = Reader(value);
    while !reader.0.is_empty() {
        let [depth, version] = reader.array()?;
        let script = reader.var_bytes()?.to_vec();
        if usize::from(depth) > TREE_DEPTH_MAX {
            return fault("Output Taproot tree has as leaf greater than Taproot maximum depth");
        }
        if version & 1 != 0 {
            return fault("Output Taproot tree has a leaf with an invalid leaf version");
        }
        is_valid = is_valid && insert_leaf(&mut branch, usize::from(depth));
        leaves.push((depth, version, script));
    }
    if !(is_valid && branch == [true]) {
        return fault("Output Taproot tree is malformed");
    }
    Ok(leaves)
}

/// Core's `TaprootBuilder::Insert`, for the shape only.
fn insert_leaf(branch: &mut Vec<bool>, mut depth: usize) -> bool {
    if depth + 1 < branch.len() {
        return false;
    }
    while branch.len() > depth && branch[depth] {
        branch.pop();
        let Some(above) = depth.checked_sub(1) else { return false };
        depth = above;
    }
    branch.resize(branch.len().max(depth + 1), false);
    branch[depth] = true;
    true
}

fn place(scope: Scope, key: &[u8], value: &[u8]) -> Place {
    let kind = key[0];
    let is_one_byte = kind < 0xfd;
    if !is_one_byte || !is_known(scope, kind) {
        return (RANK_UNKNOWN, vec![key.to_vec()]);
    }
    let (rest, whole) = (&key[1..], || vec![key.to_vec()]);
    match (scope, kind) {
        (Scope::Output, PROPRIETARY) => (RANK_OUTPUT_PROPRIETARY, whole()),
        (_, PROPRIETARY) => (RANK_PROPRIETARY, whole()),
        (Scope::Global, global::XPUB) => {
            let (fingerprint, path) = value.split_at(4.min(value.len()));
            let path: Vec<u8> =
                path.chunks(4).flat_map(|step| step.iter().rev().copied()).collect();
            let length = (path.len() as u64).to_be_bytes().to_vec();
            let (chain_code, key) = (rest[13..45].to_vec(), rest[45..].to_vec());
            (kind, vec![fingerprint.to_vec(), length, path, key, chain_code, rest.to_vec()])
        }
        (Scope::Input, input::SCRIPT_SIG | input::SCRIPT_WITNESS) => (RANK_FINAL, whole()),
        (Scope::Input, input::PARTIAL_SIG) => (kind, vec![hash160(rest).to_vec()]),
        (Scope::Input, input::TAP_LEAF_SCRIPT) => {
            let (version, script) = value.split_last().unwrap_or((&0, &[]));
            let length = (rest.len() as u64).to_be_bytes().to_vec();
            (kind, vec![script.to_vec(), vec![*version], length, rest.to_vec()])
        }
        (Scope::Input, input::MUSIG2_PUB_NONCE | input::MUSIG2_PARTIAL_SIG) => {
            let (participant, of) = rest.split_at(33);
            (kind, vec![of[..33].to_vec(), of[33..].to_vec(), participant.to_vec()])
        }
        _ => (kind, whole()),
    }
}

/// After the records that a final script replaces, before the fields of version 2.
pub(super) const RANK_FINAL: u8 = 0x40;
pub(super) const RANK_PROPRIETARY: u8 = 0x50;
/// Core writes them in the middle of an output.
const RANK_OUTPUT_PROPRIETARY: u8 = output::SCRIPT;
const RANK_UNKNOWN: u8 = 0x60;
const END: &str = "SpanReader::read(): end of data";
/// Core's `TAPROOT_CONTROL_MAX_NODE_COUNT`.
const TREE_DEPTH_MAX: usize = 128;
/// Serialized extended public key with its version.
pub(super) const XPUB_BYTES: usize = 78;
