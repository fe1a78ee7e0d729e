//! `signrawtransactionwithkey`.

use std::collections::HashMap;

use assay_consensus::amount::MAX_MONEY;
use assay_consensus::params::ChainParams;
use assay_consensus::script::opcode::{is_p2sh, witness_program};
use assay_consensus::script::{OutputKind, ScriptError, TxContext, verify_input};
use assay_engine::ImmediateChecker;
use assay_hash::{hash160, sha256};
use assay_wire::{OutPoint, Transaction, TxBuilder, TxOut};

use super::args;
use super::descriptor::parse_secret;
use super::lock::witness;
use super::method::Call;
use super::raw::parse;
use super::script::asm;
use super::sign::{HashType, Unlocking, standard, unlock};
use super::signing_data::Provider;
use super::{Node, TX_UNDECODABLE, bad, bad_key, undecodable};
use crate::jsonrpc::{Json, Object, RpcError, Value};

#[derive(Clone)]
pub(super) struct Spent {
    pub(super) value: i64,
    pub(super) script: Vec<u8>,
}

/// Spent output given by the caller.
struct Given {
    outpoint: OutPoint,
    spent: Spent,
}

pub(super) const SIGNRAWTRANSACTIONWITHKEY: Call = |node, args, out| {
    let tx = args.hex(0).and_then(|raw| parse(&node.rpc.params, &raw, true, true));
    let tx = tx.ok_or_else(|| undecodable(TX_UNDECODABLE))?;
    let mut provider = Provider::default();
    for key in args.value(1).and_then(Value::elements).unwrap_or_default() {
        let secret = parse_secret(&node.rpc.params, &args::string_of(key)?);
        provider.add_key(secret.ok_or_else(|| bad_key("Invalid private key"))?);
    }
    let mut given = Vec::new();
    for value in args.value(2).and_then(Value::elements).unwrap_or_default() {
        given.push(previous(value, &mut provider)?);
    }
    let hash_type = match args.optional_string(3)? {
        None => HashType::DEFAULT,
        Some(text) => HashType::parse(&text)
            .ok_or_else(|| bad(format!("'{text}' is not a valid sighash parameter.")))?,
    };
    let mut spent = find(node, &tx)?;
    for Given { outpoint, spent: one } in given {
        if let Some(known) = spent.get(&outpoint).filter(|known| known.script != one.script) {
            let params = &node.rpc.params;
            return Err(undecodable(format!(
                "Previous output scriptPubKey mismatch:\n{}\nvs:\n{}",
                asm(params, &known.script, false),
                asm(params, &one.script, false)
            )));
        }
        spent.insert(outpoint, one);
    }
    write_signed(&node.rpc.params, &tx, &spent, &provider, hash_type, out);
    Ok(())
};

/// Parses the caller's previous output and adds its scripts (Core `rpc/rawtransaction_util.cpp`, `ParsePrevouts`).
fn previous(value: Value<'_>, provider: &mut Provider) -> Result<Given, RpcError> {
    if value.type_name() != "object" {
        return Err(undecodable("expected object with {\"txid'\",\"vout\",\"scriptPubKey\"}"));
    }
    for (name, expected) in [("txid", "string"), ("vout", "number"), ("scriptPubKey", "string")] {
        args::require_member(value, name, expected)?;
    }
    let txid = args::hash_member(value, "txid")?;
    let vout: i32 = args::integer_member(value, "vout")?;
    let vout = u32::try_from(vout).map_err(|_| undecodable("vout cannot be negative"))?;
    let script = args::hex_member(value, "scriptPubKey")?;
    let amount = value.member("amount").map(args::amount_of).transpose()?;
    let is_wsh = matches!(witness_program(&script), Some((0, program)) if program.len() == 32);
    if is_p2sh(&script) || is_wsh {
        let read =
            |name: &str| value.member(name).map(|member| args::hex_of(member, name)).transpose();
        let (redeem, inner) = (read("redeemScript")?, read("witnessScript")?);
        let Some(best) = inner.clone().or_else(|| redeem.clone()) else {
            return Err(bad("Missing redeemScript/witnessScript"));
        };
        let program = witness(0, &sha256(&best));
        let is_other = |redeem: &Vec<u8>| *redeem != best && *redeem != program;
        if inner.is_some() && redeem.as_ref().is_some_and(is_other) {
            return Err(bad("redeemScript does not correspond to witnessScript"));
        }
        let pays_to = |hashed: &[u8]| is_p2sh(&script) && script[2..22] == hash160(hashed);
        if !(pays_to(&best) || pays_to(&program) || is_wsh && script == program) {
            return Err(bad("redeemScript/witnessScript does not match scriptPubKey"));
        }
        provider.add_script(best);
        provider.add_script(program);
    }
    let spent = Spent { value: amount.unwrap_or(MAX_MONEY), script };
    Ok(Given { outpoint: OutPoint { txid, vout }, spent })
}

