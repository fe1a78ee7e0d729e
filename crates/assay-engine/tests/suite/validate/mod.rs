//! Validates chains from block files: any order, obfuscation, damage, forks, interruptions.
//!
//! The chains are forged, so another program has computed their tip and the hash of their coins.

mod fallback;
pub(crate) mod files;
mod pipeline;

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use assay_engine::{
    BlockHash, ChainParams, ConnectState, DatadirError, End, InvalidBlock, ScanReport, Schnorr,
    StrayKind, ValidateConfig, ValidateError, ValidateProgress, Validation, validate,
};
use assay_testkit::random::Random;
use assay_wire::{Block, Header};
use files::{Part, write};

use crate::forged::chain::{Forged, accept, printed, repair};

const KEY: [u8; 8] = [0x9c, 0x01, 0x77, 0x00, 0xfe, 0x42, 0x13, 0x58];

/// Does nothing, or sets a flag when a height is connected.
#[derive(Default)]
pub(crate) struct Watch {
    stop_at: Option<u32>,
    stop: AtomicBool,
    flushes: AtomicU32,
    invalid: Mutex<Vec<BlockHash>>,
}

impl ValidateProgress for Watch {
    fn scanning(&self, done: u64, total: u64) {
        assert!(done <= total);
    }
    fn scanned(&self, _report: &ScanReport) {}
    fn invalid(&self, block: &InvalidBlock) {
        self.invalid.lock().unwrap().push(block.hash);
    }
    fn connected(&self, state: &ConnectState) {
        assert!(state.height <= state.last_height && state.bytes_done <= state.bytes_total);
        // Never skips a height, so this is the first at or above it.
        if self.stop_at.is_some_and(|height| state.height >= height) {
            self.stop.store(true, Ordering::Relaxed);
        }
    }
    fn flushing(&self, _height: u32) {
        self.flushes.fetch_add(1, Ordering::Relaxed);
    }
    fn hashing(&self, _height: u32) {}
}

fn config(forged: &Forged, blocks: &Path, datadir: &Path) -> ValidateConfig {
    config_of(forged.params(), blocks, datadir)
}

pub(crate) fn config_of(params: Arc<ChainParams>, blocks: &Path, datadir: &Path) -> ValidateConfig {
    ValidateConfig {
        blocks: blocks.to_path_buf(),
        params,
        datadir: datadir.to_path_buf(),
        is_lasting: true,
        stop_height: None,
        assume_valid: None,
        cache_bytes_max: 64 << 20,
        threads: 2,
        script_batch: Some(256),
        sample_signatures: 256,
        schnorr: Schnorr::default(),
        write_spent: None,
        write_hints: None,
    }
}

fn run(config: &ValidateConfig) -> Validation {
    let watch = Watch::default();
    validate(config, &watch.stop, &watch).unwrap()
}

/// Validates a directory, with coins in a separate folder.
fn run_fresh(forged: &Forged, blocks: &Path) -> Validation {
    let datadir = tempfile::tempdir().unwrap();
    run(&config(forged, blocks, datadir.path()))
}

fn muhash(validation: &Validation) -> String {
    printed(validation.coins.as_ref().unwrap().muhash.unwrap())
}

fn check_whole(forged: &Forged, validation: &Validation) {
    let tip = &forged.ledger.tip;
    assert_eq!(validation.end, End::Complete);
    assert_eq!((validation.height, validation.hash.to_string()), (tip.height, tip.hash.clone()));
    forged.check_coins(validation.coins.as_ref().unwrap());
    let totals = validation.totals;
    assert_eq!((totals.blocks, totals.txs), (u64::from(tip.height), tip.txs));
    assert_eq!((totals.inputs, totals.outputs, totals.bytes), (tip.inputs, tip.outputs, tip.bytes));
}

fn magic(forged: &Forged) -> [u8; 4] {
    forged.params().disk_magic
}

fn parts(forged: &Forged, heights: std::ops::RangeInclusive<u32>) -> Vec<Part> {
    heights.map(|height| Part::Block(forged.block(height))).collect()
}

/// The same block with another parent and valid proof of work.
fn moved(raw: &[u8], parent: BlockHash, forged: &Forged) -> (Vec<u8>, BlockHash) {
    let params = forged.params();
    let mut header = *Block::parse(raw.to_vec(), params.encoding).unwrap().header();
    header.prev_block = parent;
    header.nonce ^= 0x5555;
    while !assay_consensus::pow::check_proof_of_work(&header.hash(), header.bits, &params.pow) {
        header.nonce += 1;
    }
    let mut raw = raw.to_vec();
    raw[..Header::SIZE].copy_from_slice(&header.to_bytes());
    (raw, header.hash())
}

