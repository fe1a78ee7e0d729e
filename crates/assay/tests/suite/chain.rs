//! `assay chain stats` and `assay chain sql` as a user meets them, on a forged chain.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// What is summed up everywhere.
const FIELDS: [&str; 4] = ["txs", "inputs", "outputs", "bytes"];

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_assay"));
    command.args(arguments).env("COLUMNS", "100");
    command
}

fn assay(arguments: &[&str]) -> Output {
    command(arguments).output().expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

/// What a command that does its work prints.
fn prints(arguments: &[&str]) -> String {
    let output = assay(arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// A refusal: exit status 2, nothing on standard output, and this message.
fn refuses(arguments: &[&str], message: &str) {
    let output = assay(arguments);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
    assert_eq!(text(&output.stdout), "", "{arguments:?}");
    assert!(said.contains(message), "{arguments:?}: {said}");
    // An error says its cause once.
    assert!(said.matches("(os error").count() <= 1, "{said}");
}

struct Chain {
    dir: tempfile::TempDir,
    tip: serde_json::Value,
}

impl Chain {
    fn forge() -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let out = dir.path().join("chain").display().to_string();
        let tip = prints(&[
            "chain",
            "forge",
            "bitcoin-scaling",
            "--scale",
            "0.01",
            "--out",
            &out,
            "--json",
        ]);
        let tip = serde_json::from_str(&tip).expect("JSON");
        Self { dir, tip }
    }

    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).display().to_string()
    }
}

#[test]
fn help_texts() {
    for (name, arguments) in [
        ("chain stats", ["chain", "stats", "--help"]),
        ("chain sql", ["chain", "sql", "--help"]),
        ("chain sql tables", ["chain", "sql", "--tables"]),
    ] {
        insta::assert_snapshot!(name, prints(&arguments));
    }
}

#[test]
fn a_chain_is_counted_and_asked() {
    let chain = Chain::forge();
    let blocks = chain.path("chain");
    let (parquet, page) = (chain.path("parquet"), chain.path("page.html"));
    let json = prints(&[
        "chain",
        "stats",
        "--blocks",
        &blocks,
        "--json",
        "--parquet",
        &parquet,
        "--plot",
        &page,
    ]);
    let report: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!((&report["schema"], &report["ledger"]["equal"]), (&1.into(), &true.into()));
    for field in FIELDS {
        assert_eq!(report["total"][field], chain.tip[field], "{field}");
    }
    let page = std::fs::read_to_string(page).expect("a page");
    assert!(page.contains("SegWit share") && page.contains("equals the ledger"));

    let text = prints(&["chain", "stats", "--blocks", &blocks]);
    assert!(text.contains("equals the ledger in all"), "{text}");
    assert!(text.lines().any(|line| line.starts_with("speed  ")), "{text}");

    // The folder inside, ranges of ten, and sums of CSV columns.
    let inside = chain.path("chain/blocks");
    let csv = prints(&["chain", "stats", "--blocks", &inside, "--csv", "--range", "10"]);
    let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = lines.next().expect("a head");
    let rows: Vec<_> = lines.collect();
    for field in FIELDS {
        let column = head.iter().position(|name| *name == field).expect("a column");
        let sum: u64 = rows.iter().map(|row| row[column].parse::<u64>().expect("a number")).sum();
        assert_eq!(report["total"][field], sum, "{field}");
    }
    assert!(rows.iter().all(|row| row.len() == head.len()));
    let heights = report["last_height"].as_u64().expect("a height");
    assert_eq!(rows.len() as u64, heights.div_ceil(10));

    let sql = "SELECT SUM(txs) AS txs, SUM(inputs) AS inputs, SUM(outputs) AS outputs, SUM(bytes) AS bytes FROM blocks";
    let expected: Vec<_> = FIELDS.iter().map(|field| &report["total"][field]).collect();
    for source in [["--blocks", &blocks], ["--parquet", &parquet]] {
        let json = prints(&[&["chain", "sql", sql, "--json"], &source[..]].concat());
        let answer: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(answer["columns"], serde_json::json!(FIELDS));
        assert_eq!(answer["rows"], serde_json::json!([expected]));
    }
    let (txs, inputs) = (&report["total"]["txs"], &report["total"]["inputs"]);
    let sql = "SELECT COUNT(*) AS n, SUM(inputs) AS inputs FROM txs";
    let csv = prints(&["chain", "sql", sql, "--parquet", &parquet, "--csv"]);
    assert_eq!(csv, format!("n,inputs\n{txs},{inputs}\n"));
}

