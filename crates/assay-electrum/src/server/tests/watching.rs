//! Outpoint subscriptions: notifications of every change and of nothing else, and their cost for others.

use std::collections::HashMap;
use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use assay_wire::{OutPoint, Transaction};
use serde_json::{Value, json};

use super::node::{ALICE, BOB, CAROL, Client, Node, config, hash, hex, pay};
use crate::follow::Touched;
use crate::index::fixture::Random;
use crate::server::{Config, Limits};
use crate::testing::{out, tx};

const SUBSCRIBE: &str = "blockchain.outpoint.subscribe";

fn unlimited() -> Config {
    Config { limits: Limits { units_per_second: 0, ..Limits::default() }, ..config() }
}

/// Subscribes to outputs that do not exist.
fn watch_nothing(
    client: &mut Client<TcpStream>,
    numbers: std::ops::Range<usize>,
    hint: Option<&[u8]>,
) {
    for first in numbers.clone().step_by(1000) {
        let batch: Vec<_> = (first..numbers.end.min(first + 1000))
            .map(|n| {
                let mut params = vec![json!(format!("{n:064x}")), json!(0)];
                params.extend(hint.map(|hint| json!(hex(hint))));
                json!({"id": n, "method": SUBSCRIBE, "params": params})
            })
            .collect();
        client.send(&json!(batch).to_string());
        assert!(
            client.line().as_array().unwrap().iter().all(|answer| answer["result"] == json!({}))
        );
    }
}

/// The cost of a change depends on the affected outputs, not on the number of subscriptions.
#[test]
fn change_cost_depends_on_affected_outputs() {
    for hint in [None, Some(BOB)] {
        let mut lookups = Vec::new();
        for count in [0, 100, 5_000] {
            let mut node = Node::with(unlimited());
            let mut bad = node.client_of("1.7");
            watch_nothing(&mut bad, 0..count, hint);
            let mut honest = node.client_of("1.7");
            honest.call("blockchain.scriptpubkey.subscribe", &json!([hex(BOB)]));
            let paid = pay(&node, 1, &[(30, BOB)]);
            honest.call(SUBSCRIBE, &json!([paid.view().txid().to_string(), 0]));
            // New outputs are looked up with the next two changes, in case one was in progress.
            for height in [7, 8] {
                let other = pay(&node, height, &[(1, b"dave")]);
                node.accept(&other, 1);
                node.settle();
            }
            let subscriptions = &node.server.shared.subscriptions;
            let before = subscriptions.lookups.load(Ordering::Relaxed);
            assert!(before >= count);
            node.accept(&paid, 1);
            let notified = [honest.notification(), honest.notification()];
            assert!(notified.iter().any(|line| line["method"] == SUBSCRIBE));
            node.settle();
            node.mine(vec![paid]);
            node.settle();
            lookups.push(node.server.shared.subscriptions.lookups.load(Ordering::Relaxed) - before);
        }
        assert_eq!(lookups, [4; 3], "the script and the outpoint, twice");
    }
}

/// Disconnecting with many subscriptions delays nobody, and all of them are removed.
#[test]
fn disconnect_cost_is_bounded_by_subscriptions() {
    const EACH: usize = 20_000;
    let node = Node::with(unlimited());
    let mut bads: Vec<_> = (0..2).map(|_| node.client_of("1.7")).collect();
    for (number, bad) in bads.iter_mut().enumerate() {
        watch_nothing(bad, number * EACH..(number + 1) * EACH, Some(b"mallory"));
    }
    let subscriptions = &node.server.shared.subscriptions;
    assert_eq!(subscriptions.count.load(Ordering::Relaxed), 2 * EACH);
    let mut honest = node.client_of("1.7");
    let start = Instant::now();
    drop(bads);
    let deadline = start + Duration::from_mins(1);
    while subscriptions.count.load(Ordering::Relaxed) > 0 {
        honest.call("blockchain.scriptpubkey.subscribe", &json!([hex(BOB)]));
        honest.call("blockchain.scriptpubkey.unsubscribe", &json!([hex(BOB)]));
        assert!(Instant::now() < deadline, "they take too long to leave");
    }
    println!("two clients with {EACH} outpoints each left within {:?}", start.elapsed());
    while node.server.shared.accounts.connections() > 1 {
        assert!(Instant::now() < deadline);
        std::thread::yield_now();
    }
    assert_eq!(subscriptions.watched.counts().1, 0);
    assert!(subscriptions.watched.take_new().is_empty(), "what has gone is not new");
}

