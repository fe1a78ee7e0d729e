//! RPC of mempool ancestors, descendants and clusters.

use std::collections::HashSet;

use assay_engine::{MempoolEntryInfo, MiningChunk};
use assay_wire::{OutPoint, Txid};

use super::args::{self, Args};
use super::mempool::{Relatives, write_entry};
use super::method::Call;
use super::{Node, bad, bad_key};
use crate::jsonrpc::{Array, Code, Json, RpcError, Value};

pub(super) const GETMEMPOOLANCESTORS: Call =
    |node, args, out| relatives(node, args, out, |entry| &entry.depends);

pub(super) const GETMEMPOOLDESCENDANTS: Call =
    |node, args, out| relatives(node, args, out, |entry| &entry.spent_by);

pub(super) const GETMEMPOOLCLUSTER: Call = |node, args, out| {
    let txid = args.txid(0, "txid")?;
    let chunks = node.engine.mempool().cluster(&txid).ok_or_else(not_there)?;
    write_cluster(&chunks, out);
    Ok(())
};

pub(super) const GETMEMPOOLFEERATEDIAGRAM: Call = |node, _, out| {
    let mut list = Json::new(out).array();
    let (mut weight, mut fee_sat) = (0, 0i64);
    let corner = |weight: u64, fee_sat: i64, list: &mut Array<'_>| {
        let mut object = list.item().object();
        object.key("weight").int(weight);
        object.key("fee").amount(fee_sat);
    };
    corner(0, 0, &mut list);
    for chunk in node.engine.mempool().chunks() {
        weight += chunk.weight;
        fee_sat = fee_sat.saturating_add(chunk.fee_sat);
        corner(weight, fee_sat, &mut list);
    }
    Ok(())
};

fn not_there() -> RpcError {
    bad_key("Transaction not in mempool")
}

fn relatives(
    node: &Node<'_>,
    args: &Args<'_>,
    out: &mut Vec<u8>,
    next: fn(&MempoolEntryInfo) -> &[Txid],
) -> Result<(), RpcError> {
    let txid = args.txid(0, "txid")?;
    let verbose = args.bool_or(1, false)?;
    let first = node.engine.mempool().entry(&txid).ok_or_else(not_there)?;
    let found = walk(node, &first, next);
    if !verbose {
        Json::new(out).list(&found, |entry, json| json.text(entry.txid));
        return Ok(());
    }
    let mut object = Json::new(out).object();
    for entry in &found {
        let sums = Relatives::of_one(node, entry);
        let mut member = object.key(entry.txid).object();
        write_entry(node, entry, sums.as_ref(), &mut member);
    }
    Ok(())
}

/// All transactions reachable from one, without itself, sorted by txid.
fn walk(
    node: &Node<'_>,
    first: &MempoolEntryInfo,
    next: fn(&MempoolEntryInfo) -> &[Txid],
) -> Vec<MempoolEntryInfo> {
    let mut seen = HashSet::from([first.txid]);
    let mut open: Vec<Txid> = next(first).to_vec();
    let mut found = Vec::new();
    while let Some(txid) = open.pop() {
        if !seen.insert(txid) {
            continue;
        }
        if let Some(entry) = node.engine.mempool().entry(&txid) {
            open.extend(next(&entry));
            found.push(entry);
        }
    }
    found.sort_by_key(|entry| entry.txid);
    found
}

fn write_cluster(chunks: &[MiningChunk], out: &mut Vec<u8>) {
    let mut object = Json::new(out).object();
    object.key("clusterweight").int(chunks.iter().map(|chunk| chunk.weight).sum::<u64>());
    object.key("txcount").count(chunks.iter().map(|chunk| chunk.txids.len()).sum());
    let mut list = object.key("chunks").array();
    for chunk in chunks {
        let mut one = list.item().object();
        one.key("chunkfee").amount(chunk.fee_sat);
        one.key("chunkweight").int(chunk.weight);
        one.key("txs").list(&chunk.txids, |txid, json| json.text(txid));
    }
}

pub(super) const GETTXSPENDINGPREVOUT: Call = |node, args, out| {
    let given = args.value(0).and_then(Value::elements).unwrap_or_default();
    if given.is_empty() {
        return Err(bad("Invalid parameter, outputs are missing"));
    }
    args::check_members(
        args.value(1),
        &[("mempool_only", "bool"), ("return_spending_tx", "bool")],
    )?;
    let mempool_only = args.option_or(1, "mempool_only", true)?;
    let with_tx = args.option_or(1, "return_spending_tx", false)?;
    let mut outpoints = Vec::with_capacity(given.len());
    for output in given {
        args::require_members(output, &[("txid", "string"), ("vout", "number")])?;
        let txid = args::hash_member(output, "txid")?;
        let vout: i32 = args::integer_member(output, "vout")?;
        let vout =
            u32::try_from(vout).map_err(|_| bad("Invalid parameter, vout cannot be negative"))?;
        outpoints.push(OutPoint { txid, vout });
    }
    let mut list = Json::new(out).array();
    for outpoint in &outpoints {
        let spender = node.engine.mempool().spender(outpoint);
        if spender.is_none() && !mempool_only {
            let text = "Mempool lacks a relevant spend, and txospenderindex is unavailable.";
            return Err(RpcError::new(Code::Misc, text));
        }
        let mut object = list.item().object();
        object.key("txid").text(outpoint.txid);
        object.key("vout").int(outpoint.vout);
        if let Some((txid, tx)) = spender {
            object.key("spendingtxid").text(txid);
            if with_tx {
                object.key("spendingtx").hex(tx.bytes());
            }
        }
    }
    Ok(())
};