/// A branch of moved blocks from `heights.start()` on.
fn branch(forged: &Forged, heights: std::ops::RangeInclusive<u32>) -> Vec<Vec<u8>> {
    let params = forged.params();
    let first = Block::parse(forged.block(*heights.start()), params.encoding).unwrap();
    let mut parent = first.header().prev_block;
    heights
        .map(|height| {
            let (raw, hash) = moved(&forged.block(height), parent, forged);
            parent = hash;
            raw
        })
        .collect()
}

#[test]
fn validates_a_forged_directory() {
    let forged = Forged::new("bch-scaling", 31, None);
    let validation = run_fresh(&forged, forged.path());
    check_whole(&forged, &validation);
    let scan = &validation.scan;
    assert_eq!(
        (scan.blocks, scan.stale_blocks, scan.unconnected),
        (forged.height() as usize, 0, 0)
    );
    assert!(!scan.is_obfuscated && scan.strays.is_empty());
    // One file alone.
    let file = forged.path().join("blocks/blk00000.dat");
    check_whole(&forged, &run_fresh(&forged, &file));
}

#[test]
fn any_order_and_everything_between() {
    for seed in 1..=3 {
        let forged = Forged::new("bitcoin-scaling", 32, None);
        let mut random = Random(seed);
        let mut blocks = parts(&forged, 1..=forged.height());
        blocks.push(Part::Block(forged.params().genesis_block()));
        blocks.extend(parts(&forged, 7..=9));
        blocks.extend(branch(&forged, 50..=60).into_iter().map(Part::Block));
        blocks.extend(branch(&forged, 120..=121).into_iter().map(Part::Block));
        random.shuffle(&mut blocks);
        let mut files: Vec<Vec<Part>> = Vec::new();
        for block in blocks {
            if files.is_empty() || random.below(40) == 0 {
                files.push(Vec::new());
            }
            let parts = files.last_mut().unwrap();
            match random.below(12) {
                0 => parts.push(Part::Bytes(vec![random.next() as u8 | 1; random.below(5000)])),
                1 => parts.push(Part::Padding(random.below(3_000_000))),
                2 => parts.push(Part::Bytes(magic(&forged).to_vec())),
                _ => {}
            }
            parts.push(block);
        }
        files.last_mut().unwrap().push(Part::Padding(1 << 20));
        let cut = {
            let mut raw = magic(&forged).to_vec();
            let block = forged.block(forged.height());
            raw.extend((block.len() as u32).to_le_bytes());
            raw.extend(&block[..block.len() / 2]);
            raw
        };
        // First, because only the first positions are reported.
        files.insert(0, vec![Part::Bytes(cut)]);
        for key in [None, Some(KEY)] {
            let dir = tempfile::tempdir().unwrap();
            write(dir.path(), magic(&forged), key, &files);
            let validation = run_fresh(&forged, dir.path());
            check_whole(&forged, &validation);
            let scan = &validation.scan;
            assert_eq!(scan.is_obfuscated, key.is_some());
            assert_eq!((scan.duplicates, scan.stale_blocks, scan.stale_branches), (3, 13, 2));
            assert_eq!((scan.unconnected, scan.files), (0, files.len()), "seed {seed}");
            assert_eq!(scan.strays[0].kind, StrayKind::Truncated);
        }
    }
}

#[test]
fn the_branch_with_more_work_is_taken() {
    let forged = Forged::new("bch-scaling", 33, Some(40));
    let longer = branch(&forged, 10..=25);
    let mut blocks = parts(&forged, 1..=20);
    blocks.extend(longer.iter().cloned().map(Part::Block));
    Random(5).shuffle(&mut blocks);
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), magic(&forged), None, &[blocks]);
    let validation = run_fresh(&forged, dir.path());
    assert_eq!((validation.height, &validation.end), (25, &End::Complete));
    assert_eq!((validation.scan.stale_blocks, validation.scan.stale_branches), (11, 1));

    let datadir = tempfile::tempdir().unwrap();
    let engine = forged.open(datadir.path());
    forged.feed(&engine, 1..=9);
    for raw in longer {
        accept(&engine, raw);
    }
    assert_eq!(engine.chain().tip().hash, validation.hash);
    let stats = engine.chain().utxo_stats(true).unwrap();
    assert_eq!(printed(stats.muhash.unwrap()), muhash(&validation));
}

/// The hash of the coins after each height.
fn muhash_at(forged: &Forged, height: u32) -> String {
    let datadir = tempfile::tempdir().unwrap();
    let mut config = config(forged, forged.path(), datadir.path());
    config.stop_height = Some(height);
    muhash(&run(&config))
}

