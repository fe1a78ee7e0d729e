use super::*;
use crate::chain::{Ancestors, HeaderFacts};
use crate::params::CashRules;
use crate::script::{Flags, ScriptError};
use crate::tx::{SpentCoin, TxError};
use assay_testkit::chain::{TxBuilder, block_of, coinbase, txids, wtxids};
use assay_wire::{BlockHash, Encoding, OutPoint};

mod bip54;

fn params(name: &str) -> ChainParams {
    ChainParams::by_name(name).expect("the chain is known")
}

fn chain(length: u32) -> Vec<HeaderFacts> {
    (0..length)
        .map(|height| HeaderFacts {
            hash: BlockHash::ZERO,
            time: 1_500_000_000 + height * 600,
            bits: 0x207f_ffff,
        })
        .collect()
}

/// Rules for a block on top of a chain of `length` blocks, so at that height.
fn rules(params: &ChainParams, length: u32) -> BlockRules {
    let header = block_of(&[coinbase(100, 0).bytes()], Encoding::Segwit);
    BlockRules::new(params, chain(length).as_slice(), header.header(), &BlockHash([9; 32]))
}

fn spend(number: u8) -> TxBuilder {
    TxBuilder::new(1).input(number, 0, &[], u32::MAX).output(1, &[0x51])
}

fn reason<T: std::fmt::Debug>(result: Result<T, BlockError>) -> String {
    match result {
        Ok(_) => "ok".to_owned(),
        Err(error) => error.reject_reason().into_owned(),
    }
}

fn alone(params: &ChainParams, txs: &[TxBuilder]) -> String {
    let bytes: Vec<Vec<u8>> = txs.iter().map(TxBuilder::bytes).collect();
    let block = block_of(&bytes, params.encoding);
    reason(check_block(params, &block, &txids(&block)))
}

#[test]
fn shape_of_a_block() {
    let regtest = params("regtest");
    let cb = || coinbase(100, 1);
    assert_eq!(alone(&regtest, &[cb()]), "ok");
    assert_eq!(alone(&regtest, &[cb(), spend(1)]), "ok");
    assert_eq!(alone(&regtest, &[]), "bad-blk-length");
    assert_eq!(alone(&regtest, &[spend(1)]), "bad-cb-missing");
    assert_eq!(alone(&regtest, &[cb(), spend(1), cb()]), "bad-cb-multiple");
    let huge = |bytes: usize| TxBuilder::new(1).input(1, 0, &[], 0).output(1, &vec![0; bytes]);
    assert_eq!(alone(&regtest, &[cb(), huge(900_000)]), "ok");
    assert_eq!(alone(&regtest, &[cb(), huge(500_000), huge(500_000)]), "bad-blk-length");
    let cash = params("bch-regtest");
    assert_eq!(alone(&cash, &[cb(), huge(500_000), huge(500_001)]), "ok");
    let small = cash.clone().with_block_bytes_max(1_000_000);
    assert_eq!(alone(&small, &[cb(), huge(500_000), huge(500_001)]), "ok", "judged later");
    assert_eq!(alone(&cash, &[]), "bad-cb-missing");
    assert_eq!(alone(&cash, &[spend(1), cb()]), "bad-cb-missing");
    assert_eq!(alone(&cash, &[cb(), spend(1), cb()]), "bad-tx-coinbase");
}

#[test]
fn transactions_and_their_operations() {
    let regtest = params("regtest");
    let bad = spend(1).output(-1, &[]);
    assert_eq!(alone(&regtest, &[coinbase(100, 1), bad]), "bad-txns-vout-negative");
    // 20,000 operations are the limit, counted as four each.
    let operations = |count: usize| spend(1).output(0, &vec![0xac; count]);
    assert_eq!(alone(&regtest, &[coinbase(100, 1), operations(20_000)]), "ok");
    assert_eq!(alone(&regtest, &[coinbase(100, 1), operations(20_001)]), "bad-blk-sigops");
    assert_eq!(alone(&params("bch-regtest"), &[coinbase(100, 1), operations(20_001)]), "ok");
}

