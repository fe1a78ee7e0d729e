//! `assay run --from-snapshot`: syncs from a UTXO snapshot, on the chain whose coins at height 110 Bitcoin Core has
//! built in (its unit tests create it, `test/util/setup_common.cpp`, `TestChain100Setup`).

use std::fs;
use std::path::PathBuf;
use std::process::Output;

use assay_node::Node;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{Rpc, command, good, node_config, stderr, stop};

const BASE: u32 = 110;
const TIP: u32 = 150;
/// Time of the first block; each following block is one second later.
const TIME: u32 = 1_598_887_952;
/// P2PK script of the private key 1.
const SCRIPT: &str = "210279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798ac";
/// From Bitcoin Core's `kernel/chainparams.cpp`.
const BASE_HASH: &str = "135eec25a6fb277884e5824e7aa7d052c4868161c99a5122170b5266f86c273d";
const COINS_HASH: &str = "86e9a1205b418b16dde3a18a78c730e30137e28466bda5dbf6b33ab8fc05447c";

/// A data folder with the chain, and a snapshot of its coins.
struct Made {
    folder: TempDir,
    muhash: String,
    coins: u64,
}

impl Made {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let datadir = folder.path().join("made");
        fs::create_dir(&datadir).expect("a folder");
        let node = Node::start(&node_config(&datadir)).expect("the node starts");
        let cookie = fs::read_to_string(datadir.join("regtest/.cookie")).expect("a cookie");
        let rpc = Rpc::new(node.rpc_addresses()[0], &cookie);
        let call = |method: &str, params: Value| rpc.must(method, &params);
        let descriptor = call("getdescriptorinfo", json!([format!("raw({SCRIPT})")]));
        let file = folder.path().join("base.dat");
        for height in 1..=TIP {
            call("setmocktime", json!([TIME + height - 1]));
            call("generatetodescriptor", json!([1, descriptor["descriptor"]]));
            if height == BASE {
                let dumped = call("dumptxoutset", json!([file, "latest"]));
                assert_eq!(dumped["base_hash"], BASE_HASH, "block by block that of Core");
                assert_eq!(dumped["txoutset_hash"], COINS_HASH);
            }
        }
        let coins = call("gettxoutsetinfo", json!(["muhash"]));
        stop(node);
        let muhash = coins["muhash"].as_str().expect("text").to_owned();
        Self { folder, muhash, coins: coins["txouts"].as_u64().expect("a number") }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs the plan with a snapshot file and a results folder.
    fn run(&self, file: &str, out: &str, more: &[&str]) -> Output {
        command(&["run", "core-evolution", "--chain", "regtest", "--json", "--blocks"])
            .arg(self.path("made"))
            .arg("--from-snapshot")
            .arg(self.path(file))
            .arg("--out")
            .arg(self.path(out))
            .args(more)
            .output()
            .expect("the program starts")
    }

    /// The error of a run from a file with these bytes, which starts no target.
    fn rejection(&self, bytes: &[u8], more: &[&str]) -> String {
        fs::write(self.path("bad.dat"), bytes).expect("written");
        let output = self.run("bad.dat", "bad", more);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("bad.dat") && !self.path("bad/runs").exists(), "{said}");
        said
    }
}

