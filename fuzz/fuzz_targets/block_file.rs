//! Block files of other nodes, whole or torn: the reader gives what the file holds and never more.

#![no_main]

use assay_store::BlockFileReader;
use libfuzzer_sys::fuzz_target;

const MAGIC: [u8; 4] = [0xfa, 0xbf, 0xb5, 0xda];

fuzz_target!(|data: &[u8]| {
    let path = assay_fuzz::write("blk.dat", data);
    let Ok(mut reader) = BlockFileReader::open(&path, MAGIC) else { panic!("the file is there") };
    let mut end = 0;
    loop {
        match reader.next_block() {
            Ok(Some(block)) => {
                let start = end + 8;
                assert_eq!(data[end..end + 4], MAGIC);
                assert_eq!(data[start..start + block.len()], block);
                end = start + block.len();
                assert_eq!(reader.offset(), end as u64);
            }
            // Once it has ended it stays so.
            Ok(None) | Err(_) => {
                assert!(matches!(reader.next_block(), Ok(None)));
                break;
            }
        }
    }
});
