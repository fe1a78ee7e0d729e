//! One transaction, its spent outputs and a set of rules: both interpreters must agree on every input.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| assay_peer_kernel::fuzzing::script_case(data));
