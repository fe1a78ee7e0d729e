//! `assay run --blocks`, `assay chain ledger` and `assay chain serve` on block files as Bitcoin
//! Core leaves them, from a forged chain.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use assay_consensus::params::ChainParams;
use assay_hash::{sha256, sha256d};
use serde_json::Value;
use tempfile::TempDir;

use crate::{forge, good, line, stderr};

const KEY: [u8; 8] = [0x11, 0x92, 0, 0x4f, 0xe7, 0x3c, 0xaa, 0x01];
const STALE: usize = 5;

/// Blocks of a forged chain from height 1, with the output of the forge.
fn forged(folder: &Path, flags: &str) -> (Vec<Vec<u8>>, Value) {
    let chain = folder.join("forged").display().to_string();
    let _ = fs::remove_dir_all(&chain);
    let report = forge(&chain, &format!("--scale 0.02 {flags}"));
    let file = fs::read(Path::new(&chain).join("blocks/blk00000.dat")).expect("a file");
    let (mut blocks, mut rest) = (Vec::new(), &file[..]);
    while let Some((head, behind)) = rest.split_first_chunk::<8>() {
        let size = u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize;
        let (block, next) = behind.split_at(size);
        blocks.push(block.to_vec());
        rest = next;
    }
    (blocks, report)
}

/// A data folder of Bitcoin Core: two obfuscated files, blocks out of order, a stale branch, preallocated space at the end.
struct Core {
    folder: TempDir,
    blocks: Vec<Vec<u8>>,
    forged: Value,
}

impl Core {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (stale, _) = forged(folder.path(), &format!("--seed 7 --stop-height {STALE}"));
        let (blocks, forged) = forged(folder.path(), "");
        let core = Self { folder, blocks, forged };
        let mut order: Vec<&[u8]> = core.blocks.iter().chain(&stale).map(Vec::as_slice).collect();
        for window in order.chunks_mut(7) {
            window.reverse();
        }
        core.write(&order);
        core
    }

    fn datadir(&self) -> String {
        self.folder.path().join("datadir").display().to_string()
    }

    fn file(&self, number: u32) -> PathBuf {
        self.folder.path().join(format!("datadir/regtest/blocks/blk{number:05}.dat"))
    }

    fn write(&self, order: &[&[u8]]) {
        let genesis = ChainParams::by_name("regtest").expect("known").genesis_block();
        let half = order.len() / 2;
        let first = std::iter::once(&genesis[..]).chain(order[..half].iter().copied());
        let files = [first.collect::<Vec<_>>(), order[half..].to_vec()];
        fs::create_dir_all(self.file(0).parent().expect("a folder")).expect("a folder");
        fs::write(self.file(0).with_file_name("xor.dat"), KEY).expect("written");
        for (number, blocks) in (0..).zip(files) {
            let mut bytes = Vec::new();
            for block in blocks {
                bytes.extend([0xfa, 0xbf, 0xb5, 0xda]);
                bytes.extend((block.len() as u32).to_le_bytes());
                bytes.extend(block);
            }
            let key = KEY.iter().cycle();
            bytes.iter_mut().zip(key).for_each(|(byte, key)| *byte ^= key);
            // Core preallocates space, which is not obfuscated.
            bytes.extend([0; 5000]);
            fs::write(self.file(number), bytes).expect("written");
        }
    }

    fn ledger(&self, more: &[&str]) -> Output {
        let (datadir, out) = (self.datadir(), self.folder.path().join("ledger"));
        let _ = fs::remove_dir_all(&out);
        let out = out.display();
        let more = more.join(" ");
        line(&format!("chain ledger --blocks {datadir} --chain regtest --out {out} --json {more}"))
    }

    fn run(&self, out: &Path, more: &[&str]) -> Output {
        let (datadir, out, more) = (self.datadir(), out.display(), more.join(" "));
        let blocks = format!("--blocks {datadir} --chain regtest");
        line(&format!("run core-evolution {blocks} --out {out} --json {more}"))
    }

    fn contents(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let blocks = self.file(0);
        let entries = fs::read_dir(blocks.parent().expect("a folder")).expect("readable").flatten();
        let read = |path: PathBuf| (path.clone(), fs::read(path).expect("readable"));
        entries.map(|entry| read(entry.path())).collect()
    }

    /// Hash of the block at a height, as RPC prints it.
    fn hash(&self, height: usize) -> String {
        let mut hash = sha256d(&self.blocks[height - 1][..80]);
        hash.reverse();
        faster_hex::hex_string(&hash)
    }
}