#[test]
fn a_flipped_byte_is_found_and_lower_blocks_are_kept() {
    let forged = Forged::new("bitcoin-scaling", 34, None);
    let height = 104;
    let (before, with_it) = (muhash_at(&forged, height - 1), muhash_at(&forged, height));
    let raw = forged.block(height);
    let mut random = Random(8);
    // Magic, length, each field of the header, the count, and anywhere in the transactions.
    let mut bytes: Vec<i64> = vec![-8, -6, -4, -3, -1, 0, 3, 4, 30, 36, 60, 68, 72, 75, 76, 79, 80];
    bytes.extend((0..12).map(|_| 81 + random.below(raw.len() - 81) as i64));
    let mut longer = 0;
    for at in bytes {
        let dir = tempfile::tempdir().unwrap();
        let mut blocks = parts(&forged, 1..=forged.height());
        blocks.reverse();
        let index = (forged.height() - height) as usize;
        let key = Some(KEY);
        let places = write(dir.path(), magic(&forged), key, &[blocks]);
        let path = dir.path().join("blk00000.dat");
        let mut file = std::fs::read(&path).unwrap();
        let offset = places[index].1;
        file[(offset as i64 + at) as usize] ^= 1 << random.below(8);
        std::fs::write(&path, file).unwrap();

        let validation = run_fresh(&forged, dir.path());
        if (-4..0).contains(&at) && validation.height == forged.height() {
            // A record with a length greater than its block's is harmless.
            check_whole(&forged, &validation);
            longer += 1;
            continue;
        }
        // With another nonce, version or time it may be another valid, childless block.
        let is_other = validation.height == height && validation.end == End::Complete;
        assert!(validation.height == height - 1 || is_other, "byte {at}: {:?}", validation.end);
        let expected = if is_other { &with_it } else { &before };
        assert_eq!(&muhash(&validation), expected, "byte {at}");
        match &validation.end {
            End::Invalid(block) => {
                assert_eq!(block.height, height);
                assert_eq!((&block.place.path, block.place.offset), (&path, offset as u64));
                let text = block.to_string();
                assert!(text.contains("at height 104: ") && text.contains("blk00000.dat offset "));
            }
            End::Complete => {
                // The block is missing or differs; its child is reported, and so is its position.
                let scan = &validation.scan;
                let expected = Block::parse(raw.clone(), forged.params().encoding).unwrap().hash();
                assert!(scan.missing.iter().any(|gap| gap.hash == expected), "byte {at}: {scan:?}");
                assert!(scan.unconnected >= (forged.height() - height) as usize);
                let is_stray =
                    scan.strays.iter().any(|stray| stray.place.offset == offset as u64 - 8);
                let is_loose =
                    scan.missing.iter().any(|gap| gap.child_place.offset == offset as u64);
                assert!(is_stray || is_loose || is_other, "byte {at}: {scan:?}");
            }
            other => panic!("byte {at}: {other:?}"),
        }
    }
    assert!(longer > 0, "a length was meant to grow");
}

#[test]
fn a_bad_signature_is_reported_with_its_block() {
    let forged = Forged::new("bitcoin-scaling", 35, None);
    let (params, height) = (forged.params(), 103);
    let mut raw = forged.block(height);
    let block = Block::parse(raw.clone(), params.encoding).unwrap();
    let (tx_index, input) = (1..block.tx_count())
        .flat_map(|tx| (0..block.tx(tx).input_count()).map(move |input| (tx, input)))
        .find(|(tx, input)| block.tx(*tx).witness(*input).iter().any(|item| item.len() > 60))
        .unwrap();
    let item = block.tx(tx_index).witness(input).iter().find(|item| item.len() > 60).unwrap();
    let at = item.as_ptr() as usize - block.bytes().as_ptr() as usize + 20;
    raw[at] ^= 1;
    repair(&mut raw, &params);
    let bad_hash = Block::parse(raw.clone(), params.encoding).unwrap().hash();
    let mut blocks = parts(&forged, 1..=height - 1);
    blocks.push(Part::Block(raw));
    Random(1).shuffle(&mut blocks);
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), magic(&forged), Some(KEY), &[blocks]);
    let datadir = tempfile::tempdir().unwrap();
    let mut config = config(&forged, dir.path(), datadir.path());
    let validation = run(&config);
    let End::Invalid(invalid) = &validation.end else { panic!("{:?}", validation.end) };
    assert_eq!((invalid.hash, invalid.height), (bad_hash, height));
    assert!(invalid.reason.starts_with("block-script-verify-flag-failed ("), "{invalid}");
    assert!(invalid.debug.contains(&format!("input {input} of ")), "{invalid}");
    assert_eq!(muhash(&validation), muhash_at(&forged, height - 1));

    // The folder has everything below, so that a run with good files can continue.
    config.blocks = forged.path().to_path_buf();
    let validation = run(&config);
    assert_eq!(validation.start_height, height - 1);
    check_whole(&forged, &validation);

    // With assume-valid the error is not detected.
    config.blocks = dir.path().to_path_buf();
    let other = tempfile::tempdir().unwrap();
    config.datadir = other.path().to_path_buf();
    config.assume_valid = Some(bad_hash);
    let validation = run(&config);
    assert_eq!((&validation.end, validation.height), (&End::Complete, height));
    assert_eq!(validation.totals.assumed_blocks, u64::from(height));
    config.assume_valid = Some(BlockHash([1; 32]));
    let watch = Watch::default();
    let error = validate(&config, &watch.stop, &watch).unwrap_err();
    assert!(matches!(error, ValidateError::UnknownAssumeValid { .. }), "{error}");
}

