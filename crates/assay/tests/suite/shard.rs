//! End-to-end tests of `assay shard`.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use assay_report::record::{Outcome, Record};
use serde_json::Value;
use tempfile::TempDir;

use crate::{assay, command, forge, good, line, stderr};

/// Runs the program with a line on standard input, which stays open until the end.
fn with_salt(arguments: &[&str], salt: &str) -> Output {
    let mut command = command(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    // A program that has already failed may not read its input.
    let _ = child.stdin.take().expect("a pipe").write_all(format!("{salt}\n").as_bytes());
    child.wait_with_output().expect("it ends")
}

fn rejects(output: &Output, words: &str) {
    assert_eq!(output.status.code(), Some(2), "{}", stderr(output));
    assert!(stderr(output).contains(words), "{}", stderr(output));
}

/// A forged chain, its result in one pass, and a plan.
struct Setup {
    dir: TempDir,
    whole: Value,
}

impl Setup {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let this = Self { dir, whole: Value::Null };
        let (chain, spent) = (this.path("chain"), this.path("spent"));
        forge(&chain, "--scale 0.02");
        let hints = this.path("hints.dat");
        let whole = format!(
            "validate --chain regtest --blocks {chain} --write-spent {spent} --write-hints {hints} --json"
        );
        let whole = good(&line(&whole));
        let plan = good(&this.plan("plan", &[]));
        assert_eq!(plan["tip_hash"], whole["tip_hash"]);
        assert_eq!(
            plan["parts"].as_array().expect("parts").len(),
            6,
            "five of blocks, one of coins"
        );
        Self { whole, ..this }
    }

    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).display().to_string()
    }

    fn plan(&self, out: &str, more: &[&str]) -> Output {
        let (chain, spent, out) = (self.path("chain"), self.path("spent"), self.path(out));
        let plan = [
            "shard", "plan", "--chain", "regtest", "--blocks", &chain, "--spent", &spent,
            "--parts", "5", "--out", &out, "--json",
        ];
        assay(&[&plan, more].concat())
    }

    fn run_all(&self, results: &str) -> Output {
        let (plan, results) = (self.path("plan"), self.path(results));
        assay(&["shard", "run", &plan, "--all", "--processes", "2", "--out", &results, "--json"])
    }

    fn merge(&self, plan: &str, results: &str) -> Output {
        assay(&["shard", "merge", &self.path(plan), &self.path(results), "--json"])
    }

    /// Checks that the merged result equals that of one pass.
    fn check(&self, merged: &Value) {
        assert_eq!(merged["valid"], true);
        for key in
            ["tip_height", "tip_hash", "blocks", "txs", "inputs", "outputs", "block_bytes", "utxo"]
        {
            assert_eq!(merged[key], self.whole[key], "{key}");
        }
    }
}

const SALT: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

#[test]
fn all_parts_on_one_machine_and_again_after_an_interruption() {
    let setup = Setup::new();
    setup.check(&good(&setup.run_all("results")));
    setup.check(&good(&setup.merge("plan", "results")));
    // Only missing parts are run again, with the same salt.
    let kept = Path::new(&setup.path("results")).join("part-00002.txt");
    let before = fs::read(&kept).expect("a result");
    fs::remove_file(&kept).expect("removed");
    rejects(&setup.merge("plan", "results"), "no result of 1 parts (2)");
    let again = setup.run_all("results");
    assert!(stderr(&again).contains("5 of 6 parts have a result"), "{}", stderr(&again));
    setup.check(&good(&again));
    assert_eq!(fs::read(&kept).expect("a result"), before);
    // The file of the salt is readable by its owner only.
    let salt = Path::new(&setup.path("results")).join("salt");
    assert_eq!(fs::metadata(salt).expect("a file").permissions().mode() & 0o777, 0o600);
}

#[test]
fn hints_stand_for_the_coins_left_over() {
    let setup = Setup::new();
    let (plan, results, hints) =
        (setup.path("hinted"), setup.path("results"), setup.path("hints.dat"));
    let planned = good(&setup.plan("hinted", &["--hints", &hints]));
    assert_eq!(planned["parts"].as_array().expect("parts").len(), 5, "none of coins");
    // The file may move between planning and running.
    let moved = setup.path("moved.dat");
    fs::rename(&hints, &moved).expect("renamed");
    let run = ["shard", "run", &plan, "--all", "--processes", "2", "--out", &results, "--json"];
    rejects(&assay(&run), "hints.dat: ");
    setup.check(&good(&assay(&[&run[..], &["--hints", &moved]].concat())));
    setup.check(&good(&setup.merge("hinted", "results")));
    let explained = good(&assay(&["shard", "explain", &plan, "--json"]));
    let unspent = serde_json::json!(["coins left over by", "hints"]);
    assert!(explained["setup"].as_array().is_some_and(|setup| setup.contains(&unspent)));
    // A missing or malformed file.
    rejects(&setup.plan("other", &["--hints", &hints]), "--write-hints");
    let coins = Path::new(&setup.path("spent")).join("utxo.dat").display().to_string();
    rejects(&setup.plan("other", &["--hints", &coins]), "is no hints file");
}

