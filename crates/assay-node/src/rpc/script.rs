//! Human-readable scripts: assembly, type, address and descriptor, as in Bitcoin Core (`core_io.cpp`,
//! `script/solver.cpp`, `script/descriptor.cpp`).

use std::fmt::Write as _;

use assay_consensus::params::ChainParams;
use assay_consensus::script::OutputKind;
use assay_consensus::script::asm::{cash_opcode_name, opcode_name};
use assay_consensus::script::opcode::{
    Instruction, Instructions, MAX_ELEMENT_SIZE, MAX_SCRIPT_SIZE, op,
};

use super::address::{self, CHARSET, Destination};
use crate::jsonrpc::{Json, Object};

/// Writes the members of a `scriptPubKey` object.
pub(crate) fn write_script_pubkey(params: &ChainParams, script: &[u8], object: &mut Object<'_>) {
    write_script_members(params, script, true, object);
}

/// As [`write_script_pubkey`], optionally without the hexadecimal script.
pub(crate) fn write_script_members(
    params: &ChainParams,
    script: &[u8],
    with_hex: bool,
    object: &mut Object<'_>,
) {
    write_described(params, script, &infer_descriptor(params, script), with_hex, object);
}

/// As [`write_script_pubkey`], with a more specific descriptor than the script alone implies.
pub(crate) fn write_script_described(
    params: &ChainParams,
    script: &[u8],
    descriptor: &str,
    object: &mut Object<'_>,
) {
    write_described(params, script, descriptor, true, object);
}

fn write_described(
    params: &ChainParams,
    script: &[u8],
    descriptor: &str,
    with_hex: bool,
    object: &mut Object<'_>,
) {
    object.key("asm").string(&asm(params, script, false));
    object.key("desc").string(descriptor);
    if with_hex {
        object.key("hex").hex(script);
    }
    if let Some(address) = address_of(params, script) {
        object.key("address").string(&address);
    }
    object.key("type").string(kind_name(&OutputKind::of(script, params.cash.is_some())));
}

pub(crate) fn address_of(params: &ChainParams, script: &[u8]) -> Option<String> {
    let kind = OutputKind::of(script, params.cash.is_some());
    destination(&kind).map(|destination| address::encode(params, destination))
}

/// True if a script consists of defined opcodes with pushes of allowed length (`HasValidOps`).
pub(crate) fn has_valid_ops(script: &[u8]) -> bool {
    Instructions::new(script).all(|instruction| {
        instruction.is_some_and(|i| i.opcode <= op::NOP10 && i.data.len() <= MAX_ELEMENT_SIZE)
    })
}

pub(crate) fn write_script_sig(params: &ChainParams, script: &[u8], json: Json<'_>) {
    let mut object = json.object();
    object.key("asm").string(&asm(params, script, true));
    object.key("hex").hex(script);
}

/// True if the output is unspendable or its script unparsable, for `maxburnamount` (`CScript::IsUnspendable`, `HasValidOps`).
pub(crate) fn burns(params: &ChainParams, script: &[u8]) -> bool {
    let opcode_max = if params.cash.is_some() { CASH_OPCODE_MAX } else { op::NOP10 };
    script.first() == Some(&op::RETURN)
        || script.len() > MAX_SCRIPT_SIZE
        || Instructions::new(script).any(|instruction| {
            instruction.is_none_or(|i| i.opcode > opcode_max || i.data.len() > MAX_ELEMENT_SIZE)
        })
}

pub(crate) fn kind_of(params: &ChainParams, script: &[u8]) -> &'static str {
    kind_name(&OutputKind::of(script, params.cash.is_some()))
}