fn text(value: &Value) -> &str {
    value.as_str().expect("text")
}

/// Compared values of each target's only run.
fn checks(results: &Value) -> Vec<(String, BTreeMap<String, String>)> {
    let of_run = |run: &Value| {
        assert_eq!(run["status"], "valid", "{}", run["void_reason"]);
        let checks = run["checks"].as_array().expect("a list");
        let found = |check: &Value| {
            assert_eq!(check["expected"], check["found"], "{}", run["id"]);
            (text(&check["what"]).to_owned(), text(&check["found"]).to_owned())
        };
        checks.iter().map(found).collect()
    };
    let targets = results["targets"].as_array().expect("a list");
    targets
        .iter()
        .map(|target| (text(&target["name"]).to_owned(), of_run(&target["runs"][0])))
        .collect()
}

#[test]
fn a_plan_runs_on_the_files_of_another_program() {
    let core = Core::new();
    let before = core.contents();
    let out = core.folder.path().join("out");
    let results = good(&core.run(&out, &["--target", "assay", "--target", "engine"]));
    assert_eq!(core.contents(), before, "nothing is ever written there");
    let chain = &results["chain"];
    let files = &chain["files"];
    let height = core.blocks.len();
    assert_eq!(chain["height"], height);
    assert_eq!(text(&chain["tip"]), core.hash(height));
    let stale = [&files["stale"], &files["count"]];
    assert_eq!(stale, [&Value::from(STALE), &Value::from(2)]);
    assert_eq!(
        text(&files["path"]),
        core.file(0)
            .parent()
            .expect("a folder")
            .canonicalize()
            .expect("there")
            .to_str()
            .expect("text")
    );
    let genesis = ChainParams::by_name("regtest").expect("known").genesis_block();
    let mut headers = genesis[..80].to_vec();
    core.blocks.iter().for_each(|block| headers.extend(&block[..80]));
    let digest = faster_hex::hex_string(&sha256(&headers));
    assert_eq!(text(&files["headers_sha256"]), digest);
    // Only the forge knows the coins; its ledger was not passed on.
    assert_eq!(chain["utxo_muhash"], core.forged["utxo_muhash"]);
    assert_eq!(chain["utxo_count"], core.forged["utxo_count"]);
    assert_eq!(chain["coins_reported_by"], "assay-0");
    assert_eq!(chain["txs"], core.forged["txs"]);
    let checks = checks(&results);
    assert_eq!(
        checks.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
        ["assay", "engine"]
    );
    for (name, checks) in checks {
        assert_eq!(checks["UTXO MuHash"], text(&core.forged["utxo_muhash"]), "{name}");
    }
    let report = fs::read_to_string(out.join("report.md")).expect("a report");
    for part in [&digest[..], "chain.files.best_height", "chain.coins_reported_by"] {
        assert!(report.contains(part), "{part}");
    }

    // Repeats up to a lower height, with the files in the node's data folder.
    let stop = height - 3;
    let at = format!("--stop-height {stop} --by reindex --target engine --target assay");
    let results = good(&core.run(&core.folder.path().join("reindex"), &[&at]));
    assert_eq!(core.contents(), before);
    assert_eq!(results["chain"]["height"], stop);
    assert_eq!(text(&results["chain"]["tip"]), core.hash(stop));
    assert_eq!(results["chain"]["files"]["best_height"], height);
    assert_eq!(self::checks(&results).len(), 2);
}

#[test]
fn a_ledger_is_kept_while_the_files_are_the_same() {
    let core = Core::new();
    let first = good(&core.ledger(&[]));
    assert_eq!(
        (&first["kept"], &first["height"]),
        (&Value::from(false), &Value::from(core.blocks.len()))
    );
    let out = core.folder.path().join("ledger").display().to_string();
    let datadir = core.datadir();
    let ledger = |blocks: &str, more: &str| {
        good(&line(&format!(
            "chain ledger --blocks {blocks} --chain regtest --out {out} --json {more}"
        )))
    };
    assert_eq!(ledger(&datadir, "")["kept"], true);
    let shorter = ledger(&datadir, "--stop-height 9");
    assert_eq!((&shorter["kept"], &shorter["height"]), (&Value::from(false), &Value::from(9)));
    // A single file is a chain too, up to the first missing block.
    let one = ledger(&core.file(0).display().to_string(), "--stop-height 9");
    assert_eq!(one["tip"], shorter["tip"]);
}

