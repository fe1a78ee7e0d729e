//! `assay emit` against a running node: by each delivery, with orphans, and continued after a stop.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Output;

use assay_node::{Node, P2pConfig};
use assay_report::record::Record;

use crate::{assay, forge, node_config, stop};

const BLOCKS: u32 = 110;

struct Running {
    node: Node,
    _dir: tempfile::TempDir,
    rpc: String,
    p2p: SocketAddr,
}

fn start() -> Running {
    let dir = tempfile::tempdir().expect("a folder");
    let mut config = node_config(dir.path());
    // The chain has old time stamps.
    config.engine.tip_age_max_s = 3_153_600_000;
    let mut p2p = P2pConfig::new("127.0.0.1:0".parse().expect("an address"));
    p2p.connect = Some(Vec::new());
    p2p.whitelist = vec!["noban,relay@127.0.0.1".to_owned()];
    config.p2p = Some(p2p);
    let node = Node::start(&config).expect("the node starts");
    let cookie = dir.path().join("regtest").join(".cookie");
    let rpc = format!("{},cookie={}", node.rpc_addresses()[0], cookie.display());
    let p2p = node.p2p_address().expect("it listens");
    Running { node, _dir: dir, rpc, p2p }
}

fn forged(dir: &Path) -> String {
    let chain = dir.join("chain").display().to_string();
    forge(&chain, &format!("--scale 0.02 --distinct-keys --stop-height {BLOCKS}"));
    chain
}

fn emit(chain: &str, to: &str, more: &[&str]) -> Output {
    let arguments = [&["emit", chain, "--to", to, "--json", "--timeout", "30"], more].concat();
    assay(&arguments)
}

fn record(output: &Output) -> Record {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("a record")
}

fn total(record: &Record, metric: &str) -> u64 {
    record.values("", metric)[0] as u64
}

#[test]
fn each_way_leads_to_the_tip() {
    let dir = tempfile::tempdir().expect("a folder");
    let chain = forged(dir.path());
    let more = ["--seen", "0.5", "--seen-mode", "random", "--orphans", "0.3"];
    let mut sent = Vec::new();
    for via in ["rpc", "p2p", "compact"] {
        let running = start();
        let to = match via {
            "rpc" => format!("rpc@{}", running.rpc),
            _ => format!("{via}@{},rpc={}", running.p2p, running.rpc),
        };
        let more =
            if via == "rpc" { more.to_vec() } else { [&more[..], &["--mock-time"]].concat() };
        let target = record(&emit(&chain, &to, &more));
        assert_eq!(total(&target, "blocks"), u64::from(BLOCKS), "{via}");
        let rows: usize = target.samples.iter().map(|series| series.rows.len()).sum();
        assert_eq!(rows, BLOCKS as usize, "{via}");
        let txs = total(&target, "transactions sent");
        assert!(txs > 0 && total(&target, "  before a parent") > 0, "{via}: {}", target.text());
        let taken =
            ["  accepted or requested", "  in the mempool"].map(|what| total(&target, what));
        assert_eq!(taken, [txs, txs]);
        // The node had to request the rest, which was not sent beforehand.
        assert_eq!(total(&target, "requested of compact blocks") > 0, via == "compact", "{via}");
        sent.push(txs);
        stop(running.node);
    }
    assert!(sent.iter().all(|txs| *txs == sent[0]), "{sent:?}");
}

#[test]
fn it_goes_on_where_the_node_is() {
    let dir = tempfile::tempdir().expect("a folder");
    let chain = forged(dir.path());
    let running = start();
    // Without RPC, peers ask the node for its tip.
    let to = format!("p2p@{}", running.p2p);
    let first = record(&emit(&chain, &to, &["--until", "40"]));
    assert_eq!((total(&first, "blocks"), total(&first, "first block")), (40, 1));
    let again = emit(&chain, &to, &[]);
    assert_eq!(again.status.code(), Some(2));
    let text = String::from_utf8_lossy(&again.stdout);
    assert!(text.contains("it has 40 blocks of this chain already; give --resume"), "{text}");
    let rest = record(&emit(&chain, &to, &["--resume"]));
    assert_eq!((total(&rest, "blocks"), total(&rest, "first block")), (70, 41));
    stop(running.node);
}

#[test]
fn a_node_that_is_not_there_is_named() {
    let dir = tempfile::tempdir().expect("a folder");
    let chain = forged(dir.path());
    let output = emit(&chain, "p2p@127.0.0.1:1", &[]);
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("cannot connect to 127.0.0.1:1 as a peer"), "{text}");
}
