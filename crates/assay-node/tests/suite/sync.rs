//! Chain sync between nodes, and with malicious peers, over sockets.

use std::time::{Duration, Instant};

use assay_node::{NodeConfig, P2pConfig};
use assay_wire::p2p::{Inventory, InventoryKind, Message};
use assay_wire::{Block, BlockHash};
use serde_json::{Value, json};

use crate::node::Fixture;
use crate::p2p::{Client, serving};

/// Node without blocks that connects to these.
pub(crate) fn follower(of: &[&Fixture]) -> Fixture {
    let peers: Vec<String> = of.iter().map(|node| node.p2p_address().to_string()).collect();
    Fixture::new().restart(move |config: &mut NodeConfig| {
        let mut p2p = P2pConfig::new("127.0.0.1:0".parse().unwrap());
        p2p.connect = Some(peers.clone());
        config.p2p = Some(p2p);
    })
}

#[track_caller]
pub(crate) fn wait_for(what: &str, mut is_reached: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_mins(2);
    while !is_reached() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[track_caller]
fn converge(nodes: &mut [&mut Fixture]) {
    wait_for("one tip for all", || {
        let tips: Vec<Value> = nodes.iter_mut().map(|node| node.tip()).collect();
        tips.windows(2).all(|pair| pair[0] == pair[1])
    });
}

#[test]
fn nodes_follow_blocks_and_reorgs() {
    let mut miner = serving(300, |_| ());
    let mut middle = follower(&[&miner]);
    let mut last = follower(&[&middle, &miner]);
    converge(&mut [&mut miner, &mut middle, &mut last]);
    assert_eq!(middle.call("getblockcount", &json!([])), 300);
    // From now on blocks are announced.
    for node in [&miner, &middle, &last] {
        node.set_clock_to_tip();
    }
    for _ in 0..3 {
        miner.mine(&[]);
        converge(&mut [&mut miner, &mut middle, &mut last]);
    }
    // A longer branch from below the tip.
    let stale = miner.blocks[300].hash();
    miner.call("invalidateblock", &json!([stale.to_string()]));
    let address = "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080";
    miner.call("generatetoaddress", &json!([6, address]));
    converge(&mut [&mut miner, &mut middle, &mut last]);
    assert_eq!(last.call("getblockcount", &json!([])), 305);
    let statistics = |node: &mut Fixture| node.call("gettxoutsetinfo", &json!(["muhash"]));
    assert_eq!(statistics(&mut miner)["muhash"], statistics(&mut last)["muhash"]);
}

#[test]
fn sync_resumes_after_connection_loss() {
    let mut miner = serving(50, |_| ());
    let mut other = follower(&[&miner]);
    converge(&mut [&mut miner, &mut other]);
    let peer = other.call("getpeerinfo", &json!([]))[0]["id"].clone();
    other.call("disconnectnode", &json!(["", peer]));
    for _ in 0..5 {
        miner.mine(&[]);
    }
    converge(&mut [&mut miner, &mut other]);
}

#[test]
fn syncs_without_listening() {
    let mut miner = serving(20, |_| ());
    let peer = miner.p2p_address().to_string();
    let mut other = Fixture::new().restart(move |config: &mut NodeConfig| {
        let mut p2p = P2pConfig::new("127.0.0.1:0".parse().unwrap());
        (p2p.listens, p2p.connect) = (false, Some(vec![peer.clone()]));
        config.p2p = Some(p2p);
    });
    converge(&mut [&mut miner, &mut other]);
    assert_eq!(other.call("getblockcount", &json!([])), 20);
}

#[test]
fn inbound_peer_without_headers_does_not_block_sync() {
    let mut miner = serving(50, |_| ());
    let mut node = serving(0, |_| ());
    let mut first = Client::serving_blocks(&node);
    first.expect_past("getheaders");
    first.send(&Message::Headers([][..].into()));
    node.call("addnode", &json!([miner.p2p_address().to_string(), "add"]));
    converge(&mut [&mut miner, &mut node]);
}

#[test]
fn silent_inbound_peer_delays_sync_briefly() {
    let mut miner = serving(50, |_| ());
    let mut node = serving(0, |_| ());
    let now = 1_700_000_000;
    node.call("setmocktime", &json!([now]));
    let mut first = Client::serving_blocks(&node);
    first.expect_past("getheaders");
    node.call("addnode", &json!([miner.p2p_address().to_string(), "add"]));
    wait_for("the second peer", || node.call("getpeerinfo", &json!([]))[1]["pingtime"].is_number());
    assert_eq!(node.call("getblockcount", &json!([])), 0);
    node.call("setmocktime", &json!([now + 30]));
    converge(&mut [&mut miner, &mut node]);
}

/// Peer with a block that has a valid header and an overpaying coinbase.
fn liar(node: &Fixture, invalid: &Block) -> Client {
    let mut liar = Client::serving_blocks(node);
    liar.send(&Message::Headers([*invalid.header()][..].into()));
    liar
}

#[test]
fn disconnects_peer_with_invalid_block() {
    let mut node = serving(3, |_| ());
    node.set_clock_to_tip();
    let invalid = node.overpaying_block();
    let mut liar = liar(&node, &invalid);
    let asked = liar.expect_past("getdata");
    assert_eq!(asked[1..5], InventoryKind::WITNESS_BLOCK.0.to_le_bytes());
    assert_eq!(asked[5..37], invalid.hash().0);
    liar.send(&Message::Block(invalid.bytes()));
    liar.expect_end_past_all();
    let tips = node.call("getchaintips", &json!([]));
    let is_marked =
        |tip: &&Value| tip["hash"] == invalid.hash().to_string() && tip["status"] == "invalid";
    assert!(tips.as_array().unwrap().iter().any(|tip| is_marked(&tip)), "{tips}");
    // Its header is rejected from another peer as well.
    let mut second = Client::serving_blocks(&node);
    second.send(&Message::Headers([*invalid.header()][..].into()));
    second.send(&Message::Ping(3));
    second.expect_past("pong");
    node.mine(&[]);
    assert_eq!(node.call("getblockcount", &json!([])), 4);
}

#[test]
fn useless_unrequested_blocks_are_dropped() {
    let mut node = serving(20, |_| ());
    node.set_clock_to_tip();
    let stale = node.side_block(2);
    let mut peer = Client::serving_blocks(&node);
    peer.send(&Message::Block(stale.bytes()));
    peer.send(&Message::Ping(1));
    peer.expect_past("pong");
    let error = node.error("getblock", &json!([stale.hash().to_string()]));
    assert_eq!(error, (-1, "Block not available (not fully downloaded)".to_owned()));
}

#[test]
fn inv_triggers_header_request() {
    let node = serving(3, |_| ());
    node.set_clock_to_tip();
    let mut peer = Client::serving_blocks(&node);
    let announced = BlockHash([7; 32]);
    let entry = Inventory { kind: InventoryKind::BLOCK, hash: announced.0 };
    // The first header request follows the handshake; its response is outstanding or has arrived.
    peer.expect_past("getheaders");
    peer.send(&Message::Headers([][..].into()));
    peer.send(&Message::Inv([entry][..].into()));
    peer.expect_past("getheaders");
}
