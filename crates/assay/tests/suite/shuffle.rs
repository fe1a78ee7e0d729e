//! `assay shard scatter`, `join` and `gather` as a user meets them: killed, resumed, and within their memory.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_assay"));
    command.args(arguments);
    command
}

fn assay(arguments: &[&str]) -> Output {
    command(arguments).output().expect("the program starts")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn good(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{}", stderr(output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn rejects(output: &Output, words: &str) {
    assert_eq!(output.status.code(), Some(2), "{}", stderr(output));
    assert!(stderr(output).contains(words), "{}", stderr(output));
}

struct Setup {
    dir: TempDir,
    chain: String,
    work: String,
    out: String,
}

impl Setup {
    fn new(forge: &[&str]) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let path = |name: &str| dir.path().join(name).display().to_string();
        let (chain, work, out) = (path("chain"), path("work"), path("out"));
        let all = ["chain", "forge", "bitcoin-scaling", "--out", &chain];
        assert!(assay(&[&all, forge].concat()).status.success());
        Self { dir, chain, work, out }
    }

    /// What one pass says, and where it wrote the coins.
    fn whole(&self) -> (Value, String) {
        let spent = self.dir.path().join("spent").display().to_string();
        let validate = ["validate", "--chain", "regtest", "--blocks", &self.chain];
        let whole = good(&assay(&[&validate[..], &["--write-spent", &spent, "--json"]].concat()));
        (whole, spent)
    }

    fn scatter(&self) -> Vec<&str> {
        let (work, chain) = (&self.work, &self.chain);
        vec![
            "shard", "scatter", work, "--blocks", chain, "--chain", "regtest", "--parts", "9",
            "--json",
        ]
    }

    fn join(&self) -> Vec<&str> {
        vec!["shard", "join", &self.work, "--json"]
    }

    fn gather(&self) -> Vec<&str> {
        vec!["shard", "gather", &self.work, "--out", &self.out, "--json"]
    }
}

fn same(a: &str, b: &str, name: &str) {
    let read = |dir: &str| fs::read(Path::new(dir).join(name)).expect("a file");
    assert!(read(a) == read(b), "{name} differs");
}

/// Names in a folder that only a running process may have there.
fn unfinished(dir: &str) -> usize {
    let names = fs::read_dir(dir).expect("a folder").map(|entry| entry.expect("a name").path());
    names.filter(|path| path.extension().is_some_and(|extension| extension == "new")).count()
}

#[test]
fn killed_at_any_time_and_resumed_it_gives_what_one_pass_writes() {
    let setup = Setup::new(&["--scale", "0.02"]);
    let (whole, spent) = setup.whole();
    for (step, folder) in
        [(setup.scatter(), &setup.work), (setup.join(), &setup.work), (setup.gather(), &setup.out)]
    {
        for after_ms in [3, 12, 25, 40] {
            let mut child = command(&step)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("it starts");
            std::thread::sleep(Duration::from_millis(after_ms));
            let _ = child.kill();
            child.wait().expect("it ends");
        }
        good(&assay(&step));
        assert_eq!(unfinished(folder), 0);
        // Nothing is left to do.
        assert_eq!(good(&assay(&step))["units_done"], 0);
    }
    same(&setup.out, &spent, "utxo.dat");
    let (plan, results) = (
        setup.dir.path().join("plan").display().to_string(),
        setup.dir.path().join("results").display().to_string(),
    );
    let (chain, out) = (&setup.chain, &setup.out);
    let flags = ["--chain", "regtest", "--blocks", chain, "--spent", out, "--parts", "5"];
    good(&assay(&[&["shard", "plan", "--out", &plan, "--json"][..], &flags].concat()));
    let run = ["shard", "run", &plan, "--all", "--processes", "2", "--out", &results, "--json"];
    let merged = good(&assay(&run));
    assert_eq!(merged["valid"], true);
    for key in ["tip_height", "tip_hash", "blocks", "txs", "inputs", "outputs", "utxo"] {
        assert_eq!(merged[key], whole[key], "{key}");
    }
    explained(&plan, &results);
}

