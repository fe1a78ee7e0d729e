//! RPC of partially signed transactions (BIP174, BIP370), as in Bitcoin Core without a wallet. Miniscript-only
//! scripts and `MuSig2` keys are passed through and not signed.

mod analyse;
mod data;
mod fields;
mod format;
mod process;
mod show;
mod solve;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use assay_wire::{Encoding, Transaction};

use super::args::{self, Args};
use super::method::Call;
use super::raw;
use super::sign::Unlocking;
use super::sign_raw::serialise;
use super::signing_data::Provider;
use super::{Rpc, bad, undecodable};
use crate::jsonrpc::{Code, Json, RpcError, Value};

pub(super) use self::analyse::ANALYZEPSBT;
use self::fields::{Fields, Scope, input};
use self::format::{Input, Psbt};
pub(super) use self::process::{DESCRIPTORPROCESSPSBT, UTXOUPDATEPSBT};
use self::solve::{Options, Signing, sign_input};

pub(super) const CREATEPSBT: Call = |node, args, out| {
    let tx = Transaction::parse(raw::create(node.rpc, args)?, Encoding::Legacy);
    let tx = tx.map_err(|_| undecodable("TX decode failed"))?;
    let psbt = Psbt::new(&tx, psbt_version(args, 5)?);
    Json::new(out).string(&psbt.encode());
    Ok(())
};

pub(super) const CONVERTTOPSBT: Call = |node, args, out| {
    let permits = args.bool_or(1, false)?;
    let (with, without) = match args.value(2) {
        Some(_) => (args.bool_or(2, true)?, !args.bool_or(2, true)?),
        None => (true, true),
    };
    let tx = args.hex(0).and_then(|hex| raw::parse(&node.rpc.params, &hex, with, without));
    let tx = tx.ok_or_else(|| undecodable("TX decode failed"))?;
    let view = tx.view();
    let is_signed = view.has_witness() || view.inputs().any(|one| !one.script_sig.is_empty());
    if is_signed && !permits {
        let text = "Inputs must not have scriptSigs and scriptWitnesses";
        return Err(undecodable(text));
    }
    let psbt = Psbt::new(&tx, psbt_version(args, 3)?);
    Json::new(out).string(&psbt.encode());
    Ok(())
};

pub(super) const DECODEPSBT: Call = |node, args, out| {
    let psbt = parse(node.rpc, &args.string(0)?)?;
    let mut object = Json::new(out).object();
    show::write(&node.rpc.params, &psbt, &mut object);
    Ok(())
};

pub(super) const COMBINEPSBT: Call = |node, args, out| {
    let all = parse_all(node.rpc, args)?;
    let Some((first, others)) = all.split_first() else {
        return Err(bad("Parameter 'txs' cannot be empty"));
    };
    let mut psbt = first.clone();
    if !others.iter().all(|other| psbt.merge(other)) {
        return Err(bad("PSBTs not compatible (different transactions)"));
    }
    Json::new(out).string(&psbt.encode());
    Ok(())
};

pub(super) const FINALIZEPSBT: Call = |node, args, out| {
    let mut psbt = parse(node.rpc, &args.string(0)?)?;
    let extracts = args.bool_or(1, true)?;
    let tx = finalize(&mut psbt);
    let mut object = Json::new(out).object();
    match tx.as_ref().filter(|_| extracts) {
        Some(tx) => object.key("hex").hex(tx),
        None => object.key("psbt").string(&psbt.encode()),
    }
    object.key("complete").bool(tx.is_some());
    Ok(())
};

pub(super) const JOINPSBTS: Call = |node, args, out| {
    let given = args.value(0).and_then(Value::elements).unwrap_or_default();
    if given.len() <= 1 {
        return Err(bad("At least two PSBTs are required to join PSBTs."));
    }
    let psbt = join(&parse_all(node.rpc, args)?)?;
    Json::new(out).string(&psbt.encode());
    Ok(())
};

fn parse(rpc: &Rpc, text: &str) -> Result<Psbt, RpcError> {
    if rpc.params.cash.is_some() {
        let text = "Partially signed transactions are not supported on chains of Bitcoin Cash";
        return Err(RpcError::new(Code::Misc, text));
    }
    Psbt::decode(text).map_err(|text| undecodable(format!("TX decode failed {text}")))
}

