//! Fee methods and recent transactions.

use super::{Call, Pace};
use crate::chain::Relay;
use crate::server::protocol::{CallError, Out, RpcError};

/// Length of the list of `mempool.recent`.
const RECENT: usize = 10;
/// Maximum confirmation target, as in Bitcoin Core's `estimatesmartfee`.
const TARGET_MAX: u32 = 1008;

/// Minimum fee rate for entering the mempool at its current size.
fn floor(relay: &Relay) -> u64 {
    relay.min_relay_fee_sat_per_kvb.max(relay.mempool_min_fee_sat_per_kvb)
}

fn relay(call: &Call<'_>) -> Result<Relay, CallError> {
    match call.pace {
        Pace::Any => Ok(call.shared.chain.relay()),
        Pace::AtOnce => call.shared.chain.relay_at_once().ok_or(CallError::NotAtOnce),
    }
}

pub(super) fn estimate_fee(call: &Call<'_>, out: &mut Out) -> Result<(), CallError> {
    let blocks = call.params.number(0)?;
    if call.params.raw(1).is_some() {
        // Case-insensitive, as in Bitcoin Core; there is one estimator here.
        let mode = call.params.text(1)?.to_ascii_lowercase();
        if !matches!(mode.as_str(), "unset" | "economical" | "conservative") {
            return Err(RpcError::bad("mode should be ECONOMICAL or CONSERVATIVE").into());
        }
    }
    let floor = floor(&relay(call)?);
    let block_vsize = call.shared.config.block_vsize;
    let blocks = u64::from(blocks.clamp(1, TARGET_MAX));
    match call.read(|_, pool| pool.fees().estimate(blocks, block_vsize, floor))? {
        Some(rate) => out.coins(rate),
        None => out.raw("-1"),
    };
    Ok(())
}

pub(super) fn relay_fee(call: &Call<'_>, out: &mut Out) -> Result<(), CallError> {
    out.coins(relay(call)?.min_relay_fee_sat_per_kvb);
    Ok(())
}

pub(super) fn fee_histogram(call: &Call<'_>, out: &mut Out) -> Result<(), CallError> {
    let bins = call.read(|_, pool| pool.fees().compact())?;
    out.array(bins, |out, (tenths, vsize)| {
        out.raw("[").int(tenths / 10).raw(".").int(tenths % 10).raw(",").int(vsize).raw("]");
    });
    Ok(())
}

pub(super) fn info(call: &Call<'_>, out: &mut Out) -> Result<(), CallError> {
    let relay = relay(call)?;
    out.raw("{\"mempoolminfee\":").coins(floor(&relay));
    out.raw(",\"minrelaytxfee\":").coins(relay.min_relay_fee_sat_per_kvb);
    out.raw(",\"incrementalrelayfee\":").coins(relay.incremental_relay_fee_sat_per_kvb).raw("}");
    Ok(())
}

pub(super) fn recent(call: &Call<'_>, out: &mut Out) -> Result<(), CallError> {
    out.array(call.read(|_, pool| pool.recent(RECENT))?, |out, tx| {
        out.raw("{\"txid\":").hash(&tx.txid.0).raw(",\"fee\":").int(tx.fee_sat);
        out.raw(",\"vsize\":").int(tx.vsize).raw("}");
    });
    Ok(())
}
