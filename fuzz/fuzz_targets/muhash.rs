//! Set hashes: the same on every kernel, in any order, and removing undoes inserting.

#![no_main]

use assay_fuzz::Input;
use assay_hash::{Backend, MuHash3072};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let mut steps = Vec::new();
    while !input.0.is_empty() && steps.len() < 6 {
        let insert = input.byte() % 2 == 0;
        let length = usize::from(input.byte());
        steps.push((insert, input.bytes(length)));
    }
    let raw: Box<[u8; MuHash3072::SIZE]> = Box::new(input.array());
    let run = |backend, reversed: bool| {
        let mut set = MuHash3072::with_backend(backend);
        let mut apply = |&(insert, item): &(bool, &[u8])| {
            if insert { set.insert(item) } else { set.remove(item) }
        };
        if reversed {
            steps.iter().rev().for_each(&mut apply)
        } else {
            steps.iter().for_each(apply)
        }
        set
    };
    let expected = run(Backend::PORTABLE, false);
    let from_bytes = |backend| {
        let mut set = MuHash3072::from_bytes_with(backend, &raw);
        set.insert(b"item");
        set.finalize()
    };
    let expected_raw = from_bytes(Backend::PORTABLE);
    for backend in Backend::available() {
        assert_eq!(
            run(backend, true).finalize(),
            expected.clone().finalize(),
            "{}",
            backend.name()
        );
        assert_eq!(from_bytes(backend), expected_raw, "{}", backend.name());
    }
    // What is taken out again was never there.
    let mut back = expected;
    for &(insert, item) in &steps {
        if insert { back.remove(item) } else { back.insert(item) }
    }
    assert_eq!(back.finalize(), MuHash3072::new().finalize());
});