#[test]
fn ranges_add_up_to_the_whole() {
    let txs: Vec<Vec<u8>> = std::iter::once(coinbase(100, 1))
        .chain((1..40).map(|number| spend(number).output(0, &vec![0xac; usize::from(number)])))
        .map(|tx| tx.bytes())
        .collect();
    let block = block_of(&txs, Encoding::Segwit);
    let ids = txids(&block);
    let whole = TxFacts::of_range(&block, 0..40);
    let parts: Vec<TxFacts> = [0..13, 13..14, 14..40]
        .into_iter()
        .flat_map(|range| {
            check_transactions(&block, &ids, range.clone()).expect("all are valid");
            TxFacts::of_range(&block, range)
        })
        .collect();
    assert_eq!(whole, parts);
    let sigops: u32 = whole.iter().map(|facts| facts.legacy_sigops).sum();
    assert_eq!(sigops, (1..40).sum::<u32>());
    assert!(whole[0].is_coinbase && !whole[1].is_coinbase);
}

#[test]
fn merkle_root_and_its_malleability() {
    let txs: Vec<Vec<u8>> =
        [coinbase(100, 1), spend(1), spend(2)].iter().map(TxBuilder::bytes).collect();
    let block = block_of(&txs, Encoding::Segwit);
    let mut ids = txids(&block);
    assert_eq!(check_merkle_root(block.header(), &ids), Ok(()));
    ids.push(ids[2]);
    let error = check_merkle_root(block.header(), &ids).expect_err("repeated");
    assert_eq!(error.reject_reason(), "bad-txns-duplicate");
    assert!(error.is_mutation());
    ids.truncate(2);
    let error = check_merkle_root(block.header(), &ids).expect_err("one is missing");
    assert_eq!(error.reject_reason(), "bad-txnmrklroot");
    assert!(error.is_mutation());
}

fn in_chain(rules: &BlockRules, txs: &[TxBuilder]) -> String {
    let bytes: Vec<Vec<u8>> = txs.iter().map(TxBuilder::bytes).collect();
    let encoding = if rules.cash.is_some() { Encoding::Legacy } else { Encoding::Segwit };
    let block = block_of(&bytes, encoding);
    reason(contextual_check_block(rules, &block, &txids(&block), &wtxids(&block)))
}

#[test]
fn place_in_the_chain() {
    let rules = rules(&params("regtest"), 100);
    assert_eq!(rules.height, 100);
    assert!(rules.bip30 && rules.segwit && rules.sequence_locks && rules.height_in_coinbase);
    assert_eq!(rules.lock_time_cutoff_s, 1_500_000_000 + 94 * 600);
    assert_eq!(in_chain(&rules, &[coinbase(100, 1), spend(1)]), "ok");
    assert_eq!(in_chain(&rules, &[coinbase(101, 1)]), "bad-cb-height");
    let locked =
        |lock_time| TxBuilder::new(1).input(1, 0, &[], 0).output(1, &[]).lock_time(lock_time);
    assert_eq!(in_chain(&rules, &[coinbase(100, 1), locked(99)]), "ok");
    assert_eq!(in_chain(&rules, &[coinbase(100, 1), locked(100)]), "bad-txns-nonfinal");
    let before_csv = ChainParams {
        activation: crate::params::ActivationHeights { csv: 500, ..params("regtest").activation },
        ..params("regtest")
    };
    let rules = self::rules(&before_csv, 100);
    assert_eq!(rules.lock_time_cutoff_s, 1_600_000_000, "the time of the block itself");
    assert!(!rules.sequence_locks);
}

/// A coinbase whose commitment fits a block of itself and `spends`.
fn committing(spends: &[TxBuilder], witness: &[&[u8]]) -> TxBuilder {
    let mut ids = vec![Wtxid::ZERO];
    ids.extend(spends.iter().map(|tx| tx.build().view().wtxid()));
    let hash = witness_commitment(&ids, &[3; 32]);
    let script = [&crate::commitment::WITNESS_COMMITMENT_HEADER[..], &hash].concat();
    let tx = coinbase(100, 1).output(0, &script);
    if witness.is_empty() { tx } else { tx.witness(witness) }
}

