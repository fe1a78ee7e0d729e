//! Of several broken rules the reference node reports the first it checks; Bitcoin and Bitcoin Cash differ.

use assay_engine::Engine;
use assay_wire::{OutPoint, Transaction, Txid};
use tempfile::TempDir;

use super::chain::{accept, coinbase, outpoint, params, refuse, spend, transaction, with_coinbase};

/// An engine with a mature coinbase, number 1, and an immature one, number 2.
fn engine(chain: &str) -> (TempDir, Engine) {
    let (folder, engine) = with_coinbase(&params(chain));
    accept(&engine, &[&coinbase(2)]);
    (folder, engine)
}

fn reason(engine: &Engine, txs: &[&Transaction]) -> String {
    refuse(engine, txs).0
}

const MISSING: OutPoint = OutPoint { txid: Txid([5; 32]), vout: 5 };

#[test]
fn a_young_coin_and_a_missing_one() {
    let young = outpoint(coinbase(2).view().txid());
    let both = transaction(&[(young, &[]), (MISSING, &[])], 1);
    let reversed = transaction(&[(MISSING, &[]), (young, &[])], 1);
    let (_folder, bitcoin) = engine("regtest");
    // Core checks that all coins exist before anything else about them.
    assert_eq!(reason(&bitcoin, &[&coinbase(3), &both]), "bad-txns-inputs-missingorspent");
    assert_eq!(reason(&bitcoin, &[&coinbase(3), &reversed]), "bad-txns-inputs-missingorspent");
    let (_folder, cash) = engine("bch-regtest");
    // BCHN checks input by input.
    assert_eq!(reason(&cash, &[&coinbase(3), &both]), "bad-txns-premature-spend-of-coinbase");
    assert_eq!(reason(&cash, &[&coinbase(3), &reversed]), "bad-txns-inputs-missingorspent");
}

#[test]
fn a_second_coinbase() {
    let (_folder, bitcoin) = engine("regtest");
    let bad = transaction(&[(MISSING, &[])], -1);
    assert_eq!(reason(&bitcoin, &[&coinbase(3), &bad, &coinbase(4)]), "bad-cb-multiple");
    let (_folder, cash) = engine("bch-regtest");
    assert_eq!(reason(&cash, &[&coinbase(3), &coinbase(4)]), "bad-tx-coinbase");
    assert_eq!(reason(&cash, &[&coinbase(3), &bad, &coinbase(4)]), "bad-txns-vout-negative");
    assert_eq!(reason(&cash, &[&coinbase(3), &coinbase(4), &bad]), "bad-tx-coinbase");
}

#[test]
fn the_first_bad_transaction_counts() {
    let (_folder, engine) = engine("regtest");
    let generous = spend(&coinbase(1), 1_000_001);
    let lost = transaction(&[(MISSING, &[])], 1);
    assert_eq!(reason(&engine, &[&coinbase(3), &generous, &lost]), "bad-txns-in-belowout");
    assert_eq!(
        reason(&engine, &[&coinbase(3), &lost, &generous]),
        "bad-txns-inputs-missingorspent"
    );
}

#[test]
fn a_coinbase_matures_after_a_hundred_blocks() {
    let (_folder, engine) = engine("regtest");
    let spend = spend(&coinbase(2), 1);
    for number in 0..99 {
        accept(&engine, &[&coinbase(2000 + number)]);
        if number == 97 {
            let early = refuse(&engine, &[&coinbase(3), &spend]);
            let txid = spend.view().txid();
            let debug = format!("tried to spend coinbase at depth 99 in transaction {txid}");
            assert_eq!(early, ("bad-txns-premature-spend-of-coinbase".into(), debug));
        }
    }
    accept(&engine, &[&coinbase(3), &spend]);
}
