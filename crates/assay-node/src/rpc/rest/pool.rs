//! REST: transactions and the mempool.

use std::borrow::Cow;
use std::sync::Arc;

use assay_wire::{BlockHash, Transaction, Txid};

use super::super::index::{Lookup, look_up};
use super::super::mempool as pool;
use super::super::tx_json::{Spent, write_tx_members};
use super::{Answer, Failure, Request, bad, hash, missing};
use crate::jsonrpc::{Json, RpcError};
use crate::rpc::Node;

/// `/rest/tx/TXID`: transaction of the mempool or, with a transaction index, of the active chain.
pub(super) fn tx(node: &Node<'_>, request: &Request<'_>) -> Answer {
    let text = request.path;
    let found = find(node, &hash(text)?)?;
    let (tx, block) = found.ok_or_else(|| missing(format!("{text} not found")))?;
    request.content(
        || tx.bytes().to_vec(),
        |out| {
            let mut object = Json::new(out).object();
            write_tx_members(&node.rpc.params, tx.view(), Spent::Unknown, &mut object);
            if let Some(block) = block {
                object.key("blockhash").text(block);
            }
            object.key("hex").hex(tx.bytes());
        },
    )
}

type Found = (Arc<Transaction>, Option<BlockHash>);

fn find(node: &Node<'_>, txid: &Txid) -> Result<Option<Found>, Failure> {
    if let Some(tx) = node.engine.mempool().tx(txid) {
        return Ok(Some((tx, None)));
    }
    let Lookup::Found(block) = look_up(node, txid)? else { return Ok(None) };
    let tx = node.engine.blocks().find_transaction(txid, &block).map_err(RpcError::from)?;
    Ok(tx.map(|tx| (Arc::new(tx), Some(block))))
}

/// `/rest/mempool/info` and `/rest/mempool/contents`.
pub(super) fn mempool(node: &Node<'_>, request: &Request<'_>) -> Answer {
    match request.path {
        "info" => request.json(|out| Ok(pool::info(node, out)?)),
        "contents" => request.json(|out| contents(node, request, out)),
        _ => {
            let form = "/rest/mempool/<info|contents>.json";
            Err(bad(format!("Invalid URI format. Expected {form}")))
        }
    }
}

fn contents(node: &Node<'_>, request: &Request<'_>, out: &mut Vec<u8>) -> Result<(), Failure> {
    let flag = |name: &str, default: &'static str| match request
        .parameter(name)
        .unwrap_or(Cow::Borrowed(default))
        .as_ref()
    {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(bad(format!(
            "The \"{name}\" query parameter must be either \"true\" or \"false\"."
        ))),
    };
    let is_verbose = flag("verbose", "true")?;
    let with_sequence = flag("mempool_sequence", "false")?;
    match (is_verbose, with_sequence) {
        (true, true) => {
            return Err(bad(
                "Verbose results cannot contain mempool sequence values. (hint: set \"verbose=false\")",
            ));
        }
        (true, false) => pool::list_entries(node, out),
        (false, true) => pool::list_ids_with_sequence(node, out),
        (false, false) => pool::list_ids(node, Json::new(out)),
    }
    Ok(())
}