fn kind_name(kind: &OutputKind<'_>) -> &'static str {
    match kind {
        OutputKind::NonStandard => "nonstandard",
        OutputKind::PubKey(_) => "pubkey",
        OutputKind::PubKeyHash(_) => "pubkeyhash",
        OutputKind::ScriptHash(_) => "scripthash",
        OutputKind::Multisig { .. } => "multisig",
        OutputKind::NullData => "nulldata",
        OutputKind::Anchor(_) => "anchor",
        OutputKind::WitnessKeyHash(_) => "witness_v0_keyhash",
        OutputKind::WitnessScriptHash(_) => "witness_v0_scripthash",
        OutputKind::Taproot(_) => "witness_v1_taproot",
        OutputKind::WitnessUnknown { .. } => "witness_unknown",
    }
}

/// Destination of an output type with an address.
fn destination<'a>(kind: &OutputKind<'a>) -> Option<Destination<'a>> {
    Some(match *kind {
        OutputKind::PubKeyHash(hash) => Destination::PubkeyHash(hash),
        OutputKind::ScriptHash(hash) => Destination::ScriptHash(hash),
        OutputKind::WitnessKeyHash(program) | OutputKind::WitnessScriptHash(program) => {
            Destination::Witness { version: 0, program }
        }
        OutputKind::Taproot(program) | OutputKind::Anchor(program) => {
            Destination::Witness { version: 1, program }
        }
        OutputKind::WitnessUnknown { version, program } => {
            Destination::Witness { version, program }
        }
        OutputKind::NonStandard
        | OutputKind::PubKey(_)
        | OutputKind::Multisig { .. }
        | OutputKind::NullData => return None,
    })
}

/// Descriptor that Bitcoin Core infers without keys, with checksum.
///
/// Assumes that a taproot output key is on the curve; otherwise, for an unspendable output, Bitcoin Core prints `addr(…)`.
fn descriptor(kind: &OutputKind<'_>, address: Option<&str>, script: &[u8]) -> String {
    let plain = |key: &[u8]| matches!(key.first(), Some(2..=4));
    let hex = faster_hex::hex_string;
    let text = match (kind, address) {
        (OutputKind::PubKey(key), _) if plain(key) => format!("pk({})", hex(key)),
        (OutputKind::Multisig { required, keys }, _) if keys.iter().all(|key| plain(key)) => {
            let keys: Vec<_> = keys.iter().map(|key| hex(key)).collect();
            format!("multi({required},{})", keys.join(","))
        }
        (OutputKind::Taproot(key), _) => format!("rawtr({})", hex(key)),
        (_, Some(address)) => format!("addr({address})"),
        (_, None) => format!("raw({})", hex(script)),
    };
    with_checksum(&text)
}

/// Appends the checksum to a descriptor of ours.
pub(crate) fn with_checksum(text: &str) -> String {
    let checksum = descriptor_checksum(text).expect("made of characters of the set");
    format!("{text}#{checksum}")
}

pub(crate) fn infer_descriptor(params: &ChainParams, script: &[u8]) -> String {
    let kind = OutputKind::of(script, params.cash.is_some());
    descriptor(&kind, address_of(params, script).as_deref(), script)
}

/// BIP380 checksum; `None` for invalid characters.
pub(crate) fn descriptor_checksum(text: &str) -> Option<String> {
    let step = |state: u64, value: u64| {
        let top = state >> 35;
        let shifted = (state & 0x7_ffff_ffff) << 5 ^ value;
        CHECKSUM_GENERATOR.into_iter().enumerate().fold(shifted, |acc, (bit, generator)| {
            if top >> bit & 1 == 1 { acc ^ generator } else { acc }
        })
    };
    let (mut state, mut class, mut pending) = (1, 0, 0);
    for byte in text.bytes() {
        let position = CHECKSUM_INPUT.iter().position(|&c| c == byte)? as u64;
        state = step(state, position & 31);
        class = class * 3 + (position >> 5);
        pending += 1;
        if pending == 3 {
            state = step(state, class);
            (class, pending) = (0, 0);
        }
    }
    if pending > 0 {
        state = step(state, class);
    }
    let state = (0..8).fold(state, |state, _| step(state, 0)) ^ 1;
    Some((0..8).map(|i| char::from(CHARSET[(state >> (5 * (7 - i)) & 31) as usize])).collect())
}

