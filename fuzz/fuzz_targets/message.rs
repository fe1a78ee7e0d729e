//! One payload, under the name of any message: what parses is written and read again unchanged.

#![no_main]

use assay_fuzz::messages::{check, command};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Some((kind, payload)) = data.split_first() {
        check(command(*kind), payload);
    }
});
