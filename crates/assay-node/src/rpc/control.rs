//! RPC of the node itself.

use std::sync::PoisonError;
use std::thread::sleep;
use std::time::Duration;

use super::method::Prepare;
use super::{Job, Node, bad};
use crate::jsonrpc::{Json, RpcError};

pub(super) const STOP: Prepare = |_, args| {
    let number = args.value(0).is_some_and(|value| value.type_name() == "number");
    let wait_ms: u32 = if number { args.integer(0)? } else { 0 };
    Ok(Job::wait(args, move |node, out| {
        node.rpc.stop.send_replace(true);
        sleep(Duration::from_millis(u64::from(wait_ms)).min(STOP_WAIT_MAX));
        Json::new(out).string("Assay stopping");
        Ok(())
    }))
};

pub(super) const UPTIME: Prepare = |_, args| {
    Ok(Job::call(args, |node, out| {
        Json::new(out).int(node.rpc.started.elapsed().as_secs());
        Ok(())
    }))
};

pub(super) const GETRPCINFO: Prepare = |_, args| Ok(Job::call(args, rpc_info));

pub(super) const GETMEMORYINFO: Prepare = |_, args| match args.optional_string(0)?.as_deref() {
    None | Some("stats") => Ok(Job::call(args, memory_info)),
    Some("mallocinfo") => Err(bad("mallocinfo mode not available")),
    Some(mode) => Err(bad(format!("unknown mode {mode}"))),
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
