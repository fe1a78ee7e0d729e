//! Our node with its Electrum server, and its mined chain.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use assay_testkit::hex;
use assay_wire::Transaction;
use serde_json::{Value, json};

use super::miner::{Coin, Miner, Parent};
use super::process::{Process, wait_for};
use crate::{Rpc, free_addresses};

/// Maturity of a coinbase, in blocks.
const MATURITY: u32 = 100;

#[derive(Debug)]
pub(crate) struct Node {
    process: Process,
    pub(crate) rpc: Rpc,
    rpc_address: SocketAddr,
    dir: PathBuf,
    pub(crate) electrum_port: u16,
    /// Port of the Electrum server with TLS.
    pub(crate) tls_port: u16,
    miner: Miner,
    pub(crate) tip: Parent,
    coins: Vec<(u32, Coin)>,
}

impl Node {
    pub(crate) fn start(dir: &Path) -> Self {
        fs::create_dir_all(dir).expect("the folder is writable");
        let [rpc_address, electrum, tls] = free_addresses();
        let (electrum_port, tls_port) = (electrum.port(), tls.port());
        let rpc = Rpc::new(rpc_address, "user:password");
        let miner = Miner::new();
        let tip = miner.genesis();
        let process = spawn(dir, rpc_address, electrum_port, tls_port);
        let mut node = Self {
            process,
            rpc,
            rpc_address,
            dir: dir.to_owned(),
            electrum_port,
            tls_port,
            miner,
            tip,
            coins: Vec::new(),
        };
        node.wait_ready();
        node
    }

    fn wait_ready(&mut self) {
        let (rpc, process) = (self.rpc.clone(), &mut self.process);
        wait_for("the node answers", || {
            process.assert_alive();
            rpc.call("getblockcount", &json!([]))
        });
    }

    /// Kills the node at any time, and restarts it with the same data on the same ports.
    pub(crate) fn kill(&mut self) {
        self.process.kill();
    }

    pub(crate) fn start_again(&mut self) {
        self.process = spawn(&self.dir, self.rpc_address, self.electrum_port, self.tls_port);
        self.wait_ready();
        let hash = self.rpc.must("getbestblockhash", &json!([]));
        assert_eq!(hash, json!(self.tip.hash.to_string()), "the tip survives a kill");
    }

    /// Mines on `parent` and submits the block, which may or may not become the tip.
    pub(crate) fn mine_on(&mut self, parent: Parent, txs: &[Transaction]) -> Parent {
        let mined = self.miner.mine(parent, txs);
        let hex = faster_hex::hex_string(&mined.raw);
        let verdict = self.rpc.must("submitblock", &json!([hex]));
        let is_fine = verdict.is_null() || verdict == "inconclusive";
        assert!(is_fine, "block {} was refused: {verdict}", mined.parent.height);
        self.coins.push((mined.parent.height, mined.coin));
        mined.parent
    }

    /// Mines the mempool on top of the tip.
    pub(crate) fn mine(&mut self) {
        let txs = self.mempool();
        self.tip = self.mine_on(self.tip, &txs);
        self.assert_tip();
    }

    pub(crate) fn assert_tip(&self) {
        let hash = self.rpc.must("getbestblockhash", &json!([]));
        assert_eq!(hash, json!(self.tip.hash.to_string()), "the new block is the tip");
    }

    /// The unconfirmed transactions in topological order.
    pub(crate) fn mempool(&self) -> Vec<Transaction> {
        let listed = self.rpc.must("getrawmempool", &json!([true]));
        let mut entries: Vec<(u64, String)> = listed
            .as_object()
            .expect("entries by txid")
            .iter()
            .map(|(txid, entry)| (entry["ancestorcount"].as_u64().unwrap_or(0), txid.clone()))
            .collect();
        entries.sort();
        let raw = |txid: &str| {
            let hex = self.rpc.must("getrawtransaction", &json!([txid]));
            super::miner::parse(hex::decode(hex.as_str().expect("a transaction in hexadecimal")))
        };
        entries.iter().map(|(_, txid)| raw(txid)).collect()
    }

    /// Pays from the oldest mature coin, and leaves the payment unconfirmed.
    pub(crate) fn pay(&mut self, script_pubkey: &[u8], value_sat: i64) -> String {
        let (height, coin) = self.coins.remove(0);
        assert!(height + MATURITY <= self.tip.height + 1, "the coin is mature");
        let tx = Miner::pay(coin, script_pubkey, value_sat);
        let hex = faster_hex::hex_string(tx.bytes());
        let txid = self.rpc.must("sendrawtransaction", &json!([hex]));
        assert_eq!(txid, Value::String(tx.view().txid().to_string()));
        tx.view().txid().to_string()
    }
}

fn spawn(dir: &Path, rpc: SocketAddr, electrum_port: u16, tls_port: u16) -> Process {
    let local = |port: u16| format!("127.0.0.1:{port}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_assay"));
    command
        .args(["node", "--chain", "regtest", "--db-cache", "16", "--print-to-console"])
        .arg("--datadir")
        .arg(dir)
        .args(["--rpc", &rpc.to_string(), "--rpc-user", "user", "--rpc-password", "password"])
        .args(["--electrum", &local(electrum_port), "--electrum-tls", &local(tls_port)]);
    Process::start("the node", &mut command, &dir.join("stdout.log"))
}
