//! `combinerawtransaction`: merges partially signed variants of a transaction.

use std::collections::HashMap;

use assay_consensus::params::ChainParams;
use assay_consensus::script::opcode::Instructions;
use assay_consensus::script::{TxContext, verify_input};
use assay_engine::ImmediateChecker;
use assay_wire::{OutPoint, Transaction, TxOut};

use super::args;
use super::method::Call;
use super::raw::parse;
use super::sign::{HashType, Unlocking, standard, unlock};
use super::sign_raw::{Spent, find, serialise};
use super::signing_data::Provider;
use super::{bad, undecodable};
use crate::jsonrpc::{Code, Json, RpcError, Value};

pub(super) const COMBINERAWTRANSACTION: Call = |node, args, out| {
    let given = args.value(0).and_then(Value::elements).unwrap_or_default();
    if given.len() < 2 {
        return Err(undecodable("Missing transactions. At least two transactions required."));
    }
    let mut variants = Vec::with_capacity(given.len());
    for (index, value) in given.into_iter().enumerate() {
        args::string_of(value)?;
        let tx = value.hex().and_then(|raw| parse(&node.rpc.params, &raw, true, true));
        variants.push(tx.ok_or_else(|| {
            undecodable(format!(
                "TX decode failed for tx {index}. Make sure the tx has at least one input."
            ))
        })?);
    }
    let unsigned = unsigned(&variants[0]);
    if let Some(other) = variants.iter().position(|tx| self::unsigned(tx) != unsigned) {
        let number = other + 1;
        return Err(bad(format!(
            "Transaction number {number} not compatible with first transaction"
        )));
    }
    let spent = find(node, &variants[0])?;
    let merged = merge(&node.rpc.params, &variants, &spent)?;
    Json::new(out).hex(&serialise(&variants[0], &merged));
    Ok(())
};

/// Transaction without script sigs and witnesses.
fn unsigned(tx: &Transaction) -> Vec<u8> {
    let blank: Vec<_> = tx.view().inputs().map(|_| Unlocking::default()).collect();
    serialise(tx, &blank)
}

/// For each input the complete unlocking data of one variant, or the combination of all.
fn merge(
    params: &ChainParams,
    variants: &[Transaction],
    spent: &HashMap<OutPoint, Spent>,
) -> Result<Vec<Unlocking>, RpcError> {
    let missing = || RpcError::new(Code::Verify, "Input not found or already spent");
    let is_cash = params.cash.is_some();
    let mut outputs = Vec::new();
    for input in variants[0].view().inputs() {
        let one = spent.get(&input.prevout).ok_or_else(missing)?;
        outputs.push(TxOut { value: one.value, script_pubkey: &one.script });
    }
    let contexts: Vec<_> = variants.iter().map(|tx| TxContext::new(tx.view(), &outputs)).collect();
    let unlocked = |input: usize| {
        let is_done = |context: &&TxContext<'_>| {
            verify_input(context, input, standard(is_cash), &mut ImmediateChecker).is_ok()
        };
        if let Some(done) = contexts.iter().position(|context| is_done(&context)) {
            return unlocking(&variants[done], input);
        }
        let all: Vec<_> = variants.iter().map(|tx| unlocking(tx, input)).collect();
        let (provider, together) = gather(all);
        unlock(&provider, &contexts[0], true, input, HashType::DEFAULT, is_cash, &together)
    };
    Ok((0..outputs.len()).map(unlocked).collect())
}

fn unlocking(tx: &Transaction, input: usize) -> Unlocking {
    let view = tx.view();
    Unlocking {
        script_sig: view.input(input).script_sig.to_vec(),
        witness: view.witness(input).iter().map(<[u8]>::to_vec).collect(),
    }
}

/// Items of several unlocking data, and their last items, which may be scripts.
fn gather(all: Vec<Unlocking>) -> (Provider, Unlocking) {
    let (mut provider, mut together) = (Provider::default(), Unlocking::default());
    for one in all {
        let pushes = Instructions::new(&one.script_sig).map_while(|push| push);
        let last_push = pushes.last().map(|push| push.data.to_vec());
        for script in last_push.into_iter().chain(one.witness.last().cloned()) {
            provider.add_script(script);
        }
        together.script_sig.extend(one.script_sig);
        together.witness.extend(one.witness);
    }
    (provider, together)
}
