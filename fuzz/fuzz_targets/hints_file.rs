//! Hints files: any bytes are read without harm, and what is read is written as the same bytes.

#![no_main]

use assay_store::{HintsReader, HintsWriter};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
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
});
