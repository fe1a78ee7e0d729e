//! The lab is killed during a plan: finished runs are kept, the interrupted run is repeated, and no other.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

/// Longest wait for any condition, on busy machines too.
const PATIENCE: Duration = Duration::from_mins(10);

fn command(run: &[&str], out: &Path, more: &[&str]) -> Command {
    let mut command = crate::command(run);
    command
        .arg("--out")
        .arg(out)
        .args(more)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// Text of each finished run in the journal, by file name.
fn finished(out: &Path) -> BTreeMap<String, String> {
    let Ok(entries) = fs::read_dir(out.join("runs")) else { return BTreeMap::new() };
    let paths = entries.flatten().map(|entry| entry.path());
    paths
        .filter(|path| path.extension().is_some_and(|ext| ext == "json"))
        .filter_map(|path| {
            let name = path.file_stem()?.to_str()?.to_owned();
            Some((name, fs::read_to_string(path).ok()?))
        })
        .collect()
}

/// Kills the lab once a condition is met; returns the value of the condition.
fn kill_when<T>(laboratory: &mut Child, what: &str, met: impl Fn() -> Option<T>) -> T {
    let begin = Instant::now();
    let found = loop {
        if let Some(found) = met() {
            break found;
        }
        let ended = laboratory.try_wait().expect("a child");
        assert_eq!(ended, None, "it ended before it could be killed");
        assert!(begin.elapsed() < PATIENCE, "not met: {what}");
        sleep(Duration::from_millis(2));
    };
    laboratory.kill().expect("SIGKILL");
    laboratory.wait().expect("it is dead");
    found
}

/// Syncs from our node, slowed down so that the test can interrupt one.
const SYNCS: &str = r#"
format = 1
name = "slow-syncs"
title = "Syncs"
summary = "Two targets, two rounds."

[chain]
recipe = "bitcoin-scaling"
seed = 3
scale = 0.02
variant = "intended"
distinct_keys = false

[feed]
by = "peer"
seen = [0.0]
block_timeout_s = 600

[sync]
rate_mb_s = RATE

[runs]
targets = ["assay", "engine"]
repeat = 2
warmup = 0
PHASES"#;

const PHASES: [&str; 6] = ["maturity", "fan-out", "steady-1", "fan-in", "steady-2", "steady-3"];

/// Height of the latest tip in the log of a node.
fn height(log: &Path) -> Option<u32> {
    let text = fs::read_to_string(log).ok()?;
    let line = text.lines().rfind(|line| line.contains("UpdateTip: new best="))?;
    let (_, rest) = line.split_once(" height=")?;
    rest.split(' ').next()?.parse().ok()
}

#[test]
fn a_laboratory_killed_during_a_sync_goes_on_where_it_was() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path().canonicalize().expect("a path");
    let (out, file) = (folder.join("out"), folder.join("syncs.toml"));
    let phases = PHASES.map(|name| format!("\n[[phase]]\nname = \"{name}\"\ntitle = \"{name}\"\n"));
    let text = SYNCS.replace("PHASES", &phases.concat()).replace("RATE", "1.0");
    fs::write(&file, text).expect("writable");
    let file = file.display().to_string();
    let run = ["run", &file];
    let mut laboratory = command(&run, &out, &[]).spawn().expect("the program starts");
    // The first round finishes both targets; the second is in reverse order, so the node's sync is its last run.
    let met = kill_when(&mut laboratory, "a sync under way", || {
        let done = finished(&out);
        let log = out.join("work/assay-0-2/regtest/debug.log");
        height(&log).filter(|_| !done.contains_key("assay-0-2"))
    });
    // The node and its block server still run, and use their folders.
    let before = finished(&out);
    let names: Vec<&str> = before.keys().map(String::as_str).collect();
    assert_eq!(names, ["assay-0-1", "engine-0-1", "engine-0-2"]);
    assert!(!out.join("report.html").exists());
    let chain = modified(&out.join("chain/ledger.jsonl"));
    let source = modified(&out.join("source/filled"));

    let output = command(&run, &out, &["--resume", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .output()
        .expect("the program starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    for name in ["assay-0-2 (process", "assay-0-2.source (process"] {
        assert!(said.contains(&format!("ended what a killed run had left: {name}")), "{said}");
    }
    for name in &names {
        assert!(said.contains(&format!("run {name}: finished before")), "{said}");
    }
    assert!(said.contains("run 4/4: assay-0-2"), "{said}");
    let after = finished(&out);
    assert_eq!(after.len(), 4);
    for (name, text) in &before {
        assert_eq!(after.get(name), Some(text), "{name} was not made again");
    }
    // Neither the chain nor the server's data folder was created again.
    assert_eq!(modified(&out.join("chain/ledger.jsonl")), chain);
    assert_eq!(modified(&out.join("source/filled")), source);
    assert!(!out.join("runs.1").exists(), "nothing was moved aside");
    let results: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let runs = || {
        let targets = results["targets"].as_array().expect("targets").iter();
        targets.flat_map(|target| target["runs"].as_array().expect("runs"))
    };
    assert_eq!(runs().count(), 4);
    let tip = &results["chain"]["height"];
    let last = runs().find(|run| run["id"] == "assay-0-2").expect("the run");
    let blocks = last["blocks"].as_array().expect("blocks");
    // The run starts from an empty folder, without data of the killed one.
    assert_eq!((&blocks[0]["height"], &blocks[blocks.len() - 1]["height"]), (&1.into(), tip));
    assert!(u64::from(met) < tip.as_u64().expect("a height"), "the kill was in mid-sync: {met}");
    for run in runs() {
        assert_ne!(run["status"], "void", "{}", run["void_reason"]);
        assert_eq!(run["tip"], results["chain"]["tip"]);
        assert_eq!(run["utxo_muhash"], results["chain"]["utxo_muhash"]);
    }
    assert_eq!(fs::read_dir(out.join("work")).map_or(0, Iterator::count), 0, "no folder is left");
}

fn modified(path: &Path) -> std::time::SystemTime {
    let metadata = fs::metadata(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    metadata.modified().expect("the system reports it")
}
