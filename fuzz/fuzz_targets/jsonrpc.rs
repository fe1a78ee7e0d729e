//! Request bodies: any bytes get an answer that is JSON, the same however the body was cut into
//! pieces on the way; and arguments of every method are read without a panic.

#![no_main]

use assay_fuzz::Input;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let cuts: [u8; 4] = input.array();
    assay_node::fuzzing::request(input.rest(), &cuts.map(usize::from));
});
