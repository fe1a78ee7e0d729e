//! A PSBT as JSON (Core `rpc/rawtransaction.cpp`, `decodepsbt`).

use std::fmt::Write as _;

use assay_consensus::amount::money_range;
use assay_consensus::params::ChainParams;

use super::fields::{
    Fields, PROPRIETARY, XPUB_BYTES, global, input, output, proprietary, read_tree,
    split_tap_origin,
};
use super::format::{Input, Output, Psbt};
use crate::jsonrpc::{Array, Object};
use crate::rpc::address::base58_check_encode;
use crate::rpc::script::{asm, kind_of, sighash_name, write_script_pubkey, write_script_sig};
use crate::rpc::tx_json::{Spent, write_tx_members};

pub(super) fn write(params: &ChainParams, psbt: &Psbt, object: &mut Object<'_>) {
    if let Some(tx) = psbt.unsigned_tx().filter(|_| psbt.version < 2) {
        let mut inner = object.key("tx").object();
        write_tx_members(params, tx.view(), Spent::Unknown, &mut inner);
    }
    let mut xpubs = object.key("global_xpubs").array();
    for (xpub, origin) in psbt.fields.of(global::XPUB).filter(|(xpub, _)| xpub.len() == XPUB_BYTES)
    {
        let mut one = xpubs.item().object();
        one.key("xpub").string(&base58_check_encode(xpub));
        write_origin(origin, &mut one);
    }
    xpubs.end();
    if psbt.version >= 2 {
        write_header(psbt, object);
    }
    object.key("psbt_version").int(psbt.version);
    write_proprietary(&psbt.fields, object);
    write_unknown(&psbt.fields, object);
    let mut total = Some(0);
    let mut inputs = object.key("inputs").array();
    for one in &psbt.inputs {
        let mut inner = inputs.item().object();
        let value = write_input(params, psbt, one, &mut inner);
        inner.end();
        total = total.zip(value).and_then(|(total, value)| sum(total, value));
    }
    inputs.end();
    let mut paid = Some(0);
    let mut outputs = object.key("outputs").array();
    for one in &psbt.outputs {
        let mut inner = outputs.item().object();
        write_output(params, psbt, one, &mut inner);
        inner.end();
        paid = paid.and_then(|paid| sum(paid, one.value));
    }
    outputs.end();
    if let Some((total, paid)) = total.zip(paid) {
        object.key("fee").amount(total - paid);
    }
}

/// Sum of two amounts if both are in range.
fn sum(total: i64, value: i64) -> Option<i64> {
    let sum = money_range(value).then(|| total + value);
    sum.filter(|sum| money_range(*sum))
}

fn write_header(psbt: &Psbt, object: &mut Object<'_>) {
    object.key("tx_version").int(psbt.tx_version);
    if let Some(lock_time) = psbt.fallback_locktime {
        object.key("fallback_locktime").int(lock_time);
    }
    object.key("input_count").count(psbt.inputs.len());
    object.key("output_count").count(psbt.outputs.len());
    if let Some(flags) = psbt.modifiable {
        object.key("inputs_modifiable").bool(flags & 1 != 0);
        object.key("outputs_modifiable").bool(flags & 2 != 0);
        object.key("has_sighash_single").bool(flags & 4 != 0);
    }
}

