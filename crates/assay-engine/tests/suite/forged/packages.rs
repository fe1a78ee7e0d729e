//! A child with its parents, version 3, and ephemeral dust.

use std::collections::HashSet;

use assay_engine::{PackageFees, PackageOutcome, PackageVerdict, TxFault};
use assay_wire::{Encoding, OutPoint, Transaction};

use super::fixture::{Fixture, child, txid};
use super::mint::tx;

const VALUE: i64 = 100_000_000;

/// The transaction with version 3.
fn truc(tx: &Transaction) -> Transaction {
    let mut raw = tx.bytes().to_vec();
    raw[0] = 3;
    Transaction::parse(raw, Encoding::Segwit).unwrap()
}

fn spend_all(of: &Transaction, vouts: &[u32], value: i64) -> Transaction {
    let input = |vout: &u32| (OutPoint { txid: txid(of), vout: *vout }, u32::MAX);
    tx(&vouts.iter().map(input).collect::<Vec<_>>(), &[value], 0)
}

fn raws(txs: &[&Transaction]) -> Vec<Vec<u8>> {
    txs.iter().map(|tx| tx.bytes().to_vec()).collect()
}

fn submit(f: &Fixture, txs: &[&Transaction]) -> PackageOutcome {
    f.engine.mempool().submit_package(raws(txs), None).unwrap()
}

fn fees(outcome: &PackageOutcome, index: usize) -> &PackageFees {
    match &outcome.txs[index].verdict {
        PackageVerdict::Admitted(fees) => fees,
        other => panic!("not admitted: {other:?}"),
    }
}

fn reason(outcome: &PackageOutcome) -> &str {
    &outcome.reject.as_ref().unwrap().reason
}

#[test]
fn a_child_pays_for_its_parent() {
    let f = Fixture::new(|_| ());
    let parent = truc(&f.spend(1, VALUE));
    let payer = truc(&child(&parent, VALUE - 5000));
    let alone = f.engine.mempool().submit(parent.bytes().to_vec(), None).unwrap_err();
    assert_eq!((&*alone.reason, alone.fault), ("min relay fee not met", TxFault::Reconsiderable));
    let orphan = f.engine.mempool().submit(payer.bytes().to_vec(), None).unwrap_err();
    assert_eq!(orphan.fault, TxFault::MissingInputs);
    assert_eq!(reason(&submit(&f, &[&payer, &parent])), "package-not-sorted");
    let stranger = f.spend(2, VALUE - 1000);
    let apart = submit(&f, &[&parent, &stranger]);
    assert_eq!(reason(&apart), "package-not-child-with-parents");
    assert!(apart.txs.iter().all(|tx| tx.verdict == PackageVerdict::NotValidated));
    assert!(f.mempool().is_empty());

    let done = submit(&f, &[&parent, &payer]);
    assert_eq!(done.reject, None);
    assert_eq!(fees(&done, 0).effective, fees(&done, 1).effective);
    assert_eq!((fees(&done, 0).effective.0, fees(&done, 0).effective_of.len()), (5000, 2));
    assert_eq!(f.mempool(), HashSet::from([txid(&parent), txid(&payer)]));
    let again = submit(&f, &[&parent, &payer]);
    assert!(again.txs.iter().all(|tx| matches!(tx.verdict, PackageVerdict::Known { .. })));
}

#[test]
fn parent_and_child_replace_together() {
    let f = Fixture::new(|_| ());
    let first = f.spend(1, VALUE - 2000);
    f.offer(&first);
    let parent = truc(&f.spend(1, VALUE));
    let cheap = truc(&child(&parent, VALUE - 2001));
    let failed = submit(&f, &[&parent, &cheap]);
    assert_eq!(reason(&failed), "package RBF failed: insufficient anti-DoS fees");
    assert_eq!(f.mempool(), HashSet::from([txid(&first)]));
    let payer = truc(&child(&parent, VALUE - 9000));
    let done = submit(&f, &[&parent, &payer]);
    assert_eq!(done.reject, None);
    assert_eq!(fees(&done, 0).replaced, [txid(&first)]);
    assert_eq!(f.mempool(), HashSet::from([txid(&parent), txid(&payer)]));
}

#[test]
fn version_3_has_one_child() {
    let f = Fixture::new(|_| ());
    let parent = truc(&tx(&[(f.coinbase(1), u32::MAX)], &[VALUE / 2, VALUE / 2 - 1000], 0));
    f.offer(&parent);
    let mixed = spend_all(&parent, &[0], VALUE / 2 - 1000);
    let reject = f.engine.mempool().submit(mixed.bytes().to_vec(), None).unwrap_err();
    assert_eq!((&*reject.reason, reject.fault), ("TRUC-violation", TxFault::MempoolPolicy));
    assert!(reject.debug.starts_with("non-version=3 tx"), "{}", reject.debug);
    let first = truc(&mixed);
    f.offer(&first);
    let poor = truc(&spend_all(&parent, &[1], VALUE / 2 - 2000));
    let reject = f.engine.mempool().submit(poor.bytes().to_vec(), None).unwrap_err();
    assert_eq!(reject.reason, "insufficient fee (including sibling eviction)");
    assert_eq!(reject.fault, TxFault::Reconsiderable);
    let rich = truc(&spend_all(&parent, &[1], VALUE / 2 - 9000));
    f.offer(&rich);
    assert_eq!(f.mempool(), HashSet::from([txid(&parent), txid(&rich)]));
    let third = truc(&child(&rich, VALUE / 2 - 20_000));
    let reject = f.engine.mempool().submit(third.bytes().to_vec(), None).unwrap_err();
    assert!(reject.debug.ends_with("would have too many ancestors"), "{}", reject.debug);
}

#[test]
fn dust_is_spent_at_once() {
    let f = Fixture::new(|_| ());
    let pays = tx(&[(f.coinbase(1), u32::MAX)], &[VALUE - 1000, 0], 0);
    let reject = f.engine.mempool().submit(pays.bytes().to_vec(), None).unwrap_err();
    assert_eq!((&*reject.reason, &*reject.debug), ("dust", "tx with dust output must be 0-fee"));
    let parent = truc(&tx(&[(f.coinbase(1), u32::MAX)], &[VALUE, 0], 0));
    let careless = truc(&spend_all(&parent, &[0], VALUE - 5000));
    let failed = submit(&f, &[&parent, &careless]);
    assert_eq!(reason(&failed), "unspent-dust");
    let PackageVerdict::Rejected(reject) = &failed.txs[1].verdict else { panic!("{failed:?}") };
    assert_eq!(reject.reason, "missing-ephemeral-spends");
    let careful = truc(&spend_all(&parent, &[0, 1], VALUE - 5000));
    assert_eq!(submit(&f, &[&parent, &careful]).reject, None);
    assert!(!f.engine.mempool().prioritise(txid(&parent), 1));
    assert!(f.engine.mempool().prioritise(txid(&careful), 1));
}
