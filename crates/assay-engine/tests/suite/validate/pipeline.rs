//! Chains with several invalid blocks: in any order of detection, the lowest is reported and the coins are those below it.

use assay_engine::{Config, Engine, SubmitOutcome};
use assay_testkit::random::Random;
use assay_wire::{Block, Txid};

use super::files::{Part, write};
use super::{End, ValidateConfig, config, magic, moved, muhash, printed, run};
use crate::forged::chain::{Forged, repair};

/// Breaks a signature, in a witness or in an input script; the latter changes the txid, so that the inputs of its child are
/// missing.
fn break_signature(raw: &mut [u8], forged: &Forged, random: &mut Random) {
    let params = forged.params();
    let block = Block::parse(raw.to_vec(), params.encoding).unwrap();
    let base = block.bytes().as_ptr() as usize;
    let mut places = Vec::new();
    for tx in block.txs().skip(1) {
        for input in 0..tx.input_count() {
            let script = tx.input(input).script_sig;
            // Within r of a signature in a P2PKH spend.
            places.extend((script.len() > 90).then(|| script.as_ptr() as usize - base + 20));
            let items = tx.witness(input).iter().filter(|item| item.len() > 60);
            places.extend(items.map(|item| item.as_ptr() as usize - base + 20));
        }
    }
    let mut broken = 1 + random.below(2);
    while broken > 0 {
        let (place, bit) = (places[random.below(places.len())], 1 << random.below(7));
        raw[place] ^= bit;
        let block = Block::parse(raw.to_vec(), params.encoding).unwrap();
        // As numbers, whose bytes are stored in little endian.
        let number = |txid: Txid| txid.0.iter().rev().copied().collect::<Vec<u8>>();
        let txids: Vec<_> = block.txs().skip(1).map(|tx| number(tx.txid())).collect();
        // Bitcoin Cash requires transactions ordered by txid: one that would have to move is no test of scripts.
        if params.cash.is_some() && !txids.is_sorted() {
            raw[place] ^= bit;
        } else {
            broken -= 1;
        }
    }
    repair(raw, &params);
}

/// The chain with signatures broken in the blocks at these heights.
fn broken_chain(forged: &Forged, heights: &[u32], random: &mut Random) -> Vec<Vec<u8>> {
    let mut parent = forged.params().genesis_hash;
    (1..=forged.height())
        .map(|height| {
            let mut raw = forged.block(height);
            if heights.contains(&height) {
                break_signature(&mut raw, forged, random);
            }
            if height > heights[0] {
                (raw, _) = moved(&raw, parent, forged);
            }
            parent = Block::parse(raw.clone(), forged.params().encoding).unwrap().hash();
            raw
        })
        .collect()
}

struct Verdict {
    height: u32,
    reason: String,
    muhash: String,
}

fn engine_muhash(engine: &Engine) -> String {
    printed(engine.chain().utxo_stats(true).unwrap().muhash.unwrap())
}

/// Block by block with immediate signatures: the reference.
fn judge_step_by_step(forged: &Forged, chain: &[Vec<u8>]) -> Verdict {
    let datadir = tempfile::tempdir().unwrap();
    let mut config = Config::new(datadir.path(), forged.params());
    config.script_batch = None;
    let engine = Engine::open(config).unwrap();
    for (index, raw) in chain.iter().enumerate() {
        match engine.blocks().submit(raw.clone()) {
            SubmitOutcome::Accepted => {}
            SubmitOutcome::Rejected { reason, .. } => {
                let height = index as u32 + 1;
                assert_eq!(engine.chain().tip().height, height - 1);
                return Verdict { height, reason, muhash: engine_muhash(&engine) };
            }
            other => panic!("{other:?}"),
        }
    }
    panic!("the chain was meant to be invalid")
}

/// All headers first and then the blocks from the last to the first, so that the first one completes the whole chain.
fn check_engine(
    forged: &Forged,
    chain: &[Vec<u8>],
    expected: &Verdict,
    change: impl Fn(&mut Config),
) {
    let datadir = tempfile::tempdir().unwrap();
    let mut config = Config::new(datadir.path(), forged.params());
    change(&mut config);
    let engine = Engine::open(config.clone()).unwrap();
    let blocks: Vec<Block> = chain
        .iter()
        .map(|raw| Block::parse(raw.clone(), forged.params().encoding).unwrap())
        .collect();
    for block in &blocks {
        let outcome = engine.blocks().submit_header(block.header());
        assert!(matches!(outcome, SubmitOutcome::Inconclusive));
    }
    for raw in chain[1..].iter().rev() {
        let outcome = engine.blocks().submit(raw.clone());
        assert!(matches!(outcome, SubmitOutcome::Inconclusive), "{outcome:?}");
    }
    assert!(matches!(engine.blocks().submit(chain[0].clone()), SubmitOutcome::Accepted));
    assert_eq!(engine.chain().tip().hash, blocks[expected.height as usize - 2].hash());
    assert_eq!(engine_muhash(&engine), expected.muhash);
    let bad = &chain[expected.height as usize - 1];
    assert!(matches!(engine.blocks().submit(bad.clone()), SubmitOutcome::DuplicateInvalid));
    // Its data on disk agree, also after a start that must connect everything again.
    drop(engine);
    let engine = Engine::open(config).unwrap();
    assert_eq!(engine.chain().tip().hash, blocks[expected.height as usize - 2].hash());
    assert_eq!(engine_muhash(&engine), expected.muhash);
}

#[test]
fn the_lowest_invalid_block_is_reported_in_any_order() {
    let mut random = Random(41);
    for (recipe, seed) in [("bitcoin-scaling", 41), ("bitcoin-scaling", 42), ("bch-scaling", 43)] {
        let forged = Forged::new(recipe, seed, None);
        for _ in 0..3 {
            let mut heights: Vec<u32> = (0..=random.below(3))
                .map(|_| 102 + random.below(forged.height() as usize - 102) as u32)
                .collect();
            heights.sort_unstable();
            let chain = broken_chain(&forged, &heights, &mut random);
            let expected = judge_step_by_step(&forged, &chain);
            assert_eq!(expected.height, heights[0]);

            let dir = tempfile::tempdir().unwrap();
            let blocks = chain.iter().cloned().map(Part::Block).collect();
            write(dir.path(), magic(&forged), None, &[blocks]);
            let batches = [None, Some(1), Some(100), Some(3000)];
            for (batch, threads) in batches.into_iter().zip([3, 1, 2, 4]) {
                let datadir = tempfile::tempdir().unwrap();
                let config = ValidateConfig {
                    script_batch: batch,
                    threads,
                    is_lasting: threads > 1,
                    cache_bytes_max: if threads == 2 { 1 << 18 } else { 64 << 20 },
                    ..config(&forged, dir.path(), datadir.path())
                };
                let validation = run(&config);
                let End::Invalid(invalid) = &validation.end else { panic!("{:?}", validation.end) };
                assert_eq!((invalid.height, &invalid.reason), (expected.height, &expected.reason));
                assert_eq!(validation.height, expected.height - 1);
                assert_eq!(validation.totals.blocks, u64::from(expected.height - 1));
                assert_eq!(muhash(&validation), expected.muhash);
                check_engine(&forged, &chain, &expected, |config| {
                    config.script_batch = batch;
                    config.threads = threads;
                    config.cache_bytes_max = if threads == 2 { 1 << 18 } else { 64 << 20 };
                });
            }
        }
    }
}
