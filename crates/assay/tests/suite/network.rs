//! `assay bench network` with our own nodes: partitions, until all nodes agree.

use assay_report::record::Record;

use crate::{assay, command, stderr};

#[test]
fn nodes_agree_after_partitions() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("network");
    let output = command(&["bench", "network", "--for", "8s", "--tx-rate", "6"])
        .args(["--block-every", "1s"])
        .args(["--cut-every", "1s", "--cut-for", "1s", "--seed", "5", "--json", "--out"])
        .arg(&out)
        .output()
        .expect("the program starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{stderr}\n{stdout}");
    let record: Record = serde_json::from_str(&stdout).expect("a record");
    assert_eq!(Record::load(&out.join("network.json")).expect("a record"), record);
    let [txs, held, broken] =
        ["transactions", "partitions that delay messages", "partitions that close connections"]
            .map(|metric| record.values("", metric)[0]);
    assert!(txs > 10.0 && held + broken > 0.0, "{stdout}");
    assert_eq!(record.checks.len(), 7);
    // Defaults are written out, folders and forms of the output are not.
    let begin =
        "assay bench network --for 8s --tx-rate 6 --block-every 1s --cut both --cut-every 1s";
    let end = "--degree 3 --rate 100 --round-trip 20ms --seed 5";
    let command = &record.command;
    assert!(command.starts_with(begin) && command.ends_with(end), "{command}");
    assert!(record.has_passed(), "{stdout}");
    assert_eq!(record.values("", "peak memory").len(), 3);
}

#[test]
fn networks_are_not_too_small_or_too_busy() {
    for (arguments, expected) in [
        (["--target", "assay"], "2 to 16 nodes"),
        (["--tx-rate", "1000"], "at most 60000 transactions"),
        (["--block-every", "0s"], "give more than nothing"),
    ] {
        let output = assay(&[&["bench", "network"], &arguments[..]].concat());
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    }
}
