//! Two branches from genesis: the longer one wins in either order.

use assay_engine::SubmitOutcome;

use super::chain::Forged;

fn switch_branches(recipe: &str) {
    let short = Forged::new(recipe, 21, Some(111));
    let long = Forged::new(recipe, 22, Some(113));
    let datadir = tempfile::tempdir().unwrap();
    let engine = short.open(datadir.path());
    short.feed(&engine, 1..=111);
    short.check_tip(&engine);
    for height in 1..=111 {
        let outcome = engine.blocks().submit(long.block(height));
        // The chains may share their first blocks.
        assert!(
            matches!(outcome, SubmitOutcome::Inconclusive | SubmitOutcome::Duplicate),
            "height {height}: {outcome:?}"
        );
    }
    short.check_tip(&engine);
    long.feed(&engine, 112..=113);
    long.check_tip(&engine);
    drop(engine);
    let engine = long.open(datadir.path());
    long.check_tip(&engine);
}

#[test]
fn bch_branches() {
    switch_branches("bch-scaling");
}

#[test]
fn bitcoin_branches() {
    switch_branches("bitcoin-scaling");
}

#[test]
fn unconfirmed_transactions_follow() {
    let short = Forged::new("bch-scaling", 23, Some(101));
    let datadir = tempfile::tempdir().unwrap();
    let engine = short.open(datadir.path());
    short.feed(&engine, 1..=101);
    // A sibling of block 101 without transactions, and one on top: the transactions of 101 are unconfirmed again.
    let confirmed = short.ledger.blocks[100].txs - 1;
    let empty = super::bad_blocks::empty_branch(&short, 100, 2);
    for raw in empty {
        let outcome = engine.blocks().submit(raw);
        assert!(
            matches!(outcome, SubmitOutcome::Accepted | SubmitOutcome::Inconclusive),
            "{outcome:?}"
        );
    }
    assert_eq!(engine.chain().tip().height, 102);
    assert_eq!(engine.mempool().info().size as u64, confirmed);
}
