//! RPC of the chain state, and waits for changes.

use std::time::{Duration, Instant};

use assay_consensus::pow::decode_compact;
use assay_engine::{HistoricalChain, Pruning, Tip};
use assay_wire::BlockHash;

use super::args::Args;
use super::method::Call;
use super::{Node, write_warnings};
use crate::jsonrpc::{Code, Json, RpcError};

pub(super) const GETBLOCKCOUNT: Call = |node, _, out| {
    Json::new(out).int(node.engine.chain().tip().height);
    Ok(())
};

pub(super) const GETBESTBLOCKHASH: Call = |node, _, out| {
    Json::new(out).text(node.engine.chain().tip().hash);
    Ok(())
};

pub(super) const GETBLOCKHASH: Call = |node, args, out| {
    let height: i32 = args.integer(0)?;
    let height = u32::try_from(height).ok();
    let hash = height.and_then(|height| node.engine.chain().hash_at(height));
    let missing = || RpcError::new(Code::InvalidParameter, "Block height out of range");
    Json::new(out).text(hash.ok_or_else(missing)?);
    Ok(())
};

pub(super) const GETDIFFICULTY: Call = |node, _, out| {
    Json::new(out).real(difficulty(node.engine.chain().tip().bits));
    Ok(())
};

pub(super) const GETBLOCKCHAININFO: Call = |node, _, out| blockchain_info(node, out);

pub(super) const WAITFORNEWBLOCK: Call = |node, args, out| {
    let timeout = timeout_ms(args, 0)?;
    let from = args.optional_block_hash(1, "current_tip")?;
    let from = from.unwrap_or_else(|| node.engine.chain().tip().hash);
    write_tip(&wait_until(node, timeout, |tip| tip.hash != from), out);
    Ok(())
};

pub(super) const WAITFORBLOCK: Call = |node, args, out| {
    let hash: BlockHash = args.block_hash(0, "blockhash")?;
    let timeout = timeout_ms(args, 1)?;
    write_tip(&wait_until(node, timeout, |tip| tip.hash == hash), out);
    Ok(())
};

pub(super) const WAITFORBLOCKHEIGHT: Call = |node, args, out| {
    let height: i32 = args.integer(0)?;
    let timeout = timeout_ms(args, 1)?;
    let reached = |tip: &Tip| i64::from(tip.height) >= i64::from(height);
    write_tip(&wait_until(node, timeout, reached), out);
    Ok(())
};

#[expect(clippy::unnecessary_wraps, reason = "the shape of every call")]
pub(super) fn blockchain_info(node: &Node<'_>, out: &mut Vec<u8>) -> Result<(), RpcError> {
    let params = &node.rpc.params;
    let tip = node.engine.chain().tip();
    let size = node.engine.blocks().archive_bytes();
    let mut object = Json::new(out).object();
    object.key("chain").string(params.rpc_name);
    object.key("blocks").int(tip.height);
    object.key("headers").int(node.engine.chain().header_height());
    object.key("bestblockhash").text(tip.hash);
    object.key("bits").text(format_args!("{:08x}", tip.bits));
    object.key("target").text(target(tip.bits));
    object.key("difficulty").real(difficulty(tip.bits));
    object.key("time").int(tip.time);
    object.key("mediantime").int(tip.median_time);
    object.key("verificationprogress").real(progress(node, &tip));
    object.key("initialblockdownload").bool(node.engine.chain().is_initial_block_download());
    object.key("chainwork").hex(&tip.chain_work);
    object.key("size_on_disk").int(size);
    let prune = node.engine.config().prune;
    object.key("pruned").bool(prune.is_some());
    if let Some(prune) = prune {
        let height = node.engine.chain().prune_height().map_or(0, |height| height + 1);
        object.key("pruneheight").int(height);
        object.key("automatic_pruning").bool(prune != Pruning::Manual);
        if let Pruning::Automatic { bytes_max } = prune {
            object.key("prune_target_size").int(bytes_max);
        }
    }
    if let Some(HistoricalChain { tip, base }) = node.engine.chain().historical() {
        let mut object = object.key("backgroundvalidation").object();
        object.key("snapshotheight").int(base.height);
        object.key("blocks").int(tip.height);
        object.key("bestblockhash").text(tip.hash);
        object.key("mediantime").int(tip.median_time);
        object.key("chainwork").hex(&tip.chain_work);
        object.key("verificationprogress").real(historical_progress(&tip, &base));
    }
    if let Some(challenge) = &params.signet_challenge {
        object.key("signet_challenge").hex(challenge);
    }
    write_warnings(node, object.key("warnings"));
    Ok(())
}

