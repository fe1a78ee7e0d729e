//! Chain directories: the same bytes for any number of threads, and no incomplete chain that appears complete.

use std::fs;

use crate::{bch, bitcoin, file_hashes, forged, sighash};
use assay_forge::{
    ForgeError, ForgeOptions, Ledger, LedgerError, OutputError, Recipe, forge, ledger,
};

fn options(recipe: &Recipe) -> ForgeOptions {
    let scale = match recipe.name() {
        "bch-scaling" => 0.0002,
        "bitcoin-scaling" => 0.01,
        _ => 0.5,
    };
    ForgeOptions { scale, seed: 7, ..ForgeOptions::default() }
}

#[test]
fn output_depends_on_the_seed_not_on_threads() {
    for recipe in [bch(), bitcoin(), sighash()] {
        for distinct_keys in [false, true] {
            let with = |threads, seed| {
                let options = ForgeOptions { threads, seed, distinct_keys, ..options(&recipe) };
                file_hashes(forged(&recipe, &options).path())
            };
            let one = with(1, 7);
            assert_eq!(one, with(2, 7), "{recipe}: 2 threads");
            assert_eq!(one, with(5, 7), "{recipe}: 5 threads");
            let other = with(2, 8);
            assert!(one.keys().eq(other.keys()), "{recipe}");
            assert_ne!(one["blocks/blk00000.dat"], other["blocks/blk00000.dat"], "{recipe}");
            assert_ne!(one["order/000117.bin"], other["order/000117.bin"], "{recipe}");
        }
    }
}

#[test]
fn a_stopped_chain_is_the_start_of_the_whole_one() {
    for recipe in [bch(), bitcoin(), sighash()] {
        let whole = forged(&recipe, &options(&recipe));
        for stop in [1, 50, 101, 104, 117] {
            let stopped = ForgeOptions { stop_height: Some(stop), ..options(&recipe) };
            let part = forged(&recipe, &stopped);
            assert_eq!(part.ledger.tip.height, stop, "{recipe}");
            assert_eq!(part.ledger.blocks, whole.ledger.blocks[..stop as usize], "{recipe}");
        }
    }
}

#[test]
fn end_time_is_respected() {
    let recipe = bch();
    let chain =
        forged(&recipe, &ForgeOptions { end_time: Some(1_600_000_000), ..options(&recipe) });
    let blocks = &chain.ledger.blocks;
    assert_eq!(blocks.last().expect("there are blocks").time, 1_600_000_000);
    assert!(blocks.windows(2).all(|pair| pair[1].time - pair[0].time == 600));
}

#[test]
fn an_interrupted_forge_is_recognised_and_replaced() {
    let recipe = bch();
    let options = ForgeOptions { stop_height: Some(102), ..options(&recipe) };
    let whole = forged(&recipe, &options);
    let dir = tempfile::tempdir().expect("a directory for tests");
    // Leftovers of a killed forge: a ledger under its temporary name, and some blocks.
    let ledger = fs::read_to_string(whole.path().join(ledger::LEDGER)).expect("a ledger");
    let lines: Vec<_> = ledger.lines().take(40).collect();
    fs::write(dir.path().join(ledger::LEDGER_PART), lines.join("\n")).expect("written");
    fs::create_dir(dir.path().join("blocks")).expect("made");
    fs::write(dir.path().join("blocks/blk00007.dat"), b"old").expect("written");
    let error = Ledger::read(dir.path()).expect_err("it is incomplete");
    assert!(matches!(error, LedgerError::Incomplete { .. }), "{error}");
    forge(&recipe, &options, dir.path(), &mut ()).expect("it is replaced");
    assert_eq!(file_hashes(dir.path()), file_hashes(whole.path()));
    // A ledger without its last line is invalid.
    fs::write(dir.path().join(ledger::LEDGER), lines.join("\n")).expect("written");
    let error = Ledger::read(dir.path()).expect_err("it is incomplete");
    assert!(matches!(error, LedgerError::Incomplete { .. }), "{error}");
}

#[test]
fn foreign_directories_are_untouched() {
    let recipe = bch();
    let options = ForgeOptions { stop_height: Some(1), ..options(&recipe) };
    let whole = forged(&recipe, &options);
    let error = forge(&recipe, &options, whole.path(), &mut ()).expect_err("a chain is there");
    assert!(matches!(error, ForgeError::Output(OutputError::Finished { .. })), "{error}");
    let dir = tempfile::tempdir().expect("a directory for tests");
    fs::write(dir.path().join("thesis.txt"), b"mine").expect("written");
    let error = forge(&recipe, &options, dir.path(), &mut ()).expect_err("a file is there");
    assert!(matches!(error, ForgeError::Output(OutputError::Foreign { .. })), "{error}");
    assert_eq!(fs::read(dir.path().join("thesis.txt")).expect("still there"), b"mine");
    let file = dir.path().join("thesis.txt");
    let error = forge(&recipe, &options, &file, &mut ()).expect_err("not a directory");
    assert!(error.to_string().contains("thesis.txt"), "{error}");
}

#[test]
fn progress_adds_up() {
    #[derive(Default)]
    struct Tally {
        signed: u64,
        blocks: Vec<u32>,
        phases: u32,
        coins: (u64, u64),
        expected: u64,
    }
    impl assay_forge::Progress for Tally {
        fn start(&mut self, estimate: &assay_forge::Estimate) {
            self.expected = estimate.signatures;
        }
        fn phase(&mut self, _: assay_forge::Phase, blocks: u32) {
            self.phases += blocks;
        }
        fn signed(&mut self, signatures: u64) {
            self.signed += signatures;
        }
        fn block(&mut self, line: &assay_forge::BlockLine) {
            self.blocks.push(line.height);
        }
        fn utxo(&mut self, done: u64, total: u64) {
            self.coins = (done, total);
        }
    }
    for (recipe, scale) in [(bch(), 0.0004), (bitcoin(), 0.08), (sighash(), 0.5)] {
        let dir = tempfile::tempdir().expect("a directory for tests");
        let mut tally = Tally::default();
        let options = ForgeOptions { scale, ..ForgeOptions::default() };
        let summary = forge(&recipe, &options, dir.path(), &mut tally).expect("forged");
        let tip = &summary.ledger.tip;
        assert_eq!(tally.signed, tip.signatures);
        assert_eq!(tally.blocks, (1..=tip.height).collect::<Vec<_>>());
        assert_eq!(tally.phases, tip.height);
        assert_eq!(tally.coins, (tip.utxo_count, tip.utxo_count));
        let ratio = tally.expected as f64 / tip.signatures as f64;
        assert!((0.85..1.15).contains(&ratio), "{recipe}: estimated {ratio} of what was made");
    }
}
