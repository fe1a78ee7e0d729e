//! Real blocks of the main and test networks.

use super::*;
use assay_testkit::data;

struct Case {
    file: &'static str,
    chain: &'static str,
    height: u32,
    txs: usize,
    commits: bool,
}

const CASES: [Case; 7] = [
    Case { file: "mainnet-300025", chain: "main", height: 300_025, txs: 461, commits: false },
    Case { file: "mainnet-413567", chain: "main", height: 413_567, txs: 1557, commits: false },
    Case { file: "testnet3-928816", chain: "test", height: 928_816, txs: 889, commits: true },
    Case { file: "testnet3-928828", chain: "test", height: 928_828, txs: 201, commits: false },
    Case { file: "testnet3-928831", chain: "test", height: 928_831, txs: 915, commits: true },
    Case { file: "testnet3-928849", chain: "test", height: 928_849, txs: 993, commits: true },
    Case { file: "testnet3-1087400", chain: "test", height: 1_087_400, txs: 97, commits: true },
];

/// One spent output per input, in block order: value, script length, script.
fn parse_prevouts(bytes: &[u8]) -> Vec<(i64, &[u8])> {
    let mut rest = bytes;
    let mut out = Vec::new();
    while let Some((value, after)) = rest.split_first_chunk() {
        let (length, after) = after.split_first_chunk().expect("a script length");
        let (script, after) = after.split_at(u32::from_le_bytes(*length) as usize);
        out.push((i64::from_le_bytes(*value), script));
        rest = after;
    }
    out
}

/// The rules at a height of the real chain, without the headers before it.
fn rules_at(params: &ChainParams, height: u32, header: &Header) -> BlockRules {
    BlockRules {
        height,
        flags: params.block_script_flags(height, &header.hash()),
        lock_time_cutoff_s: i64::from(header.time),
        parent_median_time_past: header.time,
        sequence_locks: false,
        height_in_coinbase: height >= params.activation.bip34,
        segwit: params.segwit_active(height),
        bip54: false,
        bip30: false,
        subsidy: crate::subsidy::block_subsidy(params, height),
        cash: None,
    }
}

#[test]
fn real_blocks_obey_the_rules() {
    for case in &CASES {
        let Some(bytes) = data::read(&format!("blocks/{}.blk", case.file)) else { continue };
        let params = params(case.chain);
        let block = Block::parse(bytes, params.encoding).expect("a real block parses");
        assert_eq!(block.tx_count(), case.txs, "{}", case.file);
        let (ids, wids) = (txids(&block), wtxids(&block));
        assert_eq!(crate::header::check_header(&params, block.header(), &block.hash()), Ok(()));
        assert_eq!(check_block(&params, &block, &ids), Ok(()), "{}", case.file);
        let rules = rules_at(&params, case.height, block.header());
        assert_eq!(contextual_check_block(&rules, &block, &ids, &wids), Ok(()), "{}", case.file);
        assert_eq!(needs_wtxids(&rules, &block), case.commits, "{}", case.file);

        let mut changed = wids;
        changed[1].0[0] ^= 1;
        let verdict = reason(check_witnesses(rules.segwit, &block, &changed));
        let expected = if case.commits { "bad-witness-merkle-match" } else { "ok" };
        assert_eq!(verdict, expected, "{}", case.file);

        if let Some(prevouts) = data::read(&format!("blocks/{}.prevouts", case.file)) {
            check_amounts(case, &rules, &block, &parse_prevouts(&prevouts));
        }
    }
}

/// Fees and subsidy bound what the coinbase pays, and real miners leave nothing behind.
fn check_amounts(case: &Case, rules: &BlockRules, block: &Block, prevouts: &[(i64, &[u8])]) {
    let mut totals = BlockTotals::default();
    let mut rest = prevouts;
    for (tx_index, tx) in block.txs().enumerate() {
        let count = if tx_index == 0 { 0 } else { tx.input_count() };
        let (own, after) = rest.split_at(count);
        rest = after;
        let spent = own.iter().map(|(value, script_pubkey)| SpentCoin {
            value: *value,
            height: 1,
            coinbase: false,
            script_pubkey,
        });
        let spend = rules.check_spends(tx, spent, |_| 0).expect("a real transaction is valid");
        totals.add(tx_index, spend).expect("a real block stays within its limits");
    }
    assert!(rest.is_empty(), "{}: one prevout per input", case.file);
    assert!(totals.sigop_cost > 0);
    assert_eq!(check_coinbase_amount(rules, block, totals.fees), Ok(()), "{}", case.file);
    let paid = output_total(block.tx(0));
    assert_eq!(paid, rules.subsidy + totals.fees, "{}", case.file);
    assert!(check_coinbase_amount(rules, block, totals.fees - 1).is_err());
}
