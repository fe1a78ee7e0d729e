//! RPC of the address manager.

use assay_wire::p2p::{Endpoint, Host, NetworkKind, PeerAddress};

use super::bad;
use super::method::Call;
use super::peers::network;
use crate::jsonrpc::{Code, Json, RpcError};
use crate::p2p::{Count, Entry, NODE_NETWORK, NODE_WITNESS, Wanted};

pub(super) const GETNODEADDRESSES: Call = |node, args, out| {
    let count: i32 = args.integer_or(0, 1)?;
    let count = usize::try_from(count).map_err(|_| bad("Address count out of range"))?;
    let kind = args.optional_string(1)?;
    let unknown = |text: &str| bad(format!("Network not recognized: {text}"));
    let kind = kind.map(|text| text.parse::<NetworkKind>().map_err(|_| unknown(&text)));
    let kind = kind.transpose()?;
    let wanted = Wanted { count_max: count, percent_max: 0, network: kind };
    let mut array = Json::new(out).array();
    for address in network(node)?.addresses.listed(&wanted) {
        let PeerAddress { time, services, endpoint: Endpoint { host, port } } = address;
        let mut object = array.item().object();
        object.key("time").int(time);
        object.key("services").int(services);
        object.key("address").text(host);
        object.key("port").int(port);
        object.key("network").string(host.network_class().name());
    }
    Ok(())
};

pub(super) const ADDPEERADDRESS: Call = |node, args, out| {
    let (text, port) = (args.string(0)?.into_owned(), args.integer::<u16>(1)?);
    let is_tried = args.bool_or(2, false)?;
    let invalid = || RpcError::new(Code::InvalidIpOrSubnet, "Invalid IP address");
    let host = Host::parse(text.trim_matches(['[', ']'])).ok_or_else(invalid)?;
    let network = network(node)?;
    let host = network.host_of(host);
    let time = u32::try_from(node.engine.clock().now_s()).unwrap_or(u32::MAX);
    let endpoint = Endpoint { host, port };
    let address = PeerAddress { time, services: NODE_NETWORK | NODE_WITNESS, endpoint };
    let known = &network.addresses.known;
    // As if it had announced itself.
    let error = if !known.add(&[address], &host, 0) {
        Some("failed-adding-to-new")
    } else if is_tried && !known.good(&endpoint) {
        Some("failed-adding-to-tried")
    } else {
        None
    };
    let mut object = Json::new(out).object();
    if let Some(error) = error {
        object.key("error").string(error);
    }
    object.key("success").bool(error.is_none());
    Ok(())
};

pub(super) const GETADDRMANINFO: Call = |node, _, out| {
    let known = &network(node)?.addresses.known;
    let mut object = Json::new(out).object();
    let networks = NetworkKind::ALL.map(|kind| (kind.name(), Some(kind)));
    for (name, kind) in networks.into_iter().chain([("all_networks", None)]) {
        let Count { new, tried } = known.count(kind);
        let mut counts = object.key(name).object();
        counts.key("new").count(new);
        counts.key("tried").count(tried);
        counts.key("total").count(new + tried);
    }
    Ok(())
};

pub(super) const GETRAWADDRMAN: Call = |node, _, out| {
    let known = &network(node)?.addresses.known;
    let mut object = Json::new(out).object();
    for (name, is_tried) in [("new", false), ("tried", true)] {
        let mut table = object.key(name).object();
        for (bucket, place, entry) in known.entries(is_tried) {
            one(table.key(format!("{bucket}/{place}")), &entry);
        }
    }
    Ok(())
};

fn one(json: Json<'_>, Entry { address, source, .. }: &Entry) {
    let PeerAddress { time, services, endpoint: Endpoint { host, port } } = *address;
    let mut object = json.object();
    object.key("address").text(host);
    object.key("port").int(port);
    object.key("services").int(services);
    object.key("time").int(time);
    object.key("network").string(host.network_class().name());
    object.key("source").text(source);
    object.key("source_network").string(source.network_class().name());
}
