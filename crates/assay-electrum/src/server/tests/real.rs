//! The server on a real index that grows and reorganises.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use assay_hash::sha256;
use assay_store::io::SimIo;
use serde_json::{Value, json};

use super::node::{Client, config, hex};
use crate::chain::Chain;
use crate::follow::Follower;
use crate::index::fixture::{Random, TestBlock, branches};
use crate::index::{Index, IndexConfig, ScriptHash};
use crate::server::Server;
use crate::testing::FakeChain;

/// Reference status of every script, computed per the protocol specification.
fn statuses(chain: &[TestBlock]) -> HashMap<String, Value> {
    let history = &chain.last().unwrap().after.history;
    let status = |script: &ScriptHash| {
        let entries = history.get(script).map_or(&[][..], Vec::as_slice);
        let lines: Vec<String> =
            entries.iter().map(|entry| format!("{}:{}:", entry.txid, entry.height)).collect();
        let text = lines.concat();
        if text.is_empty() { Value::Null } else { json!(hex(&sha256(text.as_bytes()))) }
    };
    history.keys().map(|script| (script.to_string(), status(script))).collect()
}

#[test]
fn subscribers_converge_across_reorgs() {
    let mut random = Random(11);
    let branches = branches(&mut random, 30, true);
    let genesis = branches[0][0].block().hash();
    let mut options = IndexConfig::new("index", genesis);
    options.memory_bytes_max = 3000;
    let io = SimIo::new();
    let index = Arc::new(Index::open(options, Arc::new(io.clone())).unwrap());
    let node = Arc::new(FakeChain::default());
    let set = |chain: &[TestBlock]| {
        node.set(chain.iter().map(|made| (made.raw.clone(), made.undo.clone())));
    };
    set(&branches[0]);
    let chain: Arc<dyn Chain> = Arc::clone(&node) as _;
    let server = Server::start(config(), Arc::clone(&chain)).unwrap();
    let follower = Follower::start(index, chain, server.publisher(), 2).unwrap();
    let connect = || {
        let stream = std::net::TcpStream::connect(server.addresses().tcp[0]).unwrap();
        let mut client = Client::new(stream);
        client.call("server.version", &json!(["t", "1.6"]));
        client
    };
    let mut client = connect();
    let mut told: HashMap<String, Value> = HashMap::new();
    for (number, chain) in branches.iter().enumerate() {
        // Every other chain is read by workers alone.
        io.set_cached(number % 2 == 0);
        set(chain);
        let deadline = Instant::now() + Duration::from_secs(20);
        let tip = hex(&chain.last().unwrap().block().header().to_bytes());
        while client.ask("blockchain.headers.subscribe", &json!([]))["result"]["hex"] != tip {
            assert!(Instant::now() < deadline, "the follower does not reach branch {number}");
            std::thread::sleep(Duration::from_millis(1));
        }
        let expected = statuses(chain);
        for script in expected.keys() {
            if !told.contains_key(script) {
                let status = client.call("blockchain.scripthash.subscribe", &json!([script]));
                told.insert(script.clone(), status);
            }
        }
        // Scripts of disconnected branches have no history.
        loop {
            client.call("server.ping", &json!([]));
            let scripts = |line: &Value| line["method"] == "blockchain.scripthash.subscribe";
            for line in client.notifications.drain(..).filter(scripts) {
                told.insert(
                    line["params"][0].as_str().unwrap().to_owned(),
                    line["params"][1].clone(),
                );
            }
            let wrong = told.iter().filter(|(script, status)| {
                expected.get(*script).unwrap_or(&Value::Null) != *status
            });
            let wrong = wrong.count();
            if wrong == 0 {
                break;
            }
            assert!(Instant::now() < deadline, "{wrong} of {} are wrong", told.len());
        }
        // A later client gets the same statuses, and histories match.
        let mut other = connect();
        for (script, status) in expected.iter().take(20) {
            let fresh = other.call("blockchain.scripthash.subscribe", &json!([script]));
            assert_eq!(fresh, *status);
            let history = other.call("blockchain.scripthash.get_history", &json!([script]));
            let model =
                &chain.last().unwrap().after.history[&script.parse::<ScriptHash>().unwrap()];
            let listed: Vec<Value> = model
                .iter()
                .map(|e| json!({"height": e.height, "tx_hash": e.txid.to_string()}))
                .collect();
            assert_eq!(history, json!(listed));
        }
    }
    assert!(branches.len() > 2);
    node.stop();
    follower.join();
}
