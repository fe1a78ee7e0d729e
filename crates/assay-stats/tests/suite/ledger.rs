//! Every count of every block against the ledger, from every kind of folder.

use std::fs;

use assay_stats::{
    BlockRow, BlockSet, Heights, Item, OpenError, OutputKind, Ranges, ReadOptions, detect_chain,
    read,
};
use assay_store::XorKey;
use assay_wire::{Block, Encoding};

use crate::{BITCOIN, CASH, Forged, SIGHASH, all, frame, read_all};

const KEY: [u8; 8] = [0x11, 0xa2, 0x00, 0x34, 0x45, 0x56, 0xc7, 0x78];

fn check(forged: &Forged, rows: &[BlockRow]) {
    let rows: Vec<_> = rows.iter().filter(|row| row.height > 0).collect();
    assert_eq!(rows.len(), forged.ledger.blocks.len());
    for (row, line) in rows.iter().zip(&forged.ledger.blocks) {
        let found = (row.height, row.hash.to_string(), row.time);
        assert_eq!(found, (line.height, line.hash.clone(), line.time));
        let counts = &row.counts;
        assert_eq!((counts.bytes, counts.weight), (line.bytes, line.weight), "{}", line.height);
        assert_eq!(
            (counts.txs, counts.inputs, counts.outputs),
            (line.txs, line.inputs, line.outputs),
            "{}",
            line.height
        );
    }
}

#[test]
fn every_block_equals_the_ledger_with_any_number_of_threads() {
    for forged in all() {
        let set = forged.open(&forged.path());
        assert_eq!(set.heights(), Heights { first: 1, last: forged.ledger.tip.height });
        assert_eq!(set.tip().to_string(), forged.ledger.tip.hash);
        for (threads, txs) in [(1, false), (3, true), (64, true)] {
            let options = ReadOptions { threads, txs, ..ReadOptions::default() };
            let all = read_all(&set, &options);
            assert!(all.damage.is_empty());
            check(forged, &all.blocks);
            let mut ranges = Ranges::new(set.heights(), None);
            all.blocks.iter().for_each(|row| ranges.add(row));
            let (total, tip) = (ranges.total(), &forged.ledger.tip);
            assert_eq!(
                (total.txs, total.inputs, total.outputs, total.bytes),
                (tip.txs, tip.inputs, tip.outputs, tip.bytes)
            );
            assert_eq!(all.txs.len() as u64, if txs { tip.txs } else { 0 });
        }
    }
}

