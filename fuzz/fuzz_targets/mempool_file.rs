//! Mempool files: what was read can be written and read again.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    assay_engine::fuzzing::mempool_file(data);
});
