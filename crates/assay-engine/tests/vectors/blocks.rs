//! Real blocks, checked by every rule that needs only the block and its height; `suite/real_blocks.rs` runs their scripts.
//!
//! Block 702861 of the main network is part of the package `bitcoin-test-data`; the others are shared test data. The earlier chain
//! is unknown here, so the time of the block itself replaces the median time past.

use assay_consensus::block::{
    BlockRules, check_block, check_coinbase_height, check_order_and_locks, check_weight,
    check_witnesses, contextual_check_block, needs_wtxids,
};
use assay_consensus::chain::{Ancestors, HeaderFacts};
use assay_consensus::commitment::witness_commitment_index;
use assay_consensus::header::check_header;
use assay_consensus::params::ChainParams;
use assay_wire::{Block, BlockHash, Encoding, Txid, Wtxid};

use crate::data;
use crate::outcome::{Outcome, Report};

pub(crate) fn run(report: &mut Report) {
    let packaged = || Some(bitcoin_test_data::blocks::mainnet_702861().to_vec());
    let hash = "000000000000000000000c835b2adcaedc20fdf6ee440009c249452c726dafae";
    report.file("bitcoin-test-data: block 702861", packaged, |raw, outcome| {
        check_file("main", 702_861, Some(hash), raw, outcome);
    });
    for (network, height) in [
        ("mainnet", 300_025),
        ("mainnet", 413_567),
        ("testnet3", 928_816),
        ("testnet3", 928_828),
        ("testnet3", 928_831),
        ("testnet3", 928_849),
        ("testnet3", 1_087_400),
    ] {
        let name = format!("{network}-{height}.blk");
        let chain = if network == "mainnet" { "main" } else { "test" };
        let file = || data::shared(&format!("blocks/{name}"));
        report.file(&name, file, |raw, outcome| check_file(chain, height, None, raw, outcome));
    }
}

/// Unknown headers before a block, which only exist.
struct Unknown {
    parent: u32,
    time: u32,
}

impl Ancestors for Unknown {
    fn tip_height(&self) -> u32 {
        self.parent
    }
    fn header_at(&self, _: u32) -> HeaderFacts {
        HeaderFacts { hash: BlockHash::ZERO, time: self.time, bits: 0 }
    }
}

/// The identifiers of all transactions.
fn ids(block: &Block) -> (Vec<Txid>, Vec<Wtxid>) {
    block.txs().map(|tx| (tx.txid(), tx.wtxid())).unzip()
}

fn check_file(chain: &str, height: u32, hash: Option<&str>, raw: &[u8], outcome: &mut Outcome) {
    let params = ChainParams::by_name(chain).expect("a known chain");
    let block = Block::parse(raw.to_vec(), params.encoding).expect("a block");
    let header = block.header();
    let ancestors = Unknown { parent: height - 1, time: header.time };
    let rules = BlockRules::new(&params, &ancestors, header, &block.hash());
    let (txids, wtxids) = ids(&block);

    outcome.case("hash and work", |log| {
        let known = hash.is_none_or(|hash| block.hash().to_string() == hash);
        log.check(known, || format!("hash {}", block.hash()));
        log.check(raw[..80] == header.to_bytes(), || "header does not round trip".into());
        let verdict = check_header(&params, header, &block.hash());
        log.check(verdict.is_ok(), || format!("{verdict:?}"));
    });
    outcome.case("sizes", |log| {
        let parts: Vec<u8> = block.txs().flat_map(|tx| tx.raw().to_vec()).collect();
        log.check(raw.ends_with(&parts), || "transactions do not round trip".into());
        let framing = raw.len() - parts.len();
        let stripped: usize = block.txs().map(|tx| tx.stripped_size()).sum();
        let weight = 3 * (stripped + framing) + raw.len();
        log.check(block.weight() == weight, || format!("weight {}", block.weight()));
    });
    outcome.case("block alone", |log| {
        let verdict = check_block(&params, &block, &txids);
        log.check(verdict.is_ok(), || format!("{verdict:?}"));
    });
    outcome.case("lock times", |log| {
        let verdict = check_order_and_locks(&rules, &block, &txids, 0..block.tx_count());
        log.check(verdict.is_ok(), || format!("{verdict:?}"));
    });
    outcome.case("height in the coinbase", |log| {
        let verdict = check_coinbase_height(&rules, &block);
        log.check(rules.height_in_coinbase && verdict.is_ok(), || format!("{verdict:?}"));
        let other = BlockRules { height: height + 1, ..rules };
        log.check(check_coinbase_height(&other, &block).is_err(), || "any height will do".into());
    });
    outcome.case("witness commitment", |log| {
        let verdict = check_witnesses(rules.segwit, &block, &wtxids);
        log.check(verdict.is_ok(), || format!("{verdict:?}"));
        let committed = witness_commitment_index(block.tx(0)).is_some();
        let expected = rules.segwit && committed;
        log.check(needs_wtxids(&rules, &block) == expected, || "commitment overlooked".into());
    });
    outcome.case("weight", |log| {
        let verdict = check_weight(&rules, &block);
        log.check(verdict.is_ok(), || format!("{verdict:?}"));
    });
    outcome.case("any changed bit", |log| {
        for at in (0..97).map(|step| 80 + (raw.len() - 80) * step / 97) {
            let mut changed = raw.to_vec();
            changed[at] ^= 1 << (at % 8);
            log.check(!unchanged(&params, &rules, changed), || format!("byte {at} is not covered"));
        }
    });
}

/// True if header and coinbase still commit to the whole block.
fn unchanged(params: &ChainParams, rules: &BlockRules, raw: Vec<u8>) -> bool {
    let Ok(block) = Block::parse(raw, Encoding::Segwit) else { return false };
    let (txids, wtxids) = ids(&block);
    check_block(params, &block, &txids).is_ok()
        && contextual_check_block(rules, &block, &txids, &wtxids).is_ok()
}
