//! Files of a data directory and of `assay shard`.

use std::path::Path;
use std::sync::Arc;

use assay_engine::{ChainParams, PartResult, PartTiming, Plan, merge, parse_prevouts};
use assay_hash::sha256;
use assay_store::io::{Io, SimIo};
use assay_store::{
    CoinRef, HintsReader, HintsWriter, KeyForms, MemTier, SnapshotReader, SnapshotWriter,
    SpentFiles, Store, StoreConfig, UndoReader, UndoWriter, decode_undo,
};
use assay_wire::{BlockHash, Coin, OutPoint};
use secp256k1::PublicKey;

use crate::input::{Input, folder, write};
use crate::messages::MAGIC;

/// A data directory with any bytes in its files: opening rejects or repairs it, and a repaired one opens again without repairs.
pub fn store(data: &[u8]) {
    let mut input = Input(data);
    let sim = SimIo::new();
    let mut index = b"assayidx\x01\0\0\0".to_vec();
    index.extend(MAGIC);
    for _ in 0..input.byte() % 5 {
        group(&mut index, &mut input);
    }
    let torn = input.byte();
    if torn & 1 == 1 {
        index.extend(input.counted());
    }
    let dir = Path::new("/store");
    sim.set_contents(&dir.join("index/index.log"), index);
    sim.set_contents(&dir.join("blocks/blk00000.dat"), input.counted().to_vec());
    sim.set_contents(&dir.join("blocks/rev00000.dat"), input.counted().to_vec());

    let config = StoreConfig::new(dir, MAGIC);
    let io: Arc<dyn Io> = Arc::new(sim.clone());
    let Ok(store) = Store::open_with(&config, &io, Box::new(MemTier::default())) else { return };
    let records = store.records.clone();
    for record in &records {
        if let Some(pos) = record.block {
            let _ = store.blocks.read_block(pos);
        }
        if let Some(pos) = record.undo {
            let _ = store.blocks.read_undo(pos, &record.header.hash());
        }
    }
    drop(store);
    let Ok(store) = Store::open_with(&config, &io, Box::new(MemTier::default())) else {
        panic!("what has been opened opens again");
    };
    assert_eq!(store.records, records);
    assert_eq!(store.recovery.index_bytes_dropped, 0);
    // The block files may lose more: a record that lost its block no longer vouches for bytes before it.
}

/// A group of the index log with a right checksum, mostly.
fn group(log: &mut Vec<u8>, input: &mut Input<'_>) {
    let kind = input.byte() % 4;
    let mut payload = input.counted().to_vec();
    // Whole records more often than not.
    if input.byte() % 4 != 0 {
        payload.resize(payload.len().next_multiple_of(137), 0);
    }
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&[kind]);
    hasher.update(&payload);
    let flip = u32::from(input.byte() == 0xff);
    log.extend((payload.len() as u32).to_le_bytes());
    log.extend((hasher.finalize() ^ flip).to_le_bytes());
    log.push(kind);
    log.extend(payload);
}

/// Files of spent coins: rejected, or every record lies in the file.
pub fn spent_files(data: &[u8]) {
    write("spent-00000.dat", data);
    let Ok(files) = SpentFiles::open(folder(), MAGIC) else { return };
    let mut entries = Vec::new();
    if files.for_each(|entry| entries.push(entry)).is_err() {
        return;
    }
    for entry in entries {
        assert!(entry.place.offset + u64::from(entry.place.bytes) < data.len() as u64);
        if let Ok(undo) = files.read(&entry.place, &entry.block) {
            assert_eq!(undo.len(), entry.place.bytes as usize);
            if let Ok(coins) = decode_undo(&undo) {
                assert_eq!(coins.len() as u64, entry.coins);
            }
        }
    }
}

/// Undo data and the coin codec: what decodes can be encoded again and is the same.
pub fn undo(data: &[u8]) {
    let decoded = decode_undo(data);
    if let Ok(reader) = UndoReader::new(data) {
        let streamed: Result<Vec<_>, _> = reader.collect();
        assert_eq!(streamed, decoded);
    }
    let Ok(coins) = decoded else { return };
    let mut writer = UndoWriter::new();
    for coin in &coins {
        writer.push(CoinRef::from(coin));
    }
    let again = writer.finish();
    assert_eq!(decode_undo(&again).as_ref(), Ok(&coins));
    // The writer's form is the shortest for every amount that could be money; others it writes out.
    if coins.iter().all(|coin| (0..1 << 60).contains(&coin.value)) {
        assert!(again.len() <= data.len());
    }
}

const KEYS: KeyForms = KeyForms {
    is_point: |key| PublicKey::from_slice(key).is_ok(),
    expand: |key| PublicKey::from_slice(key).ok().map(|key| key.serialize_uncompressed()),
};

