//! RPC of mempool ancestors, descendants and clusters.

use std::collections::HashSet;

use assay_engine::{MempoolEntryInfo, MiningChunk};
use assay_wire::{OutPoint, Txid};

use super::args::{self, Args};
use super::mempool::{Relatives, write_entry};
use super::method::{ArgSpec, HIDDEN, Kind, Method, Need, optional, required};
use super::{Job, Node, Rpc, bad, bad_key};
use crate::jsonrpc::{Array, Code, Json, RpcError, Value};

pub(super) const GETMEMPOOLANCESTORS: Method = Method {
    name: "getmempoolancestors",
    category: "blockchain",
    about: "The unconfirmed transactions that one spends from, over any number of steps.",
    args: &[TXID, VERBOSE],
    result: ENTRIES,
    example: "\"mytxid\"",
    prepare: |_, args| relatives(args, |entry| &entry.depends),
};

pub(super) const GETMEMPOOLDESCENDANTS: Method = Method {
    name: "getmempooldescendants",
    category: "blockchain",
    about: "The unconfirmed transactions that spend from one, over any number of steps.",
    args: &[TXID, VERBOSE],
    result: ENTRIES,
    example: "\"mytxid\"",
    prepare: |_, args| relatives(args, |entry| &entry.spent_by),
};

pub(super) const GETMEMPOOLCLUSTER: Method = Method {
    name: "getmempoolcluster",
    category: "blockchain",
    about: "The unconfirmed transactions that are connected with one over any number of steps, in the order in which \
            miners would take them.",
    args: &[TXID],
    result: "\
{                              (json object)
  \"clusterweight\" : n,         (numeric) Weight of all, with signature operations
  \"txcount\" : n,               (numeric) How many there are
  \"chunks\" : [                 (json array) Those that are mined together, best first
    {                          (json object)
      \"chunkfee\" : n,          (numeric) What they pay
      \"chunkweight\" : n,       (numeric) Their weight
      \"txs\" : [ \"hex\", ... ]   (json array) Their ids
    },
    ...
  ]
}",
    example: "\"mytxid\"",
    prepare: |_, args| {
        let txid = args.txid(0, "txid")?;
        Ok(Job::call(args, move |node, out| {
            let chunks = node.engine.mempool_cluster(&txid).ok_or_else(not_there)?;
            write_cluster(&chunks, out);
            Ok(())
        }))
    },
};

pub(super) const GETMEMPOOLFEERATEDIAGRAM: Method = Method {
    name: "getmempoolfeeratediagram",
    category: HIDDEN,
    about: "What miners would earn with blocks of every weight: sums over the chunks of the mempool, best first.",
    args: &[],
    result: "\
[                    (json array) The corners of the diagram
  {                  (json object)
    \"weight\" : n,    (numeric) Weight up to here
    \"fee\" : n        (numeric) Fees up to here
  },
  ...
]",
    example: "",
    prepare: |_, args| {
        Ok(Job::call(args, |node, out| {
            let mut list = Json::new(out).array();
            let (mut weight, mut fee_sat) = (0, 0i64);
            let corner = |weight: u64, fee_sat: i64, list: &mut Array<'_>| {
                let mut object = list.item().object();
                object.key("weight").int(weight);
                object.key("fee").amount(fee_sat);
                object.end();
            };
            corner(0, 0, &mut list);
            for chunk in node.engine.mempool_chunks() {
                weight += chunk.weight;
                fee_sat = fee_sat.saturating_add(chunk.fee_sat);
                corner(weight, fee_sat, &mut list);
            }
            list.end();
            Ok(())
        }))
    },
};

pub(super) const GETTXSPENDINGPREVOUT: Method = Method {
    name: "gettxspendingprevout",
    category: "blockchain",
    about: "The unconfirmed transactions that spend given outputs. Confirmed ones are not looked for: there is no index of \
            them.",
    args: &[
        required("outputs", Kind::Array, "Objects with txid and vout"),
        optional(
            "options",
            Kind::Object,
            Need::Optional,
            "mempool_only (boolean): an error where false and an output is not spent in the mempool; \
             return_spending_tx (boolean, default=false): show the transactions themselves",
        ),
    ],
    result: "\
[                              (json array) One element per output
  {                            (json object)
    \"txid\" : \"hex\",            (string) As given
    \"vout\" : n,                (numeric) As given
    \"spendingtxid\" : \"hex\",    (string, optional) The transaction that spends it
    \"spendingtx\" : \"hex\"       (string, optional) The same, serialised
  },
  ...
]",
    example: "[{\"txid\":\"a08e6907dbbd3d809776dbfc5d82e371b764ed838b5655e72f463568df1aadf0\",\"vout\":3}]",
    prepare: spending,
};

const TXID: ArgSpec = required("txid", Kind::Hex, "The transaction id");
const VERBOSE: ArgSpec =
    optional("verbose", Kind::Bool, Need::Default("false"), "An object with one entry per id");
const ENTRIES: &str = "[ \"hex\", ... ]    (json array) The ids; with verbose=true, an object of entries as getmempoolentry shows them";

fn not_there() -> RpcError {
    bad_key("Transaction not in mempool")
}

fn relatives(args: &Args<'_>, next: fn(&MempoolEntryInfo) -> &[Txid]) -> Result<Job, RpcError> {
    let txid = args.txid(0, "txid")?;
    let verbose = args.bool_or(1, false)?;
    Ok(Job::call(args, move |node, out| {
        let first = node.engine.mempool_entry(&txid).ok_or_else(not_there)?;
        let found = walk(node, &first, next);
        if !verbose {
            let mut list = Json::new(out).array();
            for entry in &found {
                list.item().text(entry.txid);
            }
            list.end();
            return Ok(());
        }
        let mut object = Json::new(out).object();
        for entry in &found {
            let sums = Relatives::of_one(node, entry);
            let mut member = object.key(entry.txid).object();
            write_entry(node, entry, sums.as_ref(), &mut member);
            member.end();
        }
        object.end();
        Ok(())
    }))
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
        if let Some(entry) = node.engine.mempool_entry(&txid) {
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
        let mut txs = one.key("txs").array();
        for txid in &chunk.txids {
            txs.item().text(txid);
        }
        txs.end();
        one.end();
    }
    list.end();
    object.end();
}

fn spending(_: &Rpc, args: &Args<'_>) -> Result<Job, RpcError> {
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
    Ok(Job::call(args, move |node, out| {
        let mut list = Json::new(out).array();
        for outpoint in &outpoints {
            let spender = node.engine.mempool_spender(outpoint);
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
            object.end();
        }
        list.end();
        Ok(())
    }))
}
