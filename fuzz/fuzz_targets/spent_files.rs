//! Files of spent coins: rejected, or every record lies in the file.

#![no_main]

use assay_store::{SpentFiles, decode_undo};
use libfuzzer_sys::fuzz_target;

const MAGIC: [u8; 4] = [0xfa, 0xbf, 0xb5, 0xda];

fuzz_target!(|data: &[u8]| {
    assay_fuzz::write("spent-00000.dat", data);
    let Ok(files) = SpentFiles::open(assay_fuzz::folder(), MAGIC) else { return };
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
});
