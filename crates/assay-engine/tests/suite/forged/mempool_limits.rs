//! Replacement by conflict and eviction for lack of room.

use std::collections::HashSet;

use assay_wire::{OutPoint, Transaction};

use super::fixture::{Fixture, child, txid};
use super::mint::tx;

const VALUE: i64 = 100_000_000;

fn reason(f: &Fixture, tx: &Transaction) -> String {
    f.engine.mempool().submit(tx.bytes().to_vec(), None).unwrap_err().reason
}

#[test]
fn the_higher_fee_replaces() {
    let f = Fixture::new(|_| ());
    let first = f.spend(1, VALUE - 1000);
    let follower = child(&first, VALUE - 3000);
    f.offer(&first);
    f.offer(&follower);
    let both = HashSet::from([txid(&first), txid(&follower)]);
    // It must pay the fees of both, and for its own relay; its size is about a hundred bytes.
    for fee in [2000, 2999, 3000, 3005] {
        assert_eq!(reason(&f, &f.spend(1, VALUE - fee)), "insufficient fee", "fee {fee}");
    }
    // The fee is sufficient, the rate is lower.
    let coin = f.coinbase(1);
    let wide = tx(&[(coin, u32::MAX)], &[VALUE / 20 - 250; 20], 0);
    assert_eq!(reason(&f, &wide), "replacement-failed");
    let mut forged = f.spend(1, VALUE - 9000).bytes().to_vec();
    // The script's own bytes are wrong then.
    forged[43] = 0x52;
    let forged = Transaction::parse(forged, assay_wire::Encoding::Segwit).unwrap();
    assert!(reason(&f, &forged).starts_with("mempool-script-verify-flag-failed"));
    let own = OutPoint { txid: txid(&first), vout: 0 };
    let tangled = tx(&[(coin, u32::MAX), (own, u32::MAX)], &[VALUE - 9000], 0);
    assert_eq!(reason(&f, &tangled), "bad-txns-spends-conflicting-tx");
    assert_eq!(f.mempool(), both);

    let better = f.spend(1, VALUE - 3100);
    let trial = f.engine.mempool().test_accept(vec![better.bytes().to_vec()], None);
    assert!(trial[0].reject.is_none(), "{:?}", trial[0]);
    let raws = vec![better.bytes().to_vec(), f.spend(2, VALUE - 1000).bytes().to_vec()];
    let trial = f.engine.mempool().test_accept(raws, None);
    assert_eq!(trial[0].reject.as_ref().unwrap().reason, "bip125-replacement-disallowed");
    assert_eq!(f.mempool(), both);
    f.offer(&better);
    assert_eq!(f.mempool(), HashSet::from([txid(&better)]));
    let info = f.engine.mempool().info();
    assert_eq!((info.size, info.total_fee_sat), (1, 3100));

    // In one list the later ones win, and all verdicts describe the time of their submission.
    let list: Vec<_> = (1..=3).map(|n| f.spend(3, VALUE - 1000 * n).bytes().to_vec()).collect();
    let verdicts = f.engine.mempool().submit_all(list.clone(), None);
    assert!(verdicts.iter().all(Result::is_ok), "{verdicts:?}");
    let last = Transaction::parse(list[2].clone(), assay_wire::Encoding::Segwit).unwrap();
    assert_eq!(f.mempool(), HashSet::from([txid(&better), txid(&last)]));
}

#[test]
fn a_full_mempool_evicts_the_lowest_fee_rate() {
    let bytes_max = 12_000;
    let mut f = Fixture::new(|config| config.mempool_bytes_max = bytes_max);
    let wide = tx(&[(f.coinbase(1), u32::MAX)], &[VALUE / 30; 30], 0);
    f.mine(std::slice::from_ref(&wide));
    let spend = |vout: u32, fee: i64| {
        let out = OutPoint { txid: txid(&wide), vout };
        tx(&[(out, u32::MAX)], &[VALUE / 30 - fee], 0)
    };
    // A low-fee parent is kept by its child.
    let poor = spend(0, 50);
    let rich = child(&poor, VALUE / 30 - 50_000);
    f.offer(&poor);
    f.offer(&rich);
    let mut offered = Vec::new();
    for vout in 1..30 {
        let tx = spend(vout, 1000 * i64::from(vout));
        let verdict = f.engine.mempool().submit(tx.bytes().to_vec(), None);
        offered.push((tx, verdict));
        assert!(f.engine.mempool().info().usage <= bytes_max);
    }
    let info = f.engine.mempool().info();
    assert!(info.min_fee_sat_per_kvb > info.min_relay_fee_sat_per_kvb);
    let mempool = f.mempool();
    assert!(mempool.contains(&txid(&poor)) && mempool.contains(&txid(&rich)));
    // Each was better than all before, so each was admitted, and the best remain.
    assert!(offered.iter().all(|(_, verdict)| verdict.is_ok()));
    let is_left: Vec<bool> = offered.iter().map(|(tx, _)| mempool.contains(&txid(tx))).collect();
    assert!(is_left.is_sorted() && is_left[28] && !is_left[0], "{is_left:?}");
    let again = f.engine.mempool().submit(offered[0].0.bytes().to_vec(), None).unwrap_err();
    assert_eq!(again.reason, "mempool min fee not met");
    let worst = spend(0, 60_000);
    assert!(f.engine.mempool().submit(worst.bytes().to_vec(), None).is_ok(), "replaces two");
    // A list longer than the limit leaves as many as fit.
    let mut f = f.reopen(false);
    f.config.mempool_bytes_max = 4000;
    let f = f.reopen(false);
    let list: Vec<_> = offered.iter().map(|(tx, _)| tx.bytes().to_vec()).collect();
    let verdicts = f.engine.mempool().submit_all(list, None);
    assert!(f.engine.mempool().info().usage <= 4000);
    assert!(verdicts.iter().any(Result::is_ok));
    assert!(verdicts.iter().flatten().any(|id| f.mempool().contains(id)));
    assert!(verdicts.iter().filter_map(|v| v.as_ref().err()).any(|r| r.reason == "mempool full"));
}
