//! The mempool through restarts.

use std::collections::HashSet;
use std::fs;
use std::slice::from_ref;
use std::time::{SystemTime, UNIX_EPOCH};

use assay_engine::{MempoolFileError, MempoolImport, MempoolLoad, TxRejectCode};
use assay_wire::{Transaction, Txid};

use super::fixture::{Fixture, child, txid};

fn now_s() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64
}

/// A file of version 1 with transactions and their times.
fn plain_file(txs: &[(&Transaction, i64)]) -> Vec<u8> {
    let mut out = 1u64.to_le_bytes().to_vec();
    out.extend((txs.len() as u64).to_le_bytes());
    for (tx, time) in txs {
        out.extend_from_slice(tx.bytes());
        out.extend(time.to_le_bytes());
        out.extend(7i64.to_le_bytes());
    }
    out.extend([0, 0]);
    out
}

#[test]
fn the_mempool_survives_a_restart() {
    let mut f = Fixture::new(|_| ());
    let parent = f.spend(1, 90_000_000);
    let next = child(&parent, 80_000_000);
    let lone = f.spend(2, 90_000_000);
    // The parent enters the mempool after its child, from a disconnected block.
    let block = f.mine(from_ref(&parent));
    f.offer(&next);
    f.offer(&lone);
    f.engine.chain().invalidate_block(&block).unwrap();
    let all: HashSet<Txid> = [&parent, &next, &lone].map(txid).into();
    assert_eq!(f.mempool(), all);
    let times = |f: &Fixture| {
        let mut times: Vec<_> =
            f.engine.mempool().entries().iter().map(|entry| (entry.txid, entry.time)).collect();
        times.sort_unstable();
        times
    };
    let before = times(&f);

    assert_eq!(f.engine.mempool().load().unwrap(), MempoolLoad::default(), "there is no file yet");
    let f = f.reopen(true);
    assert!(f.mempool().is_empty() && !f.engine.mempool().info().loaded);
    let load = f.engine.mempool().load().unwrap();
    assert_eq!(load, MempoolLoad { admitted: 3, ..MempoolLoad::default() });
    assert!(f.engine.mempool().info().loaded);
    assert_eq!((f.mempool(), times(&f)), (all.clone(), before));
    let path = f.engine.mempool().save().unwrap();
    assert_eq!(fs::read(&path).unwrap()[..8], [2, 0, 0, 0, 0, 0, 0, 0]);
    let load = f.engine.mempool().import(&path, import(false)).unwrap();
    assert_eq!(load, MempoolLoad { known: 3, ..MempoolLoad::default() });

    // An engine that never loaded the file does not change it, nor does one without persistence.
    let saved = fs::read(&path).unwrap();
    let mut f = f.reopen(false).reopen(true);
    assert_eq!(fs::read(&path).unwrap(), saved);
    f.config.persist_mempool = false;
    let mut f = f.reopen(true);
    assert!(f.engine.mempool().info().loaded);
    f.config.persist_mempool = true;
    let f = f.reopen(true);
    assert_eq!(fs::read(&path).unwrap(), saved);
    f.engine.mempool().load().unwrap();
    assert_eq!(f.mempool(), all);
}

#[test]
fn skips_expired_spent_and_unreadable_transactions() {
    let mut f = Fixture::new(|_| ());
    let path = f.engine.mempool().path();
    let fresh = f.spend(1, 90_000_000);
    let old = f.spend(2, 90_000_000);
    let spent = f.spend(3, 90_000_000);
    let other = f.spend(3, 91_000_000);
    f.mine(&[other]);
    let two_weeks_s = 336 * 3600;
    let bytes = plain_file(&[
        (&fresh, now_s() - two_weeks_s + 600),
        (&old, now_s() - two_weeks_s - 1),
        (&spent, now_s()),
    ]);
    fs::write(&path, &bytes).unwrap();
    let load = f.engine.mempool().load().unwrap();
    let expected = MempoolLoad { admitted: 1, refused: 1, expired: 1, ..MempoolLoad::default() };
    assert_eq!(load, expected);
    assert_eq!(f.mempool(), HashSet::from([txid(&fresh)]));
    // With the current time nothing has expired.
    let load = f.engine.mempool().import(&path, import(true)).unwrap();
    assert_eq!((load.admitted, load.known, load.refused), (1, 1, 1));

    let f = f.reopen(false);
    fs::write(&path, &bytes[..bytes.len() - 60]).unwrap();
    let load = f.engine.mempool().load().unwrap();
    assert_eq!((load.admitted, load.expired), (1, 1));
    let damage = load.damage.unwrap();
    // In the third of three entries of equal size.
    let third = 16 + (bytes.len() as u64 - 18) / 3 * 2;
    assert_eq!(damage.path, path);
    assert!((third..bytes.len() as u64 - 60).contains(&damage.offset), "{damage}");
    assert!(f.engine.mempool().info().loaded);

    let f = f.reopen(false);
    fs::write(&path, [9; 40]).unwrap();
    let refused = f.engine.mempool().load();
    assert!(matches!(&refused, Err(MempoolFileError::Format { path: at }) if *at == path));
    let missing = f.engine.mempool().import(&path.with_extension("none"), import(true));
    assert!(matches!(missing, Err(MempoolFileError::Io(_))), "{missing:?}");
    let f = f.reopen(true);
    assert_eq!(f.engine.mempool().load().unwrap(), MempoolLoad::default(), "an empty mempool");
}

/// Whatever was admitted before or during a shutdown is in the file.
#[test]
fn a_closed_engine_admits_nothing() {
    let f = Fixture::new(|_| ());
    f.engine.mempool().load().unwrap();
    let (mut chain, late) = (vec![f.spend(1, 90_000_000)], f.spend(2, 90_000_000));
    for _ in 0..50 {
        let last = chain.last().unwrap();
        let next = child(last, last.view().output(0).value - 1000);
        chain.push(next);
    }
    f.offer(&chain[0]);
    let submit = |tx: &Transaction| f.engine.mempool().submit(tx.bytes().to_vec(), None);
    let admitted: HashSet<Txid> = std::thread::scope(|scope| {
        let submitted = scope.spawn(|| chain[1..].iter().map_while(|tx| submit(tx).ok()).collect());
        f.engine.shutdown().unwrap();
        submitted.join().unwrap()
    });
    let refused = submit(&late).unwrap_err();
    assert_eq!((refused.code, &*refused.reason), (TxRejectCode::Failed, "internal error"));
    let outcome = f.engine.mempool().submit_package(vec![late.bytes().to_vec()], None).unwrap();
    assert_eq!(outcome.reject.unwrap().reason, "internal error");
    let mut all = admitted;
    all.insert(txid(&chain[0]));

    let f = f.reopen(false);
    let load = f.engine.mempool().load().unwrap();
    assert_eq!((load.admitted as usize, load.refused), (all.len(), 0));
    assert_eq!(f.mempool(), all);
    // A load into a closing engine is not complete, so that the file stays.
    f.engine.shutdown().unwrap();
    assert!(f.engine.mempool().load().unwrap().is_interrupted);
}

fn import(use_current_time: bool) -> MempoolImport {
    MempoolImport { use_current_time, apply_fee_deltas: false, apply_unbroadcast: false }
}
