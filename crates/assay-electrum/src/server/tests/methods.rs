//! Results of every method, and errors of wrong calls.

use serde_json::{Value, json};

use super::node::{ALICE, BOB, Client, Node, config, hash, hex, pay};
use crate::server::methods::METHODS;
use crate::server::protocol::Version;
use crate::server::{Config, Host};
use crate::testing::{coinbase, out, tx};

#[test]
fn versions_are_negotiated() {
    let node = Node::new();
    for (offer, agreed) in [
        (json!(["x", "1.4"]), "1.4"),
        (json!(["x", ["1.4", "1.6"]]), "1.6"),
        (json!(["x", ["1.4", "1.4.3"]]), "1.4.3"),
        (json!(["x", ["1.0", "2.0"]]), "1.7"),
        (json!([]), "1.4"),
        (json!(["x", ["1.4", "1.6"], "more", 9999.9]), "1.6"),
        (json!({"client_name": "x", "protocol_version": "1.6", "dd": {}}), "1.6"),
    ] {
        let mut client = node.client();
        let answer = client.call("server.version", &offer);
        assert_eq!(answer, json!([crate::server::protocol::SOFTWARE, agreed]), "{offer}");
        assert_eq!(client.error("server.version", &offer), 1);
        assert_eq!(client.call("server.banner", &json!([])), config().banner);
    }
    for offer in [json!(["x", "1.3"]), json!(["x", ["1.8", "1.9"]]), json!(["x", ["0.1", "1.2"]])] {
        let mut client = node.client();
        assert_eq!(client.error("server.version", &offer), 1);
        assert!(client.is_closed(), "{offer}");
    }
    // Without negotiation a client speaks the oldest version.
    let mut client = node.client();
    assert!(client.call("blockchain.block.headers", &json!([0, 1]))["hex"].is_string());
    assert_eq!(client.error("mempool.get_info", &json!([])), -32601);
}

#[test]
fn methods_exist_in_their_versions_only() {
    let node = Node::new();
    for version in ["1.4", "1.4.2", "1.6", "1.7"] {
        let mut client = node.client_of(version);
        for method in METHODS {
            let code = client.ask(method.name, &json!({"no such parameter": 1}));
            let known = METHODS.iter().any(|other| {
                other.name == method.name && other.is_in(Version::parse(version).unwrap())
            });
            let expected = match (known, method.name) {
                (true, "server.version") => 1,
                (true, _) => -32602,
                (false, _) => -32601,
            };
            assert_eq!(code["error"]["code"], expected, "{} in {version}", method.name);
        }
        assert_eq!(client.error("no.such.method", &json!([])), -32601);
        assert_eq!(client.error("", &json!([])), -32601);
    }
}

/// Methods without parameters, but the ping.
const NOTHING: &str = "blockchain.headers.subscribe blockchain.relayfee mempool. server.banner server.donation_address \
     server.features server.peers.subscribe";
const PACKAGES: &str =
    "blockchain.transaction.broadcast_package blockchain.transaction.testmempoolaccept";

