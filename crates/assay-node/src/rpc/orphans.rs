//! RPC of orphan transactions (Core `rpc/mempool.cpp`).

use super::args::Args;
use super::method::Call;
use crate::jsonrpc::{Code, Json, RpcError};
use crate::p2p::OrphanInfo;

pub(super) const GETORPHANTXS: Call = |node, args, out| {
    let verbosity = verbosity(args)?;
    let orphans = node.rpc.network.get().map(|network| network.txs.orphans());
    let mut orphans = orphans.unwrap_or_default();
    orphans.sort_by_cached_key(|orphan| orphan.tx.view().wtxid());
    let mut list = Json::new(out).array();
    for orphan in &orphans {
        if verbosity == 0 {
            list.item().text(orphan.tx.view().txid());
        } else {
            write(orphan, verbosity == 2, list.item());
        }
    }
    Ok(())
};

fn verbosity(args: &Args<'_>) -> Result<i32, RpcError> {
    if args.value(0).is_some_and(|value| value.type_name() == "bool") {
        return Err(RpcError::new(Code::Type, "Verbosity was boolean but only integer allowed"));
    }
    let verbosity = args.verbosity(0, 0)?;
    if (0..=2).contains(&verbosity) {
        return Ok(verbosity);
    }
    Err(RpcError::new(Code::InvalidParameter, format!("Invalid verbosity value {verbosity}")))
}

fn write(orphan: &OrphanInfo, with_hex: bool, json: Json<'_>) {
    let tx = orphan.tx.view();
    let weight = tx.weight();
    let mut object = json.object();
    object.key("txid").text(tx.txid());
    object.key("wtxid").text(tx.wtxid());
    object.key("bytes").count(tx.total_size());
    object.key("vsize").count(weight.div_ceil(4));
    object.key("vsize_bip141").count(weight.div_ceil(4));
    object.key("weight").count(weight);
    object.key("from").list(&orphan.announcers, |peer, json| json.int(*peer));
    if with_hex {
        object.key("hex").string(&faster_hex::hex_string(orphan.tx.bytes()));
    }
}
