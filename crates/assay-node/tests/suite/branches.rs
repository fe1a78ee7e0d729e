//! RPC of branches and of the mempool file.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use assay_wire::Block;
use faster_hex::hex_string;
use serde_json::{Value, json};

use crate::chain::{SUBSIDY, block};
use crate::node::Fixture;

fn hash(block: &Block) -> String {
    block.hash().to_string()
}

#[test]
fn invalidate_reconsider_and_prefer() {
    let mut f = Fixture::new();
    for _ in 0..4 {
        f.mine(&[]);
    }
    let side = block(&f.blocks[2], 3, &[f.spend_coinbase(1, &[1])]);
    assert_eq!(f.call("submitblock", &json!([hex_string(side.bytes())])), "inconclusive");
    let [second, third, tip] = [2, 3, 4].map(|height| hash(&f.blocks[height]));
    let tip_of = |hash: &str, height: u32, branchlen: u32, status: &str| json!({"height": height, "hash": hash, "branchlen": branchlen, "status": status});
    let side_hash = hash(&side);
    assert_eq!(
        f.call("getchaintips", &json!([])),
        json!([tip_of(&tip, 4, 0, "active"), tip_of(&side_hash, 3, 1, "valid-headers")])
    );
    // The side block spends an immature coinbase, which is detected on connection.
    assert_eq!(f.call("invalidateblock", &json!([third])), Value::Null);
    assert_eq!(f.tip(), second.as_str());
    assert_eq!(
        f.call("getchaintips", &json!([])),
        json!([
            tip_of(&tip, 4, 2, "invalid"),
            tip_of(&side_hash, 3, 1, "invalid"),
            tip_of(&second, 2, 0, "active")
        ])
    );
    assert_eq!(f.call("getblockchaininfo", &json!([]))["headers"], 2);
    let next = f.next_block(&[]);
    assert_eq!(f.call("submitblock", &json!([hex_string(next.bytes())])), "bad-prevblk");
    let reached = f.blocks[3].bytes().to_vec();
    assert_eq!(f.call("submitblock", &json!([hex_string(&reached)])), "duplicate-invalid");

    let mut f = f.restart(|_| ());
    assert_eq!(f.tip(), second.as_str());
    assert_eq!(f.call("reconsiderblock", &json!([tip])), Value::Null);
    assert_eq!(f.tip(), tip.as_str());
    let other = block(&f.blocks[3], 4, &[]);
    let rival = Block::parse(remined(&other), assay_wire::Encoding::Segwit).unwrap();
    assert_eq!(f.call("submitblock", &json!([hex_string(rival.bytes())])), "inconclusive");
    assert_eq!(f.call("preciousblock", &json!([hash(&rival)])), Value::Null);
    assert_eq!(f.tip(), hash(&rival).as_str());

    let unknown = "00".repeat(31) + "01";
    for method in ["invalidateblock", "reconsiderblock", "preciousblock"] {
        let not_found = (-5, "Block not found".to_owned());
        assert_eq!(f.error(method, &json!([unknown])), not_found);
        let short = "blockhash must be of length 64 (not 2, for '00')".to_owned();
        assert_eq!(f.error(method, &json!(["00"])), (-8, short));
        assert_eq!(f.error(method, &json!([])).0, -1);
    }
    // The genesis block stays, without an error.
    let genesis = hash(&f.blocks[0]);
    assert_eq!(f.call("invalidateblock", &json!([genesis])), Value::Null);
    assert_eq!(f.call("getblockcount", &json!([])), 4);
}

/// The same block with a time one second later.
fn remined(block: &Block) -> Vec<u8> {
    let mut raw = block.bytes().to_vec();
    let mut header = *block.header();
    header.time += 1;
    while header.hash().0[31] > 0x7f {
        header.nonce += 1;
    }
    raw[..80].copy_from_slice(&header.to_bytes());
    raw
}

#[test]
fn headers_before_blocks() {
    let mut f = Fixture::new();
    let first = f.next_block(&[]);
    f.blocks.push(first.clone());
    let second = f.next_block(&[]);
    let head = |block: &Block| hex_string(&block.bytes()[..80]);
    let (code, text) = f.error("submitheader", &json!([head(&second)]));
    let first_hash = hash(&first);
    assert_eq!((code, text), (-25, format!("Must submit previous header ({first_hash}) first")));
    let failed = (-22, "Block header decode failed".to_owned());
    assert_eq!(f.error("submitheader", &json!(["00"])), failed);
    let mut bad = first.bytes()[..80].to_vec();
    bad[72..76].copy_from_slice(&0x1d00_ffffu32.to_le_bytes());
    assert_eq!(f.error("submitheader", &json!([hex_string(&bad)])), (-25, "high-hash".to_owned()));
    for block in [&first, &second, &second] {
        assert_eq!(f.call("submitheader", &json!([head(block)])), Value::Null);
    }
    let info = f.call("getblockchaininfo", &json!([]));
    assert_eq!((&info["blocks"], &info["headers"]), (&json!(0), &json!(2)));
    let tips = f.call("getchaintips", &json!([]));
    assert_eq!((&tips[0]["status"], &tips[0]["branchlen"]), (&json!("headers-only"), &json!(2)));
    let missing = (-1, "Block not available (not fully downloaded)".to_owned());
    assert_eq!(f.error("getblock", &json!([hash(&second)])), missing);
    assert_eq!(f.call("submitblock", &json!([hex_string(second.bytes())])), "inconclusive");
    assert_eq!(f.call("submitblock", &json!([hex_string(second.bytes())])), "duplicate");
    assert_eq!(f.call("submitblock", &json!([hex_string(first.bytes())])), Value::Null);
    assert_eq!(f.call("getblockcount", &json!([])), 2);
}

fn wait_until_loaded(f: &mut Fixture) {
    while f.call("getmempoolinfo", &json!([]))["loaded"] != true {
        sleep(Duration::from_millis(1));
    }
}

#[test]
fn mempool_survives_restart() {
    let mut f = Fixture::new();
    f.mature();
    let tx = f.spend_coinbase(1, &[SUBSIDY - 1000]);
    let txid = f.call("sendrawtransaction", &json!([hex_string(tx.bytes())]));
    let mut f = f.restart(|_| ());
    wait_until_loaded(&mut f);
    assert_eq!(f.call("getrawmempool", &json!([])), json!([txid]));
    let path = f.dir.path().join("regtest/mempool.dat");
    fs::remove_file(&path).unwrap();
    let saved = f.call("savemempool", &json!([]));
    assert_eq!(saved, json!({"filename": path.to_str().unwrap()}));
    let mut f = f.restart(|config| config.engine.persist_mempool = false);
    let info = f.call("getmempoolinfo", &json!([]));
    assert_eq!((&info["loaded"], &info["size"]), (&json!(true), &json!(0)));
    // The chain is old.
    let old = "Can only import the mempool after the block download and sync is done.";
    assert_eq!(f.error("importmempool", &json!([path])), (-10, old.to_owned()));
    let (code, text) = f.error("importmempool", &json!([path, {"use_current_time": 1}]));
    assert_eq!(
        (code, text.as_str()),
        (-3, "JSON value of type number is not of expected type bool")
    );
    let mut f = f.restart(|_| ());
    wait_until_loaded(&mut f);
    assert_eq!(f.call("getrawmempool", &json!([])), json!([txid]));
}
