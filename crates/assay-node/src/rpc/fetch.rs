//! `getblockfrompeer`: requests a missing block from a chosen peer.

use std::borrow::Cow;

use assay_wire::BlockHash;

use super::method::Prepare;
use super::peers::network;
use super::{Job, Node};
use crate::jsonrpc::{Code, Json, RpcError};

pub(super) const GETBLOCKFROMPEER: Prepare = |_, args| {
    let hash = args.block_hash(0, "blockhash")?;
    let peer = args.integer::<i64>(1)?;
    Ok(Job::call(args, move |node, out| {
        fetch(node, &hash, peer)?;
        Json::new(out).object().end();
        Ok(())
    }))
};

fn fetch(node: &Node<'_>, hash: &BlockHash, peer: i64) -> Result<(), RpcError> {
    let network = network(node)?;
    let place = node.engine.header_place(hash).ok_or_else(|| failed("Block header missing"))?;
    if node.engine.config().prune.is_some() && place.height > node.engine.tip().height {
        // Its block file could not be pruned before the chain gets there.
        return Err(failed(
            "In prune mode, only blocks that the node has already synced previously can be fetched from a peer",
        ));
    }
    if place.has_data {
        return Err(failed("Block already downloaded"));
    }
    let id = u64::try_from(peer).map_err(|_| failed("Peer does not exist"))?;
    network.fetch_block(id, &place).map_err(|error| failed(error.to_string()))
}

fn failed(text: impl Into<Cow<'static, str>>) -> RpcError {
    RpcError::new(Code::Misc, text)
}
