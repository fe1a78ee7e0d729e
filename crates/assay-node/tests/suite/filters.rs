//! Compact block filters: the index and its interfaces.

use assay_engine::Pruning;
use assay_node::{NodeConfig, P2pConfig};
use assay_wire::filter::{Filter, basic, filter_hash, filter_header};
use assay_wire::p2p::{FilterKind, FilterRange, Message};
use assay_wire::{Block, BlockHash, Transaction};
use faster_hex::hex_string;
use serde_json::{Value, json};

use crate::node::Fixture;
use crate::p2p::Client;
use crate::support;

const NAME: &str = "basic block filter index";

fn with_filters(config: &mut NodeConfig) {
    config.filter_index = true;
    config.rpc.rest = true;
    let mut p2p = P2pConfig::new("127.0.0.1:0".parse().unwrap());
    p2p.serves_filters = true;
    config.p2p = Some(p2p);
}

/// A hundred blocks, and one that spends the first coinbase.
fn chain() -> (Fixture, Transaction) {
    let mut f = Fixture::new();
    f.mature();
    let tx = f.spend_coinbase(1, &[4_999_990_000]);
    f.mine(std::slice::from_ref(&tx));
    (f, tx)
}

/// Filter of a block that spends at most the first coinbase.
fn filter_of(f: &Fixture, block: &Block) -> Vec<u8> {
    let spent = f.blocks[1].tx(0).output(0).script_pubkey;
    basic(block, std::iter::repeat_n(spent, block.tx_count() - 1))
}

/// Result of `getblockfilter`, with block hash and header as bytes.
fn given(f: &mut Fixture, hash: &BlockHash) -> (Vec<u8>, [u8; 32]) {
    let found = f.call("getblockfilter", &json!([hash.to_string()]));
    let filter = assay_testkit::hex::decode(found["filter"].as_str().unwrap());
    let header: BlockHash = found["header"].as_str().unwrap().parse().unwrap();
    (filter, header.0)
}

/// Filter headers of all blocks, computed here.
fn check_all(f: &mut Fixture) -> Vec<[u8; 32]> {
    let mut headers = Vec::new();
    let mut previous = [0; 32];
    for block in f.blocks.clone() {
        let (filter, header) = given(f, &block.hash());
        assert_eq!(filter, filter_of(f, &block));
        previous = filter_header(&filter_hash(&filter), &previous);
        assert_eq!(header, previous);
        headers.push(header);
    }
    headers
}

#[test]
fn filter_index_catches_up() {
    let (mut f, _) = chain();
    let hash = f.blocks[1].hash().to_string();
    let error = f.error("getblockfilter", &json!([hash]));
    assert_eq!(error, (-1, "Index is not enabled for filtertype basic".to_owned()));
    assert_eq!(f.error("getblockfilter", &json!([hash, "x"])), (-5, "Unknown filtertype".into()));
    let mut f = f.restart(with_filters);
    assert_eq!(f.synced(NAME), 101);
    check_all(&mut f);
    f.mine(&[]);
    assert_eq!(f.synced(NAME), 102);
    check_all(&mut f);
    // Restart without the index, then with it.
    let mut f = f.restart(|_| ());
    f.mine(&[]);
    let mut f = f.restart(with_filters);
    assert_eq!(f.synced(NAME), 103);
    check_all(&mut f);
    let unknown = "00".repeat(32);
    assert_eq!(f.error("getblockfilter", &json!([unknown])), (-5, "Block not found".to_owned()));
}

#[test]
fn disconnected_blocks_keep_filters() {
    let (f, _) = chain();
    let mut f = f.restart(with_filters);
    assert_eq!(f.synced(NAME), 101);
    let stale = f.blocks.pop().unwrap();
    let before = given(&mut f, &stale.hash());
    f.call("invalidateblock", &json!([stale.hash().to_string()]));
    f.mine(&[]);
    f.mine(&[]);
    assert_eq!(f.synced(NAME), 102);
    check_all(&mut f);
    assert_eq!(given(&mut f, &stale.hash()), before);
    let mut f = f.restart(with_filters);
    assert_eq!(given(&mut f, &stale.hash()), before);
    check_all(&mut f);
    // A block that was never the tip has no filter.
    let side = f.side_block(50);
    f.call("submitblock", &json!([hex_string(side.bytes())]));
    let text = "Filter not found. Block was not connected to active chain.";
    let error = f.error("getblockfilter", &json!([side.hash().to_string()]));
    assert_eq!(error, (-5, text.to_owned()));
}

