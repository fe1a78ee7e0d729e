//! BIP30: no transaction may be repeated while outputs of its first occurrence are unspent.
//!
//! On a chain without heights in coinbases (before BIP34) a coinbase can be repeated freely, and then all its descendants.

use assay_engine::Engine;
use assay_wire::{OutPoint, Transaction};

use super::chain::{
    accept, coinbase, mature, open, params, refuse, spend, transaction, with_coinbase,
};

fn refuse_repeat(engine: &Engine, txs: &[&Transaction]) {
    let (reason, debug) = refuse(engine, txs);
    assert_eq!((&*reason, &*debug), ("bad-txns-BIP30", "tried to overwrite transaction"));
}

#[test]
fn a_coinbase_may_come_again_only_when_it_is_spent() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = open(folder.path(), &params("regtest"));
    let twin = coinbase(1);
    let child = spend(&twin, 900_000);
    accept(&engine, &[&twin]);
    refuse_repeat(&engine, &[&twin]);
    mature(&engine, 1000);
    refuse_repeat(&engine, &[&twin, &child]);
    accept(&engine, &[&coinbase(2), &child]);
    // Spent: the same transaction creates the same output again.
    accept(&engine, &[&twin]);
    refuse_repeat(&engine, &[&twin]);
    mature(&engine, 2000);
    // And its child could be repeated too, if the first one were spent.
    refuse_repeat(&engine, &[&coinbase(3), &child]);
    engine.shutdown().expect("an orderly end");
    drop(engine);

    // Repeats are known again after a restart.
    let engine = open(folder.path(), &params("regtest"));
    refuse_repeat(&engine, &[&coinbase(5), &child]);
    let grandchild = spend(&child, 800_000);
    accept(&engine, &[&coinbase(3), &grandchild]);
    accept(&engine, &[&coinbase(4), &child]);
    engine.shutdown().expect("an orderly end");
}

/// Regression test of a difference to the kernel, class `bad-txns-BIP30`: missing inputs of a repeated transaction were reported
/// although its outputs are unspent.
#[test]
fn an_ordinary_transaction_that_comes_again_overwrites_before_it_lacks_inputs() {
    let (_folder, engine) = with_coinbase(&params("regtest"));
    let child = spend(&coinbase(1), 900_000);
    accept(&engine, &[&coinbase(2), &child]);
    // Its inputs are spent, but Core checks its outputs first.
    refuse_repeat(&engine, &[&coinbase(3), &child]);
    let grandchild = spend(&child, 800_000);
    accept(&engine, &[&coinbase(4), &grandchild]);
    let (reason, _) = refuse(&engine, &[&coinbase(5), &child]);
    assert_eq!(reason, "bad-txns-inputs-missingorspent");
}

#[test]
fn a_coinbase_that_comes_again_with_its_height_is_known_after_a_restart() {
    let params =
        params("regtest").with_activation_height("bip34", 103).expect("BIP34 can be moved");
    let folder = tempfile::tempdir().expect("a folder");
    let engine = open(folder.path(), &params);
    let with_height = |height, name| {
        let mut script_sig = assay_consensus::commitment::height_prefix(height);
        script_sig.extend([name; 37]);
        transaction(&[(OutPoint::NULL, &script_sig)], 1_000_000)
    };
    let twin = with_height(103, 1);
    let child = spend(&twin, 900_000);
    accept(&engine, &[&twin]);
    mature(&engine, 1000);
    accept(&engine, &[&coinbase(2), &child]);
    accept(&engine, &[&twin]);
    // It could be repeated after another hundred blocks; its outputs are always checked first.
    refuse_repeat(&engine, &[&with_height(104, 2), &child]);
    engine.shutdown().expect("an orderly end");
    drop(engine);
    let engine = open(folder.path(), &params);
    refuse_repeat(&engine, &[&with_height(104, 3), &child]);
    engine.shutdown().expect("an orderly end");
}
