//! Node that starts from a UTXO snapshot and downloads and validates the blocks below it.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use assay_consensus::params::AssumeUtxo;
use assay_node::{IndexOptions, NodeConfig, P2pConfig};
use faster_hex::hex_string;
use serde_json::{Value, json};

use crate::node::Fixture;
use crate::sync::wait_for;

const BASE: u32 = 110;
const NAME: &str = "basic block filter index";

/// Node with blocks above `BASE`, a snapshot of its UTXO set there, and its metadata.
struct Source {
    miner: Fixture,
    path: String,
    known: AssumeUtxo,
}

impl Source {
    fn new() -> Self {
        let mut miner = Fixture::new();
        miner.mature();
        let spend = miner.spend_coinbase(1, &[1_000_000, 2_000_000]);
        miner.mine(&[spend]);
        while miner.blocks.len() <= BASE as usize + 20 {
            miner.mine(&[]);
        }
        let options = json!({ "path": "base.dat", "rollback": BASE });
        let dumped = miner.call("dumptxoutset", &options);
        let hash = |name: &str| dumped[name].as_str().unwrap().parse().unwrap();
        let known = AssumeUtxo {
            height: BASE,
            block: hash("base_hash"),
            hash_serialized: hash("txoutset_hash"),
            chain_txs: dumped["nchaintx"].as_u64().unwrap(),
        };
        let path = dumped["path"].as_str().unwrap().to_owned();
        let miner = miner.restart(|config| {
            config.p2p = Some(P2pConfig::new("127.0.0.1:0".parse().unwrap()));
        });
        miner.set_clock_to_tip();
        Self { miner, path, known }
    }

    fn config(&self, config: &mut NodeConfig) {
        Arc::make_mut(&mut config.engine.params).assume_utxo = vec![self.known.clone()];
        config.filter_index = true;
        config.index = Some(IndexOptions::default());
        config.p2p = Some(P2pConfig::new("127.0.0.1:0".parse().unwrap()));
    }

    /// Node with these blocks and all headers.
    fn beginner(&self, blocks: usize) -> Fixture {
        let f = Fixture::new().restart(|config| self.config(config));
        f.set_clock(&self.miner);
        self.inform(f, blocks)
    }

    fn inform(&self, mut f: Fixture, blocks: usize) -> Fixture {
        for block in &self.miner.blocks[1..] {
            f.call("submitheader", &json!([hex_string(&block.bytes()[..80])]));
        }
        for block in &self.miner.blocks[1..=blocks] {
            f.call("submitblock", &json!([hex_string(block.bytes())]));
        }
        f
    }
}

impl Fixture {
    fn set_clock(&self, of: &Self) {
        self.node.engine().clock().set(u64::from(of.node.engine().chain().tip().time));
    }

    fn has_network_service(&mut self) -> bool {
        let info = self.call("getnetworkinfo", &json!([]));
        let names = info["localservicesnames"].as_array().unwrap().clone();
        assert!(names.contains(&json!("NETWORK_LIMITED")));
        names.contains(&json!("NETWORK"))
    }

    fn chains(&mut self) -> Vec<Value> {
        self.call("getchainstates", &json!([]))["chainstates"].as_array().unwrap().clone()
    }
}

#[test]
fn starts_from_snapshot_and_validates_history() {
    let mut source = Source::new();
    let mut node = source.beginner(30);
    assert!(node.has_network_service());
    let loaded = node.call("loadtxoutset", &json!([source.path]));
    let base = source.known.block.to_string();
    assert_eq!((&loaded["tip_hash"], &loaded["base_height"]), (&json!(base), &json!(BASE)));
    assert_eq!(loaded["path"], source.path);
    assert_eq!(node.call("getblockcount", &json!([])), BASE);
    assert!(!node.has_network_service());
    let chains = node.chains();
    assert_eq!((&chains[0]["blocks"], &chains[0]["validated"]), (&json!(30), &json!(true)));
    assert_eq!(chains[0].get("snapshot_blockhash"), None);
    assert_eq!((&chains[1]["blocks"], &chains[1]["validated"]), (&json!(BASE), &json!(false)));
    assert_eq!(chains[1]["snapshot_blockhash"], base);
    let info = node.call("getblockchaininfo", &json!([]));
    let background = &info["backgroundvalidation"];
    assert_eq!((&background["blocks"], &background["snapshotheight"]), (&json!(30), &json!(BASE)));
    let share = background["verificationprogress"].as_f64().unwrap();
    assert!((share - 31.0 / source.known.chain_txs as f64).abs() < 1e-9);
    let (code, text) = node.error("getblock", &json!([base]));
    assert_eq!((code, text.as_str()), (-1, "Block not available (not fully downloaded)"));

    // The state survives a restart.
    let mut node = node.restart(|config| source.config(config));
    node.set_clock(&source.miner);
    assert!(!node.has_network_service());
    assert_eq!(node.chains().len(), 2);
    let indexed = |node: &mut Fixture, height: u32| {
        let info = node.call("getindexinfo", &json!([]));
        [NAME, "electrum"].iter().all(|name| info[name]["best_block_height"] == height)
    };
    wait_for("the indexes of validated blocks", || indexed(&mut node, 30));

    let peer = source.miner.p2p_address().to_string();
    node.call("addnode", &json!([peer, "onetry"]));
    wait_for("the tip", || node.call("getblockcount", &json!([])) == BASE + 20);
    wait_for("validation", || node.chains().len() == 1);
    assert!(node.has_network_service());
    assert_eq!(node.chains()[0]["snapshot_blockhash"], base);
    wait_for("the indexes", || indexed(&mut node, BASE + 20));
    let statistics =
        |node: &mut Fixture| node.call("gettxoutsetinfo", &json!(["muhash"]))["muhash"].clone();
    assert_eq!(statistics(&mut node), statistics(&mut source.miner));
    let folder = node.dir.path().join("regtest/chainstate_snapshot");
    assert!(folder.exists());
    let mut node = node.restart(|config| source.config(config));
    assert!(!folder.exists());
    assert_eq!(node.chains().len(), 1);
    assert_eq!(node.chains()[0].get("snapshot_blockhash"), None);
    assert_eq!(statistics(&mut node), statistics(&mut source.miner));
}

