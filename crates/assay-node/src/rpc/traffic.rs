//! RPC of network traffic and activity.

use std::time::{SystemTime, UNIX_EPOCH};

use super::method::Prepare;
use super::peers::network;
use super::{Job, Node};
use crate::jsonrpc::{Json, RpcError};
use crate::p2p::DAY_S;

pub(super) const GETNETTOTALS: Prepare = |_, args| Ok(Job::call(args, net_totals));

pub(super) const SETNETWORKACTIVE: Prepare = |_, args| {
    let is_active = args.bool_or(0, false)?;
    Ok(Job::call(args, move |node, out| {
        let network = network(node)?;
        network.set_active(is_active);
        Json::new(out).bool(network.peers().is_active());
        Ok(())
    }))
};

fn net_totals(node: &Node<'_>, out: &mut Vec<u8>) -> Result<(), RpcError> {
    let totals = network(node)?.peers().totals();
    let now_s = node.engine.clock().now_s();
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut object = Json::new(out).object();
    object.key("totalbytesrecv").int(totals.received_bytes());
    object.key("totalbytessent").int(totals.sent_bytes());
    object.key("timemillis").int(u64::try_from(since_1970.as_millis()).unwrap_or(u64::MAX));
    let mut target = object.key("uploadtarget").object();
    target.key("timeframe").int(DAY_S);
    target.key("target").int(totals.target_bytes);
    target.key("target_reached").bool(totals.is_reached());
    target.key("serve_historical_blocks").bool(!totals.is_reached_for_old_blocks(now_s));
    target.key("bytes_left_in_cycle").int(totals.left_bytes());
    target.key("time_left_in_cycle").int(totals.left_s(now_s));
    target.end();
    object.end();
    Ok(())
}