/// Difficulty as computed by Bitcoin Core (`rpc/blockchain.cpp`), with the same floating-point steps, so that all digits match.
pub(super) fn difficulty(bits: u32) -> f64 {
    let mut shift = bits >> 24;
    let mut difficulty = f64::from(0xffff) / f64::from(bits & 0xff_ffff);
    while shift < 29 {
        difficulty *= 256.0;
        shift += 1;
    }
    while shift > 29 {
        difficulty /= 256.0;
        shift -= 1;
    }
    difficulty
}

/// Target of `bits`, in the byte order of displayed hashes.
pub(super) fn target(bits: u32) -> BlockHash {
    BlockHash(decode_compact(bits).target.to_le_bytes())
}

/// Estimated verified share of the chain, assuming growth at its average rate since the tip. Bitcoin Core has a rate per chain
/// instead. Near the tip headers are counted, as in Core (`validation.cpp`, `GuessVerificationProgress`), so that it reaches 1.
pub(super) fn progress(node: &Node<'_>, tip: &Tip) -> f64 {
    let (params, now) = (&node.rpc.params, node.engine.clock().now_s());
    let covered = tip.time.saturating_sub(params.genesis.time).max(1);
    let missing = match node.engine.chain().header_height().checked_sub(tip.height) {
        Some(headers) if now.abs_diff(u64::from(tip.time)) <= RECENT_S => {
            u64::from(headers) * u64::from(params.pow.target_spacing_s)
        }
        _ => now.saturating_sub(u64::from(tip.time)),
    };
    f64::from(covered) / (f64::from(covered) + missing as f64)
}

/// Validated share of the transactions below a snapshot (Core `validation.cpp`, `GetBackgroundVerificationProgress`).
pub(super) fn historical_progress(tip: &Tip, base: &Tip) -> f64 {
    tip.chain_txs as f64 / base.chain_txs.max(1) as f64
}

fn timeout_ms(args: &Args<'_>, index: usize) -> Result<Option<Duration>, RpcError> {
    let timeout: i32 = args.integer_or(index, 0)?;
    let timeout =
        u64::try_from(timeout).map_err(|_| RpcError::new(Code::Misc, "Negative timeout"))?;
    Ok((timeout > 0).then(|| Duration::from_millis(timeout)))
}

/// Waits for `reached`, the timeout, shutdown, or the caller's disconnection.
fn wait_until(node: &Node<'_>, timeout: Option<Duration>, reached: impl Fn(&Tip) -> bool) -> Tip {
    let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let mut tip = node.engine.chain().tip();
    while !reached(&tip) && !node.context.interrupted() {
        let left =
            deadline.map_or(LOOK_AROUND, |end| end.saturating_duration_since(Instant::now()));
        if left.is_zero() {
            break;
        }
        tip = node.engine.chain().wait_for_tip_change(tip.hash, Some(left.min(LOOK_AROUND)));
    }
    tip
}

fn write_tip(tip: &Tip, out: &mut Vec<u8>) {
    let mut object = Json::new(out).object();
    object.key("hash").text(tip.hash);
    object.key("height").int(tip.height);
}

/// Poll interval for the caller's disconnection.
const LOOK_AROUND: Duration = Duration::from_millis(200);

const RECENT_S: u64 = 2 * 60 * 60;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn difficulty_and_target_of_well_known_bits() {
        assert!((difficulty(0x1d00_ffff) - 1.0).abs() < f64::EPSILON);
        let mut out = Vec::new();
        Json::new(&mut out).real(difficulty(0x207f_ffff));
        assert_eq!(out, b"4.656542373906925e-10");
        assert_eq!(
            target(0x1d00_ffff).to_string(),
            "00000000ffff0000000000000000000000000000000000000000000000000000"
        );
        assert_eq!(
            target(0x207f_ffff).to_string(),
            "7fffff0000000000000000000000000000000000000000000000000000000000"
        );
    }
}
