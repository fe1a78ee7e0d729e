use assay_wire::OutPoint;

use super::*;
use assay_testkit::chain::TxBuilder;

fn reason(tx: &TxBuilder) -> &'static str {
    match check_transaction(tx.build().view()) {
        Ok(()) => "ok",
        Err(error) => error.reject_reason(),
    }
}

fn plain() -> TxBuilder {
    TxBuilder::new(1).input(1, 0, &[], 0)
}

#[test]
fn each_rule_has_its_reason() {
    assert_eq!(reason(&plain().output(0, &[])), "ok");
    assert_eq!(reason(&TxBuilder::new(1).output(0, &[])), "bad-txns-vin-empty");
    assert_eq!(reason(&plain()), "bad-txns-vout-empty");
    assert_eq!(reason(&plain().output(-1, &[])), "bad-txns-vout-negative");
    assert_eq!(reason(&plain().output(i64::MIN, &[])), "bad-txns-vout-negative");
    assert_eq!(reason(&plain().output(MAX_MONEY, &[])), "ok");
    assert_eq!(reason(&plain().output(MAX_MONEY + 1, &[])), "bad-txns-vout-toolarge");
    let two = plain().output(MAX_MONEY, &[]).output(1, &[]);
    assert_eq!(reason(&two), "bad-txns-txouttotal-toolarge");
    let doubled = plain().input(2, 0, &[], 0).input(1, 0, &[], 5).output(0, &[]);
    assert_eq!(reason(&doubled), "bad-txns-inputs-duplicate");
    let with_null = plain().spend(OutPoint::NULL, &[0, 0], 0).output(0, &[]);
    assert_eq!(reason(&with_null), "bad-txns-prevout-null");
}

#[test]
fn coinbase_scripts_have_two_to_a_hundred_bytes() {
    for (length, expected) in
        [(0, "bad-cb-length"), (1, "bad-cb-length"), (2, "ok"), (100, "ok"), (101, "bad-cb-length")]
    {
        let script = vec![0x51; length];
        let tx = TxBuilder::new(1).spend(OutPoint::NULL, &script, 0).output(0, &[]);
        assert_eq!(reason(&tx), expected, "{length}");
    }
}

#[test]
fn size_counts_without_witnesses() {
    let filled = |script_bytes: usize, witness_bytes: usize| {
        let tx = plain().output(0, &vec![0; script_bytes]);
        if witness_bytes == 0 { tx } else { tx.witness(&[&vec![0; witness_bytes]]) }
    };
    // 4 + 1 + 41 + 1 + (8 + 5) + 4 bytes surround the script.
    let fits = MAX_TX_BYTES - 64;
    assert_eq!(reason(&filled(fits, 0)), "ok");
    assert_eq!(reason(&filled(fits, 100_000)), "ok");
    assert_eq!(reason(&filled(fits + 1, 0)), "bad-txns-oversize");
}

fn coin(value: i64, height: u32, coinbase: bool) -> SpentCoin<'static> {
    SpentCoin { value, height, coinbase, script_pubkey: &[] }
}

#[test]
fn amounts_and_ages() {
    let tx = plain().input(2, 0, &[], 0).output(60, &[]).build();
    let check = |coins: [SpentCoin<'_>; 2], height| check_tx_inputs(tx.view(), coins, height);
    assert_eq!(check([coin(50, 1, false), coin(25, 1, false)], 2), Ok(15));
    assert_eq!(check([coin(60, 1, false), coin(0, 1, false)], 2), Ok(0));
    let error = check([coin(50, 1, false), coin(9, 1, false)], 2).expect_err("59 < 60");
    assert_eq!(error.reject_reason(), "bad-txns-in-belowout");
    assert_eq!(error.debug_message(), "value in (0.00000059) < value out (0.0000006)");
    let young = [coin(50, 1, false), coin(50, 10, true)];
    let error = check(young, 109).expect_err("depth 99");
    assert_eq!(error.reject_reason(), "bad-txns-premature-spend-of-coinbase");
    assert_eq!(error.debug_message(), "tried to spend coinbase at depth 99");
    assert_eq!(check(young, 110), Ok(40));
    for coins in [
        [coin(-1, 1, false), coin(100, 1, false)],
        [coin(MAX_MONEY + 1, 1, false), coin(0, 1, false)],
        [coin(MAX_MONEY, 1, false), coin(1, 1, false)],
        [coin(i64::MAX, 1, false), coin(i64::MAX, 1, false)],
    ] {
        let error = check(coins, 2).expect_err("no such money");
        assert_eq!(error.reject_reason(), "bad-txns-inputvalues-outofrange");
    }
}

#[test]
fn coins_alone_give_their_sum() {
    let good = [coin(5, 1, false), coin(6, 1, true)];
    assert_eq!(check_coins(good, 101), Ok(11));
    let young = Err(TxError::PrematureCoinbaseSpend { input: 1, depth: 99 });
    assert_eq!(check_coins(good, 100), young);
    assert_eq!(check_coins([], 100), Ok(0));
}

#[test]
fn reasons_differ_between_mempool_and_block() {
    let locked = TxError::NotFinal { lock_time: 1 };
    assert_eq!(
        (locked.reject_reason(), locked.block_reject_reason()),
        ("non-final", "bad-txns-nonfinal")
    );
    let sequence = TxError::SequenceLocked { lock_height: 1, lock_time_s: -1 };
    assert_eq!(sequence.reject_reason(), "non-BIP68-final");
    assert_eq!(sequence.block_reject_reason(), "bad-txns-nonfinal");
    let checks = TxError::SigChecks { sigchecks: 3001, sigchecks_max: 3000 };
    assert_eq!(
        (checks.reject_reason(), checks.block_reject_reason()),
        ("too-many-sigchecks", "blk-bad-inputs")
    );
}

#[test]
fn outputs_that_can_never_be_spent() {
    assert!(is_unspendable(&[0x6a]));
    assert!(is_unspendable(&vec![0; 10_001]));
    assert!(!is_unspendable(&vec![0; 10_000]));
    assert!(!is_unspendable(&[]));
    assert!(!is_unspendable(&[0x51, 0x6a]));
}