#[test]
fn witness_commitments() {
    let rules = rules(&params("regtest"), 100);
    let with_witness = spend(1).witness(&[b"item"]);
    let other_witness = spend(1).witness(&[b"other"]);
    let spends = [with_witness.clone()];
    let nonce = [3; 32];
    let check = |cb: TxBuilder, tx: &TxBuilder| in_chain(&rules, &[cb, tx.clone()]);
    assert_eq!(check(committing(&spends, &[&nonce]), &with_witness), "ok");
    assert_eq!(check(coinbase(100, 1), &with_witness), "unexpected-witness");
    assert_eq!(check(committing(&spends, &[]), &with_witness), "bad-witness-nonce-size");
    assert_eq!(check(committing(&spends, &[&nonce[1..]]), &with_witness), "bad-witness-nonce-size");
    let two = committing(&spends, &[&nonce, &nonce]);
    assert_eq!(check(two, &with_witness), "bad-witness-nonce-size");
    let wrong = committing(&spends, &[&[4; 32]]);
    assert_eq!(check(wrong, &with_witness), "bad-witness-merkle-match");
    let swapped = committing(&spends, &[&nonce]);
    assert_eq!(check(swapped, &other_witness), "bad-witness-merkle-match");
    let before_segwit = BlockRules { segwit: false, ..rules };
    let block = [committing(&spends, &[&nonce]), with_witness];
    assert_eq!(in_chain(&before_segwit, &block), "unexpected-witness");
}

#[test]
fn weight_counts_witnesses() {
    let rules = rules(&params("regtest"), 100);
    let heavy = |bytes: usize| spend(1).witness(&[&vec![0; bytes]]);
    let check = |bytes| in_chain(&rules, &[committing(&[heavy(bytes)], &[&[3; 32]]), heavy(bytes)]);
    assert_eq!(check(3_990_000), "ok");
    assert_eq!(check(4_000_000), "bad-blk-weight");
}

#[test]
fn cash_orders_and_bounds_transactions() {
    let rules = rules(&params("bch-regtest"), 200);
    assert!(!rules.height_in_coinbase && !rules.segwit);
    let long = |number: u8| spend(number).output(1, &[0x51; 60]);
    let mut sorted: Vec<TxBuilder> = (1..6).map(long).collect();
    sorted.sort_by_key(|tx| {
        let mut id = tx.build().view().txid().0;
        id.reverse();
        id
    });
    let block = |txs: &[TxBuilder]| {
        let mut all = vec![coinbase(200, 1).output(1, &[0x51; 60])];
        all.extend_from_slice(txs);
        in_chain(&rules, &all)
    };
    assert_eq!(block(&sorted), "ok");
    let mut swapped = sorted.clone();
    swapped.swap(1, 2);
    assert_eq!(block(&swapped), "tx-ordering");
    let all: Vec<Vec<u8>> =
        std::iter::once(coinbase(200, 1)).chain(swapped).map(|tx| tx.bytes()).collect();
    let unordered = block_of(&all, Encoding::Legacy);
    let in_range = |range| {
        let verdict = check_order_and_locks(&rules, &unordered, &txids(&unordered), range);
        verdict.map_err(|error| error.tx_index())
    };
    assert_eq!(in_range(1..3), Ok(()));
    assert_eq!(in_range(3..4), Err(Some(3)), "a range looks back on the one before it");
    let doubled = [sorted[0].clone(), sorted[0].clone()];
    assert_eq!(block(&doubled), "tx-duplicate");
    // 61 bytes of a transaction with one empty output, the rest its script.
    let sized =
        |bytes: usize| TxBuilder::new(1).input(1, 0, &[], 0).output(1, &vec![0x51; bytes - 60]);
    assert_eq!(sized(100).bytes().len(), 100);
    assert_eq!(block(&[sized(100)]), "ok");
    assert_eq!(block(&[sized(99)]), "bad-txns-undersize");
    for version in [i32::MIN, -1, 0, 3] {
        let tx = TxBuilder::new(version).input(1, 0, &[], 0).output(1, &[0x51; 60]);
        assert_eq!(block(&[tx]), "ok", "version {version}, a rule of May 2023");
    }
}

#[test]
fn cash_bounds_the_size_after_all_that_is_in_it() {
    let small = params("bch-regtest").with_block_bytes_max(1_000_000);
    let rules = rules(&small, 200);
    let long = |bytes: usize| TxBuilder::new(1).input(1, 0, &[], 0).output(1, &vec![0; bytes]);
    let cb = || coinbase(200, 1).output(1, &[0x51; 60]);
    assert_eq!(in_chain(&rules, &[cb(), long(999_000)]), "ok");
    assert_eq!(in_chain(&rules, &[cb(), long(1_000_000)]), "bad-blk-length");
    assert_eq!(in_chain(&rules, &[cb(), long(1), long(1_000_000)]), "bad-txns-undersize");
}

