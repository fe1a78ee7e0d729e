//! Blocks and transactions, filters over them, and their identifiers.

use std::sync::LazyLock;

use assay_consensus::block::{
    BlockRules, check_merkle_root, check_order_and_locks, check_shape, check_transactions,
    check_weight, check_witnesses,
};
use assay_consensus::chain::HeaderFacts;
use assay_consensus::locktime::{SequenceLocks, is_final_tx};
use assay_consensus::params::ChainParams;
use assay_consensus::signet::check_signet_solution;
use assay_consensus::sigops::legacy_sigops;
use assay_consensus::tx::check_transaction;
use assay_wire::filter::{Filter, encode};
use assay_wire::{Block, BlockHash, Encoding, Header, Transaction, Txid};

use crate::input::FirstByte;

static CHAINS: LazyLock<[ChainParams; 3]> = LazyLock::new(|| {
    let chain = |name| ChainParams::by_name(name).expect("a known chain");
    [chain("regtest"), chain("bch-regtest"), ChainParams::custom_signet(vec![0x51])]
});

/// Blocks: what parses is what was given, and every rule that needs only the block ends with a verdict.
pub fn block(data: &[u8]) {
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
}

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

/// Transactions: what parses is what was given, without its witnesses it is still the same
/// transaction, and counting and checking end with a verdict.
pub fn transaction(data: &[u8]) {
    for encoding in [Encoding::Segwit, Encoding::Legacy] {
        let Ok(transaction) = Transaction::parse(data.to_vec(), encoding) else { continue };
        let tx = transaction.view();
        assert_eq!(tx.raw(), data);
        assert_eq!(tx.total_size(), data.len());
        assert_eq!(tx.weight(), 3 * tx.stripped_size() + tx.total_size());
        let stripped = tx.stripped_parts().concat();
        assert_eq!(stripped.len(), tx.stripped_size());
        // Without inputs the stripped form would read as a witness marker.
        if tx.input_count() > 0 {
            let bare = Transaction::parse(stripped, encoding).expect("stripping keeps the layout");
            assert_eq!(bare.view().txid(), tx.txid());
            assert_eq!(bare.view().wtxid().0, tx.txid().0);
            assert_eq!(legacy_sigops(bare.view()), legacy_sigops(tx));
        }
        let outputs: usize = tx.outputs().map(|output| output.script_pubkey.len() + 9).sum();
        assert!(outputs <= tx.outputs_raw().len());
        for input in 0..tx.input_count() {
            assert_eq!(tx.witness(input).iter().count(), tx.witness(input).len());
        }
        let _ = check_transaction(tx);
        let _ = is_final_tx(tx, 100, 1_500_000_000);
        let heights = (0..tx.input_count() as u32).map(|index| index.wrapping_mul(7919));
        let locks = SequenceLocks::of(tx, heights, |height| height);
        let _ = locks.permit(1000, 1000);
    }
}

/// Block filters: what decodes has as many values as it says, and a filter that is made finds all it was made of.
pub fn filter(data: &[u8]) {
    if let Ok(filter) = Filter::parse(data) {
        assert_eq!(filter.values().count(), filter.count() as usize);
    }
    let Some((hash, rest)) = data.split_first_chunk::<32>() else { return };
    let hash = BlockHash(*hash);
    let elements: Vec<&[u8]> = rest.split(|byte| *byte == 0).collect();
    let bytes = encode(&hash, elements.clone());
    let filter = Filter::parse(&bytes).expect("our own filter");
    assert!(filter.values().is_sorted());
    for element in elements {
        assert!(filter.matches_any(&hash, [element]));
    }
}

/// Identifiers as text: what parses prints as it was, in lower case.
pub fn ids(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let txid = text.parse::<Txid>();
    let hash = text.parse::<BlockHash>();
    assert_eq!(txid.is_ok(), hash.is_ok());
    let is_hex = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    assert_eq!(txid.is_ok(), is_hex);
    if let (Ok(txid), Ok(hash)) = (txid, hash) {
        assert_eq!(txid.to_string(), text.to_ascii_lowercase());
        assert_eq!(hash.to_string(), txid.to_string());
    }
}
