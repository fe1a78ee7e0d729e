//! The files that are kept about peers, `peers.dat`, `anchors.dat` and `banlist.json`: rejected, or read into something whole that
//! is the same when it is written and read again.

#![no_main]

use assay_fuzz::Input;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let kind = input.byte();
    let is_sealed = kind & 4 != 0;
    match kind & 3 {
        0 => assay_node::fuzzing::address_file(input.rest(), is_sealed),
        1 => assay_node::fuzzing::anchors_file(input.rest(), is_sealed),
        _ => assay_node::fuzzing::ban_list(input.rest()),
    }
});
