//! The index of a running node.

use std::thread;
use std::time::Duration;

use assay_node::{IndexOptions, NodeConfig};
use serde_json::{Value, json};

use crate::node::Fixture;

fn with_index(config: &mut NodeConfig) {
    config.index = Some(IndexOptions::default());
}

/// Waits until the index says that it is at the tip.
fn synced(f: &mut Fixture) -> Value {
    loop {
        let info = f.call("getindexinfo", &json!([]));
        if info["electrum"]["synced"] == true {
            return info["electrum"]["best_block_height"].clone();
        }
        thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn an_index_that_is_switched_on_later_catches_up_and_keeps_up() {
    let mut f = Fixture::new();
    f.mature();
    assert_eq!(f.call("getindexinfo", &json!([])), json!({}));
    let mut f = f.restart(with_index);
    assert_eq!(synced(&mut f), 100);
    assert_eq!(f.call("getindexinfo", &json!(["txindex"])), json!({}));
    assert_eq!(f.call("getindexinfo", &json!(["electrum"]))["electrum"]["synced"], true);
    f.mine(&[]);
    assert_eq!(synced(&mut f), 101);
    let tip = f.blocks[101].hash().to_string();
    f.call("invalidateblock", &json!([tip]));
    assert_eq!(synced(&mut f), 100);
    f.call("reconsiderblock", &json!([tip]));
    assert_eq!(synced(&mut f), 101);
    // Without the index for a while: it is behind, and catches up again.
    let mut f = f.restart(|_| ());
    f.mine(&[]);
    let mut f = f.restart(with_index);
    assert_eq!(synced(&mut f), 102);
}

/// Waits until the index of transactions says that it is at the tip.
fn tx_index_synced(f: &mut Fixture) -> Value {
    loop {
        let info = f.call("getindexinfo", &json!(["txindex"]));
        if info["txindex"]["synced"] == true {
            return info["txindex"]["best_block_height"].clone();
        }
        thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn confirmed_transactions_are_found_by_their_ids_alone() {
    let mut f = Fixture::new();
    f.mature();
    let txid = |f: &Fixture, height: usize| f.blocks[height].txids(0..1)[0].to_string();
    let (early, missing) = (txid(&f, 5), "77".repeat(32));
    let (_, text) = f.error("getrawtransaction", &json!([early]));
    assert!(text.contains("Use -txindex"), "{text}");
    let mut f = f.restart(|config| config.tx_index = true);
    assert_eq!(tx_index_synced(&mut f), 100);
    let found = f.call("getrawtransaction", &json!([early, 1]));
    assert_eq!(found["blockhash"], f.blocks[5].hash().to_string());
    assert_eq!(found["confirmations"], 96);
    assert_eq!(found.get("in_active_chain"), None);
    let (_, text) = f.error("getrawtransaction", &json!([missing]));
    assert!(text.starts_with("No such mempool or blockchain transaction."), "{text}");
    // What has just been connected is found at once, and what has been disconnected is not found any more.
    f.mine(&[]);
    let late = txid(&f, 101);
    assert_eq!(f.call("getrawtransaction", &json!([late, 1]))["confirmations"], 1);
    f.call("invalidateblock", &json!([f.blocks[101].hash().to_string()]));
    f.error("getrawtransaction", &json!([late]));
    f.call("gettxoutproof", &json!([[early]]));
    // It finds its way after a time without it.
    let f = f.restart(|_| ());
    let mut f = f.restart(|config| config.tx_index = true);
    assert_eq!(tx_index_synced(&mut f), 100);
    f.call("getrawtransaction", &json!([early]));
    // The index of scripts serves both questions.
    let mut f = f.restart(|config| {
        config.tx_index = true;
        with_index(config);
    });
    assert_eq!(synced(&mut f), 100);
    assert_eq!(tx_index_synced(&mut f), 100);
    f.call("getrawtransaction", &json!([early]));
}
