//! The index of a running node.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use assay_electrum::server;
use assay_node::{IndexOptions, NodeConfig};
use serde_json::{Value, json};

use crate::chain::spend;
use crate::node::Fixture;

fn with_index(config: &mut NodeConfig) {
    config.index = Some(IndexOptions::default());
}

#[test]
fn index_enabled_later_catches_up() {
    let mut f = Fixture::new();
    f.mature();
    assert_eq!(f.call("getindexinfo", &json!([])), json!({}));
    let mut f = f.restart(with_index);
    assert_eq!(f.synced("electrum"), 100);
    assert_eq!(f.call("getindexinfo", &json!(["txindex"])), json!({}));
    assert_eq!(f.call("getindexinfo", &json!(["electrum"]))["electrum"]["synced"], true);
    f.mine(&[]);
    assert_eq!(f.synced("electrum"), 101);
    let tip = f.blocks[101].hash().to_string();
    f.call("invalidateblock", &json!([tip]));
    assert_eq!(f.synced("electrum"), 100);
    f.call("reconsiderblock", &json!([tip]));
    assert_eq!(f.synced("electrum"), 101);
    // After a restart without the index it lags, and catches up.
    let mut f = f.restart(|_| ());
    f.mine(&[]);
    let mut f = f.restart(with_index);
    assert_eq!(f.synced("electrum"), 102);
}

#[test]
fn finds_confirmed_transactions_by_txid() {
    let mut f = Fixture::new();
    f.mature();
    let txid = |f: &Fixture, height: usize| f.blocks[height].txids(0..1)[0].to_string();
    let (early, missing) = (txid(&f, 5), "77".repeat(32));
    let (_, text) = f.error("getrawtransaction", &json!([early]));
    assert!(text.contains("Use -txindex"), "{text}");
    let mut f = f.restart(|config| config.tx_index = true);
    assert_eq!(f.synced("txindex"), 100);
    let found = f.call("getrawtransaction", &json!([early, 1]));
    assert_eq!(found["blockhash"], f.blocks[5].hash().to_string());
    assert_eq!(found["confirmations"], 96);
    assert_eq!(found.get("in_active_chain"), None);
    let (_, text) = f.error("getrawtransaction", &json!([missing]));
    assert!(text.starts_with("No such mempool or blockchain transaction."), "{text}");
    // New confirmations are found at once, and disconnected transactions no longer.
    f.mine(&[]);
    let late = txid(&f, 101);
    assert_eq!(f.call("getrawtransaction", &json!([late, 1]))["confirmations"], 1);
    f.call("invalidateblock", &json!([f.blocks[101].hash().to_string()]));
    f.error("getrawtransaction", &json!([late]));
    f.call("gettxoutproof", &json!([[early]]));
    // It catches up after a restart without it.
    let f = f.restart(|_| ());
    let mut f = f.restart(|config| config.tx_index = true);
    assert_eq!(f.synced("txindex"), 100);
    f.call("getrawtransaction", &json!([early]));
    // The script index serves both.
    let mut f = f.restart(|config| {
        config.tx_index = true;
        with_index(config);
    });
    assert_eq!(f.synced("electrum"), 100);
    assert_eq!(f.synced("txindex"), 100);
    f.call("getrawtransaction", &json!([early]));
}

/// A wallet looks up its transaction as soon as the submission returns.
#[test]
fn submitted_transactions_are_visible_at_once() {
    let mut f = Fixture::new();
    f.mature();
    let mut f = f.restart(|config| {
        let tcp = vec!["127.0.0.1:0".parse().unwrap()];
        let server = server::Config { tcp, ..server::Config::default() };
        config.index = Some(IndexOptions { server: Some(server), ..IndexOptions::default() });
    });
    f.synced("electrum");
    let stream = TcpStream::connect(f.node.electrum_addresses().tcp[0]).unwrap();
    let mut stream = BufReader::new(stream);
    let mut call = |method: &str, params: Value| -> Value {
        let request = json!({"jsonrpc": "2.0", "id": 0, "method": method, "params": params});
        stream.get_mut().write_all(format!("{request}\n").as_bytes()).unwrap();
        let mut line = String::new();
        stream.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    };
    call("server.version", json!(["test", "1.4"]));
    let mut tx = f.spend_coinbase(1, &[4_999_990_000]);
    for number in 0..20 {
        let (raw, txid) = (faster_hex::hex_string(tx.bytes()), tx.view().txid());
        let sent = call("blockchain.transaction.broadcast", json!([raw]));
        assert_eq!(sent["result"], txid.to_string(), "{sent}");
        let seen = call("blockchain.transaction.get", json!([txid.to_string()]));
        assert_eq!(seen["result"], raw, "{number}: {seen}");
        tx = spend(&[(txid, 0)], &[4_999_980_000 - 10_000 * number]);
    }
}
