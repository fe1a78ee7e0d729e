//! RPC of the address manager.

use assay_wire::p2p::{Endpoint, Host, NetworkKind, PeerAddress};

use super::method::{HIDDEN, Kind, Method, Need, optional, required};
use super::peers::network;
use super::{Job, Node, bad};
use crate::jsonrpc::{Code, Json, RpcError};
use crate::p2p::{Count, Entry, NODE_NETWORK, NODE_WITNESS};

pub(super) const GETNODEADDRESSES: Method = Method {
    name: "getnodeaddresses",
    category: "network",
    about: "Known addresses of nodes by chance, without those that have not been seen for long. There may be more.",
    args: &[
        optional("count", Kind::Number, Need::Default("1"), "How many at most; 0 for all"),
        optional(
            "network",
            Kind::Text,
            Need::Default("all networks"),
            "Of this network alone: ipv4, ipv6, onion, i2p or cjdns",
        ),
    ],
    result: "\
[                         (json array)
  {                       (json object)
    \"time\" : n,           (numeric) When the node was last seen, seconds since 1970
    \"services\" : n,       (numeric) Services that it offers, bit by bit
    \"address\" : \"str\",    (string) Where it is
    \"port\" : n,           (numeric) Its port
    \"network\" : \"str\"     (string) ipv4, ipv6, onion, i2p or cjdns
  },
  ...
]",
    example: "4, \"i2p\"",
    prepare: |_, args| {
        let count: i32 = args.integer_or(0, 1)?;
        let count = usize::try_from(count).map_err(|_| bad("Address count out of range"))?;
        let kind = args.optional_string(1)?;
        let unknown = |text: &str| bad(format!("Network not recognized: {text}"));
        let kind = kind.map(|text| text.parse::<NetworkKind>().map_err(|_| unknown(&text)));
        let kind = kind.transpose()?;
        Ok(Job::call(args, move |node, out| {
            let mut array = Json::new(out).array();
            for address in network(node)?.list_addresses(count, kind) {
                let PeerAddress { time, services, endpoint: Endpoint { host, port } } = address;
                let mut object = array.item().object();
                object.key("time").int(time);
                object.key("services").int(services);
                object.key("address").text(host);
                object.key("port").int(port);
                object.key("network").string(host.network_class().name());
                object.end();
            }
            array.end();
            Ok(())
        }))
    },
};

pub(super) const ADDPEERADDRESS: Method = Method {
    name: "addpeeraddress",
    category: HIDDEN,
    about: "Adds an address of a node, for tests.",
    args: &[
        required("address", Kind::Text, "Address of the node; no name is looked up"),
        required("port", Kind::Number, "Its port"),
        optional(
            "tried",
            Kind::Bool,
            Need::Default("false"),
            "Whether it goes on to the addresses that were connected to",
        ),
    ],
    result: "\
{                           (json object)
  \"success\" : true|false,   (boolean) Whether it got the place
  \"error\" : \"str\"           (string, optional) failed-adding-to-new or failed-adding-to-tried
}",
    example: "\"1.2.3.4\", 8333, true",
    prepare: |_, args| {
        let (text, port) = (args.string(0)?.into_owned(), args.integer::<u16>(1)?);
        let is_tried = args.bool_or(2, false)?;
        let invalid = || RpcError::new(Code::InvalidIpOrSubnet, "Invalid IP address");
        let host = Host::parse(text.trim_matches(['[', ']'])).ok_or_else(invalid)?;
        Ok(Job::call(args, move |node, out| {
            let error = add(node, host, port, is_tried)?;
            let mut object = Json::new(out).object();
            if let Some(error) = error {
                object.key("error").string(error);
            }
            object.key("success").bool(error.is_none());
            object.end();
            Ok(())
        }))
    },
};

/// Adds an address as if it had announced itself; returns the error.
fn add(
    node: &Node<'_>,
    host: Host,
    port: u16,
    is_tried: bool,
) -> Result<Option<&'static str>, RpcError> {
    let network = network(node)?;
    let host = network.host_of(host);
    let time = u32::try_from(node.engine.clock().now_s()).unwrap_or(u32::MAX);
    let endpoint = Endpoint { host, port };
    let address = PeerAddress { time, services: NODE_NETWORK | NODE_WITNESS, endpoint };
    let known = network.known_addresses();
    Ok(if !known.add(&[address], &host, 0) {
        Some("failed-adding-to-new")
    } else if is_tried && !known.good(&endpoint) {
        Some("failed-adding-to-tried")
    } else {
        None
    })
}

pub(super) const GETADDRMANINFO: Method = Method {
    name: "getaddrmaninfo",
    category: "network",
    about: "How many addresses of nodes are known, by network.",
    args: &[],
    result: "\
{                   (json object)
  \"network\" : {     (json object) One each for ipv4, ipv6, onion, i2p, cjdns, and all_networks
    \"new\" : n,      (numeric) Those that were heard of
    \"tried\" : n,    (numeric) Those that were connected to at some time
    \"total\" : n     (numeric) Both
  },
  ...
}",
    example: "",
    prepare: |_, args| {
        Ok(Job::call(args, |node, out| {
            let known = network(node)?.known_addresses();
            let mut object = Json::new(out).object();
            let networks = NetworkKind::ALL.map(|kind| (kind.name(), Some(kind)));
            for (name, kind) in networks.into_iter().chain([("all_networks", None)]) {
                let Count { new, tried } = known.count(kind);
                let mut counts = object.key(name).object();
                counts.key("new").count(new);
                counts.key("tried").count(tried);
                counts.key("total").count(new + tried);
                counts.end();
            }
            object.end();
            Ok(())
        }))
    },
};

pub(super) const GETRAWADDRMAN: Method = Method {
    name: "getrawaddrman",
    category: HIDDEN,
    about: "All known addresses of nodes by their places in the tables, for tests.",
    args: &[],
    result: "\
{                                (json object)
  \"table\" : {                    (json object) new and tried
    \"bucket/position\" : {        (json object) By place
      \"address\" : \"str\",         (string) Where the node is
      \"port\" : n,                (numeric) Its port
      \"services\" : n,            (numeric) Services that it offers, bit by bit
      \"time\" : n,                (numeric) When it was last seen, seconds since 1970
      \"network\" : \"str\",         (string) Its network
      \"source\" : \"str\",          (string) Who named it first
      \"source_network\" : \"str\"   (string) The network of that
    },
    ...
  },
  ...
}",
    example: "",
    prepare: |_, args| {
        Ok(Job::call(args, |node, out| {
            let known = network(node)?.known_addresses();
            let mut object = Json::new(out).object();
            for (name, is_tried) in [("new", false), ("tried", true)] {
                let mut table = object.key(name).object();
                for (bucket, place, entry) in known.entries(is_tried) {
                    one(table.key(format!("{bucket}/{place}")), &entry);
                }
                table.end();
            }
            object.end();
            Ok(())
        }))
    },
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
    object.end();
}