#[test]
fn scanblocks_finds_scripts() {
    let (f, tx) = chain();
    let mut f = f.restart(with_filters);
    f.synced(NAME);
    let paid = hex_string(tx.view().output(0).script_pubkey);
    let spent = hex_string(f.blocks[1].tx(0).output(0).script_pubkey);
    let scan = |f: &mut Fixture, script: &str, from: u32, to: u32| {
        let options = json!({"filter_false_positives": true});
        let objects = json!([format!("raw({script})")]);
        let found = f.call("scanblocks", &json!(["start", objects, from, to, "basic", options]));
        assert_eq!((&found["from_height"], &found["to_height"]), (&json!(from), &json!(to)));
        assert_eq!(found["completed"], true);
        found["relevant_blocks"].clone()
    };
    let block = |f: &Fixture, height: usize| f.blocks[height].hash().to_string();
    let last = block(&f, 101);
    assert!(scan(&mut f, &paid, 0, 101).as_array().unwrap().contains(&json!(last)));
    assert_eq!(scan(&mut f, "51525354", 0, 101), json!([]));
    assert!(scan(&mut f, &spent, 101, 101).as_array().unwrap().contains(&json!(last)));
    assert_eq!(f.call("scanblocks", &json!(["status"])), Value::Null);
    assert_eq!(f.call("scanblocks", &json!(["abort"])), false);
    let start = |rest: Value| [vec![json!("start"), json!([])], rest.as_array().unwrap().clone()];
    let mut error = |rest: Value| f.error("scanblocks", &Value::Array(start(rest).concat()));
    assert_eq!(error(json!([102])), (-1, "Invalid start_height".to_owned()));
    assert_eq!(error(json!([5, 4])), (-1, "Invalid stop_height".to_owned()));
    assert_eq!(error(json!([0, 1, "x"])), (-5, "Unknown filtertype".to_owned()));
    let error = f.error("scanblocks", &json!(["x"]));
    assert_eq!(error, (-8, "Invalid action 'x'".to_owned()));
}

#[test]
fn rest_serves_filters_and_headers() {
    let (f, _) = chain();
    let mut f = f.restart(with_filters);
    f.synced(NAME);
    let headers = check_all(&mut f);
    let mut client = support::Client::connect(f.node.rpc_addresses()[0], "nobody:wrong");
    let mut get = |path: String| client.request("GET", &format!("/rest{path}"), b"");
    let block = f.blocks[101].hash();
    let filter = filter_of(&f, &f.blocks[101]);
    let json = get(format!("/blockfilter/basic/{block}.json")).json();
    assert_eq!(json["filter"], hex_string(&filter));
    let bytes = get(format!("/blockfilter/basic/{block}.bin")).body;
    assert_eq!(bytes, [&[0][..], &block.0, &[filter.len() as u8], &filter].concat());
    let from = f.blocks[3].hash();
    let bytes = get(format!("/blockfilterheaders/basic/{from}.bin?count=20")).body;
    assert_eq!(bytes, headers[3..23].concat());
    let json = get(format!("/blockfilterheaders/basic/{from}.json")).json();
    assert_eq!(json.as_array().unwrap().len(), 5);
    assert_eq!(json[0], BlockHash(headers[3]).to_string());
    let wrong = get(format!("/blockfilter/else/{block}.bin"));
    assert_eq!((wrong.status, wrong.text()), (400, "Unknown filtertype else\r\n".to_owned()));
    assert_eq!(get(format!("/blockfilter/basic/{}.bin", "00".repeat(32))).status, 404);
}

