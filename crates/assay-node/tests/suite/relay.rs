//! Transaction relay over sockets.

use assay_node::{NodeConfig, P2pConfig};
use assay_wire::Transaction;
use assay_wire::p2p::{Command, Inventory, InventoryKind, Message};
use serde_json::{Value, json};

use crate::chain::spend;
use crate::node::Fixture;
use crate::p2p::{Client, inventory, serving};
use crate::sync::wait_for;

/// Trusted peers get announcements at once, and their transactions are requested without delay.
fn trusting(p2p: &mut P2pConfig) {
    p2p.whitelist = vec!["noban,in,out@127.0.0.1".to_owned()];
}

fn node() -> Fixture {
    let node = serving(130, trusting);
    node.set_clock_to_tip();
    node
}

fn mempool(node: &mut Fixture) -> Vec<String> {
    let txids = node.call("getrawmempool", &json!([]));
    txids.as_array().unwrap().iter().map(|txid| txid.as_str().unwrap().to_owned()).collect()
}

#[track_caller]
fn wait_until(node: &mut Fixture, what: &str, is_reached: impl Fn(&mut Fixture) -> bool) {
    wait_for(what, || is_reached(node));
}

fn txid(tx: &Transaction) -> String {
    tx.view().txid().to_string()
}

fn named(kind: InventoryKind, tx: &Transaction) -> Inventory {
    let view = tx.view();
    let hash = if kind == InventoryKind::WTX { view.wtxid().0 } else { view.txid().0 };
    Inventory { kind, hash }
}

/// Announces a transaction and sends it on request.
fn offer(peer: &mut Client, tx: &Transaction) {
    peer.send(&Message::Inv([named(InventoryKind::TX, tx)][..].into()));
    give(peer, tx);
}

/// Sends a transaction on request.
#[track_caller]
fn give(peer: &mut Client, tx: &Transaction) {
    let asked = peer.expect_past("getdata");
    let Ok(Message::GetData(entries)) = Message::parse(Command::new("getdata"), &asked) else {
        panic!("{asked:?}");
    };
    assert_eq!(entries.get(0).map(|entry| entry.hash), Some(tx.view().txid().0));
    peer.send(&Message::Tx(tx.bytes()));
}

#[test]
fn relays_transactions() {
    let mut first = node();
    let address = first.p2p_address().to_string();
    let mut second = Fixture::new().restart(|config: &mut NodeConfig| {
        let mut p2p = P2pConfig::new("127.0.0.1:0".parse().unwrap());
        trusting(&mut p2p);
        p2p.connect = Some(vec![address.clone()]);
        config.p2p = Some(p2p);
    });
    let height = |node: &mut Fixture| node.call("getblockcount", &json!([]));
    wait_until(&mut second, "the chain", |node| height(node) == 130);
    second.set_clock_to_tip();
    // During IBD it wanted no transactions.
    let wanted =
        |node: &mut Fixture| node.call("getpeerinfo", &json!([]))[0]["minfeefilter"].clone();
    wait_until(&mut first, "the fee filter", |node| wanted(node).as_f64().unwrap() < 0.01);
    let tx = first.spend_coinbase(1, &[4_999_990_000]);
    first.call("sendrawtransaction", &json!([faster_hex::hex_string(tx.bytes())]));
    wait_until(&mut second, "the transaction", |node| mempool(node) == [txid(&tx)]);
    let is_waiting = |node: &mut Fixture| {
        let info: Value = node.call("getmempoolinfo", &json!([]));
        info["unbroadcastcount"] == 1
    };
    wait_until(&mut first, "it was fetched", |node| !is_waiting(node));
    assert!(!is_waiting(&mut second), "it was not handed in there");
}

#[test]
fn requests_parents_of_orphans() {
    let mut node = node();
    let parent = node.spend_coinbase(1, &[4_999_990_000]);
    let child = spend(&[(parent.view().txid(), 0)], &[4_999_980_000]);
    let mut peer = Client::serving_blocks(&node);
    offer(&mut peer, &child);
    give(&mut peer, &parent);
    wait_until(&mut node, "both", |node| mempool(node).len() == 2);
    assert_eq!(node.call("getorphantxs", &json!([])), json!([]));
}

