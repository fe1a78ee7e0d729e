//! RPC of raw transactions that needs no chain: create, decode, combine.

use std::collections::HashSet;

use assay_consensus::params::ChainParams;
use assay_consensus::script::opcode::op;
use assay_wire::{Encoding, OutPoint, Transaction, TxBuilder};

use super::args::{self, Args};
use super::decode::Payee;
use super::lock::push;
use super::method::Call;
use super::script::has_valid_ops;
use super::tx_json::{Spent, write_tx_members};
use super::{Rpc, bad, bad_key, undecodable};
use crate::jsonrpc::{Json, RpcError, Value};

pub(super) const DECODERAWTRANSACTION: Call = |node, args, out| {
    let (with, without) = match args.value(1) {
        Some(_) => (args.bool_or(1, true)?, !args.bool_or(1, true)?),
        None => (true, true),
    };
    let raw = args.hex(0).ok_or_else(|| undecodable("TX decode failed"))?;
    let tx = parse(&node.rpc.params, &raw, with, without);
    let tx = tx.ok_or_else(|| undecodable("TX decode failed"))?;
    let mut object = Json::new(out).object();
    write_tx_members(&node.rpc.params, tx.view(), Spent::Unknown, &mut object);
    Ok(())
};

pub(super) const CREATERAWTRANSACTION: Call = |node, args, out| {
    let tx = create(node.rpc, args)?;
    Json::new(out).hex(&tx);
    Ok(())
};

/// Parses a transaction of ambiguous format: with witnesses if its scripts are sane, then without, then any
/// successful parse (Core `core_io.cpp`, `DecodeTx`).
pub(super) fn parse(
    params: &ChainParams,
    raw: &[u8],
    with_witness: bool,
    without: bool,
) -> Option<Transaction> {
    let read = |is_tried: bool, encoding| {
        is_tried.then(|| Transaction::parse(raw.to_vec(), encoding).ok()).flatten()
    };
    let with = read(with_witness && params.encoding == Encoding::Segwit, Encoding::Segwit);
    if let Some(tx) = with.as_ref().filter(|tx| is_sane(tx)) {
        return Some(tx.clone());
    }
    let without = read(without || params.encoding == Encoding::Legacy, Encoding::Legacy);
    if let Some(tx) = without.as_ref().filter(|tx| is_sane(tx)) {
        return Some(tx.clone());
    }
    with.or(without)
}

/// True if all scripts are plausible (`CheckTxScriptsSanity`).
fn is_sane(tx: &Transaction) -> bool {
    let view = tx.view();
    let inputs_fit =
        view.is_coinbase() || view.inputs().all(|input| has_valid_ops(input.script_sig));
    inputs_fit && view.outputs().all(|output| has_valid_ops(output.script_pubkey))
}

/// Serialized unsigned transaction from the first five arguments of `createrawtransaction`.
pub(super) fn create(rpc: &Rpc, args: &Args<'_>) -> Result<Vec<u8>, RpcError> {
    let replaceable = args.value(3).map(|_| args.bool_or(3, true)).transpose()?;
    let lock_time: i64 = args.integer_or(2, 0)?;
    let lock_time =
        u32::try_from(lock_time).map_err(|_| bad("Invalid parameter, locktime out of range"))?;
    let version: u32 = args.integer_or(4, 2)?;
    if !(1..=3).contains(&version) {
        return Err(bad("Invalid parameter, version out of range(1~3)"));
    }
    let inputs = inputs(args.value(0), replaceable, lock_time)?;
    let outputs = outputs(&rpc.params, args.value(1))?;
    let signals = inputs.iter().any(|(_, sequence)| *sequence <= SEQUENCE_REPLACEABLE);
    if replaceable == Some(true) && !inputs.is_empty() && !signals {
        return Err(bad(
            "Invalid parameter combination: Sequence number(s) contradict replaceable option",
        ));
    }
    let mut tx = TxBuilder::new(version.cast_signed()).lock_time(lock_time);
    for (prevout, sequence) in inputs {
        tx = tx.spend(prevout, &[], sequence);
    }
    for (value_sat, script) in outputs {
        tx = tx.output(value_sat, &script);
    }
    Ok(tx.bytes())
}

fn inputs(
    given: Option<Value<'_>>,
    replaceable: Option<bool>,
    lock_time: u32,
) -> Result<Vec<(OutPoint, u32)>, RpcError> {
    let usual = match replaceable {
        None | Some(true) => SEQUENCE_REPLACEABLE,
        Some(false) if lock_time > 0 => u32::MAX - 1,
        Some(false) => u32::MAX,
    };
    let mut out = Vec::new();
    for input in given.and_then(Value::elements).unwrap_or_default() {
        if input.type_name() != "object" {
            return Err(args::wrong_type(Some(input), "object"));
        }
        let txid = args::hash_member(input, "txid")?;
        let vout = input.member("vout").filter(|vout| vout.type_name() == "number");
        let vout = vout.ok_or_else(|| bad("Invalid parameter, missing vout key"))?;
        let vout: i32 = args::integer_of(vout)?;
        let vout =
            u32::try_from(vout).map_err(|_| bad("Invalid parameter, vout cannot be negative"))?;
        let sequence = match input.member("sequence").filter(|one| one.type_name() == "number") {
            None => usual,
            Some(value) => u32::try_from(args::integer_of::<i64>(value)?)
                .map_err(|_| bad("Invalid parameter, sequence number is out of range"))?,
        };
        out.push((OutPoint { txid, vout }, sequence));
    }
    Ok(out)
}

fn outputs(
    params: &ChainParams,
    given: Option<Value<'_>>,
) -> Result<Vec<(i64, Vec<u8>)>, RpcError> {
    let given = given.ok_or_else(|| bad("Invalid parameter, output argument must be non-null"))?;
    let members = match given.type_name() {
        "object" => given.members().unwrap_or_default(),
        "array" => {
            let mut members = Vec::new();
            for pair in given.elements().unwrap_or_default() {
                let pair = pair.members().ok_or_else(|| {
                    bad("Invalid parameter, key-value pair not an object as expected")
                })?;
                let [one] = <[_; 1]>::try_from(pair).map_err(|_| {
                    bad("Invalid parameter, key-value pair must contain exactly one key")
                })?;
                members.push(one);
            }
            members
        }
        _ => return Err(args::wrong_type(Some(given), "array")),
    };
    let mut seen = HashSet::new();
    let mut out = Vec::new();
    for (name, value) in members {
        if name == "data" {
            if !seen.insert(Vec::new()) {
                return Err(bad("Invalid parameter, duplicate key: data"));
            }
            let data = args::hex_of(value, "Data")?;
            let mut script = vec![op::RETURN];
            push(&data, &mut script);
            out.push((0, script));
            continue;
        }
        let payee = Payee::parse(params, &name);
        let amount = args::amount_of(value)?;
        let script =
            payee.map_err(|_| bad_key(format!("Invalid Bitcoin address: {name}")))?.script();
        if !seen.insert(script.clone()) {
            return Err(bad(format!("Invalid parameter, duplicated address: {name}")));
        }
        out.push((amount, script));
    }
    Ok(out)
}

/// Core's `MAX_BIP125_RBF_SEQUENCE`.
const SEQUENCE_REPLACEABLE: u32 = u32::MAX - 2;