/// Assembly. With `signatures`, pushes that look like signatures get their hash type: correct for unlocking scripts only.
pub(crate) fn asm(params: &ChainParams, script: &[u8], signatures: bool) -> String {
    let cash = params.cash.is_some();
    let unspendable = script.first() == Some(&op::RETURN) || script.len() > MAX_SCRIPT_SIZE;
    let mut text = String::new();
    for instruction in Instructions::new(script) {
        if !text.is_empty() {
            text.push(' ');
        }
        let Some(Instruction { opcode, data }) = instruction else {
            text.push_str("[error]");
            break;
        };
        if opcode > op::PUSHDATA4 {
            push_opcode_name(opcode, cash, &mut text);
        } else if data.len() <= 4 {
            // Small pushes are numbers: sign and magnitude, little-endian.
            write!(text, "{}", script_number(data)).expect("writing to a string does not fail");
        } else {
            let hash_type = (signatures && !unspendable).then(|| hash_type_name(data, cash));
            match hash_type.flatten() {
                Some(name) => {
                    text.push_str(&faster_hex::hex_string(&data[..data.len() - 1]));
                    write!(text, "[{name}]").expect("writing to a string does not fail");
                }
                None => text.push_str(&faster_hex::hex_string(data)),
            }
        }
    }
    text
}

fn script_number(data: &[u8]) -> i64 {
    let magnitude = data.iter().rev().fold(0i64, |acc, &byte| acc << 8 | i64::from(byte));
    match data.last() {
        Some(top) if top & 0x80 != 0 => -(magnitude & !(0x80 << (8 * (data.len() - 1)))),
        _ => magnitude,
    }
}

/// Name of the hash type of an ECDSA signature in strict DER (BIP66), or on Bitcoin Cash of a Schnorr signature; if defined.
fn hash_type_name(push: &[u8], cash: bool) -> Option<&'static str> {
    let (&hash_type, signature) = push.split_last()?;
    let schnorr = cash && signature.len() == 64;
    if !schnorr && !is_strict_der(signature) {
        return None;
    }
    sighash_name(hash_type, cash)
}

/// Core's `SighashToStr`, and the names of Bitcoin Cash.
pub(super) fn sighash_name(hash_type: u8, cash: bool) -> Option<&'static str> {
    Some(match (hash_type, cash) {
        (0x01, _) => "ALL",
        (0x81, _) => "ALL|ANYONECANPAY",
        (0x02, _) => "NONE",
        (0x82, _) => "NONE|ANYONECANPAY",
        (0x03, _) => "SINGLE",
        (0x83, _) => "SINGLE|ANYONECANPAY",
        (0x41, true) => "ALL|FORKID",
        (0xc1, true) => "ALL|FORKID|ANYONECANPAY",
        (0x42, true) => "NONE|FORKID",
        (0xc2, true) => "NONE|FORKID|ANYONECANPAY",
        (0x43, true) => "SINGLE|FORKID",
        (0xc3, true) => "SINGLE|FORKID|ANYONECANPAY",
        _ => return None,
    })
}

/// True for a signature in strict DER with a defined hash type (Core's `CheckSignatureEncoding`).
pub(crate) fn is_ecdsa_signature(bytes: &[u8]) -> bool {
    bytes.split_last().is_some_and(|(hash_type, signature)| {
        matches!(hash_type & !0x80, 1..=3) && is_strict_der(signature)
    })
}

/// BIP66: a sequence of exactly two positive, minimally encoded integers.
fn is_strict_der(signature: &[u8]) -> bool {
    let integer = |bytes: &[u8]| -> Option<usize> {
        let [2, length, rest @ ..] = bytes else { return None };
        let value = rest.get(..usize::from(*length))?;
        let shortest = match value {
            [] => false,
            [0, next, ..] => *next >= 0x80,
            [first, ..] => *first < 0x80,
        };
        shortest.then_some(2 + value.len())
    };
    let [0x30, length, body @ ..] = signature else { return false };
    (8..=72).contains(&signature.len())
        && usize::from(*length) == body.len()
        && integer(body).is_some_and(|first| integer(&body[first..]) == Some(body.len() - first))
}

