//! A data directory with any bytes in its files: opening either refuses or repairs, and what it
//! repaired opens again without repairs.

#![no_main]

use std::path::Path;
use std::sync::Arc;

use assay_fuzz::Input;
use assay_store::io::{Io, SimIo};
use assay_store::{MemTier, Store, StoreConfig};
use libfuzzer_sys::fuzz_target;

const MAGIC: [u8; 4] = [0xfa, 0xbf, 0xb5, 0xda];

fuzz_target!(|data: &[u8]| {
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
});

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
