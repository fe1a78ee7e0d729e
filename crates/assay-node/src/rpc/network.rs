//! RPC of the network state.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use assay_engine::ChainParams;
use assay_wire::p2p::NetworkKind;

use super::method::Call;
use super::peers::network;
use super::{Node, write_warnings};
use crate::jsonrpc::Json;
use crate::p2p::{CORE_VERSION_NUMBER, DAY_S, P2p, PROTOCOL_VERSION, Peer, SERVICES};

pub(super) const GETCONNECTIONCOUNT: Call = |node, _, out| {
    Json::new(out).count(count(node));
    Ok(())
};

pub(super) const GETPEERINFO: Call = |node, _, out| {
    let mut array = Json::new(out).array();
    if let Some(network) = node.rpc.network.get() {
        for peer in &network.peers.list() {
            one_peer(array.item(), peer, network, node);
        }
    }
    Ok(())
};

pub(super) const GETNETWORKINFO: Call = |node, _, out| {
    let fee_rate = node.engine.mempool().info().min_relay_fee_sat_per_kvb.cast_signed();
    let offered = node.rpc.network.get().map_or(0, |network| network.peers.services());
    let is_active = node.rpc.network.get().is_some_and(|network| network.peers.is_active());
    let connections = count(node);
    let peers = node.rpc.network.get().map(|network| network.peers.list()).unwrap_or_default();
    let inbound = peers.iter().filter(|peer| peer.connection.is_inbound()).count();
    let mut object = Json::new(out).object();
    object.key("version").int(version_number(&node.rpc.params));
    object.key("subversion").string(&node.rpc.user_agent);
    object.key("protocolversion").int(PROTOCOL_VERSION);
    services(object.key("localservices"), offered);
    service_names(object.key("localservicesnames"), offered);
    let relays = node.rpc.network.get().is_some_and(|network| !network.peers.config.blocks_only);
    object.key("localrelay").bool(relays);
    object.key("timeoffset").int(0);
    object.key("networkactive").bool(is_active);
    object.key("connections").count(connections);
    object.key("connections_in").count(inbound);
    object.key("connections_out").count(peers.len() - inbound);
    let mut networks = object.key("networks").array();
    for kind in NetworkKind::ALL {
        let is_reachable = node
            .rpc
            .network
            .get()
            .is_some_and(|network| network.addresses.reachable().contains(&kind));
        let mut network = networks.item().object();
        network.key("name").string(kind.name());
        network.key("limited").bool(!is_reachable);
        network.key("reachable").bool(is_reachable);
        let proxy = node.rpc.network.get().and_then(|network| network.proxy(kind));
        let shown = proxy.map(|(address, _)| address.to_string());
        network.key("proxy").string(shown.as_deref().unwrap_or_default());
        let isolates = proxy.is_some_and(|(_, isolates)| isolates);
        network.key("proxy_randomize_credentials").bool(isolates);
    }
    networks.end();
    object.key("relayfee").amount(fee_rate);
    object.key("incrementalfee").amount(fee_rate);
    let mut addresses = object.key("localaddresses").array();
    let own = node.rpc.network.get().map(|network| network.addresses.local.list());
    for (endpoint, score) in own.into_iter().flatten() {
        let mut address = addresses.item().object();
        address.key("address").text(endpoint.host);
        address.key("port").int(endpoint.port);
        address.key("score").int(score);
    }
    addresses.end();
    write_warnings(node, object.key("warnings"));
    Ok(())
};

pub(super) const GETNETTOTALS: Call = |node, _, out| {
    let totals = network(node)?.peers.totals();
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
    Ok(())
};

pub(super) const SETNETWORKACTIVE: Call = |node, args, out| {
    let is_active = args.bool_or(0, false)?;
    let network = network(node)?;
    network.peers.set_active(is_active);
    Json::new(out).bool(network.peers.is_active());
    Ok(())
};

fn count(node: &Node<'_>) -> usize {
    node.rpc.network.get().map_or(0, |network| network.peers.count())
}

