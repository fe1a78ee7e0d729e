//! Address relay with peers, and acceptance of received addresses.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use assay_node::{Node, P2pConfig, Proxies};
use assay_wire::p2p::{
    Command, Endpoint, Host, Message, NetAddress, PeerAddress, TimedAddress, Version,
};
use assay_wire::{BlockHash, Header};
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

/// Peer with address relay, with or without `addrv2`.
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

/// Waits until everything sent before has taken effect.
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
        // With a random key two addresses collide occasionally, and the second is dropped.
        config.fixed_places = true;
    });
    f.call("setmocktime", &json!([1_700_000_000]));
    f
}

#[test]
fn relays_and_stores_new_addresses() {
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
    // Addresses survive a restart.
    let mut f = f.restart(|config| {
        config.p2p = Some(P2pConfig::new("127.0.0.1:0".parse().unwrap()));
    });
    assert_eq!(f.call("getaddrmaninfo", &json!([]))["ipv4"]["new"], 2);
}

#[test]
fn getaddr_is_answered_once() {
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
fn address_rate_and_list_limits() {
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
fn rpc_rejects_invalid_addresses() {
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

/// Host in a request to a SOCKS5 proxy.
fn host_asked_for(stream: &mut TcpStream) -> String {
    // Methods: none, and name with password.
    let mut greeting = [0; 4];
    stream.read_exact(&mut greeting).unwrap();
    assert_eq!(greeting, [5, 2, 0, 2]);
    stream.write_all(&[5, 0]).unwrap();
    let mut head = [0; 5];
    stream.read_exact(&mut head).unwrap();
    let mut host = vec![0; usize::from(head[4]) + 2];
    stream.read_exact(&mut host).unwrap();
    host.truncate(host.len() - 2);
    String::from_utf8(host).unwrap()
}

#[test]
fn proxied_misbehaviour_affects_one_peer() {
    let proxy = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut f = serving(1, |config| {
        config.encrypted = false;
        config.proxies = Proxies::all(Some(proxy.local_addr().unwrap()));
    });
    let mut connect = |name: &str| {
        let proxy = proxy.try_clone().unwrap();
        let peer = thread::spawn(move || {
            let (mut stream, _) = proxy.accept().unwrap();
            let host = host_asked_for(&mut stream);
            stream.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).unwrap();
            (host, Client::answering(stream))
        });
        let params = json!([format!("{name}:18444"), "outbound-full-relay", false]);
        f.call("addconnection", &params);
        let (host, peer) = peer.join().unwrap();
        assert_eq!(host, name);
        peer
    };
    let mut good = ["one.example", "two.example"].map(&mut connect);
    let mut bad = connect("bad.example");
    let header = |parent| Header { prev_block: parent, ..*f.blocks[1].header() };
    let apart = [header(BlockHash([2; 32])), header(BlockHash([3; 32]))];
    bad.send(&Message::Headers(apart.as_slice().into()));
    bad.expect_end_past_all();
    good.iter_mut().for_each(in_order);
}

/// Proxy that rejects all connections and reports the requested hosts.
fn proxy_that_refuses() -> (SocketAddr, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (asked, hosts) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let host = host_asked_for(&mut stream);
            stream.write_all(&[5, 5, 0, 1]).unwrap();
            if asked.send(host).is_err() {
                return;
            }
        }
    });
    (address, hosts)
}

#[test]
fn connects_through_the_proxy() {
    let (proxy, hosts) = proxy_that_refuses();
    let mut f = serving(1, |config| {
        config.opens = true;
        config.fixed_places = true;
        config.proxies = Proxies::all(Some(proxy));
    });
    let known: Vec<String> = (1..=5).map(|number| format!("{}.1.1.1", 30 + number)).collect();
    for host in &known {
        assert_eq!(f.call("addpeeraddress", &json!([host, 8333, true]))["success"], true);
    }
    let mut tried = BTreeSet::new();
    while tried.len() < 3 {
        let host = hosts.recv_timeout(Duration::from_mins(1)).expect("the next one is tried");
        assert!(known.contains(&host), "{host}");
        tried.insert(host);
    }
    let networks = f.call("getnetworkinfo", &json!([]))["networks"].clone();
    assert_eq!(networks[0]["proxy"], proxy.to_string());
    assert_eq!(networks[0]["proxy_randomize_credentials"], true);
    assert_eq!(f.call("getpeerinfo", &json!([])), json!([]));
    // Names go to the proxy unresolved.
    f.call("addnode", &json!(["localhost:1", "onetry"]));
    while hosts.recv_timeout(Duration::from_mins(1)).expect("the name is passed on") != "localhost"
    {
    }
}

#[test]
fn reconnects_to_anchors() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let with_opens = |config: &mut P2pConfig| {
        config.opens = true;
        config.encrypted = false;
    };
    let mut f = serving(1, with_opens);
    let peer = thread::spawn({
        let listener = listener.try_clone().unwrap();
        move || Client::called(&listener)
    });
    f.call("addconnection", &json!([address.to_string(), "block-relay-only", false]));
    let mut peer = peer.join().unwrap();
    in_order(&mut peer);
    let peers = f.call("getpeerinfo", &json!([]));
    assert_eq!(peers[0]["connection_type"], "block-relay-only");
    assert_eq!(peers[0]["addr_relay_enabled"], false);
    let file = f.dir.path().join("regtest/anchors.dat");
    assert!(!file.exists());
    let (dir, _) = f.stop();
    let right = std::fs::read(&file).unwrap();
    let mut config = crate::node::config(dir.path());
    let mut p2p = P2pConfig::new("127.0.0.1:0".parse().unwrap());
    with_opens(&mut p2p);
    config.p2p = Some(p2p);
    let node = Node::start(&config).unwrap();
    let mut peer = Client::called(&listener);
    in_order(&mut peer);
    assert!(!file.exists(), "should they stop the node, they are not asked again");
    node.stop_handle().stop();
    node.wait().unwrap();
    assert_eq!(std::fs::read(&file).unwrap(), right);
}

#[test]
fn announces_own_address() {
    let mut f = serving(1, |config| {
        config.external_addresses = vec!["42.42.42.42".to_owned()];
    });
    f.set_clock_to_tip();
    let mut client = Client::ready(&f, 70016);
    client.send(&Message::GetAddr);
    // One entry: time, services, address, port.
    let payload = client.expect_past("addr");
    let port = f.p2p_address().port();
    assert_eq!((payload.len(), payload[0]), (31, 1));
    assert_eq!(payload[25..], [&[42, 42, 42, 42][..], &port.to_be_bytes()].concat());
    let own = f.call("getnetworkinfo", &json!([]))["localaddresses"].clone();
    assert_eq!(own, json!([{ "address": "42.42.42.42", "port": port, "score": 4 }]));
}
