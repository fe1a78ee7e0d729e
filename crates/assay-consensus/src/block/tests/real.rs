//! Real blocks of the main and test networks, without spent outputs.

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
    }
}
