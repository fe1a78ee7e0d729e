//! Node with index: a small plan from forge to report, and a comparison of the server with the chain.

use std::path::Path;

use crate::{Guard, assay, command, free_addresses, good, line, stderr, stdout};

fn measured(out: &Path) -> serde_json::Value {
    let out = out.display();
    let flags = "--scale 0.0003 --stop-height 122 --keep-datadirs --json";
    good(&line(&format!("run bch-scaling {flags} --out {out}")))
}

#[test]
fn a_plan_measures_node_and_index_and_any_server_can_be_compared() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    let results = measured(&out);
    let targets = results["targets"].as_array().expect("targets");
    let names: Vec<_> = targets.iter().map(|target| target["name"].as_str()).collect();
    assert_eq!(names, [Some("assay+index"), Some("assay+index-distinct")]);
    for run in targets.iter().flat_map(|target| target["runs"].as_array().expect("runs")) {
        // Interference by another process only excludes a run from the verdict.
        let status = run["status"].as_str();
        assert!(matches!(status, Some("valid" | "disturbed")), "{status:?} {}", run["void_reason"]);
        let ledger = &run["index"]["ledger"];
        assert_eq!((&ledger["differences"], &ledger["refused"]), (&0.into(), &0.into()));
        assert_eq!(ledger["other_order"], 0, "our own answers are in the order of the chain");
        assert!(ledger["scripts"].as_u64().is_some_and(|scripts| scripts > 1000), "{ledger}");
        assert!(run["index"]["index_bytes"].as_u64().is_some_and(|bytes| bytes > 10_000));
        for block in run["blocks"].as_array().expect("blocks") {
            assert!(block["index"]["reached_at_s"].is_f64(), "{block}");
        }
    }

    // The data folder of a run can be started again and its index queried.
    let [rpc, electrum] = free_addresses().map(|address| address.to_string());
    let datadir = out.join("work/assay+index-0-1");
    let node = command(&["node", "--chain", "bch-regtest", "--rpc", &rpc, "--electrum", &electrum])
        .args(["--electrum-rate", "0", "--datadir"])
        .arg(&datadir)
        .spawn();
    let _node = Guard(node.expect("the program starts"));
    wait_for(&electrum);
    let check = |chain: &str| {
        let chain = out.join(chain).display().to_string();
        assay(&["electrum", "check", &electrum, "--chain-dir", &chain, "--wait", "60"])
    };
    let right = check("chain");
    let printed = stdout(&right);
    assert!(right.status.success(), "{printed}{}", stderr(&right));
    assert!(printed.contains("0 differences") && printed.contains("height 122"), "{printed}");
    // The tip identifies another chain before the first query.
    let other = check("chain-distinct");
    assert_eq!(other.status.code(), Some(2));
    assert!(stderr(&other).contains("the chain ends at height 122"));
}

fn wait_for(address: &str) {
    let start = std::time::Instant::now();
    while std::net::TcpStream::connect(address).is_err() {
        assert!(start.elapsed().as_secs() < 60, "nobody listens on {address}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}
