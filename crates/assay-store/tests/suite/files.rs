//! All parts together on the real file system.

use assay_store::{
    BlockFiles, BlockRecord, BlockStore, CoinRef, RecordRules, Store, StoreConfig, commit,
};
use assay_wire::{BlockHash, OutPoint, Txid};

use crate::{header, record};

const MAGIC: [u8; 4] = [0xda, 0xb5, 0xbf, 0xfa];

fn raw(n: u32) -> Vec<u8> {
    (0..1000 + n).map(|i| (i ^ n) as u8).collect()
}

fn archive(blocks: &BlockStore, n: u32) -> BlockRecord {
    let block = blocks.append_block(&raw(n)).expect("there is room");
    let undo = blocks.append_undo(0, &header(n).hash(), &[n as u8; 9]).expect("room");
    BlockRecord {
        status: n,
        tx_count: 1,
        chain_tx_count: n.into(),
        sequence: n.into(),
        block: Some(block),
        undo: Some(undo),
        ..record(n)
    }
}

#[test]
fn a_store_is_found_again_and_its_files_have_cores_framing() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let config =
        StoreConfig { block_file_bytes_max: 10_000, ..StoreConfig::new(dir.path(), MAGIC) };
    let mut written = Vec::new();
    for round in 0..3u32 {
        let mut store = Store::open(&config).expect("the store opens");
        assert_eq!(store.records, written);
        assert_eq!(store.recovery, assay_store::Recovery::default());
        for n in round * 10..round * 10 + 10 {
            let record = archive(&store.blocks, n);
            store.index.put(std::slice::from_ref(&record)).expect("there is room");
            let at = OutPoint { txid: Txid([n as u8; 32]), vout: n };
            let coin =
                CoinRef { value: 5, height: n, coinbase: false, script_pubkey: &[n as u8; 40] };
            store.coins.add(at, coin, false).expect("it is absent");
            written.push(record);
        }
        let (height, hash) = (round * 10 + 9, BlockHash([round as u8; 32]));
        commit(&mut store.coins, &store.blocks, &store.index, height, &hash).expect("it commits");
        assert_eq!(store.coins.tip().map(|marker| marker.hash), Some(hash));
    }
    let store = Store::open(&config).expect("the store opens");
    for record in &store.records {
        let pos = record.block.expect("it is archived");
        assert_eq!(store.blocks.read_block(pos).expect("whole"), raw(record.height));
        let undo = store.blocks.read_undo(record.undo.expect("connected"), &record.header.hash());
        assert_eq!(undo.expect("whole"), [record.height as u8; 9]);
    }
    let mut coins = 0;
    store.coins.snapshot().expect("no I/O error").for_each(|_, _| coins += 1).expect("whole");
    assert_eq!(coins, 30);

    let files = BlockFiles::open(dir.path(), MAGIC).expect("they are there");
    assert!(files.files().len() > 3 && files.files().iter().all(|file| file.bytes <= 10_000));
    let rules = RecordRules { bytes_max: 10_000, is_header: &|_| true };
    let found = files.search(1, &rules, &|place, _| place, &|_, _| ()).expect("no I/O error");
    let read_back = found.entries.iter().map(|place| files.read(place).expect("whole"));
    assert!(read_back.eq((0..30).map(raw)) && !files.is_obfuscated());
    assert_eq!((found.stray_count, found.padding_bytes), (0, 0));
    let on_disk = store.blocks.bytes();
    assert_eq!(on_disk, (0..30u64).map(|n| 1008 + n + 8 + 9 + 32).sum::<u64>());
}

#[test]
fn rejects_a_directory_in_use() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let config = StoreConfig::new(dir.path(), MAGIC);
    let _first = Store::open(&config).expect("the store opens");
    assert!(Store::open(&config).is_err());
}

/// Undo data of at least `bytes` bytes, as any block may have.
fn undo_bytes(n: u32, bytes: usize) -> Vec<u8> {
    (0..bytes as u32).map(|i| (i.wrapping_mul(n + 3) >> 3) as u8).collect()
}

#[test]
fn undo_files_rotate_whatever_the_block_file() {
    const LIMIT: u64 = 300;
    let dir = tempfile::tempdir().expect("a temporary directory");
    // One block file has all blocks; their undo data are much larger.
    let config =
        |limit| StoreConfig { block_file_bytes_max: limit, ..StoreConfig::new(dir.path(), MAGIC) };
    let sizes = [1, 40, 200, 259, 260, 261, 1000, 1, 299, 5];
    let mut written: Vec<BlockRecord> = Vec::new();
    for (round, limit) in [LIMIT, 1 << 20, LIMIT].into_iter().enumerate() {
        let store = Store::open(&config(limit)).expect("the store opens");
        assert_eq!(store.records, written);
        for (index, bytes) in sizes.into_iter().enumerate() {
            let n = (round * sizes.len() + index) as u32;
            let hash = header(n).hash();
            let undo =
                store.blocks.append_undo(0, &hash, &undo_bytes(n, bytes)).expect("there is room");
            assert!(undo.end() <= limit || undo.offset == 8, "{undo:?} is alone in its file");
            let record = BlockRecord { tx_count: 1, undo: Some(undo), ..record(n) };
            store.index.put(std::slice::from_ref(&record)).expect("there is room");
            written.push(record);
        }
        assert!(written.windows(2).all(|pair| {
            let at = |record: &BlockRecord| record.undo.map(|undo| (undo.file, undo.offset));
            at(&pair[0]) < at(&pair[1])
        }));
        for record in &written {
            let n = record.height;
            let read =
                store.blocks.read_undo(record.undo.expect("it is there"), &record.header.hash());
            assert_eq!(read.expect("whole"), undo_bytes(n, sizes[n as usize % sizes.len()]));
        }
    }
    assert!(written.last().and_then(|record| record.undo).expect("it is there").file > 8);
}

#[test]
fn rejects_a_limit_beyond_the_offsets() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let open = |limit| {
        let config =
            StoreConfig { block_file_bytes_max: limit, ..StoreConfig::new(dir.path(), MAGIC) };
        Store::open(&config).map(|_| ())
    };
    open(u64::from(u32::MAX)).expect("the largest offset fits");
    let error = open(1 << 32).expect_err("the next does not");
    assert!(error.to_string().ends_with("give at most 4294967295"), "{error}");
}
