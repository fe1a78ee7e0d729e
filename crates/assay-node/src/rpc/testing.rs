//! RPC for tests: mock clock, synchronization, and echo.

use std::thread::sleep;
use std::time::Duration;

use assay_consensus::params::ChainParams;

use super::args::Args;
use super::method::{ArgSpec, HIDDEN, Kind, Method, Need, optional, required};
use super::{Job, Node};
use crate::jsonrpc::{Code, Json, RpcError};

pub(super) const SETMOCKTIME: Method = Method {
    name: "setmocktime",
    category: HIDDEN,
    about: "Sets the clock that the node judges by; it stands still until it is set again. Regression tests only.",
    args: &[required(
        "timestamp",
        Kind::Number,
        "Seconds since 1970; 0 goes back to the system's time",
    )],
    result: "null    (json null) The clock is set",
    example: "1700000000",
    prepare: |rpc, args| {
        if !is_mockable(&rpc.params) {
            let text = "setmocktime is for regression testing (-regtest mode) only";
            return Err(RpcError::new(Code::Misc, text));
        }
        let time_s: i64 = args.integer(0)?;
        let time = u32::try_from(time_s).map_err(|_| {
            let text = format!("Mocktime must be in the range [0, {}], not {time_s}.", u32::MAX);
            RpcError::new(Code::InvalidParameter, text)
        })?;
        Ok(Job::call(args, move |node, out| {
            node.engine.config().clock.set(u64::from(time));
            if let Some(network) = node.rpc.network.get() {
                network.clock_was_set();
            }
            Json::new(out).null();
            Ok(())
        }))
    },
};

pub(super) const MOCKSCHEDULER: Method = Method {
    name: "mockscheduler",
    category: HIDDEN,
    about: "Does now what would happen of its own accord within this time: transactions that no peer has fetched are \
            announced again. Regression tests only.",
    args: &[required("delta_time", Kind::Number, "Seconds, 1 to 3600")],
    result: "null    (json null) Nothing",
    example: "60",
    prepare: |rpc, args| {
        let bad = |text: &'static str| Err(RpcError::new(Code::Misc, text));
        if !is_mockable(&rpc.params) {
            return bad("mockscheduler is for regression testing (-regtest mode) only");
        }
        let seconds = args.integer::<i64>(0)?;
        if !(1..=3600).contains(&seconds) {
            return bad("delta_time must be between 1 and 3600 seconds (1 hr)");
        }
        Ok(Job::call(args, move |node, out| {
            if let Some(network) = node.rpc.network.get() {
                network.let_pass(seconds.unsigned_abs());
            }
            Json::new(out).null();
            Ok(())
        }))
    },
};

pub(super) const SYNCWITHVALIDATIONINTERFACEQUEUE: Method = Method {
    name: "syncwithvalidationinterfacequeue",
    category: HIDDEN,
    about: "Waits until everything that follows from earlier blocks and transactions has happened.",
    args: &[],
    result: "null    (json null) It has",
    example: "",
    prepare: |_, args| {
        Ok(Job::wait(args, |node, out| {
            if let Some(network) = node.rpc.network.get() {
                network.follow_chain();
            }
            wait_for_index(node);
            Json::new(out).null();
            Ok(())
        }))
    },
};

pub(super) const ECHO: Method = echo("echo");
pub(super) const ECHOJSON: Method = echo("echojson");

/// True if the clock can be set (Core's `IsMockableChain`): chains with blocks on demand.
fn is_mockable(params: &ChainParams) -> bool {
    params.pow.no_retargeting
}

/// The engine has finished with a block or transaction when a call returns; only the index lags.
fn wait_for_index(node: &Node<'_>) {
    let Some(served) = node.rpc.index.get() else { return };
    let target = node.engine.tip();
    let is_behind = || {
        let has_reached = served.index.tip().is_some_and(|tip| tip.hash == target.hash);
        !has_reached && node.engine.tip().hash == target.hash
    };
    while is_behind() && !node.context.interrupted() {
        sleep(INDEX_LOOK);
    }
}

const fn echo(name: &'static str) -> Method {
    Method {
        name,
        category: HIDDEN,
        about: "Returns its arguments.",
        args: ECHOED,
        result: "[ ... ]    (json array) The arguments",
        example: "\"Hello\"",
        prepare: |_, args| {
            let values = echoed(args);
            Ok(Job::call(args, move |_, out| {
                let mut list = Json::new(out).array();
                for value in &values {
                    list.item().raw(value);
                }
                list.end();
                Ok(())
            }))
        },
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

const fn echo_arg(name: &'static str) -> ArgSpec {
    optional(name, Kind::Any, Need::Optional, "Anything")
}

const ECHOED: &[ArgSpec] = &[
    echo_arg("arg0"),
    echo_arg("arg1"),
    echo_arg("arg2"),
    echo_arg("arg3"),
    echo_arg("arg4"),
    echo_arg("arg5"),
    echo_arg("arg6"),
    echo_arg("arg7"),
    echo_arg("arg8"),
    echo_arg("arg9"),
];

const INDEX_LOOK: Duration = Duration::from_millis(2);
