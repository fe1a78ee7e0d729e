//! RPC of chain tips and manual invalidation.

use assay_engine::{ChainTip, ChainTipStatus, ControlError, Engine};
use assay_wire::BlockHash;

use super::args::Args;
use super::method::{ArgSpec, Kind, Method, required};
use super::{Job, Node, block_not_found};
use crate::jsonrpc::{Code, Json, RpcError};

pub(super) const GETCHAINTIPS: Method = Method {
    name: "getchaintips",
    category: "blockchain",
    about: "The ends of all known branches, the active one included.",
    args: &[],
    result: "\
[                          (json array) One element per branch, highest first
  {                        (json object)
    \"height\" : n,          (numeric) Height of its end
    \"hash\" : \"hex\",        (string) Hash of its end
    \"branchlen\" : n,       (numeric) Blocks between the active chain and its end; 0 for the active one
    \"status\" : \"str\"       (string) \"active\", or
                            \"invalid\": a block of it is invalid;
                            \"headers-only\": not all blocks are here, but the headers are valid;
                            \"valid-headers\": all blocks are here, but they were never fully validated;
                            \"valid-fork\": it is fully validated, but not the active one
  },
  ...
]",
    example: "",
    prepare: |_, args| {
        Ok(Job::call(args, |node, out| {
            write_tips(&node.engine.chain_tips(), out);
            Ok(())
        }))
    },
};

pub(super) const INVALIDATEBLOCK: Method = Method {
    name: "invalidateblock",
    category: "blockchain",
    about: "Marks a block as invalid, as if it broke a rule, until reconsiderblock takes that back.",
    args: &[BLOCK],
    result: "null    (json null)",
    example: "\"blockhash\"",
    prepare: |_, args| control(args, Engine::invalidate_block),
};

pub(super) const RECONSIDERBLOCK: Method = Method {
    name: "reconsiderblock",
    category: "blockchain",
    about: "Takes the mark of an invalid block off a block, those below it and those above it, and judges them \
            again where that is called for. Undoes invalidateblock.",
    args: &[BLOCK],
    result: "null    (json null)",
    example: "\"blockhash\"",
    prepare: |_, args| control(args, Engine::reconsider_block),
};

pub(super) const PRECIOUSBLOCK: Method = Method {
    name: "preciousblock",
    category: "blockchain",
    about: "Treats a block as if it had come before all others with the same work. A later call overrides an \
            earlier one; a restart forgets both.",
    args: &[BLOCK],
    result: "null    (json null)",
    example: "\"blockhash\"",
    prepare: |_, args| control(args, Engine::precious_block),
};

const BLOCK: ArgSpec = required("blockhash", Kind::Hex, "Hash of the block");

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