/// Transactions added and removed between two changes leave no trace.
#[test]
fn added_and_removed_transactions_leave_no_trace() {
    let node = Node::with(unlimited());
    let mut client = node.client_of("1.7");
    for number in 0..200u32 {
        let script = hex(&number.to_le_bytes());
        client.call("blockchain.scriptpubkey.subscribe", &json!([script]));
        client.call("blockchain.scriptpubkey.unsubscribe", &json!([script]));
    }
    assert!(node.publisher.watched().take_new().is_empty());
}

/// Clients with few subscriptions are notified before clients with many, whatever the order of subscription.
#[test]
fn reorg_notifies_all_clients() {
    let mut node = Node::with(unlimited());
    let paid = pay(&node, 1, &[(30, BOB)]);
    node.mine(vec![paid.clone()]);
    let mut bad = node.client_of("1.7");
    watch_nothing(&mut bad, 0..3_000, None);
    let mut honest = node.client_of("1.7");
    let txid = paid.view().txid().to_string();
    assert_eq!(honest.call(SUBSCRIBE, &json!([txid, 0])), json!({"funder_height": 10}));
    honest.call("blockchain.scriptpubkey.subscribe", &json!([hex(BOB)]));
    let before = node.server.shared.subscriptions.lookups.load(Ordering::Relaxed);
    node.reorganise(1, Vec::new());
    let notified = [honest.notification(), honest.notification()];
    assert!(notified.iter().any(|line| line["params"] == json!([txid, 0, {}])), "{notified:?}");
    assert!(notified.iter().any(|line| line["params"] == json!([hash(BOB), null])), "{notified:?}");
    node.settle();
    let lookups = node.server.shared.subscriptions.lookups.load(Ordering::Relaxed) - before;
    assert_eq!(lookups, 3_002, "each once");
}

/// A client, its subscribed outputs, and their last known status.
struct Watcher {
    client: Client<TcpStream>,
    known: HashMap<OutPoint, Value>,
}

impl Watcher {
    fn watch(&mut self, outpoint: OutPoint) {
        let params = json!([outpoint.txid.to_string(), outpoint.vout]);
        let answer = self.client.call(SUBSCRIBE, &params);
        self.known.insert(outpoint, answer);
    }

    fn forget(&mut self, outpoint: OutPoint) {
        self.known.remove(&outpoint);
        let params = json!([outpoint.txid.to_string(), outpoint.vout]);
        assert_eq!(self.client.call("blockchain.outpoint.unsubscribe", &params), true);
    }

    /// Notifications match the oracle's changes exactly; the oracle looks up every output.
    fn check(&mut self, seed: u64) {
        self.client.call("server.ping", &json!([]));
        let mut notified = HashMap::new();
        for mut line in std::mem::take(&mut self.client.notifications) {
            let [txid, vout, status] = line["params"].as_array_mut().unwrap().as_mut_slice() else {
                panic!("three parameters")
            };
            let outpoint = OutPoint {
                txid: txid.as_str().unwrap().parse().unwrap(),
                vout: vout.as_u64().unwrap() as u32,
            };
            assert!(
                notified.insert(outpoint, status.take()).is_none(),
                "seed {seed}: notified twice"
            );
        }
        for (outpoint, known) in &mut self.known {
            let params = json!([outpoint.txid.to_string(), outpoint.vout]);
            let status = self.client.call("blockchain.outpoint.get_status", &params);
            let expected = (status != *known).then(|| status.clone());
            assert_eq!(
                notified.remove(outpoint),
                expected,
                "seed {seed}: {outpoint:?} was {known}"
            );
            *known = status;
        }
        assert!(notified.is_empty(), "seed {seed}: {notified:?}");
    }
}

fn coins(node: &Node) -> Vec<OutPoint> {
    let confirmed = node.blocks.iter().flat_map(|block| &block.txs);
    let all: Vec<&Transaction> = confirmed.chain(node.pool()).collect();
    let outputs =
        all.iter().flat_map(|tx| (0..tx.view().output_count() as u32).map(|vout| out(tx, vout)));
    let is_spent = |outpoint: &OutPoint| {
        all.iter().any(|tx| tx.view().inputs().any(|input| input.prevout == *outpoint))
    };
    outputs.filter(|outpoint| !is_spent(outpoint)).collect()
}

