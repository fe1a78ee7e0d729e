//! Bloom filters of peers against the outputs and inputs of a transaction.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| assay_node::fuzzing::bloom(data));
