//! The index against a plain map: reorgs, I/O failures and crashes.

use std::path::Path;
use std::sync::Arc;

use assay_store::io::{Fault, Io, Loss, SimIo};

use super::fixture::{Random, TestBlock, add, branches, chain, genesis, next};
use super::*;

fn open(io: &SimIo, genesis: &TestBlock, memory_bytes_max: usize) -> Result<Index, OpenError> {
    let mut config = IndexConfig::new("index", genesis.block().hash());
    config.memory_bytes_max = memory_bytes_max;
    Index::open(config, Arc::new(io.clone()))
}

/// Brings an index from any state to the end of `chain`, like a follower.
fn follow(index: &Index, chain: &[TestBlock]) -> Result<(), UpdateError> {
    while let Some(made) = next(index, chain)? {
        add(index, made)?;
    }
    Ok(())
}

#[test]
fn index_matches_map_model() {
    for seed in 0..6 {
        let mut random = Random(seed);
        let branches = branches(&mut random, 25, seed % 2 == 1);
        let io = SimIo::new();
        // From one run per block to none at all.
        let memory = [0, 3000, 40_000, 1 << 30][seed as usize % 4];
        let mut index = open(&io, &branches[0][0], memory).unwrap();
        for chain in &branches {
            let before = index.view();
            follow(&index, chain).unwrap();
            match random.below(5) {
                0 => index.commit().unwrap(),
                1 => while index.merge_once().unwrap() {},
                2 => {
                    index.commit().unwrap();
                    drop(index);
                    index = open(&io, &branches[0][0], memory).unwrap();
                }
                _ => {}
            }
            let (is_cached, view) = (random.below(2) == 0, index.view());
            io.set_cached(is_cached);
            let expected = &chain.last().unwrap().after;
            // With few runs, so that no query exceeds the limits of non-blocking reads.
            expected.check_at_once(&view, is_cached && index.usage().runs < 20);
            expected.check(&view);
            // An older view either returns its old results or reports the reorg.
            let height = before.tip().map_or(0, |tip| tip.height);
            match before.block_txs(height) {
                Ok(Some(txs)) => assert!(before.tip().is_some_and(|tip| tip.hash == txs.hash)),
                Ok(None) => assert!(before.tip().is_none()),
                Err(QueryError::Reorganised) => {}
                Err(error) => panic!("seed {seed}: {error}"),
            }
        }
    }
}

#[test]
fn merging_preserves_results() {
    let chain = chain(&mut Random(9), 70);
    let io = SimIo::new();
    let index = open(&io, &chain[0], 0).unwrap();
    follow(&index, &chain).unwrap();
    let before = index.usage();
    assert_eq!(before.runs, 71);
    while index.merge_once().unwrap() {}
    let after = index.usage();
    assert_eq!((after.runs, after.rows), (1, before.rows));
    assert!(after.run_bytes < before.run_bytes && after.bytes_written > before.bytes_written);
    let files = io.list(Path::new("index")).unwrap();
    assert_eq!(files.iter().filter(|name| name.starts_with("run-")).count(), 1);
    chain.last().unwrap().after.check(&index.view());
}

#[test]
fn index_recovers_from_a_crash_at_any_step() {
    let mut random = Random(4);
    let branches = branches(&mut random, 8, false);
    let genesis = &branches[0][0];
    let run = |io: &SimIo| -> Result<(), UpdateError> {
        let Ok(index) = open(io, genesis, 1500) else { return Ok(()) };
        for chain in &branches {
            follow(&index, chain)?;
            index.merge_once()?;
        }
        index.commit()
    };
    let whole = SimIo::new();
    run(&whole).unwrap();
    let last = branches.last().unwrap();
    for step in 0..whole.steps() {
        for fault in [Fault::Crash, Fault::Error, Fault::Broken] {
            let io = SimIo::new();
            io.fail_at(step, fault);
            let _ = run(&io);
            let losses =
                [Loss::Nothing, Loss::Unsynced, Loss::Zeroed, Loss::Torn { seed: step, unit: 512 }];
            for loss in losses {
                let io = io.restart(loss);
                let index = open(&io, genesis, 1500).unwrap_or_else(|error| {
                    panic!("step {step}, {fault:?}, {loss:?}: {error}");
                });
                if let Some(tip) = index.tip() {
                    let known = branches.iter().find_map(|chain| {
                        let made = chain.get(tip.height as usize)?;
                        (made.block().hash() == tip.hash).then_some(made)
                    });
                    known.expect("a block of one of the branches").after.check(&index.view());
                }
                follow(&index, last).unwrap();
                last.last().unwrap().after.check(&index.view());
            }
        }
    }
}

