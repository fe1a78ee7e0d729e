//! RPC of the node itself.

use std::sync::PoisonError;
use std::thread::sleep;
use std::time::Duration;

use super::method::{Kind, Method, Need, optional};
use super::{Job, Node, bad};
use crate::jsonrpc::{Json, RpcError};

pub(super) const STOP: Method = Method {
    name: "stop",
    category: "control",
    about: "Asks the node to write everything out and end.",
    args: &[optional(
        "wait",
        Kind::Number,
        Need::Optional,
        "Milliseconds to wait before answering",
    )],
    result: "\"str\"    (string) The text \"Assay stopping\"",
    example: "",
    prepare: |_, args| {
        let number = args.value(0).is_some_and(|value| value.type_name() == "number");
        let wait_ms: u32 = if number { args.integer(0)? } else { 0 };
        Ok(Job::wait(args, move |node, out| {
            node.rpc.stop.send_replace(true);
            sleep(Duration::from_millis(u64::from(wait_ms)).min(STOP_WAIT_MAX));
            Json::new(out).string("Assay stopping");
            Ok(())
        }))
    },
};

pub(super) const UPTIME: Method = Method {
    name: "uptime",
    category: "control",
    about: "How long the node has been running.",
    args: &[],
    result: "n    (numeric) Seconds",
    example: "",
    prepare: |_, args| {
        Ok(Job::call(args, |node, out| {
            Json::new(out).int(node.rpc.started.elapsed().as_secs());
            Ok(())
        }))
    },
};

pub(super) const GETRPCINFO: Method = Method {
    name: "getrpcinfo",
    category: "control",
    about: "State of the RPC server.",
    args: &[],
    result: "\
{                            (json object)
  \"active_commands\" : [      (json array) Calls that run at this moment
    {                        (json object)
      \"method\" : \"str\",      (string) The method
      \"duration\" : n         (numeric) Microseconds since it began
    },
    ...
  ],
  \"logpath\" : \"str\"          (string) The log file
}",
    example: "",
    prepare: |_, args| Ok(Job::call(args, rpc_info)),
};

pub(super) const GETMEMORYINFO: Method = Method {
    name: "getmemoryinfo",
    category: "control",
    about: "Memory that is kept from the swap: none, since there are no secrets. For that of the coins see the metrics.",
    args: &[optional(
        "mode",
        Kind::Text,
        Need::Default("\"stats\""),
        "\"stats\"; there is no \"mallocinfo\"",
    )],
    result: "\
{                          (json object)
  \"locked\" : {             (json object) Always zeros
    \"used\" : n, \"free\" : n, \"total\" : n, \"locked\" : n, \"chunks_used\" : n, \"chunks_free\" : n
  }
}",
    example: "",
    prepare: |_, args| match args.optional_string(0)?.as_deref() {
        None | Some("stats") => Ok(Job::call(args, memory_info)),
        Some("mallocinfo") => Err(bad("mallocinfo mode not available")),
        Some(mode) => Err(bad(format!("unknown mode {mode}"))),
    },
};

#[expect(clippy::unnecessary_wraps, reason = "the shape of every call")]
fn rpc_info(node: &Node<'_>, out: &mut Vec<u8>) -> Result<(), RpcError> {
    let mut object = Json::new(out).object();
    let mut commands = object.key("active_commands").array();
    let active = node.rpc.active.lock().unwrap_or_else(PoisonError::into_inner);
    for (_, method, since) in &active.calls {
        let mut command = commands.item().object();
        command.key("method").string(method);
        let duration_us = u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX);
        command.key("duration").int(duration_us);
        command.end();
    }
    drop(active);
    commands.end();
    object.key("logpath").string(&node.rpc.log_path.to_string_lossy());
    object.end();
    Ok(())
}

#[expect(clippy::unnecessary_wraps, reason = "the shape of every call")]
fn memory_info(_: &Node<'_>, out: &mut Vec<u8>) -> Result<(), RpcError> {
    let mut object = Json::new(out).object();
    let mut locked = object.key("locked").object();
    for name in ["used", "free", "total", "locked", "chunks_used", "chunks_free"] {
        locked.key(name).int(0);
    }
    locked.end();
    object.end();
    Ok(())
}

const STOP_WAIT_MAX: Duration = Duration::from_mins(1);