/// Spent outputs, including those of unconfirmed transactions.
pub(super) fn find(
    node: &Node<'_>,
    tx: &Transaction,
) -> Result<HashMap<OutPoint, Spent>, RpcError> {
    let mut found = HashMap::new();
    for input in tx.view().inputs() {
        let OutPoint { txid, vout } = input.prevout;
        let unconfirmed = node.engine.mempool().tx(&txid).and_then(|tx| {
            let view = tx.view();
            ((vout as usize) < view.output_count()).then(|| {
                let output = view.output(vout as usize);
                Spent { value: output.value, script: output.script_pubkey.to_vec() }
            })
        });
        let spent = if unconfirmed.is_some() {
            unconfirmed
        } else {
            let coin = node.engine.chain().coin(&input.prevout, false)?;
            coin.map(|(coin, _)| Spent { value: coin.value, script: coin.script_pubkey.to_vec() })
        };
        found.extend(spent.map(|spent| (input.prevout, spent)));
    }
    Ok(found)
}

fn write_signed(
    params: &ChainParams,
    tx: &Transaction,
    spent: &HashMap<OutPoint, Spent>,
    provider: &Provider,
    hash_type: HashType,
    out: &mut Vec<u8>,
) {
    let (view, is_cash) = (tx.view(), params.cash.is_some());
    let nothing = Spent { value: 0, script: Vec::new() };
    let all: Vec<&Spent> =
        view.inputs().map(|input| spent.get(&input.prevout).unwrap_or(&nothing)).collect();
    let outputs: Vec<TxOut<'_>> =
        all.iter().map(|one| TxOut { value: one.value, script_pubkey: &one.script }).collect();
    let context = TxContext::new(view, &outputs);
    let knows_all = view.inputs().all(|input| spent.contains_key(&input.prevout));
    let mut unlocked = Vec::with_capacity(all.len());
    for (index, input) in view.inputs().enumerate() {
        let before = Unlocking {
            script_sig: input.script_sig.to_vec(),
            witness: view.witness(index).iter().map(<[u8]>::to_vec).collect(),
        };
        let is_known = spent.contains_key(&input.prevout);
        let has_output = !hash_type.is_single() || index < view.output_count();
        let is_done =
            || verify_input(&context, index, standard(is_cash), &mut ImmediateChecker).is_ok();
        unlocked.push(if is_known && has_output && !is_done() {
            let made = unlock(provider, &context, knows_all, index, hash_type, is_cash, &before);
            // As in Core, an unsolved taproot input keeps its witness.
            let kind = OutputKind::of(&all[index].script, is_cash);
            let keeps = matches!(kind, OutputKind::Taproot(_)) && made.witness.is_empty();
            if keeps { Unlocking { witness: before.witness, ..made } } else { made }
        } else {
            before
        });
    }
    let raw = serialise(tx, &unlocked);
    let signed = Transaction::parse(raw.clone(), params.encoding).ok();
    let errors =
        signed.as_ref().map_or_else(Vec::new, |signed| faults(signed, spent, &all, is_cash));
    let mut object = Json::new(out).object();
    object.key("hex").hex(&raw);
    object.key("complete").bool(errors.is_empty());
    if !errors.is_empty() {
        object.key("errors").objects(&errors, |(index, error), entry| {
            write_fault(signed.as_ref().unwrap_or(tx), *index, error, entry);
        });
    }
}

/// Inputs that are not unlocked, with the reason in Core's wording.
fn faults(
    tx: &Transaction,
    spent: &HashMap<OutPoint, Spent>,
    all: &[&Spent],
    is_cash: bool,
) -> Vec<(usize, String)> {
    let view = tx.view();
    let outputs: Vec<TxOut<'_>> =
        all.iter().map(|one| TxOut { value: one.value, script_pubkey: &one.script }).collect();
    let context = TxContext::new(view, &outputs);
    let mut out = Vec::new();
    for (index, input) in view.inputs().enumerate() {
        if !spent.contains_key(&input.prevout) {
            out.push((index, "Input not found or already spent".to_owned()));
            continue;
        }
        if all[index].value == MAX_MONEY && !view.witness(index).is_empty() {
            out.push((index, "Missing amount".to_owned()));
            continue;
        }
        let verdict = verify_input(&context, index, standard(is_cash), &mut ImmediateChecker);
        let text = match verdict {
            Ok(_) => continue,
            Err(ScriptError::InvalidStackOperation) => {
                "Unable to sign input, invalid stack size (possibly missing key)".to_owned()
            }
            Err(ScriptError::SigNullFail) => {
                "CHECK(MULTI)SIG failing with non-zero signature (possibly need more signatures)"
                    .to_owned()
            }
            Err(error) => error.to_string(),
        };
        out.push((index, text));
    }
    out
}

fn write_fault(tx: &Transaction, index: usize, error: &str, object: &mut Object<'_>) {
    let view = tx.view();
    let input = view.input(index);
    object.key("txid").text(input.prevout.txid);
    object.key("vout").int(input.prevout.vout);
    object.key("witness").list(view.witness(index), |item, json| json.hex(item));
    object.key("scriptSig").hex(input.script_sig);
    object.key("sequence").int(input.sequence);
    object.key("error").string(error);
}

/// Serializes the transaction with other script sigs and witnesses.
pub(super) fn serialise(tx: &Transaction, unlocked: &[Unlocking]) -> Vec<u8> {
    let tx = unlocked.iter().enumerate().fold(TxBuilder::from(tx.view()), |tx, (index, one)| {
        tx.unlock(index, &one.script_sig, &one.witness)
    });
    tx.bytes()
}
