//! Mempool plans on our own node.

use std::path::Path;

use assay_report::record::{Cell, Record};

use crate::{assay, stderr};

fn run(plan: &str, out: &Path, more: &[&str]) -> Record {
    let out = out.to_str().expect("text");
    let output = assay(&[&["run", plan, "--out", out, "--json"], more].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("a record")
}

#[test]
fn every_case_ends_with_the_same_mempool_on_two_nodes() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let more = ["--scale", "0.03", "--repeat", "2", "--target", "assay", "--target", "assay"];
    let record = run("mempool", folder.path(), &more);
    assert_eq!(record.checks.len(), 6, "{}", record.text());
    let again = "assay run mempool --scale 0.03 --target assay --target assay --repeat 2";
    assert_eq!(record.command, again);
    let is_sent = |cell: &&Cell| cell.metric == "sent";
    for sent in record.cells.iter().filter(is_sent) {
        let of = |metric: &str| {
            let key = |cell: &Cell| (cell.target.clone(), cell.case.clone(), cell.round);
            let is_it = |cell: &&Cell| cell.metric == metric && key(cell) == key(sent);
            record.cells.iter().find(is_it).map(|cell| cell.value)
        };
        let all = Some(sent.value);
        assert_eq!((of("accepted"), of("in the mempool")), (all, all), "{sent:?}");
        let replaced = if sent.case == "replacements" { sent.value } else { 0.0 };
        let orphans = (sent.case == "orphans").then_some(sent.value / 2.0);
        assert_eq!((of("replaced"), of("orphans")), (Some(replaced), orphans), "{sent:?}");
    }
    for case in ["p2tr", "orphans", "replacements", "full-mempool"] {
        // A rate of each target, and their ratio.
        let numbers = ["sent", "median"].map(|metric| record.values(case, metric).len());
        assert_eq!(numbers, [2 * 2, 3], "{case}: {}", record.text());
    }
    assert_eq!(Record::load(&folder.path().join("mempool.json")).expect("a record"), record);
}

#[test]
fn a_full_mempool_keeps_the_best_paying_transactions() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let plan = folder.path().join("plan.toml");
    let text = "format = 1\nkind = \"mempool\"\nname = \"full\"\ntitle = \"Full\"\nsummary = \"Full.\"\nseed = 7\n\
                txs = 3000\nrepeat = 1\n[[case]]\nname = \"full\"\nwhat = \"evict\"\nscript = \"p2wpkh\"\n";
    std::fs::write(&plan, text).expect("writable");
    let record = run(plan.to_str().expect("text"), &folder.path().join("out"), &[]);
    let is_it = |metric: &str, least: f64| {
        let mut cells = record.cells.iter().filter(|cell| cell.metric == metric);
        cells.next().is_some_and(|cell| cell.value > least)
    };
    assert!(is_it("evicted", 0.0) && is_it("least fee, sat/kvB", 1_000.0), "{}", record.text());
}

#[test]
fn flags_of_other_plans_are_rejected() {
    let output = assay(&["run", "mempool", "--seen", "0.5"]);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(said.contains("--seen means nothing for mempool, a plan of kind mempool"), "{said}");
    assert!(said.contains("feed.seen is a key of bch-scaling, "), "{said}");
}
