//! IBD from slow or silent peers; a mock clock determines their delays.

use assay_wire::p2p::{Inventory, InventoryKind, Message};
use assay_wire::{Block, Header};
use serde_json::{Value, json};

use crate::node::Fixture;
use crate::p2p::{Client, inventory, serving};
use crate::sync::wait_for;

/// More than a day after all test blocks: the node is in IBD.
const NOW_S: u64 = 1_700_000_000;

fn frozen() -> Fixture {
    let mut node = serving(0, |_| ());
    node.call("setmocktime", &json!([NOW_S]));
    node
}

fn showing(node: &Fixture, blocks: &[Block]) -> Client {
    let mut peer = Client::serving_blocks(node);
    let headers: Vec<Header> = blocks.iter().map(|block| *block.header()).collect();
    peer.expect_past("getheaders");
    peer.send(&Message::Headers(headers[..].into()));
    peer
}

fn height(node: &mut Fixture) -> Value {
    node.call("getblockcount", &json!([]))
}

fn send(peer: &mut Client, blocks: &[Block], asked: &[Inventory]) {
    for entry in asked {
        let block = blocks.iter().find(|block| block.hash().0 == entry.hash);
        peer.send(&Message::Block(block.expect("one of these").bytes()));
    }
}

fn asked(peer: &mut Client) -> Vec<Inventory> {
    let asked = inventory(&peer.expect_past("getdata"));
    assert!(asked.iter().all(|entry| entry.kind == InventoryKind::WITNESS_BLOCK));
    asked
}

#[test]
fn blocks_of_silent_peers_are_requested_elsewhere() {
    let source = serving(60, |_| ());
    let mut node = frozen();
    let mut silent = showing(&node, &source.blocks[1..]);
    let first = asked(&mut silent);
    assert_eq!((first.len(), first[0].hash), (16, source.blocks[1].hash().0));
    node.call("addnode", &json!([source.p2p_address().to_string(), "add"]));
    let in_flight = |node: &mut Fixture| -> Vec<usize> {
        let peers = node.call("getpeerinfo", &json!([]));
        let of = |peer: &Value| peer["inflight"].as_array().unwrap().len();
        peers.as_array().unwrap().iter().map(of).collect()
    };
    // All other blocks arrive, and none is connected; the clock stands still.
    wait_for("the other blocks", || {
        let last = source.blocks[60].hash().to_string();
        let is_there = node.call("getblockheader", &json!([last]))["nTx"] == 1;
        is_there && in_flight(&mut node) == [16, 0]
    });
    assert_eq!(height(&mut node), 0);
    node.call("setmocktime", &json!([NOW_S + 3]));
    wait_for("the tip", || height(&mut node) == 60);
    assert_eq!(in_flight(&mut node), [0, 0]);
    // It stays connected, and gets no requests while it rests.
    let next = source.next_block(&[]);
    silent.send(&Message::Headers([*next.header()][..].into()));
    silent.send(&Message::Ping(1));
    silent.expect_past("pong");
    assert_eq!(in_flight(&mut node), [0, 0]);
    // Later it is tried again.
    node.call("setmocktime", &json!([NOW_S + 10]));
    let again = asked(&mut silent);
    assert_eq!((again.len(), again[0].hash), (1, next.hash().0));
    send(&mut silent, &[next], &again);
    wait_for("its block", || height(&mut node) == 61);
}

#[test]
fn in_flight_grows_with_received_blocks() {
    // Initially 16, then 4 plus one per eight received.
    const BLOCKS: usize = 1_200;
    let source = serving(BLOCKS, |_| ());
    let mut node = frozen();
    let mut peer = showing(&node, &source.blocks[1..]);
    let (mut most, mut sent) = (0, 0);
    let mut waiting: Vec<Inventory> = Vec::new();
    while sent < BLOCKS {
        // One request per received block, and the rest once it is archived.
        while waiting.len() < (4 + sent / 8).min(128) && sent + waiting.len() < BLOCKS {
            waiting.extend(asked(&mut peer));
        }
        most = most.max(waiting.len());
        let next = waiting.remove(0);
        send(&mut peer, &source.blocks, &[next]);
        sent += 1;
        while sent + waiting.len() == BLOCKS && !waiting.is_empty() {
            let next = waiting.remove(0);
            send(&mut peer, &source.blocks, &[next]);
            sent += 1;
        }
    }
    assert_eq!(most, 128);
    wait_for("the tip", || height(&mut node) == BLOCKS);
}

#[test]
fn late_peers_serve_without_alternatives() {
    let source = serving(60, |_| ());
    let mut node = frozen();
    let headers: Vec<Header> = source.blocks[1..].iter().map(|block| *block.header()).collect();
    let mut peers: Vec<Client> = (0..2).map(|_| Client::serving_blocks(&node)).collect();
    let begin = |peer: &mut Client| {
        peer.send(&Message::Headers(headers[..].into()));
        peer.asked_so_far()
    };
    let mut asked_now: Vec<Vec<Inventory>> = peers.iter_mut().map(begin).collect();
    // Each peer withholds the last block of its first requests, which becomes its current one.
    let kept_back = [asked_now[0][15].hash, asked_now[1][15].hash];
    assert_eq!(kept_back[0], source.blocks[16].hash().0);
    while asked_now.iter().any(|asked| !asked.is_empty()) {
        for (peer, asked) in peers.iter_mut().zip(&mut asked_now) {
            asked.retain(|entry| !kept_back.contains(&entry.hash));
            send(peer, &source.blocks, asked);
            *asked = peer.asked_so_far();
        }
    }
    // Now both are late: neither is asked for the other's block.
    node.call("setmocktime", &json!([NOW_S + 3]));
    assert!(peers.iter_mut().all(|peer| peer.asked_so_far().is_empty()));
    // One disconnects, and its block is available nowhere.
    drop(peers.remove(0));
    assert_eq!(asked(&mut peers[0])[0].hash, kept_back[0]);
}
