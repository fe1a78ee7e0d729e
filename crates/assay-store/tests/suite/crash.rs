//! Block files, undo files and index under crashes, full disks and power cuts at every step.

use std::path::Path;
use std::sync::Arc;

use assay_store::io::{Fault, Io, Loss, SimIo};
use assay_store::{
    BlockFileError, BlockRecord, CoinRef, CommitError, MemTier, OpenError, Store, StoreConfig,
    UndoWriter, commit, decode_undo,
};
use assay_wire::{BlockHash, OutPoint, Txid};

use crate::{header, record};

const BLOCKS: u32 = 9;

fn config() -> StoreConfig {
    // Small files, so that the test data spread over several.
    StoreConfig { block_file_bytes_max: 700, ..StoreConfig::new("/store", *b"asay") }
}

fn as_io(io: &SimIo) -> Arc<dyn Io> {
    Arc::new(io.clone())
}

fn open(io: &SimIo, tier: &MemTier) -> Result<Store, OpenError> {
    Store::open_with(&config(), &as_io(io), Box::new(tier.clone()))
}

fn raw_block(height: u32) -> Vec<u8> {
    (0..150 + height * 31).map(|i| (i * 7 + height + 1) as u8 | 1).collect()
}

fn undo(height: u32) -> Vec<u8> {
    let mut writer = UndoWriter::new();
    for i in 0..height {
        writer.push(CoinRef { value: 1, height: i, coinbase: false, script_pubkey: &[0x51; 25] });
    }
    writer.finish()
}

fn outpoint(height: u32) -> OutPoint {
    OutPoint { txid: Txid([height as u8; 32]), vout: 0 }
}

/// Progress of a run before it was stopped.
#[derive(Debug, Default)]
struct Progress {
    acknowledged: u32,
    committed: u32,
}