fn parse_all(rpc: &Rpc, args: &Args<'_>) -> Result<Vec<Psbt>, RpcError> {
    let given = args.value(0).and_then(Value::elements).unwrap_or_default();
    given.into_iter().map(|text| parse(rpc, &args::string_of(text)?)).collect()
}

fn psbt_version(args: &Args<'_>, index: usize) -> Result<u32, RpcError> {
    match args.integer_or(index, 0)? {
        version @ (0 | 2) => Ok(version),
        _ => Err(bad("The PSBT version can only be 2 or 0")),
    }
}

/// Finalizes all inputs; returns the transaction if complete.
fn finalize(psbt: &mut Psbt) -> Option<Vec<u8>> {
    let signing = Signing::new(psbt)?;
    let provider = Provider::default();
    let mut is_complete = true;
    for index in 0..psbt.inputs.len() {
        let sighash = psbt.inputs[index].sighash().map(|sighash| sighash as u8);
        let options = Options { sighash, finalize: true, is_blank: false };
        is_complete &= sign_input(&provider, psbt, index, &signing, options).0.is_ok();
    }
    is_complete.then(|| extract(psbt, &signing))
}

/// Transaction with its final unlocking data.
fn extract(psbt: &Psbt, signing: &Signing) -> Vec<u8> {
    let unlocking = |one: &Input| Unlocking {
        script_sig: one.final_script_sig().to_vec(),
        witness: one.final_witness(),
    };
    serialise(&signing.tx, &psbt.inputs.iter().map(unlocking).collect::<Vec<_>>())
}

fn join(all: &[Psbt]) -> Result<Psbt, RpcError> {
    if all.iter().any(|psbt| psbt.version != 0) {
        return Err(bad("joinpsbts only operates on version 0 PSBTs"));
    }
    let lock_times = all.iter().map(|psbt| psbt.fallback_locktime.unwrap_or(0));
    let mut out = Psbt {
        version: 0,
        tx_version: all.iter().map(|psbt| psbt.tx_version).fold(1, u32::max),
        fallback_locktime: lock_times.min(),
        modifiable: None,
        fields: Fields::default(),
        inputs: Vec::new(),
        outputs: Vec::new(),
    };
    let mut seen = HashSet::new();
    for psbt in all {
        for one in &psbt.inputs {
            if !seen.insert(one.prevout) {
                let prevout = one.prevout;
                return Err(bad(format!(
                    "Input {}:{} exists in multiple PSBTs",
                    prevout.txid, prevout.vout
                )));
            }
            let mut one = one.clone();
            let signatures = [input::PARTIAL_SIG, input::SCRIPT_SIG, input::SCRIPT_WITNESS];
            for kind in signatures {
                one.fields.remove(kind);
            }
            out.inputs.push(one);
        }
        out.outputs.extend(psbt.outputs.iter().cloned());
        for (key, value) in psbt.fields.unknown() {
            out.fields.add(Scope::Global, key.to_vec(), value.to_vec());
        }
    }
    // Extended keys are omitted, as in Core.
    shuffle(&mut out.inputs)?;
    shuffle(&mut out.outputs)?;
    Ok(out)
}

fn shuffle<T>(list: &mut [T]) -> Result<(), RpcError> {
    for end in (2..=list.len()).rev() {
        let mut bytes = [0; 8];
        getrandom::fill(&mut bytes).map_err(|_| bad("no random bytes"))?;
        // The modulo bias is below 2^-32 for any list that fits a request.
        list.swap(end - 1, (u64::from_le_bytes(bytes) % end as u64) as usize);
    }
    Ok(())
}

/// Parses, formats, finalizes and serializes a PSBT.
///
/// # Panics
/// If the round trip changes it.
#[cfg(fuzzing)]
pub fn fuzz(raw: &[u8]) {
    let Ok(mut psbt) = Psbt::from_bytes(raw) else { return };
    let written = psbt.to_bytes();
    let again = Psbt::from_bytes(&written).expect("what was written is read");
    assert_eq!(again.to_bytes(), written);
    let params = assay_consensus::params::ChainParams::by_name("main").expect("it is built in");
    let mut out = Vec::new();
    let mut object = Json::new(&mut out).object();
    show::write(&params, &psbt, &mut object);
    object.end();
    let _ = finalize(&mut psbt);
}