/// Writes an input; returns the value of the spent output, if known.
fn write_input(
    params: &ChainParams,
    psbt: &Psbt,
    one: &Input,
    object: &mut Object<'_>,
) -> Option<i64> {
    let fields = &one.fields;
    let mut value = None;
    if let Some(spent) = one.witness_utxo() {
        let mut utxo = object.key("witness_utxo").object();
        utxo.key("amount").amount(spent.value);
        let mut script = utxo.key("scriptPubKey").object();
        write_script_pubkey(params, &spent.script, &mut script);
        script.end();
        utxo.end();
        value = Some(spent.value);
    }
    if let Some(tx) = one.previous_tx() {
        let mut inner = object.key("non_witness_utxo").object();
        write_tx_members(params, tx.view(), Spent::Unknown, &mut inner);
        inner.end();
        value = one.spent().map(|spent| spent.value);
    }
    write_pairs(fields, input::PARTIAL_SIG, "partial_signatures", object);
    if let Some(sighash) = one.sighash() {
        object.key("sighash").string(sighash_name(sighash as u8, false).unwrap_or_default());
    }
    write_scripts(params, fields, [input::REDEEM_SCRIPT, input::WITNESS_SCRIPT], object);
    write_derivations(fields, input::BIP32_DERIVATION, object);
    if fields.has(input::SCRIPT_SIG) {
        write_script_sig(params, one.final_script_sig(), object.key("final_scriptSig"));
    }
    if fields.has(input::SCRIPT_WITNESS) {
        let mut items = object.key("final_scriptwitness").array();
        one.final_witness().iter().for_each(|item| items.item().hex(item));
    }
    for (kind, name) in [
        (input::RIPEMD160, "ripemd160_preimages"),
        (input::SHA256, "sha256_preimages"),
        (input::HASH160, "hash160_preimages"),
        (input::HASH256, "hash256_preimages"),
    ] {
        write_pairs(fields, kind, name, object);
    }
    if psbt.version >= 2 {
        object.key("previous_txid").text(one.prevout.txid);
        object.key("previous_vout").int(one.prevout.vout);
        for (name, number) in [
            ("sequence", one.sequence),
            ("time_locktime", one.time_locktime),
            ("height_locktime", one.height_locktime),
        ] {
            if let Some(number) = number {
                object.key(name).int(number);
            }
        }
    }
    write_taproot_input(fields, object);
    write_participants(fields, input::MUSIG2_PARTICIPANTS, object);
    for (kind, name, member) in [
        (input::MUSIG2_PUB_NONCE, "musig2_pubnonces", "pubnonce"),
        (input::MUSIG2_PARTIAL_SIG, "musig2_partial_sigs", "partial_sig"),
    ] {
        list(fields, kind, name, object, |key, value, item| {
            item.key("participant_pubkey").hex(&key[..33]);
            item.key("aggregate_pubkey").hex(&key[33..66]);
            if key[66..].iter().any(|byte| *byte != 0) {
                item.key("leaf_hash").hex(&key[66..]);
            }
            item.key(member).hex(value);
        });
    }
    write_rest(fields, object);
    value
}

fn write_taproot_input(fields: &Fields, object: &mut Object<'_>) {
    if let Some(signature) = fields.get(input::TAP_KEY_SIG) {
        object.key("taproot_key_path_sig").hex(signature);
    }
    list(fields, input::TAP_SCRIPT_SIG, "taproot_script_path_sigs", object, |key, value, item| {
        item.key("pubkey").hex(&key[..32]);
        item.key("leaf_hash").hex(&key[32..]);
        item.key("sig").hex(value);
    });
    if fields.has(input::TAP_LEAF_SCRIPT) {
        let mut scripts = object.key("taproot_scripts").array();
        let leaves: Vec<_> = fields.of(input::TAP_LEAF_SCRIPT).collect();
        for same in leaves.chunk_by(|one, next| one.1 == next.1) {
            let (version, script) = same[0].1.split_last().unwrap_or((&0, &[]));
            let mut item = scripts.item().object();
            item.key("script").hex(script);
            item.key("leaf_ver").int(*version);
            item.key("control_blocks").list(same, |(control, _), json| json.hex(control));
        }
    }
    write_tap_derivations(fields, input::TAP_BIP32_DERIVATION, object);
    for (kind, name) in [
        (input::TAP_INTERNAL_KEY, "taproot_internal_key"),
        (input::TAP_MERKLE_ROOT, "taproot_merkle_root"),
    ] {
        if let Some(value) = fields.get(kind) {
            object.key(name).hex(value);
        }
    }
}

fn write_output(params: &ChainParams, psbt: &Psbt, one: &Output, object: &mut Object<'_>) {
    let fields = &one.fields;
    write_scripts(params, fields, [output::REDEEM_SCRIPT, output::WITNESS_SCRIPT], object);
    write_derivations(fields, output::BIP32_DERIVATION, object);
    if psbt.version >= 2 {
        object.key("amount").amount(one.value);
        let mut script = object.key("script").object();
        write_script_pubkey(params, &one.script, &mut script);
    }
    if let Some(key) = fields.get(output::TAP_INTERNAL_KEY) {
        object.key("taproot_internal_key").hex(key);
    }
    if let Some(tree) = fields.get(output::TAP_TREE) {
        object.key("taproot_tree").objects(
            read_tree(tree).unwrap_or_default(),
            |(depth, version, script), leaf| {
                leaf.key("depth").int(depth);
                leaf.key("leaf_ver").int(version);
                leaf.key("script").hex(&script);
            },
        );
    }
    write_tap_derivations(fields, output::TAP_BIP32_DERIVATION, object);
    write_participants(fields, output::MUSIG2_PARTICIPANTS, object);
    write_rest(fields, object);
}

