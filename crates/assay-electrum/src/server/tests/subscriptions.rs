//! Notifications: recipients and order.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::{Value, json};

use super::node::{ALICE, BOB, CAROL, Node, config, hash, hex, pay};
use crate::follow::Touched;
use crate::server::Limits;
use crate::testing::{out, tx};

#[test]
fn statuses_are_those_of_the_specification() {
    let mut node = Node::new();
    let mut client = node.client_of("1.6");
    let subscribe = "blockchain.scripthash.subscribe";
    assert_eq!(client.call(subscribe, &json!([hash(ALICE)])), node.status(ALICE));
    assert_eq!(client.call(subscribe, &json!([hash(BOB)])), Value::Null);
    // A payment, then one that spends it.
    let first = pay(&node, 1, &[(30, BOB), (15, ALICE)]);
    node.accept(&first, 5);
    let told = [client.notification(), client.notification()];
    for script in [ALICE, BOB] {
        let params = json!([hash(script), node.status(script)]);
        assert!(told.iter().any(|line| line["params"] == params && line["method"] == subscribe));
    }
    let second = tx(&[out(&first, 0)], &[(29, CAROL)], 1);
    node.accept(&second, 1);
    assert_eq!(client.notification()["params"], json!([hash(BOB), node.status(BOB)]));
    assert_eq!(client.call(subscribe, &json!([hash(CAROL)])), node.status(CAROL));
    // The first is confirmed: the height of the second changes from -1 to 0, which affects Carol too.
    node.mine(vec![first]);
    let told: Vec<Value> = (0..3).map(|_| client.notification()["params"].take()).collect();
    for script in [ALICE, BOB, CAROL] {
        assert!(told.contains(&json!([hash(script), node.status(script)])), "{told:?}");
    }
    node.mine(vec![second]);
    for _ in 0..3 {
        client.notification();
    }
    for script in [ALICE, BOB, CAROL] {
        assert_eq!(client.call(subscribe, &json!([hash(script)])), node.status(script));
    }
    assert!(client.notifications.is_empty(), "{:?}", client.notifications);
}

#[test]
fn reorg_is_notified() {
    let mut node = Node::new();
    let mut client = node.client_of("1.4.2");
    let subscribe = "blockchain.scripthash.subscribe";
    let paid = pay(&node, 1, &[(30, BOB)]);
    node.mine(vec![paid]);
    let status = client.call(subscribe, &json!([hash(BOB)]));
    assert_eq!(status, node.status(BOB));
    let header = client.call("blockchain.headers.subscribe", &json!([]));
    assert_eq!(header["height"], 10);
    node.reorganise(2, Vec::new());
    let line = client.notification();
    assert_eq!(line["method"], "blockchain.headers.subscribe");
    assert_eq!(line["params"][0]["height"], 11);
    let tip = node.blocks.last().unwrap().header.to_bytes();
    assert_eq!(line["params"][0]["hex"], hex(&tip));
    assert_eq!(client.notification()["params"], json!([hash(BOB), null]));
    assert!(client.call("blockchain.scripthash.unsubscribe", &json!([hash(BOB)])) == true);
    assert!(client.call("blockchain.scripthash.unsubscribe", &json!([hash(BOB)])) == false);
    assert!(node.publisher.watched().is_empty());
    // Now only the header is notified.
    let paid = pay(&node, 1, &[(30, BOB)]);
    node.mine(vec![paid]);
    assert_eq!(client.notification()["params"][0]["height"], 12);
    client.call("server.ping", &json!([]));
    assert!(client.notifications.is_empty());
}

