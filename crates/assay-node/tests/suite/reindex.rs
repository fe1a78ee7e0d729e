//! Reindex from block files, import of block files, and commands on events.

use std::fs;
use std::thread;
use std::time::Duration;

use assay_node::Node;
use serde_json::json;

use crate::node::{Fixture, config};

fn stored(f: &Fixture, name: &str) -> std::path::PathBuf {
    f.dir.path().join("regtest/blocks").join(name)
}

#[test]
fn reindex_finds_blocks_in_any_order() {
    let mut f = Fixture::new();
    f.mature();
    let tip = f.blocks.last().unwrap().hash().to_string();
    let path = stored(&f, "blk00000.dat");
    let bytes = fs::metadata(&path).unwrap().len();
    let mut f = f.restart(|config| config.engine.reindex = true);
    assert_eq!(f.tip(), tip);
    assert!(!stored(&f, "reindexing").exists());
    assert_eq!(fs::metadata(&path).unwrap().len(), bytes, "nothing was written twice");

    // Swaps two blocks, with garbage and zeros around, as possible in Core's files.
    let file = fs::read(&path).unwrap();
    let length =
        |at: usize| 8 + u32::from_le_bytes(file[at + 4..at + 8].try_into().unwrap()) as usize;
    // The genesis block is the first, and known.
    let second = length(0) + length(length(0));
    let third = second + length(second);
    let mut swapped = vec![0xfa, 0xbf, 7];
    swapped.extend_from_slice(&file[second..third]);
    swapped.extend_from_slice(&[0; 99]);
    swapped.extend_from_slice(&file[..second]);
    swapped.extend_from_slice(&file[third..]);
    swapped.extend_from_slice(&[0; 5000]);
    let mut f = f.restart(|config| {
        fs::write(&path, &swapped).unwrap();
        config.engine.reindex = true;
    });
    assert_eq!(f.tip(), tip);
    f.mine(&[]);
    f.mine(&[]);
    let tip = f.blocks.last().unwrap().hash().to_string();
    let mut f = f.restart(|_| ());
    assert_eq!(f.tip(), tip);
    assert_eq!(f.call("verifychain", &json!([4, 0])), true);
}

#[test]
fn interrupted_reindex_resumes() {
    let mut f = Fixture::new();
    f.mature();
    let tip = f.blocks.last().unwrap().hash().to_string();
    for (mark, is_whole) in [("reindex.begun", true), ("reindexing", false), ("reindexing", true)] {
        let path = stored(&f, mark);
        f = f.restart(|_| {
            fs::write(&path, []).unwrap();
            if !is_whole {
                // Simulates a removed index before a reindex.
                fs::remove_dir_all(path.with_file_name("index")).unwrap();
                fs::remove_dir_all(path.with_file_name("../chainstate")).unwrap();
            }
        });
        assert_eq!(f.tip(), tip);
        assert!(!path.exists());
    }
}

#[test]
fn imports_block_files_and_skips_missing_ones() {
    let mut f = Fixture::new();
    f.mature();
    let file = stored(&f, "blk00000.dat");
    let g = Fixture::new();
    let mut g = g.restart(|config| {
        config.load_blocks = vec!["/nowhere/at/all".into(), file.clone()];
    });
    assert_eq!(g.call("getblockcount", &json!([])), 100);
    let tip = f.tip();
    assert_eq!(g.tip(), tip);
}

#[test]
fn runs_commands_and_stops_at_height() {
    let f = Fixture::new();
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let mut f = f.restart(|config| {
        config.notify.startup = Some(format!("touch {}", path("started").display()));
        config.notify.block = Some(format!("touch {}/%s", dir.path().display()));
        config.notify.shutdown = vec![format!("touch {}", path("stopped").display())];
        config.engine.tip_age_max_s = 1 << 40;
    });
    let wait = |name: &str| {
        while !path(name).exists() {
            thread::sleep(Duration::from_millis(2));
        }
    };
    wait("started");
    for _ in 0..3 {
        f.mine(&[]);
        wait(&f.blocks.last().unwrap().hash().to_string());
    }
    assert!(!path("stopped").exists());
    let (folder, _) = f.stop();
    assert!(path("stopped").exists(), "the node waits for it");
    let mut config = config(folder.path());
    config.stop_at_height = Some(3);
    Node::start(&config).unwrap().wait().unwrap();
}
