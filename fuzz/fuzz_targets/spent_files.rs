//! Files of spent coins, and the files between the steps of a shuffle: rejected, or every record lies in the file.

#![no_main]

use std::io::Read;

use assay_fuzz::Input;
use assay_store::{SpentFiles, StreamsFile, decode_undo};
use libfuzzer_sys::fuzz_target;

const MAGIC: [u8; 4] = [0xfa, 0xbf, 0xb5, 0xda];
const ID: [u8; 32] = [7; 32];

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let is_streams = input.byte() % 2 == 1;
    let bytes = input.rest();
    assay_fuzz::write(if is_streams { "streams.bin" } else { "spent-00000.dat" }, bytes);
    if is_streams { streams(bytes.len()) } else { spent(bytes.len()) }
});

fn spent(size: usize) {
    let Ok(files) = SpentFiles::open(assay_fuzz::folder(), MAGIC) else { return };
    let mut entries = Vec::new();
    if files.for_each(|entry| entries.push(entry)).is_err() {
        return;
    }
    for entry in entries {
        assert!(entry.place.offset + u64::from(entry.place.bytes) < size as u64);
        if let Ok(undo) = files.read(&entry.place, &entry.block) {
            assert_eq!(undo.len(), entry.place.bytes as usize);
            if let Ok(coins) = decode_undo(&undo) {
                assert_eq!(coins.len() as u64, entry.coins);
            }
        }
    }
}

fn streams(size: usize) {
    let Ok(file) = StreamsFile::open(&assay_fuzz::folder().join("streams.bin"), ID) else { return };
    for stream in 0..file.streams() {
        let Ok(mut reader) = file.stream(stream) else { continue };
        let left = reader.bytes_left();
        // Pieces may overlap in a file that nobody has written: what is read stays bounded by the table.
        let mut bytes = Vec::new();
        if reader.by_ref().take(4 * size as u64).read_to_end(&mut bytes).is_ok()
            && left < 4 * size as u64
        {
            assert_eq!(bytes.len() as u64, left);
        }
    }
}
