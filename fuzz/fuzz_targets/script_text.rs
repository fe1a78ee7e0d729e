//! Scripts as text, addresses and descriptors for RPC: any script can be shown, as JSON.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    assay_node::fuzzing::script(data);
});
