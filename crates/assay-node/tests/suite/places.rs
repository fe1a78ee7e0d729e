//! Inbound slots, permissions and eviction.

use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use assay_wire::p2p::{FilterLoad, FrameHeader, Message};
use assay_wire::{BlockHash, p2p::Command};
use serde_json::{Value, json};

use crate::node::Fixture;
use crate::p2p::{Client, MAGIC, our_version, serving};

fn peers(f: &mut Fixture) -> Vec<Value> {
    let peers = f.call("getpeerinfo", &json!([]));
    peers.as_array().expect("a list").clone()
}

/// Probably unused port.
fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

#[test]
fn listening_address_permissions_apply() {
    let address = free_address();
    let mut f = serving(1, |config| {
        config.white_binds = vec![format!("forcerelay,bloom@{address}")];
        config.whitelist = vec!["noban@127.0.0.1".to_owned(), "127.0.0.2".to_owned()];
    });
    let _plain = Client::ready(&f, 70016);
    let _privileged = Client::ready_at(address);
    let permissions: Vec<Value> =
        peers(&mut f).iter().map(|peer| peer["permissions"].clone()).collect();
    assert_eq!(
        permissions,
        [
            json!(["noban", "download"]),
            json!(["bloomfilter", "noban", "forcerelay", "relay", "download"])
        ]
    );
}

#[test]
fn full_slots_evict_a_peer() {
    let mut f = serving(1, |config| {
        config.peers_max = 40;
        config.inbound_max = Some(25);
        config.inbound_relay_percent = 100;
        config.peers_per_address_max = Some(40);
    });
    let mut clients: Vec<Client> = (0..25).map(|_| Client::ready(&f, 70016)).collect();
    let mut next = Client::ready(&f, 70016);
    assert_eq!(next.headers(&[f.blocks[0].hash()], BlockHash::ZERO).len(), 1);
    let left = peers(&mut f);
    assert_eq!(left.len(), 25);
    let ids: Vec<u64> = left.iter().map(|peer| peer["id"].as_u64().unwrap()).collect();
    let gone: Vec<u64> = (0..25).filter(|id| !ids.contains(id)).collect();
    assert_eq!((gone.len(), ids.last()), (1, Some(&25)));
    clients.swap_remove(gone[0] as usize).expect_end_past_all();
}

#[test]
fn inbound_relay_is_limited() {
    let f = serving(1, |config| {
        config.inbound_max = Some(4);
        config.inbound_relay_percent = 25;
    });
    let _first = Client::ready(&f, 70016);
    let mut second = Client::connect(&f);
    second.send(&our_version(70016));
    second.expect_end_past_all();
}

#[test]
fn filters_count_as_relay_peers() {
    let mut version = our_version(70016);
    let Message::Version(fields) = &mut version else { unreachable!() };
    fields.relay = Some(false);
    let load = FilterLoad { bits: &[0xbb; 100], functions: 1, tweak: 0, flags: 0 };
    for change in [Message::FilterLoad(load), Message::FilterClear] {
        let f = serving(1, |config| {
            config.inbound_max = Some(2);
            config.inbound_relay_percent = 50;
            config.bloom_filters = true;
        });
        let mut quiet = Client::connect(&f);
        quiet.send(&version);
        quiet.expect_past("verack");
        quiet.send(&Message::Verack);
        let mut hears = Client::ready(&f, 70016);
        quiet.send(&change);
        quiet.expect_end_past_all();
        hears.send(&Message::Ping(5));
        hears.expect_past("pong");
    }
}

#[test]
fn unprintable_message_types_are_ignored() {
    let f = serving(1, |_| ());
    let mut client = Client::ready(&f, 70016);
    for payload in [&b""[..], b"some bytes"] {
        let mut bytes = FrameHeader::of(MAGIC, Command::new("x"), payload).to_bytes();
        bytes[6] = b'y';
        client.send_bytes(&[&bytes[..], payload].concat());
    }
    client.send(&Message::Ping(5));
    assert_eq!(client.expect_past("pong"), 5u64.to_le_bytes());
}

#[test]
fn sendmsgtopeer_sends_arbitrary_messages() {
    let mut f = serving(1, |_| ());
    let mut client = Client::ready(&f, 70016);
    assert_eq!(f.call("sendmsgtopeer", &json!([0, "hello", "abcd"])), json!({}));
    assert_eq!(client.expect_past("hello"), [0xab, 0xcd]);
    for (params, code) in [
        (json!([7, "hello", ""]), -1),
        (json!([0, "thirteen chars", ""]), -8),
        (json!([0, "hello", "abc"]), -8),
        (json!([0, "hello", "xy"]), -8),
    ] {
        assert_eq!(f.error("sendmsgtopeer", &params).0, code, "{params}");
    }
}

#[test]
fn disconnects_outbound_peers_behind() {
    let mut f = serving(3, |config| {
        config.peer_timeout = Duration::from_secs(1 << 30);
        config.encrypted = false;
    });
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let start = f.blocks[3].header().time + 1;
    f.call("setmocktime", &json!([start]));
    let peer = std::thread::spawn(move || Client::called(&listener));
    f.call("addconnection", &json!([address.to_string(), "outbound-full-relay", false]));
    let mut peer = peer.join().unwrap();
    peer.expect_past("getheaders");
    // Its chain is unknown: the timeout starts after its first message.
    peer.send(&Message::Ping(1));
    peer.expect_past("pong");
    f.call("setmocktime", &json!([start + 20 * 60 + 1]));
    peer.expect_past("getheaders");
    f.call("setmocktime", &json!([start + 22 * 60 + 2]));
    peer.expect_end_past_all();
    assert!(peers(&mut f).is_empty());
}