/// Counts equal those of a plain loop that shares only the parser.
#[test]
fn witnesses_kinds_and_many_inputs_equal_a_plain_count() {
    for forged in all() {
        let encoding = forged.params().encoding;
        let options = ReadOptions { threads: 2, many_inputs: 1, txs: true };
        let all = read_all(&forged.open(&forged.path()), &options);
        let mut rows = all.txs.iter();
        for (raw, row) in forged.blocks.iter().zip(&all.blocks) {
            let block = Block::parse(raw.clone(), encoding).expect("a block");
            let (mut segwit, mut segwit_inputs, mut many) = (0, 0, [0, 0]);
            let (mut value, mut largest, mut stripped) = (0i128, 0, 81);
            stripped += if block.tx_count() < 0xfd { 0 } else { 2 };
            for (index, tx) in block.txs().enumerate() {
                let tx_row = rows.next().expect("a row");
                let weight = tx.weight() as u64;
                assert_eq!((tx_row.height, tx_row.index), (row.height, index as u32));
                assert_eq!((tx_row.txid, tx_row.weight()), (tx.txid(), weight));
                assert_eq!(tx_row.is_coinbase, tx.is_coinbase());
                stripped += tx.stripped_size();
                value += tx.outputs().map(|output| i128::from(output.value)).sum::<i128>();
                if index > 0 {
                    let inputs = tx.input_count();
                    assert_eq!(tx_row.inputs as usize, inputs);
                    let with = (0..inputs).filter(|at| !tx.witness(*at).is_empty()).count() as u64;
                    assert_eq!(u64::from(tx_row.segwit_inputs), with);
                    segwit_inputs += with;
                    segwit += u64::from(with > 0);
                    many[usize::from(with > 0)] += u64::from(inputs > 1);
                    largest = largest.max(inputs as u64);
                } else {
                    assert_eq!((tx_row.inputs, tx_row.segwit_inputs), (0, 0));
                }
            }
            let counts = &row.counts;
            assert_eq!((counts.segwit_txs, counts.segwit_inputs), (segwit, segwit_inputs));
            assert_eq!([counts.many_input_legacy_txs, counts.many_input_segwit_txs], many);
            assert_eq!((counts.largest_tx_inputs, counts.output_value), (largest, value));
            assert_eq!(counts.stripped_bytes, stripped as u64);
            let kinds: u64 = counts.by_kind.iter().map(|kind| kind.outputs).sum();
            let values: i128 = counts.by_kind.iter().map(|kind| kind.value).sum();
            assert_eq!((kinds, values), (counts.outputs, value));
        }
        let segwit: u64 = all.blocks.iter().map(|row| row.counts.segwit_inputs).sum();
        assert_eq!(segwit > 0, encoding == Encoding::Segwit);
        let other = |row: &BlockRow| row.counts.of_kind(OutputKind::Other).outputs;
        assert_eq!(all.blocks.iter().map(other).sum::<u64>(), 0, "recipes make known kinds");
    }
}

/// The names of phases describe their blocks.
#[test]
fn shares_and_many_inputs_match_the_recipe() {
    const MANY: u32 = 500;
    let options = ReadOptions { threads: 2, many_inputs: MANY, txs: false };
    let all = read_all(&SIGHASH.open(&SIGHASH.path()), &options);
    let mut widths = 0;
    for (row, line) in all.blocks.iter().zip(&SIGHASH.ledger.blocks) {
        let phase = line.phase.to_string();
        let Some((series, inputs)) = phase.rsplit_once('-') else { continue };
        let Ok(inputs) = inputs.parse::<u64>() else { continue };
        let (counts, txs) = (&row.counts, line.txs - 1);
        let share = if series == "legacy" { 0.0 } else { 1.0 };
        assert_eq!(
            (counts.segwit_tx_share(), counts.segwit_input_share(), counts.largest_tx_inputs),
            (Some(share), Some(share), inputs),
            "{phase}"
        );
        let many = if inputs > u64::from(MANY) { txs } else { 0 };
        let split = if series == "legacy" { (0, many) } else { (many, 0) };
        assert_eq!((counts.many_input_segwit_txs, counts.many_input_legacy_txs), split, "{phase}");
        widths += 1;
    }
    assert!(widths >= 21, "{widths}");
}

#[test]
fn any_order_in_any_files_with_copies_and_stale_blocks() {
    let (forged, params) = (&*BITCOIN, BITCOIN.params());
    for key in [XorKey::NONE, XorKey::new(KEY)] {
        let dir = tempfile::tempdir().expect("a folder");
        let mut files = vec![Vec::new(); 3];
        // In reverse order, spread over files, with padding between.
        for (index, raw) in forged.blocks.iter().enumerate().rev() {
            files[index % 3].extend(frame(&params, raw));
            if index % 11 == 0 {
                files[index % 3].extend([0; 100]);
            }
        }
        files[0].extend(frame(&params, &forged.sibling(7)));
        files[1].extend(frame(&params, &forged.blocks[4]));
        // A partial write of a killed node.
        let torn = frame(&params, &forged.blocks[5]);
        files[2].extend(&torn[..torn.len() - 1]);
        for (number, mut bytes) in files.into_iter().enumerate() {
            key.apply(&mut bytes, 0);
            let path = dir.path().join(format!("blocks/blk{number:05}.dat"));
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, bytes).expect("a file");
        }
        if key != XorKey::NONE {
            fs::write(dir.path().join("blocks/xor.dat"), KEY).expect("a key");
        }
        assert_eq!(detect_chain(dir.path()).expect("readable"), Some("regtest"));
        let set = forged.open(dir.path());
        assert_eq!(set.is_obfuscated(), key != XorKey::NONE);
        check(forged, &read_all(&set, &ReadOptions::default()).blocks);
        let found = set.found();
        assert_eq!((found.duplicates, found.stale, found.unconnected), (1, 1, 0));
        assert_eq!(found.stray_count, 1, "{:?}", found.strays);
        assert!(found.strays[0].place.path.ends_with("blk00002.dat"));
    }
}

