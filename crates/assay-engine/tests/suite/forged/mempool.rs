//! Transactions before their block.

use assay_engine::{Config, Engine, TxRejectCode};
use assay_wire::{Encoding, OutPoint, Transaction};

use super::chain::{Forged, accept};

fn sync_with_seen(recipe: &str, share: f64) {
    let forged = Forged::new(recipe, 11, None);
    let datadir = tempfile::tempdir().unwrap();
    let engine = forged.open(datadir.path());
    for height in 1..=forged.height() {
        let offers = forged.seen(height, share);
        let count = offers.len();
        let verdicts = engine.mempool().submit_all(offers, None);
        for verdict in verdicts {
            verdict.unwrap();
        }
        assert_eq!(engine.mempool().info().size, count);
        accept(&engine, forged.block(height));
        let info = engine.mempool().info();
        assert_eq!((info.size, info.bytes, info.usage, info.total_fee_sat), (0, 0, 0, 0));
    }
    forged.check_tip(&engine);
}

#[test]
fn nine_tenths_of_a_bch_chain_are_seen_first() {
    sync_with_seen("bch-scaling", 0.9);
}

#[test]
fn nine_tenths_of_a_bitcoin_chain_are_seen_first() {
    sync_with_seen("bitcoin-scaling", 0.9);
}

/// Verdicts on lists with broken signatures are the same in every verification mode, and on repetition.
#[test]
fn batches_of_signatures_change_no_verdict() {
    for (recipe, seed) in [("bitcoin-scaling", 14), ("bch-scaling", 15)] {
        let forged = Forged::new(recipe, seed, None);
        let engines: Vec<_> = [None, Some(1), Some(90)]
            .into_iter()
            .map(|script_batch| {
                let datadir = tempfile::tempdir().unwrap();
                let mut config = Config::new(datadir.path(), forged.params());
                (config.script_batch, config.threads) = (script_batch, 2);
                (Engine::open(config).unwrap(), datadir)
            })
            .collect();
        let (mut admitted, mut refused) = (0, 0);
        for height in 1..=forged.height() {
            let mut offers = forged.seen(height, 1.0);
            for raw in offers.iter_mut().skip(2).step_by(7) {
                // Somewhere in the second half of the transaction: signatures, keys, witnesses, outputs.
                let at = raw.len() / 2 + (height as usize * 31) % (raw.len() / 2);
                raw[at] ^= 1 << (height % 8);
            }
            let (first, others) = engines.split_first().unwrap();
            let trial = first.0.mempool().test_accept(offers.clone(), None);
            let verdicts = first.0.mempool().submit_all(offers.clone(), None);
            for (engine, _) in others {
                let mempool = engine.mempool();
                assert_eq!(mempool.test_accept(offers.clone(), None), trial, "height {height}");
                assert_eq!(mempool.submit_all(offers.clone(), None), verdicts);
            }
            admitted += verdicts.iter().filter(|verdict| verdict.is_ok()).count();
            refused += verdicts.iter().filter(|verdict| verdict.is_err()).count();
            for (engine, _) in &engines {
                accept(engine, forged.block(height));
            }
        }
        assert!(admitted > 100 && refused > 100, "{admitted} admitted, {refused} refused");
        for (engine, _) in &engines {
            forged.check_tip(engine);
        }
    }
}