#[test]
fn outpoints_are_followed_from_nothing_to_their_spender() {
    let mut node = Node::new();
    let mut client = node.client_of("1.7");
    let first = pay(&node, 1, &[(30, BOB)]);
    let second = tx(&[out(&first, 0)], &[(29, CAROL)], 1);
    let (a, b) = (first.view().txid().to_string(), second.view().txid().to_string());
    let subscribe = "blockchain.outpoint.subscribe";
    // One with a script hint, one without transaction and script.
    assert_eq!(client.call(subscribe, &json!([a, 0, hex(BOB)])), json!({}));
    assert_eq!(client.call(subscribe, &json!([b, 0])), json!({}));
    node.accept(&first, 20);
    let line = client.notification();
    assert_eq!(line["method"], subscribe);
    assert_eq!(line["params"], json!([a, 0, {"funder_height": 0}]));
    node.accept(&second, 1);
    let told = [client.notification()["params"].take(), client.notification()["params"].take()];
    assert!(
        told.contains(
            &json!([a, 0, {"funder_height": 0, "spender_txhash": b, "spender_height": -1}])
        )
    );
    assert!(told.contains(&json!([b, 0, {"funder_height": -1}])));
    node.mine(vec![first]);
    let told = [client.notification()["params"].take(), client.notification()["params"].take()];
    let half = json!({"funder_height": 10, "spender_txhash": b, "spender_height": 0});
    assert!(
        told.contains(&json!([a, 0, half])) && told.contains(&json!([b, 0, {"funder_height": 0}]))
    );
    node.mine(vec![second]);
    let told = [client.notification()["params"].take(), client.notification()["params"].take()];
    let whole = json!({"funder_height": 10, "spender_txhash": b, "spender_height": 11});
    assert!(told.contains(&json!([a, 0, whole])), "{told:?}");
    assert_eq!(client.call("blockchain.outpoint.get_status", &json!([a, 0])), whole);
    assert_eq!(client.call("blockchain.outpoint.get_status", &json!([a, 1])), json!({}));
    assert!(client.call("blockchain.outpoint.unsubscribe", &json!([a, 0])) == true);
    assert!(client.call("blockchain.outpoint.unsubscribe", &json!([a, 0])) == false);
    assert!(client.call("blockchain.outpoint.unsubscribe", &json!([b, 0])) == true);
    assert!(node.publisher.watched().is_empty());
}

/// During initial sync the mempool of a view is not known yet.
#[test]
fn view_without_mempool_has_each_transaction_once() {
    let mut node = Node::new();
    let mut client = node.client_of("1.6");
    let (mined, kept) = (pay(&node, 1, &[(30, BOB)]), pay(&node, 2, &[(31, BOB)]));
    node.accept(&mined, 20);
    node.accept(&kept, 19);
    let heights = |client: &mut super::node::Client<std::net::TcpStream>| -> Vec<i64> {
        let history = client.call("blockchain.scripthash.get_history", &json!([hash(BOB)]));
        history.as_array().unwrap().iter().map(|e| e["height"].as_i64().unwrap()).collect()
    };
    assert_eq!(heights(&mut client), [0, 0]);
    node.extend(vec![mined]);
    node.publisher.publish(node.view(), None, Touched::default(), false).unwrap();
    assert_eq!(heights(&mut client), [10, 0]);
    let unspent = client.call("blockchain.scripthash.listunspent", &json!([hash(BOB)]));
    assert_eq!(unspent.as_array().unwrap().len(), 2);
    // One block less, and the fate of its transactions is unknown: the published state stays.
    node.rewind(1);
    node.publisher.publish(node.view(), None, Touched::default(), true).unwrap();
    let published = node.server.shared.published.read(|snapshot, pool| (snapshot.tip, pool.len()));
    let (tip, pooled) = published.unwrap();
    assert_eq!((tip.height, pooled), (10, 1));
    node.publish_from_scratch();
    assert_eq!(heights(&mut client), [0, 0]);
}

#[test]
fn protocol_1_7_names_scripts_and_notifies_by_that_name() {
    let mut node = Node::new();
    let mut client = node.client_of("1.7");
    let status = client.call("blockchain.scriptpubkey.subscribe", &json!([hex(BOB)]));
    assert_eq!(status, Value::Null);
    let paid = pay(&node, 1, &[(30, BOB)]);
    node.accept(&paid, 20);
    let line = client.notification();
    assert_eq!(line["method"], "blockchain.scriptpubkey.subscribe");
    assert_eq!(line["params"], json!([hash(BOB), node.status(BOB)]));
}

#[test]
fn disconnected_clients_are_removed() {
    let node = Node::new();
    let mut client = node.client_of("1.7");
    client.call("blockchain.scriptpubkey.subscribe", &json!([hex(BOB)]));
    client.call("blockchain.outpoint.subscribe", &json!(["00".repeat(32), 1]));
    client.call("blockchain.headers.subscribe", &json!([]));
    assert!(node.server.metrics().contains("assay_electrum_subscriptions 2\n"));
    drop(client);
    node.wait_for("assay_electrum_clients 0\n");
    let metrics = node.server.metrics();
    for name in ["subscriptions", "header_subscriptions", "watched_scripts", "watched_outpoints"] {
        assert!(metrics.contains(&format!("assay_electrum_{name} 0\n")), "{name}: {metrics}");
    }
}

