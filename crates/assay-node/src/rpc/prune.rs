//! `pruneblockchain`.

use super::bad;
use super::method::Call;
use crate::jsonrpc::{Code, Json, RpcError};

pub(super) const PRUNEBLOCKCHAIN: Call = |node, args, out| {
    let height = args.integer::<i32>(0)?;
    let engine = node.engine;
    let failed = |text: &'static str| RpcError::new(Code::Misc, text);
    if engine.config().prune.is_none() {
        return Err(failed("Cannot prune blocks because node is not in prune mode."));
    }
    let mut height = u32::try_from(height).map_err(|_| bad("Negative block height."))?;
    if height > TIME_MIN {
        let time_s = u64::from(height - TIME_MARGIN_S);
        let found = engine
            .chain()
            .earliest_at_least(time_s)
            .ok_or_else(|| bad("Could not find block with at least the specified timestamp."))?;
        height = found.height;
    }
    let tip = engine.chain().tip().height;
    if tip < engine.config().prune_after_height {
        return Err(failed("Blockchain is too short for pruning."));
    }
    if height > tip {
        return Err(bad("Blockchain is shorter than the attempted prune height."));
    }
    let kept = tip.saturating_sub(engine.config().prune_keeps);
    if height > kept {
        tracing::debug!(
            target: "rpc",
            "Attempt to prune blocks close to the tip.  Retaining the minimum number of blocks."
        );
    }
    let pruned = engine.chain().prune_to(height.min(kept))?;
    Json::new(out).int(pruned.map_or(-1, i64::from));
    Ok(())
};

/// Larger numbers are times: too large for a height, and as a time in 2001.
const TIME_MIN: u32 = 1_000_000_000;
/// A block's time may be this much below earlier ones (Core `chain.h`, `TIMESTAMP_WINDOW`).
const TIME_MARGIN_S: u32 = 2 * 60 * 60;
