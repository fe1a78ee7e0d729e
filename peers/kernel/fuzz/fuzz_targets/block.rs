//! A valid block with changed bytes: engine and kernel must agree on verdict, reason and tip.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| assay_peer_kernel::fuzzing::block_case(data));
