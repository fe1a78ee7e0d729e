//! Flipped bits on disk are detected on reading, with the position and advice.

use std::path::{Path, PathBuf};

use assay_engine::{EngineError, OpenError};
use assay_store::SimTier;
use assay_store::io::Io;

use super::chain::{Act, Story, muhash};
use super::disk::{DIR, Disk, Setup};

/// A disk after all test data and a clean shutdown.
pub(crate) fn disk_after(story: &Story) -> Disk {
    let disk = story.base.killed();
    let engine = disk.open(&story.params, Setup::Calm).unwrap();
    for act in &story.acts {
        match act {
            Act::Flush => engine.flush().unwrap(),
            Act::Submit { raw, .. } => drop(engine.blocks().submit(raw.clone())),
            Act::Offer { .. } | Act::SaveMempool => {}
        }
    }
    assert_eq!(engine.chain().tip().hash, story.end);
    engine.shutdown().unwrap();
    disk.killed()
}

fn files(disk: &Disk, folder: &str) -> Vec<PathBuf> {
    let dir = Path::new(DIR).join(folder);
    disk.io.list(&dir).unwrap().into_iter().map(|name| dir.join(name)).collect()
}

fn data_files(disk: &Disk) -> Vec<PathBuf> {
    let mut files = files(disk, "blocks");
    files.retain(|path| !path.ends_with("xor.dat"));
    files
}

fn flipped(disk: &Disk, path: &Path, at: usize) -> Disk {
    let disk = disk.killed();
    let mut bytes = disk.io.contents(path).unwrap();
    bytes[at] ^= 0x20;
    disk.io.set_contents(path, bytes);
    disk
}

#[test]
fn a_flipped_byte_of_the_index_is_reported_or_harmless() {
    let story = Story::get();
    let disk = disk_after(story);
    let path = &files(&disk, "blocks/index")[0];
    let size = disk.io.contents(path).unwrap().len();
    let (mut reported, mut harmless) = (0, 0);
    for at in (0..size).step_by(5).chain(size - 60..size) {
        match flipped(&disk, path, at).open(&story.params, Setup::Calm) {
            Ok(engine) => {
                // The last checkpoint is not needed after a clean shutdown.
                assert_eq!(
                    (engine.chain().tip().hash, muhash(&engine)),
                    (story.end, story.muhash[&story.end])
                );
                harmless += 1;
            }
            Err(error) => {
                let text = error.to_string();
                assert!(text.contains("index.log"), "{at}: {text}");
                assert!(
                    at < 16 || text.contains("damaged at ") && error.advice().is_some(),
                    "{text}"
                );
                reported += 1;
            }
        }
    }
    println!("{reported} flips were reported, {harmless} did no harm");
    assert!(reported > 500);
}

#[test]
fn a_flipped_byte_of_a_block_or_of_undo_data_is_reported_when_it_is_read() {
    let story = Story::get();
    let disk = disk_after(story);
    let blocks_of = |disk: &Disk| {
        let engine = disk.open(&story.params, Setup::Calm).unwrap();
        let mut errors = Vec::new();
        for height in 1..=engine.chain().tip().height {
            let hash = engine.chain().hash_at(height).unwrap();
            errors.extend(engine.blocks().read(&hash).err());
            errors.extend(engine.blocks().read_spent(&hash).err());
        }
        assert_eq!(muhash(&engine), story.muhash[&story.end]);
        errors
    };
    assert!(blocks_of(&disk).is_empty());
    let mut reported = 0;
    for path in data_files(&disk) {
        let size = disk.io.contents(&path).unwrap().len();
        for at in (0..size).step_by(97) {
            for error in blocks_of(&flipped(&disk, &path, at)) {
                assert!(matches!(error, EngineError::BlockFile(_)), "{error}");
                assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
                assert!(error.advice().is_some_and(|advice| advice.contains("restore")));
                reported += 1;
            }
        }
    }
    println!("{reported} reads were refused");
    assert!(reported > 100);
}

#[test]
fn a_start_detects_missing_blocks_before_serving() {
    let story = Story::get();
    // The coins of the base, and archived blocks above it.
    let mut disk = disk_after(story);
    disk.tier = story.base.tier.restart(&disk.io);
    let opened = disk.killed().open(&story.params, Setup::Calm).unwrap();
    assert_eq!((opened.chain().tip().hash, muhash(&opened)), (story.end, story.muhash[&story.end]));
    drop(opened);
    let path = files(&disk, "blocks").into_iter().filter(|p| p.to_str().unwrap().contains("blk"));
    let last = path.max().unwrap();
    let error =
        flipped(&disk, &last, 100).open(&story.params, Setup::Calm).err().expect("it is damaged");
    assert!(matches!(error, OpenError::Engine(EngineError::ReadBlock(_))), "{error}");
    assert!(error.to_string().contains("the record at 8 does not have its checksum"), "{error}");
}

#[test]
fn rebuilds_the_coins_from_archived_blocks() {
    let story = Story::get();
    let mut disk = disk_after(story);
    for (key, value) in disk.tier.disk().entries().iter().skip(1).step_by(11) {
        let damaged = disk.killed();
        damaged.tier.disk().set(key, Some(&[&[0xff; 12], &value[..]].concat()));
        let engine = damaged.open(&story.params, Setup::Calm).unwrap();
        let error = engine.chain().utxo_stats(true).expect_err("a coin is damaged");
        assert!(error.to_string().contains("coins: the coin of "), "{error}");
        assert!(error.advice().is_some_and(|advice| advice.contains("`chainstate`")));
    }
    disk.tier = SimTier::new(&disk.io);
    let engine = disk.open(&story.params, Setup::Calm).unwrap();
    assert_eq!((engine.chain().tip().hash, muhash(&engine)), (story.end, story.muhash[&story.end]));
}
