//! RPC of the mempool.

use std::collections::{HashMap, HashSet};

use assay_engine::MempoolEntryInfo;
use assay_wire::Txid;

use super::Node;
use super::method::Call;
use crate::jsonrpc::{Code, Json, Object, RpcError};

pub(super) const GETMEMPOOLINFO: Call = |node, _, out| info(node, out);

pub(super) const GETRAWMEMPOOL: Call = |node, args, out| {
    let verbose = args.bool_or(0, false)?;
    let with_sequence = args.bool_or(1, false)?;
    if verbose && with_sequence {
        let message = "Verbose results cannot contain mempool sequence values.";
        return Err(RpcError::new(Code::InvalidParameter, message));
    }
    if verbose {
        list_entries(node, out);
    } else if with_sequence {
        list_ids_with_sequence(node, out);
    } else {
        list_ids(node, Json::new(out));
    }
    Ok(())
};

pub(super) const GETMEMPOOLENTRY: Call = |node, args, out| {
    let txid = args.txid(0, "txid")?;
    let missing = || RpcError::new(Code::InvalidAddressOrKey, "Transaction not in mempool");
    let entry = node.engine.mempool().entry(&txid).ok_or_else(missing)?;
    let relatives = Relatives::of_one(node, &entry);
    let mut object = Json::new(out).object();
    write_entry(node, &entry, relatives.as_ref(), &mut object);
    Ok(())
};

#[expect(clippy::unnecessary_wraps, reason = "the shape of every call")]
pub(super) fn info(node: &Node<'_>, out: &mut Vec<u8>) -> Result<(), RpcError> {
    let info = node.engine.mempool().info();
    let fee_rate = info.min_relay_fee_sat_per_kvb.cast_signed();
    let min_fee = info.min_fee_sat_per_kvb.cast_signed();
    let mut object = Json::new(out).object();
    object.key("loaded").bool(info.loaded);
    object.key("size").count(info.size);
    object.key("bytes").int(info.bytes);
    object.key("usage").int(info.usage);
    object.key("total_fee").amount(info.total_fee_sat);
    object.key("maxmempool").int(info.max_bytes);
    object.key("mempoolminfee").amount(min_fee);
    object.key("minrelaytxfee").amount(fee_rate);
    let policy = node.engine.config().policy;
    object.key("incrementalrelayfee").amount(policy.incremental_fee_sat_per_kvb.cast_signed());
    object.key("unbroadcastcount").count(info.unbroadcast);
    if node.rpc.params.cash.is_none() {
        object.key("fullrbf").bool(true);
    }
    object.key("permitbaremultisig").bool(policy.permit_bare_multisig);
    object.key("maxdatacarriersize").count(policy.data_carrier_bytes_max);
    if let Some(count) = info.cluster_count_max {
        object.key("limitclustercount").count(count);
    }
    if let Some(vsize) = info.cluster_vsize_max {
        object.key("limitclustersize").int(vsize);
    }
    object.key("optimal").bool(true);
    Ok(())
}

pub(super) fn list_ids_with_sequence(node: &Node<'_>, out: &mut Vec<u8>) {
    let (txids, changes) = node.engine.mempool().txids_and_changes();
    let mut object = Json::new(out).object();
    write_ids(&txids, object.key("txids"));
    // Sequence of the next change.
    object.key("mempool_sequence").int(changes + 1);
}

pub(super) fn list_ids(node: &Node<'_>, json: Json<'_>) {
    write_ids(&node.engine.mempool().txids(), json);
}

fn write_ids(txids: &[Txid], json: Json<'_>) {
    json.list(txids, |txid, json| json.text(txid));
}

pub(super) fn list_entries(node: &Node<'_>, out: &mut Vec<u8>) {
    let entries = node.engine.mempool().entries();
    let limited = node.engine.mempool().info().cluster_count_max.is_some();
    let by_id: HashMap<Txid, &MempoolEntryInfo> =
        entries.iter().map(|entry| (entry.txid, entry)).collect();
    let mut object = Json::new(out).object();
    for entry in &entries {
        // Without a limit the total number of ancestors can be quadratic.
        let relatives =
            limited.then(|| Relatives::new(entry, |id| by_id.get(id).copied().cloned()));
        let mut member = object.key(entry.txid).object();
        write_entry(node, entry, relatives.as_ref(), &mut member);
    }
}

/// Sums over ancestors and descendants, including the transaction itself.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Relatives {
    ancestors: Sum,
    descendants: Sum,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Sum {
    count: usize,
    vsize: u64,
    fee_sat: i64,
}

impl Relatives {
    pub(super) fn of_one(node: &Node<'_>, entry: &MempoolEntryInfo) -> Option<Self> {
        node.engine.mempool().info().cluster_count_max?;
        Some(Self::new(entry, |id| node.engine.mempool().entry(id)))
    }

