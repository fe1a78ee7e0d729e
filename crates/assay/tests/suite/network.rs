//! `assay bench network` with our own nodes: partitions, until all nodes agree.

use std::process::Command;

#[test]
fn nodes_agree_after_partitions() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("network");
    let output = Command::new(env!("CARGO_BIN_EXE_assay"))
        .args(["bench", "network", "--for", "8s", "--tx-rate", "6", "--block-every", "1s"])
        .args(["--cut-every", "1s", "--cut-for", "1s", "--seed", "5", "--json", "--out"])
        .arg(&out)
        .output()
        .expect("the program starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{stderr}\n{stdout}");
    let report: serde_json::Value = serde_json::from_str(&stdout).expect("JSON");
    let written = std::fs::read(out.join("network.json")).expect("a results file");
    let written: serde_json::Value = serde_json::from_slice(&written).expect("JSON");
    assert_eq!(report["convergence"], written["convergence"]);
    let (load, agreement) = (&report["load"], &report["convergence"]);
    assert!(load["txs"].as_u64() > Some(10) && load["blocks"].as_u64() > Some(0), "{load}");
    assert_ne!(load["held"].as_u64().zip(load["broken"].as_u64()), Some((0, 0)), "{load}");
    for field in ["is_pool_same", "is_emptied", "is_muhash_same"] {
        assert_eq!(agreement[field], true, "{field}: {agreement}");
    }
    let muhash = agreement["muhash"].as_array().expect("a list");
    assert!(muhash.len() == 3 && muhash.iter().all(|hash| hash != ""), "{agreement}");
    assert_eq!(report["nodes"].as_array().map(Vec::len), Some(3));
    assert_eq!(
        (&report["faults"], &report["departures"]),
        (&written["faults"], &serde_json::json!([]))
    );
}

#[test]
fn networks_are_not_too_small_or_too_busy() {
    for (arguments, expected) in [
        (["--target", "assay"], "2 to 16 nodes"),
        (["--tx-rate", "1000"], "at most 60000 transactions"),
        (["--block-every", "0s"], "give more than nothing"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_assay"))
            .args(["bench", "network"])
            .args(arguments)
            .output()
            .expect("the program starts");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(expected), "{stderr}");
    }
}
