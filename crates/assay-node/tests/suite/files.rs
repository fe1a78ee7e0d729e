//! Block files: location, obfuscation, checks at start, removal at run time; and UTXO set files.

use std::fs;
use std::path::{Path, PathBuf};

use assay_engine::{ChainCheck, Obfuscation, XorKey};
use assay_node::{Node, NodeError};
use serde_json::json;

use crate::node::{Fixture, config};

const KEY: [u8; 8] = [1, 2, 3, 4, 5, 6, 7, 8];

fn blocks_dir(f: &Fixture) -> PathBuf {
    f.dir.path().join("regtest/blocks")
}

fn refusal(dir: &Path, change: impl Fn(&mut assay_node::NodeConfig)) -> String {
    let mut config = config(dir);
    change(&mut config);
    Node::start(&config).map(drop).unwrap_err().to_string()
}

#[test]
fn obfuscation_is_permanent() {
    let elsewhere = tempfile::tempdir().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let mut first = config(dir.path());
    first.blocks_base = Some(elsewhere.path().to_path_buf());
    first.engine.obfuscation = Obfuscation::New(XorKey::new(KEY));
    let node = Node::start(&first).unwrap();
    let blocks = elsewhere.path().join("regtest/blocks");
    assert_eq!(fs::read(blocks.join("xor.dat")).unwrap(), KEY);
    let file = fs::read(blocks.join("blk00000.dat")).unwrap();
    assert_eq!(file[..4], [0xfa ^ 1, 0xbf ^ 2, 0xb5 ^ 3, 0xda ^ 4], "the genesis block");
    // Another node cannot use these files, whatever its data directory.
    let other = tempfile::tempdir().unwrap();
    let mut second = config(other.path());
    second.blocks_base.clone_from(&first.blocks_base);
    let started = Node::start(&second).map(drop);
    assert!(matches!(started, Err(NodeError::AlreadyRunning { path }) if path == blocks));
    node.stop_handle().stop();
    node.wait().unwrap();
    let error = refusal(dir.path(), |config| {
        config.blocks_base.clone_from(&first.blocks_base);
        config.engine.obfuscation = Obfuscation::Forbidden;
    });
    assert!(error.contains("The blocksdir XOR-key can not be disabled"), "{error}");
    // A reindex needs the key as well.
    first.engine.reindex = true;
    first.engine.obfuscation = Obfuscation::AsFound;
    let node = Node::start(&first).unwrap();
    assert_eq!(node.engine().chain().tip().height, 0);
    node.stop_handle().stop();
    node.wait().unwrap();
}

#[test]
fn checks_last_blocks_at_start_and_on_request() {
    let mut f = Fixture::new();
    f.mature();
    let spend = f.spend_coinbase(1, &[1_000_000]);
    f.mine(&[spend]);
    for level in 0..=4 {
        assert_eq!(f.call("verifychain", &json!([level, 0])), true, "{level}");
    }
    let check = |level, blocks| Some(ChainCheck { level, blocks, must_be_whole: true });
    let mut f = f.restart(|config| config.engine.check = check(4, 0));
    assert_eq!(f.call("getblockcount", &json!([])), 101);
    let undo = blocks_dir(&f).join("rev00000.dat");
    let (dir, _) = f.stop();
    let whole = fs::read(&undo).unwrap();
    let mut damaged = whole.clone();
    let last = damaged.len() - 1;
    damaged[last] ^= 1;
    fs::write(&undo, damaged).unwrap();
    let error = refusal(dir.path(), |config| config.engine.check = check(2, 1));
    assert!(error.contains("Corrupted block database detected"), "{error}");
    let mut sound = config(dir.path());
    sound.engine.check = check(1, 0);
    let node = Node::start(&sound).unwrap();
    node.stop_handle().stop();
    node.wait().unwrap();
}

#[test]
fn missing_files_are_detected() {
    let mut f = Fixture::new();
    f.mature();
    let tip = f.blocks[100].hash().to_string();
    let moved = |f: &Fixture, name: &str| {
        let path = blocks_dir(f).join(name);
        let away = path.with_extension("away");
        fs::rename(&path, &away).unwrap();
        (path, away)
    };
    let (path, away) = moved(&f, "rev00000.dat");
    let (code, text) = f.error("getblock", &json!([tip, 2]));
    assert_eq!(code, -32603);
    assert!(text.starts_with("Undo data expected but can't be read."), "{text}");
    fs::rename(away, path).unwrap();
    let (path, away) = moved(&f, "blk00000.dat");
    let missing = (-1, "Block not found on disk".to_owned());
    assert_eq!(f.error("getblock", &json!([tip])), missing);
    assert_eq!(f.error("getblockstats", &json!([1])), missing);
    fs::rename(away, path).unwrap();
    f.call("getblock", &json!([tip, 2]));
    moved(&f, "rev00000.dat");
    f.error("invalidateblock", &json!([tip]));
    let ended = f.node.wait().unwrap_err().to_string();
    let expected =
        "A fatal internal error occurred, see debug.log for details: Failed to disconnect block.";
    assert_eq!(ended, expected);
}

#[test]
fn dumps_utxo_set_at_present_and_past_heights() {
    let mut f = Fixture::new();
    f.mature();
    let at_100 = f.call("dumptxoutset", &json!(["now.dat", "latest"]));
    let info = f.call("gettxoutsetinfo", &json!([]));
    assert_eq!(at_100["coins_written"], info["txouts"]);
    assert_eq!(at_100["txoutset_hash"], info["hash_serialized_3"]);
    assert_eq!((&at_100["base_height"], &at_100["nchaintx"]), (&json!(100), &json!(101)));
    let folder = f.dir.path().join("regtest");
    assert_eq!(at_100["path"], folder.join("now.dat").to_str().unwrap());
    let spend = f.spend_coinbase(1, &[1_000_000, 2_000_000]);
    f.mine(&[spend]);
    f.mine(&[]);
    let then = f.call("dumptxoutset", &json!(["then.dat", "rollback", { "rollback": 100 }]));
    assert_eq!(then["txoutset_hash"], at_100["txoutset_hash"]);
    let read = |name: &str| fs::read(folder.join(name)).unwrap();
    assert_eq!(read("then.dat"), read("now.dat"));
    assert!(!folder.join("then.dat.incomplete").exists());
    assert_eq!(f.call("getblockcount", &json!([])), 102, "the chain is where it was");
    let stale = f.side_block(102).hash().to_string();
    for (params, code, text) in [
        (json!(["now.dat", "latest"]), -8, "already exists"),
        (json!(["x/y", "latest"]), -8, "Couldn't open file"),
        (json!(["x", "bogus"]), -8, "Invalid snapshot type \"bogus\" specified. Please"),
        (json!(["x", "latest", { "rollback": 1 }]), -8, "specified with rollback option"),
        (json!(["x", "", { "rollback": 103 }]), -8, "after current tip"),
        (json!(["x", "", { "rollback": stale }]), -5, "Block not found"),
    ] {
        let (found, error) = f.error("dumptxoutset", &params);
        assert!(found == code && error.contains(text), "{found} {error}");
    }
    assert!(!folder.join("x").exists() && !folder.join("x.incomplete").exists());
}
