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
