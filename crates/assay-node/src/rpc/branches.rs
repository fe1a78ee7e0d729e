//! RPC of chain tips and manual invalidation.

use assay_engine::{ChainTip, ChainTipStatus, ControlError, Engine};
use assay_wire::BlockHash;

use super::args::Args;
use super::method::Prepare;
use super::{Job, Node, block_not_found};
use crate::jsonrpc::{Code, Json, RpcError};

pub(super) const GETCHAINTIPS: Prepare = |_, args| {
    Ok(Job::call(args, |node, out| {
        write_tips(&node.engine.chain_tips(), out);
        Ok(())
    }))
};

pub(super) const INVALIDATEBLOCK: Prepare = |_, args| control(args, Engine::invalidate_block);

pub(super) const RECONSIDERBLOCK: Prepare = |_, args| control(args, Engine::reconsider_block);

pub(super) const PRECIOUSBLOCK: Prepare = |_, args| control(args, Engine::precious_block);

fn control(
    args: &Args<'_>,
    decide: fn(&Engine, &BlockHash) -> Result<(), ControlError>,
) -> Result<Job, RpcError> {
    let hash = args.block_hash(0, "blockhash")?;
    Ok(Job::call(args, move |node: &Node<'_>, out| {
        match decide(node.engine, &hash) {
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
    }))
}

fn write_tips(tips: &[ChainTip], out: &mut Vec<u8>) {
    let mut list = Json::new(out).array();
    for tip in tips {
        let mut object = list.item().object();
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
        object.end();
    }
    list.end();
}