#[test]
fn cash_bounds_executed_checks() {
    let cash = rules(&params("bch-regtest"), 200);
    assert_eq!(cash.check_tx_sigchecks(3000), Ok(()));
    assert_eq!(
        cash.check_tx_sigchecks(3001).map_err(|e| e.reject_reason()),
        Err("too-many-sigchecks")
    );
    assert_eq!(cash.check_block_sigchecks(1_815_602), Ok(()));
    assert_eq!(reason(cash.check_block_sigchecks(1_815_603)), "blk-bad-inputs");
    let limit = CashRules { block_bytes_max: 282, ..cash.cash.expect("cash rules") };
    assert_eq!(limit.block_sigchecks_max(), 2);
    let bitcoin = rules(&params("regtest"), 200);
    assert_eq!(bitcoin.check_tx_sigchecks(u64::MAX), Ok(()));
    assert_eq!(bitcoin.check_block_sigchecks(u64::MAX), Ok(()));
}

#[test]
fn spends_give_fee_and_cost() {
    let rules = rules(&params("regtest"), 200);
    let p2wpkh = [&[0, 20][..], &[1; 20]].concat();
    let coin = |height| SpentCoin { value: 10, height, coinbase: false, script_pubkey: &p2wpkh };
    let tx = TxBuilder::new(2).input(1, 0, &[], 3).output(4, &[0xac]).build();
    let check = |height: u32| {
        rules.check_spends(tx.view(), [coin(height)].into_iter(), |_| unreachable!("no time locks"))
    };
    assert_eq!(check(197), Ok(TxSpend { fee: 6, sigop_cost: 5 }));
    assert_eq!(check(198), Err(TxError::SequenceLocked { lock_height: 200, lock_time_s: -1 }));
    let cb = coinbase(200, 7).output(1, &[0xac]).build();
    let spent = rules.check_spends(cb.view(), std::iter::empty(), |_| 0);
    assert_eq!(spent, Ok(TxSpend { fee: 0, sigop_cost: 4 }));
    let cash = self::rules(&params("bch-regtest"), 200);
    let spent = cash.check_spends(tx.view(), [coin(200)].into_iter(), |_| 0);
    assert_eq!(spent, Ok(TxSpend { fee: 6, sigop_cost: 0 }), "no BIP68 at height 200");
}

#[test]
fn totals_and_the_coinbase() {
    let mut totals = BlockTotals::default();
    assert_eq!(totals.add(1, TxSpend { fee: 5, sigop_cost: 79_999 }), Ok(()));
    assert_eq!(totals.add(2, TxSpend { fee: 6, sigop_cost: 1 }), Ok(()));
    assert_eq!(totals, BlockTotals { fees: 11, sigop_cost: 80_000 });
    let mut full = totals;
    assert_eq!(reason(full.add(3, TxSpend { fee: 0, sigop_cost: 1 })), "bad-blk-sigops");
    let money = TxSpend { fee: crate::amount::MAX_MONEY, sigop_cost: 0 };
    assert_eq!(reason(totals.add(3, money)), "bad-txns-accumulated-fee-outofrange");

    let rules = rules(&params("regtest"), 200);
    assert_eq!(rules.subsidy, 2_500_000_000);
    let pays = |value| {
        let block = block_of(&[coinbase(200, value).bytes()], Encoding::Segwit);
        check_coinbase_amount(&rules, &block, 11)
    };
    assert_eq!(pays(2_500_000_011), Ok(()));
    let error = pays(2_500_000_012).expect_err("one too many");
    assert_eq!(error.reject_reason(), "bad-cb-amount");
    let expected = "coinbase pays too much (actual=2500000012 vs limit=2500000011)";
    assert_eq!(error.debug_message(), expected);
}

