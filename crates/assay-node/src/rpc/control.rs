//! RPC of the node itself.

use std::sync::PoisonError;
use std::thread::sleep;
use std::time::Duration;

use super::args;
use super::bad;
use super::method::Call;
use crate::jsonrpc::{Json, RpcError, Value};
use crate::log;

pub(super) const STOP: Call = |node, args, out| {
    let number = args.value(0).is_some_and(|value| value.type_name() == "number");
    let wait_ms: u32 = if number { args.integer(0)? } else { 0 };
    node.rpc.stop.send_replace(true);
    sleep(Duration::from_millis(u64::from(wait_ms)).min(STOP_WAIT_MAX));
    Json::new(out).string("Assay stopping");
    Ok(())
};

pub(super) const UPTIME: Call = |node, _, out| {
    Json::new(out).int(node.rpc.started.elapsed().as_secs());
    Ok(())
};

pub(super) const GETRPCINFO: Call = |node, _, out| {
    let mut object = Json::new(out).object();
    let mut commands = object.key("active_commands").array();
    let active = node.rpc.active.lock().unwrap_or_else(PoisonError::into_inner);
    for (_, method, since) in &active.calls {
        let mut command = commands.item().object();
        command.key("method").string(method);
        let duration_us = u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX);
        command.key("duration").int(duration_us);
    }
    drop(active);
    commands.end();
    object.key("logpath").string(&node.rpc.log_path.to_string_lossy());
    Ok(())
};

pub(super) const GETMEMORYINFO: Call = |_, args, out| {
    match args.optional_string(0)?.as_deref() {
        None | Some("stats") => {}
        Some("mallocinfo") => return Err(bad("mallocinfo mode not available")),
        Some(mode) => return Err(bad(format!("unknown mode {mode}"))),
    }
    let mut object = Json::new(out).object();
    let mut locked = object.key("locked").object();
    for name in ["used", "free", "total", "locked", "chunks_used", "chunks_free"] {
        locked.key(name).int(0);
    }
    Ok(())
};

pub(super) const LOGGING: Call = |_, args, out| {
    let (included, excluded) = (names(args.value(0))?, names(args.value(1))?);
    for (names, is_on) in [(&included, true), (&excluded, false)] {
        if let Some(name) = names.iter().find(|name| !log::set_category(name, is_on)) {
            return Err(bad(format!("unknown logging category {name}")));
        }
    }
    let mut object = Json::new(out).object();
    for (name, is_on) in log::category_states() {
        object.key(name).bool(is_on);
    }
    Ok(())
};

fn names(given: Option<Value<'_>>) -> Result<Vec<String>, RpcError> {
    let names = given.and_then(Value::elements).unwrap_or_default().into_iter();
    names.map(|name| args::string_of(name).map(std::borrow::Cow::into_owned)).collect()
}

pub(super) const GETZMQNOTIFICATIONS: Call = |node, _, out| {
    Json::new(out).objects(node.rpc.zmq.get().into_iter().flatten(), |one, object| {
        object.key("type").text(format_args!("pub{}", one.topic.name()));
        object.key("address").string(&one.zmq_address());
        object.key("hwm").int(one.high_water_mark);
    });
    Ok(())
};

const STOP_WAIT_MAX: Duration = Duration::from_mins(1);
