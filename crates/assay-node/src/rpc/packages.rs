//! `testmempoolaccept` and `submitpackage` (Core `rpc/mempool.cpp`).

use std::collections::BTreeSet;

use assay_engine::{
    PackageFault, PackageFees, PackageOutcome, PackageReject, PackageTx, PackageVerdict, TxReject,
    TxRejectCode, fee_at, is_child_with_parents_tree,
};
use assay_wire::{Transaction, Txid};

use super::args::{Args, wrong_type};
use super::method::Call;
use super::script::burns;
use super::submit::{burns_too_much, details, max_fee_rate};
use super::{Rpc, with_details};
use crate::jsonrpc::{Code, Json, Object, RpcError, Value};

pub(super) const TESTMEMPOOLACCEPT: Call = |node, args, out| {
    let texts = elements(args)?;
    let max_fee_rate = max_fee_rate(args)?;
    let txs = texts.iter().map(|text| decode(node.rpc, *text)).collect::<Result<Vec<_>, _>>()?;
    let outcome =
        node.engine.mempool().test_package(raws(&txs)).map_err(|reject| undecodable(&reject))?;
    let package_error = outcome.reject.as_ref().filter(|one| one.fault == PackageFault::Policy);
    let is_cash = node.rpc.params.cash.is_some();
    let mut stopped = false;
    Json::new(out).objects(txs.iter().zip(&outcome.txs), |(tx, one), object| {
        object.key("txid").text(one.txid);
        object.key("wtxid").text(one.wtxid);
        if let Some(error) = package_error {
            object.key("package-error").string(&package_details(error));
        }
        let is_dear = |fees: &PackageFees| {
            max_fee_rate
                .is_some_and(|rate| fees.fee_sat > fee_at(rate, u64::from(fees.vsize), is_cash))
        };
        // After a transaction above the fee limit the rest is undetermined, since its ancestors would not be sent.
        match &one.verdict {
            PackageVerdict::Admitted(fees) if !stopped && is_dear(fees) => {
                object.key("allowed").bool(false);
                object.key("reject-reason").string("max-fee-exceeded");
                stopped = true;
            }
            PackageVerdict::Admitted(fees) if !stopped => {
                object.key("allowed").bool(true);
                write_size(fees.vsize, tx, object);
                write_fees(fees, object);
            }
            PackageVerdict::Rejected(reject) if !stopped => write_reject(reject, object),
            _ => {}
        }
    });
    Ok(())
};

fn write_reject(reject: &TxReject, object: &mut Object<'_>) {
    object.key("allowed").bool(false);
    if reject.code == TxRejectCode::MissingInputs {
        object.key("reject-reason").string("missing-inputs");
    } else {
        object.key("reject-reason").string(&reject.reason);
        object.key("reject-details").string(&details(reject));
    }
}

pub(super) const SUBMITPACKAGE: Call = |node, args, out| {
    if node.rpc.params.cash.is_some() {
        return Err(RpcError::new(Code::Misc, "Packages are not known on this chain"));
    }
    let texts = elements(args)?;
    let max_fee_rate = max_fee_rate(args)?;
    let max_burn = args.amount(2)?.unwrap_or(0);
    let mut txs = Vec::with_capacity(texts.len());
    for text in texts {
        let tx = decode(node.rpc, text)?;
        let burnt = |script: &[u8], value| value > max_burn && burns(&node.rpc.params, script);
        if tx.view().outputs().any(|output| burnt(output.script_pubkey, output.value)) {
            return Err(burns_too_much());
        }
        txs.push(tx);
    }
    if txs.len() > 1 && !is_child_with_parents_tree(&txs) {
        return Err(RpcError::new(
            Code::Verify,
            "package topology disallowed. not child-with-parents or parents depend on each other.",
        ));
    }
    let outcome = node.engine.mempool().submit_package(raws(&txs), max_fee_rate);
    let outcome = outcome.map_err(|reject| undecodable(&reject))?;
    node.announce_local();
    write_outcome(&txs, &outcome, out);
    Ok(())
};

