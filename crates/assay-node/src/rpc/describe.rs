//! RPC of addresses and scripts.

use assay_consensus::params::ChainParams;
use assay_consensus::script::OutputKind;
use assay_consensus::script::opcode::{
    Instructions, MAX_ELEMENT_SIZE, MAX_MULTISIG_KEYS, MAX_SCRIPT_SIZE, is_op_success, op,
};
use assay_hash::{hash160, sha256};

use super::address::{self, Destination};
use super::args;
use super::decode::Payee;
use super::descriptor::{Descriptor, NeedsPrivateKey};
use super::lock::{multisig, witness};
use super::method::Call;
use super::scan::parse_range;
use super::script::{
    descriptor_checksum, has_valid_ops, infer_descriptor, with_checksum, write_script_described,
    write_script_members, write_script_pubkey,
};
use super::{bad, bad_key};
use crate::jsonrpc::{Json, Object, RpcError, Value, unhex};

pub(super) const VALIDATEADDRESS: Call = |node, args, out| {
    let payee = Payee::parse(&node.rpc.params, &args.string(0)?);
    let mut object = Json::new(out).object();
    object.key("isvalid").bool(payee.is_ok());
    match &payee {
        Ok(payee) => write_payee(&node.rpc.params, payee, &mut object),
        Err(error) => {
            object.key("error_locations").array().end();
            object.key("error").string(error);
        }
    }
    Ok(())
};

pub(super) const DECODESCRIPT: Call = |node, args, out| {
    let value = args.value(0).filter(|_| args.string(0).is_ok_and(|text| !text.is_empty()));
    let script = value.map_or(Ok(Vec::new()), |value| args::hex_of(value, "argument"))?;
    let mut object = Json::new(out).object();
    write_decoded(&node.rpc.params, &script, &mut object);
    Ok(())
};

pub(super) const GETDESCRIPTORINFO: Call = |node, args, out| {
    let text = args.string(0)?.into_owned();
    let all = Descriptor::parse(&node.rpc.params, &text).map_err(bad_key)?;
    let body = text.split('#').next().unwrap_or_default().to_owned();
    let is_range = all.iter().any(Descriptor::is_range);
    let is_solvable = !matches!(all[..], [Descriptor::Addr(_) | Descriptor::Raw(_)]);
    let has_private = all.iter().any(Descriptor::has_private_keys);
    let checksum = descriptor_checksum(&body).unwrap_or_default();
    let mut object = Json::new(out).object();
    object.key("descriptor").string(&format!("{body}#{checksum}"));
    object.key("checksum").string(&checksum);
    object.key("isrange").bool(is_range);
    object.key("issolvable").bool(is_solvable);
    object.key("hasprivatekeys").bool(has_private);
    Ok(())
};

fn write_payee(params: &ChainParams, payee: &Payee, object: &mut Object<'_>) {
    object.key("address").string(&address::encode(params, payee.destination()));
    object.key("scriptPubKey").hex(&payee.script());
    match payee {
        Payee::PubkeyHash(_) | Payee::ScriptHash(_) => {
            object.key("isscript").bool(matches!(payee, Payee::ScriptHash(_)));
            object.key("iswitness").bool(false);
        }
        Payee::Witness { version, program } => {
            // Unknown witness programs have no known script type.
            let is_script = match (version, program.len()) {
                (0, 20) => Some(false),
                (0, 32) | (1, 32 | 2) => Some(true),
                _ => None,
            };
            if let Some(is_script) = is_script {
                object.key("isscript").bool(is_script);
            }
            object.key("iswitness").bool(true);
            object.key("witness_version").int(*version);
            object.key("witness_program").hex(program);
        }
    }
}

fn write_decoded(params: &ChainParams, script: &[u8], object: &mut Object<'_>) {
    write_script_members(params, script, false, object);
    let kind = OutputKind::of(script, params.cash.is_some());
    if !can_be_wrapped(&kind, script) {
        return;
    }
    let p2sh = |script: &[u8]| address::encode(params, Destination::ScriptHash(&hash160(script)));
    object.key("p2sh").string(&p2sh(script));
    let program = match &kind {
        _ if params.cash.is_some() => return,
        OutputKind::PubKey(key) if key.len() == 33 => witness(0, &hash160(key)),
        OutputKind::PubKeyHash(hash) => witness(0, hash),
        OutputKind::Multisig { keys, .. } if keys.iter().all(|key| key.len() == 33) => {
            witness(0, &sha256(script))
        }
        OutputKind::NonStandard => witness(0, &sha256(script)),
        _ => return,
    };
    let mut segwit = object.key("segwit").object();
    let inner = infer_descriptor(params, script);
    let inner = inner.split('#').next().unwrap_or_default();
    let is_known = program.len() == 34 && inner.starts_with("multi(");
    if is_known {
        let text = format!("wsh({inner})");
        write_script_described(params, &program, &with_checksum(&text), &mut segwit);
    } else {
        write_script_pubkey(params, &program, &mut segwit);
    }
    segwit.key("p2sh-segwit").string(&p2sh(&program));
}

/// True if an output can pay to the hash of this script.
fn can_be_wrapped(kind: &OutputKind<'_>, script: &[u8]) -> bool {
    let is_final = matches!(
        kind,
        OutputKind::NullData
            | OutputKind::ScriptHash(_)
            | OutputKind::WitnessUnknown { .. }
            | OutputKind::Taproot(_)
            | OutputKind::Anchor(_)
    );
    let is_unspendable = script.first() == Some(&op::RETURN) || script.len() > MAX_SCRIPT_SIZE;
    if is_final || is_unspendable || !has_valid_ops(script) {
        return false;
    }
    Instructions::new(script)
        .flatten()
        .all(|one| one.opcode != op::CHECKSIGADD && !is_op_success(one.opcode))
}

