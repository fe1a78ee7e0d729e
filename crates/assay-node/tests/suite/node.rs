//! Complete node with a real engine: methods, errors and lifecycle.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::thread;
use std::time::Duration;

use assay_node::{Node, NodeConfig, NodeError};
use assay_wire::{Block, Encoding, Transaction};
use faster_hex::hex_string;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::chain::{SUBSIDY, block, block_paying, regtest_genesis, spend};
use crate::support::Client;

pub(crate) struct Fixture {
    pub(crate) node: Node,
    client: Client,
    pub(crate) dir: TempDir,
    /// Active chain, genesis first.
    pub(crate) blocks: Vec<Block>,
}

pub(crate) fn config(dir: &Path) -> NodeConfig {
    let mut config = NodeConfig::new("regtest", dir).unwrap();
    config.rpc.bind = vec!["127.0.0.1:0".parse().unwrap()];
    config.engine.cache_bytes_max = 16 << 20;
    config.log = None;
    config.handle_signals = false;
    config
}

fn connect(node: &Node, dir: &Path) -> Client {
    let cookie = fs::read_to_string(dir.join("regtest/.cookie")).unwrap();
    Client::connect(node.rpc_addresses()[0], &cookie)
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let node = Node::start(&config(dir.path())).unwrap();
        let client = connect(&node, dir.path());
        let genesis = node.engine().blocks().read(&regtest_genesis()).unwrap().unwrap();
        let blocks = vec![Block::parse(genesis, Encoding::Segwit).unwrap()];
        Self { node, client, dir, blocks }
    }

    pub(crate) fn set_clock_to_tip(&self) {
        let engine = self.node.engine();
        engine.clock().set(u64::from(engine.chain().tip().time));
        assert!(!engine.chain().is_initial_block_download());
    }

    pub(crate) fn p2p_address(&self) -> SocketAddr {
        self.node.p2p_address().unwrap()
    }

    pub(crate) fn call(&mut self, method: &str, params: &Value) -> Value {
        self.client.call(method, &params.to_string()).unwrap()
    }

    /// Result of a call, or the error object.
    pub(crate) fn try_call(&mut self, method: &str, params: &Value) -> Result<Value, Value> {
        self.client.call(method, &params.to_string())
    }

    /// Code and message of a call's error.
    pub(crate) fn error(&mut self, method: &str, params: &Value) -> (i64, String) {
        let error = self.client.call(method, &params.to_string()).unwrap_err();
        (error["code"].as_i64().unwrap(), error["message"].as_str().unwrap().to_owned())
    }

    pub(crate) fn tip(&mut self) -> Value {
        self.call("getbestblockhash", &json!([]))
    }

    /// Waits until an index reports the tip; returns its height.
    pub(crate) fn synced(&mut self, index: &str) -> Value {
        loop {
            let info = self.call("getindexinfo", &json!([index]));
            if info[index]["synced"] == true {
                return info[index]["best_block_height"].clone();
            }
            thread::sleep(Duration::from_millis(2));
        }
    }

    pub(crate) fn next_block(&self, txs: &[Transaction]) -> Block {
        block(self.blocks.last().unwrap(), self.blocks.len() as u32, txs)
    }

    /// Block on the tip whose coinbase pays one satoshi too much.
    pub(crate) fn overpaying_block(&self) -> Block {
        let height = self.blocks.len() as u32;
        block_paying(SUBSIDY + 1, 600, self.blocks.last().unwrap(), height, &[])
    }

    /// Valid block that competes with the active one at `height`.
    pub(crate) fn side_block(&self, height: u32) -> Block {
        block_paying(SUBSIDY, 601, &self.blocks[height as usize - 1], height, &[])
    }

    pub(crate) fn mine(&mut self, txs: &[Transaction]) {
        let next = self.next_block(txs);
        assert_eq!(self.call("submitblock", &json!([hex_string(next.bytes())])), Value::Null);
        self.blocks.push(next);
    }

    /// Mines until the first coinbase is mature.
    pub(crate) fn mature(&mut self) {
        while self.blocks.len() < 101 {
            self.mine(&[]);
        }
    }

    pub(crate) fn stop(self) -> (TempDir, Vec<Block>) {
        let Self { node, client: _, dir, blocks } = self;
        node.stop_handle().stop();
        node.wait().unwrap();
        (dir, blocks)
    }

    /// Stops the node and starts another on the same folder.
    pub(crate) fn restart(self, change: impl Fn(&mut NodeConfig)) -> Self {
        let (dir, blocks) = self.stop();
        let mut config = config(dir.path());
        change(&mut config);
        let node = Node::start(&config).unwrap();
        let client = connect(&node, dir.path());
        Self { node, client, dir, blocks }
    }

    pub(crate) fn spend_coinbase(&self, height: usize, values: &[i64]) -> Transaction {
        spend(&[(self.blocks[height].tx(0).txid(), 0)], values)
    }
}