fn write_outcome(txs: &[Transaction], outcome: &PackageOutcome, out: &mut Vec<u8>) {
    let message = outcome.reject.as_ref().map(package_details);
    let mut object = Json::new(out).object();
    object.key("package_msg").string(message.as_deref().unwrap_or("success"));
    let mut results = object.key("tx-results").object();
    let mut replaced: BTreeSet<Txid> = BTreeSet::new();
    for (tx, one) in txs.iter().zip(&outcome.txs) {
        let mut result = results.key(one.wtxid).object();
        write_result(tx, one, &mut result);
        result.end();
        if let PackageVerdict::Admitted(fees) = &one.verdict {
            replaced.extend(&fees.replaced);
        }
    }
    results.end();
    object.key("replaced-transactions").list(replaced, |txid, json| json.text(txid));
}

fn write_result(tx: &Transaction, one: &PackageTx, object: &mut Object<'_>) {
    object.key("txid").text(one.txid);
    match &one.verdict {
        PackageVerdict::Admitted(fees) => {
            write_size(fees.vsize, tx, object);
            write_fees(fees, object);
        }
        PackageVerdict::Known { vsize, fee_sat } => {
            write_size(*vsize, tx, object);
            let mut fees = object.key("fees").object();
            fees.key("base").amount(*fee_sat);
        }
        PackageVerdict::OtherWitness(wtxid) => {
            object.key("other-wtxid").text(wtxid);
        }
        PackageVerdict::Rejected(reject) => {
            object.key("error").string(&details(reject));
        }
        PackageVerdict::NotValidated => {
            object.key("error").string("package-not-validated");
        }
    }
}

fn write_size(vsize: u32, tx: &Transaction, object: &mut Object<'_>) {
    object.key("vsize_adjusted").int(vsize);
    object.key("vsize").int(vsize);
    object.key("vsize_bip141").count(tx.view().weight().div_ceil(4));
}

fn write_fees(paid: &PackageFees, object: &mut Object<'_>) {
    let mut fees = object.key("fees").object();
    fees.key("base").amount(paid.fee_sat);
    fees.key("effective-feerate").amount(paid.effective_sat_per_kvb());
    fees.key("effective-includes").list(&paid.effective_of, |wtxid, json| json.text(wtxid));
}

fn package_details(reject: &PackageReject) -> String {
    with_details(&reject.reason, &reject.debug)
}

fn elements<'a>(args: &Args<'a>) -> Result<Vec<Value<'a>>, RpcError> {
    let texts = args.value(0).and_then(Value::elements).unwrap_or_default();
    if (1..=PACKAGE_MAX).contains(&texts.len()) {
        return Ok(texts);
    }
    let text = format!("Array must contain between 1 and {PACKAGE_MAX} transactions.");
    Err(RpcError::new(Code::InvalidParameter, text))
}

fn decode(rpc: &Rpc, text: Value<'_>) -> Result<Transaction, RpcError> {
    if text.type_name() != "string" {
        return Err(wrong_type(Some(text), "string"));
    }
    let parse = |raw| Transaction::parse(raw, rpc.params.encoding).ok();
    text.hex().and_then(parse).ok_or_else(|| {
        let shown: String = text.string().unwrap_or_default().chars().take(SHOWN_MAX).collect();
        decode_failed(&shown)
    })
}

fn decode_failed(shown: &str) -> RpcError {
    let text = format!("TX decode failed: {shown} Make sure the tx has at least one input.");
    RpcError::new(Code::Deserialization, text)
}

/// Unreachable: the transaction was decoded before.
fn undecodable(reject: &TxReject) -> RpcError {
    decode_failed(&reject.debug)
}

fn raws(txs: &[Transaction]) -> Vec<Vec<u8>> {
    txs.iter().map(|tx| tx.bytes().to_vec()).collect()
}

/// `policy/packages.h`, `MAX_PACKAGE_COUNT`.
const PACKAGE_MAX: usize = 25;
/// Maximum length of undecodable data in an error: more than any standard transaction.
const SHOWN_MAX: usize = 1 << 20;