#[test]
fn syncs_begin_with_a_snapshot() {
    let made = Made::new();
    let targets = ["--target", "assay", "--target", "engine", "--repeat", "2"];
    let output = made.run("base.dat", "out", &targets);
    let results = good(&output);
    let chain = &results["chain"];
    assert_eq!((&chain["height"], &chain["txs"]), (&TIP.into(), &(TIP - BASE).into()));
    let snapshot = &chain["snapshot"];
    assert_eq!((&snapshot["height"], &snapshot["coins"]), (&BASE.into(), &BASE.into()));
    assert_eq!((&snapshot["block"], &snapshot["hash"]), (&BASE_HASH.into(), &COINS_HASH.into()));
    assert_eq!(
        (&chain["utxo_muhash"], &chain["utxo_count"]),
        (&made.muhash.clone().into(), &made.coins.into())
    );

    let targets = results["targets"].as_array().expect("targets");
    assert_eq!((targets.len(), &targets[0]["name"]), (1, &"assay".into()));
    assert!(targets[0]["snapshot_load"]["load_s"].as_f64().is_some_and(|time_s| time_s > 0.0));
    for run in targets[0]["runs"].as_array().expect("runs") {
        assert_ne!(run["status"], "void", "{}", run["void_reason"]);
        let blocks = run["blocks"].as_array().expect("blocks");
        let heights: Vec<u64> =
            blocks.iter().map(|block| block["height"].as_u64().expect("a height")).collect();
        assert_eq!(heights, (u64::from(BASE) + 1..=u64::from(TIP)).collect::<Vec<_>>());
        assert_eq!(blocks[0]["phase"], "heights-111-114");
        assert!(run["preparation"]["copied_bytes"].as_u64().is_some_and(|bytes| bytes > 0));
    }
    // Targets without support are reported.
    let unable = &results["unable"];
    assert_eq!(unable[0]["name"], "engine");
    assert!(stderr(&output).contains("left out: engine cannot begin with the snapshot"));
    let report = fs::read_to_string(made.path("out/report.md")).expect("a report");
    for part in ["chain.snapshot.height", "reads block files", COINS_HASH, "stop after it"] {
        assert!(report.contains(part), "{part}\n{report}");
    }

    // The loaded snapshot and the finished run are reused.
    let mark = made.path("out").join("work").join("snapshot-assay.json");
    let before = fs::read(&mark).expect("a mark");
    let output = made.run("base.dat", "out", &[&targets_again()[..], &["--resume"]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(stderr(&output).matches("finished before").count(), 2, "{}", stderr(&output));
    assert_eq!(fs::read(&mark).expect("a mark"), before);
}

fn targets_again() -> [&'static str; 6] {
    ["--target", "assay", "--target", "engine", "--repeat", "2"]
}

#[test]
fn a_snapshot_that_does_not_fit_is_rejected_with_its_place() {
    let made = Made::new();
    let good = fs::read(made.path("base.dat")).expect("a file");
    let with = |at: usize, bytes: &[u8]| {
        let mut file = good.clone();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        file
    };
    let assay = ["--target", "assay"];
    for (bytes, place, why) in [
        (with(0, b"x"), "byte offset 0", "magic bytes"),
        (with(5, &[9]), "byte offset 5", "Version of snapshot 9"),
        (
            with(7, &[0xf9, 0xbe, 0xb4, 0xd9]),
            "byte offset 7",
            "of main, and the block files are of regtest",
        ),
        (
            with(11, &[7]),
            "byte offset 11",
            "is not in the chain of the block files up to height 150",
        ),
        (with(51 + 32, &[0xfd, 0xff, 0xff]), "byte offset 83", "Mismatch in coins count"),
        (good[..good.len() - 1].to_vec(), &format!("byte offset {}", good.len() - 1), "truncated"),
        (good[..20].to_vec(), "byte offset 20", "ends within the header"),
        (with(51, &[0xff; 32]), "byte offset", "does not follow on the one before"),
        (with(good.len() - 1, &[good[good.len() - 1] ^ 1]), "after byte offset 51", COINS_HASH),
    ] {
        let said = made.rejection(&bytes, &assay);
        assert!(said.contains(place) && said.contains(why), "{place}, {why}: {said}");
    }
    let said = made.rejection(&good, &[&assay[..], &["--stop-height", "110"]].concat());
    assert!(said.contains("at height 110, where the chain ends"), "{said}");
    let said = made.rejection(&good, &[&assay[..], &["--stop-height", "90"]].concat());
    assert!(said.contains("not in the chain of the block files up to height 90"), "{said}");
    for (more, why) in [
        (&["--target", "assay", "--by", "reindex"][..], "goes with blocks from a peer"),
        (&["--target", "engine"], "no target can begin with the snapshot"),
    ] {
        let output = made.run("base.dat", "bad", more);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(why), "{}", stderr(&output));
    }
    let output = made.run("none.dat", "bad", &assay);
    assert!(stderr(&output).contains("--from-snapshot: cannot read"), "{}", stderr(&output));
}
