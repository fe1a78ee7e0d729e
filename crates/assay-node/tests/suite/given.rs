//! Service limits: pruned nodes (BIP159), the upload target, and the network switch.

use assay_engine::Pruning;
use assay_node::NodeConfig;
use assay_wire::p2p::{Command, Inventory, InventoryKind, Message};
use assay_wire::{BlockHash, Header};
use faster_hex::hex_string;
use serde_json::json;

use crate::chain::{SUBSIDY, block_paying};
use crate::p2p::{Client, serving};

fn asked(block: BlockHash) -> [Inventory; 1] {
    [Inventory { kind: InventoryKind::WITNESS_BLOCK, hash: block.0 }]
}

/// True if the node serves the block instead of disconnecting.
fn gives(client: &mut Client, block: BlockHash) -> bool {
    client.send(&Message::GetData(asked(block)[..].into()));
    client.is_answered_with("block")
}

fn inventory(payload: &[u8]) -> Vec<Inventory> {
    match Message::parse(Command::new("getdata"), payload).unwrap() {
        Message::GetData(entries) => entries.iter().collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn pruned_node_serves_latest_blocks() {
    let f = serving(300, |_| ());
    let mut f = f.restart(|config: &mut NodeConfig| {
        config.engine.prune = Some(Pruning::Manual);
        config.p2p = Some(assay_node::P2pConfig::new("127.0.0.1:0".parse().unwrap()));
    });
    let info = f.call("getnetworkinfo", &json!([]));
    assert_eq!(info["localservicesnames"], json!(["WITNESS", "NETWORK_LIMITED", "P2P_V2"]));
    let mut client = Client::serving_blocks(&f);
    assert!(gives(&mut client, f.blocks[10].hash()), "288 blocks below the tip, and two more");
    assert!(!gives(&mut client, f.blocks[9].hash()));
}

#[test]
fn limited_peers_get_requests_for_latest_blocks() {
    let source = serving(300, |_| ());
    let mut node = serving(3, |_| ());
    let headers: Vec<Header> = source.blocks[1..].iter().map(|block| *block.header()).collect();
    let engine = node.node.engine();
    // Synced at the time of its own tip; the others are not too far ahead of the clock then.
    node.set_clock_to_tip();
    engine.clock().set(u64::from(source.blocks[300].header().time));
    let mut peer = Client::with_services(&node, 0x408);
    peer.send(&Message::Headers(headers[..].into()));
    let asked = inventory(&peer.expect_past("getdata"));
    let lowest = source.blocks[300 - 285].hash();
    assert_eq!((asked.len(), asked[0].hash), (16, lowest.0));
    drop(peer);
    // A full node is asked for all blocks.
    let mut peer = Client::serving_blocks(&node);
    peer.send(&Message::Headers(headers[..].into()));
    let asked = inventory(&peer.expect_past("getdata"));
    assert_eq!(asked[0].hash, source.blocks[4].hash().0);
    assert_eq!(node.call("getblockcount", &json!([])), 3);
}

#[test]
fn upload_target_stops_old_blocks() {
    // Below the reserve for new blocks.
    let mut f = serving(3, |p2p| p2p.upload_target_bytes = 1 << 20);
    let totals = f.call("getnettotals", &json!([]));
    let target = &totals["uploadtarget"];
    assert_eq!((&target["timeframe"], &target["target"]), (&json!(86400), &json!(1 << 20)));
    assert_eq!(target["target_reached"], false);
    assert_eq!(target["serve_historical_blocks"], false);
    assert_eq!(target["time_left_in_cycle"], 86400);
    let mut client = Client::serving_blocks(&f);
    assert!(gives(&mut client, f.blocks[3].hash()), "the tip is not old");
    let later = block_paying(SUBSIDY, 8 * 24 * 3600, &f.blocks[3], 4, &[]);
    f.call("submitheader", &json!([hex_string(&later.header().to_bytes())]));
    assert!(!gives(&mut client, f.blocks[3].hash()));
    let totals = f.call("getnettotals", &json!([]));
    let sent = totals["totalbytessent"].as_u64().unwrap();
    assert!(sent > 200 && totals["totalbytesrecv"].as_u64().unwrap() > 100, "{totals}");
    assert_eq!(totals["uploadtarget"]["bytes_left_in_cycle"], (1 << 20) - sent);

    let f = f.restart(|config: &mut NodeConfig| {
        let mut p2p = assay_node::P2pConfig::new("127.0.0.1:0".parse().unwrap());
        p2p.upload_target_bytes = 1 << 20;
        p2p.whitelist = vec!["download@127.0.0.1".to_owned()];
        config.p2p = Some(p2p);
    });
    let mut client = Client::serving_blocks(&f);
    assert!(gives(&mut client, f.blocks[3].hash()), "with the permission");
}

#[test]
fn upload_target_stops_mempool_requests() {
    let f = serving(1, |p2p| {
        p2p.upload_target_bytes = 2000;
        p2p.bloom_filters = true;
    });
    let mut client = Client::serving_blocks(&f);
    client.send(&Message::Mempool);
    client.send(&Message::Ping(1));
    assert!(client.is_answered_with("pong"));
    loop {
        assert!(gives(&mut client, f.blocks[1].hash()), "a new block is always given");
        client.send(&Message::Mempool);
        client.send(&Message::Ping(2));
        if !client.is_answered_with("pong") {
            return;
        }
    }
}

#[test]
fn network_can_be_disabled() {
    let mut f = serving(1, |p2p| p2p.is_active = false);
    assert_eq!(f.call("getnetworkinfo", &json!([]))["networkactive"], false);
    Client::rejected(&f);
    assert_eq!(f.call("setnetworkactive", &json!([true])), true);
    let mut client = Client::serving_blocks(&f);
    assert!(gives(&mut client, f.blocks[1].hash()));
    assert_eq!(f.call("setnetworkactive", &json!([false])), false);
    assert_eq!(f.call("getpeerinfo", &json!([])), json!([]));
    client.expect_end_past_all();
    Client::rejected(&f);
    f.call("addnode", &json!(["127.0.0.1:1", "onetry"]));
    assert_eq!(f.call("getnetworkinfo", &json!([]))["networkactive"], false);
}

#[test]
fn getblockfrompeer_fetches_a_block() {
    let mut f = serving(3, |_| ());
    f.set_clock_to_tip();
    let side = f.side_block(3);
    let hash = side.hash().to_string();
    let fetch = |f: &mut crate::node::Fixture, hash: &str, peer: i64| {
        f.error("getblockfrompeer", &json!([hash, peer]))
    };
    assert_eq!(fetch(&mut f, &hash, 0), (-1, "Block header missing".to_owned()));
    f.call("submitheader", &json!([hex_string(&side.header().to_bytes())]));
    assert_eq!(fetch(&mut f, &hash, 0), (-1, "Peer does not exist".to_owned()));
    let tip = f.blocks[3].hash().to_string();
    assert_eq!(fetch(&mut f, &tip, 0), (-1, "Block already downloaded".to_owned()));
    let mut old = Client::with_services(&f, 1);
    old.send(&Message::Ping(1));
    old.expect_past("pong");
    assert_eq!(fetch(&mut f, &hash, 0), (-1, "Pre-SegWit peer".to_owned()));
    let mut peer = Client::serving_blocks(&f);
    peer.send(&Message::Ping(1));
    peer.expect_past("pong");
    assert_eq!(f.call("getblockfrompeer", &json!([hash, 1])), json!({}));
    assert_eq!(inventory(&peer.expect_past("getdata")), asked(side.hash()));
    peer.send(&Message::Block(side.bytes()));
    peer.send(&Message::Ping(2));
    peer.expect_past("pong");
    assert_eq!(f.call("getblock", &json!([hash, 0])), hex_string(side.bytes()));
    assert_eq!(fetch(&mut f, &hash, 1), (-1, "Block already downloaded".to_owned()));
}
