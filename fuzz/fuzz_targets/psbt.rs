//! Partially signed transactions: read, shown, finalised and written.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| assay_node::fuzzing::psbt(data));