#[test]
fn old_coinbases_need_no_search_on_the_real_chain() {
    let main = params("main");
    let mut headers = chain(228_000);
    let header = block_of(&[coinbase(100, 0).bytes()], Encoding::Segwit);
    let bip30 = |headers: &[HeaderFacts], hash| {
        BlockRules::new(&main, headers, header.header(), &hash).bip30
    };
    assert!(bip30(&headers, BlockHash::ZERO), "another chain");
    headers[227_931].hash = main.activation.bip34_hash.expect("main has the hash");
    assert!(!bip30(&headers, BlockHash::ZERO), "the real chain after BIP34");
    assert!(!bip30(&headers[..227_932], BlockHash::ZERO), "BIP34's block is the parent");
    assert!(bip30(&headers[..227_931], BlockHash::ZERO), "BIP34's own block");
    let repeat: BlockHash = "00000000000a4d0a398161ffc163c503763b1f4360639393e0e4c8e300e0caec"
        .parse()
        .expect("64 digits");
    assert!(!bip30(&headers[..91_842], repeat));
    assert!(bip30(&headers[..91_842], BlockHash::ZERO));
    assert!(bip30(&headers[..91_841], repeat));
}

/// The real chain as far as BIP30 asks about it.
struct RealChain(u32);

impl Ancestors for RealChain {
    fn tip_height(&self) -> u32 {
        self.0
    }
    fn header_at(&self, height: u32) -> HeaderFacts {
        let hash = params("main").activation.bip34_hash.filter(|_| height == 227_931);
        HeaderFacts { hash: hash.unwrap_or_default(), time: 0, bits: 0 }
    }
}

#[test]
fn old_coinbases_need_a_search_again_where_they_claimed_heights() {
    let main = params("main");
    let header = block_of(&[coinbase(100, 0).bytes()], Encoding::Segwit);
    let bip30 = |height: u32| {
        let parent = RealChain(height - 1);
        BlockRules::new(&main, &parent, header.header(), &BlockHash::ZERO).bip30
    };
    assert!(!bip30(227_932) && !bip30(490_897) && !bip30(1_983_701));
    assert!(bip30(1_983_702) && bip30(1_983_703) && bip30(5_000_000));
}

#[test]
fn script_failures_speak_like_core() {
    let failure = ScriptFailure {
        txid: Txid([0xaa; 32]),
        wtxid: Wtxid([0xbb; 32]),
        input: 3,
        prevout: OutPoint { txid: Txid([0xcc; 32]), vout: 7 },
        error: ScriptError::EvalFalse,
        rules: ScriptRules::Bitcoin,
    };
    let text = "Script evaluated without error but finished with a false/empty top stack element";
    let expected = format!("mempool-script-verify-flag-failed ({text})");
    assert_eq!(failure.mempool_reject_reason(), expected);
    let error = BlockError::Script { tx_index: 5, source: Box::new(failure.clone()) };
    assert_eq!(error.reject_reason(), format!("block-script-verify-flag-failed ({text})"));
    let (a, b, c) = ("aa".repeat(32), "bb".repeat(32), "cc".repeat(32));
    assert_eq!(error.debug_message(), format!("input 3 of {a} (wtxid {b}), spending {c}:7"));
    assert_eq!(error.tx_index(), Some(5));
    assert!(!error.is_mutation());
    let cash =
        ScriptFailure { error: ScriptError::CleanStack, rules: ScriptRules::Cash, ..failure };
    assert_eq!(cash.block_reject_reason(), "blk-bad-inputs");
    let text = "Extra items left on stack after execution";
    assert_eq!(
        cash.mempool_reject_reason(),
        format!("mandatory-script-verify-flag-failed ({text})")
    );
    let policy = ScriptFailure { rules: ScriptRules::CashPolicy, ..cash };
    assert_eq!(
        policy.mempool_reject_reason(),
        format!("non-mandatory-script-verify-flag ({text})")
    );
    assert!(policy.debug_message().starts_with(&format!("{text}, input 3 of ")));
    assert!(size_of::<BlockError>() <= 112, "verdicts are returned by value");
}

#[test]
fn mempool_rules_apply_lock_times_early() {
    let mut params = params("regtest");
    params.activation.csv = 10_000;
    let next = BlockRules::next(&params, chain(100).as_slice());
    assert!(next.sequence_locks);
    assert_eq!(next.lock_time_cutoff_s, i64::from(next.parent_median_time_past));
    assert!(!next.flags.contains(Flags::CHECKSEQUENCEVERIFY));
}
