//! RPC of bans.

use std::sync::Arc;

use super::method::{Call, help};
use super::{Node, bad};
use crate::jsonrpc::{Code, Json, RpcError};
use crate::p2p::{Ban, P2p, Peer, Range, valid_ip};

pub(super) const LISTBANNED: Call = |node, _, out| {
    let now_s = i64::try_from(node.engine.clock().now_s()).unwrap_or(i64::MAX);
    Json::new(out).objects(
        network(node)?.peers.bans.list(),
        |(range, Ban { created_s, until_s }), object| {
            object.key("address").text(range);
            object.key("ban_created").int(created_s);
            object.key("banned_until").int(until_s);
            object.key("ban_duration").int(until_s.saturating_sub(created_s));
            object.key("time_remaining").int(until_s.saturating_sub(now_s));
        },
    );
    Ok(())
};

pub(super) const CLEARBANNED: Call = |node, _, out| {
    network(node)?.peers.bans.clear();
    Json::new(out).null();
    Ok(())
};

fn network<'a>(node: &Node<'a>) -> Result<&'a Arc<P2p>, RpcError> {
    let missing = "Error: Ban database not loaded";
    node.rpc.network.get().ok_or_else(|| RpcError::new(Code::Database, missing))
}

pub(super) const SETBAN: Call = |node, args, out| {
    let (text, command) = (args.string(0)?, args.string(1)?);
    if !["add", "remove"].contains(&&*command) {
        return Err(RpcError::new(Code::Misc, help("setban")));
    }
    let invalid = |text: &'static str| RpcError::new(Code::InvalidIpOrSubnet, text);
    let range = Range::parse(&text).ok_or_else(|| invalid("Error: Invalid IP/Subnet"))?;
    let is_added = command == "add";
    let (time_s, is_until): (i64, bool) = (args.integer_or(2, 0)?, args.bool_or(3, false)?);
    let network = network(node)?;
    if is_added {
        ban(node, network, &range, time_s, is_until)?;
    } else if !network.peers.bans.unban(&range) {
        return Err(invalid(
            "Error: Unban failed. Requested address/subnet was not previously manually banned.",
        ));
    }
    Json::new(out).null();
    Ok(())
};

fn ban(
    node: &Node<'_>,
    network: &P2p,
    range: &Range,
    time_s: i64,
    is_until: bool,
) -> Result<(), RpcError> {
    let is_past = u64::try_from(time_s).is_ok_and(|time_s| time_s < node.engine.clock().now_s());
    if is_until && (is_past || time_s < 0) {
        return Err(bad("Error: Absolute timestamp is in the past"));
    }
    if !network.peers.bans.ban(range, time_s, is_until) {
        return Err(RpcError::new(Code::NodeAlreadyAdded, "Error: IP/Subnet already banned"));
    }
    let is_banned =
        |peer: &&Arc<Peer>| valid_ip(&peer.address.host).is_some_and(|ip| range.contains(ip));
    network.peers.list().iter().filter(is_banned).for_each(|peer| peer.close());
    Ok(())
}
