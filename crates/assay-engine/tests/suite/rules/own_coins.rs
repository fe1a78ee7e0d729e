//! Blocks of many outputs, whose scripts are verified before their coins move (Bitcoin Cash): errors of coins still have
//! priority, and everything is verified once.

use assay_engine::Engine;
use assay_testkit::chain::TxBuilder;
use assay_wire::{OutPoint, Transaction, Txid};
use tempfile::TempDir;

use super::chain::{accept, coinbase, outpoint, params, refuse, with_coinbase};

/// Anyone can spend each output, except for the last, which fails.
const OUTPUTS: u32 = 9;

fn engine() -> (TempDir, Engine) {
    with_coinbase(&params("bch-regtest"))
}

/// A transaction with [`OUTPUTS`] outputs.
fn fan_out(prevout: OutPoint, version: i32, value: i64) -> Transaction {
    let open = TxBuilder::new(version).spend(prevout, &[], u32::MAX);
    let open = (1..OUTPUTS).fold(open, |tx, _| tx.output(value, &[0x51]));
    open.output(value, &[0x00]).build()
}

fn output(tx: &Transaction, vout: u32) -> OutPoint {
    OutPoint { txid: tx.view().txid(), vout }
}

/// The transactions after a coinbase, in block order.
fn in_order<'t>(coinbase: &'t Transaction, mut txs: Vec<&'t Transaction>) -> Vec<&'t Transaction> {
    txs.sort_by_key(|tx| tx.view().txid().0.iter().rev().copied().collect::<Vec<u8>>());
    txs.insert(0, coinbase);
    txs
}

#[test]
fn chains_within_a_block_pass() {
    let (_folder, engine) = engine();
    let next = coinbase(3);
    let parent = fan_out(outpoint(coinbase(1).view().txid()), 1, 1000);
    let children: Vec<_> =
        (0..OUTPUTS - 1).map(|vout| fan_out(output(&parent, vout), 1, 100)).collect();
    let grandchild = fan_out(output(&children[3], 2), 1, 1);
    let all = children.iter().chain([&parent, &grandchild]).collect();
    accept(&engine, &in_order(&next, all));
    let later = fan_out(output(&grandchild, 0), 1, 0);
    accept(&engine, &in_order(&coinbase(4), vec![&later]));
}

#[test]
fn the_lowest_script_that_fails_is_reported() {
    let (_folder, engine) = engine();
    let next = coinbase(3);
    let parent = fan_out(outpoint(coinbase(1).view().txid()), 1, 1000);
    let bad: Vec<_> =
        (1..6).map(|version| fan_out(output(&parent, OUTPUTS - 1), version, 1)).collect();
    // Each alone, then together with one that is valid.
    for bad in &bad {
        let good = fan_out(output(&parent, 0), 1, 1);
        let (reason, debug) = refuse(&engine, &in_order(&next, vec![&parent, bad, &good]));
        assert!(reason.starts_with("blk-bad-inputs"), "{reason}");
        assert!(debug.contains(&bad.view().txid().to_string()), "{debug}");
        // Of two failures the first of the block is reported.
        let worse = fan_out(output(&good, OUTPUTS - 1), 1, 0);
        let txs = in_order(&next, vec![&parent, bad, &good, &worse]);
        let debug = refuse(&engine, &txs).1;
        let txids = [bad, &worse].map(|tx| tx.view().txid());
        let first = txs.iter().map(|tx| tx.view().txid()).find(|txid| txids.contains(txid));
        assert!(debug.contains(&first.expect("both are there").to_string()), "{debug}");
    }
}

#[test]
fn coins_come_before_scripts() {
    let (_folder, engine) = engine();
    let next = coinbase(3);
    let parent = fan_out(outpoint(coinbase(1).view().txid()), 1, 1000);
    let bad = fan_out(output(&parent, OUTPUTS - 1), 1, 1);
    let lost = fan_out(OutPoint { txid: Txid([5; 32]), vout: 5 }, 1, 1);
    let reason = |txs| refuse(&engine, &in_order(&next, txs)).0;
    assert_eq!(reason(vec![&parent, &bad, &lost]), "bad-txns-inputs-missingorspent");
    let twice = [1, 2].map(|version| fan_out(output(&parent, 0), version, 1));
    assert_eq!(reason(vec![&parent, &bad, &twice[0], &twice[1]]), "bad-txns-inputs-missingorspent");
    let generous = fan_out(output(&parent, 1), 1, 1000);
    assert_eq!(reason(vec![&parent, &bad, &generous]), "bad-txns-in-belowout");
    let beyond = fan_out(output(&parent, OUTPUTS), 1, 1);
    assert_eq!(reason(vec![&parent, &bad, &beyond]), "bad-txns-inputs-missingorspent");
    // After all that the coins are unchanged.
    accept(&engine, &in_order(&next, vec![&parent, &twice[0]]));
}
