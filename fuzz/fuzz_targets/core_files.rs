//! Block files of Bitcoin Core, obfuscated or not, with anything between the records.

#![no_main]

use assay_fuzz::Input;
use assay_store::{BlockFiles, Finding, RecordRules};
use libfuzzer_sys::fuzz_target;

const MAGIC: [u8; 4] = [0xfa, 0xbf, 0xb5, 0xda];

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let how = input.byte();
    // No key, one of eight bytes that turns nothing, or any; now and then of a wrong length.
    let key: &[u8] = match how % 4 {
        0 => &[0; 8],
        1 => input.bytes(8),
        2 => input.bytes(usize::from(how >> 4)),
        _ => &[how; 8],
    };
    assay_fuzz::write("xor.dat", key);
    let bytes = input.rest();
    assay_fuzz::write("blk00000.dat", bytes);
    let Ok(files) = BlockFiles::open(assay_fuzz::folder(), MAGIC) else { return };
    assert_eq!(files.bytes(), bytes.len() as u64);
    let (mut findings, mut last) = (0, 0);
    let rules = RecordRules { bytes_max: 1 << 20, is_header: &|header| header[68] & 1 == how >> 7 };
    let scanned = files.scan(0, &rules, &mut |finding, at| {
        findings += 1;
        assert!(at <= files.bytes());
        match finding {
            Finding::Block { place, header } => {
                assert!(place.offset >= 8);
                assert!(place.offset + u64::from(place.size) <= files.bytes());
                let raw = files.read_part(&place, 80).expect("the place is in the file");
                assert_eq!(raw, header);
            }
            Finding::Stray { offset, bytes, .. } => {
                assert!(bytes > 0 && offset + bytes <= files.bytes());
                last = at;
            }
        }
    });
    assert!(scanned.is_ok());
    // At most a finding for each byte, or the scan goes round in circles.
    assert!(findings <= bytes.len() && last <= files.bytes());
});