#[test]
fn confirmed_parent_resolves_orphan() {
    let mut node = node();
    let parent = node.spend_coinbase(1, &[4_999_990_000]);
    let child = spend(&[(parent.view().txid(), 0)], &[4_999_980_000]);
    let mut peer = Client::serving_blocks(&node);
    offer(&mut peer, &child);
    wait_until(&mut node, "the orphan", |node| {
        node.call("getorphantxs", &json!([])) == json!([txid(&child)])
    });
    node.mine(std::slice::from_ref(&parent));
    wait_until(&mut node, "the child", |node| mempool(node) == [txid(&child)]);
    assert_eq!(node.call("getorphantxs", &json!([])), json!([]));
}

#[test]
fn child_pays_for_rejected_parent() {
    let mut node = node();
    let parent = node.spend_coinbase(1, &[5_000_000_000]);
    let child = spend(&[(parent.view().txid(), 0)], &[4_999_980_000]);
    let mut peer = Client::serving_blocks(&node);
    offer(&mut peer, &parent);
    peer.answered();
    assert!(mempool(&mut node).is_empty(), "it pays nothing");
    offer(&mut peer, &child);
    give(&mut peer, &parent);
    wait_until(&mut node, "both", |node| mempool(node).len() == 2);
}

#[test]
fn known_and_rejected_transactions_are_not_requested() {
    let mut node = node();
    let good = node.spend_coinbase(1, &[4_999_990_000]);
    let bad = node.spend_coinbase(2, &[5_000_000_001]);
    let mut peer = Client::serving_blocks(&node);
    offer(&mut peer, &good);
    offer(&mut peer, &bad);
    peer.answered();
    assert_eq!(mempool(&mut node), [txid(&good)]);
    let again = [named(InventoryKind::TX, &good), named(InventoryKind::TX, &bad)];
    peer.send(&Message::Inv(again[..].into()));
    let fresh = node.spend_coinbase(3, &[4_999_990_000]);
    // It requests only this one next.
    offer(&mut peer, &fresh);
    wait_until(&mut node, "the third", |node| mempool(node).len() == 2);
}

#[test]
fn disconnects_forbidden_transaction_senders() {
    let node = serving(3, |p2p| p2p.blocks_only = true);
    node.set_clock_to_tip();
    for message in ["inv", "tx"] {
        let mut peer = Client::serving_blocks(&node);
        let tx = node.spend_coinbase(1, &[4_999_990_000]);
        match message {
            "inv" => peer.send(&Message::Inv([named(InventoryKind::TX, &tx)][..].into())),
            _ => peer.send(&Message::Tx(tx.bytes())),
        }
        peer.expect_end_past_all();
    }
}

#[test]
fn serves_recently_confirmed_transactions() {
    let mut node = node();
    let tx = node.spend_coinbase(1, &[4_999_990_000]);
    let mut peer = Client::serving_blocks(&node);
    node.mine(std::slice::from_ref(&tx));
    let ask = [named(InventoryKind::WTX, &tx)];
    for _ in 0..6 {
        peer.ask(&ask);
        assert_eq!(peer.expect_past("tx"), tx.bytes());
        node.mine(&[]);
    }
    peer.ask(&ask);
    let mut expected = Vec::new();
    Message::NotFound(ask[..].into()).encode(&mut expected);
    assert_eq!(peer.expect_past("notfound"), expected);
}

/// Hashes in the next transaction inventory.
fn announced(peer: &mut Client) -> Vec<[u8; 32]> {
    inventory(&peer.expect_past("inv")).iter().map(|entry| entry.hash).collect()
}

/// Unfetched transactions are rebroadcast after ten minutes or more, independent of the node's clock.
#[test]
fn mock_clock_does_not_rebroadcast() {
    let mut node = node();
    let hand_in = |node: &mut Fixture, height| {
        let tx = node.spend_coinbase(height, &[4_999_990_000]);
        node.call("sendrawtransaction", &json!([faster_hex::hex_string(tx.bytes())]));
        tx.view().txid().0
    };
    let early = [1, 2, 3].map(|height| hand_in(&mut node, height));
    let mut peer = Client::serving_blocks(&node);
    peer.answered();
    let clock = node.node.engine().clock().clone();
    // Beyond the next announcement, but below the ping timeout.
    clock.set(clock.now_s() + 16 * 60);
    for height in 4..12 {
        let txid = hand_in(&mut node, height);
        assert_eq!(announced(&mut peer), [txid]);
    }
    node.call("mockscheduler", &json!([900]));
    let mut again = Vec::new();
    while again.len() < early.len() {
        again.extend(announced(&mut peer));
    }
    again.sort_unstable();
    let mut early = early;
    early.sort_unstable();
    assert_eq!(again, early);
}
