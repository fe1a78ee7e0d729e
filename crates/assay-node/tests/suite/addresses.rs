//! Addresses of other nodes: what peers hear of them, and what is believed of what peers say.

use assay_wire::p2p::{
    Command, Endpoint, Host, Message, NetAddress, PeerAddress, TimedAddress, Version,
};
use serde_json::json;

use crate::node::Fixture;
use crate::p2p::{Client, our_version, serving};

fn endpoint(text: &str) -> Endpoint {
    Endpoint { host: Host::parse(text).unwrap(), port: 8333 }
}

fn peer_address(f: &Fixture, text: &str) -> PeerAddress {
    let time = f.node.engine().clock().now_s() as u32;
    PeerAddress { time, services: 9, endpoint: endpoint(text) }
}

fn v1(address: &PeerAddress) -> TimedAddress {
    let PeerAddress { time, services, endpoint } = *address;
    let address = NetAddress { services, ip: endpoint.host.to_v1(), port: endpoint.port };
    TimedAddress { time, address }
}

/// A peer that reads `addrv2`, or not, and takes part in the relay of addresses.
fn listener(f: &Fixture, has_v2: bool) -> Client {
    let mut client = Client::connect(f);
    let Message::Version(version) = our_version(70016) else { unreachable!() };
    client.send(&Message::Version(Version { services: 0x409, ..version }));
    client.expect_past("verack");
    if has_v2 {
        client.send(&Message::SendAddrV2);
    }
    client.send(&Message::Verack);
    client.send(&Message::Addr([][..].into()));
    in_order(&mut client);
    client
}

/// Everything sent before has had its effect.
fn in_order(client: &mut Client) {
    client.send(&Message::Ping(5));
    client.expect_past("pong");
}

fn later(f: &mut Fixture, minutes: u64) {
    let now_s = f.node.engine().clock().now_s();
    f.call("setmocktime", &json!([now_s + 60 * minutes]));
}

fn with_addresses() -> Fixture {
    let mut f = serving(1, |config| {
        config.whitelist = vec!["addr@127.0.0.1".to_owned()];
        config.check_addresses = 1;
    });
    f.call("setmocktime", &json!([1_700_000_000]));
    f
}

#[test]
fn new_addresses_go_on_to_others_and_are_kept() {
    let mut f = with_addresses();
    let mut source = listener(&f, true);
    let (mut old, mut new) = (listener(&f, false), listener(&f, true));
    let onion = "pg6mmjiyjmcrsslvykfwnntlaru7p5svn6y2ymmju6nubxndf4pscryd.onion";
    let hosts = ["123.4.5.6", "124.4.5.6", onion, "10.0.0.1"];
    let sent = hosts.map(|text| peer_address(&f, text));
    source.send(&Message::AddrV2(sent[..].into()));
    in_order(&mut source);
    later(&mut f, 10);
    let payload = old.expect_past("addr");
    let Ok(Message::Addr(heard)) = Message::parse(Command::new("addr"), &payload) else { panic!() };
    let mut heard: Vec<_> = heard.iter().collect();
    heard.sort_by_key(|address| address.address.ip);
    assert_eq!(heard, sent[..2].iter().map(v1).collect::<Vec<_>>(), "what is routable and fits");
    let payload = new.expect_past("addrv2");
    let Ok(Message::AddrV2(heard)) = Message::parse(Command::new("addrv2"), &payload) else {
        panic!()
    };
    let mut heard: Vec<_> = heard.iter().collect();
    heard.sort_by_key(|address| address.endpoint);
    assert_eq!(heard, sent[..3], "Tor's as well, though it cannot be reached from here");
    let kept = f.call("getnodeaddresses", &json!([0]));
    assert_eq!(kept.as_array().unwrap().len(), 2);
    let counts = f.call("getaddrmaninfo", &json!([]));
    assert_eq!(counts["all_networks"], json!({"new": 2, "tried": 0, "total": 2}));
    assert_eq!(counts["onion"]["total"], 0);
    let peers = f.call("getpeerinfo", &json!([]));
    assert_eq!(
        (&peers[0]["addr_processed"], &peers[0]["addr_relay_enabled"]),
        (&json!(4), &json!(true))
    );
    // They are still there after a restart.
    let mut f = f.restart(|config| {
        config.p2p = Some(assay_node::P2pConfig::new("127.0.0.1:0".parse().unwrap()));
    });
    assert_eq!(f.call("getaddrmaninfo", &json!([]))["ipv4"]["new"], 2);
}

