//! `assay top` against a running node.

use std::path::Path;
use std::process::Output;

use assay_node::Node;

use crate::{command, good, node_config, stderr, stdout, stop};

fn node(dir: &Path) -> Node {
    Node::start(&node_config(dir)).expect("the node starts")
}

fn top(dir: &Path, arguments: &[&str]) -> Output {
    top_of_any_chain(dir, &[&["--chain", "regtest"], arguments].concat())
}

fn top_of_any_chain(dir: &Path, arguments: &[&str]) -> Output {
    let mut command = command(&["top", "--datadir"]);
    command.arg(dir).args(arguments).output().expect("the program starts")
}

#[test]
fn a_node_is_shown_as_json_and_as_lines() {
    let dir = tempfile::tempdir().expect("a folder");
    let node = node(dir.path());
    let address = node.rpc_addresses()[0].to_string();
    let snapshot = good(&top(dir.path(), &["--rpc", &address, "--json"]));
    assert_eq!(snapshot["schema"], 1);
    assert_eq!(snapshot["chain"]["name"], "regtest");
    assert_eq!(snapshot["chain"]["blocks"], 0);
    assert_eq!(snapshot["peers"], serde_json::json!([]));
    assert!(snapshot["node"]["user_agent"].as_str().expect("text").contains("Assay:"));

    let output = top(dir.path(), &["--rpc", &address, "--interval", "0.1", "--count", "2"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let lines = stdout(&output);
    let lines: Vec<&str> = lines.lines().collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].contains("blocks=0 headers=0 peers=0 mempool=0"), "{}", lines[0]);
    assert!(lines[1].contains("blocks_per_s=0.0"), "{}", lines[1]);
    stop(node);
}

#[test]
fn the_chain_is_the_one_in_the_configuration() {
    let dir = tempfile::tempdir().expect("a folder");
    let node = node(dir.path());
    let port = node.rpc_addresses()[0].port();
    for chain in ["regtest=1", "chain=regtest"] {
        let text = format!("{chain}\n[regtest]\nrpcport={port}\n[main]\nrpcport=1\n");
        std::fs::write(dir.path().join("bitcoin.conf"), text).expect("written");
        for arguments in [&["--json"][..], &["--chain", "regtest", "--json"]] {
            let snapshot = good(&top_of_any_chain(dir.path(), arguments));
            assert_eq!(snapshot["chain"]["name"], "regtest", "{chain}");
        }
    }
    stop(node);
}

#[test]
fn a_node_that_does_not_run_is_named() {
    let dir = tempfile::tempdir().expect("a folder");
    let output = top(dir.path(), &["--json"]);
    assert_eq!(output.status.code(), Some(2));
    let error = stderr(&output);
    assert!(error.contains("regtest/.cookie: is the node running"), "{error}");
}
