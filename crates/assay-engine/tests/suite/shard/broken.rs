//! Blocks of a forged chain that are broken at random, and rules that look at all coins, on both sides of a cut: parts reject
//! if and only if one pass rejects.

use std::sync::Arc;

use assay_consensus::params::ChainParams;
use assay_engine::ShardVerdict;
use assay_testkit::chain::{P2SH_TRUE, block_bytes, coinbase_with, header_on};
use assay_testkit::random::Random;
use assay_wire::{Block, OutPoint, Transaction};

use super::attacks::{check_verdict, judge};
use crate::forged::chain::{Forged, repair};
use crate::forged::mint::tx;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    /// A bit of a witness: signatures, keys, scripts.
    Witness,
    /// A bit of a `script_sig`, or of an outpoint where that is empty.
    Input,
    /// A satoshi more for an output.
    Amount,
    /// A bit of a `script_pubkey`.
    Script,
    /// One second: nothing is broken.
    Time,
}

const CHANGES: [Change; 5] =
    [Change::Witness, Change::Input, Change::Amount, Change::Script, Change::Time];

/// Changes a block; false where it has nothing of the kind.
fn apply(
    change: Change,
    raw: &mut [u8],
    encoding: assay_wire::Encoding,
    random: &mut Random,
) -> bool {
    let block = Block::parse(raw.to_vec(), encoding).unwrap();
    if change == Change::Time {
        let time = block.header().time + 1;
        raw[68..72].copy_from_slice(&time.to_le_bytes());
        return true;
    }
    if block.tx_count() < 2 {
        return false;
    }
    let tx = block.tx(1 + random.below(block.tx_count() - 1));
    let (start, end) = (tx.offset(), tx.offset() + tx.total_size());
    let bit = 1 << random.below(8);
    match change {
        Change::Witness => {
            let bytes: usize =
                (0..tx.input_count()).map(|input| tx.witness(input).serialized_size()).sum();
            if !tx.has_witness() || bytes < 12 {
                return false;
            }
            // Behind the number and the length of the first items, so that the block still parses.
            let first = end - 4 - bytes;
            raw[first + 3 + random.below(8)] ^= bit;
        }
        Change::Input => {
            // The txid of the first outpoint, behind version, marker and number of inputs.
            let first = start + 4 + if tx.has_witness() { 2 } else { 0 } + 1;
            raw[first + random.below(32)] ^= bit;
        }
        Change::Amount | Change::Script => {
            let output = tx.output(random.below(tx.output_count()));
            let script = output.script_pubkey;
            let inside = &raw[start..end];
            let record = [&output.value.to_le_bytes()[..], &[script.len() as u8], script].concat();
            let at = inside.windows(record.len()).position(|bytes| bytes == record);
            let Some(at) = at.filter(|_| script.len() < 253 && !script.is_empty()) else {
                return false;
            };
            let at = start + at;
            if change == Change::Amount {
                raw[at..at + 8].copy_from_slice(&(output.value + 100_000_000).to_le_bytes());
            } else {
                raw[at + 9 + random.below(script.len())] ^= bit;
            }
        }
        Change::Time => unreachable!("done above"),
    }
    Block::parse(raw.to_vec(), encoding).is_ok()
}

/// Links the blocks from an index on to their parents again.
fn relink(blocks: &mut [Vec<u8>], from: usize, params: &ChainParams) {
    for at in from..blocks.len() {
        if at > from {
            let parent = Block::parse(blocks[at - 1].clone(), params.encoding).unwrap().hash();
            blocks[at][4..36].copy_from_slice(&parent.0);
        }
        repair(&mut blocks[at], params);
    }
}

#[test]
fn blocks_broken_at_random_are_rejected_if_and_only_if_one_pass_rejects() {
    let forged = Forged::new("bitcoin-scaling", 40, Some(116));
    let params = forged.params();
    let blocks: Vec<Vec<u8>> = (1..=forged.height()).map(|height| forged.block(height)).collect();
    let mut random = Random(41);
    let mut counts = [[0; 2]; CHANGES.len()];
    let mut round = 0;
    while round < 30 {
        let kind = round % CHANGES.len();
        let at = 100 + random.below(blocks.len() - 100);
        let mut changed = blocks.clone();
        if !apply(CHANGES[kind], &mut changed[at], params.encoding, &mut random) {
            continue;
        }
        round += 1;
        relink(&mut changed, at, &params);
        for parts in [1, 9] {
            let (accepted, verdict) = judge(&changed, &params, parts);
            let what = CHANGES[kind];
            assert_eq!(
                verdict == ShardVerdict::Valid,
                accepted,
                "round {round}, {what:?} in the block at height {}, {parts} parts: {verdict:?}",
                at + 1
            );
            counts[kind][usize::from(accepted)] += 1;
        }
    }
    let [witness, input, amount, script, time] = counts;
    assert!(witness[0] > 6 && input == [12, 0] && amount[0] > 6 && time == [0, 12], "{counts:?}");
    // An output's script may be changed where nobody spends it.
    assert_eq!(script[0] + script[1], 12);
}