#[test]
fn interruptions_and_small_caches_change_nothing() {
    for recipe in ["bch-scaling", "bitcoin-scaling"] {
        let forged = Forged::new(recipe, 36, None);
        let datadir = tempfile::tempdir().unwrap();
        let mut config = config(&forged, forged.path(), datadir.path());
        config.cache_bytes_max = 1 << 18;
        config.stop_height = Some(50);
        let validation = run(&config);
        assert_eq!((&validation.end, validation.height), (&End::StopHeight, 50));
        config.stop_height = Some(49);
        let watch = Watch::default();
        let error = validate(&config, &watch.stop, &watch).unwrap_err();
        assert!(matches!(error, ValidateError::PastStop { height: 50, stop_height: 49 }));
        config.stop_height = None;
        let mut height = 50;
        for wait in [1, 1, 3, 5] {
            // Coins move ahead of scripts, so it may end some blocks above the stop height.
            let watch = Watch { stop_at: Some(height + wait), ..Watch::default() };
            let validation = validate(&config, &watch.stop, &watch).unwrap();
            assert_eq!((&validation.end, validation.start_height), (&End::Interrupted, height));
            assert!(
                (height + wait..forged.height()).contains(&validation.height),
                "{validation:?}"
            );
            assert!(validation.coins.is_none());
            assert_eq!(validation.totals.blocks, u64::from(validation.height));
            height = validation.height;
        }
        let watch = Watch::default();
        let validation = validate(&config, &watch.stop, &watch).unwrap();
        assert_eq!(validation.start_height, height);
        check_whole(&forged, &validation);
        assert!(watch.flushes.load(Ordering::Relaxed) > 1, "the cache was meant to be too small");
        // Nothing is left to do.
        let again = run(&config);
        assert_eq!(again.run_totals.blocks, 0);
        check_whole(&forged, &again);
    }
}

#[test]
fn folders_of_another_chain_or_branch_are_refused() {
    let forged = Forged::new("bch-scaling", 37, Some(30));
    let datadir = tempfile::tempdir().unwrap();
    let mut config = config(&forged, forged.path(), datadir.path());
    assert_eq!(run(&config).height, 30);
    let refusal = |config: &ValidateConfig| {
        let watch = Watch::default();
        validate(config, &watch.stop, &watch).unwrap_err()
    };
    let dir = tempfile::tempdir().unwrap();
    let mut blocks = parts(&forged, 1..=9);
    blocks.extend(branch(&forged, 10..=30).into_iter().map(Part::Block));
    write(dir.path(), magic(&forged), None, &[blocks]);
    config.blocks = dir.path().to_path_buf();
    assert!(matches!(refusal(&config), ValidateError::OtherBranch { height: 30, .. }));

    // Chains have separate folders; a renamed one is detected.
    let bitcoin = Forged::new("bitcoin-scaling", 37, Some(30));
    config.params = bitcoin.params();
    config.blocks = bitcoin.path().to_path_buf();
    assert_eq!(run(&config).height, 30);
    std::fs::remove_dir_all(datadir.path().join("regtest")).unwrap();
    std::fs::rename(datadir.path().join("bch-regtest"), datadir.path().join("regtest")).unwrap();
    let error = refusal(&config);
    assert!(matches!(error, ValidateError::Datadir(DatadirError::Foreign { .. })), "{error}");

    let empty = tempfile::tempdir().unwrap();
    config.datadir = empty.path().to_path_buf();
    config.blocks = empty.path().to_path_buf();
    assert!(matches!(refusal(&config), ValidateError::Files(_)));
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), [1, 2, 3, 4], None, &[parts(&bitcoin, 1..=3)]);
    config.blocks = dir.path().to_path_buf();
    assert!(matches!(refusal(&config), ValidateError::NoBlocks { .. }));
}
