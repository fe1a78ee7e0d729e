//! `assay chain stats` on a forged chain.

use std::collections::HashMap;
use std::path::Path;

use serde_json::Value;

use crate::{assay, forge, stderr, stdout};

/// Fields with sums.
const FIELDS: [&str; 4] = ["txs", "inputs", "outputs", "bytes"];

/// Standard output of a successful command.
fn prints(arguments: &[&str]) -> String {
    let output = assay(arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", stderr(&output));
    stdout(&output)
}

fn rejects(arguments: &[&str], message: &str) {
    let said = crate::rejects(arguments, message);
    // The cause of an error is printed once.
    assert!(said.matches("(os error").count() <= 1, "{said}");
}

struct Chain {
    dir: tempfile::TempDir,
    tip: Value,
}

impl Chain {
    fn forge() -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let out = dir.path().join("chain").display().to_string();
        let tip = forge(&out, "--scale 0.01");
        Self { dir, tip }
    }

    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).display().to_string()
    }
}

#[test]
fn help_text() {
    insta::assert_snapshot!("chain stats", prints(&["chain", "stats", "--help"]));
}

/// Columns of a CSV file, by name.
fn columns(csv: &str) -> HashMap<&str, Vec<&str>> {
    let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = lines.next().expect("a head");
    let rows: Vec<_> = lines.collect();
    assert!(rows.iter().all(|row| row.len() == head.len()));
    let column = |(at, name)| (name, rows.iter().map(|row| row[at]).collect());
    head.into_iter().enumerate().map(column).collect()
}

fn sum(column: &[&str]) -> u64 {
    column.iter().map(|value| value.parse::<u64>().expect("a number")).sum()
}

#[test]
fn a_chain_is_counted() {
    let chain = Chain::forge();
    let blocks = chain.path("chain");
    let (tables, page) = (chain.path("tables"), chain.path("page.html"));
    let json = prints(&[
        "chain", "stats", "--blocks", &blocks, "--json", "--tables", &tables, "--plot", &page,
    ]);
    let report: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!((&report["schema"], &report["ledger"]["equal"]), (&1.into(), &true.into()));
    for field in FIELDS {
        assert_eq!(report["total"][field], chain.tip[field], "{field}");
    }
    let page = std::fs::read_to_string(page).expect("a page");
    assert!(page.contains("SegWit share") && page.contains("counts equal the ledger"));

    let text = prints(&["chain", "stats", "--blocks", &blocks]);
    assert!(text.contains("counts equal the ledger  passed"), "{text}");
    assert!(text.lines().any(|line| line.starts_with("  speed  ")), "{text}");

    // The inner folder, ranges of ten blocks, and sums of the CSV columns.
    let inside = chain.path("chain/blocks");
    let csv = prints(&["chain", "stats", "--blocks", &inside, "--csv", "--range", "10"]);
    let ranges = columns(&csv);
    for field in FIELDS {
        assert_eq!(report["total"][field], sum(&ranges[field]), "{field}");
    }
    let heights = report["last_height"].as_u64().expect("a height");
    assert_eq!(ranges["bytes"].len() as u64, heights.div_ceil(10));

    let table =
        |name: &str| std::fs::read_to_string(Path::new(&tables).join(name)).expect("a table");
    let (blocks, txs) = (table("blocks.csv"), table("transactions.csv"));
    let (blocks, txs) = (columns(&blocks), columns(&txs));
    for field in FIELDS {
        assert_eq!(report["total"][field], sum(&blocks[field]), "{field}");
    }
    assert_eq!(blocks["height"].len() as u64, heights);
    assert_eq!(blocks["hash"].last().copied(), chain.tip["tip_hash"].as_str());
    assert_eq!(report["total"]["txs"], txs["txid"].len());
    for field in ["inputs", "outputs"] {
        assert_eq!(report["total"][field], sum(&txs[field]), "{field}");
    }
    assert_eq!(sum(&blocks["output_value"]), sum(&txs["output_value"]));
    let coinbases = txs["coinbase"].iter().filter(|value| **value == "true").count();
    assert_eq!(coinbases as u64, heights);
}

#[test]
fn another_ledger_is_a_negative_result() {
    let chain = Chain::forge();
    let ledger = chain.path("chain/ledger.jsonl");
    let lines = std::fs::read_to_string(&ledger).expect("a ledger");
    let other = chain.path("other");
    std::fs::create_dir(&other).expect("a folder");
    // Raises the outputs of the block at height 2, and their sum in the last line, by one.
    let mut changed: Vec<String> = lines.lines().map(str::to_owned).collect();
    let last = changed.len() - 1;
    for line in [2, last] {
        let mut value: Value = serde_json::from_str(&changed[line]).expect("a line");
        value["outputs"] = (value["outputs"].as_u64().expect("a count") + 1).into();
        changed[line] = value.to_string();
    }
    std::fs::write(Path::new(&other).join("ledger.jsonl"), changed.join("\n") + "\n")
        .expect("a ledger");
    let output = assay(&["chain", "stats", "--blocks", &chain.path("chain"), "--check", &other]);
    let said = stdout(&output) + &stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("DIFFERS from the ledger: 2 differences"), "{said}");
    assert!(said.contains("ledger: height 2: "), "{said}");
}

#[test]
fn damage_is_reported_with_its_offset() {
    let chain = Chain::forge();
    let file = chain.path("chain/blocks/blk00000.dat");
    let bytes = std::fs::read(&file).expect("a file");
    std::fs::write(&file, &bytes[..bytes.len() - 1]).expect("a file");
    let said = stderr(&assay(&["chain", "stats", "--blocks", &file]));
    assert!(said.contains("blk00000.dat") && said.contains("cut off"), "{said}");
}

#[test]
fn invalid_arguments_are_rejected() {
    let chain = Chain::forge();
    let blocks = chain.path("chain");
    let nowhere = chain.path("nowhere");
    rejects(&["chain", "stats", "--blocks", &nowhere], "nowhere: No such file or directory");
    std::fs::create_dir(&nowhere).expect("a folder");
    rejects(&["chain", "stats", "--blocks", &nowhere], "holds no blk*.dat");
    std::fs::write(Path::new(&nowhere).join("blk00000.dat"), "hello there").expect("a file");
    rejects(&["chain", "stats", "--blocks", &nowhere], "name the --chain");
    rejects(
        &["chain", "stats", "--blocks", &nowhere, "--chain", "main"],
        "1 files of 11 bytes hold no block of main",
    );
    rejects(&["chain", "stats", "--blocks", &blocks, "--chain", "dogecoin"], "bch-regtest");
    rejects(&["chain", "stats", "--blocks", &blocks, "--check", &nowhere], "ledger.jsonl");
    rejects(&["chain", "stats", "--blocks", &blocks, "--plot", "page.png"], ".html");
    rejects(&["chain", "stats", "--blocks", &blocks, "--range", "0"], "--range");
    let tables = format!("{blocks}/ledger.jsonl");
    rejects(&["chain", "stats", "--blocks", &blocks, "--tables", &tables], "cannot write");
}