#[test]
fn index_recovers_from_disk_errors() {
    let mut random = Random(5);
    let branches = branches(&mut random, 8, false);
    let genesis = &branches[0][0];
    let whole = SimIo::new();
    let index = open(&whole, genesis, 1500).unwrap();
    let opened = whole.steps();
    for chain in &branches {
        follow(&index, chain).unwrap();
    }
    for step in opened..whole.steps() {
        for fault in [Fault::Error, Fault::Broken] {
            let io = SimIo::new();
            let index = open(&io, genesis, 1500).unwrap();
            io.fail_at(step, fault);
            for chain in &branches {
                if follow(&index, chain).is_err() {
                    follow(&index, chain).unwrap();
                }
                chain.last().unwrap().after.check(&index.view());
            }
        }
    }
}

#[test]
fn rejects_oversized_response() {
    let chain = chain(&mut Random(6), 40);
    let io = SimIo::new();
    let index = open(&io, &chain[0], 1 << 30).unwrap();
    follow(&index, &chain).unwrap();
    let model = &chain.last().unwrap().after;
    let (script, history) = model.history.iter().max_by_key(|(_, entries)| entries.len()).unwrap();
    let view = index.view();
    let max = history.len();
    assert!(matches!(view.history(script, 0, max - 1), Err(QueryError::TooLarge { .. })));
    assert_eq!(view.history(script, 0, max).unwrap().len(), max);
    assert!(matches!(view.unspent(script, 0), Err(QueryError::TooLarge { .. })));
}

#[test]
fn rejects_other_chains_and_damaged_files() {
    let mut random = Random(7);
    let first = genesis(&mut random);
    let other = genesis(&mut random);
    let io = SimIo::new();
    let index = open(&io, &first, 0).unwrap();
    add(&index, &first).unwrap();
    index.commit().unwrap();
    assert!(matches!(add(&index, &first), Err(UpdateError::NotNext { .. })));
    assert!(matches!(index.rewind(7), Err(UpdateError::NoHeight { height: 7 })));
    assert!(matches!(open(&io, &other, 0), Err(OpenError::OtherChain { .. })));
    for name in io.list(Path::new("index")).unwrap() {
        let io = io.restart(Loss::Nothing);
        let file = io.open(&Path::new("index").join(&name), false).unwrap();
        file.set_size(file.size().unwrap() / 2).unwrap();
        let Err(error) = open(&io, &first, 0) else { panic!("{name} is cut off") };
        assert!(error.to_string().contains("remove the folder"), "{name}: {error}");
    }
}

#[test]
fn fuzz_entry_point_works() {
    let mut random = Random(10);
    let first = genesis(&mut random);
    let io = SimIo::new();
    let index = open(&io, &first, 0).unwrap();
    add(&index, &first).unwrap();
    for name in io.list(Path::new("index")).unwrap() {
        let file = io.open(&Path::new("index").join(&name), false).unwrap();
        let mut bytes = vec![0; file.size().unwrap() as usize];
        file.read_exact_at(&mut bytes, 0).unwrap();
        fuzzing::files(&bytes);
    }
    fuzzing::files(&[0xff; 40]);
}

#[test]
fn an_index_of_transactions_alone_finds_them_and_needs_no_undo_data() {
    let mut random = Random(9);
    let branches = branches(&mut random, 25, false);
    let io = SimIo::new();
    let open_txids = || {
        let config = IndexConfig {
            scope: Scope::Txids,
            ..IndexConfig::new("index", branches[0][0].block().hash())
        };
        Index::open(config, Arc::new(io.clone()))
    };
    let mut index = open_txids().unwrap();
    for chain in &branches {
        let undoless = chain.iter().map(|made| TestBlock { undo: vec![0xff], ..made.clone() });
        follow(&index, &undoless.collect::<Vec<_>>()).unwrap();
        let view = index.view();
        for (height, made) in (0..).zip(chain) {
            let block = made.block();
            for txid in block.txids(0..block.tx_count()) {
                let position = view.position(&txid).unwrap().unwrap();
                assert_eq!((position.height, position.block), (height, block.hash()));
            }
        }
        assert_eq!(view.position(&assay_wire::Txid([7; 32])).unwrap(), None);
        index.commit().unwrap();
        index = open_txids().unwrap();
    }
    assert_eq!(index.usage().rows[..2], [0, 0]);
    drop(index);
    let opened = open(&io, &branches[0][0], 1 << 20);
    assert!(matches!(opened, Err(OpenError::OtherScope { .. })));
}
