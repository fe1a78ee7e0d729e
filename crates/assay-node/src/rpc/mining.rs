//! RPC of mining.

use super::chain::{difficulty, target};
use super::method::{Call, help};
use super::{Node, bad, write_warnings};
use crate::jsonrpc::{Code, Json, RpcError};

pub(super) const GETMININGINFO: Call = |node, _, out| {
    let (params, tip) = (&node.rpc.params, node.engine.chain().tip());
    let config = &node.engine.config().mining;
    let mut object = Json::new(out).object();
    object.key("blocks").int(tip.height);
    if let Some(last) = node.engine.mining().last_template() {
        object.key("currentblockweight").int(last.weight);
        object.key("currentblocktx").count(last.txs);
    }
    object.key("bits").text(format_args!("{:08x}", tip.bits));
    object.key("difficulty").real(difficulty(tip.bits));
    object.key("target").text(target(tip.bits));
    write_rate(hash_rate(node, LOOKUP, -1)?, object.key("networkhashps"));
    object.key("pooledtx").count(node.engine.mempool().info().size);
    object.key("blockmintxfee").amount(config.min_fee_sat_per_kvb.cast_signed());
    object.key("chain").string(params.rpc_name);
    let bits = node.engine.mining().next_bits();
    let mut next = object.key("next").object();
    next.key("height").int(tip.height + 1);
    next.key("bits").text(format_args!("{bits:08x}"));
    next.key("difficulty").real(difficulty(bits));
    next.key("target").text(target(bits));
    next.end();
    if let Some(challenge) = &params.signet_challenge {
        object.key("signet_challenge").hex(challenge);
    }
    write_warnings(node, object.key("warnings"));
    Ok(())
};

pub(super) const GETNETWORKHASHPS: Call = |node, args, out| {
    let lookup: i32 = args.integer_or(0, LOOKUP)?;
    let height: i32 = args.integer_or(1, -1)?;
    let rate = hash_rate(node, lookup, height)?;
    write_rate(rate, Json::new(out));
    Ok(())
};

pub(super) const PRIORITISETRANSACTION: Call = |node, args, out| {
    if args.given() < 3 {
        return Err(RpcError::new(Code::Misc, help("prioritisetransaction")));
    }
    let txid = args.txid(0, "txid")?;
    let fee_delta_sat: i64 = args.integer(2)?;
    let dummy = args.value(1).and_then(|value| value.json().parse::<f64>().ok());
    if dummy.is_some_and(|dummy| dummy != 0.0) {
        let text =
            "Priority is no longer supported, dummy argument to prioritisetransaction must be 0.";
        return Err(RpcError::new(Code::InvalidParameter, text));
    }
    if !node.engine.mempool().prioritise(txid, fee_delta_sat) {
        let text = "Priority is not supported for transactions with dust outputs.";
        return Err(RpcError::new(Code::InvalidParameter, text));
    }
    Json::new(out).bool(true);
    Ok(())
};

pub(super) const GETPRIORITISEDTRANSACTIONS: Call = |node, _, out| {
    let mut object = Json::new(out).object();
    for one in node.engine.mempool().prioritised() {
        let mut entry = object.key(one.txid).object();
        entry.key("fee_delta").int(one.fee_delta_sat);
        entry.key("in_mempool").bool(one.modified_fee_sat.is_some());
        if let Some(fee_sat) = one.modified_fee_sat {
            entry.key("modified_fee").int(fee_sat);
        }
    }
    Ok(())
};

fn hash_rate(node: &Node<'_>, lookup: i32, height: i32) -> Result<f64, RpcError> {
    if lookup < -1 || lookup == 0 {
        return Err(bad("Invalid nblocks. Must be a positive number or -1."));
    }
    let tip = node.engine.chain().tip().height;
    if height < -1 || i64::from(height) > i64::from(tip) {
        return Err(bad("Block does not exist at specified height"));
    }
    let height = u32::try_from(height).unwrap_or(tip);
    Ok(node.engine.mining().network_hash_rate(u32::try_from(lookup).ok(), height))
}

/// Core returns an integer zero without an estimate.
fn write_rate(rate: f64, json: Json<'_>) {
    if rate > 0.0 { json.real(rate) } else { json.int(0) }
}

/// Number of blocks in the estimate.
const LOOKUP: i32 = 120;

/// Fees are not estimated, and the result reports this.
pub(super) const ESTIMATESMARTFEE: Call = |_, args, out| {
    let target: i32 = args.integer(0)?;
    if !(1..=TARGET_MAX).contains(&target) {
        return Err(bad("Invalid conf_target, must be between 1 and 1008"));
    }
    let mode = args.optional_string(1)?.unwrap_or_default().to_ascii_lowercase();
    if !["", "unset", "economical", "conservative"].contains(&&*mode) {
        let text = "Invalid estimate_mode parameter, must be one of: \"unset\", \"economical\", \"conservative\"";
        return Err(bad(text));
    }
    let mut object = Json::new(out).object();
    let mut errors = object.key("errors").array();
    errors.item().string("Insufficient data or no feerate found");
    errors.end();
    // The minimum target is two blocks.
    object.key("blocks").int(target.max(2));
    Ok(())
};

/// Core's longest horizon.
const TARGET_MAX: i32 = 1008;
