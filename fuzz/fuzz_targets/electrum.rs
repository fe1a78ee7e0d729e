//! Lines from Electrum clients: whatever is found in one is JSON, and parameters of every method are read
//! without a panic.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    assay_electrum::server::fuzzing::line(data);
});
