//! Wrong coins and marks are found, and a rebuild of the coins repairs both.

use assay_engine::{MarkFinding, SubmitOutcome};
use assay_store::SimTier;

use super::chain::{Act, Story, muhash};
use super::disk::{Disk, Setup};
use super::rot::disk_after;
use crate::forged::mint::{Mint, params};

fn report(story: &Story, disk: &Disk) -> assay_engine::DataReport {
    disk.open(&story.params, Setup::Calm).unwrap().chain().verify_data(&|_| true).unwrap()
}

#[test]
fn an_intact_folder_has_no_errors() {
    let story = Story::get();
    let report = report(story, &disk_after(story));
    assert_eq!(report.tip.hash, story.end);
    assert!(report.coins > 0 && report.wrong_heights.is_empty(), "{report:?}");
    // The test data have an invalid block.
    let broken = |mark: &&assay_engine::MarkReport| matches!(mark.finding, MarkFinding::Broken(_));
    assert!(report.marks.iter().any(|mark| broken(&mark)), "{report:?}");
    assert!(report.marks.iter().all(|mark| mark.finding != MarkFinding::Unsupported), "{report:?}");
}

#[test]
fn each_coin_that_is_missing_or_of_another_height_is_found() {
    let story = Story::get();
    let disk = disk_after(story);
    let mut found = 0;
    for (key, value) in disk.tier.disk().entries().iter().skip(1).step_by(7) {
        for change in [None, Some(first_byte_changed(value))] {
            let damaged = disk.killed();
            damaged.tier.disk().set(key, change.as_deref());
            let engine = damaged.open(&story.params, Setup::Calm).unwrap();
            // An undecodable coin is reported as an error.
            if let Ok(report) = engine.chain().verify_data(&|_| true) {
                assert!(!report.wrong_heights.is_empty(), "{report:?}");
                found += 1;
            }
        }
    }
    assert!(found > 10, "{found} were found");
}

/// The height of a coin is at its start.
fn first_byte_changed(value: &[u8]) -> Vec<u8> {
    let mut value = value.to_vec();
    value[0] ^= 2;
    value
}

#[test]
fn finds_unsupported_marks_and_a_rebuild_clears_them() {
    let story = Story::get();
    let disk = disk_after(story);
    let engine = disk.open(&story.params, Setup::Calm).unwrap();
    engine.chain().invalidate_block(&story.end).unwrap();
    assert_ne!(engine.chain().tip().hash, story.end);
    let report = engine.chain().verify_data(&|_| true).unwrap();
    let mark = report.marks.iter().find(|mark| mark.hash == story.end).unwrap();
    assert_eq!(mark.finding, MarkFinding::Unsupported);
    assert!(report.wrong_heights.is_empty(), "{report:?}");
    engine.shutdown().unwrap();
    drop(engine);
    let mut disk = disk.killed();
    disk.tier = SimTier::new(&disk.io);
    let engine = disk.open(&story.params, Setup::Rebuilding).unwrap();
    assert_eq!((engine.chain().tip().hash, muhash(&engine)), (story.end, story.muhash[&story.end]));
    // Invalid blocks are marked again.
    for act in &story.acts {
        if let Act::Submit { raw, hash, is_valid: false } = act {
            assert_eq!(engine.mining().block_status(hash), Some("duplicate-invalid"));
            assert!(!matches!(engine.blocks().submit(raw.clone()), SubmitOutcome::Accepted));
        }
    }
}

#[test]
fn undo_data_of_a_wrong_coin_are_replaced_by_a_rebuild() {
    let (disk, params, mut mint) = (Disk::new(), params(), Mint::new());
    let engine = disk.open(&params, Setup::Calm).unwrap();
    let submit = |engine: &assay_engine::Engine, raw| {
        assert!(matches!(engine.blocks().submit(raw), SubmitOutcome::Accepted));
    };
    for _ in 0..100 {
        submit(&engine, mint.block(0));
    }
    engine.shutdown().unwrap();
    drop(engine);
    let mut disk = disk.killed();
    let coins = disk.tier.disk().entries();
    // The first entry is no coin.
    for (key, value) in coins.iter().skip(1) {
        disk.tier.disk().set(key, Some(&first_byte_changed(value)));
    }
    let engine = disk.open(&params, Setup::Calm).unwrap();
    // It spends a coin with a wrong height.
    submit(&engine, mint.block(1));
    assert!(!engine.chain().verify_data(&|_| true).unwrap().wrong_heights.is_empty());
    engine.shutdown().unwrap();
    drop(engine);
    disk = disk.killed();
    disk.tier = SimTier::new(&disk.io);
    let engine = disk.open(&params, Setup::Rebuilding).unwrap();
    let report = engine.chain().verify_data(&|_| true).unwrap();
    assert_eq!((report.tip.height, &*report.wrong_heights), (101, &[][..]));
}
