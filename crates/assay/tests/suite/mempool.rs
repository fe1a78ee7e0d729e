//! Mempool plans on our own node.

use std::path::Path;

use serde_json::Value;

use crate::{assay, good, stderr};

fn run(plan: &str, out: &Path, more: &[&str]) -> Value {
    let out = out.to_str().expect("text");
    good(&assay(&[&["run", plan, "--out", out, "--json"], more].concat()))
}

fn count(run: &Value, field: &str) -> u64 {
    run[field].as_u64().unwrap_or_else(|| panic!("{field} of {run}"))
}

#[test]
fn every_case_ends_with_the_same_mempool_on_two_nodes() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let more = ["--scale", "0.03", "--repeat", "2", "--target", "assay", "--target", "assay"];
    let results = run("mempool", folder.path(), &more);
    let cases = results["plan"]["case"].as_array().expect("cases").len();
    let runs = results["runs"].as_array().expect("runs");
    assert_eq!(runs.len(), 2 * 2 * cases);
    for run in runs {
        assert_eq!(run["faults"], serde_json::json!([]), "{run}");
        let sent = count(run, "sent");
        assert_eq!((count(run, "accepted"), count(run, "in_mempool")), (sent, sent), "{run}");
        match run["case"].as_str().expect("a name") {
            "replacements" => assert_eq!(count(run, "replaced"), sent),
            "orphans" => assert_eq!(count(run, "orphans"), sent / 2),
            _ => assert_eq!(count(run, "replaced"), 0),
        }
    }
    assert_ne!(results["targets"][0]["name"], results["targets"][1]["name"]);
    for file in ["results.json", "report.md", "report.html"] {
        assert!(folder.path().join(file).is_file(), "{file}");
    }
    let again = assay(&["report", folder.path().to_str().expect("text"), "--json"]);
    assert_eq!(good(&again), results);
}

#[test]
fn a_full_mempool_keeps_the_best_paying_transactions() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let plan = folder.path().join("plan.toml");
    let text = "format = 1\nkind = \"mempool\"\nname = \"full\"\ntitle = \"Full\"\nsummary = \"Full.\"\nseed = 7\n\
                txs = 3000\nrepeat = 1\n[[case]]\nname = \"full\"\nwhat = \"evict\"\nscript = \"p2wpkh\"\n";
    std::fs::write(&plan, text).expect("writable");
    let results = run(plan.to_str().expect("text"), &folder.path().join("out"), &[]);
    let run = &results["runs"][0];
    assert_eq!(run["faults"], serde_json::json!([]), "{run}");
    assert!(count(run, "evicted") > 0, "{run}");
    assert!(count(run, "min_sat_per_kvb") > 1_000, "{run}");
}

#[test]
fn flags_of_other_plans_are_rejected() {
    let output = assay(&["run", "mempool", "--seen", "0.5"]);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(said.contains("--seen means nothing for mempool"), "{said}");
}
