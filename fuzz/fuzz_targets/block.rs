//! Blocks: what parses is what was given, and every rule that needs only the block ends with a verdict.

#![no_main]

use std::sync::LazyLock;

use assay_consensus::block::{
    BlockRules, check_merkle_root, check_order_and_locks, check_shape, check_transactions,
    check_weight, check_witnesses,
};
use assay_consensus::chain::HeaderFacts;
use assay_consensus::params::ChainParams;
use assay_consensus::signet::check_signet_solution;
use assay_fuzz::FirstByte;
use assay_wire::{Block, BlockHash, Encoding, Header};
use libfuzzer_sys::fuzz_target;

static CHAINS: LazyLock<[ChainParams; 3]> = LazyLock::new(|| {
    let chain = |name| ChainParams::by_name(name).expect("a known chain");
    [chain("regtest"), chain("bch-regtest"), ChainParams::custom_signet(vec![0x51])]
});

fuzz_target!(|data: &[u8]| {
    for params in CHAINS.iter() {
        let prefix = Block::parse_prefix(data.to_vec(), params.encoding);
        match Block::parse(data.to_vec(), params.encoding) {
            Ok(block) => {
                assert_eq!(prefix.as_ref().map(Block::bytes), Ok(block.bytes()));
                check(&block, data, params);
            }
            Err(_) => {
                // A prefix that parses is a block by itself.
                if let Ok(block) = prefix {
                    let bytes = block.bytes().to_vec();
                    assert!(data.starts_with(&bytes));
                    assert!(Block::parse(bytes, params.encoding).is_ok());
                }
            }
        }
    }
});

fn check(block: &Block, data: &[u8], params: &ChainParams) {
    let header = *block.header();
    assert_eq!(header.to_bytes(), data[..80]);
    let head: [u8; 80] = data[..80].try_into().expect("80 bytes");
    assert_eq!(Header::parse(&head), header);
    let txs: Vec<u8> = block.txs().flat_map(|tx| tx.raw().to_vec()).collect();
    assert!(data.ends_with(&txs));
    let inputs: usize = block.txs().map(|tx| tx.input_count()).sum();
    assert_eq!(block.input_count(), inputs);
    assert_eq!(block.weight(), 3 * block.stripped_size() + data.len());
    if params.encoding == Encoding::Legacy {
        assert_eq!(block.stripped_size(), data.len());
    }

    let (txids, wtxids): (Vec<_>, Vec<_>) = block.txs().map(|tx| (tx.txid(), tx.wtxid())).unzip();
    for (tx, (txid, wtxid)) in block.txs().zip(txids.iter().zip(&wtxids)) {
        assert!(tx.has_witness() || txid.0 == wtxid.0);
    }
    let _ = check_merkle_root(&header, &txids);
    let _ = check_signet_solution(params, block, &txids, &mut FirstByte);
    if check_shape(params, block).is_err() {
        return;
    }
    let _ = check_transactions(block, &txids, 0..block.tx_count());
    let parent = HeaderFacts { hash: header.prev_block, time: header.time, bits: header.bits };
    let rules = BlockRules::new(params, &[parent][..], &header, &BlockHash::ZERO);
    let _ = check_order_and_locks(&rules, block, &txids, 0..block.tx_count());
    let _ = check_witnesses(rules.segwit, block, &wtxids);
    let _ = check_weight(&rules, block);
}