/// Appends Bitcoin Core's name of an opcode other than a push, or on Bitcoin Cash the name of its nodes.
fn push_opcode_name(opcode: u8, cash: bool, text: &mut String) {
    let name = match opcode {
        op::NEGATE1 => "-1",
        op::PUSH1..=op::PUSH16 => {
            write!(text, "{}", opcode - op::PUSH1 + 1).expect("writing to a string does not fail");
            return;
        }
        0xff => "OP_INVALIDOPCODE",
        _ => cash
            .then(|| cash_opcode_name(opcode))
            .flatten()
            .or_else(|| opcode_name(opcode))
            .unwrap_or("OP_UNKNOWN"),
    };
    text.push_str(name);
}

/// Last introspection opcode of Bitcoin Cash.
const CASH_OPCODE_MAX: u8 = 0xd3;
const CHECKSUM_INPUT: &[u8; 95] = b"0123456789()[],'/*abcdefgh@:$%{}IJKLMNOPQRSTUVWXYZ&+-.;<=>?!^_|~ijklmnopqrstuvwxyzABCDEFGH`#\"\\ ";
const CHECKSUM_GENERATOR: [u64; 5] =
    [0xf5_dee5_1989, 0xa9_fdca_3312, 0x1b_ab10_e32d, 0x37_06b1_677a, 0x64_4d62_6ffd];

#[cfg(test)]
mod tests {
    use assay_testkit::hex;

    use super::*;

    fn der() -> String {
        format!("30440220{}0220{}", "11".repeat(32), "22".repeat(32))
    }

    fn described(chain: &str, script_hex: &str) -> String {
        let params = ChainParams::by_name(chain).unwrap();
        let mut out = Vec::new();
        let mut object = Json::new(&mut out).object();
        write_script_pubkey(&params, &hex::decode(script_hex), &mut object);
        object.end();
        String::from_utf8(out).unwrap()
    }

    fn field(json: &str, name: &str) -> String {
        let value: serde_json::Value = serde_json::from_str(json).unwrap();
        value[name].as_str().unwrap_or("-").to_owned()
    }

    #[test]
    fn templates_are_recognised_on_their_chains() {
        let key = "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";
        for (chain, script, kind, has_address) in [
            ("main", format!("21{key}ac"), "pubkey", false),
            ("main", format!("21{}ac", key.replacen("02", "05", 1)), "nonstandard", false),
            ("main", format!("76a914{}88ac", "11".repeat(20)), "pubkeyhash", true),
            ("main", format!("a914{}87", "11".repeat(20)), "scripthash", true),
            ("main", format!("aa20{}87", "11".repeat(32)), "nonstandard", false),
            ("bch-regtest", format!("aa20{}87", "11".repeat(32)), "scripthash", true),
            ("main", format!("0014{}", "11".repeat(20)), "witness_v0_keyhash", true),
            ("main", format!("0020{}", "11".repeat(32)), "witness_v0_scripthash", true),
            ("main", format!("0015{}", "11".repeat(21)), "nonstandard", false),
            ("main", format!("5120{}", "11".repeat(32)), "witness_v1_taproot", true),
            ("main", "51024e73".to_owned(), "anchor", true),
            ("main", "5202abcd".to_owned(), "witness_unknown", true),
            ("bch-regtest", format!("5120{}", "11".repeat(32)), "nonstandard", false),
            ("main", "6a".to_owned(), "nulldata", false),
            ("main", "6a0401020304".to_owned(), "nulldata", false),
            ("main", "6a04010203".to_owned(), "nonstandard", false),
            ("main", format!("5121{key}21{key}52ae"), "multisig", false),
            ("main", format!("5321{key}21{key}52ae"), "nonstandard", false),
            ("main", format!("5121{key}21{key}53ae"), "nonstandard", false),
            ("main", format!("5121{key}51aeae"), "nonstandard", false),
            ("main", format!("5121{key}51"), "nonstandard", false),
            ("main", "00ae".to_owned(), "nonstandard", false),
            ("main", String::new(), "nonstandard", false),
        ] {
            let json = described(chain, &script);
            assert_eq!(field(&json, "type"), kind, "{chain} {script}");
            assert_eq!(field(&json, "address") != "-", has_address, "{chain} {script}");
        }
    }