#[derive(Debug, thiserror::Error)]
enum Stopped {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Blocks(#[from] BlockFileError),
    #[error(transparent)]
    Index(#[from] assay_store::IndexError),
    #[error(transparent)]
    Commit(#[from] CommitError),
}

/// Archives and connects blocks, commits every third. Retries a failed step once, as a user would after freeing space.
fn run(io: &SimIo, tier: &MemTier, progress: &mut Progress) -> Result<(), Stopped> {
    let mut store = open(io, tier)?;
    for height in 1..=BLOCKS {
        let hash = header(height).hash();
        let block = twice(|| store.blocks.append_block(&raw_block(height)))?;
        let undo = twice(|| store.blocks.append_undo(0, &hash, &undo(height)))?;
        let record = BlockRecord {
            status: 3,
            tx_count: 1,
            chain_tx_count: height.into(),
            sequence: height.into(),
            block: Some(block),
            undo: Some(undo),
            ..record(height)
        };
        twice(|| store.index.put(std::slice::from_ref(&record)))?;
        progress.acknowledged = height;
        let coin = CoinRef { value: 1, height, coinbase: true, script_pubkey: &[0x51] };
        store.coins.add(outpoint(height), coin, false).map_err(CommitError::from)?;
        if height % 3 == 0 {
            commit(&mut store.coins, &store.blocks, &store.index, height, &hash)?;
            progress.committed = height;
        }
    }
    Ok(())
}

fn twice<T, E>(mut attempt: impl FnMut() -> Result<T, E>) -> Result<T, E> {
    attempt().or_else(|_| attempt())
}

fn check(io: &SimIo, tier: &MemTier, progress: &Progress, loss: Loss) {
    let store = open(io, tier).expect("a restart opens what a crash left");
    for record in &store.records {
        let hash = record.header.hash();
        assert_eq!(hash, header(record.height).hash());
        if let Some(pos) = record.block {
            assert_eq!(store.blocks.read_block(pos).expect("whole"), raw_block(record.height));
        }
        if let Some(pos) = record.undo {
            let bytes = store.blocks.read_undo(pos, &hash).expect("whole");
            assert_eq!(bytes, undo(record.height));
            assert_eq!(decode_undo(&bytes).expect("whole").len() as u32, record.height);
        }
    }
    let complete = |height: u32| {
        let mut found = store.records.iter().filter(|record| record.height == height);
        found.next().is_some_and(|record| record.block.is_some() && record.undo.is_some())
    };
    let safe = if loss == Loss::Nothing { progress.acknowledged } else { progress.committed };
    assert!((1..=safe).all(complete), "{progress:?} {loss:?}");
    // The marker is never ahead of the blocks: blocks up to it can be disconnected, later ones connected.
    let marker = store.coins.tip().map_or(0, |marker| marker.height);
    assert!(marker >= progress.committed && (1..=marker).all(complete));
    for height in 1..=BLOCKS {
        let coin = store.coins.get(&outpoint(height)).expect("memory does not fail");
        assert_eq!(coin.is_some(), height <= marker);
    }
    let pos = store.blocks.append_block(&raw_block(77)).expect("there is room");
    assert_eq!(store.blocks.read_block(pos).expect("whole"), raw_block(77));
    let hash = BlockHash([77; 32]);
    let at = store.blocks.append_undo(0, &hash, &undo(5)).expect("there is room");
    assert_eq!(store.blocks.read_undo(at, &hash).expect("whole"), undo(5));
    for record in &store.records {
        if let Some(pos) = record.block {
            assert_eq!(store.blocks.read_block(pos).expect("whole"), raw_block(record.height));
        }
    }
}

#[test]
fn recovers_from_a_fault_at_every_step() {
    let io = SimIo::new();
    run(&io, &MemTier::new(), &mut Progress::default()).expect("nothing fails");
    let steps = io.steps();
    assert!(steps > 40, "the script is long enough: {steps}");
    for fault in [Fault::Error, Fault::Broken, Fault::Crash] {
        for step in 0..steps {
            let (io, tier) = (SimIo::new(), MemTier::new());
            io.fail_at(step, fault);
            let mut progress = Progress::default();
            let result = run(&io, &tier, &mut progress);
            assert!(result.is_err() || fault != Fault::Crash);
            let torn = |unit| Loss::Torn { seed: step, unit };
            for loss in
                [Loss::Nothing, Loss::Unsynced, Loss::Zeroed, torn(64), torn(512), torn(4096)]
            {
                // The tier is durable by itself. The restarts share it, since they write nothing to it.
                check(&io.restart(loss), &tier, &progress, loss);
                // The kernel may have written back only one of the directories.
                for keeps_index in [false, true] {
                    let each = |path: &Path| {
                        if path.starts_with("/store/blocks/index") == keeps_index {
                            Loss::Nothing
                        } else {
                            loss
                        }
                    };
                    check(&io.restart_each(each), &tier, &progress, loss);
                }
                // A kill, a restart, then a power cut: the recovery synced its findings.
                let killed = io.restart(Loss::Nothing);
                drop(open(&killed, &tier).expect("a restart opens what a crash left"));
                check(&killed.restart(loss), &tier, &progress, Loss::Nothing);
            }
        }
    }
}

#[test]
fn a_failed_sync_forgets_nothing() {
    for step in 0.. {
        let (io, tier) = (SimIo::new(), MemTier::new());
        let store = open(&io, &tier).expect("an empty store opens");
        let pos = store.blocks.append_block(&raw_block(1)).expect("there is room");
        let before = io.steps();
        io.fail_at(before + step, Fault::Error);
        let failed = store.blocks.sync().is_err();
        store.blocks.sync().expect("it works again");
        let store = open(&io.restart(Loss::Unsynced), &tier).expect("the store opens");
        assert_eq!(store.blocks.read_block(pos).expect("it was synced"), raw_block(1));
        if !failed {
            assert!(step >= 2, "the file and its name");
            break;
        }
    }
}

#[test]
fn a_crash_while_recovering_is_recovered_from() {
    let (io, tier, mut progress) = (SimIo::new(), MemTier::new(), Progress::default());
    run(&io, &tier, &mut progress).expect("nothing fails");
    let last = Path::new("/store/blocks/index/index.log");
    let mut log = io.contents(last).expect("the log exists");
    log.truncate(log.len() - 5);
    io.set_contents(last, log);
    progress.acknowledged = progress.committed;
    for step in 0.. {
        let crashed = io.restart(Loss::Nothing);
        crashed.fail_at(step, Fault::Crash);
        let opened = open(&crashed, &tier).is_ok();
        for loss in [Loss::Nothing, Loss::Unsynced, Loss::Zeroed] {
            check(&crashed.restart(loss), &tier, &progress, loss);
        }
        if opened {
            break;
        }
    }
}

#[test]
fn a_torn_block_is_never_taken_for_data() {
    let (io, tier) = (SimIo::new(), MemTier::new());
    let store = open(&io, &tier).expect("an empty store opens");
    let first = store.blocks.append_block(&raw_block(1)).expect("there is room");
    let second = store.blocks.append_block(&raw_block(2)).expect("there is room");
    drop(store);
    let path = Path::new("/store/blocks/blk00000.dat");
    let whole = io.contents(path).expect("the file exists");
    let first_end = first.end() as usize;
    for length in first_end..whole.len() {
        let io = io.restart(Loss::Nothing);
        io.set_contents(path, whole[..length].to_vec());
        let store = open(&io, &tier).expect("a torn tail is no error");
        assert_eq!(store.recovery.unindexed, [first]);
        assert_eq!(store.recovery.block_bytes_dropped, (length - first_end) as u64);
        let error = store.blocks.read_block(second).expect_err("it is torn");
        assert!(error.is_damage());
        assert_eq!(store.blocks.append_block(&raw_block(2)).expect("there is room"), second);
        assert_eq!(io.contents(path).expect("the file exists"), whole);
    }
}

#[test]
fn detects_damage_anywhere() {
    let (io, tier) = (SimIo::new(), MemTier::new());
    let store = open(&io, &tier).expect("an empty store opens");
    let hash = BlockHash([5; 32]);
    let block = store.blocks.append_block(&raw_block(1)).expect("there is room");
    let undo_pos = store.blocks.append_undo(0, &hash, &undo(4)).expect("there is room");
    let other = store.blocks.read_undo(undo_pos, &BlockHash([6; 32]));
    assert!(matches!(other, Err(BlockFileError::Checksum { .. })), "bound to its block");
    for name in ["blk00000.dat", "rev00000.dat"] {
        let path = Path::new("/store/blocks").join(name);
        let whole = io.contents(&path).expect("the file exists");
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            io.set_contents(&path, damaged);
            let result = if name.starts_with("blk") {
                store.blocks.read_block(block)
            } else {
                store.blocks.read_undo(undo_pos, &hash)
            };
            assert!(result.expect_err("one bit is wrong").is_damage());
        }
        io.set_contents(&path, whole);
    }
    assert!(store.blocks.read_block_part(block, 3, 10).is_ok_and(|p| p == raw_block(1)[3..13]));
    let outside = store.blocks.read_block_part(block, block.size - 3, 4);
    assert!(matches!(outside, Err(BlockFileError::Size { .. })));
    // Preallocated space is not a block.
    let path = Path::new("/store/blocks/blk00000.dat");
    let length = io.contents(path).expect("the file exists").len();
    io.set_contents(path, vec![0; length]);
    let zeros = store.blocks.read_block_part(block, 3, 10);
    assert!(matches!(zeros, Err(BlockFileError::Framing { .. })));
    assert_eq!(store.blocks.cached_block_part(block, 3, 10), None);
}

#[test]
fn index_groups_are_whole_or_absent() {
    let (io, tier) = (SimIo::new(), MemTier::new());
    let store = open(&io, &tier).expect("an empty store opens");
    let record = |height: u32, status| BlockRecord { status, ..record(height) };
    let path = Path::new("/store/blocks/index/index.log");
    let group = |from: u32, status| (from..from + 3).map(|h| record(h, status)).collect::<Vec<_>>();
    store.index.put(&group(0, 1)).expect("there is room");
    let first_end = io.contents(path).expect("the log exists").len();
    store.index.put(&group(2, 2)).expect("there is room");
    store.index.put(&[]).expect("nothing to do");
    drop(store);
    let whole = io.contents(path).expect("the log exists");
    let reopened = open(&io.restart(Loss::Nothing), &tier).expect("the log is whole");
    assert_eq!(reopened.records, [&group(0, 1)[..2], &group(2, 2)].concat());
    for length in first_end..whole.len() {
        for flip in [false, true] {
            let mut bytes = whole.clone();
            if flip {
                bytes[length] ^= 0x10;
            } else {
                bytes.truncate(length);
            }
            let io = io.restart(Loss::Nothing);
            let dropped = (bytes.len() - first_end) as u64;
            io.set_contents(path, bytes);
            let store = open(&io, &tier).expect("a torn tail is no error");
            assert_eq!(store.records, group(0, 1));
            assert_eq!(store.recovery.index_bytes_dropped, dropped);
        }
    }
}

#[test]
fn a_stale_index_is_rewritten() {
    let (io, tier) = (SimIo::new(), MemTier::new());
    let store = open(&io, &tier).expect("an empty store opens");
    let record = |status| BlockRecord { status, ..record(1) };
    for status in 0..11_000 {
        store.index.put(&[record(status)]).expect("there is room");
    }
    drop(store);
    let path = Path::new("/store/blocks/index/index.log");
    let long = io.contents(path).expect("the log exists").len();
    for _ in 0..2 {
        let store = open(&io, &tier).expect("the log is whole");
        assert_eq!(store.records, [record(10_999)]);
        assert!(io.contents(path).expect("the log exists").len() < long / 1000);
    }
}

#[test]
fn rejects_foreign_files() {
    let (io, tier) = (SimIo::new(), MemTier::new());
    drop(open(&io, &tier).expect("an empty store opens"));
    let other = StoreConfig { magic: *b"main", ..config() };
    let other = Store::open_with(&other, &as_io(&io), Box::new(tier.clone()));
    let network = matches!(
        other,
        Err(OpenError::Index(assay_store::IndexError::Network { found, .. })) if &found == b"asay"
    );
    assert!(network);
    let path = Path::new("/store/blocks/index/index.log");
    io.set_contents(path, b"something else entirely".to_vec());
    let format =
        matches!(open(&io, &tier), Err(OpenError::Index(assay_store::IndexError::Format { .. })));
    assert!(format);
    assert!(io.list(Path::new("/store/blocks/index")).is_ok_and(|names| names == ["index.log"]));
}