/// Calls that must be rejected: methods, or beginnings of their names; the error code; and lists of parameters.
const WRONG_CALLS: [(&str, i64, &str); 33] = [
    ("blockchain.scripthash. blockchain.transaction.get", -32602, "[] [ID,1,1,1]"),
    ("blockchain.scripthash. blockchain.transaction.get", 1, r#"["00"] [7] [null] [[ID]] [ZZ]"#),
    ("blockchain.scriptpubkey.", -32602, r#"[] ["00","00"]"#),
    ("blockchain.scriptpubkey.", 1, r#"["0"] ["0x00"] [0] [null] [{}]"#),
    (NOTHING, -32602, r#"[1] {"x":1} "x""#),
    (PACKAGES, -32602, "[]"),
    (PACKAGES, 1, r#"["00"] [[]] [[1]] [["0"]] [MANY] [{}]"#),
    ("blockchain.transaction.broadcast_package", 1, r#"[["00"],"maybe"] [["00"]]"#),
    ("blockchain.transaction.testmempoolaccept", 2, r#"[["00"]]"#),
    ("blockchain.outpoint.", -32602, r#"[ID] [ID,1,"00",1]"#),
    ("blockchain.outpoint.", 1, r#"[ID,-1] [ID,"0"] [ID,4294967296] ["00",0]"#),
    ("blockchain.outpoint.subscribe blockchain.outpoint.get_status", 1, r#"[ID,0,5] [ID,0,"0"]"#),
    ("blockchain.block.header", -32602, "[] [1,2,3]"),
    (
        "blockchain.block.header",
        1,
        r#"["1"] [-1] [1.5] [1000000] [4294967295] [18446744073709551616.0]"#,
    ),
    ("blockchain.block.header", 1, r#"[5,4] [5,4294967295] [1,"x"]"#),
    ("blockchain.block.headers", -32602, "[] [1] [1,2,3,4]"),
    ("blockchain.block.headers", 1, "[-1,1] [1,-1] [1,null] [1,2,4294967295] [1,5,3] [true,5]"),
    ("blockchain.estimatefee", -32602, "[] [1,2,3]"),
    ("blockchain.estimatefee", 1, r#"[-1] ["1"]"#),
    ("blockchain.transaction.broadcast", -32602, r#"[] ["00","00"]"#),
    ("blockchain.transaction.broadcast", 1, r#"[""] ["0"] ["00"] [7] [["00"]]"#),
    ("blockchain.transaction.get", 2, "[ID]"),
    ("blockchain.transaction.get", 1, r#"[ID,"yes"] [ID,2]"#),
    ("blockchain.transaction.get_merkle", -32602, "[ID] [ID,1,2]"),
    ("blockchain.transaction.get_merkle", 1, r#"[ID,1] [ID,-1] [ID,"1"] ["00",1] [ID,4294967295]"#),
    ("blockchain.transaction.id_from_pos", -32602, "[1] [1,0,true,1]"),
    (
        "blockchain.transaction.id_from_pos",
        1,
        r#"[1,-1] [1,4294967295] [4294967295,0,true] [1,0,"x"] ["1",0]"#,
    ),
    ("server.add_peer", -32602, "[]"),
    ("server.add_peer", 1, "[1] [null]"),
    ("server.ping", -32602, r#"[1,"",2]"#),
    ("server.ping", 1, r#"[-1] [0,"x"] [0,1] [4294967295]"#),
    ("server.version", -32602, r#""x""#),
    ("server.version", 1, r#"[1] ["x",1.4] ["x","one"]"#),
];

fn wrong_calls(method: &str) -> Vec<(Value, i64)> {
    let is_meant = |name: &str| name == method || name.ends_with('.') && method.starts_with(name);
    let mut calls = Vec::new();
    for (names, code, params) in WRONG_CALLS {
        if names.split(' ').any(is_meant) {
            let params = params
                .replace("ID", &format!("\"{}\"", "00".repeat(32)))
                .replace("ZZ", &format!("\"{}\"", "zz".repeat(32)))
                .replace("MANY", &json!(vec!["00"; 26]).to_string());
            let params = serde_json::Deserializer::from_str(&params).into_iter::<Value>();
            calls.extend(params.map(|params| (params.unwrap(), code)));
        }
    }
    calls
}

#[test]
fn wrong_calls_return_protocol_errors() {
    let node = Node::new();
    for method in METHODS {
        let wrong = wrong_calls(method.name);
        assert!(wrong.len() >= 3, "{}", method.name);
        for version in ["1.4.2", "1.6", "1.7"] {
            if !method.is_in(Version::parse(version).unwrap()) {
                continue;
            }
            let mut client = if method.name == "server.version" {
                node.client()
            } else {
                node.client_of(version)
            };
            for (params, code) in &wrong {
                // Before 1.7 a ping has no parameters.
                let code =
                    if method.name == "server.ping" && version != "1.7" { -32602 } else { *code };
                assert_eq!(
                    client.error(method.name, params),
                    code,
                    "{}{params} {version}",
                    method.name
                );
            }
            client.call("server.banner", &json!([]));
        }
    }
}

#[test]
fn unpublished_state_is_an_error() {
    let node = Node::empty(config());
    let mut client = node.client_of("1.6");
    let id = "00".repeat(32);
    for (method, params) in [
        ("blockchain.headers.subscribe", json!([])),
        ("blockchain.scripthash.subscribe", json!([id])),
        ("blockchain.scripthash.get_history", json!([id])),
        ("blockchain.block.header", json!([0])),
        ("blockchain.transaction.get", json!([id])),
        ("mempool.get_fee_histogram", json!([])),
        ("server.features", json!([])),
    ] {
        assert_eq!(client.error(method, &params), 2, "{method}");
    }
    assert_eq!(client.call("server.ping", &json!([])), Value::Null);
}

#[test]
fn headers_are_served_in_both_forms() {
    let node = Node::new();
    let header = |height: usize| hex(&node.blocks[height].header.to_bytes());
    let mut old = node.client_of("1.4");
    let mut new = node.client_of("1.6");
    assert_eq!(old.call("blockchain.block.header", &json!([3])), header(3));
    let both = header(8) + &header(9);
    assert_eq!(
        old.call("blockchain.block.headers", &json!([8, 100])),
        json!({"count": 2, "hex": both, "max": 2016})
    );
    assert_eq!(
        new.call("blockchain.block.headers", &json!([8, 100])),
        json!({"count": 2, "headers": [header(8), header(9)], "max": 2016})
    );
    for params in [json!([10, 5]), json!([3, 0]), json!([u32::MAX, 5]), json!([3, 0, 5])] {
        assert_eq!(
            new.call("blockchain.block.headers", &params),
            json!({"count": 0, "headers": [], "max": 2016})
        );
    }
    assert_eq!(
        new.call("blockchain.headers.subscribe", &json!([])),
        json!({"height": 9, "hex": header(9)})
    );
}

#[test]
fn scripts_have_history_balance_and_outputs() {
    let mut node = Node::new();
    let first = pay(&node, 1, &[(30, BOB), (15, ALICE), (4, BOB)]);
    let id = first.view().txid().to_string();
    let mut clients = [node.client_of("1.4"), node.client_of("1.7")];
    node.accept(&first, 1);
    let second = tx(&[out(&first, 2)], &[(3, BOB)], 1);
    let next = second.view().txid().to_string();
    node.accept(&second, 1);
    let listed = json!([
        {"fee": 1, "height": 0, "tx_hash": id},
        {"fee": 1, "height": -1, "tx_hash": next},
    ]);
    check(&mut clients, "get_mempool", "history", &listed);
    check(&mut clients, "get_history", "history", &listed);
    check(&mut clients, "get_balance", "", &json!({"confirmed": 0, "unconfirmed": 33}));
    let mut unspent = [
        json!({"height": 0, "tx_hash": id, "tx_pos": 0, "value": 30}),
        json!({"height": 0, "tx_hash": next, "tx_pos": 0, "value": 3}),
    ];
    unspent.sort_by_key(|output| internal(output["tx_hash"].as_str().unwrap()));
    check(&mut clients, "listunspent", "utxos", &json!(unspent));
    node.mine(vec![first.clone()]);
    let listed = json!([
        {"height": 10, "tx_hash": id},
        {"fee": 1, "height": 0, "tx_hash": next},
    ]);
    check(&mut clients, "get_history", "history", &listed);
    check(&mut clients, "get_balance", "", &json!({"confirmed": 34, "unconfirmed": -1}));
    let unspent = json!([
        {"height": 10, "tx_hash": id, "tx_pos": 0, "value": 30},
        {"height": 0, "tx_hash": next, "tx_pos": 0, "value": 3},
    ]);
    check(&mut clients, "listunspent", "utxos", &unspent);
    node.mine(vec![second]);
    check(&mut clients, "get_mempool", "history", &json!([]));
    check(&mut clients, "get_balance", "", &json!({"confirmed": 33, "unconfirmed": 0}));
    // Transactions are served from both, too.
    for client in &mut clients {
        assert_eq!(client.call("blockchain.transaction.get", &json!([id])), hex(first.bytes()));
    }
}

fn internal(txid: &str) -> [u8; 32] {
    txid.parse::<assay_wire::Txid>().unwrap().0
}

/// Queries Bob's script by hash and by script; the latter wraps lists.
fn check(
    clients: &mut [Client<std::net::TcpStream>; 2],
    method: &str,
    member: &str,
    expected: &Value,
) {
    let by_hash = clients[0].call(&format!("blockchain.scripthash.{method}"), &json!([hash(BOB)]));
    assert_eq!(by_hash, *expected, "{method}");
    let by_script =
        clients[1].call(&format!("blockchain.scriptpubkey.{method}"), &json!([hex(BOB)]));
    let by_script = if member.is_empty() { by_script } else { by_script[member].clone() };
    assert_eq!(by_script, *expected, "{method}");
}

#[test]
fn rejects_histories_beyond_the_limit() {
    let limits = crate::server::Limits { entries_max: 5, ..Default::default() };
    let node = Node::with(Config { limits, ..config() });
    for (version, code, family, key) in
        [("1.6", 1, "scripthash", hash(ALICE)), ("1.7", 10_001, "scriptpubkey", hex(ALICE))]
    {
        let mut client = node.client_of(version);
        for method in ["get_history", "listunspent", "subscribe"] {
            let method = format!("blockchain.{family}.{method}");
            let answer = client.ask(&method, &json!([key]));
            assert_eq!(answer["error"]["code"], code, "{answer}");
            assert!(answer["error"]["message"].as_str().unwrap().contains("history too large"));
        }
        let balance = client.call(&format!("blockchain.{family}.get_balance"), &json!([key]));
        assert_eq!(balance["confirmed"], 500);
    }
    assert!(node.publisher.watched().is_empty());
}

#[test]
fn transactions_are_described() {
    let mut node = Node::new();
    let paid = pay(&node, 1, &[(123_456_789, BOB)]);
    let id = paid.view().txid().to_string();
    node.accept(&paid, 1);
    let mut client = node.client_of("1.6");
    let verbose = client.call("blockchain.transaction.get", &json!([id, true]));
    assert_eq!(verbose["txid"], id);
    assert_eq!(verbose["hex"], hex(paid.bytes()));
    assert_eq!(verbose["vout"][0]["value"], 1.23456789);
    assert_eq!(verbose["vin"][0]["txid"], node.coinbase(1).view().txid().to_string());
    assert!(verbose.get("confirmations").is_none());
    node.mine(vec![paid]);
    node.mine(Vec::new());
    let verbose =
        client.call("blockchain.transaction.get", &json!({"verbose": true, "tx_hash": id}));
    assert_eq!(verbose["confirmations"], 2);
    assert_eq!(verbose["blockhash"], node.blocks[10].hash.to_string());
    assert_eq!(verbose["blocktime"], 1_700_000_000);
    let first = node.coinbase(10).view().txid().to_string();
    let verbose = client.call("blockchain.transaction.get", &json!([first, 1]));
    assert!(verbose["vin"][0]["coinbase"].is_string());
}

#[test]
fn transactions_are_sent() {
    let node = Node::new();
    let parent = pay(&node, 1, &[(30, BOB), (5, BOB)]);
    let child = tx(&[out(&parent, 0)], &[(20, BOB)], 1);
    let lone = pay(&node, 2, &[(30, BOB)]);
    let bad = coinbase(&[(1, BOB)], 5);
    let id = |tx: &assay_wire::Transaction| tx.view().txid().to_string();
    let raw = |tx: &assay_wire::Transaction| hex(tx.bytes());
    let mut client = node.client_of("1.7");
    let send = "blockchain.transaction.broadcast";
    assert_eq!(client.call(send, &json!([raw(&parent)])), id(&parent));
    assert_eq!(*node.chain.sent.lock(), [parent.view().txid()]);
    let refused = client.ask(send, &json!([raw(&bad)]));
    assert_eq!(refused["error"]["code"], 1);
    assert!(refused["error"]["message"].as_str().unwrap().contains("coinbase"), "{refused}");
    let package = "blockchain.transaction.broadcast_package";
    let good = json!([[raw(&parent), raw(&child)]]);
    assert_eq!(client.call(package, &good), json!({"success": true}));
    let verbose = client.call(package, &json!([[raw(&parent), raw(&child)], true]));
    assert_eq!(verbose["package_msg"], "success");
    assert_eq!(verbose["tx-results"][child.view().wtxid().to_string()]["txid"], id(&child));
    for wrong in [
        json!([[raw(&child), raw(&parent)]]),
        json!([[raw(&lone), raw(&child)]]),
        json!([[raw(&parent), raw(&parent)]]),
        json!([[raw(&parent), raw(&child), raw(&lone)]]),
    ] {
        assert_eq!(client.error(package, &wrong), 1);
    }
    let half = tx(&[out(&bad, 0), out(&parent, 1)], &[(1, BOB)], 3);
    let answer = client.call(package, &json!([[raw(&bad), raw(&parent), raw(&half)]]));
    assert_eq!(
        answer,
        json!({"success": false, "errors": [{"txid": id(&bad), "error": "coinbase"}]})
    );
    let test =
        client.call("blockchain.transaction.testmempoolaccept", &json!([[raw(&lone), raw(&bad)]]));
    assert_eq!(
        test[0],
        json!({"txid": id(&lone), "wtxid": lone.view().wtxid().to_string(), "allowed": true})
    );
    assert_eq!((&test[1]["allowed"], &test[1]["reason"]), (&json!(false), &json!("coinbase")));
}

#[test]
fn the_mempool_is_summed_up() {
    let mut node = Node::new();
    let mut client = node.client_of("1.7");
    assert_eq!(client.call("mempool.get_fee_histogram", &json!([])), json!([]));
    assert_eq!(client.call("mempool.recent", &json!([])), json!([]));
    assert_eq!(client.call("blockchain.estimatefee", &json!([2])), -1);
    let script = vec![1; 150_000];
    let large = pay(&node, 1, &[(30, &script)]);
    let size = large.view().total_size();
    node.accept(&large, i64::try_from(size).unwrap() * 5);
    let small = pay(&node, 2, &[(30, BOB)]);
    node.accept(&small, 7);
    assert_eq!(client.call("mempool.get_fee_histogram", &json!([])), json!([[5.0, size]]));
    let recent = client.call("mempool.recent", &json!([]));
    assert_eq!(recent[0]["txid"], small.view().txid().to_string());
    assert_eq!((&recent[0]["fee"], &recent[1]["vsize"]), (&json!(7), &json!(size)));
    // Everything fits into a block: the floor of the mempool.
    assert_eq!(client.call("blockchain.estimatefee", &json!([1])), 0.00001234);
    assert_eq!(client.call("blockchain.estimatefee", &json!([1, "Economical"])), 0.00001234);
    assert_eq!(client.error("blockchain.estimatefee", &json!([1, "cheap"])), 1);
    let info = json!({"mempoolminfee": 0.00001234, "minrelaytxfee": 0.000001, "incrementalrelayfee": 0.000001});
    assert_eq!(client.call("mempool.get_info", &json!([])), info);
    assert_eq!(node.client_of("1.4").call("blockchain.relayfee", &json!([])), 0.000001);
}

#[test]
fn server_info_methods() {
    let host = Host { name: "h\"x".to_owned(), tcp_port: Some(1), ssl_port: Some(2) };
    let other = Host { name: "o".to_owned(), tcp_port: None, ssl_port: None };
    let donation_address = "1abc".to_owned();
    let node = Node::with(Config { hosts: vec![host, other], donation_address, ..config() });
    let mut old = node.client_of("1.6");
    let features = old.call("server.features", &json!([]));
    let expected = json!({
        "hosts": {"h\"x": {"tcp_port": 1, "ssl_port": 2}, "o": {}},
        "pruning": null,
        "server_version": crate::server::protocol::SOFTWARE,
        "protocol_min": "1.4",
        "protocol_max": "1.7",
        "genesis_hash": node.blocks[0].hash.to_string(),
        "hash_function": "sha256",
    });
    assert_eq!(features, expected);
    assert_eq!(old.call("server.donation_address", &json!([])), "1abc");
    assert_eq!(old.call("server.peers.subscribe", &json!([])), json!([]));
    assert_eq!(old.call("server.add_peer", &json!([{}])), false);
    assert_eq!(old.call("server.ping", &json!([])), Value::Null);
    let mut new = node.client_of("1.7");
    assert!(new.call("server.features", &json!([])).get("hash_function").is_none());
    assert_eq!(new.call("server.ping", &json!([])), json!({"data": ""}));
    assert_eq!(new.call("server.ping", &json!([3, "abc"])), json!({"data": "000"}));
    // A notification gets no response.
    new.send(r#"{"jsonrpc":"2.0","method":"server.ping","params":["00"]}"#);
    assert_eq!(new.call("server.ping", &json!([1])), json!({"data": "0"}));
}

#[test]
fn batches_are_answered_in_order() {
    let node = Node::new();
    let mut client = node.client_of("1.6");
    client.send(
        r#"[{"id":1,"method":"server.ping"},{"id":"b","method":"nope"},7,{"method":"server.ping"},
           {"id":3,"method":"blockchain.block.header","params":[0]}]"#
            .replace('\n', " ")
            .as_str(),
    );
    let answer = client.line();
    let items = answer.as_array().unwrap();
    assert_eq!(items.len(), 4);
    assert_eq!(items[0], json!({"jsonrpc": "2.0", "id": 1, "result": null}));
    assert_eq!((&items[1]["id"], &items[1]["error"]["code"]), (&json!("b"), &json!(-32601)));
    assert_eq!((&items[2]["id"], &items[2]["error"]["code"]), (&Value::Null, &json!(-32600)));
    assert_eq!(items[3]["result"], hex(&node.blocks[0].header.to_bytes()));
    // Only notifications: no response at all.
    client.send(r#"[{"method":"server.ping"},{"method":"nope"}]"#);
    client.call("server.ping", &json!([]));
    client.send("[]");
    assert_eq!(client.line()["error"]["code"], -32600);
    client.send(&json!(vec![json!({"id": 1, "method": "server.ping"}); 1001]).to_string());
    assert_eq!(client.line()["error"]["code"], -32600);
}

#[test]
fn worker_and_receiving_thread_respond_alike() {
    let mut node = Node::new();
    let confirmed = pay(&node, 1, &[(20, ALICE), (25, BOB)]);
    node.mine(vec![confirmed.clone()]);
    let unconfirmed = pay(&node, 2, &[(40, BOB)]);
    node.accept(&unconfirmed, 10);
    let id = |tx: &assay_wire::Transaction| tx.view().txid().to_string();
    let mut calls = vec![
        ("blockchain.block.header", json!([3])),
        ("blockchain.block.header", json!([3, 8])),
        ("blockchain.block.header", json!([300])),
        ("blockchain.block.headers", json!([0, 5])),
        ("blockchain.block.headers", json!([2, 2000])),
        ("blockchain.estimatefee", json!([2])),
        ("blockchain.estimatefee", json!([2, "NOTHING"])),
        ("blockchain.transaction.get", json!([id(&confirmed)])),
        ("blockchain.transaction.get", json!([id(&confirmed), true])),
        ("blockchain.transaction.get", json!([id(&unconfirmed)])),
        ("blockchain.transaction.get", json!(["11".repeat(32)])),
        ("blockchain.transaction.get_merkle", json!([id(&confirmed), 10])),
        ("blockchain.transaction.get_merkle", json!([id(&confirmed), 9])),
        ("blockchain.transaction.id_from_pos", json!([10, 1])),
        ("blockchain.transaction.id_from_pos", json!([10, 1, true])),
        ("blockchain.transaction.id_from_pos", json!([10, 7])),
        ("mempool.get_info", json!([])),
        ("server.features", json!([])),
    ];
    for script in [ALICE, BOB, b"nobody"] {
        for method in ["get_balance", "get_history", "get_mempool", "listunspent"] {
            calls.push((method, json!([hash(script)])));
        }
    }
    let mut client = node.client_of("1.6");
    for (method, params) in calls {
        let method = match method {
            "get_balance" | "get_history" | "get_mempool" | "listunspent" => {
                format!("blockchain.scripthash.{method}")
            }
            method => method.to_owned(),
        };
        // Batches always go to a worker.
        let request = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        for _ in 0..2 {
            client.send(&request.to_string());
            let here = client.line();
            client.send(&json!([request]).to_string());
            assert_eq!(client.line(), json!([here]), "{request}");
            assert_eq!(here["id"], 7);
        }
    }
}