#[test]
fn genesis_is_counted() {
    let (forged, params) = (&*CASH, CASH.params());
    let dir = tempfile::tempdir().expect("a folder");
    let mut bytes = frame(&params, &params.genesis_block());
    forged.blocks.iter().for_each(|raw| bytes.extend(frame(&params, raw)));
    fs::write(dir.path().join("blk00000.dat"), bytes).expect("a file");
    let set = forged.open(dir.path());
    assert_eq!(set.heights(), Heights { first: 0, last: forged.ledger.tip.height });
    let all = read_all(&set, &ReadOptions::default());
    assert_eq!((all.blocks[0].height, all.blocks[0].counts.txs), (0, 1));
    assert_eq!(all.blocks[0].counts.of_kind(OutputKind::P2pk).value, 5_000_000_000);
    check(forged, &all.blocks);
}

#[test]
fn a_pruned_folder_has_its_heights() {
    let (forged, params) = (&*BITCOIN, BITCOIN.params());
    let dir = tempfile::tempdir().expect("a folder");
    let lowest = frame(&params, &forged.blocks[40]);
    let mut bytes: Vec<u8> =
        forged.blocks[40..].iter().flat_map(|raw| frame(&params, raw)).collect();
    // The height of a truncated copy is unknown.
    bytes.splice(0..0, lowest[..100].iter().copied());
    fs::write(dir.path().join("blk00007.dat"), bytes).expect("a file");
    let set = forged.open(dir.path());
    assert_eq!(set.heights(), Heights { first: 41, last: forged.ledger.tip.height });
    let all = read_all(&set, &ReadOptions::default());
    assert_eq!(all.blocks[0].hash.to_string(), forged.ledger.blocks[40].hash);
}

#[test]
fn a_part_of_the_chain() {
    let set = BITCOIN.open(&BITCOIN.path());
    let mut heights = Vec::new();
    let part = Heights { first: 20, last: 29 };
    read(&set, part, &ReadOptions { threads: 4, ..ReadOptions::default() }, &mut |item| {
        if let Item::Block(row) = item {
            heights.push(row.height);
        }
        // Stopping early ends all threads.
        if heights.len() == 5 {
            std::ops::ControlFlow::Break(())
        } else {
            std::ops::ControlFlow::Continue(())
        }
    });
    assert_eq!(heights, [20, 21, 22, 23, 24]);
    let bytes: u64 = BITCOIN.ledger.blocks[19..29].iter().map(|line| line.bytes).sum();
    assert_eq!(set.bytes(part), bytes);
}

#[test]
fn folders_without_a_chain() {
    let dir = tempfile::tempdir().expect("a folder");
    let open = || BlockSet::open(dir.path(), BITCOIN.params(), 2, &|_, _| ());
    assert!(matches!(open(), Err(OpenError::Files(_))));
    fs::write(dir.path().join("blk00000.dat"), b"nothing of the kind").expect("a file");
    assert!(matches!(open(), Err(OpenError::NoBlocks { files: 1, bytes: 19, .. })));
    assert_eq!(detect_chain(dir.path()).expect("readable"), None);
}