#[test]
fn serves_filters_hashes_and_checkpoints() {
    let (f, _) = chain();
    let mut f = f.restart(with_filters);
    f.synced(NAME);
    let info = f.call("getnetworkinfo", &json!([]));
    assert!(info["localservicesnames"].as_array().unwrap().contains(&json!("COMPACT_FILTERS")));
    let headers = check_all(&mut f);
    let stop = f.blocks[101].hash();
    let mut peer = Client::serving_blocks(&f);
    let range = |start_height| FilterRange { kind: FilterKind::BASIC, start_height, stop };
    peer.send(&Message::GetFilters(range(99)));
    for height in 99..=101 {
        let payload = peer.expect_past("cfilter");
        let (head, filter) = payload.split_at(34);
        assert_eq!(head[1..33], f.blocks[height].hash().0);
        assert_eq!(filter, filter_of(&f, &f.blocks[height]));
        assert!(Filter::parse(filter).is_ok());
    }
    peer.send(&Message::GetFilterHashes(range(100)));
    let payload = peer.expect_past("cfheaders");
    assert_eq!(payload[33..65], headers[99]);
    let hashes = [100, 101].map(|height| filter_hash(&filter_of(&f, &f.blocks[height])));
    assert_eq!(payload[66..], hashes.concat());
    peer.send(&Message::GetFilterHashes(range(0)));
    assert_eq!(peer.expect_past("cfheaders")[33..65], [0; 32]);
    peer.send(&Message::GetFilterCheckpoints { kind: FilterKind::BASIC, stop });
    assert_eq!(peer.expect_past("cfcheckpt")[33..], [0], "the chain is shorter than 1000 blocks");
    for wrong in [
        Message::GetFilters(FilterRange { kind: FilterKind(1), ..range(0) }),
        Message::GetFilters(FilterRange { stop: BlockHash([7; 32]), ..range(0) }),
        Message::GetFilterHashes(range(102)),
    ] {
        let mut peer = Client::serving_blocks(&f);
        peer.send(&wrong);
        peer.expect_end_past_all();
    }
    // Without the option, filters are not served and the service bit is off.
    let mut f = f.restart(|config| {
        with_filters(config);
        config.p2p.as_mut().unwrap().serves_filters = false;
    });
    let info = f.call("getnetworkinfo", &json!([]));
    assert!(!info["localservicesnames"].as_array().unwrap().contains(&json!("COMPACT_FILTERS")));
    let mut peer = Client::serving_blocks(&f);
    peer.send(&Message::GetFilters(range(99)));
    peer.expect_end_past_all();
}

#[test]
fn pruning_waits_for_the_index() {
    let pruning = |config: &mut NodeConfig| {
        config.engine.prune = Some(Pruning::Manual);
        config.engine.prune_after_height = 300;
        config.engine.block_file_bytes_max = 8 << 10;
    };
    let mut f = Fixture::new().restart(|config| {
        pruning(config);
        with_filters(config);
    });
    for _ in 0..400 {
        f.mine(&[]);
    }
    assert_eq!(f.synced(NAME), 400);
    let pruned = f.call("pruneblockchain", &json!([60])).as_u64().unwrap();
    assert!(pruned > 20);
    check_all(&mut f);
    // No missing block was pruned: the index continues.
    let f = f.restart(|config| {
        pruning(config);
        with_filters(config);
    });
    let mut f = f.restart(pruning);
    for _ in 0..600 {
        f.mine(&[]);
    }
    assert!(f.call("pruneblockchain", &json!([700])).as_u64().unwrap() > 400);
    let (dir, _) = f.stop();
    let mut config = crate::node::config(dir.path());
    pruning(&mut config);
    with_filters(&mut config);
    let error = assay_node::Node::start(&config).expect_err("blocks are missing").to_string();
    let text = "basic block filter index best block of the index goes beyond pruned data";
    assert!(error.starts_with(text), "{error}");
    config.filter_index = false;
    let node = assay_node::Node::start(&config).unwrap();
    node.stop_handle().stop();
    node.wait().unwrap();
}