#[test]
fn parts_one_by_one_as_other_machines_run_them() {
    let setup = Setup::new();
    let (plan, results) = (setup.path("plan"), setup.path("results"));
    let part = |number: usize, out: &str, salt: &str, more: &[&str]| {
        let number = number.to_string();
        let run = ["shard", "run", &plan, "--part", &number, "--out", out, "--json"];
        with_salt(&[&run, more].concat(), salt)
    };
    // The folders move before the parts run.
    fs::rename(setup.path("chain"), setup.path("chain2")).expect("renamed");
    rejects(&part(0, &results, SALT, &[]), "block files");
    let moved = ["--blocks", &setup.path("chain2")];
    for number in (0..6).rev() {
        let summary = good(&part(number, &results, SALT, &moved));
        assert_eq!(summary["rejected"], Value::Null);
    }
    setup.check(&good(&setup.merge("plan", "results")));
    // Another folder, the same bytes.
    let other = setup.path("other");
    good(&part(3, &other, SALT, &moved));
    let of = |dir: &str| fs::read(Path::new(dir).join("part-00003.txt")).expect("a result");
    assert_eq!(of(&results), of(&other));
    // Wrong salts, part numbers and plans.
    let turned: String = SALT.chars().rev().collect();
    rejects(&part(3, &results, &turned, &moved), "another result of the same part");
    rejects(&part(0, &other, "salt", &moved), "64 hexadecimal digits");
    rejects(&part(6, &other, SALT, &moved), "no part 6");
    good(&part(4, &other, &turned, &moved));
    rejects(&setup.merge("plan", "other"), "different salts");
    fs::rename(setup.path("chain2"), setup.path("chain")).expect("renamed");
    good(&setup.plan("plan2", &["--stop-height", "20", "--muhash", &"ab".repeat(32)]));
    rejects(&setup.merge("plan2", "results"), "another plan");
    rejects(&setup.plan("plan3", &["--stop-height", "20"]), "holds the coins of block");
    rejects(&setup.plan("plan3", &["--muhash", "ab"]), "give 64 hexadecimal digits");
    rejects(&setup.plan("plan3", &["--stop-height", "100000"]), "ends at height");
    // These block files have no undo data.
    let undo = format!("--chain regtest --blocks {} --core-undo", setup.path("chain"));
    let (digest, out) = ("ab".repeat(32), setup.path("plan4"));
    let undo = line(&format!("shard plan {undo} --muhash {digest} --out {out}"));
    rejects(&undo, "`assay validate`");
}

#[test]
fn explain_prints_a_plan_and_the_times_of_its_parts() {
    let setup = Setup::new();
    good(&setup.run_all("results"));
    let (plan, results) = (setup.path("plan"), setup.path("results"));
    let explain = ["shard", "explain", &plan, &results];
    let record = |arguments: &[&str]| -> Record {
        let output = assay(&[arguments, &["--json"]].concat());
        serde_json::from_value(good(&output)).expect("a record")
    };
    let all = record(&explain);
    assert!(all.has_passed(), "{}", all.text());
    let values = |metric: &str| -> Vec<f64> {
        let cells = all.cells.iter().filter(|cell| cell.metric == metric);
        cells.map(|cell| cell.value).collect()
    };
    assert_eq!(values("share").len(), 6);
    assert!((values("share of processor time").iter().sum::<f64>() - 100.0).abs() < 1e-4);
    // Six parts, and five stages.
    assert_eq!(values("time").len(), 11);
    let text = String::from_utf8(assay(&explain).stdout).expect("text");
    assert!(text.contains("slowest"), "{text}");
    // No results, then one missing result.
    assert!(record(&explain[..3]).checks.is_empty());
    fs::remove_file(Path::new(&results).join("part-00001.txt")).expect("removed");
    let without = record(&explain);
    assert!(without.notes.contains(&"part 1: missing".to_owned()), "{:?}", without.notes);
    let expected = Outcome::Failed("1 parts have no result".to_owned());
    assert_eq!(without.checks[0].outcome, expected);
}

#[test]
fn damaged_files_cannot_be_used() {
    let setup = Setup::new();
    for name in ["chain/blocks/blk00000.dat", "spent/spent-00000.dat"] {
        let file = setup.dir.path().join(name);
        let right = fs::read(&file).expect("a file");
        let mut bytes = right.clone();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0x10;
        fs::write(&file, bytes).expect("written");
        rejects(&setup.run_all(&name.replace('/', "-")), "damaged");
        fs::write(&file, right).expect("written");
    }
}

#[test]
fn a_part_ends_with_the_process_that_started_it() {
    let setup = Setup::new();
    let (plan, results) = (setup.path("plan"), setup.path("results"));
    let run = ["shard", "run", &plan, "--part", "0", "--out", &results, "--with-parent"];
    let mut child =
        command(&run).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("it starts");
    // The pipe closes without a line: there is no salt.
    std::thread::sleep(Duration::from_millis(50));
    drop(child.stdin.take());
    assert_eq!(child.wait().expect("it ends").code(), Some(2));
    // After a kill at any time, the whole run continues.
    let all = ["shard", "run", &plan, "--all", "--processes", "2", "--out", &results];
    for after_ms in [5, 20, 60] {
        let mut child =
            command(&all).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        std::thread::sleep(Duration::from_millis(after_ms));
        let _ = child.kill();
        child.wait().expect("it ends");
    }
    setup.check(&good(&setup.run_all("results")));
}