fn one_peer(json: Json<'_>, peer: &Arc<Peer>, network: &P2p, node: &Node<'_>) {
    let (facts, traffic) = (peer.facts(), &peer.traffic);
    let seconds = |time: Duration| (time.as_secs_f64() * 1e6).round() / 1e6;
    let number = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let mut object = json.object();
    object.key("id").int(peer.id);
    object.key("addr").string(&peer.shown_address());
    object.key("addrbind").text(peer.bound);
    if let Some(own) = facts.seen_as.filter(|own| own.host.is_valid()) {
        object.key("addrlocal").text(own);
    }
    object.key("network").string(peer.network().name());
    services(object.key("services"), facts.services);
    service_names(object.key("servicesnames"), facts.services);
    let relay = peer.with_relay(|relay| (relay.is_wanted, relay.sequence(), relay.to_send.len()));
    object.key("relaytxes").bool(relay.0);
    object.key("last_inv_sequence").int(if relay.0 { relay.1 } else { 0 });
    object.key("inv_to_send").count(relay.2);
    object.key("lastsend").int(number(&traffic.sent_at_s));
    object.key("lastrecv").int(number(&traffic.received_at_s));
    object.key("last_transaction").int(number(&traffic.tx_at_s));
    object.key("last_block").int(number(&traffic.block_at_s));
    object.key("bytessent").int(number(&traffic.sent_bytes));
    object.key("bytesrecv").int(number(&traffic.received_bytes));
    object.key("conntime").int(peer.connected_us / 1_000_000);
    object.key("timeoffset").int(facts.time_offset_s);
    for (name, time) in [
        ("pingtime", facts.ping_time),
        ("minping", facts.ping_time_min),
        ("pingwait", facts.ping_wait(node.engine.clock().now_us())),
    ] {
        if let Some(time) = time {
            object.key(name).real(seconds(time));
        }
    }
    object.key("version").int(facts.version);
    object.key("subver").string(&facts.user_agent);
    object.key("inbound").bool(peer.connection.is_inbound());
    let sync = network.sync.facts(peer.id);
    object.key("bip152_hb_to").bool(sync.is_high_bandwidth);
    object.key("bip152_hb_from").bool(peer.wants_compact.load(Ordering::Relaxed));
    let height = |height: Option<u32>| height.map_or(-1, i64::from);
    object.key("presynced_headers").int(height(sync.presynced_headers));
    object.key("synced_headers").int(height(sync.synced_headers));
    object.key("synced_blocks").int(height(sync.synced_blocks));
    object.key("inflight").list(sync.in_flight, |height, json| json.int(height));
    let (is_enabled, processed, rate_limited) =
        peer.with_addresses(|relay| (relay.is_enabled, relay.processed, relay.rate_limited));
    object.key("addr_relay_enabled").bool(is_enabled);
    object.key("addr_processed").int(processed);
    object.key("addr_rate_limited").int(rate_limited);
    object.key("permissions").list(peer.permissions.names(), |name, json| json.string(name));
    object.key("minfeefilter").amount(facts.min_fee_sat_per_kvb.cast_signed());
    for (name, was_received) in [("bytessent_per_msg", false), ("bytesrecv_per_msg", true)] {
        let mut counts = traffic.messages.list(was_received);
        counts.sort_by_key(|count| count.name);
        let mut messages = object.key(name).object();
        for count in counts {
            messages.key(count.name).int(count.bytes);
        }
    }
    object.key("connection_type").string(peer.connection.name());
    let (transport, session) = peer.transport();
    object.key("transport_protocol_type").string(transport);
    let session = session.map(|id| faster_hex::hex_string(&id));
    object.key("session_id").string(session.as_deref().unwrap_or_default());
}

fn services(json: Json<'_>, bits: u64) {
    json.text(format_args!("{bits:016x}"));
}

/// Names of service bits, lowest first; unnamed bits as in Core (`protocol.cpp`, `serviceFlagToStr`).
fn service_names(json: Json<'_>, bits: u64) {
    let mut array = json.array();
    for bit in (0..u64::BITS).filter(|bit| bits >> bit & 1 == 1) {
        match SERVICES.iter().find(|(known, _)| *known == 1 << bit) {
            Some((_, name)) => array.item().string(name),
            None => array.item().text(format_args!("UNKNOWN[2^{bit}]")),
        }
    }
}

/// Packed version as in Bitcoin Core. On Bitcoin's chains it is the compatible release, from which clients derive features.
fn version_number(params: &ChainParams) -> u32 {
    if params.cash.is_none() {
        return CORE_VERSION_NUMBER;
    }
    let part = |text: &str| text.parse::<u32>().unwrap_or(0);
    10_000 * part(env!("CARGO_PKG_VERSION_MAJOR"))
        + 100 * part(env!("CARGO_PKG_VERSION_MINOR"))
        + part(env!("CARGO_PKG_VERSION_PATCH"))
}