/// Array of objects, one per record of a type; omitted if empty.
fn list(
    fields: &Fields,
    kind: u8,
    name: &str,
    object: &mut Object<'_>,
    write: impl Fn(&[u8], &[u8], &mut Object<'_>),
) {
    if !fields.has(kind) {
        return;
    }
    let mut items: Array<'_> = object.key(name).array();
    for (key, value) in fields.of(kind) {
        let mut item = items.item().object();
        write(key, value, &mut item);
    }
}

/// Object with a member per record of a type; omitted if empty.
fn write_pairs(fields: &Fields, kind: u8, name: &str, object: &mut Object<'_>) {
    if !fields.has(kind) {
        return;
    }
    let mut pairs = object.key(name).object();
    for (key, value) in fields.of(kind) {
        pairs.key(faster_hex::hex_string(key)).hex(value);
    }
}

fn write_scripts(params: &ChainParams, fields: &Fields, kinds: [u8; 2], object: &mut Object<'_>) {
    for (kind, name) in kinds.into_iter().zip(["redeem_script", "witness_script"]) {
        if let Some(script) = fields.get(kind) {
            let mut inner = object.key(name).object();
            inner.key("asm").string(&asm(params, script, false));
            inner.key("hex").hex(script);
            inner.key("type").string(kind_of(params, script));
        }
    }
}

fn write_derivations(fields: &Fields, kind: u8, object: &mut Object<'_>) {
    list(fields, kind, "bip32_derivs", object, |key, origin, item| {
        item.key("pubkey").hex(key);
        write_origin(origin, item);
    });
}

fn write_tap_derivations(fields: &Fields, kind: u8, object: &mut Object<'_>) {
    list(fields, kind, "taproot_bip32_derivs", object, |key, value, item| {
        let (leaves, origin) = split_tap_origin(value);
        item.key("pubkey").hex(key);
        write_origin(origin, item);
        item.key("leaf_hashes").list(&leaves, |leaf, json| json.hex(leaf));
    });
}

fn write_participants(fields: &Fields, kind: u8, object: &mut Object<'_>) {
    list(fields, kind, "musig2_participant_pubkeys", object, |key, value, item| {
        item.key("aggregate_pubkey").hex(key);
        item.key("participant_pubkeys").list(value.chunks(33), |key, json| json.hex(key));
    });
}

fn write_origin(origin: &[u8], object: &mut Object<'_>) {
    let (fingerprint, steps) = origin.split_at(4.min(origin.len()));
    object.key("master_fingerprint").hex(fingerprint);
    let mut path = "m".to_owned();
    for step in steps.chunks_exact(4) {
        let step = u32::from_le_bytes(step.try_into().unwrap_or_default());
        let mark = if step >> 31 == 1 { "h" } else { "" };
        write!(path, "/{}{mark}", step & 0x7fff_ffff).expect("writing to a string does not fail");
    }
    object.key("path").string(&path);
}

/// Proprietary and unknown records of an input or output, if any.
fn write_rest(fields: &Fields, object: &mut Object<'_>) {
    if fields.has(PROPRIETARY) {
        write_proprietary(fields, object);
    }
    if fields.unknown().next().is_some() {
        write_unknown(fields, object);
    }
}

fn write_proprietary(fields: &Fields, object: &mut Object<'_>) {
    let mut items = object.key("proprietary").array();
    for (rest, value) in fields.of(PROPRIETARY) {
        let key = [&[PROPRIETARY], rest].concat();
        let (identifier, subtype) = proprietary(&key).unwrap_or_default();
        let mut item = items.item().object();
        item.key("identifier").hex(&identifier);
        item.key("subtype").int(subtype);
        item.key("key").hex(&key);
        item.key("value").hex(value);
    }
}

fn write_unknown(fields: &Fields, object: &mut Object<'_>) {
    let mut pairs = object.key("unknown").object();
    for (key, value) in fields.unknown() {
        pairs.key(faster_hex::hex_string(key)).hex(value);
    }
}
