//! RPC for tests: mock clock, synchronization, and echo.

use std::thread::sleep;
use std::time::Duration;

use assay_consensus::params::ChainParams;

use super::Node;
use super::args::Args;
use super::method::Call;
use crate::jsonrpc::{Code, Json, RpcError};

pub(super) const SETMOCKTIME: Call = |node, args, out| {
    if !is_mockable(&node.rpc.params) {
        let text = "setmocktime is for regression testing (-regtest mode) only";
        return Err(RpcError::new(Code::Misc, text));
    }
    let time_s: i64 = args.integer(0)?;
    let time = u32::try_from(time_s).map_err(|_| {
        let text = format!("Mocktime must be in the range [0, {}], not {time_s}.", u32::MAX);
        RpcError::new(Code::InvalidParameter, text)
    })?;
    node.engine.clock().set(u64::from(time));
    if let Some(network) = node.rpc.network.get() {
        network.clock_was_set();
    }
    Json::new(out).null();
    Ok(())
};

pub(super) const MOCKSCHEDULER: Call = |node, args, out| {
    let bad = |text: &'static str| Err(RpcError::new(Code::Misc, text));
    if !is_mockable(&node.rpc.params) {
        return bad("mockscheduler is for regression testing (-regtest mode) only");
    }
    let seconds = args.integer::<i64>(0)?;
    if !(1..=3600).contains(&seconds) {
        return bad("delta_time must be between 1 and 3600 seconds (1 hr)");
    }
    if let Some(network) = node.rpc.network.get() {
        network.let_pass(seconds.unsigned_abs());
    }
    Json::new(out).null();
    Ok(())
};

pub(super) const SYNCWITHVALIDATIONINTERFACEQUEUE: Call = |node, _, out| {
    if let Some(network) = node.rpc.network.get() {
        network.txs.follow_chain();
    }
    wait_for_index(node);
    Json::new(out).null();
    Ok(())
};

/// `echo` and `echojson`.
pub(super) const ECHO: Call = |_, args, out| {
    let values = echoed(args);
    Json::new(out).list(&values, |value, json| json.raw(value));
    Ok(())
};

/// True if the clock can be set (Core's `IsMockableChain`): chains with blocks on demand.
fn is_mockable(params: &ChainParams) -> bool {
    params.pow.no_retargeting
}

/// The engine has finished with a block or transaction when a call returns; only the index lags.
fn wait_for_index(node: &Node<'_>) {
    let Some(served) = node.rpc.index.get() else { return };
    let target = node.engine.chain().tip();
    let is_behind = || {
        let has_reached = served.index.tip().is_some_and(|tip| tip.hash == target.hash);
        !has_reached && node.engine.chain().tip().hash == target.hash
    };
    while is_behind() && !node.context.interrupted() {
        sleep(INDEX_LOOK);
    }
}

/// Arguments as JSON text; missing ones in between are null.
fn echoed(args: &Args<'_>) -> Vec<String> {
    let text = |index: usize| {
        let Some(value) = args.value(index) else { return "null".to_owned() };
        let Some(string) = value.string() else { return value.json().to_owned() };
        // Long strings are not in the request text.
        let mut out = Vec::new();
        Json::new(&mut out).string(&string);
        String::from_utf8(out).unwrap_or_default()
    };
    (0..args.given()).map(text).collect()
}

const INDEX_LOOK: Duration = Duration::from_millis(2);
