//! RPC of chain tips and manual invalidation.

use assay_engine::{Chain, ChainTipStatus, ControlError};
use assay_wire::BlockHash;

use super::args::Args;
use super::method::Call;
use super::{Node, block_not_found};
use crate::jsonrpc::{Code, Json, RpcError};

pub(super) const GETCHAINTIPS: Call = |node, _, out| {
    Json::new(out).objects(&node.engine.chain().tips(), |tip, object| {
        object.key("height").int(tip.height);
        object.key("hash").text(tip.hash);
        object.key("branchlen").int(tip.branch_length);
        object.key("status").string(match tip.status {
            ChainTipStatus::Active => "active",
            ChainTipStatus::ValidFork => "valid-fork",
            ChainTipStatus::ValidHeaders => "valid-headers",
            ChainTipStatus::HeadersOnly => "headers-only",
            ChainTipStatus::Invalid => "invalid",
        });
    });
    Ok(())
};

pub(super) const INVALIDATEBLOCK: Call =
    |node, args, out| control(node, args, out, Chain::invalidate_block);

pub(super) const RECONSIDERBLOCK: Call =
    |node, args, out| control(node, args, out, Chain::reconsider_block);

pub(super) const PRECIOUSBLOCK: Call =
    |node, args, out| control(node, args, out, Chain::precious_block);

fn control<'n>(
    node: &Node<'n>,
    args: &Args<'_>,
    out: &mut Vec<u8>,
    decide: fn(Chain<'n>, &BlockHash) -> Result<(), ControlError>,
) -> Result<(), RpcError> {
    let hash = args.block_hash(0, "blockhash")?;
    match decide(node.engine.chain(), &hash) {
        Ok(()) => Json::new(out).null(),
        Err(ControlError::UnknownBlock { .. }) => return Err(block_not_found()),
        Err(error @ ControlError::Pruned { .. }) => {
            return Err(RpcError::new(Code::Database, error.to_string()));
        }
        Err(ControlError::Engine(error)) => {
            tracing::error!("RPC call failed: {error}");
            return Err(RpcError::new(Code::Database, error.to_string()));
        }
    }
    Ok(())
}
