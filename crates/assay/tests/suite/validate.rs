//! End-to-end tests of `assay validate` and `assay block verify`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Instant;

use serde_json::Value;
use tempfile::TempDir;

use crate::{assay, command, forge, good, json, stderr, stdout};

/// A small forged chain: temporary folder, path and output of the forge.
fn forged() -> (TempDir, String, Value) {
    let dir = tempfile::tempdir().expect("a folder");
    let chain = dir.path().join("chain").display().to_string();
    let forged = forge(&chain, "--scale 0.02");
    (dir, chain, forged)
}

fn check_same(found: &Value, forged: &Value) {
    assert_eq!(found["end"], "complete");
    assert_eq!(found["tip_hash"], forged["tip_hash"]);
    assert_eq!(found["utxo"]["muhash"], forged["utxo_muhash"]);
    assert_eq!(found["utxo"]["txouts"], forged["utxo_count"]);
    for key in ["txs", "inputs", "outputs"] {
        assert_eq!(found[key], forged[key], "{key}");
    }
}

#[test]
fn a_chain_is_validated_and_reported() {
    let (_dir, chain, forged) = forged();
    let arguments = ["validate", "--chain", "regtest", "--blocks", &chain];
    let text = assay(&arguments);
    assert_eq!(text.status.code(), Some(0), "{}", stderr(&text));
    let line = format!("utxo muhash  {}", forged["utxo_muhash"].as_str().expect("text"));
    assert!(stdout(&text).starts_with("valid\n") && stdout(&text).contains(&line));
    assert!(stderr(&text).contains("removed at the end"), "{}", stderr(&text));
    let words = stderr(&text);
    let temporary = words.split_whitespace().find(|word| word.contains("assay-validate-"));
    assert!(!Path::new(temporary.expect("the folder is named")).exists());
    let found = json(&assay(&[&arguments[..], &["--json"]].concat()));
    check_same(&found, &forged);
    assert_eq!(found["minimum_chain_work"], "0".repeat(64));
    assert_eq!(found["below_minimum_chain_work"], false);
    let tip = found["tip_height"].as_u64().expect("a number");
    // Genesis and every block at the minimum difficulty add 2 to the chain work.
    assert_eq!(found["chain_work"], format!("{:064x}", 2 * (tip + 1)));
}

#[test]
fn a_damaged_block_is_reported_and_blocks_below_it_stay() {
    let (dir, chain, _) = forged();
    let path = Path::new(&chain).join("blocks/blk00000.dat");
    let mut bytes = fs::read(&path).expect("the file");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    fs::write(&path, bytes).expect("written");
    let datadir = dir.path().join("coins").display().to_string();
    let arguments =
        ["validate", "--chain", "regtest", "--blocks", &chain, "--datadir", &datadir, "--json"];
    let output = assay(&arguments);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let report = json(&output);
    assert_eq!(report["end"], "invalid");
    let invalid = &report["invalid"];
    let place = &invalid["place"];
    let (offset, size) = (place["offset"].as_u64(), place["bytes"].as_u64());
    let (offset, size) = (offset.expect("a number"), size.expect("a number"));
    assert!((offset..offset + size).contains(&(middle as u64)), "{report}");
    assert_eq!(place["file"].as_str(), path.to_str());
    let text = invalid["text"].as_str().expect("text");
    let height = invalid["height"].as_u64().expect("a number");
    assert_eq!(invalid["damaged"], true);
    assert!(text.starts_with("damaged block "), "{text}");
    for part in [&format!(" at height {height}: ")[..], " offset ", "; copy that file again"] {
        assert!(text.contains(part), "{text}");
    }
    assert!(stderr(&output).contains(text));
    assert_eq!(report["tip_height"].as_u64(), Some(height - 1));
    // Validated blocks are kept.
    let again = json(&assay(&arguments));
    assert_eq!(again["start_height"].as_u64(), Some(height - 1));
    assert_eq!(again["utxo"], report["utxo"]);
}

#[test]
fn the_next_best_branch_is_taken_when_a_block_of_the_best_is_damaged() {
    let (dir, chain, _) = forged();
    let other = dir.path().join("other").display().to_string();
    let valid = forge(&other, "--scale 0.02 --seed 7 --stop-height 70");
    // Two chains that fork at genesis; the longer one has a wrong byte in its 20th block.
    let blocks = dir.path().join("blocks");
    fs::create_dir(&blocks).expect("a folder");
    let read =
        |chain: &str| fs::read(Path::new(chain).join("blocks/blk00000.dat")).expect("a file");
    let (sound, damaged) = (read(&chain), dir.path().join("blocks/blk00000.dat"));
    let magic = [0xfa, 0xbf, 0xb5, 0xda];
    let mut records = (0..sound.len()).filter(|at| sound[*at..].starts_with(&magic));
    let record = records.nth(19).expect("a record");
    let mut bytes = sound.clone();
    // After framing and header, in the coinbase.
    bytes[record + 8 + 80 + 60] ^= 4;
    fs::write(&damaged, &bytes).expect("written");
    fs::write(blocks.join("blk00001.dat"), read(&other)).expect("written");
    let blocks = blocks.display().to_string();
    let datadir = dir.path().join("coins").display().to_string();
    let arguments = ["validate", "--chain", "regtest", "--blocks", &blocks, "--datadir", &datadir];

    let output = assay(&[&arguments[..], &["--json"]].concat());
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let report = json(&output);
    assert_eq!(report["end"], "fallback", "{report}");
    assert_eq!(report["tip_hash"], valid["tip_hash"]);
    assert_eq!(report["utxo"]["muhash"], valid["utxo_muhash"]);
    assert_eq!(report["below_minimum_chain_work"], false);
    let invalid = &report["invalid_blocks"][0];
    assert_eq!((&report["invalid"], &invalid["damaged"]), (invalid, &Value::Bool(true)));
    assert_eq!(invalid["place"]["file"].as_str(), damaged.to_str());
    let height = invalid["height"].as_u64().expect("a number");
    assert_eq!(height, 20, "{invalid}");
    assert!(stderr(&output).contains(invalid["text"].as_str().expect("text")));
    let text = assay(&arguments);
    assert_eq!(text.status.code(), Some(1));
    let expected =
        "valid up to height 70 on the branch with the most work of those without an invalid block";
    assert!(stdout(&text).contains(expected), "{}", stdout(&text));

    // An undamaged copy of the block: validation in the same folder disconnects to genesis and
    // connects the other chain.
    fs::write(Path::new(&blocks).join("blk00002.dat"), &sound).expect("written");
    let report = good(&assay(&[&arguments[..], &["--json"]].concat()));
    let whole = json(&assay(&["validate", "--chain", "regtest", "--blocks", &chain, "--json"]));
    assert_eq!((&report["end"], &report["utxo"]), (&whole["end"], &whole["utxo"]));
    assert_eq!((report["start_height"].as_u64(), &report["invalid"]), (Some(70), &Value::Null));
}