    fn new(entry: &MempoolEntryInfo, find: impl Fn(&Txid) -> Option<MempoolEntryInfo>) -> Self {
        let walk = |next: fn(&MempoolEntryInfo) -> &[Txid]| {
            let mut sum = Sum::default();
            let mut seen = HashSet::from([entry.txid]);
            let mut open = vec![entry.clone()];
            while let Some(entry) = open.pop() {
                sum.count += 1;
                sum.vsize += u64::from(entry.vsize);
                sum.fee_sat = sum.fee_sat.saturating_add(entry.modified_fee_sat);
                let fresh = next(&entry).iter().filter(|id| seen.insert(**id));
                open.extend(fresh.filter_map(&find));
            }
            sum
        };
        Self { ancestors: walk(|entry| &entry.depends), descendants: walk(|entry| &entry.spent_by) }
    }
}

pub(super) fn write_entry(
    node: &Node<'_>,
    entry: &MempoolEntryInfo,
    relatives: Option<&Relatives>,
    object: &mut Object<'_>,
) {
    object.key("vsize_adjusted").int(entry.vsize);
    object.key("vsize").int(entry.vsize);
    object.key("vsize_bip141").int(entry.weight.div_ceil(4));
    object.key("weight").int(entry.weight);
    object.key("time").int(entry.time);
    object.key("height").int(entry.height);
    if let Some(Relatives { ancestors, descendants }) = relatives {
        object.key("descendantcount").count(descendants.count);
        object.key("descendantsize").int(descendants.vsize);
        object.key("ancestorcount").count(ancestors.count);
        object.key("ancestorsize").int(ancestors.vsize);
    }
    object.key("wtxid").text(entry.wtxid);
    if let Some((_, weight)) = entry.chunk {
        object.key("chunkweight").int(weight);
    }
    let mut fees = object.key("fees").object();
    fees.key("base").amount(entry.fee_sat);
    fees.key("modified").amount(entry.modified_fee_sat);
    if let Some(Relatives { ancestors, descendants }) = relatives {
        fees.key("ancestor").amount(ancestors.fee_sat);
        fees.key("descendant").amount(descendants.fee_sat);
    }
    if let Some((fee_sat, _)) = entry.chunk {
        fees.key("chunk").amount(fee_sat);
    }
    fees.end();
    // In the display order of txids.
    let mut depends = entry.depends.clone();
    depends.sort_by(|a, b| a.0.iter().rev().cmp(b.0.iter().rev()));
    for (name, ids) in [("depends", &depends), ("spentby", &entry.spent_by)] {
        object.key(name).list(ids, |txid, json| json.text(txid));
    }
    if node.rpc.params.cash.is_none() {
        object.key("bip125-replaceable").bool(signals_replacement(node, entry));
    }
    object.key("unbroadcast").bool(entry.is_unbroadcast);
}

/// True if the transaction or an unconfirmed ancestor signals replaceability (BIP125). Replacement does not depend on it.
fn signals_replacement(node: &Node<'_>, entry: &MempoolEntryInfo) -> bool {
    let signals = |txid: &Txid| {
        let tx = node.engine.mempool().tx(txid);
        tx.is_some_and(|tx| tx.view().inputs().any(|input| input.sequence <= SEQUENCE_SIGNAL_MAX))
    };
    let mut seen = HashSet::from([entry.txid]);
    let mut open = vec![entry.clone()];
    while let Some(next) = open.pop() {
        if signals(&next.txid) {
            return true;
        }
        let parents = next.depends.iter().filter(|txid| seen.insert(**txid));
        open.extend(parents.filter_map(|txid| node.engine.mempool().entry(txid)));
    }
    false
}

/// Core's `MAX_BIP125_RBF_SEQUENCE` (`util/rbf.h`).
const SEQUENCE_SIGNAL_MAX: u32 = 0xffff_fffd;

#[cfg(test)]
mod tests {
    use assay_wire::Wtxid;

    use super::*;

    #[test]
    fn relatives_are_counted_once_each() {
        // A diamond: 1 <- 2, 1 <- 3, 2 and 3 <- 4.
        let entry = |id: u8, depends: &[u8], spent_by: &[u8]| MempoolEntryInfo {
            txid: Txid([id; 32]),
            wtxid: Wtxid([id; 32]),
            vsize: 100 * u32::from(id),
            weight: 400,
            adjusted_weight: 400,
            fee_sat: i64::from(id),
            modified_fee_sat: i64::from(id),
            chunk: None,
            time: 0,
            height: 1,
            depends: depends.iter().map(|&id| Txid([id; 32])).collect(),
            spent_by: spent_by.iter().map(|&id| Txid([id; 32])).collect(),
            is_unbroadcast: false,
        };
        let pool = [
            entry(1, &[], &[2, 3]),
            entry(2, &[1], &[4]),
            entry(3, &[1], &[4]),
            entry(4, &[2, 3], &[]),
        ];
        let find = |id: &Txid| pool.iter().find(|entry| entry.txid == *id).cloned();
        let sums: Vec<_> = pool.iter().map(|entry| Relatives::new(entry, find)).collect();
        let all = Sum { count: 4, vsize: 1000, fee_sat: 10 };
        assert_eq!(sums[0].ancestors, Sum { count: 1, vsize: 100, fee_sat: 1 });
        assert_eq!(sums[0].descendants, all);
        assert_eq!(sums[1].descendants, Sum { count: 2, vsize: 600, fee_sat: 6 });
        assert_eq!(sums[3].ancestors, all);
    }
}