fn happen(node: &mut Node, random: &mut Random, planned: &mut Vec<Transaction>, tag: u32) {
    let coins = coins(node);
    let is_possible =
        |tx: &Transaction| tx.view().inputs().all(|input| coins.contains(&input.prevout));
    match random.below(10) {
        // Transactions that enter the mempool, and others that appear in a block only.
        0..4 => {
            if let Some(at) = planned.iter().position(is_possible) {
                let next = planned.remove(at);
                node.accept(&next, 1);
            }
        }
        4..6 => {
            let mut block: Vec<_> = node.pool().take(random.below(4)).cloned().collect();
            if let Some(at) = planned.iter().position(is_possible) {
                block.push(planned.remove(at));
            }
            node.mine(block);
        }
        6 => {
            let all: Vec<_> = node.pool().cloned().collect();
            if !all.is_empty() {
                let gone = all[random.below(all.len())].clone();
                node.evict(&gone);
                planned.push(gone);
            }
        }
        7 => {
            // Disconnects one or two blocks; the new ones contain some of their transactions.
            let count = 1 + random.below(2);
            let tip = node.blocks.len();
            let mut again: Vec<_> = node.blocks[tip - count..]
                .iter()
                .flat_map(|block| block.txs[1..].to_vec())
                .collect();
            again.truncate(random.below(3));
            node.reorganise(count, again);
            node.publish_from_scratch();
        }
        8 => {
            // Blocks without known mempool changes.
            let block: Vec<_> = node.pool().take(2).cloned().collect();
            node.mine_with(block, None);
        }
        _ => {
            let coin = coins[random.below(coins.len())];
            let scripts = [ALICE, BOB, CAROL];
            let outputs: Vec<(i64, &[u8])> =
                (0..=random.below(3)).map(|_| (1, scripts[random.below(3)])).collect();
            planned.push(tx(&[coin], &outputs, tag));
        }
    }
}

/// Random histories of mempool, blocks and reorgs, against an oracle that looks up every output after every change.
#[test]
fn notifications_match_full_lookup() {
    let mut notifications = 0;
    for seed in 0..12 {
        let mut random = Random(seed + 1);
        let mut node = Node::with(unlimited());
        let mut watcher = Watcher { client: node.client_of("1.7"), known: HashMap::new() };
        let mut planned: Vec<Transaction> = Vec::new();
        for step in 0..250 {
            for _ in 0..random.below(3) {
                // Outputs that exist, may exist later, and never will.
                let next = planned.iter().chain(node.pool());
                let confirmed = node.blocks.iter().flat_map(|block| &block.txs);
                let all: Vec<_> = if random.below(2) == 0 {
                    next.collect()
                } else {
                    next.chain(confirmed).collect()
                };
                if all.is_empty() {
                    continue;
                }
                let of = all[random.below(all.len())];
                let vout = random.below(of.view().output_count() + 1) as u32;
                watcher.watch(out(of, vout));
            }
            if random.below(8) == 0
                && let Some(outpoint) = watcher.known.keys().min().copied()
            {
                watcher.forget(outpoint);
            }
            happen(&mut node, &mut random, &mut planned, step);
            node.settle();
            watcher.check(seed);
        }
        notifications += node.server.shared.subscriptions.notifications.load(Ordering::Relaxed);
    }
    println!("{notifications} notifications");
    assert!(notifications > 300, "{notifications}: little happened");
}

/// An output subscribed after its block was searched is looked up again.
#[test]
fn subscription_during_a_block_is_notified() {
    let mut node = Node::with(unlimited());
    let paid = pay(&node, 1, &[(30, BOB)]);
    let touched = node.extend(vec![paid.clone()]);
    assert!(touched.outpoints.is_empty());
    let mut client = node.client_of("1.7");
    let txid = paid.view().txid().to_string();
    assert_eq!(client.call(SUBSCRIBE, &json!([txid, 0])), json!({}));
    node.publisher.publish(node.view(), None, Touched::default(), false).unwrap();
    assert_eq!(client.notification()["params"], json!([txid, 0, {"funder_height": 10}]));
}