    #[test]
    fn descriptor_checksums_agree_with_bip380_and_bitcoin_core() {
        assert_eq!(descriptor_checksum("raw(deadbeef)").as_deref(), Some("89f8spxm"));
        // Bitcoin Core, doc/descriptors.md.
        assert_eq!(
            descriptor_checksum(
                "pkh(02c6047f9441ed7d6d3045406e95c07cd85c778e4b8cef3ca7abac09b95c709ee5)"
            )
            .as_deref(),
            Some("8fhd9pwu")
        );
    }

    #[test]
    fn formats_the_first_coinbase_output_like_core() {
        let key = "04678afdb0fe5548271967f1a67130b7105cd6a828e03909a67962e0ea1f61deb649f6bc3f4cef38c4f35504e51ec112de5c384df7ba0b8d578a4c702b6bf11d5f";
        let json = described("main", &format!("41{key}ac"));
        assert_eq!(field(&json, "asm"), format!("{key} OP_CHECKSIG"));
        assert!(field(&json, "desc").starts_with(&format!("pk({key})#")));
    }

    #[test]
    fn assembly_spells_numbers_errors_and_hash_types() {
        let main = ChainParams::by_name("main").unwrap();
        let der = der();
        for (script, signatures, expected) in [
            ("", false, String::new()),
            ("00", false, "0".to_owned()),
            ("4f5160", false, "-1 1 16".to_owned()),
            ("02ff00", false, "255".to_owned()),
            ("0181", false, "-1".to_owned()),
            ("0180", false, "0".to_owned()),
            ("04ffffffff", false, "-2147483647".to_owned()),
            ("050102030405", false, "0102030405".to_owned()),
            (
                "76a9bafbff",
                false,
                "OP_DUP OP_HASH160 OP_CHECKSIGADD OP_UNKNOWN OP_INVALIDOPCODE".to_owned(),
            ),
            ("5105", false, "1 [error]".to_owned()),
            (&format!("47{der}01"), true, format!("{der}[ALL]")),
            (&format!("47{der}83"), true, format!("{der}[SINGLE|ANYONECANPAY]")),
            (&format!("47{der}01"), false, format!("{der}01")),
            (&format!("47{der}04"), true, format!("{der}04")),
            (&format!("6a47{der}01"), true, format!("OP_RETURN {der}01")),
        ] {
            assert_eq!(asm(&main, &hex::decode(script), signatures), expected, "{script}");
        }
        let cash = ChainParams::by_name("bch-regtest").unwrap();
        assert_eq!(
            asm(&cash, &hex::decode(&format!("47{der}41")), true),
            format!("{der}[ALL|FORKID]")
        );
        assert_eq!(
            asm(&cash, &hex::decode("7fbabccd"), false),
            "OP_SPLIT OP_CHECKDATASIG OP_REVERSEBYTES OP_OUTPUTBYTECODE"
        );
    }

    #[test]
    fn rejects_non_strict_der() {
        let good = hex::decode(&der());
        assert!(is_strict_der(&good));
        for index in [0, 1, 2, 3, 36, 37] {
            let mut bad = good.clone();
            bad[index] ^= 1;
            assert!(!is_strict_der(&bad), "byte {index}");
        }
        for (index, value) in [(4, 0x80), (4, 0), (38, 0x80), (38, 0)] {
            let mut bad = good.clone();
            bad[index] = value;
            assert!(!is_strict_der(&bad), "byte {index}");
        }
        assert!(!is_strict_der(&[]) && !is_strict_der(&good[..10]));
    }

    #[test]
    fn detects_unspendable_outputs() {
        let main = ChainParams::by_name("main").unwrap();
        for (script, burning) in
            [("6a", true), ("51", false), ("05", true), ("fe", true), ("ba", true), ("b9", false)]
        {
            assert_eq!(burns(&main, &hex::decode(script)), burning, "{script}");
        }
        assert!(burns(&main, &[0x61; 10_001]) && !burns(&main, &[0x61; 10_000]));
    }
}