#[test]
fn new_node_has_the_genesis_block() {
    let mut f = Fixture::new();
    let hash = regtest_genesis().to_string();
    assert_eq!(f.call("getblockcount", &json!([])), 0);
    assert_eq!(f.tip(), hash.as_str());
    assert_eq!(f.call("getblockhash", &json!([0])), hash.as_str());
    let info = f.call("getblockchaininfo", &json!([]));
    for (name, expected) in [
        ("chain", json!("regtest")),
        ("blocks", json!(0)),
        ("headers", json!(0)),
        ("bestblockhash", json!(hash)),
        ("bits", json!("207fffff")),
        ("target", json!("7fffff0000000000000000000000000000000000000000000000000000000000")),
        ("time", json!(1_296_688_602)),
        ("mediantime", json!(1_296_688_602)),
        ("initialblockdownload", json!(true)),
        ("chainwork", json!("0000000000000000000000000000000000000000000000000000000000000002")),
        ("size_on_disk", json!(293)),
        ("pruned", json!(false)),
        ("warnings", json!([])),
    ] {
        assert_eq!(info[name], expected, "{name}");
    }
    // As text: parsing would round the last digit.
    let difficulty = f.client.post(r#"{"method":"getdifficulty"}"#);
    assert_eq!(difficulty.text(), "{\"result\":4.656542373906925e-10,\"error\":null}\n");
    let genesis = f.call("getblock", &json!([hash, 2]));
    assert_eq!(genesis["confirmations"], 1);
    assert_eq!(genesis["size"], 285);
    assert_eq!(genesis["strippedsize"], 285);
    assert_eq!(genesis["weight"], 1140);
    assert_eq!(genesis["nTx"], 1);
    assert_eq!(genesis["versionHex"], "00000001");
    assert_eq!(genesis.get("previousblockhash"), None);
    let coinbase = &genesis["tx"][0];
    let root = "4a5e1e4baab89f3a32518a88c31bc87f618f76673e2cc77ab2127b7afdeda33b";
    assert_eq!((&coinbase["txid"], &genesis["merkleroot"]), (&json!(root), &json!(root)));
    assert_eq!(coinbase["vin"][0]["coinbase"], genesis["coinbase_tx"]["coinbase"]);
    assert_eq!(coinbase["vout"][0]["value"], 50.0);
    assert_eq!(coinbase.get("fee"), None);
    assert_eq!(f.error("getrawtransaction", &json!([root])).0, -5);
    assert_eq!(f.call("gettxout", &json!([root, 0])), Value::Null);
    let raw = f.call("getblock", &json!([hash, 0]));
    assert_eq!(raw, hex_string(f.blocks[0].bytes()).as_str());
    let header = f.call("getblockheader", &json!([hash, false]));
    assert_eq!(header, hex_string(&f.blocks[0].bytes()[..80]).as_str());
    let version = f.call("getnetworkinfo", &json!([]));
    assert!(version["subversion"].as_str().unwrap().starts_with("/Satoshi:31.0.0/Assay:"));
}

#[test]
fn submitblock_results_follow_bip22() {
    let mut f = Fixture::new();
    f.mine(&[]);
    f.mine(&[]);
    let first = hex_string(f.blocks[1].bytes());
    assert_eq!(f.call("submitblock", &json!([first])), "duplicate");
    // A second chain of equal length.
    let branch = [block(&f.blocks[0], 1, &[f.spend_coinbase(1, &[1])])];
    assert_ne!(f.call("submitblock", &json!([hex_string(branch[0].bytes())])), Value::Null);
    let mut side = f.blocks[1].bytes().to_vec();
    side[68] ^= 1; // Another time changes the hash; mine it again.
    let side = loop {
        let block = Block::parse(side.clone(), Encoding::Segwit).unwrap();
        if block.hash().0[31] <= 0x7f {
            break block;
        }
        side[76] += 1;
    };
    assert_eq!(f.call("submitblock", &json!([hex_string(side.bytes())])), "inconclusive");
    let unknown = f.call("getblockheader", &json!([side.hash().to_string()]));
    assert_eq!(unknown["confirmations"], -1);
    // An unknown parent.
    let mut orphan = f.next_block(&[]).into_bytes();
    orphan[4] ^= 1;
    while Block::parse(orphan.clone(), Encoding::Segwit).unwrap().hash().0[31] > 0x7f {
        orphan[76] += 1;
    }
    assert_eq!(f.call("submitblock", &json!([hex_string(&orphan)])), "prev-blk-not-found");
    // Insufficient proof of work.
    let mut lazy = f.next_block(&[]).into_bytes();
    while Block::parse(lazy.clone(), Encoding::Segwit).unwrap().hash().0[31] <= 0x7f {
        lazy[76] += 1;
    }
    assert_eq!(f.call("submitblock", &json!([hex_string(&lazy)])), "high-hash");
    let decode_failed = (-22, "Block decode failed".to_owned());
    let next = hex_string(f.next_block(&[]).bytes());
    for bad in [&next[..next.len() - 2], &next[..next.len() - 1], "", "zz", "00"] {
        assert_eq!(f.error("submitblock", &json!([bad])), decode_failed);
    }
    assert_eq!(f.error("submitblock", &json!([])).0, -1);
    assert_eq!(f.error("submitblock", &json!([5])).0, -3);
    assert_eq!(f.call("getblockcount", &json!([])), 2);
    // Trailing bytes are ignored, as in Core.
    assert_eq!(f.call("submitblock", &json!([format!("{next}00")])), Value::Null);
    assert_eq!(f.call("getblockcount", &json!([])), 3);
}

#[test]
fn large_blocks_are_decoded_on_arrival() {
    let mut f = Fixture::new();
    f.mature();
    // Enough digits for a blob, as with real large blocks.
    let outputs = 20_000;
    let wide = f.spend_coinbase(1, &vec![SUBSIDY / outputs; outputs as usize]);
    let next = f.next_block(&[wide]);
    let text = hex_string(next.bytes());
    assert!(text.len() > 1 << 20);
    let decode_failed = (-22, "Block decode failed".to_owned());
    for bad in [&text[..text.len() - 1], &text[..text.len() - 2], &format!("{text}x")] {
        assert_eq!(f.error("submitblock", &json!([bad])), decode_failed);
    }
    let (code, message) = f.error("getblock", &json!([text]));
    assert!(code == -8 && message.starts_with("blockhash must be of length 64 (not "), "{message}");
    assert_eq!(f.error("getblockhash", &json!([text])).0, -3);
    let upper = text.to_uppercase();
    assert_eq!(f.call("submitblock", &json!([upper, "dummy"])), Value::Null);
    assert_eq!(f.call("submitblock", &json!({"hexdata": text})), "duplicate");
    let raw = f.call("getblock", &json!([next.hash().to_string(), 0]));
    assert!(raw == text.as_str());
}

#[test]
fn transactions_are_admitted_and_confirmed() {
    let mut f = Fixture::new();
    f.mature();
    let parent = f.spend_coinbase(1, &[SUBSIDY / 2, SUBSIDY / 2 - 1000]);
    let parent_id = parent.view().txid();
    let child = spend(&[(parent_id, 0)], &[SUBSIDY / 2 - 500]);
    let child_id = child.view().txid();
    let trial = f.call(
        "testmempoolaccept",
        &json!([[hex_string(parent.bytes()), hex_string(child.bytes())]]),
    );
    assert_eq!(trial[0]["allowed"], true, "{trial}");
    assert_eq!(trial[0]["fees"]["base"], 0.00001);
    assert_eq!(trial[1]["txid"], child_id.to_string());
    assert_eq!(f.call("getrawmempool", &json!([])), json!([]));
    let early = f.call("testmempoolaccept", &json!([[hex_string(child.bytes())]]));
    assert_eq!(early[0]["reject-reason"], "missing-inputs");
    let error = f.error("sendrawtransaction", &json!([hex_string(child.bytes())]));
    assert_eq!(error, (-25, "bad-txns-inputs-missingorspent".to_owned()));
    assert_eq!(
        f.call("sendrawtransaction", &json!([hex_string(parent.bytes())])),
        parent_id.to_string()
    );
    assert_eq!(
        f.call("sendrawtransaction", &json!([hex_string(parent.bytes())])),
        parent_id.to_string()
    );
    assert_eq!(
        f.call("sendrawtransaction", &json!([hex_string(child.bytes())])),
        child_id.to_string()
    );
    let info = f.call("getmempoolinfo", &json!([]));
    assert_eq!((&info["size"], &info["total_fee"]), (&json!(2), &json!(0.000015)));
    let entry = f.call("getmempoolentry", &json!([parent_id.to_string()]));
    assert_eq!(entry["spentby"], json!([child_id.to_string()]));
    assert_eq!((&entry["descendantcount"], &entry["ancestorcount"]), (&json!(2), &json!(1)));
    assert_eq!(entry["fees"]["descendant"], 0.000015);
    let all = f.call("getrawmempool", &json!([true]));
    assert_eq!(all[parent_id.to_string()], entry);
    assert_eq!(f.call("gettxout", &json!([parent_id.to_string(), 0])), Value::Null);
    assert_eq!(f.call("gettxout", &json!([parent_id.to_string(), 0, false])), Value::Null);
    let unspent = f.call("gettxout", &json!([parent_id.to_string(), 1]));
    assert_eq!((&unspent["confirmations"], &unspent["value"]), (&json!(0), &json!(24.99999)));
    assert_eq!(
        f.call("getrawtransaction", &json!([child_id.to_string()])),
        hex_string(child.bytes())
    );
    assert_eq!(f.error("getrawtransaction", &json!([f.blocks[1].tx(0).txid().to_string()])).0, -5);

    f.mine(&[parent, child]);
    assert_eq!(f.call("getmempoolinfo", &json!([]))["size"], 0);
    let hash = f.blocks[101].hash().to_string();
    let shown = f.call("getrawtransaction", &json!([child_id.to_string(), 2, hash]));
    assert_eq!(shown["in_active_chain"], true);
    assert_eq!(shown["confirmations"], 1);
    assert_eq!(shown["fee"], 0.000005);
    assert_eq!(shown["vin"][0]["prevout"]["value"], 25.0);
    assert_eq!(shown["vin"][0]["prevout"]["generated"], false);
    assert_eq!(shown["vin"][0]["scriptSig"]["asm"], "81");
    let address = &shown["vout"][0]["scriptPubKey"]["address"];
    assert_eq!(address, "2ND8PB9RrfCaAcjfjP1Y6nAgFd9zWHYX4DN");
    let block = f.call("getblock", &json!([hash, 2]));
    assert_eq!(block["tx"][1]["fee"], 0.00001);
    assert_eq!(block["tx"][1]["vin"][0].get("prevout"), None);
    let block = f.call("getblock", &json!([hash, 3]));
    assert_eq!(block["tx"][1]["vin"][0]["prevout"]["generated"], true);
    assert_eq!(block["tx"][1]["vin"][0]["prevout"]["height"], 1);
    let ids = f.call("getblock", &json!({"blockhash": hash, "verbose": true}));
    assert_eq!(ids["tx"][2], child_id.to_string());
    let coin = f.call("gettxout", &json!([child_id.to_string(), 0]));
    assert_eq!((&coin["confirmations"], &coin["coinbase"]), (&json!(1), &json!(false)));
}

#[test]
fn rejects_transactions_with_core_codes() {
    let mut f = Fixture::new();
    f.mature();
    let coinbase = (f.blocks[1].tx(0).txid(), 0);
    let decode_failed = "TX decode failed. Make sure the tx has at least one input.";
    let good = spend(&[coinbase], &[SUBSIDY - 1000]);
    let rich = spend(&[coinbase], &[SUBSIDY / 2]);
    let immature = f.spend_coinbase(50, &[SUBSIDY - 1000]);
    let inflating = spend(&[coinbase], &[SUBSIDY + 1]);
    let mut burning = good.bytes().to_vec();
    let script_at = burning.len() - 4 - 23;
    burning[script_at] = 0x6a;
    let too_costly = "Fee exceeds maximum configured by user (e.g. -maxtxfee, maxfeerate)";
    let burns = "Unspendable output exceeds maximum configured by user (maxburnamount)";
    for (params, code, message) in [
        (json!(["zz"]), -22, decode_failed),
        (json!(["00"]), -22, decode_failed),
        (json!([hex_string(&good.bytes()[1..])]), -22, decode_failed),
        (json!([hex_string(rich.bytes())]), -25, too_costly),
        (json!([hex_string(good.bytes()), 0.000_000_01]), -25, too_costly),
        (
            json!([hex_string(good.bytes()), 1]),
            -8,
            "Fee rates larger than or equal to 1BTC/kvB are not accepted",
        ),
        (json!([hex_string(good.bytes()), "x"]), -3, "Invalid amount"),
        (json!([hex_string(good.bytes()), -1]), -3, "Amount out of range"),
        (json!([hex_string(good.bytes()), true]), -3, "Amount is not a number or string"),
        (json!([hex_string(&burning)]), -25, burns),
    ] {
        assert_eq!(f.error("sendrawtransaction", &params), (code, message.to_owned()), "{params}");
    }
    for (tx, reason) in
        [(&immature, "bad-txns-premature-spend-of-coinbase"), (&inflating, "bad-txns-in-belowout")]
    {
        let (code, message) = f.error("sendrawtransaction", &json!([hex_string(tx.bytes())]));
        assert!(code == -26 && message.starts_with(reason), "{message}");
        let trial = f.call("testmempoolaccept", &json!([[hex_string(tx.bytes())]]));
        assert_eq!(trial[0]["allowed"], false);
        assert_eq!(trial[0]["reject-reason"], reason);
    }
    let trial = f.call("testmempoolaccept", &json!([[hex_string(rich.bytes())]]));
    assert_eq!(trial[0]["reject-reason"], "max-fee-exceeded");
    assert_eq!(f.error("testmempoolaccept", &json!([[]])).0, -8);
    assert_eq!(f.error("testmempoolaccept", &json!([["00"]])).0, -22);
    assert_eq!(f.error("testmempoolaccept", &json!([[5]])).0, -3);
    assert_eq!(f.error("testmempoolaccept", &json!([5])).0, -3);
    f.mine(&[good]);
    let again = f.blocks[101].tx(1).to_owned_transaction();
    let in_chain = (-27, "Transaction outputs already in utxo set".to_owned());
    assert_eq!(f.error("sendrawtransaction", &json!([hex_string(again.bytes())])), in_chain);
    // The same coin twice in one block.
    let twice = f.spend_coinbase(2, &[1000]);
    let other = f.spend_coinbase(2, &[2000]);
    let double = f.next_block(&[twice, other]);
    let verdict = f.call("submitblock", &json!([hex_string(double.bytes())]));
    assert_eq!(verdict, "bad-txns-inputs-missingorspent");
    assert_eq!(f.call("submitblock", &json!([hex_string(double.bytes())])), "duplicate-invalid");
}

#[test]
fn batch_admits_transaction_chains() {
    let mut f = Fixture::new();
    f.mature();
    let mut chain = vec![f.spend_coinbase(1, &[SUBSIDY - 1000])];
    for index in 1..10 {
        let last = chain.last().unwrap().view();
        chain.push(spend(&[(last.txid(), 0)], &[SUBSIDY - 1000 * (index + 1)]));
    }
    let call = |id: usize, params: &Value| json!({"jsonrpc": "2.0", "id": id, "method": "sendrawtransaction", "params": params});
    let mut batch: Vec<Value> = chain
        .iter()
        .enumerate()
        .map(|(id, tx)| call(id, &json!([hex_string(tx.bytes())])))
        .collect();
    batch.insert(5, call(100, &json!(["zz"])));
    batch.push(call(101, &json!([hex_string(f.spend_coinbase(1, &[1]).bytes()), 0])));
    let replies = f.client.post(&json!(batch).to_string()).json();
    for (id, tx) in chain.iter().enumerate() {
        let at = if id < 5 { id } else { id + 1 };
        assert_eq!(replies[at]["id"], id);
        assert_eq!(replies[at]["result"], tx.view().txid().to_string(), "{}", replies[at]);
    }
    assert_eq!((&replies[5]["id"], &replies[5]["error"]["code"]), (&json!(100), &json!(-22)));
    assert_eq!(replies[11]["error"]["code"], -26);
    assert_eq!(f.call("getmempoolinfo", &json!([]))["size"], 10);
    let last = f.call("getmempoolentry", &json!([chain[9].view().txid().to_string()]));
    assert_eq!(last["ancestorcount"], 10);
}

#[test]
fn waiting_calls_see_new_tips() {
    let mut f = Fixture::new();
    let address: SocketAddr = f.node.rpc_addresses()[0];
    let cookie = fs::read_to_string(f.dir.path().join("regtest/.cookie")).unwrap();
    let next = f.next_block(&[]);
    let hash = next.hash().to_string();
    let waiters: Vec<_> = [
        ("waitforblockheight", json!([1])),
        ("waitforblock", json!([hash])),
        ("waitfornewblock", json!([0, regtest_genesis().to_string()])),
    ]
    .into_iter()
    .map(|(method, params)| {
        let mut client = Client::connect(address, &cookie);
        thread::spawn(move || client.call(method, &params.to_string()))
    })
    .collect();
    let genesis = json!({"hash": regtest_genesis().to_string(), "height": 0});
    assert_eq!(f.call("waitforblockheight", &json!([1, 20])), genesis);
    assert_eq!(f.call("waitforblock", &json!([hash, 20])), genesis);
    assert_eq!(f.call("waitfornewblock", &json!([20])), genesis);
    assert_eq!(f.call("waitforblockheight", &json!([0])), genesis);
    let active = f.call("getrpcinfo", &json!([]))["active_commands"].clone();
    assert!(active.as_array().unwrap().iter().any(|call| call["method"] == "getrpcinfo"));
    f.mine(&[]);
    for waiter in waiters {
        assert_eq!(waiter.join().unwrap().unwrap(), json!({"hash": hash, "height": 1}));
    }
    assert_eq!(f.error("waitforblockheight", &json!([1, -1])), (-1, "Negative timeout".to_owned()));
}

#[test]
fn gettxoutsetinfo_sums_the_utxo_set() {
    let mut f = Fixture::new();
    for _ in 0..3 {
        f.mine(&[]);
    }
    let plain = f.call("gettxoutsetinfo", &json!(["none"]));
    assert_eq!(plain["height"], 3);
    assert_eq!((&plain["txouts"], &plain["transactions"]), (&json!(3), &json!(3)));
    assert_eq!(plain["total_amount"], 150.0);
    assert_eq!(plain["bogosize"], 3 * (32 + 4 + 4 + 8 + 2 + 23));
    assert_eq!(plain.get("muhash"), None);
    let hashed = f.call("gettxoutsetinfo", &json!(["muhash"]));
    assert_eq!(hashed["muhash"].as_str().unwrap().len(), 64);
    let serialised = f.call("gettxoutsetinfo", &json!(["hash_serialized_3"]));
    assert_eq!(serialised["hash_serialized_3"].as_str().unwrap().len(), 64);
    let unknown = (-8, "'x' is not a valid hash_type".to_owned());
    assert_eq!(f.error("gettxoutsetinfo", &json!(["x"])), unknown);
    assert_eq!(f.error("gettxoutsetinfo", &json!(["none", 1])).0, -8);
}

#[test]
fn failed_lookups_have_clear_errors() {
    let mut f = Fixture::new();
    let nothing = "00".repeat(32);
    for (method, params, code, message) in [
        ("getblockhash", json!([1]), -8, "Block height out of range".to_owned()),
        ("getblockhash", json!([-1]), -8, "Block height out of range".to_owned()),
        ("getblockhash", json!([1e3]), -1, "JSON integer out of range".to_owned()),
        ("getblockhash", json!([1_u64 << 40]), -1, "JSON integer out of range".to_owned()),
        ("getblock", json!([nothing]), -5, "Block not found".to_owned()),
        (
            "getblock",
            json!(["00"]),
            -8,
            "blockhash must be of length 64 (not 2, for '00')".to_owned(),
        ),
        (
            "getblock",
            json!(["zz".repeat(32)]),
            -8,
            format!("blockhash must be hexadecimal string (not '{}')", "zz".repeat(32)),
        ),
        (
            "getblock",
            json!([nothing, "x"]),
            -3,
            "JSON value of type string is not of expected type number".to_owned(),
        ),
        ("getrawtransaction", json!([nothing, 1, nothing]), -5, "Block hash not found".to_owned()),
        ("getmempoolentry", json!([nothing]), -5, "Transaction not in mempool".to_owned()),
        ("gettxout", json!([nothing, -1]), -1, "JSON integer out of range".to_owned()),
        ("nosuchmethod", json!([]), -32601, "Method not found".to_owned()),
    ] {
        assert_eq!(f.error(method, &params), (code, message), "{method} {params}");
    }
    assert_eq!(f.call("help", &json!(["nosuchmethod"])), "help: unknown command: nosuchmethod");
    assert!(f.call("help", &json!([])).as_str().unwrap().contains("\nsubmitblock \"hexdata\""));
}

#[test]
fn locks_folder_stops_and_persists() {
    let mut f = Fixture::new();
    f.mine(&[]);
    let chain_dir = f.dir.path().join("regtest");
    let cookie = chain_dir.join(".cookie");
    assert_eq!(fs::metadata(&cookie).unwrap().permissions().mode() & 0o777, 0o600);
    let pid = fs::read_to_string(chain_dir.join("bitcoind.pid")).unwrap();
    assert_eq!(pid.trim(), std::process::id().to_string());
    let refused = Node::start(&config(f.dir.path())).unwrap_err();
    assert!(matches!(&refused, NodeError::AlreadyRunning { path } if *path == chain_dir));
    assert!(refused.to_string().contains("another node is probably running"));
    assert!(cookie.exists(), "the second node must leave the first one's files alone");
    assert_eq!(f.call("stop", &json!([])), "Assay stopping");
    let Fixture { node, dir, blocks, mut client, .. } = f;
    node.wait().unwrap();
    assert!(client.is_closed());
    assert!(!cookie.exists() && !chain_dir.join("bitcoind.pid").exists());
    let node = Node::start(&config(dir.path())).unwrap();
    let mut client = connect(&node, dir.path());
    let best = client.call("getbestblockhash", "[]").unwrap();
    assert_eq!(best, blocks[1].hash().to_string());
    node.stop_handle().stop();
    node.wait().unwrap();
}

#[test]
fn passwords_replace_cookie_and_exposure_is_explicit() {
    let dir = tempfile::tempdir().unwrap();
    let mut secret = config(dir.path());
    secret.rpc.password = Some(("alice".to_owned(), "wonder".to_owned()));
    let node = Node::start(&secret).unwrap();
    assert!(!dir.path().join("regtest/.cookie").exists());
    let mut client = Client::connect(node.rpc_addresses()[0], "alice:wonder");
    assert_eq!(client.call("getblockcount", "[]").unwrap(), 0);
    node.stop_handle().stop();
    node.wait().unwrap();
    let mut exposed = config(dir.path());
    exposed.rpc.bind = vec!["0.0.0.0:0".parse().unwrap()];
    assert!(matches!(Node::start(&exposed), Err(NodeError::Exposed { .. })));
    exposed.rpc.allow = vec!["10.0.0.0/8".parse().unwrap()];
    let node = Node::start(&exposed).unwrap();
    node.stop_handle().stop();
    node.wait().unwrap();
    assert!(NodeConfig::new("nochain", dir.path()).is_err());
}