#[test]
fn subscriptions_have_limits() {
    let limits = Limits { subscriptions_max: 2, subscriptions_total_max: 3, ..Limits::default() };
    let node = Node::with(crate::server::Config { limits, ..config() });
    let subscribe = "blockchain.scripthash.subscribe";
    let (mut one, mut two) = (node.client_of("1.6"), node.client_of("1.6"));
    for n in [b"1", b"2", b"2"] {
        one.call(subscribe, &json!([hash(n)]));
    }
    assert_eq!(one.error(subscribe, &json!([hash(b"3")])), -101);
    two.call(subscribe, &json!([hash(b"1")]));
    assert_eq!(two.error(subscribe, &json!([hash(b"2")])), -101);
    one.call("blockchain.scripthash.unsubscribe", &json!([hash(b"1")]));
    two.call(subscribe, &json!([hash(b"2")]));
}

/// Clients come and go while payments arrive; the final status of those left matches their last response or notification.
#[test]
fn last_notification_matches_status() {
    let mut node = Node::new();
    let done = Arc::new(AtomicBool::new(false));
    let address = node.address();
    let clients: Vec<_> = (0..8)
        .map(|n| {
            let done = Arc::clone(&done);
            thread::spawn(move || {
                let (mut last, mut before) = (Value::Null, 0);
                let mut client =
                    super::node::Client::new(std::net::TcpStream::connect(address).unwrap());
                client.call("server.version", &json!(["t", "1.6"]));
                for round in 0.. {
                    last = client.call("blockchain.scripthash.subscribe", &json!([hash(BOB)]));
                    before = client.notifications.len();
                    if n % 2 == 0 && round < 50 {
                        client.call("blockchain.scripthash.unsubscribe", &json!([hash(BOB)]));
                    } else if n % 2 == 1 && round < 50 {
                        client.call("server.ping", &json!([]));
                    } else {
                        break;
                    }
                }
                while !done.load(Ordering::Acquire) {
                    thread::yield_now();
                }
                // All notifications sent so far precede this response.
                client.call("server.ping", &json!([]));
                match client.notifications.split_off(before).pop() {
                    Some(mut line) => line["params"][1].take(),
                    None => last,
                }
            })
        })
        .collect();
    for height in 0..9 {
        let paid = pay(&node, height, &[(30 + height as i64, BOB)]);
        node.accept(&paid, 1);
        if height % 3 == 2 {
            node.mine(vec![paid]);
        }
    }
    // Changes are processed in order: after Carol's third notification all clients have the second.
    let mut watcher = node.client_of("1.6");
    watcher.call("blockchain.scripthash.subscribe", &json!([hash(CAROL)]));
    let paid = pay(&node, 9, &[(1, CAROL), (1, BOB)]);
    node.accept(&paid, 1);
    watcher.notification();
    let next = tx(&[out(&paid, 0)], &[(1, CAROL)], 0);
    node.accept(&next, 1);
    watcher.notification();
    done.store(true, Ordering::Release);
    for client in clients {
        assert_eq!(client.join().unwrap(), node.status(BOB));
    }
}

#[test]
fn notifies_many_clients_with_many_subscriptions() {
    const CLIENTS: usize = 40;
    const EACH: usize = 20;
    let mut node = Node::new();
    let mut all: Vec<_> = (0..CLIENTS).map(|_| node.client_of("1.6")).collect();
    for (number, client) in all.iter_mut().enumerate() {
        let requests: Vec<Value> = (0..EACH)
            .map(|n| {
                // One script common to all, others watched by few.
                let script = if n == 0 {
                    hash(BOB)
                } else {
                    hash(format!("{}", number * EACH + n).as_bytes())
                };
                json!({"id": n, "method": "blockchain.scripthash.subscribe", "params": [script]})
            })
            .collect();
        client.send(&json!(requests).to_string());
    }
    for client in &mut all {
        assert_eq!(client.line().as_array().unwrap().len(), EACH);
    }
    let paid = pay(&node, 1, &[(30, BOB)]);
    node.accept(&paid, 20);
    let expected = json!([hash(BOB), node.status(BOB)]);
    for client in &mut all {
        assert_eq!(client.notification()["params"], expected);
    }
}