#[test]
fn stopping_and_killing_lose_nothing() {
    let (dir, chain, forged) = forged();
    let datadir = dir.path().join("coins").display().to_string();
    let base = format!(
        "validate --chain regtest --blocks {chain} --datadir {datadir} --db-cache 1 --json"
    );
    let base: Vec<&str> = base.split(' ').collect();
    let stopped = good(&assay(&[&base[..], &["--stop-height", "60"]].concat()));
    assert_eq!(
        (stopped["end"].as_str(), stopped["tip_height"].as_u64()),
        (Some("stop-height"), Some(60))
    );
    let start = Instant::now();
    let whole = assay(&[&base[..5], &["--json"]].concat());
    assert_eq!(whole.status.code(), Some(0), "{}", stderr(&whole));
    // Kills at many times during a run of about this length.
    let takes = start.elapsed();
    for kill in 0..12 {
        let mut child =
            command(&base).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        let deadline = Instant::now() + takes.mul_f64(f64::from(kill) / 12.0);
        while Instant::now() < deadline && child.try_wait().expect("a status").is_none() {
            std::thread::yield_now();
        }
        // SIGKILL on Unix.
        child.kill().expect("killed");
        child.wait().expect("a status");
    }
    let last = good(&assay(&base));
    assert!(last["start_height"].as_u64() >= Some(60));
    check_same(&last, &forged);
}

/// Real blocks with their spent outputs, if the shared data is present.
fn real_block() -> Option<(PathBuf, PathBuf)> {
    let root = assay_testkit::data::folder()?;
    let path = |name: &str| root.join("blocks").join(name);
    let (block, prevouts) = (path("testnet3-1087400.blk"), path("testnet3-1087400.prevouts"));
    (block.exists() && prevouts.exists()).then_some((block, prevouts))
}

#[test]
fn a_real_block_is_verified() {
    let Some((block, prevouts)) = real_block() else {
        println!("skipped: no real blocks in the test data");
        return;
    };
    let dir = tempfile::tempdir().expect("a folder");
    let verify = |block: &Path, prevouts: &Path, more: &[&str]| {
        let (block, prevouts) = (block.to_str().expect("text"), prevouts.to_str().expect("text"));
        let base = ["block", "verify", block, "--prevouts", prevouts, "--chain", "test"];
        assay(&[&base[..], &["--height", "1087400"], more].concat())
    };
    let valid = verify(&block, &prevouts, &["--json"]);
    let report = good(&valid);
    assert_eq!((&report["valid"], report["inputs"].as_u64()), (&Value::Bool(true), Some(205)));
    assert_eq!(report["signature_checks"].as_u64(), Some(270));
    let text = stdout(&verify(&block, &prevouts, &[]));
    assert!(text.contains("p2sh-p2wpkh           2           2\n"), "{text}");
    assert!(text.contains("not checked, because it takes the chain:"), "{text}");

    // A script that no longer has the hash of the key.
    let mut spent = fs::read(&prevouts).expect("the file");
    spent[12 + 5] ^= 1;
    let changed = dir.path().join("changed");
    fs::write(&changed, &spent).expect("written");
    let invalid = verify(&block, &changed, &["--json"]);
    assert_eq!(invalid.status.code(), Some(1), "{}", stderr(&invalid));
    let reject = &json(&invalid)["reject"];
    let reason = reject["reason"].as_str().expect("text");
    assert!(reason.starts_with("block-script-verify-flag-failed ("), "{reason}");
    assert_eq!((reject["tx_index"].as_u64(), reject["input"].as_u64()), (Some(1), Some(0)));
    assert!(!reject["evidence"]["script_pubkey"].as_str().expect("text").is_empty());

    for (name, bytes, message) in [
        ("short", &spent[..spent.len() - 1], "it ends too early: the block spends 205 outputs"),
        ("long", &[&spent[..], &[0]].concat(), "1 bytes follow"),
    ] {
        let path = dir.path().join(name);
        fs::write(&path, bytes).expect("written");
        let refused = verify(&block, &path, &[]);
        assert_eq!((refused.status.code(), stdout(&refused).as_str()), (Some(2), ""));
        assert!(stderr(&refused).contains(message), "{}", stderr(&refused));
    }
    assert_eq!(verify(&prevouts, &prevouts, &[]).status.code(), Some(2));
    assert_eq!(verify(&dir.path().join("none"), &prevouts, &[]).status.code(), Some(2));
}