/// Snapshots of the UTXO set: any bytes are read without harm, and what is read is written and read again unchanged.
pub fn utxo_snapshot(data: &[u8]) {
    let Ok(mut reader) = SnapshotReader::new(data, KEYS) else { return };
    let mut header = *reader.header();
    let mut coins = Vec::new();
    while let Ok(Some((outpoint, coin))) = reader.next_coin() {
        // No larger amount is loaded.
        if !(0..=MONEY_MAX).contains(&coin.value) {
            break;
        }
        coins.push((outpoint, coin));
    }
    header.coins = coins.len() as u64;
    let mut writer = SnapshotWriter::new(Vec::new(), &header, KEYS).expect("memory takes all");
    for (outpoint, coin) in &coins {
        writer.push(outpoint, CoinRef::from(coin)).expect("memory takes all");
    }
    let (count, bytes) = writer.finish().expect("memory takes all");
    assert_eq!(count, header.coins);
    // The writer takes the shortest form of every script, which need not be the one that was read.
    assert!(bytes.len() <= data.len());
    let mut again = SnapshotReader::new(&bytes[..], KEYS).expect("our own header");
    let mut read = Vec::new();
    while let Some(coin) = again.next_coin().expect("our own coin") {
        read.push(coin);
    }
    // The writer orders the coins of a transaction.
    let text = |coin: &(OutPoint, Coin)| format!("{coin:?}");
    coins.sort_by_cached_key(text);
    read.sort_by_cached_key(text);
    assert_eq!(read, coins);
}

const MONEY_MAX: i64 = 21_000_000 * 100_000_000;

/// Hints files: any bytes are read without harm, and what is read is written as the same bytes.
pub fn hints_file(data: &[u8]) {
    let Ok(mut reader) = HintsReader::new(data) else { return };
    let height = reader.height();
    let mut lists: Vec<Vec<u32>> = Vec::new();
    loop {
        match reader.next_block() {
            Ok(Some(hints)) => {
                lists.push(hints.iter().collect());
                assert_eq!(lists.last().map(Vec::len), Some(hints.len()));
            }
            Ok(None) => break,
            Err(_) => return,
        }
    }
    assert_eq!(reader.offset(), data.len() as u64);
    let mut writer = HintsWriter::new(Vec::new(), height).expect("memory takes all");
    for list in &lists {
        writer.push(list).expect("memory takes all");
    }
    assert!(writer.finish().expect("memory takes all") == data);
}

/// Files of spent outputs: what parses is all of the file.
pub fn prevouts(data: &[u8]) {
    let mut input = Input(data);
    let count = usize::from(input.byte());
    let file = input.rest();
    match parse_prevouts(file, count) {
        Ok(outputs) => {
            assert_eq!(outputs.len(), count);
            let mut again = Vec::new();
            for output in outputs {
                again.extend(output.value.to_le_bytes());
                again.extend((output.script_pubkey.len() as u32).to_le_bytes());
                again.extend(output.script_pubkey);
            }
            assert_eq!(again, file);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    // A count that no file could hold.
    assert!(parse_prevouts(file, usize::MAX).is_err());
}

/// Plans, results of parts and timings of `assay shard`, checksums right: read or rejected, and what is read can be merged.
pub fn shard(data: &[u8]) {
    let mut input = Input(data);
    let (text, table) = (input.counted(), input.counted());
    let folder = folder();
    let regtest = ChainParams::by_name("regtest").expect("a known chain");
    let params_of = |_: &str, _: &[String]| Ok(regtest.clone());
    write("blocks.bin", table);
    let whole = [text, format!("table {}\n", BlockHash(sha256(table))).as_bytes()].concat();
    write("plan.txt", &whole);
    write("part-00000.time", text);
    let _ = PartTiming::read(folder, 0);
    let Ok(plan) = Plan::open(folder, &params_of) else { return };
    let body = input.rest();
    // A result of this very plan, if it is one at all.
    let plan_line = format!("\nplan {}\n", BlockHash(plan.id()));
    let title = b"assay shard result 2";
    let body = [&title[..], plan_line.as_bytes(), body].concat();
    let end = format!("end {}\n", BlockHash(sha256(&body)));
    write("part-00000.txt", &[&body[..], end.as_bytes()].concat());
    if let Ok(Some(result)) = PartResult::read(folder, &plan, 0, None) {
        let mut results = vec![Some(result)];
        results.resize(plan.parts().len(), None);
        let _ = merge(&plan, &results);
        let all = vec![results[0].clone(); plan.parts().len()];
        let _ = merge(&plan, &all);
    }
}