#[test]
fn who_asks_gets_an_answer_once() {
    let mut f = with_addresses();
    for number in 1..=60 {
        let host = format!("{}.1.{number}.1", 20 + number);
        let added = f.call("addpeeraddress", &json!([host, 8333, number % 2 == 0]));
        assert!(added["success"] == true || number % 2 == 0, "{added}");
    }
    let mut client = listener(&f, false);
    client.send(&Message::GetAddr);
    in_order(&mut client);
    later(&mut f, 10);
    let payload = client.expect_past("addr");
    let Ok(Message::Addr(heard)) = Message::parse(Command::new("addr"), &payload) else { panic!() };
    let known = f.call("getaddrmaninfo", &json!([]))["all_networks"]["total"].as_u64().unwrap();
    assert_eq!(heard.len() as u64, known * 23 / 100);
    client.send(&Message::GetAddr);
    in_order(&mut client);
    later(&mut f, 10);
    in_order(&mut client);
    let peers = f.call("getpeerinfo", &json!([]));
    let bytes = 24 + payload.len() as u64;
    assert_eq!(peers[0]["bytessent_per_msg"]["addr"], bytes, "no second answer");
}

#[test]
fn addresses_are_rated_and_lists_that_are_too_long_a_fault() {
    let mut f = serving(1, |_| {});
    f.call("setmocktime", &json!([1_700_000_000]));
    let mut client = listener(&f, false);
    let many: Vec<_> =
        (1..=200).map(|number| v1(&peer_address(&f, &format!("33.1.{number}.1")))).collect();
    client.send(&Message::Addr(many[..].into()));
    in_order(&mut client);
    let rates = |f: &mut Fixture| {
        let peers = f.call("getpeerinfo", &json!([]));
        (peers[0]["addr_processed"].clone(), peers[0]["addr_rate_limited"].clone())
    };
    assert_eq!(rates(&mut f), (json!(1), json!(199)));
    later(&mut f, 1);
    client.send(&Message::Addr(many[..].into()));
    in_order(&mut client);
    assert_eq!(rates(&mut f), (json!(7), json!(393)), "six more a minute");
    let too_many = vec![many[0]; 1001];
    client.send(&Message::Addr(too_many[..].into()));
    client.expect_end_past_all();
    let mut late = listener(&f, true);
    late.send(&Message::SendAddrV2);
    late.expect_end_past_all();
}

#[test]
fn rpc_names_what_it_does_not_take() {
    let mut f = serving(1, |_| {});
    assert_eq!(
        f.error("addpeeraddress", &json!(["host", 1])),
        (-30, "Invalid IP address".to_owned())
    );
    assert_eq!(f.error("getnodeaddresses", &json!([-1])).1, "Address count out of range");
    assert_eq!(f.error("getnodeaddresses", &json!([1, "Foo"])).1, "Network not recognized: Foo");
    let added = f.call("addpeeraddress", &json!(["10.0.0.1", 1]));
    assert_eq!(added, json!({"error": "failed-adding-to-new", "success": false}));
    assert_eq!(f.call("addpeeraddress", &json!(["1.2.3.4", 1, true])), json!({"success": true}));
    let table = f.call("getrawaddrman", &json!([]));
    let tried: Vec<_> = table["tried"].as_object().unwrap().values().collect();
    assert_eq!(
        (tried[0]["address"].as_str(), tried[0]["services"].as_u64()),
        (Some("1.2.3.4"), Some(9))
    );
    assert_eq!(table["new"], json!({}));
}
