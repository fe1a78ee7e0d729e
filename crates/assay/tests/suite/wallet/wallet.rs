//! The Electrum wallet as a daemon without a window.

use std::fs;
use std::path::Path;
use std::process::Command;

use assay_testkit::hex;
use serde_json::{Value, json};

use super::miner::p2wpkh;
use super::process::{Process, wait_for};
use crate::{Rpc, free_addresses};

/// Environment variable with the path of the wallet's program.
const PROGRAM_VARIABLE: &str = "ASSAY_ELECTRUM_WALLET";

#[derive(Debug)]
pub(crate) struct Wallet {
    process: Process,
    rpc: Rpc,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) txid: String,
    /// Change of the balance, as the wallet prints it.
    pub(crate) value: String,
    pub(crate) confirmations: i64,
}

/// Program and version of the wallet; `None` if it is not installed.
pub(crate) fn program() -> Option<(String, String)> {
    let program = std::env::var(PROGRAM_VARIABLE).unwrap_or_else(|_| "electrum".to_owned());
    // The wallet does not print its version without a home folder.
    let output = Command::new(&program).arg("version").arg("--offline").output().ok()?;
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    output.status.success().then_some((program, version))
}

impl Wallet {
    /// Starts the daemon with one server, `127.0.0.1:port:t` or, with TLS, `…:s`.
    pub(crate) fn start(program: &str, dir: &Path, server: &str) -> Self {
        let [address] = free_addresses();
        let rpc = Rpc::new(address, "user:password");
        let folder = dir.join("regtest");
        fs::create_dir_all(&folder).expect("the folder is writable");
        let config = json!({
            "config_version": 3,
            "rpcport": address.port(),
            "rpcuser": "user",
            "rpcpassword": "password",
            "server": server,
            "oneserver": true,
            "auto_connect": false,
            "check_updates": false,
        });
        fs::write(folder.join("config"), config.to_string()).expect("the folder is writable");
        let mut command = Command::new(program);
        command.arg("--regtest").arg("-D").arg(dir).args(["daemon", "-v"]).env("HOME", dir);
        let process = Process::start("the wallet", &mut command, &dir.join("wallet.log"));
        let mut wallet = Self { process, rpc };
        wallet.wait("the wallet answers", |rpc| rpc.call("getinfo", &json!({})).map(|_| ()));
        wallet
    }

    fn wait<T>(&mut self, what: &str, mut look: impl FnMut(&Rpc) -> Result<T, String>) -> T {
        let (process, rpc) = (&mut self.process, &self.rpc);
        wait_for(what, || {
            process.assert_alive();
            look(rpc)
        })
    }

    /// Creates a wallet; returns its seed.
    pub(crate) fn create(&self) -> String {
        let created = self.rpc.must("create", &json!({}));
        self.rpc.must("load_wallet", &json!({}));
        created["seed"].as_str().expect("a seed").to_owned()
    }

    pub(crate) fn restore(&self, seed: &str) {
        self.rpc.must("restore", &json!({"text": seed}));
        self.rpc.must("load_wallet", &json!({}));
    }

    pub(crate) fn unused_script(&self) -> Vec<u8> {
        let address = self.rpc.must("getunusedaddress", &json!({}));
        let keys = self.rpc.must("getpubkeys", &json!({"address": address}));
        p2wpkh(&hex::decode(keys[0].as_str().expect("one key")))
    }

    /// Signs a payment and broadcasts it through the server; returns its txid.
    pub(crate) fn pay(&self, address: &str, amount: &str, fee: &str) -> String {
        let payment = json!({"destination": address, "amount": amount, "fee": fee});
        let tx = self.rpc.must("payto", &payment);
        let txid = self.rpc.must("broadcast", &json!({"tx": tx}));
        txid.as_str().expect("a txid").to_owned()
    }

    /// Waits until the wallet is connected and at `height`.
    pub(crate) fn wait_height(&mut self, height: u32) {
        self.wait(&format!("the wallet is at height {height}"), |rpc| {
            let info = rpc.call("getinfo", &json!({}))?;
            let is_there = info["connected"] == true
                && info["blockchain_height"] == height
                && info["server_height"] == height;
            if is_there { Ok(()) } else { Err(info.to_string()) }
        });
    }

    pub(crate) fn wait_disconnected(&mut self) {
        self.wait("the wallet misses its server", |rpc| {
            let info = rpc.call("getinfo", &json!({}))?;
            if info["connected"] == false { Ok(()) } else { Err(info.to_string()) }
        });
    }

    /// Waits until the wallet has this balance: confirmed and unconfirmed.
    pub(crate) fn wait_balance(&mut self, confirmed: &str, unconfirmed: &str) {
        self.wait(&format!("the balance is {confirmed} and {unconfirmed} unconfirmed"), |rpc| {
            let balance = rpc.call("getbalance", &json!({}))?;
            let is = |name: &str, amount: &str| balance[name].as_str().unwrap_or("0") == amount;
            let is_there = is("confirmed", confirmed) && is("unconfirmed", unconfirmed);
            if is_there { Ok(()) } else { Err(balance.to_string()) }
        });
    }

    /// Waits until the history equals this one, in any order.
    pub(crate) fn wait_history(&mut self, expected: &[Entry]) {
        let numbers: Vec<i64> = expected.iter().map(|entry| entry.confirmations).collect();
        self.wait(&format!("the history has confirmations {numbers:?}"), |rpc| {
            let history = rpc.call("onchain_history", &json!({}))?;
            let listed = history["transactions"].as_array().cloned().unwrap_or_default();
            let entries: Vec<Entry> = listed.iter().map(Entry::of).collect();
            let is_same = entries.len() == expected.len()
                && expected.iter().all(|entry| entries.contains(entry));
            if is_same { Ok(()) } else { Err(format!("{entries:?}")) }
        });
    }

    pub(crate) fn stop(self) {
        self.rpc.must("stop", &json!({}));
    }
}

impl Entry {
    pub(crate) fn new(txid: &str, value: &str, confirmations: i64) -> Self {
        Self { txid: txid.to_owned(), value: value.to_owned(), confirmations }
    }

    fn of(listed: &Value) -> Self {
        let text = |name: &str| listed[name].as_str().unwrap_or_default().to_owned();
        Self {
            txid: text("txid"),
            value: text("bc_value"),
            // The wallet reports negative confirmations for transactions with unconfirmed parents.
            confirmations: listed["confirmations"].as_i64().unwrap_or(i64::MIN).max(0),
        }
    }
}
