//! Pruned node.

use assay_engine::{OpenError, Pruning};
use assay_node::{Node, NodeConfig, NodeError};
use faster_hex::hex_string;
use serde_json::{Value, json};

use crate::node::{Fixture, config};

fn pruning(config: &mut NodeConfig) {
    config.engine.prune = Some(Pruning::Manual);
    config.engine.prune_after_height = 300;
    config.engine.block_file_bytes_max = 8 << 10;
}

/// Node with `count` blocks in small files.
fn with_blocks(count: usize) -> Fixture {
    let mut f = Fixture::new().restart(pruning);
    for _ in 0..count {
        f.mine(&[]);
    }
    f
}

fn block(f: &Fixture, height: usize) -> String {
    f.blocks[height].hash().to_string()
}

fn prune_height(f: &mut Fixture) -> Value {
    f.call("getblockchaininfo", &json!([]))["pruneheight"].clone()
}

#[test]
fn prunes_on_request() {
    let mut f = with_blocks(299);
    let error = |f: &mut Fixture, height: i64| f.error("pruneblockchain", &json!([height]));
    assert_eq!(error(&mut f, -1), (-8, "Negative block height.".to_owned()));
    assert_eq!(error(&mut f, 5), (-1, "Blockchain is too short for pruning.".to_owned()));
    for _ in 0..101 {
        f.mine(&[]);
    }
    let text = "Blockchain is shorter than the attempted prune height.";
    assert_eq!(error(&mut f, 401), (-8, text.to_owned()));
    let text = "Could not find block with at least the specified timestamp.";
    assert_eq!(error(&mut f, 2_000_000_000), (-8, text.to_owned()));
    let info = f.call("getblockchaininfo", &json!([]));
    assert_eq!((&info["pruned"], &info["pruneheight"]), (&json!(true), &json!(0)));
    assert_eq!(info["automatic_pruning"], false);
    assert!(info.get("prune_target_size").is_none());

    assert_eq!(f.call("pruneblockchain", &json!([5])), -1, "no file ends so low");
    let first = f.dir.path().join("regtest/blocks/blk00000.dat");
    assert!(first.exists());
    let pruned = f.call("pruneblockchain", &json!([60])).as_u64().unwrap() as usize;
    assert!((20..=60).contains(&pruned), "{pruned}");
    assert_eq!(prune_height(&mut f), pruned + 1);
    assert!(!first.exists());
    // Blocks near the tip stay for any height.
    let all = f.call("pruneblockchain", &json!([400])).as_u64().unwrap() as usize;
    assert!(all > pruned && all <= 400 - 288, "{all}");
    check_removed(&mut f, all);
    // The same by time: that of a block, plus two hours.
    let time = f.blocks[all].header().time + 2 * 3600;
    assert_eq!(f.call("pruneblockchain", &json!([time])), all);
}

#[track_caller]
fn check_removed(f: &mut Fixture, pruned: usize) {
    let missing = (-1, "Block not available (pruned data)".to_owned());
    for height in [1, pruned] {
        let hash = block(f, height);
        assert_eq!(f.error("getblock", &json!([hash])), missing);
        assert_eq!(f.error("getblockstats", &json!([height])), missing);
        let txid = f.blocks[height].tx(0).txid().to_string();
        assert_eq!(f.error("gettxoutproof", &json!([[txid], hash])), missing);
        assert_eq!(f.call("getblockheader", &json!([hash]))["height"], height);
    }
    let first = block(f, pruned + 1);
    assert_eq!(f.call("getblock", &json!([first]))["height"], pruned + 1);
    assert_eq!(f.call("gettxoutsetinfo", &json!([]))["height"], f.blocks.len() - 1);
}

#[test]
fn pruned_blocks_survive_restart_and_resubmission() {
    let mut f = with_blocks(400);
    let pruned = f.call("pruneblockchain", &json!([400])).as_u64().unwrap() as usize;
    let mut f = f.restart(pruning);
    check_removed(&mut f, pruned);
    f.mine(&[]);
    // A block that cannot be disconnected stays active, and the node continues.
    let (code, text) = f.error("invalidateblock", &json!([block(&f, 5)]));
    assert_eq!(code, -20);
    assert!(text.contains("was pruned"), "{text}");
    let recent = block(&f, 401);
    f.call("invalidateblock", &json!([recent]));
    assert_eq!(f.call("getblockcount", &json!([])), 400);
    f.call("reconsiderblock", &json!([recent]));
    // The block is submitted again, without undo data.
    let again = hex_string(f.blocks[2].bytes());
    assert_eq!(f.call("submitblock", &json!([again])), "inconclusive");
    assert_eq!(f.call("getblock", &json!([block(&f, 2), 0])), again);
    assert_eq!(f.call("getblockcount", &json!([])), 401);
    assert_eq!(prune_height(&mut f), pruned + 1);
    let mut f = f.restart(pruning);
    assert_eq!(f.call("getblock", &json!([block(&f, 2), 0])), again);
    f.mine(&[]);
    assert_eq!(f.call("getblockcount", &json!([])), 402);
}

#[test]
fn unpruned_node_requires_all_blocks() {
    let mut f = with_blocks(400);
    f.call("pruneblockchain", &json!([400]));
    let (dir, _) = f.stop();
    match Node::start(&config(dir.path())) {
        Err(NodeError::Open { source: OpenError::Pruned, .. }) => {}
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it started"),
    }
    // With a rebuilt index it starts.
    let mut config = config(dir.path());
    config.engine.reindex = true;
    let node = Node::start(&config).unwrap();
    node.stop_handle().stop();
    node.wait().unwrap();
}

#[test]
fn reindex_of_a_pruned_node() {
    let mut f = with_blocks(400);
    let pruned = f.call("pruneblockchain", &json!([400])).as_u64().unwrap();
    let first = f.dir.path().join("regtest/blocks/blk00000.dat");
    let second = first.with_file_name("blk00001.dat");
    assert!(pruned > 20 && !first.exists());
    let mut f = f.restart(|config| {
        pruning(config);
        config.engine.reindex = true;
    });
    // Blocks above the pruned ones are useless until those are downloaded again.
    assert_eq!(f.call("getblockcount", &json!([])), 0);
    assert!(first.exists() && !second.exists(), "it begins with the genesis block");
    for height in 1..=350 {
        let raw = hex_string(f.blocks[height].bytes());
        assert_eq!(f.call("submitblock", &json!([raw])), Value::Null);
    }
    assert_eq!(prune_height(&mut f), 0);
    // With all files present, a reindex keeps them.
    let mut f = f.restart(|config| {
        pruning(config);
        config.engine.reindex = true;
    });
    assert_eq!(f.call("getblockcount", &json!([])), 350);
    assert_eq!(prune_height(&mut f), 0);
}

#[test]
fn unpruned_node_removes_no_blocks() {
    let mut f = Fixture::new();
    let text = "Cannot prune blocks because node is not in prune mode.";
    assert_eq!(f.error("pruneblockchain", &json!([1])), (-1, text.to_owned()));
    assert_eq!(f.call("getblockchaininfo", &json!([]))["pruned"], false);
}