/// `explain` over a plan and its results.
fn explained(plan: &str, results: &str) {
    let all = good(&assay(&["shard", "explain", plan, results, "--json"]));
    let run = &all["run"];
    assert_eq!(run["verdict"], "valid");
    assert_eq!(run["timed_parts"], 6);
    let simulated = run["simulated"].as_array().expect("machines");
    assert_eq!(simulated.len(), 4);
    assert!((simulated[0]["speed_up"].as_f64().expect("a number") - 1.0).abs() < 0.5);
    assert!(simulated.iter().all(|run| !run["limit"].as_str().expect("text").is_empty()));
    let shares = run["stages"].as_array().expect("stages").iter();
    let sum: f64 = shares.map(|stage| stage["share"].as_f64().expect("a number")).sum();
    assert!((sum - 1.0).abs() < 1e-6, "{run}");
    let text = assay(&["shard", "explain", plan, results]);
    let text = String::from_utf8(text.stdout).expect("text");
    assert!(text.contains("slowest") && text.contains("simulated machines"), "{text}");
    // Without results, and without one of them.
    let alone = good(&assay(&["shard", "explain", plan, "--json"]));
    assert_eq!(alone["run"], Value::Null);
    fs::remove_file(Path::new(results).join("part-00001.txt")).expect("removed");
    let without = good(&assay(&["shard", "explain", plan, results, "--json"]));
    assert_eq!(without["parts"][1]["result"], "missing");
    assert_eq!(without["run"]["verdict"], "1 parts have no result");
    rejects(&assay(&["shard", "explain", plan, "--machines", "0"]), "--machines");
}

/// A chain whose outputs take several times the memory that is allowed.
#[cfg(target_os = "linux")]
#[test]
fn memory_stays_within_its_limit() {
    let setup = Setup::new(&["--scale", "2", "--stop-height", "112", "--distinct-keys"]);
    let limits = ["--par", "1", "--memory", "40"];
    let scattered = good(&assay(&[&setup.scatter()[..], &limits[..]].concat()));
    let outputs = scattered["outputs"].as_u64().expect("a number");
    assert!(outputs > 200_000, "{outputs}");
    let joined = good(&assay(&[&setup.join()[..], &limits[..]].concat()));
    let gathered = good(&assay(&[&setup.gather()[..], &limits[..]].concat()));
    assert_eq!(gathered["left"], joined["left"]);
    for report in [scattered, joined, gathered] {
        let peak = report["peak_memory_bytes"].as_u64().expect("a number");
        assert!(peak <= 40 << 20, "{report}");
    }
}

#[test]
fn what_cannot_be_is_said() {
    let setup = Setup::new(&["--scale", "0.01", "--stop-height", "112"]);
    rejects(&assay(&setup.join()), "holds no shuffle");
    rejects(&assay(&["shard", "scatter", &setup.work]), "give --blocks");
    let scatter = setup.scatter();
    rejects(&assay(&[&scatter[..], &["--memory", "1", "--par", "2"]].concat()), "give 2");
    good(&assay(&[&scatter[..], &["--only", "3"]].concat()));
    rejects(&assay(&[&scatter[..], &["--only", "9"]].concat()), "the first is 0");
    rejects(&assay(&[&scatter[..], &["--stop-height", "7"]].concat()), "give another folder");
    let other: Vec<&str> =
        scatter.iter().map(|word| if *word == "regtest" { "signet" } else { *word }).collect();
    rejects(&assay(&other), "is a shuffle of regtest");
    rejects(&assay(&setup.join()), "scatter all ranges before");
    let done = good(&assay(&scatter));
    assert_eq!(done["units_done"], 8);
    rejects(&assay(&setup.gather()), "join all partitions before");
    good(&assay(&setup.join()));
    good(&assay(&setup.gather()));
    // Another shuffle does not go on with these coins.
    let work = setup.dir.path().join("work2").display().to_string();
    for step in [scatter, setup.join()] {
        let step: Vec<&str> =
            step.iter().map(|word| if *word == setup.work { &*work } else { *word }).collect();
        good(&assay(&step));
    }
    let gather = ["shard", "gather", &work, "--out", &setup.out];
    rejects(&assay(&gather), "coins of another shuffle");
    // A damaged file is named.
    let file = Path::new(&work).join("scatter-00002.bin");
    let mut bytes = fs::read(&file).expect("a file");
    bytes[100] ^= 1;
    fs::write(&file, bytes).expect("written");
    // Whichever partition the byte belongs to is joined again: outpoints are placed by a random key.
    for entry in fs::read_dir(&work).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("join-")) {
            fs::remove_file(&path).expect("removed");
        }
    }
    let again = [
        assay(&["shard", "join", &work]),
        assay(&["shard", "gather", &work, "--out", &format!("{work}-out")]),
    ];
    let named = again.iter().any(|output| {
        output.status.code() == Some(2) && stderr(output).contains("scatter-00002.bin: ")
    });
    assert!(named, "{}{}", stderr(&again[0]), stderr(&again[1]));
}