#[test]
fn limited_peers_get_no_requests_for_old_blocks() {
    let source = Source::new();
    let mut node = source.beginner(0);
    node.call("loadtxoutset", &json!([source.path]));
    // By the system clock the whole chain is old. A limited peer is no source for a node far behind.
    let other = Fixture::new().restart(|config| source.config(config));
    let mut other = source.inform(other, 0);
    let peer = node.p2p_address().to_string();
    other.call("addnode", &json!([peer, "onetry"]));
    wait_for("the handshake", || other.call("getpeerinfo", &json!([]))[0]["pingtime"].is_number());
    let names = &other.call("getpeerinfo", &json!([]))[0]["servicesnames"];
    assert!(!names.as_array().unwrap().contains(&json!("NETWORK")));
    assert_eq!(other.call("getpeerinfo", &json!([]))[0]["inflight"], json!([]));
    assert_eq!(node.chains()[0]["blocks"], 0);
}

#[test]
fn rejects_foreign_snapshots() {
    let source = Source::new();
    let mut node = source.beginner(0);
    let whole = fs::read(&source.path).unwrap();
    let bad = node.dir.path().join("regtest/bad.dat");
    let with = |at: usize, bytes: &[u8]| {
        let mut file = whole.clone();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        file
    };
    let shown = bad.display().to_string();
    let hash = source.known.hash_serialized;
    for (file, code, text, place) in [
        (
            with(0, b"x"),
            -22,
            "Unable to parse metadata: Invalid UTXO set snapshot magic bytes.".to_owned(),
            ", byte offset 0",
        ),
        (
            with(5, &[3]),
            -22,
            "Unable to parse metadata: Version of snapshot 3 does not match any of the supported versions.".to_owned(),
            ", byte offset 5",
        ),
        (
            with(7, &[0xf9, 0xbe, 0xb4, 0xd9]),
            -22,
            "Unable to parse metadata: The network of the snapshot (main) does not match the network of this node (regtest)."
                .to_owned(),
            ", byte offset 7",
        ),
        (
            with(7, &[0; 4]),
            -22,
            "Unable to parse metadata: This snapshot has been created for an unrecognized network.".to_owned(),
            ", byte offset 7",
        ),
        (
            whole[..20].to_vec(),
            -22,
            "Unable to parse metadata: AutoFile::read: end of file".to_owned(),
            "",
        ),
        (
            with(whole.len() - 1, &[whole[whole.len() - 1] ^ 1]),
            -32603,
            format!("Unable to load UTXO snapshot: Population failed: Bad snapshot content hash: expected {hash}, got "),
            ", after byte offset 51: all coins can be read, so their hash alone shows the damage, and not its place",
        ),
        (
            whole[..whole.len() - 1].to_vec(),
            -32603,
            "Unable to load UTXO snapshot: Population failed: Bad snapshot format or truncated snapshot after deserializing"
                .to_owned(),
            &format!(", byte offset {}", whole.len() - 1),
        ),
    ] {
        fs::write(&bad, file).unwrap();
        let (found, error) = node.error("loadtxoutset", &json!(["bad.dat"]));
        assert!(found == code && error.starts_with(&text), "{found} {error}");
        assert!(error.ends_with(&format!(" ({shown}{place})")), "{error}");
    }
    let (code, text) = node.error("loadtxoutset", &json!(["none"]));
    let none = Path::new(&shown).with_file_name("none");
    assert_eq!((code, text), (-8, format!("Couldn't open file {} for reading.", none.display())));
    assert_eq!(node.chains().len(), 1);
}