pub(super) const CREATEMULTISIG: Call = |node, args, out| {
    let required: i32 = args.integer(0)?;
    let mut keys = Vec::new();
    for value in args.value(1).and_then(Value::elements).unwrap_or_default() {
        keys.push(public_key(&args::string_of(value)?)?);
    }
    let kind = args.optional_string(2)?.map_or("legacy".to_owned(), std::borrow::Cow::into_owned);
    if !["legacy", "p2sh-segwit", "bech32", "bech32m"].contains(&&*kind) {
        return Err(bad_key(format!("Unknown address type '{kind}'")));
    }
    if kind == "bech32m" {
        return Err(bad_key("createmultisig cannot create bech32m multisig addresses"));
    }
    let count = keys.len();
    if required < 1 {
        return Err(bad("a multisignature address must require at least one key to redeem"));
    }
    if (count as i64) < i64::from(required) {
        return Err(bad(format!(
            "not enough keys supplied (got {count} keys, but need at least {required} to redeem)"
        )));
    }
    if count > KEYS_MAX {
        return Err(bad(format!(
            "Number of keys involved in the multisignature address creation > {KEYS_MAX}\nReduce the number"
        )));
    }
    let refs: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    let inner = multisig(required as u8, &refs);
    let has_long_keys = keys.iter().any(|key| key.len() != 33);
    let used = if has_long_keys || node.rpc.params.cash.is_some() { "legacy" } else { &*kind };
    if used == "legacy" && inner.len() > MAX_ELEMENT_SIZE {
        return Err(bad(format!(
            "redeemScript exceeds size limit: {} > {MAX_ELEMENT_SIZE}",
            inner.len()
        )));
    }
    let texts: Vec<String> = keys.iter().map(|key| faster_hex::hex_string(key)).collect();
    let multi = format!("multi({required},{})", texts.join(","));
    let program = witness(0, &sha256(&inner));
    let (payee, text) = match used {
        "legacy" => (Payee::ScriptHash(hash160(&inner).to_vec()), format!("sh({multi})")),
        "p2sh-segwit" => {
            (Payee::ScriptHash(hash160(&program).to_vec()), format!("sh(wsh({multi}))"))
        }
        _ => (
            Payee::Witness { version: 0, program: sha256(&inner).to_vec() },
            format!("wsh({multi})"),
        ),
    };
    let is_other = used != kind;
    let address = address::encode(&node.rpc.params, payee.destination());
    let mut object = Json::new(out).object();
    object.key("address").string(&address);
    object.key("redeemScript").hex(&inner);
    object.key("descriptor").string(&with_checksum(&text));
    if is_other {
        let mut warnings = object.key("warnings").array();
        warnings.item().string(
            "Unable to make chosen address type, please ensure no uncompressed public keys are present.",
        );
    }
    Ok(())
};

/// Public key with the errors of `HexToPubKey`.
fn public_key(text: &str) -> Result<Vec<u8>, RpcError> {
    let bytes = unhex(text.as_bytes()).filter(|bytes| !bytes.is_empty());
    let bytes = bytes.ok_or_else(|| bad_key(format!("Pubkey \"{text}\" must be a hex string")))?;
    if text.len() != 66 && text.len() != 130 {
        return Err(bad_key(format!(
            "Pubkey \"{text}\" must have a length of either 33 or 65 bytes"
        )));
    }
    let invalid = || bad_key(format!("Pubkey \"{text}\" must be cryptographically valid."));
    secp256k1::PublicKey::from_slice(&bytes).map_err(|_| invalid())?;
    Ok(bytes)
}

pub(super) const DERIVEADDRESSES: Call = |node, args, out| {
    let text = args.string(0)?;
    if !text.contains('#') {
        return Err(bad_key("Missing checksum"));
    }
    let all = Descriptor::parse(&node.rpc.params, &text).map_err(bad_key)?;
    let is_range = all.iter().any(Descriptor::is_range);
    let (low, high) = match args.value(1) {
        Some(_) if !is_range => {
            return Err(bad("Range should not be specified for an un-ranged descriptor"));
        }
        Some(range) => parse_range(range)?,
        None if is_range => {
            return Err(bad("Range must be specified for a ranged descriptor"));
        }
        None => (0, 0),
    };
    let mut lists = Vec::new();
    for one in &all {
        let mut list = Vec::new();
        for position in low..=high {
            let expanded = one
                .expand(&node.rpc.params, position)
                .map_err(|NeedsPrivateKey| bad_key("Cannot derive script without private keys"))?;
            let is_combo = expanded.len() > 1;
            for script in expanded.into_iter().map(|one| one.script) {
                let kind = OutputKind::of(&script, node.rpc.params.cash.is_some());
                // A bare key has no address; `combo()` adds others.
                if !(is_combo && matches!(kind, OutputKind::PubKey(_))) {
                    list.push(address_of(&node.rpc.params, &script)?);
                }
            }
        }
        lists.push(list);
    }
    let json = Json::new(out);
    if let [list] = &lists[..] {
        write_texts(json, list);
    } else {
        let mut outer = json.array();
        for list in &lists {
            write_texts(outer.item(), list);
        }
    }
    Ok(())
};

fn write_texts(json: Json<'_>, texts: &[String]) {
    json.list(texts, |text, json| json.string(text));
}

fn address_of(params: &ChainParams, script: &[u8]) -> Result<String, RpcError> {
    super::script::address_of(params, script)
        .ok_or_else(|| bad_key("Descriptor does not have a corresponding address"))
}

/// Core's `MAX_PUBKEYS_PER_MULTISIG`.
const KEYS_MAX: usize = MAX_MULTISIG_KEYS as usize;