/// The error, without the path of the folder.
fn error(core: &Core, output: &Output) -> String {
    assert_eq!(output.status.code(), Some(2), "{}", stderr(output));
    assert!(!core.folder.path().join("ledger/ledger.jsonl").exists());
    let folder = core.folder.path();
    let real = folder.canonicalize().expect("there").display().to_string();
    stderr(output).replace(&real, "DIR").replace(&folder.display().to_string(), "DIR")
}

#[test]
fn missing_and_wrong_blocks_are_reported_before_the_first_run() {
    let core = Core::new();
    let height = core.blocks.len();
    let (missing, child) = (core.hash(8), core.hash(9));
    let all: Vec<&[u8]> = core.blocks.iter().map(Vec::as_slice).collect();

    let without: Vec<&[u8]> =
        all.iter().enumerate().filter(|(at, _)| *at != 7).map(|(_, block)| *block).collect();
    core.write(&without);
    let said = error(&core, &core.ledger(&[]));
    for part in [
        format!(
            "missing block {missing} at height 8, the parent of {child} (file DIR/datadir/regtest/blocks/blk00000.dat offset "
        ),
        "add the file that holds it, or take the chain up to height 7: --stop-height 7".to_owned(),
    ] {
        assert!(said.contains(&part), "{part}\n{said}");
    }
    // A run fails as early, with the same message.
    let run = core.run(&core.folder.path().join("out"), &["--target", "assay"]);
    assert!(error(&core, &run).contains(&missing) && !core.folder.path().join("out/runs").exists());
    // Missing blocks above the requested height are ignored.
    assert_eq!(good(&core.ledger(&["--stop-height", "7"]))["height"], 7);

    core.write(&all[3..]);
    let said = error(&core, &core.ledger(&[]));
    assert!(said.contains(&format!("missing block {} at height 3,", core.hash(3))), "{said}");

    core.write(&all);
    let said = error(&core, &core.ledger(&["--stop-height", "100000"]));
    let end = format!("ends at height {height} (block {}", core.hash(height));
    assert!(said.contains(&end) && said.contains("below the height 100000"), "{said}");

    let cut = fs::read(core.file(1)).expect("a file");
    fs::write(core.file(1), &cut[..cut.len() - 5010]).expect("written");
    let said = error(&core, &core.ledger(&[]));
    let place = "file DIR/datadir/regtest/blocks/blk00001.dat offset ";
    for part in [place, "a record that is cut off", &format!("--stop-height {}", height - 1)] {
        assert!(said.contains(part), "{part}\n{said}");
    }

    let mut flipped = cut.clone();
    // A byte in the lock time of the last transaction: witnesses are not part of the merkle root.
    let at = flipped.len() - 5001;
    flipped[at] ^= 1;
    fs::write(core.file(1), flipped).expect("written");
    let said = error(&core, &core.ledger(&[]));
    let part = format!(
        "damaged block {} at height {height}: bad-txnmrklroot: hashMerkleRoot mismatch",
        core.hash(height)
    );
    let end = format!(
        "; copy that file again, or have its node download the block again, or take the chain up to the block before: \
         --stop-height {}",
        height - 1
    );
    for part in [place, &part, &end] {
        assert!(said.contains(part), "{part}\n{said}");
    }
    fs::write(core.file(1), cut).expect("written");
}

#[test]
fn folders_of_another_chain_are_rejected() {
    let core = Core::new();
    core.write(&core.blocks.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let (datadir, out) = (
        core.file(0).parent().expect("a folder").display().to_string(),
        core.folder.path().join("ledger"),
    );
    let out = out.display().to_string();
    let ledger = |blocks: &str, chain: &str, out: &str| {
        line(&format!("chain ledger --blocks {blocks} --chain {chain} --out {out}"))
    };
    let said = error(&core, &ledger(&datadir, "main", &out));
    assert!(said.contains("holds blocks of regtest, not of main; give --chain regtest"), "{said}");
    let said = error(&core, &ledger(&datadir, "regtest", &format!("{datadir}/x")));
    assert!(said.contains("is left unchanged; give another"), "{said}");
    assert!(!Path::new(&datadir).join("x").exists());
    let empty = core.folder.path().join("empty");
    fs::create_dir(&empty).expect("a folder");
    let said = error(&core, &ledger(&empty.display().to_string(), "regtest", &out));
    assert!(said.contains("DIR/empty: holds no blk*.dat"), "{said}");
    let blocks = format!("--blocks {} --chain regtest", core.datadir());
    let wrong = line(&format!("run bitcoin-scaling {blocks} --out {out}"));
    assert!(error(&core, &wrong).contains("is for syncs"), "{}", stderr(&wrong));
}
