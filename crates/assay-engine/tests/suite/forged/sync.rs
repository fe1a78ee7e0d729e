//! Complete syncs, with and without restarts.

use assay_engine::SubmitOutcome;

use super::chain::Forged;

fn sync_with_restarts(recipe: &str) {
    let forged = Forged::new(recipe, 7, None);
    let datadir = tempfile::tempdir().unwrap();
    let engine = forged.open(datadir.path());
    forged.feed(&engine, 1..=103);
    engine.shutdown().unwrap();
    drop(engine);

    // A clean restart, then one without a flush: as after a kill, the archived blocks must be connected again.
    let engine = forged.open(datadir.path());
    assert_eq!(engine.chain().tip().height, 103);
    forged.feed(&engine, 104..=112);
    drop(engine);
    let engine = forged.open(datadir.path());
    assert_eq!(engine.chain().tip().height, 112);
    let again = engine.blocks().submit(forged.block(112));
    assert!(matches!(again, SubmitOutcome::Duplicate), "{again:?}");
    forged.feed(&engine, 113..=forged.height());
    forged.check_tip(&engine);
    engine.flush().unwrap();
    forged.check_tip(&engine);
    engine.shutdown().unwrap();
    let refused = engine.blocks().submit(forged.block(forged.height()));
    assert!(!matches!(refused, SubmitOutcome::Accepted));
    drop(engine);
    forged.check_tip(&forged.open(datadir.path()));
}

#[test]
fn bch_chain_reaches_the_forges_coins() {
    sync_with_restarts("bch-scaling");
}

#[test]
fn bitcoin_chain_reaches_the_forges_coins() {
    sync_with_restarts("bitcoin-scaling");
}

#[test]
fn a_small_cache_changes_nothing() {
    let forged = Forged::new("bch-scaling", 8, None);
    let datadir = tempfile::tempdir().unwrap();
    let mut config = assay_engine::Config::new(datadir.path(), forged.params());
    config.cache_bytes_max = 1 << 18;
    let engine = assay_engine::Engine::open(config).unwrap();
    forged.feed(&engine, 1..=forged.height());
    forged.check_tip(&engine);
}

#[test]
fn waiting_ends_with_the_block_the_timeout_or_the_engine() {
    let forged = Forged::new("bch-scaling", 9, Some(2));
    let datadir = tempfile::tempdir().unwrap();
    let engine = forged.open(datadir.path());
    let timeout = Some(std::time::Duration::from_millis(1));
    assert_eq!(engine.chain().wait_for(timeout, |tip| tip.height >= 1).height, 0);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| engine.chain().wait_for(None, |tip| tip.height >= 2));
        forged.feed(&engine, 1..=2);
        assert_eq!(waiting.join().unwrap().height, 2);
        let waiting = scope.spawn(|| engine.chain().wait_for(None, |tip| tip.height >= 3));
        engine.shutdown().unwrap();
        assert_eq!(waiting.join().unwrap().height, 2);
    });
}

#[test]
fn spent_coins_and_entries_can_be_read_back() {
    let forged = Forged::new("bch-scaling", 10, Some(112));
    let datadir = tempfile::tempdir().unwrap();
    let engine = forged.open(datadir.path());
    forged.feed(&engine, 1..=112);
    let hash = engine.chain().hash_at(112).unwrap();
    let line = &forged.ledger.blocks[111];
    let entry = engine.chain().entry(&hash).unwrap();
    assert_eq!((entry.height, u64::from(entry.tx_count)), (112, line.txs));
    assert_eq!(u64::from(entry.size), line.bytes);
    assert!(entry.in_active_chain && entry.next.is_none());
    assert_eq!(engine.blocks().read(&hash).unwrap().unwrap(), forged.block(112));
    let spent = engine.blocks().read_spent(&hash).unwrap().unwrap();
    assert_eq!(spent.len() as u64, line.txs - 1);
    assert_eq!(spent.iter().map(Vec::len).sum::<usize>() as u64, line.inputs);
    let genesis = engine.chain().hash_at(0).unwrap();
    assert_eq!(engine.chain().entry(&genesis).unwrap().height, 0);
    assert!(engine.blocks().read(&genesis).unwrap().is_some());
}
