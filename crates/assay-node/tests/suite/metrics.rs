//! Metrics endpoint.

use std::collections::BTreeMap;

use assay_node::{Node, NodeConfig, NodeError, P2pConfig};
use assay_wire::p2p::Message;

use crate::node::{Fixture, config};
use crate::p2p;
use crate::support::{Answer, Client};

fn with_metrics(config: &mut NodeConfig) {
    config.metrics = Some("127.0.0.1:0".parse().unwrap());
    config.p2p = Some(P2pConfig::new("127.0.0.1:0".parse().unwrap()));
}

fn get(f: &Fixture, path: &str) -> Answer {
    Client::connect(f.node.metrics_address().unwrap(), "nobody:").request("GET", path, b"")
}

/// All values by name and labels; checks that each metric is described once, before its first value.
fn metrics(f: &Fixture) -> BTreeMap<String, f64> {
    let text = get(f, "/metrics").text();
    let (mut values, mut described) = (BTreeMap::new(), Vec::new());
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let name = help.split(' ').next().unwrap().to_owned();
            assert!(name.starts_with("assay_node_") && !described.contains(&name), "{name}");
            described.push(name);
        } else if !line.starts_with('#') {
            let (name, value) = line.rsplit_once(' ').unwrap();
            let base = name.split('{').next().unwrap();
            assert_eq!(described.last().unwrap(), base);
            values.insert(name.to_owned(), value.parse().unwrap());
        }
    }
    values
}

#[test]
fn blocks_peers_and_messages_are_counted() {
    let mut f = Fixture::new().restart(with_metrics);
    f.mine(&[]);
    f.mine(&[]);
    let mut peer = p2p::Client::serving_blocks(&f);
    peer.send(&Message::Ping(7));
    peer.expect_past("pong");
    let values = metrics(&f);
    for (name, expected) in [
        ("info{version=\"0.1.0\",chain=\"regtest\"}", 1.0),
        ("blocks", 2.0),
        ("headers", 2.0),
        ("initial_block_download", 1.0),
        ("connected_blocks_total", 2.0),
        ("connected_transactions_total", 2.0),
        ("mempool_transactions", 0.0),
        ("peers{connection=\"inbound\",transport=\"v1\"}", 1.0),
        ("requested_blocks", 0.0),
        ("received_messages_total{message=\"ping\"}", 1.0),
        ("received_messages_bytes_total{message=\"ping\"}", 32.0),
        ("sent_messages_total{message=\"version\"}", 1.0),
    ] {
        assert_eq!(values.get(&format!("assay_node_{name}")), Some(&expected), "{name}");
    }
    for stage in ["check", "archive", "coins", "scripts", "tip"] {
        let seconds = values[&format!("assay_node_stage_seconds_total{{stage=\"{stage}\"}}")];
        assert!(seconds > 0.0 && seconds < 60.0, "{stage}: {seconds}");
    }
    assert!(values["assay_node_connected_bytes_total"] > 300.0);
    assert!(values["assay_node_coins_cache_bytes_max"] > values["assay_node_coins_cache_bytes"]);
    assert_eq!(get(&f, "/").status, 404);
}

#[test]
fn remote_access_is_rejected() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(dir.path());
    config.metrics = Some("0.0.0.0:0".parse().unwrap());
    let error = Node::start(&config).unwrap_err();
    assert!(matches!(error, NodeError::MetricsExposed { .. }), "{error}");
}