#[test]
fn another_ledger_is_a_negative_result() {
    let chain = Chain::forge();
    let ledger = chain.path("chain/ledger.jsonl");
    let lines = std::fs::read_to_string(&ledger).expect("a ledger");
    let other = chain.path("other");
    std::fs::create_dir(&other).expect("a folder");
    // One output more in the block at height 2.
    let changed: Vec<String> = lines
        .lines()
        .enumerate()
        .map(|(number, line)| match number {
            2 => line.replacen("\"outputs\":", "\"outputs\":1", 1),
            _ => line.to_owned(),
        })
        .collect();
    std::fs::write(Path::new(&other).join("ledger.jsonl"), changed.join("\n") + "\n")
        .expect("a ledger");
    let output = assay(&["chain", "stats", "--blocks", &chain.path("chain"), "--check", &other]);
    let said = text(&output.stdout) + &text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("DIFFERS from the ledger: 1 difference"), "{said}");
    assert!(said.contains("ledger: height 2: "), "{said}");
}

#[test]
fn damage_is_told_with_its_place() {
    let chain = Chain::forge();
    let file = chain.path("chain/blocks/blk00000.dat");
    let bytes = std::fs::read(&file).expect("a file");
    std::fs::write(&file, &bytes[..bytes.len() - 1]).expect("a file");
    for arguments in [
        &["chain", "stats", "--blocks"][..],
        &["chain", "sql", "SELECT COUNT(*) FROM blocks", "--blocks"],
    ] {
        let output = assay(&[arguments, &[file.as_str()]].concat());
        let said = text(&output.stderr);
        assert!(said.contains("blk00000.dat") && said.contains("cut off"), "{said}");
    }
}

#[test]
fn mistakes_are_explained() {
    let chain = Chain::forge();
    let blocks = chain.path("chain");
    let sql =
        |sql: &str, message: &str| refuses(&["chain", "sql", sql, "--blocks", &blocks], message);
    sql("SELECT inptus FROM txs", "SQL: no such column: inptus");
    sql("SELECT inptus FROM txs", "\n  SELECT inptus FROM txs\n         ^\n");
    sql("SELECT * FROM transactions", "no such table: transactions");
    sql("SELECT * FROM transactions", "txs: height, tx_index, txid");
    sql("SELECT FROM WHERE", "syntax error");
    for statement in
        ["DELETE FROM txs", "DROP TABLE txs", "ATTACH 'a' AS b", "SELECT 1; SELECT 2", ""]
    {
        sql(statement, "only one query is possible");
    }
    sql("SELECT hex(zeroblob(50000000))", "more than 67108864 bytes");
    sql("SELECT SUM(9223372036854775807) FROM blocks", "integer overflow");

    let nowhere = chain.path("nowhere");
    refuses(&["chain", "stats", "--blocks", &nowhere], "nowhere: No such file or directory");
    refuses(&["chain", "sql", "SELECT 1", "--blocks", &nowhere], "nowhere: No such file");
    refuses(
        &["chain", "sql", "SELECT * FROM blocks", "--parquet", &nowhere],
        "nowhere: No such file",
    );
    std::fs::create_dir(&nowhere).expect("a folder");
    refuses(&["chain", "stats", "--blocks", &nowhere], "holds no blk*.dat");
    std::fs::write(Path::new(&nowhere).join("blk00000.dat"), "hello there").expect("a file");
    refuses(&["chain", "stats", "--blocks", &nowhere], "name the --chain");
    refuses(
        &["chain", "stats", "--blocks", &nowhere, "--chain", "main"],
        "1 files of 11 bytes hold no block of main",
    );
    refuses(&["chain", "stats", "--blocks", &blocks, "--chain", "dogecoin"], "bch-regtest");
    refuses(&["chain", "stats", "--blocks", &blocks, "--check", &nowhere], "ledger.jsonl");
    refuses(&["chain", "stats", "--blocks", &blocks, "--plot", "page.png"], ".html");
    refuses(&["chain", "stats", "--blocks", &blocks, "--range", "0"], "--range");
    refuses(&["chain", "sql", "SELECT 1"], "--blocks");
    refuses(&["chain", "sql", "SELECT 1", "--parquet", &nowhere, "--many", "2"], "--many");
}

/// Answers without an end: a table shows its beginning, and a reader may leave.
#[test]
fn endless_answers_are_cut() {
    const ENDLESS: &str =
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n";
    let chain = Chain::forge();
    let blocks = chain.path("chain");
    let output = assay(&["chain", "sql", ENDLESS, "--blocks", &blocks]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(text(&output.stdout).lines().count(), 10_001);
    assert!(text(&output.stderr).contains("only the first 10000 rows"));
    for form in ["--csv", "--json"] {
        let mut child = command(&["chain", "sql", ENDLESS, "--blocks", &blocks, form])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let many = lines.by_ref().take(20_000).flatten().count();
        assert_eq!(many, 20_000);
        drop(lines);
        let output = child.wait_with_output().expect("an end");
        assert_eq!(output.status.code(), Some(0), "{form}: {}", text(&output.stderr));
    }
}
