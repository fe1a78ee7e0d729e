//! Damaged files: reported with file and offset, without a panic.

use std::fs;

use assay_stats::{BlockSet, ReadOptions};
use proptest::prelude::*;

use crate::{BITCOIN, frame, read_all};

const OPTIONS: ReadOptions = ReadOptions { threads: 2, many_inputs: 50, txs: true };

/// The first blocks of a chain in one file, with the offset of each raw block.
fn some_blocks(count: usize) -> (Vec<u8>, Vec<usize>) {
    let (mut bytes, mut offsets) = (Vec::new(), Vec::new());
    for raw in &BITCOIN.blocks[..count] {
        offsets.push(bytes.len() + 8);
        bytes.extend(frame(&BITCOIN.params(), raw));
    }
    (bytes, offsets)
}

fn open(bytes: &[u8]) -> (tempfile::TempDir, Result<BlockSet, assay_stats::OpenError>) {
    let dir = tempfile::tempdir().expect("a folder");
    fs::write(dir.path().join("blk00000.dat"), bytes).expect("a file");
    let set = BlockSet::open(dir.path(), BITCOIN.params(), 2, &|_, _| ());
    (dir, set)
}

#[test]
fn a_block_that_does_not_parse_is_reported_and_left_out() {
    let (mut bytes, offsets) = some_blocks(5);
    // Transaction count.
    bytes[offsets[2] + 80] = 0xfe;
    let (_dir, set) = open(&bytes);
    let all = read_all(&set.expect("a chain"), &OPTIONS);
    assert_eq!(all.blocks.iter().map(|row| row.height).collect::<Vec<_>>(), [1, 2, 4, 5]);
    let [damage] = &all.damage[..] else { panic!("{:?}", all.damage) };
    assert_eq!((&damage.reason[..], damage.is_damaged), ("unreadable-block", true), "{damage}");
    assert_eq!((damage.height, damage.place.offset), (3, offsets[2] as u64));
    let text = damage.to_string();
    assert!(text.starts_with("damaged block ") && text.contains("blk00000.dat offset "), "{text}");
    assert!(text.contains("copy that file again"), "{text}");
}

#[test]
fn a_changed_transaction_is_never_counted() {
    let (mut bytes, offsets) = some_blocks(3);
    let end = offsets[1] + BITCOIN.blocks[1].len();
    // Lock time of the last transaction.
    bytes[end - 1] ^= 1;
    let (_dir, set) = open(&bytes);
    let set = set.expect("a chain");
    for txs in [false, true] {
        let all = read_all(&set, &ReadOptions { txs, ..OPTIONS });
        let [damage] = &all.damage[..] else { panic!("{:?}", all.damage) };
        assert_eq!((damage.height, &damage.reason[..]), (2, "bad-txnmrklroot"), "{damage}");
        assert_eq!(all.blocks.iter().map(|row| row.height).collect::<Vec<_>>(), [1, 3]);
        assert!(all.txs.iter().all(|row| row.height != 2));
    }
}

#[test]
fn a_complete_copy_after_a_partial_one_is_counted() {
    let (whole, offsets) = some_blocks(3);
    let third = offsets[2] - 8;
    let bytes = [&whole[..third + 100], &whole[third..]].concat();
    let (_dir, set) = open(&bytes);
    let all = read_all(&set.expect("a chain"), &OPTIONS);
    assert!(all.damage.is_empty(), "{:?}", all.damage);
    let places: Vec<u64> = all.blocks.iter().map(|row| row.place.offset).collect();
    assert_eq!(places, [offsets[0], offsets[1], offsets[2] + 100].map(|offset| offset as u64));
}

#[test]
fn a_file_that_is_gone_or_cut_after_the_search() {
    let (bytes, offsets) = some_blocks(4);
    let (dir, set) = open(&bytes);
    let set = set.expect("a chain");
    let path = dir.path().join("blk00000.dat");
    fs::write(&path, &bytes[..offsets[3] + 10]).expect("a file");
    let all = read_all(&set, &OPTIONS);
    assert_eq!((all.blocks.len(), all.damage.len()), (3, 1));
    assert_eq!(all.damage[0].reason, "unreadable-block");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn nothing_panics(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..12),
        cut in any::<prop::sample::Index>(),
        is_cut in any::<bool>(),
    ) {
        let (mut bytes, _) = some_blocks(8);
        for (place, value) in changes {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        if is_cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        let (_dir, set) = open(&bytes);
        if let Ok(set) = set {
            let heights = set.heights();
            let all = read_all(&set, &OPTIONS);
            let count = (heights.last - heights.first + 1) as usize;
            prop_assert_eq!(all.blocks.len() + all.damage.len(), count);
            let txs: u64 = all.blocks.iter().map(|row| row.counts.txs).sum();
            prop_assert_eq!(all.txs.len() as u64, txs);
        }
    }
}
