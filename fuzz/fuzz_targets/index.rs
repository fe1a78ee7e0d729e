//! Files of the index: any bytes are refused or read, and rows that read are in range.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    assay_electrum::index::fuzzing::files(data);
});