#[test]
fn rejections_have_reasons() {
    let forged = Forged::new("bch-scaling", 12, Some(101));
    let datadir = tempfile::tempdir().unwrap();
    let engine = forged.open(datadir.path());
    forged.feed(&engine, 1..=100);
    let offers = forged.seen(101, 1.0);

    let reject = |raw: Vec<u8>| engine.mempool().submit(raw, None).unwrap_err();
    assert_eq!(reject(vec![1, 2, 3]).code, TxRejectCode::Decode);
    let orphan = reject(offers[1].clone());
    assert_eq!(orphan.code, TxRejectCode::MissingInputs);
    assert_eq!(orphan.reason, "bad-txns-inputs-missingorspent");

    // One bit of the signature's S: still DER, but invalid.
    let mut forgery = offers[0].clone();
    forgery[4 + 1 + 36 + 1 + 1 + 60] ^= 1;
    let refused = reject(forgery.clone());
    assert_eq!(
        refused.reason,
        "mandatory-script-verify-flag-failed (Signature must be zero for failed CHECK(MULTI)SIG operation)"
    );

    // An invalid signature in a batch removes its descendants, and nothing else.
    let verdicts = engine.mempool().submit_all(vec![forgery, offers[0].clone()], None);
    assert!(verdicts[0].is_err());
    assert_eq!(engine.mempool().info().size, usize::from(verdicts[1].is_ok()));
    assert!(
        verdicts[1].is_ok() || verdicts[1].as_ref().unwrap_err().reason == "txn-mempool-conflict"
    );

    let trial = engine.mempool().test_accept(offers[..3].to_vec(), None);
    assert_eq!(engine.mempool().info().size, usize::from(verdicts[1].is_ok()));
    assert!(trial.iter().skip(1).all(|verdict| verdict.reject.is_none()), "{trial:?}");

    for raw in &offers {
        engine.mempool().submit(raw.clone(), None).unwrap();
    }
    // A repeated submission is no fault; a double spend is.
    engine.mempool().submit(offers[0].clone(), None).unwrap();
    let first = Transaction::parse(offers[0].clone(), Encoding::Legacy).unwrap();
    let prevout = first.view().input(0).prevout;
    assert!(engine.chain().coin(&prevout, false).unwrap().is_some());
    assert!(engine.chain().coin(&prevout, true).unwrap().is_none());
    let output = OutPoint { txid: first.view().txid(), vout: 0 };
    assert!(engine.chain().coin(&output, false).unwrap().is_none());

    accept(&engine, forged.block(101));
    let known = reject(offers[offers.len() - 1].clone());
    assert_eq!(known.code, TxRejectCode::AlreadyInChain);
    assert!(engine.mempool().txids().is_empty());
}

#[test]
fn a_cheap_or_too_long_chain_is_refused() {
    let forged = Forged::new("bch-scaling", 13, Some(101));
    let datadir = tempfile::tempdir().unwrap();
    let mut config = Config::new(datadir.path(), forged.params());
    config.cluster_count_max = Some(3);
    let engine = Engine::open(config.clone()).unwrap();
    forged.feed(&engine, 1..=100);
    let offers = forged.seen(101, 1.0);
    let verdicts = engine.mempool().submit_all(offers.clone(), None);
    assert!(verdicts[0].is_ok());
    let admitted = verdicts.iter().filter(|verdict| verdict.is_ok()).count();
    assert_eq!(admitted, 3);
    assert!(
        verdicts.iter().filter_map(|v| v.as_ref().err()).any(|r| r.reason == "too-large-cluster")
    );
    let capped = engine.mempool().test_accept(vec![offers[0].clone()], Some(1));
    assert_eq!(capped[0].reject.as_ref().unwrap().reason, "txn-already-in-mempool");
    drop(engine);

    config.min_relay_fee_sat_per_kvb = 1_000_000;
    let engine = Engine::open(config.clone()).unwrap();
    let refused = engine.mempool().submit(offers[0].clone(), None).unwrap_err();
    assert_eq!(refused.reason, "min relay fee not met");
    drop(engine);

    config.min_relay_fee_sat_per_kvb = 0;
    config.mempool_bytes_max = 100;
    let engine = Engine::open(config).unwrap();
    let dear = engine.mempool().submit(offers[0].clone(), Some(1)).unwrap_err();
    assert_eq!(dear.code, TxRejectCode::MaxFeeExceeded);
    let refused = engine.mempool().submit(offers[0].clone(), None).unwrap_err();
    assert_eq!(refused.reason, "mempool full");
    let refused = engine.mempool().submit(offers[0].clone(), None).unwrap_err();
    assert_eq!(refused.reason, "mempool min fee not met");
}
