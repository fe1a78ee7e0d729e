//! Blocks with a single fault have the reference node's reject reason and change nothing.

use assay_consensus::params::ChainParams;
use assay_engine::{Engine, SubmitOutcome};
use assay_testkit::chain::{coinbase_with, header_on, mined_block_bytes};
use assay_wire::{Block, BlockHash, Header};
use tempfile::TempDir;

use super::chain::{Forged, accept, reason, repair};

/// An engine one block before the last, and that last block.
fn before_last(recipe: &str, last: u32) -> (Forged, TempDir, Engine, Vec<u8>) {
    let forged = Forged::new(recipe, 31, Some(last));
    let datadir = tempfile::tempdir().unwrap();
    let engine = forged.open(datadir.path());
    forged.feed(&engine, 1..=last - 1);
    let raw = forged.block(last);
    (forged, datadir, engine, raw)
}

/// `count` blocks with only a coinbase on top of the block at `height`.
pub(crate) fn empty_branch(forged: &Forged, height: u32, count: u32) -> Vec<Vec<u8>> {
    let params = forged.params();
    let parent = Block::parse(forged.block(height), params.encoding).unwrap();
    let mut prev_block: BlockHash = parent.hash();
    let mut time = parent.header().time;
    let mut branch = Vec::new();
    for height in height + 1..=height + count {
        time += 600;
        let mut script_sig = assay_consensus::commitment::height_prefix(height);
        script_sig.extend([8; 60]);
        let coinbase = coinbase_with(&script_sig).output(0, &[0x51]).build();
        let header = Header { bits: parent.header().bits, ..header_on(prev_block, time) };
        let raw = mined_block_bytes(header, [&coinbase]);
        prev_block = Block::parse(raw.clone(), params.encoding).unwrap().hash();
        branch.push(raw);
    }
    branch
}

/// The block with its transactions sorted by txid after the coinbase.
fn in_canonical_order(raw: &[u8], params: &ChainParams) -> Vec<u8> {
    let block = Block::parse(raw.to_vec(), params.encoding).unwrap();
    let mut txs: Vec<_> = block.txs().collect();
    txs[1..].sort_by_key(|tx| tx.txid().to_string());
    let mut out = raw[..txs_start(raw)].to_vec();
    for tx in &txs {
        out.extend_from_slice(tx.raw());
    }
    out
}

/// Offset of the first transaction.
fn txs_start(raw: &[u8]) -> usize {
    Header::SIZE + if raw[Header::SIZE] < 253 { 1 } else { 3 }
}

#[test]
fn a_flipped_signature_bit() {
    let (forged, _dir, engine, raw) = before_last("bch-scaling", 101);
    let params = forged.params();
    let block = Block::parse(raw.clone(), params.encoding).unwrap();
    // A transaction without a child in the block, so that nothing else changes: the last of a chain.
    let spent: Vec<_> =
        block.txs().flat_map(|tx| tx.inputs().map(|input| input.prevout.txid)).collect();
    let victim = block.txs().skip(1).find(|tx| !spent.contains(&tx.txid())).unwrap();
    let at = victim.offset() + 4 + 1 + 36 + 1 + 1 + 60;
    let mut bad = raw.clone();
    bad[at] ^= 1;
    // The txid changes with the signature, so the transactions are sorted again.
    let mut sorted = in_canonical_order(&bad, &params);
    repair(&mut sorted, &params);
    let found = reason(&engine, sorted);
    assert_eq!(found, "blk-bad-inputs");
    assert_eq!(reason(&engine, bad), "bad-txnmrklroot");
    accept(&engine, raw);
    forged.check_tip(&engine);
}

#[test]
fn a_flipped_signature_bit_on_bitcoin_leaves_false_on_the_stack() {
    let (forged, _dir, engine, raw) = before_last("bitcoin-scaling", 112);
    let params = forged.params();
    let block = Block::parse(raw.clone(), params.encoding).unwrap();
    let victim =
        block.txs().skip(1).find(|tx| !tx.has_witness()).or_else(|| block.txs().nth(1)).unwrap();
    let at = if victim.has_witness() {
        // First witness item of the first input, some bytes into S.
        let witness_bytes: usize =
            (0..victim.input_count()).map(|i| victim.witness(i).serialized_size()).sum();
        victim.offset() + victim.total_size() - 4 - witness_bytes + 50
    } else {
        victim.offset() + 4 + 1 + 36 + 1 + 1 + 60
    };
    let mut bad = raw.clone();
    bad[at] ^= 1;
    repair(&mut bad, &params);
    let found = reason(&engine, bad);
    assert!(found.starts_with("block-script-verify-flag-failed ("), "{found}");
    accept(&engine, raw);
    forged.check_tip(&engine);
}

#[test]
fn truncated_unknown_parent_and_again() {
    let (forged, _dir, engine, raw) = before_last("bch-scaling", 101);
    for length in [0, 79, 80, raw.len() / 2, raw.len() - 1] {
        let outcome = engine.blocks().submit(raw[..length].to_vec());
        assert!(matches!(outcome, SubmitOutcome::Undecodable(_)), "{outcome:?}");
    }
    let mut orphan = raw.clone();
    orphan[4..36].fill(9);
    repair(&mut orphan, &forged.params());
    assert_eq!(reason(&engine, orphan), "prev-blk-not-found");
    accept(&engine, raw.clone());
    assert!(matches!(engine.blocks().submit(raw), SubmitOutcome::Duplicate));
    forged.check_tip(&engine);
}

/// As `rules/overwrites.rs`, with heights in coinbases.
#[test]
fn a_repeated_transaction_fails_for_its_outputs_before_its_inputs() {
    let datadir = tempfile::tempdir().unwrap();
    let engine = super::mint::open(datadir.path(), 16 << 20);
    let mut mint = super::mint::Mint::new();
    for raw in mint.branch(102, 0) {
        accept(&engine, raw);
    }
    let tx = mint.spend().unwrap();
    accept(&engine, mint.block_of(std::slice::from_ref(&tx)));
    let mut later = mint.clone();
    assert_eq!(reason(&engine, later.block_of(std::slice::from_ref(&tx))), "bad-txns-BIP30");
    // With both outputs spent there is nothing to overwrite.
    let txid = tx.view().txid();
    let outputs = [0, 1].map(|vout| (assay_wire::OutPoint { txid, vout }, u32::MAX));
    let value = tx.view().output(0).value;
    accept(&engine, mint.block_of(&[super::mint::tx(&outputs, &[value], 0)]));
    assert_eq!(reason(&engine, mint.block_of(&[tx])), "bad-txns-inputs-missingorspent");
}