/// A chain of 101 coinbases, `first` and others without value, and of these transactions, a coinbase first in each block.
fn chain_after(
    first: &Transaction,
    more: &[&[&Transaction]],
    params: &ChainParams,
) -> Vec<Vec<u8>> {
    let filler: Vec<Transaction> = (1000..1100).map(|number| coinbase(number, 0)).collect();
    let before = [first].into_iter().chain(&filler).map(|tx| vec![tx]);
    let (mut prev_block, mut time) = (params.genesis_hash, params.genesis.time);
    let block = |txs: Vec<&Transaction>| {
        time += 60;
        let header = header_on(prev_block, time);
        let mut raw = block_bytes(header, txs);
        repair(&mut raw, params);
        prev_block = Block::parse(raw.clone(), params.encoding).unwrap().hash();
        raw
    };
    before.chain(more.iter().map(|txs| txs.to_vec())).map(block).collect()
}

fn coinbase(number: u32, value: i64) -> Transaction {
    coinbase_with(&[&[4][..], &number.to_le_bytes(), &[0x51]].concat())
        .output(value, &P2SH_TRUE)
        .build()
}

fn of(tx: &Transaction) -> OutPoint {
    OutPoint { txid: tx.view().txid(), vout: 0 }
}

const VALUE: i64 = 100_000_000;

/// BIP30: whether a coinbase that comes again overwrites unspent coins shows the whole chain alone, so it is never accepted in
/// parts, and the verdict names the reason.
#[test]
fn a_coinbase_that_comes_again_is_left_to_one_pass() {
    let regtest = ChainParams::by_name("regtest").unwrap();
    let params = Arc::new(regtest.with_activation_height("bip34", u32::MAX).unwrap());
    let twin = coinbase(1, VALUE);
    let spend = tx(&[(of(&twin), u32::MAX)], &[VALUE - 1000], 0);
    let with = |more: &[&[&Transaction]]| chain_after(&twin, more, &params);
    let other = coinbase(2, 0);
    for (name, one_pass, blocks) in [
        ("unspent", false, with(&[&[&twin]])),
        ("spent before", true, with(&[&[&other, &spend], &[&twin]])),
    ] {
        for parts in [1, blocks.len()] {
            let (accepted, verdict) = judge(&blocks, &params, parts);
            assert_eq!(accepted, one_pass, "{name}");
            let is_named = matches!(
                &verdict,
                ShardVerdict::RepeatedCoinbase { txid, heights: (1, _) } if *txid == of(&twin).txid
            );
            assert!(is_named, "{name}, {parts} parts: {verdict:?}");
        }
    }
    // Without a repetition the same chain is valid in parts.
    let blocks = with(&[&[&other, &spend]]);
    assert_eq!(judge(&blocks, &params, blocks.len()), (true, ShardVerdict::Valid));
}

/// Rules of a block that need coins or heights, with every block a part of its own.
#[test]
fn rules_at_a_cut() {
    let regtest = ChainParams::by_name("regtest").unwrap();
    let late = Arc::new(regtest.with_activation_height("bip34", u32::MAX).unwrap());
    let early = Arc::new(
        ChainParams::by_name("regtest").unwrap().with_activation_height("bip34", 102).unwrap(),
    );
    let first = coinbase(1, VALUE);
    let subsidy = 50 * VALUE;
    let spend = tx(&[(of(&first), u32::MAX)], &[VALUE - 1000], 0);
    // The fee is known from the coin alone.
    let cases = [
        (
            "coinbase takes subsidy and fee",
            true,
            &late,
            vec![coinbase(2, subsidy + 1000), spend.clone()],
        ),
        (
            "coinbase takes a satoshi more",
            false,
            &late,
            vec![coinbase(2, subsidy + 1001), spend.clone()],
        ),
        ("BIP34, a coinbase without its height", false, &early, vec![coinbase(2, 0), spend]),
    ];
    for (name, is_valid, params, txs) in cases {
        let blocks = chain_after(&first, &[&txs.iter().collect::<Vec<_>>()], params);
        check_verdict(name, is_valid, &blocks, params);
    }
}
